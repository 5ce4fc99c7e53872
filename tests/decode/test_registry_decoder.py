"""Keys and values decoded by the schemas of a registry's topic."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from tests.conftest import FIXTURES
from tests.decode.test_kafka_topic_decoders import objects, run
from tests.registry_disk import (
    ADDRESS,
    LOG,
    ORDER_1,
    SCHEMAS,
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


def read(place: Path, schemas: list[Step | None], *records: Step) -> list[dict[str, Any]]:
    """Return the records of a topic of that disk, decoded by its registry."""
    write(place, {"_schemas-0": schemas, "t-0": list(records)})
    found: list[dict[str, Any]] = objects(place / "t-0", "--schemas", place)
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
        schema("a", 5, 5, '"int"', schemaType="PROTOBUF"),
        schema("a", 6, 6, '{"type":"array","items":"null"}'),
        *circle,
    ]
    found = values(tmp_path, schemas, *[Step(None, framed(number, b"\2")) for number in range(1, 9)])
    expected = [
        "not JSON",
        "not an Avro schema",
        "",
        "references none version 9",
        "PROTOBUF",
        "take no bytes",
        "circle",
    ]
    for problem, words in zip(found, [*expected, "circle"], strict=True):
        assert isinstance(problem, str)
        assert words in problem


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
        disk = tmp_path / str(number)
        shutil.copytree(DISK, disk)
        data = bytearray((DISK / "_schemas-0" / LOG).read_bytes())
        damage(data, random.Random(number))
        (disk / "_schemas-0" / LOG).write_bytes(data)
        assert run(disk / "orders-0", "--records", "--schemas", disk).exit_code in (0, 2)


def test_a_name_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    nasty = "a\x1b[2J"
    steps: list[Step | None] = [schema(nasty, 1, 1, json.dumps(nasty)), Step(key("NOOP"), None)]
    write(tmp_path, {"_schemas-0": [*steps, Step(schema_key(nasty, 2), b"{")], "t-0": [Step(None, framed(1, b"x"))]})
    assert "\x1b" not in run(tmp_path / "t-0", "--records", "--schemas", tmp_path).output
