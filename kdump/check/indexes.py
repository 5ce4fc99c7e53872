"""Family files, indexes: compares .index and .timeindex with the batches of their segment. Entries and batches are read
in parallel, so that neither has to be kept in memory.

Invariant of an .index in all releases: the position is a batch boundary, that batch's base offset is at most the
entry's offset, and every earlier batch ends below that offset. Source: OffsetIndex, TimeIndex, LogSegment.append.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from kdump.check.catalogue import ERROR, INFO, WARNING
from kdump.check.finding import Finding, found
from kdump.check.rule import NONE, BatchContext, PartitionContext, Rule, SegmentContext
from kdump.format.count_text import count_text
from kdump.format.header_columns import BASE, LAST, MAX_TIMESTAMP, START, HeaderColumns, largest
from kdump.log.entries import Entry, Item
from kdump.log.file_kinds import INDEX, TIME_INDEX, FileKind
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.paths import Target
from kdump.log.region import PADDING, TORN, Region

PADDED = "the zeros are preallocated; the broker truncates them when it closes the file"
Reader = Callable[[Target, FileKind], Iterator[Item]]


class IndexRule(Rule):
    """Base class of the rules for both indexes. Findings with the same code in one file are reported once, with the
    number of further ones."""

    kind: FileKind
    prefix: str
    padded = ERROR
    padding_does: str | None = None
    """Severity (`padded`) and consequence of zeros that count as entries; None: as in the catalogue."""

    def __init__(self, read: Reader, known: PartitionContext) -> None:
        self.read = read
        self.known = known
        self.at: Target | None = None
        self.items: Iterator[Item] = iter(())
        self.entry: Entry | None = None
        self.before: Entry | None = None
        self.told: dict[str, tuple[Finding, int]] = {}

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.at = part.segment.beside.get(self.kind)
        self.before = self.entry = None
        self.told = {}
        self.reset()
        if self.at is not None:
            self.items = self.read(self.at, self.kind)
            self.entry = self._next(part)
        return NONE

    def reset(self) -> None:
        """Reset the state at the start of a segment."""

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop  # findings are reported at the end of the segment

    def falls(self, before: Entry, entry: Entry) -> bool:
        raise NotImplementedError

    def said(self, entry: Entry) -> str:
        """Return an entry's names and values as text."""
        return " ".join(f"{name} {value}" for name, value in entry.values.items())

    def note(self, code: str, entry: Entry | Region, message: str, **more: object) -> None:
        kept = self.told.get(code)
        if kept is not None:
            self.told[code] = (kept[0], kept[1] + 1)
            return
        assert self.at is not None
        finding = found(code, self.at, message, position=entry.position, size=entry.size, **more)  # type: ignore[arg-type]
        self.told[code] = (finding, 1)

    def _next(self, part: SegmentContext) -> Entry | None:
        """Return the next entry in ascending order, None at the end. Notes entries that are not in order, and bytes
        that are not an entry."""
        for item in self.items:
            if isinstance(item, Entry):
                if self.before is not None and self.falls(self.before, item):
                    message = f"{self.said(item)} follows {self.said(self.before)}"
                    self.note(f"{self.prefix}-not-sorted", item, message)
                    continue
                self.before = item
                return item
            if isinstance(item, Region):
                self._region(part, item)
        return None

    def advance(self, part: SegmentContext) -> None:
        """Move to the next entry, to check an index without its segment."""
        self.entry = self._next(part)

    def _region(self, part: SegmentContext, region: Region) -> None:
        if region.kind == TORN:
            self.note(f"{self.prefix}-size-invalid", region, region.reason)
        elif region.kind == PADDING and "before another" in region.reason:
            self.note(f"{self.prefix}-not-sorted", region, region.reason)
        elif region.kind == PADDING:
            known = self.known
            legal = (
                (part.last and part.recovers is not False) or known.topic == METADATA_TOPIC or known.state == "delete"
            )
            severity = INFO if legal else self.padded
            consequence = PADDED if legal else self.padding_does
            self.note("index-padding", region, region.reason, severity=severity, consequence=consequence)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        self.rest(part)
        for finding, count in self.told.values():
            more = f"; {count_text(count - 1, 'more such entry', 'more such entries')}" if count > 1 else ""
            yield finding._replace(message=finding.message + more)
        self.told = {}

    def rest(self, part: SegmentContext) -> None:
        """Check the entries that are left at the end of the segment."""


class OffsetIndexRule(IndexRule):
    """Checks .index files."""

    kind, prefix = INDEX, "index"
    padded, padding_does = WARNING, "reads that use it start at the beginning of the segment, which is slow"

    def reset(self) -> None:
        self.ended = -1  # the highest offset of the batches so far
        self.damage_end = -1

    def falls(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["offset"] <= before.values["offset"] or entry.values["position"] <= before.values["position"]
        )

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.damage_end = region.end
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        entry = self.entry
        if entry is not None and entry.values["position"] <= batch.position:
            self._compare(seen)
        if seen.sound:
            self.ended = max(self.ended, batch.lastOffset)
        else:
            self.damage_end = batch.end
        return NONE

    def take(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        starts, lasts = heads.column(START), heads.column(LAST)
        end = heads.of(stop - 1, START) + heads.shift
        while self.entry is not None and self.entry.values["position"] <= end:
            position = self.entry.values["position"] - heads.shift
            row = bisect_left(starts, position, first, stop)
            if starts[row] != position:
                self._nowhere(self.entry)
            else:
                ended = max(self.ended, lasts[row - 1]) if row > first else self.ended
                self._reached(self.entry, heads.of(row, BASE), lasts[row], ended)
            self.entry = self._next(part)
        self.ended = max(self.ended, lasts[stop - 1])

    def _compare(self, seen: BatchContext) -> None:
        batch = seen.batch
        while self.entry is not None and self.entry.values["position"] <= batch.position:
            if self.entry.values["position"] < batch.position:
                self._nowhere(self.entry)
            elif seen.sound:
                self._reached(self.entry, batch.baseOffset, batch.lastOffset, self.ended)
            self.entry = self._next(seen.part)

    def _nowhere(self, entry: Entry) -> None:
        """Note an entry whose position is not a batch boundary, unless it is before the end of a damaged region."""
        offset, position = entry.values["offset"], entry.values["position"]
        if not 0 <= position < self.damage_end:
            self.note("index-mismatch", entry, f"offset {offset} points to byte {position}, where no batch starts")

    def _reached(self, entry: Entry, base: int | None, last: int, ended: int) -> None:
        """Check an entry whose position is the start of a batch with the offsets base..last; `ended`: the highest
        offset of the batches before it."""
        offset, position = entry.values["offset"], entry.values["position"]
        if base is not None and base > offset:
            message = f"offset {offset} points to byte {position}, where the batch starts at offset {base}"
            self.note("index-mismatch", entry, message, offset=offset, expected=base, actual=offset)
        elif ended >= offset:
            message = f"offset {offset} points to byte {position}, but earlier batches reach offset {ended}"
            self.note("index-mismatch", entry, message, offset=offset, expected=last, actual=offset)

    def rest(self, part: SegmentContext) -> None:
        while self.entry is not None:
            entry = self.entry
            offset, position = entry.values["offset"], entry.values["position"]
            if part.size is not None and position >= part.size:
                message = f"offset {offset} points to byte {position}, but the segment has only {part.size} bytes"
                self.note("index-beyond-log", entry, message, offset=offset, expected=part.size, actual=position)
            else:
                self._nowhere(entry)
            self.entry = self._next(part)


class TimeIndexRule(IndexRule):
    """Checks .timeindex files."""

    kind, prefix = TIME_INDEX, "time-index"

    def reset(self) -> None:
        self.largest = -1
        self.damaged = False

    def falls(self, before: Entry, entry: Entry) -> bool:
        return bool(
            entry.values["offset"] < before.values["offset"] or entry.values["timestamp"] < before.values["timestamp"]
        )

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.damaged = True
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        if not seen.sound:
            self.damaged = True
            return NONE
        timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        while self.entry is not None and self.entry.values["offset"] <= batch.lastOffset:
            self._compare(self.entry, seen.batch.baseOffset, timestamp, self.largest)
            self.entry = self._next(seen.part)
        self.largest = max(self.largest, timestamp)
        return NONE

    def take(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        lasts = heads.column(LAST)
        row = first
        while self.entry is not None and self.entry.values["offset"] <= lasts[stop - 1]:
            at = bisect_left(lasts, self.entry.values["offset"], row, stop)
            self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, at))
            row = at
            self._compare(self.entry, heads.of(row, BASE), heads.of(row, MAX_TIMESTAMP), self.largest)
            self.entry = self._next(part)
        self.largest = max(self.largest, largest(heads, MAX_TIMESTAMP, row, stop))

    def _compare(self, entry: Entry, base: int | None, timestamp: int, newest: int) -> None:
        """Check an entry against the batch that should contain its offset: `base` and `timestamp` are that batch's
        baseOffset and maxTimestamp, `newest` is the largest maxTimestamp of the batches before it."""
        if self.damaged:
            return
        offset, said = entry.values["offset"], entry.values["timestamp"]
        if base is not None and offset < base:
            message = f"timestamp {said} at offset {offset}, which no batch contains"
            self.note("time-index-mismatch", entry, message, offset=offset)
        elif said != timestamp:
            message = f"timestamp {said} at offset {offset}, but its batch has maxTimestamp {timestamp}"
            self.note("time-index-mismatch", entry, message, offset=offset, expected=timestamp, actual=said)
        elif newest > said:
            message = f"timestamp {said} at offset {offset}, but an earlier batch has maxTimestamp {newest}"
            self.note("time-index-mismatch", entry, message, offset=offset, expected=newest, actual=said)

    def rest(self, part: SegmentContext) -> None:
        while self.entry is not None:
            entry = self.entry
            if not self.damaged:
                message = (
                    f"timestamp {entry.values['timestamp']} at offset {entry.values['offset']}, which is after the "
                    "segment's last batch"
                )
                self.note("time-index-mismatch", entry, message, offset=entry.values["offset"])
            self.entry = self._next(part)
