"""Compares an existing index with the rebuilt one: what the judges (kafka/index_judge.py) call wrong, and in which ways
the rest differs legally.

An index that differs is not necessarily wrong: other releases, restarts and the log cleaner lead to entries that are
equally valid. REASONS lists these cases; entries that none of them explains are wrong, and reported one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from kdump.answer import NESTED, Doc, PathText
from kdump.check.finding import ERROR, WARNING
from kdump.kafka.index_builder import INTERVAL
from kdump.kafka.index_judge import Fault
from kdump.kafka.offset_index_judge import PER_APPEND, OffsetIndexJudge
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log import file_kinds
from kdump.log.entries import FIXED, Entry, EntryRun
from kdump.log.file_kinds import FileKind
from kdump.log.paths import Target
from kdump.log.region import Batch, Region

IDENTICAL, LEGAL, WRONG, MISSING = "identical", "legal", "wrong", "missing"
NOT_NEEDED, UNREAD = "notNeeded", "unread"
"""identical: byte for byte what was rebuilt. legal: differs in a way in which a broker may write it. wrong: contradicts
the segment. missing: does not exist, and a broker needs it. notNeeded: there is no .txnindex, and nothing was aborted.
unread: could not be read."""

REASONS = {
    "preallocated": "zeros after the last entry: a broker preallocates the index files of the active segment",
    "notClosed": "the entry that a broker adds when it rolls, closes or recovers the segment does not exist yet",
    "closedBefore": "an additional entry, added when the broker was stopped before it continued in this segment",
    "intervalAnew": "the index interval started again within the segment, as after a restart or a truncation",
    "withIndex": "its entries match those of the .index, which differ legally",
    "otherInterval": "entries are closer together than the index interval, which was smaller when they were written",
    "perAppend": "an entry has the last offset of several batches that were appended together (releases 2.0 to 4.0)",
    "firstOffset": "an entry has a batch's first offset (releases before 2.0)",
    "recordOffset": "an entry has the offset of the newest record instead of its batch's last offset (before 4.0)",
    "laterTransaction": "a last stable offset that includes a transaction appended together with the marker",
    "compacted": "the log cleaner has removed the batches of the entry, or the entry",
    "startUnknown": "the transactions open at the start of the segment are unknown: they started before it",
    "emptyTransaction": "an aborted transaction without data has an entry, from its marker on (releases before 2.8)",
    "fewerEntries": "entries are missing that a broker adds with those of the .index; lookups only start earlier",
    "leftOver": "entries left from before a truncation, which a broker that was writing no longer counts",
    "behindTheCut": "entries for batches at or after the damage at which recovery truncates",
}
"""Reasons why an index may differ from the rebuilt one and still be correct."""
MAX_WRONG_ENTRIES = 100
"""Maximum number of wrong entries of one file that are kept; the others are counted."""


SEARCHED_BY = {
    file_kinds.INDEX: ("position", "offset"),
    file_kinds.TIME_INDEX: ("timestamp", "offset"),
    file_kinds.TXN_INDEX: ("lastOffset",),
}
"""JSON names of values in ascending order, by which an entry is found among the rebuilt ones."""
MISSING_SEVERITIES = {file_kinds.INDEX: WARNING, file_kinds.TIME_INDEX: WARNING, file_kinds.TXN_INDEX: ERROR}


class WrongEntry(NamedTuple):
    """An entry that no broker would write, or one that is missing. `number` counts from 0, and `position` is its byte
    in the index; both are None for a missing entry. `found` and `expected`: values by the entry's JSON names; None if
    there is no entry, or should be none."""

    number: Annotated[int | None, Doc(name="entry")]
    position: Annotated[int | None, Doc()]
    found: Annotated[dict[str, Any] | None, Doc()]
    expected: Annotated[dict[str, Any] | None, Doc()]
    what: Annotated[str, Doc(name="reason")]
    severity: Annotated[str, Doc()]


class RebuiltEntries:
    """The entries of a rebuilt index: `data` as in the file, which is named after the offset `base`."""

    def __init__(self, kind: FileKind, data: bytes, base: int) -> None:
        self.kind, self.data, self.base = kind, data, base
        self.size = FIXED[kind].layout.size

    def expected(self, fault: Fault) -> dict[str, Any] | None:
        """Return the values of the entry that shares a value in SEARCHED_BY with a wrong one, otherwise those of the
        one with the same number; for a missing one, those of the entry that starts with what is expected. None if there
        is neither."""
        names = SEARCHED_BY[self.kind]
        values_of_wrong = fault.entry.values if isinstance(fault.entry, Entry) else {}
        if fault.entry is None:
            values_of_wrong = {names[0]: fault.expected if fault.offset is None else fault.offset}
        for name in names:
            if name in values_of_wrong:
                number = bisect_left(range(len(self)), values_of_wrong[name], key=lambda at: int(self.values(at)[name]))
                values = self.values(number) if number < len(self) else {}
                if values.get(name) == values_of_wrong[name]:
                    return values
        number = len(self) if fault.number is None or not values_of_wrong else fault.number
        return self.values(number) if number < len(self) else None

    def __len__(self) -> int:
        return len(self.data) // self.size

    def values(self, number: int) -> dict[str, Any]:
        """Return the values of an entry by their JSON names."""
        start = number * self.size
        part = self.data[start : start + self.size]
        return next(EntryRun(FIXED[self.kind], start, part, self.base).entries()).values


@dataclass
class Verdict:
    """One index file of one segment. `target` is None if it does not exist. Sizes are in bytes; `entries` excludes the
    zeros of preallocation; `reasons` has the names in REASONS as keys."""

    kind: Annotated[FileKind, Doc("index, timeindex, txnindex", of="name")]
    target: Target | None
    status: Annotated[str, Doc("identical, legal, wrong, missing, notNeeded, unread")] = IDENTICAL
    size: Annotated[int, Doc()] = 0
    entries: Annotated[int, Doc()] = 0
    rebuiltSize: Annotated[int, Doc()] = 0
    rebuiltEntries: Annotated[int, Doc()] = 0
    reasons: Annotated[dict[str, int], Doc("why it differs although it is legal: counts by name")] = field(
        default_factory=dict
    )
    severity: Annotated[
        str | None, Doc("error if a broker goes wrong with it, otherwise warning; null if it is right", after="status")
    ] = None
    wrong: Annotated[
        list[WrongEntry],
        Doc(
            NESTED
            + "; entry: number from 0, null for a missing entry; found and expected: an entry's values, null if there "
            "is none; severity: error or warning"
        ),
    ] = field(default_factory=list)
    wrongCount: Annotated[
        int, Doc(f"number of wrong entries; `wrong` has the first {MAX_WRONG_ENTRIES}", name="wrongEntries")
    ] = 0
    _faults: list[Fault] = field(default_factory=list)
    unread: str = ""
    """Why it could not be read; empty if it could."""
    written: Annotated[PathText | None, Doc("path of the rebuilt file; null if none was written")] = None

    @property
    def path(
        self,
    ) -> Annotated[PathText | None, Doc("path of the index; null if it is missing", name="file", after="kind")]:
        return None if self.target is None else self.target.path

    @property
    def is_valid(self) -> bool:
        """Whether a broker can use the existing file."""
        return self.status not in (WRONG, MISSING)

    def because(self, reason: str) -> None:
        assert reason in REASONS
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def note(self, fault: Fault) -> None:
        """Record a wrong entry. Its expected values are known only once the rebuilt index is complete (`settle`)."""
        self.wrongCount += 1
        if not fault.is_usable:
            self.severity = ERROR
        if len(self._faults) < MAX_WRONG_ENTRIES:
            self._faults.append(fault)

    def forgive(self, reason: str) -> None:
        """Drop the wrong entries for a reason that explains them all."""
        self.because(reason)
        self._faults, self.wrongCount, self.severity = [], 0, None

    def settle(self, rebuilt: RebuiltEntries, *, is_identical: bool, is_same: bool) -> None:
        """Set the status, once everything is known. `is_same`: whether it equals the rebuilt index, except for zeros at
        the end."""
        if self.path is None:
            needed = self.kind is not file_kinds.TXN_INDEX or self.rebuiltSize > 0
            self.status = MISSING if needed else NOT_NEEDED
            self.severity = MISSING_SEVERITIES[self.kind] if needed else None
            self.reasons, self.wrongCount = {}, 0
        elif self.unread:
            self.status = UNREAD
        elif is_identical:
            self.status, self.reasons, self.wrongCount, self.severity = IDENTICAL, {}, 0, None
        elif self.wrongCount:
            self.status, self.severity = WRONG, self.severity or WARNING
            self.wrong = [self._wrong(fault, rebuilt) for fault in self._faults]
        else:
            self.status = LEGAL
            if not is_same and self.reasons.keys() <= {"preallocated"}:
                self.because("withIndex")

    def _wrong(self, fault: Fault, rebuilt: RebuiltEntries) -> WrongEntry:
        entry = fault.entry
        position = None if entry is None else entry.position
        values = entry.values if isinstance(entry, Entry) else None
        severity = WARNING if fault.is_usable else ERROR
        return WrongEntry(fault.number, position, values, rebuilt.expected(fault), fault.message, severity)


class OffsetIndexComparer(OffsetIndexJudge):
    """Compares an .index. `interval`: index.interval.bytes. `here`: an entry has the last offset of the latest batch,
    which it indexes alone or together with batches before it."""

    here = False
    _position = 0  # of the latest batch
    _indexed_to = 0  # position of the last correct entry
    _is_late = False

    def __init__(
        self, runs: Iterator[EntryRun | Region], verdict: Verdict, *, interval: int = INTERVAL, **more: Any
    ) -> None:
        self.verdict, self.interval = verdict, interval
        super().__init__(runs, verdict.note, **more)

    def batch(self, batch: Batch) -> None:
        self.here, self._position = False, batch.position
        super().batch(batch)
        self._is_late = self._is_late or batch.position - self._indexed_to > self.interval

    def confirm(self, entry: Entry, last: int | None) -> None:
        super().confirm(entry, last)
        self.here = entry.values["offset"] == last
        if self._position - self._indexed_to <= self.interval:
            self.verdict.because("otherInterval")
        elif self._is_late:
            self.verdict.because("intervalAnew")
        self._indexed_to, self._is_late = self._position, False

    def unknown(self) -> None:
        self.verdict.because("behindTheCut")

    def written(self, how: str) -> None:
        self.verdict.because(how)
        self.here = how == PER_APPEND

    def finish(self, size: int | None) -> None:
        super().finish(size)
        if self._is_late:
            self.verdict.because("intervalAnew")
        if self.faults or self.verdict.reasons.keys() & {"perAppend", "firstOffset"}:
            self.verdict.reasons.pop("intervalAnew", None)  # batches appended together have at most one entry


class TimeIndexComparer(TimeIndexJudge):
    """Compares a .timeindex. The caller passes each batch to the OffsetIndexComparer first, then here, and calls `due`
    if the .index has an entry for it.

    A broker adds an entry with each entry of the .index, unless no larger timestamp was appended since the previous
    one, and when it rolls, closes or recovers the segment (LogSegment.append, onBecomeInactiveSegment, close)."""

    _expected = -1  # the largest timestamp that an entry should have gone with
    _with_index = True  # whether the last correct entry was added with an entry of the .index

    def __init__(self, runs: Iterator[EntryRun | Region], verdict: Verdict, **more: Any) -> None:
        self.verdict = verdict
        super().__init__(runs, verdict.note, **more)

    def due(self) -> None:
        """Check that there is an entry to go with that of the .index for the last batch."""
        self._with_index = True
        is_next = self.entry is not None and self.entry.values["timestamp"] == self.largest
        if self.largest > max(self.last_time, self._expected) and not is_next:
            self.verdict.because("fewerEntries")
            self._expected = self.largest

    def unknown(self) -> None:
        self.verdict.because("behindTheCut")

    def confirm(self, entry: Entry, last: int | None) -> None:
        super().confirm(entry, last)
        if entry.values["offset"] != last:
            self.verdict.because("recordOffset")
        self._closed_before()
        self._with_index = False

    def _closed_before(self) -> None:
        """Explain the last correct entry, if no .index entry goes with it and it is not the final one: the segment was
        closed there, and appended to later."""
        if not self._with_index:
            self.verdict.because("closedBefore")
            self._with_index = True

    def finish(self, size: int | None) -> None:
        super().finish(size)
        if self.largest > self.last_time:
            self._closed_before()
            if self.may_be_open and self.verdict.path is not None:
                self.verdict.because("notClosed")
