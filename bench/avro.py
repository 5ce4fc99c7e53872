"""Measures decoding of Avro by the schemas of a registry against fastavro's own reader. Run as python -m bench.avro.

fastavro's reader returns Python's values; kdump also finds the schema of the ID, checks that it fits all bytes, and
returns JSON values. docs/performance.md quotes the result.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from bench.measure import least
from kdump.decode.decoder_interface import RecordContext
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.registry_decoder import RegistryDecoder, SchemaSource
from kdump.state.schema_registry import SchemaRegistry
from kdump.state.schema_registry_replay import RegistryReplay

COUNT = 20_000
RUNS = 5
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


def readers() -> dict[str, Callable[[bytes], Any]]:
    """Return what decodes a value with its framing."""
    parsed = fastavro.parse_schema(ORDER)
    registry = SchemaRegistry()
    RegistryReplay(registry).register({"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(ORDER)})
    decoder = RegistryDecoder(SchemaSource("", lambda: KnownSchemas(registry), is_named=True))
    context = RecordContext("value", "orders", 0, 0, None, [])

    def own(data: bytes) -> Any:
        stream = io.BytesIO(data)
        stream.seek(5)
        return fastavro.schemaless_reader(stream, parsed, None)

    return {"fastavro": own, "kdump": lambda data: decoder(data, lambda: context).value}


def main() -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), VALUE)
    data = b"\0\0\0\0\1" + out.getvalue()
    print(f"{len(data)} bytes")
    for name, read in readers().items():

        def work(read: Callable[[bytes], Any] = read) -> None:
            for _ in range(COUNT):
                read(data)

        print(f"{name:8} {least(work, RUNS) / COUNT * 1e6:6.1f} µs a value")


if __name__ == "__main__":
    main()
