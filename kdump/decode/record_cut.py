"""Leaves records of a partition out: those before a start, those after an end, and those that match an expression.

An end (--until) that is an offset is the last one that is kept; a time cuts the log before the first record with that
timestamp or a later one, in order of offsets, as a lookup by timestamp finds it (ListOffsets). Timestamps of control
records do not count: they are those of coordinators, not of producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kdump.decode.record_decoder import RecordDecoder
from kdump.kafka.memory_records import FilterResult, filter_to
from kdump.log.batch_records import records
from kdump.log.expression.terms import MAYBE, NO, NO_DECODERS, YES, Decoders, Expression, RecordFacts
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch

FROM, UNTIL, WITHOUT = CAUSES = ("from", "until", "without")
BEFORE, WITHIN, AFTER = range(3)

MAX_REASONS = 10
"""Maximum number of reasons that are kept why it could not be decided whether a record matches."""


class CutPoint(NamedTuple):
    """An offset, or a time in epoch ms; the other is None."""

    offset: int | None = None
    time: int | None = None


@dataclass(frozen=True)
class CutRequest:
    """What is kept: from `start` on, up to `end`, without the records that match one of the expressions `without`, or
    have one of `keys`. The expressions must not ask which transactions were aborted."""

    start: CutPoint | None = None
    end: CutPoint | None = None
    without: tuple[Expression, ...] = ()
    keys: frozenset[bytes] = frozenset()
    decoder: RecordDecoder | None = None

    @property
    def has_offset(self) -> bool:
        """Whether it names an offset, which means something in one partition only."""
        return any(point is not None and point.offset is not None for point in (self.start, self.end))


class ExcludedRun(NamedTuple):
    """Records first..last, one after the other, that are left out for the same reason, one of CAUSES."""

    first: int
    last: int
    records: int
    cause: str


class CutBatch(NamedTuple):
    """What is left of a batch. `place`: BEFORE the start, WITHIN, or AFTER the end: then all of it is left out, and so
    is what is around it. `result`: None for these two."""

    place: int
    result: FilterResult | None
    excluded: tuple[ExcludedRun, ...] = ()


class RecordCut:
    """The cut of one partition; apply it to the valid batches in order of offsets. `begins`: the first offset that is
    kept, `ends`: the first that is not; None while unknown, because no record with that time has been read."""

    def __init__(self, request: CutRequest) -> None:
        start, end = request.start, request.end
        self._from_time = start.time if start is not None else None
        self._until_time = end.time if end is not None else None
        self.begins: int | None = 0 if start is None else start.offset
        self.ends: int | None = end.offset + 1 if end is not None and end.offset is not None else None
        self._request = request
        self._decoders: Decoders = request.decoder or NO_DECODERS
        self.excluded: Counter[str] = Counter()
        """Records that `kept` has left out, by cause."""
        self.undecided = 0
        """Records that are kept, although it is not known whether they match: nothing decodes them."""
        self.reasons: dict[str, None] = {}
        """Why it is not known, the first ones."""
        self.late = 0
        """Records after the end with timestamps before --until: they are out of order."""

    def is_outside(self, first: int, last: int) -> str:
        """Return FROM or UNTIL if the offsets first..last are known to be before the start or after the end; else an
        empty string."""
        if self.begins is None or last < self.begins:
            return FROM
        return UNTIL if self.ends is not None and first >= self.ends else ""

    def apply(self, target: Target, batch: Batch, base: int, last: int) -> CutBatch:
        """Return what is left of the batch with the offsets base..last, which can be read twice."""
        reading = Reading(batch)
        outside = self._locate(reading, base, last)
        if outside:
            self._count_late(reading, outside)
            runs = (ExcludedRun(base, last, batch.possible_records, outside),)
            return CutBatch(BEFORE if outside is FROM else AFTER, None, runs)
        if self._is_inside(base, last) and not self._may_match(target, batch):
            return CutBatch(WITHIN, FilterResult(None, last, batch.possible_records, 0))
        runs_of: list[ExcludedRun] = []
        is_run = False

        def retains(record: Record) -> bool:
            nonlocal is_run
            offset, cause = record.offset or 0, self._cause(target, record)
            if cause and is_run and runs_of[-1].cause == cause:
                run = runs_of[-1]
                runs_of[-1] = run._replace(last=offset, records=run.records + 1)
            elif cause:
                runs_of.append(ExcludedRun(offset, offset, 1, cause))
            is_run = bool(cause)
            return not cause

        result = filter_to(batch, retains)
        return CutBatch(WITHIN, result, tuple(runs_of))

    def keeps_all(self, target: Target, reading: Reading[Batch], base: int, last: int) -> bool:
        """Return True if no record of the batch with the offsets base..last is left out."""
        is_outside = self._locate(reading, base, last)
        return not is_outside and self._is_inside(base, last) and not self._may_match(target, reading.batch)

    def kept(self, target: Target, reading: Reading[Batch], base: int, last: int) -> Iterator[Record]:
        """Yield the records of the batch that are kept, and count the others in `excluded`."""
        if self.keeps_all(target, reading, base, last):
            yield from records(reading)
            return
        outside = self._locate(reading, base, last)
        if outside:
            self._count_late(reading, outside)
            self.excluded[outside] += reading.batch.possible_records
            return
        for record in records(reading):
            cause = self._cause(target, record)
            if cause:
                self.excluded[cause] += 1
            else:
                yield record

    def _count_late(self, reading: Reading[Batch], outside: str) -> None:
        until = self._until_time
        if outside is UNTIL and until is not None and not reading.batch.isControlBatch:
            times = (record.timestamp for record in records(reading, values=False))
            self.late += sum(time is not None and time < until for time in times)

    def _locate(self, reading: Reading[Batch], base: int, last: int) -> str:
        """Look for the start and the end in the batch; return FROM or UNTIL if all of it is outside."""
        if self.begins is None:
            self.begins = _first_at(reading, self._from_time, base)
        if self.ends is None and self.begins is not None and last >= self.begins:
            self.ends = _first_at(reading, self._until_time, self.begins)
        return self.is_outside(base, last)

    def _is_inside(self, base: int, last: int) -> bool:
        """Return True if no record of a batch is left out for its offset."""
        assert self.begins is not None
        return base >= self.begins and (self.ends is None or last < self.ends)

    def _may_match(self, target: Target, batch: Batch) -> bool:
        if batch.isControlBatch:
            return False
        without = self._request.without
        return bool(self._request.keys) or any(each.batch(target, batch, self._decoders) != NO for each in without)

    def _cause(self, target: Target, record: Record) -> str:
        """Return why a record is left out; an empty string if it is kept."""
        offset, request = record.offset or 0, self._request
        outside = self.is_outside(offset, offset)
        if outside is UNTIL and self._until_time is not None and record.timestamp is not None:
            self.late += record.timestamp < self._until_time and not record.batch.isControlBatch
        if outside or record.batch.isControlBatch:
            return outside
        if request.keys and record.key in request.keys:
            return WITHOUT
        if not request.without:
            return ""
        facts = RecordFacts(target, record, self._decoders)
        truth = max(each.truth(facts) for each in request.without)
        if truth == MAYBE:
            self.undecided += 1
            for part, reason in facts.undecoded.items():
                if len(self.reasons) < MAX_REASONS:
                    self.reasons[f"{part}: {reason}"] = None
        return WITHOUT if truth == YES else ""


def _first_at(reading: Reading[Batch], time: int | None, first: int) -> int | None:
    """Return the offset, not below `first`, of the first data record with this timestamp or a later one; None if there
    is none."""
    batch, newest = reading.batch, reading.batch.maxTimestamp
    if time is None or batch.isControlBatch or newest is None or newest < time:
        return None
    for record in records(reading, values=False):
        if record.timestamp is not None and record.timestamp >= time and (record.offset or 0) >= first:
            return record.offset
    return None
