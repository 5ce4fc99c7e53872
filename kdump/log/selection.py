"""Selects batches and records. The header is tested first; a batch is decoded only if it may contain a match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from kdump.core.column_numbers import (
    HEADERS_START,
    KEY_START,
    OFFSET_DELTA,
    RECORD_END,
    RECORD_WIDTH,
    TIMESTAMP_DELTA,
    VALUE_START,
)
from kdump.core.record_columns import RecordColumns, keep_between, keep_keys, keep_rows
from kdump.format.number_range import Range
from kdump.format.numbers import LONG_MAX, LONG_MIN
from kdump.log.batch_records import records, rows_of
from kdump.log.expression.terms import MAYBE, NO, YES, Content, Expression, RecordFacts, Several, Term
from kdump.log.file_kinds import BATCHES, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX, FileKind
from kdump.log.legacy_records import read_wrapper
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch

OFFSET_KEYS = ("offset", "startOffset", "firstOffset", "lastOffset")
"""JSON keys under which an entry of an index, a snapshot or a checkpoint has its offsets."""

OPTIONS = {("key", "=="): "--key", ("key", "~"): "--key-regex", ("value", "~"): "--value-regex"}
"""Options of inspect that are short forms of comparisons of the bytes of a part of a record; --header is the other."""
PART_COLUMNS = {"key": KEY_START, "value": VALUE_START}
ANYWHERE = Target("", None, None, None)


class BatchFilter(Protocol):
    """A filter for batches that depends on information outside the batch."""

    def sees(self, batch: Batch) -> bool: ...


@dataclass(frozen=True)
class Selection:
    """Conditions on batches and records; all must match.

    `positions` are bytes of the file, `times` epoch ms. `expression`: of bytes of keys, values and headers only."""

    offsets: Range | None = None
    positions: Range | None = None
    times: Range | None = None
    producer_ids: frozenset[int] = frozenset()
    expression: Expression | None = None
    control: bool = False
    transactional: bool = False
    gate: BatchFilter | None = None
    """Called last, and only once for each batch that it rejects, because it counts these."""

    @property
    def looks_at_content(self) -> bool:
        """True if there are conditions on keys, values or headers."""
        return self.expression is not None

    @cached_property
    def keys(self) -> list[bytes]:
        """The keys, if the expression is that the key is one of them; else empty."""
        return [] if self.expression is None else _keys(self.expression.term)

    def conditions_on_records(self, kind: FileKind) -> list[str]:
        """Return the options of the conditions that nothing in a file of that kind can meet, because it has no batches
        and no records."""
        if kind in BATCHES:
            return []
        contents = [] if self.expression is None else self.expression.contents
        given = {
            **{OPTIONS.get((term.name, term.test.operator), "--header"): True for term in contents},
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
        return self == Selection(expression=self.expression)

    def batch(self, batch: Batch) -> int:
        """Return NO (no record matches), MAYBE (unknown until decoded) or YES (at least one matches), from the header
        alone. (Exception: a v0 or v1 wrapper that ends after the offset
        range is decoded, because its header does not contain its first offset.)"""
        if self.positions and not self.positions.meets(batch.position, batch.end - 1):
            return NO
        if self.producer_ids and batch.producerId not in self.producer_ids:
            return NO
        if (self.control and not batch.isControlBatch) or (self.transactional and not batch.isTransactional):
            return NO
        if self.offsets and not self._offsets_meet(batch, self.offsets):
            return NO
        answer = YES
        if self.times:
            answer = self._time(batch, self.times)
        if self.expression is not None and answer:
            answer = min(MAYBE, self.expression.batch(ANYWHERE, batch))
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
        return self.expression is None or self.expression.matches(ANYWHERE, record)

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
        if self.expression is not None and len(columns):
            keep_matching(self.expression, batch, columns)

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

    def records(self, batch: Batch | Reading[Batch]) -> Iterator[Record]:
        """Yield the matching records of a batch."""
        if not self.chooses_records:
            yield from records(batch)
            return
        for record in records(batch):
            if self.record(record):
                yield record

    def may_match(self, reading: Reading[Batch]) -> bool:
        """Return True if at least one record matches, or might match in bytes that are damaged or that no reader looks
        into."""
        answer = self.batch(reading.batch)
        if answer != MAYBE:
            return answer == YES
        if any(True for _ in self.records(reading)) or reading.problems or not reading.batch.crcValid:
            return True
        return self.looks_at_content and reading.ignored > 0


def _longs(limits: Range) -> tuple[int, int]:
    """Return both ends of the range, limited to 64 bits; (1, 0) if nothing is left of it."""
    first = LONG_MIN if limits.first is None else max(LONG_MIN, limits.first)
    last = LONG_MAX if limits.last is None else min(LONG_MAX, limits.last)
    return (first, last) if first <= last else (1, 0)


def _keys(term: Term) -> list[bytes]:
    """Return the keys of a term that is true for the records with one of them; else an empty list."""
    if isinstance(term, Several) and not term.is_all:
        keys = [_keys(each) for each in term.terms]
        return [key for each in keys for key in each] if all(keys) else []
    is_key = isinstance(term, Content) and (term.name, term.test.operator, term.test.is_raw) == ("key", "==", True)
    return [term.test.data] if is_key and isinstance(term, Content) else []


def keep_matching(expression: Expression, batch: DefaultRecordBatch, columns: RecordColumns) -> None:
    """Keep only the records in `columns` that match an expression of bytes; an object is created only for those that
    may."""
    others: list[Term] = []
    for term in expression.conjuncts:
        keys = _keys(term)
        if keys:
            keep_keys(columns, keys)
        elif isinstance(term, Content) and term.test.is_raw and term.name in PART_COLUMNS:
            start = PART_COLUMNS[term.name]
            keep_rows(columns, [i for i, data in _spans(columns, start, start + 1) if term.test.of_bytes(data)])
        elif isinstance(term, Content) and term.path:
            name = term.path[0].encode("utf-8", "surrogateescape")
            keep_rows(columns, [i for i, data in _spans(columns, HEADERS_START, -1) if name in data])
            others.append(term)
        else:
            others.append(term)
    for term in others:
        rows = enumerate(rows_of(batch, columns, 0, 0))
        keep_rows(columns, [i for i, record in rows if term.truth(RecordFacts(ANYWHERE, record)) == YES])


def _spans(columns: RecordColumns, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each record and its bytes from one column on, of the size in another (-1: up to its end),
    unless they are null."""
    block, data = columns.block, columns.data
    for number, row in enumerate(range(0, len(columns) * RECORD_WIDTH, RECORD_WIDTH)):
        first = block[row + start]
        count = block[row + size] if size >= 0 else block[row + RECORD_END] - first
        if count >= 0:
            yield number, bytes(data[first : first + count])
