"""Keys and values decoded by the schemas of a registry's topic."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.browse.places import RowFactory
from kdump.decode import proto_compiler
from kdump.log.paths import target
from tests import command
from tests.conftest import FIXTURES
from tests.decode.test_kafka_topic_decoders import objects, run
from tests.each_case import each_case
from tests.registry_disk import (
    ADDRESS,
    LOG,
    ORDER_1,
    SCHEMAS,
    USER_GUID,
    Step,
    framed,
    guid_header,
    key,
    reference,
    schema,
    schema_key,
    write,
)
from tests.test_damaged_disks import DAMAGES

DISK = FIXTURES / "registry-1"
RECORD_2 = (Step(None, framed(2, b"\2x")),)
"""A record with the ID of ADDRESS in SCHEMAS."""


def read(place: Path, schemas: list[Step | None], *records: Step) -> list[dict[str, Any]]:
    """Return the records of a topic of that disk, decoded by its registry."""
    write(place, {"_schemas-0": schemas, "t-0": list(records)})
    found: list[dict[str, Any]] = objects(place / "t-0", "--schemas", place)
    return found


def registry_objects(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = command.objects("registry", path)
    return found


def values(place: Path, schemas: list[Step | None], *records: Step) -> list[Any]:
    """Return the decoded values, without their framing, or the problems."""
    return [
        each["valueDecoded"]["data"] if "valueDecoded" in each else each["valueProblem"]
        for each in read(place, schemas, *records)
    ]


def test_the_fixture() -> None:
    found = objects(DISK / "orders-0", "--schemas", DISK)
    assert found[4]["valueDecoded"] == {
        "magic": 0,
        "schemaId": 3,
        "subject": "orders-value",
        "version": 2,
        "data": {"id": 0, "to": None},
    }
    assert found[0]["valueDecoded"]["data"] == {"id": 0}
    assert found[7]["valueProblem"].startswith("no schema with ID 77 in ")
    assert "valueDecoded" not in found[7]
    assert found[7]["value"] is not None
    assert "keyDecoded" not in found[0]
    assert objects(DISK / "users-0", "--schemas", DISK)[0]["valueDecoded"]["data"] == {"name": "ann"}


def test_doubts_are_shown() -> None:
    said = run(DISK / "orders-0", "--records", "--schemas", DISK, "--offset", "0").stdout
    assert "read with the schema of context .; those of .emea fit, too" in said
    assert "deleted for good" in run(DISK / "trial-0", "--records", "--schemas", DISK).stdout
    assert not objects(DISK / "totals-0", "--schemas", DISK)[0].get("valueDecoded")


def test_a_record_older_than_its_schema(tmp_path: Path) -> None:
    late: list[Step | None] = [None] * 90
    write(tmp_path, {"_schemas-0": [*late, schema("a", 1, 1, '"int"')], "t-0": [Step(None, framed(1, b"\2"))]})
    assert "older than the schema's record" in run(tmp_path / "t-0", "--records", "--schemas", tmp_path).stdout


def test_references_unions_and_guids(tmp_path: Path) -> None:
    union = schema("u", 1, 2, '["null","Address"]', references=[reference("address", 1, "Address")])
    name = schema("n", 1, 3, '"Address"', references=[reference("address", 1, "Address")])
    schemas: list[Step | None] = [schema("address", 1, 1, ADDRESS), union, name]
    records = [Step(None, framed(2, b"\2\2x")), Step(None, framed(3, b"\2y")), Step(None, framed(2, b"\0"))]
    assert values(tmp_path / "1", schemas, *records) == [{"street": "x"}, {"street": "y"}, None]
    guid = "c51f76a8-4e24-113b-db25-6d8bab180156"
    header = Step(b'{"name":"eve"}', b'{"name":"bob"}', (guid_header(guid), guid_header(guid, "key")))
    prefix = Step(None, b"\1" + bytes.fromhex(guid.replace("-", "")) + b'{"name":"joe"}')
    found = read(tmp_path / "2", SCHEMAS, header, prefix)
    assert [each["valueDecoded"]["data"]["name"] for each in found] == ["bob", "joe"]
    assert found[0]["keyDecoded"] == {
        "magic": 1,
        "guid": guid,
        "subject": "users-value",
        "version": 1,
        "data": {"name": "eve"},
    }


def test_what_a_schema_does_not_fit_is_not_decoded(tmp_path: Path) -> None:
    (left, cut) = values(tmp_path, [schema("a", 1, 1, '"int"')], Step(None, framed(1, b"\2\2")), Step(None, framed(1)))
    assert left == "ID 1, a version 1: the schema does not fit: 1 byte left over"
    assert cut.startswith("ID 1, a version 1: does not match the schema: ")


def test_of_two_contexts_the_schema_that_fits(tmp_path: Path) -> None:
    schemas: list[Step | None] = [schema("a", 1, 1, ADDRESS), schema(":.b:a", 1, 1, ORDER_1)]
    (found,) = read(tmp_path, schemas, Step(None, framed(1, b"\x80\1")))
    assert (found["valueDecoded"]["subject"], found["valueDecoded"]["data"]) == (":.b:a", {"id": 64})
    said = run(tmp_path / "t-0", "--records", "--schemas", tmp_path).stdout
    assert "read with the schema of context .b; others with this ID do not fit" in said


def test_schemas_that_are_none(tmp_path: Path) -> None:
    deep = '{"type":"array","items":' * 2000 + '"int"' + "}" * 2000
    circle = [
        schema(each, 1, at, '"int"', references=[reference("cd"[at == 7], 1)]) for at, each in ((7, "c"), (8, "d"))
    ]
    schemas: list[Step | None] = [
        schema("a", 1, 1, "no JSON"),
        schema("a", 2, 2, '{"type":"nothing"}'),
        schema("a", 3, 3, deep),
        schema("a", 4, 4, '"int"', references=[reference("none", 9)]),
        schema("a", 5, 5, '"int"', schemaType="LATIN"),
        schema("a", 6, 6, '{"type":"array","items":"null"}'),
        *circle,
    ]
    found = values(tmp_path, schemas, *[Step(None, framed(number, b"\2")) for number in range(1, 9)])
    expected = [
        *("not JSON", "not an Avro schema", "", "references none version 9"),
        *("schemas of type LATIN are not supported", "take no bytes", "circle"),
    ]
    for problem, words in zip(found, [*expected, "circle"], strict=True):
        assert isinstance(problem, str)
        assert words in problem


SHOP = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "shop/money.proto";
message Order {
  message Line { string sku = 1; Line inner = 2; }
  message Note { int32 stars = 1; }
  int64 id = 1;
  google.protobuf.Timestamp at = 2;
  shop.money.Money total = 3;
}
message Refund { string reason = 1; }
"""
MONEY = 'syntax = "proto3";\npackage shop.money;\nmessage Money { int64 units = 1; }\n'
ORDER = b"\x08\x07" + b"\x12\x02\x08\x3c" + b"\x1a\x02\x08\x05"
SHOP_SCHEMAS: list[Step | None] = [
    schema("money", 1, 1, MONEY, schemaType="PROTOBUF"),
    schema("shop", 1, 2, SHOP, schemaType="PROTOBUF", references=[reference("money", 1, "shop/money.proto")]),
]


def test_protobuf_of_the_fixture() -> None:
    (found,) = objects(DISK / "refunds-0", "--schemas", DISK)
    assert found["valueDecoded"] == {
        "magic": 0,
        "schemaId": 4,
        "subject": "refunds-value",
        "version": 1,
        "messageIndexes": [0],
        "data": {"reason": "late", "cents": "1234"},
    }


@each_case(
    "payload, indexes, data",
    [
        (b"\0" + ORDER, [0], {"id": "7", "at": "1970-01-01T00:01:00Z", "total": {"units": "5"}}),
        (b"\2\2\x0a\1x", [1], {"reason": "x"}),
        (b"\1\1\x0a\1x", [1], {"reason": "x"}),
        (b"\4\0\2\x08\5", [0, 1], {"stars": 5}),
        (b"\2\0\1\x08\5", [0, 1], {"stars": 5}),
    ],
    ids=["first", "second", "second, older format", "nested", "nested, older format"],
)
def test_protobuf_messages(payload: bytes, indexes: list[int], data: dict[str, Any], tmp_path: Path) -> None:
    (found,) = read(tmp_path, SHOP_SCHEMAS, Step(None, framed(2, payload)))
    assert (found["valueDecoded"]["messageIndexes"], found["valueDecoded"]["data"]) == (indexes, data)


def test_message_indexes_that_fit_in_both_formats(tmp_path: Path) -> None:
    nested = "".join(f"message B{number} {{ int32 x = 1; }} " for number in range(11))
    schemas: list[Step | None] = [
        schema("a", 1, 1, f'syntax = "proto3"; message A {{ {nested} bytes a = 1; }}', schemaType="PROTOBUF")
    ]
    data = b"\x08\5\x08\5\x08\5\x08\x85\1"  # eight bytes after their length, or four numbers
    write(tmp_path, {"_schemas-0": schemas, "t-0": [Step(None, framed(1, b"\2\0\x0a" + data))]})
    said = run(tmp_path / "t-0", "--records", "--schemas", tmp_path).stdout
    assert '"messageIndexes":[0],"data":{"a":"BQgFCAUIhQE="}' in said
    assert "message indexes [0, 10] fit, too" in said


def test_protobuf_with_a_guid_in_the_header_has_its_message_indexes_there(tmp_path: Path) -> None:
    write(tmp_path / "1", {"_schemas-0": SHOP_SCHEMAS})
    guid = next(each["guid"] for each in registry_objects(tmp_path / "1") if each.get("subject") == "shop")
    name, value = guid_header(guid)
    found = read(tmp_path / "2", SHOP_SCHEMAS, Step(None, b"\x0a\1y", ((name, value + b"\2\2"),)))
    assert found[0]["valueDecoded"]["data"] == {"reason": "y"}
    assert found[0]["valueDecoded"]["messageIndexes"] == [1]


def proto(version: int, text: str, *references: dict[str, Any]) -> Step:
    return schema("a", version, version, text, schemaType="PROTOBUF", references=list(references))


def test_protobuf_that_does_not_fit_or_compile(tmp_path: Path) -> None:
    plain = 'syntax = "proto3"; message A { A a = 1; int32 b = 2; }'
    deep = 'syntax = "proto3"; ' + "message A { " * 2000 + "}" * 2000
    schemas: list[Step | None] = [
        proto(1, plain),
        proto(2, "message {"),
        proto(3, 'import "b.proto"; message A {}'),
        proto(4, 'import "../b.proto"; message A {}', reference("a", 1, "../b.proto")),
        proto(5, deep),
        proto(6, 'syntax = "proto3"; enum E { A = 0; }'),
        proto(7, plain, reference("a", 1, "b.proto"), reference("a", 6, "b.proto")),
        proto(8, 'import "confluent/meta.proto"; message A { option (confluent.message_meta).doc = "x"; }'),
    ]
    payloads = [b"\0\x18\1", b"\0\x0a\2\x18\1", b"\0\x10", b"\x0a", b"", b"\3"]
    records = [Step(None, framed(1, each)) for each in payloads]
    found = values(tmp_path, schemas, *records, *[Step(None, framed(number, b"\0")) for number in range(2, 9)])
    expected = [
        *("field numbers that A does not define: 3", "fields that the messages in A do not define"),
        *("does not match A", "message indexes", "message indexes", "message indexes"),
        *("not a Protobuf schema: 1:9: Expected message name", 'Import "b.proto" was not found'),
        *("'../b.proto', which cannot be imported", "not a Protobuf schema", "defines no message"),
        "two schemas are referenced as b.proto",
    ]
    for problem, words in zip(found[:-1], expected, strict=True):
        assert words in problem
    assert found[-1] == {}


def test_protobuf_without_protoc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdump.decode.proto_compiler.find_spec", lambda name: None)
    monkeypatch.setattr("kdump.decode.proto_compiler._compiled", proto_compiler._compiled.__wrapped__)
    monkeypatch.setenv("PATH", "")
    (found,) = objects(DISK / "refunds-0", "--schemas", DISK)
    assert "need protoc: pip install protobuf grpcio-tools" in found["valueProblem"]
    assert "valueDecoded" not in found


def test_json_of_another_type_than_its_schema_is_not_decoded(tmp_path: Path) -> None:
    schemas: list[Step | None] = [
        schema("a", 1, 1, '{"type":"object"}', schemaType="JSON"),
        schema("b", 1, 2, '{"type":["null","integer"]}', schemaType="JSON"),
        schema("c", 1, 3, "true", schemaType="JSON"),
    ]
    records = [Step(None, framed(*each)) for each in ((1, b"123"), (1, b"{}"), (2, b"5"), (2, b"true"), (3, b"true"))]
    found = values(tmp_path, schemas, *records)
    assert "its type is object" in found[0]
    assert "its type is null, integer" in found[3]
    assert [found[1], found[2], found[4]] == [{}, 5, True]


def test_a_chain_of_references_is_bounded(tmp_path: Path) -> None:
    schemas: list[Step | None] = [
        schema(f"a{number}", 1, number, f'"{number}"', references=[reference(f"a{number + 1}", 1)])
        for number in range(1100)
    ]
    (problem,) = values(tmp_path, schemas, Step(None, framed(0, b"\2")))
    assert "references more than 1000 schemas" in problem


def test_kafkas_own_topics_and_chosen_formats_are_as_before(tmp_path: Path) -> None:
    offsets = objects(FIXTURES / "clean-1" / "__consumer_offsets-0", "--schemas", DISK)
    assert offsets == objects(FIXTURES / "clean-1" / "__consumer_offsets-0")
    (first, *_) = objects(DISK / "orders-0", "--schemas", DISK, "--key-format", "utf-8")
    assert (first["keyDecoded"], first["valueDecoded"]["data"]) == ("k0", {"id": 0})


def test_a_path_without_a_registry(tmp_path: Path) -> None:
    for path, words in ((FIXTURES / "clean-1", "no _schemas found"), (tmp_path / "missing", "no such file")):
        result = run(DISK / "orders-0", "--records", "--schemas", path)
        assert result.exit_code == 2
        assert words in result.stderr
    write(tmp_path / "1", {"_schemas-0": SCHEMAS}, cluster="a")
    write(tmp_path / "2", {"_schemas-0": SCHEMAS}, cluster="b")
    assert "2 registries found" in run(DISK / "orders-0", "--records", "--schemas", tmp_path).stderr
    assert run(DISK / "orders-0", "--schemas", DISK).exit_code == 2  # shows no records


def test_damaged_registries(tmp_path: Path) -> None:
    for number, damage in enumerate(DAMAGES):
        disk = shutil.copytree(DISK, tmp_path / str(number))
        data = bytearray((DISK / "_schemas-0" / LOG).read_bytes())
        damage(data, random.Random(number))
        (disk / "_schemas-0" / LOG).write_bytes(data)
        assert run(disk / "orders-0", "--records", "--schemas", disk).exit_code in (0, 2)


def test_a_name_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    nasty = "a\x1b[2J"
    steps: list[Step | None] = [schema(nasty, 1, 1, json.dumps(nasty)), Step(key("NOOP"), None)]
    write(tmp_path, {"_schemas-0": [*steps, Step(schema_key(nasty, 2), b"{")], "t-0": [Step(None, framed(1, b"x"))]})
    assert "\x1b" not in run(tmp_path / "t-0", "--records", "--schemas", tmp_path).output


def test_the_registry_beside_the_records_is_found() -> None:
    (first, *_, unknown) = objects(DISK / "orders-0")
    assert first["valueDecoded"]["data"] == {"id": 0}
    assert unknown["valueNote"] == f"no schema with ID 77 in {DISK}/_schemas-0"
    assert "valueDecoded" not in unknown
    assert "valueProblem" not in unknown
    assert objects(DISK / "orders-0", "--no-decode")[0].keys().isdisjoint({"valueDecoded", "valueNote"})
    numbers = objects(DISK / "totals-0")
    assert numbers == objects(DISK / "totals-0", "--no-decode")
    assert "valueProblem" in objects(DISK / "totals-0", "--schemas", DISK)[0]
    (header,) = objects(DISK / "users-0")
    assert header["valueDecoded"]["data"] == {"name": "ann"}


def test_the_registry_of_another_directory_of_the_cluster(tmp_path: Path) -> None:
    """A broker may have several log directories; a directory of another cluster does not count."""
    records = [Step(None, framed(2, b"\2x"))]
    write(tmp_path / "1", {"_schemas-0": SCHEMAS})
    write(tmp_path / "2", {"t-0": list(records)})
    write(tmp_path / "3", {"t-0": list(records)}, cluster="other")
    found = command.objects("inspect", tmp_path / "1" / "_schemas-0", tmp_path / "2" / "t-0", "--records")
    assert [each["valueDecoded"]["data"] for each in found if "valueDecoded" in each] == [{"street": "x"}]
    found = command.objects("inspect", tmp_path / "1" / "_schemas-0", tmp_path / "3" / "t-0", "--records")
    assert not [each for each in found if "valueDecoded" in each]


def test_fast_output_and_that_of_the_view_are_the_same(tmp_path: Path) -> None:
    """Batches whose records may have schema IDs leave the fast path, one by one; a limit has no fast path."""
    plain = [Step(b"k%d" % number, b"value %d" % number) for number in range(300)]
    mixed = [*plain, Step(b"a", framed(1, b"\2")), *plain, Step(framed(6, b"\2x"), b"b"), *plain]
    numbers = [Step(None, each.to_bytes(8, "big")) for each in (5, 1_795_000_000_000, 1 << 24, 2 << 24)]
    header = [Step(b"a", b"{}", (guid_header(USER_GUID),)), Step(b"a", b"x", ((b"schema id", b"1"),))]
    write(tmp_path, {"_schemas-0": SCHEMAS, "t-0": [*mixed, *numbers, *header, *plain]})
    for form in (["--json"], []):
        for more in ([], ["--schemas", tmp_path]):
            words = (tmp_path / "t-0", "--records", *form, *more)
            assert run(*words).stdout == run(*words, "--limit", "9999").stdout
    found = objects(tmp_path / "t-0")
    assert sum("valueDecoded" in each for each in found) == 2
    assert sum("keyDecoded" in each for each in found) == 1


def test_numbers_are_decoded_only_if_a_schema_fits_them_whole(tmp_path: Path) -> None:
    """A long of 8 bytes may begin with an ID that there is."""
    schemas: list[Step | None] = [schema("a", 1, 1, '"string"')]
    steps = [Step(None, ((1 << 24) + each).to_bytes(8, "big")) for each in range(3)]
    steps.append(Step(None, framed(1, b"\2")))
    write(tmp_path / "2", {"_schemas-0": schemas, "t-0": list(steps)})
    *numbers, other = objects(tmp_path / "2" / "t-0")
    assert all(each.keys().isdisjoint({"valueDecoded", "valueNote"}) for each in numbers)
    assert "does not match the schema" in other["valueNote"]


def test_a_mirrored_topic_has_the_ids_of_its_source(tmp_path: Path) -> None:
    write(tmp_path / "1", {"_schemas-0": SCHEMAS, "east.checkpoints.internal-0": [], "east.t-0": [*RECORD_2]})
    (found,) = objects(tmp_path / "1" / "east.t-0")
    assert "valueDecoded" not in found
    assert found["valueNote"] == "ID 2 is of the registry of east, from which the topic is mirrored"
    (found,) = objects(tmp_path / "1" / "east.t-0", "--schemas", tmp_path / "1")
    assert found["valueDecoded"]["data"] == {"street": "x"}
    assert found["valueNote"] == "mirrored from east: the ID is that of its registry"
    write(tmp_path / "2", {"_schemas-0": SCHEMAS}, cluster="east")
    (found,) = objects(tmp_path / "1" / "east.t-0", "--schemas", tmp_path / "2")
    assert "valueNote" not in found


def test_topics_of_kafka_streams_and_mirrormaker_are_not_decoded(tmp_path: Path) -> None:
    names = ("app-store-changelog-0", "mm2-offset-syncs.a.internal-0", "heartbeats-0")
    write(tmp_path, {"_schemas-0": SCHEMAS, **{name: [*RECORD_2] for name in names}})
    for name in names:
        assert not [each for each in objects(tmp_path / name) if "valueDecoded" in each]


def test_a_registry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"_schemas-0": SCHEMAS, "_schemas-1": [], "t-0": [*RECORD_2]})
    (found,) = objects(tmp_path / "t-0")
    assert "several partitions, which a registry rejects" in found["valueNote"]
    result = run(tmp_path / "t-0", "--records", "--schemas", tmp_path)
    assert result.exit_code == 2
    assert "2 registries found, not one: several partitions" in result.stderr
    assert objects(tmp_path / "t-0", "--schemas", tmp_path / "_schemas-0")[0]["valueDecoded"]["data"] == {"street": "x"}


def test_only_records_that_look_like_it_read_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"_schemas-0": SCHEMAS, "t-0": [Step(b"a", b"text"), Step(None, bytes(8)), Step(None, b"\0")]})
    monkeypatch.setattr("kdump.decode.registry_sources.schemas_beside", lambda *paths: pytest.fail("it is read"))
    assert len(objects(tmp_path / "t-0")) == 3
    assert len(objects(tmp_path / "t-0", "--limit", "9")) == 3


def test_schemas_of_an_export(tmp_path: Path) -> None:
    assert command.run("registry", DISK, "--export", tmp_path / "out").exit_code == 0
    found = objects(DISK / "orders-0", "--schemas", tmp_path / "out")
    assert found[4]["valueDecoded"]["data"] == {"id": 0, "to": None}
    assert objects(DISK / "users-0", "--schemas", tmp_path / "out")[0]["valueDecoded"]["data"] == {"name": "ann"}


def test_schemas_of_a_running_registry(tmp_path: Path) -> None:
    """The answer to GET /schemas, and the lines of kdump registry --json."""
    versions = [each for each in registry_objects(DISK) if each["type"] == "schemaVersion"]
    answer = tmp_path / "schemas.json"
    answer.write_text(json.dumps(versions))
    (lines := tmp_path / "lines").write_text("".join(json.dumps(each) + "\n" for each in registry_objects(DISK)))
    for path in (answer, lines):
        assert objects(DISK / "orders-0", "--schemas", path)[4]["valueDecoded"]["data"] == {"id": 0, "to": None}
        assert objects(DISK / "users-0", "--schemas", path)[0]["valueDecoded"]["guid"] == USER_GUID
    for text, words in (("[1, {}]", "no _schemas found"), ('{"a":', "not JSON"), ("[" * 100_000, "not JSON")):
        answer.write_text(text)
        result = run(DISK / "orders-0", "--records", "--schemas", answer)
        assert result.exit_code == 2
        assert words in result.stderr


def test_schemas_of_a_deleted_topic_and_of_another_name(tmp_path: Path) -> None:
    write(tmp_path, {"_schemas-0": SCHEMAS, "t-0": [*RECORD_2]})
    (tmp_path / "_schemas-0").rename(tmp_path / "_schemas-0.0123456789abcdef0123456789abcdef-delete")
    (found,) = objects(tmp_path / "t-0", "--schemas", tmp_path)
    assert found["valueDecoded"]["data"] == {"street": "x"}
    assert "deleted for good" in found["valueNote"]
    (tmp_path / "_schemas-0.0123456789abcdef0123456789abcdef-delete").rename(tmp_path / "registry-0")
    assert objects(tmp_path / "t-0", "--schemas", tmp_path / "registry-0")[0]["valueDecoded"]["data"] == {"street": "x"}


def test_the_schema_of_a_records_own_time_goes_first(tmp_path: Path) -> None:
    """An ID was given again: the first text is deleted for good, but still in the log."""
    later: list[Step | None] = [None] * 200
    first: list[Step | None] = [schema("a", 1, 1, '"string"'), Step(schema_key("a", 1), None)]
    schemas = [*first, *later, schema("b", 1, 1, '"bytes"')]
    (found,) = read(tmp_path, schemas, Step(None, framed(1, b"\2x")))
    assert found["valueDecoded"]["data"] == "x"
    assert "deleted for good" in found["valueNote"]


def test_ids_above_2_to_the_31_have_no_schema(tmp_path: Path) -> None:
    """A registry has none: its clients read an ID as a signed number."""
    steps = [Step(None, framed(number, b"\2")) for number in (1 << 31, (1 << 32) - 1)]
    write(tmp_path, {"_schemas-0": [schema("a", 1, 1 << 31, '"int"'), *SCHEMAS], "t-0": list(steps)})
    found = objects(tmp_path / "t-0")
    assert [each["valueNote"].partition(" in ")[0] for each in found] == [
        "no schema with ID 2147483648",
        "no schema with ID 4294967295",
    ]
    assert "is not between 0 and 2147483647" in command.run("registry", tmp_path).stderr


def test_the_browser_decodes_by_the_registry_beside_the_records() -> None:
    path = DISK / "orders-0" / LOG
    rows = RowFactory()
    columns = rows.records(target(str(path)))
    record = next(kdump.open(str(path)).records())
    texts = [column.cell(record) for column in columns]
    assert '{"magic":0,"schemaId":1,"subject":"orders-value","version":1,"data":{"id":0}}' in texts
