"""Family files, checkpoints: what only a release newer than the newest known one writes.

Source: kdump.cluster.release_evidence; for records of the coordinators, kdump.format.coordinator_record."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from kdump.check.finding import Code, Finding
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.core.column_numbers import RECORD_COUNT
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_checks import count_known_batches
from kdump.core.record_columns import RecordColumns, decode_all
from kdump.format.coordinator_record import KEY, VALUE, decode_coordinator_record
from kdump.format.schema import by_api_key
from kdump.io.run import Limits
from kdump.log.batch_records import payload_of, records
from kdump.log.internal_topics import SCHEMAS
from kdump.log.paths import Target

NEWER_RELEASE = Code("newer-release")


def newer_release(target: Target, text: str, position: int = 0, size: int = 0, offset: int | None = None) -> Finding:
    """Return the finding for something in a file; `text` says what, and of a version of a small file also of which."""
    return NEWER_RELEASE.finding(target, message=text, position=position, size=size, offset=offset)


LARGEST = 2**15 - 1
"""The largest INT16."""


class CoordinatorRecordRule(Observer):
    """Checks records in the topics of the coordinators: the type of each key, and the version of each value. Reports
    the first record of each in a segment."""

    def __init__(self, topic: str, limits: Limits) -> None:
        self.folder = SCHEMAS[topic]
        self.limits = limits
        values = by_api_key(self.folder, "coordinator-value")
        keys = by_api_key(self.folder, "coordinator-key")
        highest = (values[number].valid.highest if number in values else LARGEST for number in range(max(keys) + 1))
        self._highest = array("q", highest)
        """The highest known version of the value by type of key."""
        self._reported: set[tuple[int, int]] = set()
        """Types of keys and versions of values that have been reported; version -1 for a newer type."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self._reported.clear()
        return NONE

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        while (first := count_known_batches(heads, first, stop, self._highest)) < stop:
            if self._is_suspect(heads, first):
                return first
            first += 1
        return stop

    def _is_suspect(self, heads: HeaderColumns, row: int) -> bool:
        payload = payload_of(heads, row, self.limits.max_decompressed_size)
        if payload is None:
            return True
        columns = RecordColumns(payload)
        count = heads.of(row, RECORD_COUNT)
        if not decode_all(columns, 0, len(payload), count):
            return True
        keys, values = (columns.key_start, columns.key_size), (columns.value_start, columns.value_size)
        return any(
            self._newer(_prefix(payload, *keys, number), _prefix(payload, *values, number)) is not None
            for number in range(count)
        )

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        return NONE if not seen.is_valid or seen.batch.isControlBatch else self._of_records(seen)

    def _of_records(self, seen: BatchContext) -> Iterator[Finding]:
        for record in records(seen.batch, values=False):
            key, value = (part[: KEY.size] if part is not None else None for part in (record.key, record.value))
            newer = self._newer(key, value)
            if newer is None:
                continue
            self._reported.add(newer)
            text = decode_coordinator_record(self.folder, record.key, record.value).newer
            batch = seen.batch
            yield newer_release(seen.part.target, text, batch.position, batch.size, record.offset)

    def _newer(self, key: bytes | None, value: bytes | None) -> tuple[int, int] | None:
        """Return the type of a newer key and -1, or the type of a key and the version of its newer value; None if
        neither is newer, or it has been reported. `key` and `value`: their first two bytes."""
        if key is None or len(key) < KEY.size:
            return None
        key_type = KEY.read(key).type
        if key_type >= len(self._highest):
            newer = (key_type, -1)
        elif key_type < 0 or value is None or len(value) < VALUE.size:
            return None
        else:
            version = VALUE.read(value).version
            if version <= self._highest[key_type]:
                return None
            newer = (key_type, version)
        return None if newer in self._reported else newer


def _prefix(data: bytes, starts: memoryview, sizes: memoryview, number: int) -> bytes | None:
    """Return the first bytes of a record's key or value."""
    size, start = sizes[number], starts[number]
    return None if size < 0 else data[start : start + min(size, KEY.size)]
