"""Records in the form in which they are compared, independent of batch, compression and format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.core.record_columns import each_row
from kdump.format.batch_header import sequence
from kdump.io.hash_key import HashKey, RecordHash, hash_of
from kdump.log.batch_records import decode_columns, records
from kdump.log.reading import Reading
from kdump.log.region import Batch, DefaultRecordBatch, last_record_offset

HIDDEN: Any = object()
"""A field of a record that is withheld."""


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


def rows(reading: Reading[Batch], hash_key: HashKey | None = None) -> Iterator[ComparableRecord]:
    """Yield the records of a valid batch without hidden offsets, in order; if it cannot be decoded further, they end,
    and the reading's problems give the reason. `hash_key`: yield them hashed under this key."""
    plain, batch = _rows(reading), reading.batch
    if batch.replaced_under:
        # Comparable only with records whose names were replaced under the same key.
        return (hash_record(HashKey(b"", f"redacted under {batch.replaced_under}"), row) for row in plain)
    if hash_key is None or batch.lacks:
        return plain
    return (hash_record(hash_key, row) for row in plain)


def _rows(reading: Reading[Batch]) -> Iterator[ComparableRecord]:
    make: Any = ComparableRecord._make
    batch = reading.batch
    if batch.lacks:
        hashes = batch.known_hashes
        if hashes is None:
            yield from header_rows(batch)
        for delta, digest in hashes or ():
            yield _hashed((batch.baseOffset or 0) + delta, digest)
        return
    if not isinstance(batch, DefaultRecordBatch):
        for record in records(reading):
            if record.offset is None:
                return
            stamp = -1 if record.timestamp is None else record.timestamp
            yield ComparableRecord(record.offset, stamp, -1, -1, -1, False, False, record.key, record.value, (0, b""))
        return
    header = batch.header
    base, stamp, first = header.baseOffset, header.baseTimestamp, header.baseSequence
    appended = header.timestampType == "LogAppendTime"
    who = (header.producerId, header.producerEpoch, header.isTransactional, header.isControlBatch)
    for columns, _ in decode_columns(reading):
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


def has_hidden_offsets(batch: Batch) -> bool:
    """Return True if the records of a valid batch are not in the bundle, and neither its header nor hashes show which
    of its offsets they have, because compaction may have removed some."""
    if not batch.lacks or batch.size == batch.format.header.size or batch.known_hashes is not None:
        return False
    count = batch.recordCount
    return count is None or batch.baseOffset is None or count != last_record_offset(batch) - batch.baseOffset + 1


def hash_record(key: HashKey, row: ComparableRecord) -> ComparableRecord:
    """Return a record with the hash of all but its offset in place of its value, and nothing else."""
    return _hashed(row.offset, hash_of(key, (*row[1:-1], *row.headers)))


def _hashed(offset: int, digest: RecordHash) -> ComparableRecord:
    fields: Any = dict.fromkeys(ComparableRecord._fields, HIDDEN) | {"offset": offset, "value": digest}
    return ComparableRecord(**fields)


def header_rows(batch: Batch) -> Iterator[ComparableRecord]:
    """Yield the records of a valid batch without hidden offsets whose records are not in the bundle, with the fields
    that its header shows."""
    base, unknown = batch.baseOffset or 0, HIDDEN
    hidden = (unknown, unknown, unknown)
    if not isinstance(batch, DefaultRecordBatch):
        stamp = unknown if batch.is_compressed else -1 if batch.maxTimestamp is None else batch.maxTimestamp
        for offset in range(base, last_record_offset(batch) + 1):
            yield ComparableRecord(offset, stamp, -1, -1, -1, False, False, *hidden)
        return
    header = batch.header
    who = (header.producerId, header.producerEpoch, header.isTransactional, header.isControlBatch)
    appended = header.timestampType == "LogAppendTime"
    for delta in range(header.recordCount):
        stamp = header.maxTimestamp if appended else unknown
        if not appended and not delta and not header.hasDeleteHorizonMs:
            stamp = header.baseTimestamp
        yield ComparableRecord(base + delta, stamp, sequence(header.baseSequence, delta), *who, *hidden)


def differing(one: ComparableRecord, other: ComparableRecord) -> tuple[str, ...]:
    """Return the names of the fields in which two records differ, as far as they are known."""
    fields = zip(ComparableRecord._fields, one, other)
    if isinstance(one.value, RecordHash) or isinstance(other.value, RecordHash):
        return ()
    return tuple(name for name, mine, theirs in fields if mine != theirs and HIDDEN not in (mine, theirs))


def is_hidden(row: ComparableRecord, other: ComparableRecord) -> bool:
    """Return True if the contents of two records cannot be compared: those of one are not in its bundle, and there are
    no hashes of both under the same key."""
    values: tuple[Any, Any] = (row.value, other.value)
    if HIDDEN in values:
        return True
    keys = {value.key if isinstance(value, RecordHash) else None for value in values}
    return len(keys) > 1
