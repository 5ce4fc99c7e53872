"""Selects batches and records. The header is tested first; a batch is decoded only if it may contain a match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kdump.core.column_numbers import HEADERS_START, KEY_START, OFFSET_DELTA, RECORD_WIDTH, TIMESTAMP_DELTA, VALUE_START
from kdump.core.record_columns import RecordColumns, headers, keep_between, keep_keys, keep_rows
from kdump.format.numbers import LONG_MAX, LONG_MIN
from kdump.log.batch_records import records
from kdump.log.file_kinds import BATCHES, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX, FileKind
from kdump.log.legacy_records import read_wrapper
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch


class Range(NamedTuple):
    """The range first..last, both ends inclusive; None leaves an end open."""

    first: int | None
    last: int | None

    def contains(self, value: int) -> bool:
        return (self.first is None or value >= self.first) and (self.last is None or value <= self.last)

    def meets(self, first: int, last: int) -> bool:
        """Return True if first..last overlaps this range."""
        return (self.last is None or first <= self.last) and (self.first is None or last >= self.first)


OFFSET_KEYS = ("offset", "startOffset", "firstOffset", "lastOffset")
"""JSON keys under which an entry of an index, a snapshot or a checkpoint has its offsets."""

NO, MAYBE, YES = 0, 1, 2
"""Match result for a batch header: no record matches; unknown until decoded; at least one matches."""


class BatchFilter(Protocol):
    """A filter for batches that depends on information outside the batch."""

    def sees(self, batch: Batch) -> bool: ...


@dataclass(frozen=True)
class Selection:
    """Conditions on batches and records; all must match.

    `positions` are bytes of the file, `times` epoch ms; a header value of None matches any value.
    """

    offsets: Range | None = None
    positions: Range | None = None
    times: Range | None = None
    producer_ids: frozenset[int] = frozenset()
    keys: frozenset[bytes] = frozenset()
    key_regex: re.Pattern[bytes] | None = None
    value_regex: re.Pattern[bytes] | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    control: bool = False
    transactional: bool = False
    gate: BatchFilter | None = None
    """Called last, and only once for each batch that it rejects, because it counts these."""

    @property
    def looks_at_content(self) -> bool:
        """True if there are conditions on keys, values or headers."""
        return bool(self.keys or self.key_regex or self.value_regex or self.headers)

    def conditions_on_records(self, kind: FileKind) -> list[str]:
        """Return the options of the conditions that nothing in a file of that kind can meet, because it has no batches
        and no records."""
        if kind in BATCHES:
            return []
        given = {
            "--key": self.keys,
            "--key-regex": self.key_regex,
            "--value-regex": self.value_regex,
            "--header": self.headers,
            "--control": self.control,
            "--transactional": self.transactional,
            "--producer-id": self.producer_ids and kind not in (TXN_INDEX, PRODUCER_SNAPSHOT),
            "--time": self.times and kind not in (TIME_INDEX, PRODUCER_SNAPSHOT),
            "--read-committed": self.gate,
        }
        return [option for option, condition in given.items() if condition]

    @property
    def is_all(self) -> bool:
        return self == Selection()

    @property
    def chooses_records(self) -> bool:
        """True if some records of a batch may match and others not."""
        return bool(self.looks_at_content or self.offsets or self.times)

    @property
    def meets_all(self) -> bool:
        """True if there are no conditions on batch headers: every batch with records must be decoded."""
        return self == Selection(
            keys=self.keys, key_regex=self.key_regex, value_regex=self.value_regex, headers=self.headers
        )

    def batch(self, batch: Batch) -> int:
        """Return NO, MAYBE or YES, from the header alone. (Exception: a v0 or v1 wrapper that ends after the offset
        range is decoded, because its header does not contain its first offset.)"""
        if self.positions and not self.positions.meets(batch.position, batch.end - 1):
            return NO
        if self.producer_ids and batch.producerId not in self.producer_ids:
            return NO
        if (self.control and not batch.isControlBatch) or (self.transactional and not batch.isTransactional):
            return NO
        if self.headers and batch.format.is_message:
            return NO
        if self.offsets and not self._offsets_meet(batch, self.offsets):
            return NO
        answer = YES
        if self.times:
            answer = self._time(batch, self.times)
        if self.looks_at_content and answer:
            # A batch with a record count of 0 that is not empty is damaged, and must be decoded.
            answer = (
                MAYBE
                if batch.recordCount != 0 or batch.format.is_message or batch.size > batch.format.header.size
                else NO
            )
        return answer if answer == NO or self.gate is None or self.gate.sees(batch) else NO

    def _offsets_meet(self, batch: Batch, offsets: Range) -> bool:
        if offsets.first is not None and batch.lastOffset < offsets.first:
            return False
        if offsets.last is None or batch.lastOffset <= offsets.last:
            return True
        if batch.baseOffset is None and isinstance(batch, LegacyRecordBatch):
            read_wrapper(batch)
        return batch.baseOffset is None or batch.baseOffset <= offsets.last

    @staticmethod
    def _time(batch: Batch, times: Range) -> int:
        # maxTimestamp is an upper bound; baseTimestamp is the first record's timestamp, not the smallest.
        newest = batch.maxTimestamp
        if newest is None or (times.first is not None and newest < times.first):
            return NO
        if times.contains(newest):
            return YES
        return NO if batch.timestampType == "LogAppendTime" or batch.recordCount == 0 else MAYBE

    def record(self, record: Record) -> bool:
        """Return True if a record matches, in a batch that may match."""
        if self.offsets and record.offset is not None and not self.offsets.contains(record.offset):
            return False
        if self.times and (record.timestamp is None or not self.times.contains(record.timestamp)):
            return False
        if self.keys and record.key not in self.keys:
            return False
        if self.key_regex and not _found(self.key_regex, record.key):
            return False
        if self.value_regex and not _found(self.value_regex, record.value):
            return False
        if self.headers:
            present = record.headers
            return all(any(k == key and value in (None, v) for k, v in present) for key, value in self.headers)
        return True

    def keep(self, batch: DefaultRecordBatch, columns: RecordColumns) -> None:
        """Keep only the matching records in `columns`: like `record`, but without creating an object per record."""
        header = batch.header
        if self.offsets:
            keep_between(columns, OFFSET_DELTA, header.baseOffset, *_longs(self.offsets))
        if self.times and header.timestampType == "LogAppendTime":
            if not self.times.contains(header.maxTimestamp):
                columns.count = 0
        elif self.times:
            keep_between(columns, TIMESTAMP_DELTA, header.baseTimestamp, *_longs(self.times))
        if self.keys and len(columns):
            keep_keys(columns, list(self.keys))
        if (self.key_regex or self.value_regex or self.headers) and len(columns):
            keep_rows(columns, [i for i in range(len(columns)) if self._content(columns, i * RECORD_WIDTH)])

    def _content(self, columns: RecordColumns, row: int) -> bool:
        """Return True if key, value and headers of the record at block[at:] match."""
        block, data = columns.block, columns.data
        for pattern, column in ((self.key_regex, KEY_START), (self.value_regex, VALUE_START)):
            if pattern is not None:
                start, size = block[row + column], block[row + column + 1]
                if size < 0 or not pattern.search(data[start : start + size]):
                    return False
        if self.headers:
            present = headers(data, block[row + HEADERS_START], block[row + HEADERS_START + 1], block[row + 1])
            return all(any(k == key and value in (None, v) for k, v in present) for key, value in self.headers)
        return True

    def entry(self, position: int, values: dict[str, Any]) -> bool:
        """Return True if an entry of a file without batches matches, by its JSON values. It does not match conditions
        on values that it does not have."""
        offsets = [values[key] for key in OFFSET_KEYS if key in values]
        times = values.get("timestamp")
        return not (
            (self.positions and not self.positions.contains(position))
            or (self.offsets and not (offsets and self.offsets.meets(min(offsets), max(offsets))))
            or (self.times and (times is None or not self.times.contains(times)))
            or (self.producer_ids and values.get("producerId") not in self.producer_ids)
            or self.looks_at_content
            or self.control
            or self.transactional
            or self.gate
        )

    def records(self, batch: Batch) -> Iterator[Record]:
        """Yield the matching records of a batch."""
        if not self.chooses_records:
            yield from records(batch)
            return
        for record in records(batch):
            if self.record(record):
                yield record

    def may_match(self, batch: Batch) -> bool:
        """Return True if at least one record matches, or might match in bytes that are damaged or that no reader looks
        into."""
        answer = self.batch(batch)
        if answer != MAYBE:
            return answer == YES
        if any(True for _ in self.records(batch)) or batch.problems or not batch.crcValid:
            return True
        return self.looks_at_content and batch.ignored > 0


def _longs(limits: Range) -> tuple[int, int]:
    """Return both ends of the range, limited to 64 bits; (1, 0) if nothing is left of it."""
    first = LONG_MIN if limits.first is None else max(LONG_MIN, limits.first)
    last = LONG_MAX if limits.last is None else min(LONG_MAX, limits.last)
    return (first, last) if first <= last else (1, 0)


def _found(pattern: re.Pattern[bytes], data: Any) -> bool:
    return data is not None and pattern.search(data) is not None
