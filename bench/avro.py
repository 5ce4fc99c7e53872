"""Measures decoding of Avro by the schemas of a registry against fastavro's own reader. Run as python -m bench.avro.

fastavro's reader returns Python's values; kdump also finds the schema of the ID, checks that it fits all bytes, and
returns JSON values. Both are measured in CPU time, by turns, so that other programs disturb both alike.
docs/performance.md quotes the result.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import fastavro

from kdump.decode.decoder_interface import RecordContext
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.registry_decoder import RegistryDecoder, SchemaSource
from kdump.state.schema_registry import SchemaRegistry
from kdump.state.schema_registry_replay import RegistryReplay

COUNT = 3000
PAIRS = 20
ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [{"name": "street", "type": "string"}, {"name": "zip", "type": ["null", "string"]}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sku", "type": ["null", "string"]},
        {"name": "price", "type": "double"},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "weights", "type": {"type": "map", "values": "double"}},
        {"name": "address", "type": ADDRESS},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
    ],
}
VALUE = {
    "id": 123_456,
    "sku": "sku-1234",
    "price": 12.5,
    "placed": 1_795_247_902_438,
    "tags": ["red", "green", "blue"],
    "weights": {"net": 1.25, "gross": 1.5},
    "address": {"street": "Main Street 5", "zip": "12345"},
    "status": "PAID",
}


TEXTS, DOUBLES = [f"text{number}" for number in range(20)], [f"double{number}" for number in range(20)]
LARGE = {
    "type": "record",
    "name": "Large",
    "fields": [{"name": each, "type": "string" if each in TEXTS else "double"} for each in (*TEXTS, *DOUBLES)],
}
CASES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("a number", {"type": "record", "name": "Small", "fields": [{"name": "id", "type": "long"}]}, {"id": 123_456}),
    ("an order", ORDER, VALUE),
    ("40 fields", LARGE, dict.fromkeys(TEXTS, "some text") | dict.fromkeys(DOUBLES, 0.5)),
)
"""Name, schema and value."""


def readers(schema: dict[str, Any]) -> dict[str, Callable[[bytes], Any]]:
    """Return what decodes a value of a schema with its framing."""
    parsed = fastavro.parse_schema(schema)
    registry = SchemaRegistry()
    RegistryReplay(registry).register({"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(schema)})
    decoder = RegistryDecoder(SchemaSource("", lambda: KnownSchemas(registry), is_named=True))
    context = RecordContext("value", "orders", 0, 0, None, [])

    def own(data: bytes) -> Any:
        stream = io.BytesIO(data)
        stream.seek(5)
        return fastavro.schemaless_reader(stream, parsed, None)

    return {"fastavro": own, "kdump": lambda data: decoder(data, lambda: context).value}


def seconds(read: Callable[[bytes], Any], data: bytes) -> float:
    """Return the CPU seconds that each of COUNT calls takes."""
    began = time.process_time()
    for _ in range(COUNT):
        read(data)
    return (time.process_time() - began) / COUNT


def main() -> None:
    for name, schema, value in CASES:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        data = b"\0\0\0\0\1" + out.getvalue()
        read = readers(schema)
        pairs = [[seconds(each, data) for each in read.values()] for _ in range(PAIRS)][1:]
        each = "  ".join(f"{who} {min(times) * 1e6:5.1f} µs" for who, times in zip(read, zip(*pairs)))
        ratio = median(own / theirs for theirs, own in pairs)
        print(f"{name:9}  {len(data):3} bytes  {each}  {ratio:.2f} times")


if __name__ == "__main__":
    main()
