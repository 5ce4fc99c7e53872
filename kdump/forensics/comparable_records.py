"""Records in the form in which they are compared, independent of batch, compression and format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.core.record_columns import each_row
from kdump.format.batch_header import sequence
from kdump.log.batch_records import decode_columns, records
from kdump.log.region import Batch, DefaultRecordBatch


class ComparableRecord(NamedTuple):
    """The fields of a record that have to be equal in all its copies. A number that the record's format lacks is -1, so
    that a copy rewritten in another format can still be equal. `headers`: their number and their bytes."""

    offset: int
    timestamp: int
    sequence: int
    producerId: int
    producerEpoch: int
    isTransactional: bool
    isControlBatch: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[int, bytes]


def rows(batch: Batch) -> Iterator[ComparableRecord]:
    """Yield the records of a valid batch, in order; if it cannot be decoded further, they end, and batch.problems gives
    the reason."""
    make: Any = ComparableRecord._make
    if not isinstance(batch, DefaultRecordBatch):
        for record in records(batch):
            if record.offset is None:
                return
            stamp = -1 if record.timestamp is None else record.timestamp
            yield ComparableRecord(record.offset, stamp, -1, -1, -1, False, False, record.key, record.value, (0, b""))
        return
    header = batch.header
    base, stamp, first = header.baseOffset, header.baseTimestamp, header.baseSequence
    appended = header.timestampType == "LogAppendTime"
    who = (header.producerId, header.producerEpoch, header.isTransactional, header.isControlBatch)
    for columns, _ in decode_columns(batch):
        data = columns.data
        for _, end, _, time, delta, key, key_size, value, value_size, headers, count in each_row(columns):
            yield make(
                (
                    base + delta,
                    header.maxTimestamp if appended else stamp + time,
                    sequence(first, delta),
                    *who,
                    None if key_size < 0 else data[key : key + key_size],
                    None if value_size < 0 else data[value : value + value_size],
                    (count, data[headers:end]),
                )
            )


def differing(one: ComparableRecord, other: ComparableRecord) -> tuple[str, ...]:
    """Return the names of the fields in which two records differ."""
    return tuple(name for name, mine, theirs in zip(ComparableRecord._fields, one, other) if mine != theirs)
