"""kdump export --schema-of: values as columns by the newest schema of their topic; what does not fit is in a table of
its own, with the reason."""

from __future__ import annotations

import io
import json
import struct
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kdump
from kdump.tables.read_options import OptionError
from tests.conftest import FIXTURES
from tests.questions.export.test_command import run
from tests.registry_disk import Step, framed, schema, write

UTC = timezone.utc
OLD = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "note", "type": "bytes"},
        {"name": "gone", "type": "string"},
        {"name": "was", "type": "long"},
    ],
}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}, {"name": "qty", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": "string"},
        {"name": "now", "type": "long", "aliases": ["was"]},
        {"name": "offset", "type": ["null", "double"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, "default": "B"},
        {"name": "items", "type": {"type": "array", "items": ITEM}, "default": []},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}, "default": 0},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 0},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "default": "\u0001",
        },
        {"name": "any", "type": ["null", "int", "string"], "default": None},
        {"name": "next", "type": ["null", "Sale"], "default": None},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}, "default": "ab"},
        {"name": "ok", "type": "boolean", "default": True},
    ],
}
SALE: dict[str, Any] = {
    "id": 1 << 40,
    "note": "new",
    "now": 7,
    "offset": 2.5,
    "kind": "A",
    "items": [{"sku": "s", "qty": 2}, {"sku": "t", "qty": 3}],
    "tags": {"x": 1},
    "at": datetime(2026, 11, 29, 8, 0, 0, 123456, UTC),
    "day": date(2026, 11, 29),
    "price": Decimal("12.34"),
    "any": "text",
    "raw": b"\0\xff",
    "ok": False,
}


def avro(of: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(of), value)
    return out.getvalue()


def columns(table: pa.Table, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in names} for row in table.to_pylist()]


def test_avro_values_are_columns_of_the_newest_schema(tmp_path: Path) -> None:
    old = {"id": 5, "note": b"old", "gone": "x", "was": 9}
    good, later = avro(NEW, SALE | {"next": SALE | {"next": None}}), avro(OLD, old)
    values = [
        framed(1, later),
        framed(2, good),
        None,
        framed(2, good + b"\0"),
        framed(2, good[:20]),
        framed(9, good),
        b"plain",
        framed(3, b"\2x"),
    ]
    schemas = [
        schema("sales-value", 1, 1, json.dumps(OLD)),
        schema("sales-value", 2, 2, json.dumps(NEW)),
        schema("other-value", 1, 3, '"string"'),
    ]
    steps = [Step(b"k%d" % number, value) for number, value in enumerate(values)]
    disk = write(tmp_path / "disk", {"_schemas-0": schemas, "sales-0": steps, "other-0": steps})
    result = run("export", disk, "--schema-of", "sales", "--out", tmp_path / "sales.parquet")
    assert result.exit_code == 0, result.output
    assert "; 5 rows of rejected in " in result.output
    table = pq.read_table(tmp_path / "sales.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert [kinds[name] for name in ("id", "value_offset", "at")] == ["int64", "double", "timestamp[us, tz=UTC]"]
    assert kinds["items"] == "list<element: struct<sku: string, qty: int32>>"
    names = ("topic", "offset", "id", "note", "now", "value_offset", "kind", "items", "tags", "at", "day", "price")
    first, second, tombstone = columns(table, (*names, "any", "next", "raw", "ok", "value"))
    assert first == {
        "topic": "sales",
        "offset": 0,
        "id": 5,
        "note": "old",
        "now": 9,
        "value_offset": None,
        "kind": "B",
        "items": [],
        "tags": [],
        "at": datetime(1970, 1, 1, tzinfo=UTC),
        "day": "1970-01-01",
        "price": "0.01",
        "any": None,
        "next": None,
        "raw": b"ab",
        "ok": True,
        "value": values[0],
    }
    assert second["next"].startswith('{"id":1099511627776,')
    assert {name: second[name] for name in second if name != "next"} == {
        "topic": "sales",
        "offset": 1,
        "value_offset": 2.5,
        "tags": [{"key": "x", "value": 1}],
        "day": "2026-11-29",
        **{name: SALE[name] for name in ("id", "note", "now", "kind", "items", "at", "raw", "ok")},
        "price": "12.34",
        "any": '"text"',
        "value": values[1],
    }
    assert {name for name, value in tombstone.items() if value is not None} == {"topic", "offset"}
    rejected = pq.read_table(tmp_path / "sales.rejected.parquet").to_pylist()
    assert [(row["offset"], row["value"], row["topic"]) for row in rejected] == [
        (offset, values[offset], "sales") for offset in range(3, 8)
    ]
    reasons = ["byte left over", "does not match the schema", "no schema with ID 9", "no schema ID", "not match"]
    assert all(reason in row["reason"] for reason, row in zip(reasons, rejected)), [row["reason"] for row in rejected]
    assert all(row["position"] is not None and row["file"] and row["time"] for row in rejected)
    rows = kdump.records(disk, schema_of="sales", columns=["offset", "id"])
    assert columns(pa.table(rows), ("offset", "id")) == columns(table, ("offset", "id"))
    assert [row["offset"] for row in rows.rejected] == [3, 4, 5, 6, 7]
    run("export", disk, "--schema-of", "sales", "--out", tmp_path / "all")
    assert {path.name for path in (tmp_path / "all").iterdir()} == {
        f"{name}.parquet" for name in ("sales-0", "findings", "rejected")
    }
    with_other = kdump.records(disk, schema_of="sales", topics=["other", "sales"])
    assert len(pa.table(with_other)) == 2 * len(table)


PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
enum Kind { NONE = 0; SOME = 1; }
message Sale {
  int64 id = 1;
  optional string note = 2;
  repeated int32 many = 3;
  map<string, double> rates = 4;
  Kind kind = 5;
  Inner inner = 6;
  Sale next = 7;
  google.protobuf.Timestamp at = 8;
  uint64 big = 9;
  bytes raw = 10;
  message Inner { bool ok = 1; repeated string names = 2; }
}
message Other { string a = 1; }
"""
OLDER = 'syntax = "proto3";\nmessage Sale { int64 id = 1; string gone = 99; }\n'


def test_protobuf_messages_are_columns_of_the_newest_schema(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")

    def one(number: int, wire: int, data: bytes) -> bytes:
        return bytes([number << 3 | wire]) + (bytes([len(data)]) if wire == 2 else b"") + data

    whole = one(1, 0, b"\5") + one(2, 2, b"") + one(3, 2, b"\1\2") + one(4, 2, b"\n\1x\x11" + struct.pack("<d", 0.5))
    whole += one(5, 0, b"\1") + one(6, 2, one(1, 0, b"\1") + one(2, 2, b"n")) + one(7, 2, one(1, 0, b"\7"))
    whole += one(8, 2, one(1, 0, b"\2") + one(2, 0, b"\xe8\7")) + one(9, 0, b"\7") + one(10, 2, b"\xff")
    values = [
        framed(1, b"\0" + one(1, 0, b"\3") + b"\x9a\6\1g"),
        framed(2, b"\0" + whole),
        framed(2, b"\0"),
        framed(2, b"\2\2" + one(1, 2, b"a")),
        framed(2, b"\0" + one(9, 0, b"\xff" * 9 + b"\1")),
        framed(2, b"\0" + one(15, 0, b"\1")),
    ]
    schemas = [
        schema("sales-value", 1, 1, OLDER, schemaType="PROTOBUF"),
        schema("sales-value", 2, 2, PROTO, schemaType="PROTOBUF"),
    ]
    disk = write(tmp_path / "disk", {"_schemas-0": schemas, "sales-0": [Step(None, value) for value in values]})
    rows = kdump.records(disk, schema_of="sales")
    names = ("id", "note", "many", "rates", "kind", "inner", "next", "at", "big", "raw")
    empty = {"id": 0, "note": None, "many": [], "rates": [], "kind": "NONE", "inner": None, "next": None, "at": None}
    empty |= {"big": 0, "raw": b""}
    older, newer, nothing = columns(pa.table(rows), names)
    assert older == empty | {"id": 3}
    assert nothing == empty
    assert newer == {
        "id": 5,
        "note": "",
        "many": [1, 2],
        "rates": [{"key": "x", "value": 0.5}],
        "kind": "SOME",
        "inner": {"ok": True, "names": ["n"]},
        "next": '{"id":"7"}',
        "big": 7,
        "raw": b"\xff",
        "at": datetime(1970, 1, 1, 0, 0, 2, 1, UTC),
    }
    reasons = ["message [1]", "larger than 64 bits", "field numbers that Sale does not define"]
    assert all(reason in row["reason"] for reason, row in zip(reasons, rows.rejected)), [
        row["reason"] for row in rows.rejected
    ]
    assert [row["offset"] for row in rows.rejected] == [3, 4, 5]


def test_what_has_no_columns_is_refused(tmp_path: Path) -> None:
    for topic, reason in (("users", "its type is JSON"), ("nope", "no schema with the subject nope-value")):
        result = run("export", FIXTURES / "registry-1", "--schema-of", topic, "--out", tmp_path / "x.parquet")
        assert (result.exit_code, reason in result.output) == (2, True), result.output
        with pytest.raises(OptionError, match=reason):
            kdump.records(FIXTURES / "registry-1", schema_of=topic)
    result = run("export", FIXTURES / "clean-1", "--schema-of", "orders", "--out", tmp_path / "x.parquet")
    assert (result.exit_code, "name its schemas with --schemas" in result.output) == (2, True)
    at = ("--schemas", FIXTURES / "registry-1")
    result = run("export", FIXTURES / "registry-1" / "orders-0", "--schema-of", "orders", *at, "--out", "-")
    assert result.exit_code == 0
    result = run("export", FIXTURES / "clean-1", "--table", "batches", "--schema-of", "a", "--out", tmp_path / "x")
    assert "--schema-of applies to records" in result.output


def test_a_single_segment_has_the_registry_of_its_log_directory() -> None:
    for path in (FIXTURES / "registry-1" / "orders-0", FIXTURES / "registry-1" / "orders-0" / f"{0:020}.log"):
        assert len(pa.table(kdump.records(path, schema_of="orders", columns=["id"]))) == 7


def twice(depth: int) -> dict[str, Any]:
    """Return a record that has the next one twice, and so on."""
    inner = {"type": "record", "name": f"R{depth}", "fields": [{"name": "x", "type": "long"}]}
    if depth < 19:
        inner["fields"] = [{"name": "a", "type": twice(depth + 1)}, {"name": "b", "type": f"R{depth + 1}"}]
    return inner


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a default of another type": ({"name": "a", "type": "int", "default": "x"}, "not an Avro schema"),
    "an endless default": ({"name": "a", "type": "Top", "default": {}}, "a default value is invalid"),
    "many records": ({"name": "a", "type": twice(0)}, "nested in each other too often"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_refused(name: str, tmp_path: Path) -> None:
    field, reason = HOSTILE[name]
    text = json.dumps({"type": "record", "name": "Top", "fields": [field]})
    disk = write(tmp_path / "disk", {"_schemas-0": [schema("t-value", 1, 1, text)], "t-0": [Step(None, framed(1))]})
    with pytest.raises(OptionError, match=reason):
        kdump.records(disk, schema_of="t")
