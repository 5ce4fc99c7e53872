"""Avro and Protobuf in the Confluent wire format."""

from __future__ import annotations

import io
import json
import struct
import sys
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from kdump.decode.avro import avro_payload
from kdump.decode.decoder_interface import MAX_FRAMED_BYTES
from tests.conftest import numbers_in
from tests.craft import batch, flip, record, varint, write_file
from tests.decode.test_kafka_topic_decoders import objects, run
from tests.each_case import each_case

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sku", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
ORDER = {"id": 7, "sku": "sku-1\x1b[2J", "raw": b"\0\xff", "at": 1_795_247_902_438}
SAID = {"id": 7, "sku": "sku-1\x1b[2J", "raw": "AP8=", "at": "2026-11-21T07:58:22.438000+00:00"}


def framed(payload: bytes, number: int = 42, path: bytes = b"") -> bytes:
    return struct.pack(">bi", 0, number) + path + payload


def avro(value: Any, schema: Any = SCHEMA) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def segment(*values: bytes | None, key: bytes | None = None) -> bytes:
    return batch([record(i, key=key, value=value) for i, value in enumerate(values)])


@pytest.fixture
def avsc(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(SCHEMA))
    return path


def test_avro(avsc: Path) -> None:
    data = segment(framed(avro(ORDER)), None)
    first, second = objects("-", "--value-format", "avro", "--schema", avsc, stdin=data)
    assert first["valueDecoded"] == {"magic": 0, "schemaId": 42, "data": SAID}
    assert second["valueDecoded"] is None
    table = run("-", "--records", "--value-format", "avro", "--schema", avsc, stdin=data).stdout
    assert '{"magic":0,"schemaId":42,"data":{"id":7,"sku":"sku-1\\u001b[2J"' in table
    assert "\x1b" not in table


LOGICAL = {
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.30"), "-12.30"),
    "day": ({"type": "int", "logicalType": "date"}, date(2026, 11, 21), "2026-11-21"),
    "millis": ({"type": "int", "logicalType": "time-millis"}, time(1, 2, 3, 4000), "01:02:03.004000"),
    "micros": ({"type": "long", "logicalType": "time-micros"}, time(1, 2, 3), "01:02:03"),
    "moment": ({"type": "long", "logicalType": "timestamp-micros"}, 1, "1970-01-01T00:00:00.000001+00:00"),
    "local": ({"type": "long", "logicalType": "local-timestamp-millis"}, 1, "1970-01-01T00:00:00.001000"),
    "uuid": ({"type": "string", "logicalType": "uuid"}, str(UUID(int=7)), str(UUID(int=7))),
    "unknown": ({"type": "int", "logicalType": "colour"}, 7, 7),
    "ratio": ("double", 0.5, 0.5),
    "nan": ("float", float("nan"), "NaN"),
    "least": ("double", float("-inf"), "-Infinity"),
    "maybe": (["null", "double"], float("inf"), "Infinity"),
    "several": (["long", "double", {"type": "long", "logicalType": "timestamp-millis"}], float("nan"), "NaN"),
}
"""Type, value, and JSON."""


def test_avro_types_that_have_no_form_in_json(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, (kind, _, _) in LOGICAL.items()],
    }
    avsc = tmp_path / "r.avsc"
    avsc.write_text(json.dumps(schema))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {name: each[1] for name, each in LOGICAL.items()})
    value, note = avro_payload(str(avsc))(b"00000" + out.getvalue(), 5, ())
    assert (value, note) == ({name: each[2] for name, each in LOGICAL.items()}, "")


def test_a_registrys_answer_is_a_schema_too(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"subject": "orders-value", "id": 42, "schema": json.dumps(SCHEMA)}))
    [at] = objects("-", "--value-format", "avro", "--schema", path, stdin=segment(framed(avro(ORDER))))
    assert at["valueDecoded"]["data"] == SAID


def test_without_a_schema_the_framing_is_shown() -> None:
    [at] = objects("-", "--value-format", "avro", stdin=segment(framed(b"\x0e")))
    assert at["valueDecoded"] == {"magic": 0, "schemaId": 42, "payload": "Dg=="}
    [at] = objects("-", "--value-format", "protobuf", stdin=segment(framed(b"\x08\7", path=b"\4\2\0")))
    assert at["valueDecoded"] == {"magic": 0, "schemaId": 42, "messageIndexes": [1, 0], "payload": "CAc="}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "at byte 0: not in the Confluent wire format: empty"),
        (b"{}", "at byte 0: not in the Confluent wire format: starts with 0x7b, not 0x00"),
        (b"\0\0\0", "at byte 1: the schema ID needs 4 bytes, 2 left"),
    ],
)
def test_what_is_not_framed(data: bytes, problem: str, avsc: Path) -> None:
    [at] = objects("-", "--value-format", "avro", "--schema", avsc, stdin=segment(data))
    assert at["valueProblem"] == problem
    assert "valueDecoded" not in at


def test_keys_and_values_with_a_schema_each(avsc: Path, tmp_path: Path) -> None:
    of_keys = tmp_path / "key.avsc"
    of_keys.write_text('"string"')
    data = segment(framed(avro(ORDER)), key=framed(avro("k", "string"), 41))
    both = ["--key-format", "avro", "--value-format", "avro", "--schema", avsc, "--key-schema", of_keys]
    [at] = objects("-", *both, stdin=data)
    assert at["keyDecoded"] == {"magic": 0, "schemaId": 41, "data": "k"}
    assert at["valueDecoded"]["data"] == SAID
    [at] = objects("-", "--key-format", "avro", "--schema", of_keys, stdin=data)
    assert at["keyDecoded"]["data"] == "k"


def test_avro_cut_and_flipped(avsc: Path) -> None:
    whole = framed(avro(ORDER))
    values = [whole[:size] for size in range(len(whole))] + [flip(whole, bit) for bit in range(len(whole) * 8)]
    found = objects("-", "--value-format", "avro", "--schema", avsc, stdin=segment(*values))
    assert len(found) == len(values)
    assert all("valueProblem" in at for at in found[: len(whole)])
    assert numbers_in(found[5]["valueProblem"])[0] == 5  # the position
    assert found[5]["valueDecoded"] == {"magic": 0, "schemaId": 42}
    [at] = objects("-", "--value-format", "avro", "--schema", avsc, stdin=segment(whole + b"x"))
    assert numbers_in(at["valueNote"]) == [1]
    assert "valueProblem" not in at


@each_case("text", ["{", '{"type": "nonsense"}', '{"type": "record"}', "[1]", ""])
def test_what_is_no_avro_schema(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.avsc"
    path.write_text(text)
    result = run("-", "--records", "--value-format", "avro", "--schema", path, stdin=segment(b"x"))
    assert result.exit_code == 2
    assert "bad.avsc: not an Avro schema: " in result.output


def test_an_array_that_nothing_bounds_is_refused(tmp_path: Path) -> None:
    empty = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
    for items in ("null", empty, {"type": "fixed", "name": "F", "size": 0}):
        path = tmp_path / "bomb.avsc"
        fields = [{"name": "list", "type": {"type": "array", "items": items}}]
        path.write_text(json.dumps({"type": "record", "name": "R", "fields": fields}))
        result = run("-", "--records", "--value-format", "avro", "--schema", path, stdin=segment(b"x"))
        assert result.exit_code == 2
        assert "arrays whose elements take no bytes" in result.output
    path.write_text(json.dumps({"type": "array", "items": {"type": "record", "name": "E", "fields": SCHEMA["fields"]}}))
    assert run("-", "--records", "--value-format", "avro", "--schema", path, stdin=segment(b"x")).exit_code == 0


def test_an_array_of_a_named_type_that_nothing_bounds(tmp_path: Path) -> None:
    """If the type was defined earlier, the array contains only its name."""
    path = tmp_path / "bomb.avsc"
    fields = [
        {"name": "one", "type": {"type": "record", "name": "E", "fields": []}},
        {"name": "list", "type": {"type": "array", "items": "E"}},
    ]
    path.write_text(json.dumps({"type": "record", "name": "R", "fields": fields}))
    result = run("-", "--records", "--value-format", "avro", "--schema", path, stdin=segment(b"x"))
    assert result.exit_code == 2
    assert "arrays whose elements take no bytes" in result.output


def doubling(depth: int, last: Any) -> dict[str, Any]:
    """Return a record of two records of two records …; the innermost type consists of two `last`."""
    for level in range(depth):
        fields = [{"name": "one", "type": last}, {"name": "other", "type": f"D{level - 1}" if level else last}]
        last = {"type": "record", "name": f"D{level}", "fields": fields}
    return last


@each_case("nested", ["", "array", "union"])
def test_a_type_that_doubles_without_bytes_is_refused(nested: str, tmp_path: Path) -> None:
    """Its values take no bytes, or few, and have 2^40 parts."""
    path = tmp_path / "bomb.avsc"
    type_ = doubling(40, "null")
    if nested == "array":
        fields = [{"name": "n", "type": "int"}, {"name": "d", "type": type_}]
        type_ = {"type": "array", "items": {"type": "record", "name": "I", "fields": fields}}
    elif nested == "union":
        fields = [{"name": "u", "type": ["string", type_]}]
        type_ = {"type": "record", "name": "U", "fields": fields}
    path.write_text(json.dumps(type_))
    result = run("-", "--records", "--value-format", "avro", "--schema", path, stdin=segment(b"x"))
    assert result.exit_code == 2
    assert 1000 in numbers_in(result.output)


@each_case("depth, last", [(40, "int"), (8, "null"), (40, ["null", "int"])])
def test_a_type_that_doubles_within_bounds(depth: int, last: Any, tmp_path: Path) -> None:
    path = tmp_path / "doubles.avsc"
    path.write_text(json.dumps(doubling(depth, last)))
    [at] = objects("-", "--value-format", "avro", "--schema", path, stdin=segment(framed(b"\0" * 500)))
    assert ("valueProblem" in at) == (last != "null")


TREE = {"type": "record", "name": "T", "fields": [{"name": "under", "type": {"type": "array", "items": "T"}}]}
LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


@each_case("schema, deeper", [(LIST, b"\2"), (TREE, b"\2")])
def test_a_type_that_holds_itself(schema: dict[str, Any], deeper: bytes, tmp_path: Path) -> None:
    """fastavro's compiled reader would overflow the stack of the process."""
    path = tmp_path / "self.avsc"
    path.write_text(json.dumps(schema))
    values = [framed(deeper * depth + b"\0" * (depth + 1 if schema is TREE else 1)) for depth in (2, 200_000)]
    sound, deep = objects("-", "--value-format", "avro", "--schema", path, stdin=segment(*values))
    wanted = {"under": [{"under": [{"under": []}]}]} if schema is TREE else {"next": {"next": {"next": None}}}
    assert sound["valueDecoded"]["data"] == wanted
    assert "nested too deeply" in deep["valueProblem"]


def test_a_type_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "self.avsc"
    path.write_text(json.dumps({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}))
    [at] = objects("-", "--value-format", "avro", "--schema", path, stdin=segment(framed(b"x")))
    assert "nested too deeply" in at["valueProblem"]


@each_case("own", [False, True])
def test_a_decimal_of_a_million_bytes(own: bool, tmp_path: Path) -> None:
    """Python would take minutes to convert it."""
    path = tmp_path / "decimal.avsc"
    fields = [{"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}}]
    if own:
        fields.append({"name": "next", "type": ["null", "D"]})
    path.write_text(json.dumps({"type": "record", "name": "D", "fields": fields}))
    values = [framed(avro(data, "bytes") + b"\0" * own) for data in (b"\4\xd2", bytes([127]) * 1_000_000)]
    sound, long = objects("-", "--value-format", "avro", "--schema", path, stdin=segment(*values))
    assert sound["valueDecoded"]["data"]["d"] == "12.34"
    assert 1_000_000 in numbers_in(long["valueProblem"])
    assert "valueProblem" not in sound


# Protobuf.


@pytest.fixture
def proto(tmp_path: Path) -> tuple[Path, DescriptorPool]:
    """Return a descriptor set as protoc writes it: an imported file, then the requested one."""
    kinds = descriptor_pb2.FieldDescriptorProto
    shared = descriptor_pb2.FileDescriptorProto(name="shared.proto", package="shop", syntax="proto3")
    shared.message_type.add(name="Sku").field.add(name="text", number=1, type=kinds.TYPE_STRING, label=1)
    main = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    main.dependency.extend(["shared.proto", "google/protobuf/timestamp.proto"])
    main.message_type.add(name="Other")
    order = main.message_type.add(name="Order")
    order.field.add(name="order_id", number=1, type=kinds.TYPE_INT32, label=1)
    order.field.add(name="sku", number=2, type=kinds.TYPE_MESSAGE, type_name=".shop.Sku", label=1)
    order.field.add(name="at", number=3, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1)
    order.nested_type.add(name="Line").field.add(name="raw", number=1, type=kinds.TYPE_BYTES, label=1)
    path = tmp_path / "order.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[shared, main]).SerializeToString())
    pool = DescriptorPool()
    from google.protobuf import timestamp_pb2

    for data in (timestamp_pb2.DESCRIPTOR.serialized_pb, shared.SerializeToString(), main.SerializeToString()):
        pool.AddSerializedFile(data)
    return path, pool


def made(pool: DescriptorPool, name: str, **fields: Any) -> bytes:
    data: bytes = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))(**fields).SerializeToString()
    return data


def test_protobuf(proto: tuple[Path, DescriptorPool]) -> None:
    path, pool = proto
    order = made(pool, "shop.Order", order_id=7, sku={"text": "s"}, at={"seconds": 1})
    values = [
        framed(order, path=varint(1) + varint(1)),
        framed(made(pool, "shop.Order.Line", raw=b"\xff"), path=varint(2) + varint(1) + varint(0)),
        framed(b"", path=b"\0"),
        framed(order + b"\x98\x06\x01", path=varint(1) + varint(1)),
        framed(order, path=varint(1) + varint(5)),
        framed(order, path=varint(1000)),
        framed(b"\xff", path=varint(1) + varint(1)),
    ]
    found = objects("-", "--value-format", "protobuf", "--schema", path, stdin=segment(*values))
    said = {"order_id": 7, "sku": {"text": "s"}, "at": "1970-01-01T00:00:01Z"}
    assert found[0]["valueDecoded"] == {"magic": 0, "schemaId": 42, "messageIndexes": [1], "data": said}
    assert found[1]["valueDecoded"]["data"] == {"raw": "/w=="}
    assert found[2]["valueDecoded"] == {"magic": 0, "schemaId": 42, "messageIndexes": [0], "data": {}}
    assert ("shop.Order" in found[3]["valueNote"], numbers_in(found[3]["valueNote"])) == (True, [99])
    assert ("order.proto" in found[4]["valueProblem"], numbers_in(found[4]["valueProblem"])) == (True, [5])
    assert numbers_in(found[5]["valueProblem"]) == [5, 1000, 0, 32]  # the position, the indexes, and how many are valid
    assert ("shop.Order" in found[6]["valueProblem"], numbers_in(found[6]["valueProblem"])[0]) == (True, 7)


def test_protobuf_cut_and_flipped(proto: tuple[Path, DescriptorPool]) -> None:
    path, pool = proto
    whole = framed(made(pool, "shop.Order", order_id=7, sku={"text": "s"}, at={"seconds": 1}), path=varint(1) * 2)
    values = [whole[:size] for size in range(len(whole))] + [flip(whole, bit) for bit in range(len(whole) * 8)]
    assert len(objects("-", "--value-format", "protobuf", "--schema", path, stdin=segment(*values))) == len(values)


@each_case("data", [b"", b"\xff\xff", b"\x0a\x02\x0a\x00"])
def test_what_is_no_descriptor_set(data: bytes, tmp_path: Path) -> None:
    path = write_file(tmp_path / "bad.desc", data)
    result = run("-", "--records", "--value-format", "protobuf", "--schema", path, stdin=segment(b"x"))
    assert result.exit_code == 2
    assert "descriptor set" in result.output


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("avro", "fastavro", "fastavro"), ("protobuf", "google.protobuf", "protobuf grpcio-tools")],
)
def test_without_the_library(name: str, module: str, package: str, avsc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = run("-", "--records", "--value-format", name, "--schema", avsc, stdin=segment(b"x"))
    assert result.exit_code == 2
    assert f": pip install {package}\n" in result.output
    # The framing is still shown.
    [at] = objects("-", "--value-format", name, stdin=segment(framed(b"\0")))
    assert at["valueDecoded"]["schemaId"] == 42


def test_what_is_too_large_stays_raw(avsc: Path) -> None:
    """One byte of Avro can become a value of about 200 bytes."""
    data = segment(framed(bytes(MAX_FRAMED_BYTES)))
    (said,) = objects("-", "--value-format", "avro", "--schema", avsc, stdin=data)
    assert said["valueDecoded"] == {"magic": 0, "schemaId": 42}
    assert "too large to decode" in said["valueProblem"]
