"""The fast decoder of coordinators' records says what the interpreter says."""

from __future__ import annotations

import struct

from kdump.decode.kafka_topics import KAFKA
from kdump.format.coordinator_record import decode_key, decode_value
from kdump.log.batch_records import records
from tests.conftest import FIXTURES, batches, read_regions
from tests.each_case import each_case


def _pairs(topic: str) -> set[tuple[bytes, bytes | None]]:
    paths = FIXTURES.glob(f"*-1/{topic}-*/*.log")
    return {
        (record.key, record.value)
        for path in paths
        for batch in batches(read_regions(path))
        if not batch.isControlBatch
        for record in records(batch)
        if record.key is not None
    }


def _is_same(folder: str, key: bytes, value: bytes | None) -> None:
    """With spans, the interpreter reads."""
    part = decode_key(folder, key)
    assert repr(part) == repr(decode_key(folder, key, []))
    assert repr(decode_value(folder, part, value)) == repr(decode_value(folder, part, value, []))


def _changed(data: bytes) -> list[bytes]:
    """Return the bytes with every byte changed, cut short, continued, and with another type or version."""
    numbers = (0, 1, 2, 3, 4, 5, 99, -1, 0x7FFF, -0x8000)
    return [
        *(data[:at] + bytes([byte]) + data[at + 1 :] for at in range(len(data)) for byte in (0, 0x7F, 0x80, 0xFF)),
        *(data[:size] for size in range(len(data))),
        data + b"\0",
        *(struct.pack(">h", number) + data[2:] for number in numbers),
    ]


@each_case("name", [name for name, topic in KAFKA.items() if topic.is_coordinators])
def test_real_and_damaged_records(name: str) -> None:
    folder, kinds = KAFKA[name].folder, set()
    for key, value in sorted(_pairs(KAFKA[name].topic), key=repr):
        _is_same(folder, key, value)
        kind = (key[:2], (value or b"")[:2])
        if kind in kinds:
            continue
        kinds.add(kind)
        for changed in _changed(key):
            _is_same(folder, changed, value)
        for changed in _changed(value or b"\0\0"):
            _is_same(folder, key, changed)
    assert kinds
