"""Family files, indexes: compares .index files with the batches of their segment. Entries and batches are read in
parallel, so that neither has to be kept in memory.

Invariant of an .index in all releases: the position is a batch boundary, that batch's base offset is at most the
entry's offset, and every earlier batch ends below that offset. Source: OffsetIndex, LogSegment.append.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import NONE, BatchContext, Rule, SegmentContext
from kdump.core.column_numbers import BASE_OFFSET, BATCH_START, LAST_OFFSET
from kdump.core.header_columns import HeaderColumns
from kdump.core.index_entries import matching_positions
from kdump.format.count_text import count_text
from kdump.log.entries import Entry, EntryRun
from kdump.log.file_kinds import INDEX, FileKind
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import identity
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.region import PADDING, TORN, Region, ZeroEntries
from kdump.log.segment_limits import MAX_SEGMENT_SIZE

# LogLoader.recoverSegment truncates the .log at damage (docs/remedy-trials.json: damage-index-removed) and deletes
# every producer snapshot above it. The snapshot that it takes is removed as stray if the next segment does not start
# there, and a clean startup without snapshots skips the log (gap-index-removed, gap-both-removed).
REBUILD = (
    "Stop the broker and replace the segment's indexes with the files that kdump reindex writes. Or, if kdump verify "
    "finds no damage in the .log files, delete the .index of this segment and of the log's last segment: at startup "
    "the broker recovers both and rebuilds their .index, .timeindex and .txnindex. In a damaged .log, recovery would "
    "truncate the segment at the damage; without the last segment's recovery, an offset gap after this segment would "
    "make the broker lose its producer state, including open transactions"
)
LEFT_OVER = (
    "none, if they are left from before a truncation of the log: the broker that wrote them knows that they are no "
    "entries any more (AbstractIndex.truncateToEntries), overwrites them, and a recovery rebuilds the index"
)
LEFT_OVER_INFO = "info in a preallocated index if most entries from there on are wrong, as a truncation leaves them"
UNCHECKED = "reads that use this index fail or return wrong results; a clean startup does not check it"
IGNORED = "the broker ignores the extra bytes; whatever wrote them may have caused other damage"
PUT_BACK = (
    "Before the broker starts, put the indexes in place that kdump reindex writes: then it recovers nothing. Otherwise "
    "back the .log up first if kdump verify finds damage in it"
)
INDEX_SIZE_INVALID = Code(
    code="index-size-invalid",
    family="indexes",
    severity=WARNING,
    meaning="The size of an .index is not a multiple of 8.",
    consequence=IGNORED,
    fix=REBUILD,
    source="AbstractIndex.createMappedBuffer, OffsetIndex.sanityCheck",
)

INDEX_NOT_SORTED = Code(
    code="index-not-sorted",
    family="indexes",
    severity=ERROR,
    meaning="The entries of an .index are not in ascending order.",
    consequence=UNCHECKED,
    fix=REBUILD,
    source="OffsetIndex.sanityCheck, OffsetIndex.append",
    unless=LEFT_OVER_INFO,
)

INDEX_MISMATCH = Code(
    code="index-mismatch",
    family="indexes",
    severity=ERROR,
    meaning=(
        "An .index entry's position is not the start of a batch, the batch there starts above the entry's offset, or "
        "an earlier batch reaches that offset."
    ),
    consequence=UNCHECKED,
    fix=REBUILD,
    source="OffsetIndex.lookup, LogSegment.translateOffset, FileRecords.searchForOffsetFromPosition",
    unless=LEFT_OVER_INFO,
)

INDEX_BEYOND_LOG = Code(
    code="index-beyond-log",
    family="indexes",
    severity=ERROR,
    meaning="An .index entry points past the end of its .log.",
    consequence=(
        "if it is the last entry of the last segment, the broker computes the log end offset from it and may assign "
        "offsets a second time; " + UNCHECKED
    ),
    fix=REBUILD,
    source="OffsetIndex.lookup, LogSegment.translateOffset, LogSegment.readNextOffset",
    unless=LEFT_OVER_INFO,
)

INDEX_PADDING = Code(
    code="index-padding",
    family="indexes",
    severity=ERROR,
    meaning="An index ends with zeros, which count as entries.",
    consequence=(
        "lookups by timestamp find nothing in this segment, and time-based retention uses timestamp 0: with "
        "retention.ms set and cleanup.policy=delete, the broker deletes the segment soon after startup"
    ),
    fix=f"Before the broker starts: {REBUILD[0].lower()}{REBUILD[1:]}",
    source="AbstractIndex.trimToValidSize, TimeIndex.lastEntry, LogSegment.largestTimestamp",
    unless=(
        "warning in an .index: reads that use it start at the beginning of the segment; info, as preallocation, in the "
        "last segment after an unclean shutdown, in the metadata log, and in directories that are being deleted"
    ),
)

INDEX_MISSING = Code(
    code="index-missing",
    family="indexes",
    severity=WARNING,
    meaning="A segment has no .index.",
    consequence=(
        "at startup the broker recovers the segment and rebuilds its indexes, which takes time and truncates the "
        "segment at any damage in the .log; if offsets are missing after the segment, the broker also loses its "
        "producer state, including open transactions"
    ),
    fix=PUT_BACK,
    source="LogSegment.sanityCheck, LogLoader.loadSegmentFiles",
)

INDEX_ORPHAN = Code(
    code="index-orphan",
    family="indexes",
    severity=WARNING,
    meaning="An index has no segment.",
    consequence="the broker deletes it at startup",
    fix="If the .log was lost, look for it on another replica or in a backup; otherwise do nothing",
    source="LogLoader.loadSegmentFiles",
)


UNOPENED = "the broker does not rebuild it: it exits, because the segment is too large to open (segment-too-large)"
PREALLOCATED = "none: the node has preallocated this space for further entries, and rebuilds the index at startup"
ReadRuns = Callable[[Target, FileKind], Iterator[EntryRun | Region]]


def _packed(numbers: list[int]) -> Sequence[int]:
    """Return the numbers as an array; as they are if one of them, from a name of 20 digits, does not fit."""
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


class IndexRule(Rule):
    """Base class of the rules for both indexes. Findings with the same code in one file are reported once, with the
    number of further ones."""

    kind: FileKind
    size_invalid: Code
    not_sorted: Code
    padding_severity = ERROR
    padding_consequence: str | None = None
    """Severity (`padding_severity`) and consequence of zeros that count as entries; None: as in the catalogue."""

    def __init__(self, read: ReadRuns, known: PartitionContext) -> None:
        self.read = read
        self.known = known
        self.target: Target | None = None
        self.runs: Iterator[EntryRun | Region] = iter(())
        self.run: EntryRun | None = None
        self.numbers: Sequence[int] = ()
        """The values of the entries of `run`, one entry after the other."""
        self.number = 0
        """Number of the entry of `run` that is next."""
        self.entry: Entry | None = None
        self.before: Entry | None = None
        self.reported: dict[str, tuple[Finding, int]] = {}
        self.confirmed = 0
        """Number of entries after the first wrong one that the segment confirms."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.target = part.segment.indexes.get(self.kind)
        self.before = self.entry = None
        self.run, self.number, self.numbers = None, 0, ()
        self.reported = {}
        self.confirmed = 0
        self.reset()
        if self.target is not None:
            self.runs = self.read(self.target, self.kind)
            self.entry = self._next(part)
        return NONE

    def reset(self) -> None:
        """Reset the state at the start of a segment."""

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop  # findings are reported at the end of the segment

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
        raise NotImplementedError

    def entry_text(self, entry: Entry) -> str:
        """Return an entry's names and values as text."""
        return " ".join(f"{name} {value}" for name, value in entry.values.items())

    def note(self, code: Code, entry: Entry | Region, *, message: str, **more: Any) -> None:
        kept = self.reported.get(code.code)
        if kept is not None:
            self.reported[code.code] = (kept[0], kept[1] + 1)
            return
        assert self.target is not None
        finding = code.finding(self.target, message=message, position=entry.position, size=entry.size, **more)
        self.reported[code.code] = (finding, 1)

    def _next(self, part: SegmentContext) -> Entry | None:
        """Return the next entry in ascending order, None at the end. Notes entries that are not in order, and bytes
        that are not an entry."""
        while True:
            while self.run is not None and self.number < self.run.rows:
                entry = self.run.entry(self.number, self.numbers)
                self.number += 1
                if self.before is None or not self.is_not_above(self.before, entry):
                    self.before = entry
                    return entry
                message = f"{self.entry_text(entry)} follows {self.entry_text(self.before)}"
                self.note(self.not_sorted, entry, message=message)
            item = next(self.runs, None)
            if isinstance(item, Region):
                self._region(part, item)
            elif item is None:
                self.run, self.number, self.numbers = None, 0, ()
                return None
            else:
                self.run, self.number, self.numbers = item, 0, _packed(item.numbers())

    def skip(self, count: int) -> None:
        """Pass over the next `count` entries of the run, which are in ascending order."""
        if count and self.run is not None:
            self.number += count
            self.before = self.run.entry(self.number - 1, self.numbers)
            self.confirm(count)

    def confirm(self, count: int = 1) -> None:
        """Count entries that the segment confirms."""
        self.confirmed += count if self.reported else 0

    def advance(self, part: SegmentContext) -> None:
        """Move to the next entry, to check an index without its segment."""
        self.entry = self._next(part)

    def _region(self, part: SegmentContext, region: Region) -> None:
        if region.kind == TORN:
            self.note(self.size_invalid, region, message=region.reason)
        elif isinstance(region, ZeroEntries):
            self.note(self.not_sorted, region, message=region.reason)
        elif region.kind == PADDING:
            known = self.known
            legal = (
                (part.last and part.recovers is not False) or known.topic == METADATA_TOPIC or known.state == "delete"
            )
            severity = INFO if legal else self.padding_severity
            consequence = PREALLOCATED if legal else self.padding_consequence
            self.note(INDEX_PADDING, region, message=region.reason, severity=severity, consequence=consequence)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        self.rest(part)
        others = (INDEX_PADDING.code, self.size_invalid.code)
        is_open = part.last and part.recovers is not False and INDEX_PADDING.code in self.reported
        # After a truncation, old entries match only by chance: most of the rest is wrong.
        is_rest_wrong = self.confirmed < sum(n for code, (_, n) in self.reported.items() if code not in others)
        for finding, count in self.reported.values():
            if is_open and is_rest_wrong and finding.code not in others:
                finding = finding._replace(severity=INFO, consequence=LEFT_OVER)
            more = f"; {count_text(count - 1, 'more such entry', 'more such entries')}" if count > 1 else ""
            yield finding._replace(message=finding.message + more)
        self.reported = {}

    def rest(self, part: SegmentContext) -> None:
        """Check the entries that are left at the end of the segment."""


class OffsetIndexRule(IndexRule):
    """Checks .index files."""

    kind, size_invalid, not_sorted = INDEX, INDEX_SIZE_INVALID, INDEX_NOT_SORTED
    padding_severity, padding_consequence = (
        WARNING,
        "reads that use it start at the beginning of the segment, which is slow",
    )

    def reset(self) -> None:
        self.ended = -1  # the highest offset of the batches so far
        self.damage_end = -1

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
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
        if seen.is_valid:
            self.ended = max(self.ended, batch.lastOffset)
        else:
            self.damage_end = batch.end
        return NONE

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        starts, lasts = heads.column(BATCH_START), heads.column(LAST_OFFSET)
        end = heads.of(stop - 1, BATCH_START) + heads.shift
        while self.entry is not None and self.entry.values["position"] <= end:
            position = self.entry.values["position"] - heads.shift
            row = bisect_left(starts, position, first, stop)
            if starts[row] != position:
                self._no_batch_there(self.entry)
            else:
                ended = max(self.ended, lasts[row - 1]) if row > first else self.ended
                self._check_offsets(self.entry, heads.of(row, BASE_OFFSET), lasts[row], ended)
                if isinstance(self.numbers, array):
                    self.skip(matching_positions(heads, row, stop, ended, self.numbers, self.number - 1))
            self.entry = self._next(part)
        self.ended = max(self.ended, lasts[stop - 1])

    def _compare(self, seen: BatchContext) -> None:
        batch = seen.batch
        while self.entry is not None and self.entry.values["position"] <= batch.position:
            if self.entry.values["position"] < batch.position:
                self._no_batch_there(self.entry)
            elif seen.is_valid:
                self._check_offsets(self.entry, batch.baseOffset, batch.lastOffset, self.ended)
            self.entry = self._next(seen.part)

    def _no_batch_there(self, entry: Entry) -> None:
        """Note an entry whose position is not a batch boundary, unless it is before the end of a damaged region."""
        offset, position = entry.values["offset"], entry.values["position"]
        if not 0 <= position < self.damage_end:
            self.note(
                INDEX_MISMATCH, entry, message=f"offset {offset} points to byte {position}, where no batch starts"
            )

    def _check_offsets(self, entry: Entry, base: int | None, last: int, ended: int) -> None:
        """Check an entry whose position is the start of a batch with the offsets base..last; `ended`: the highest
        offset of the batches before it."""
        offset, position = entry.values["offset"], entry.values["position"]
        if base is not None and base > offset:
            message = f"offset {offset} points to byte {position}, where the batch starts at offset {base}"
            self.note(INDEX_MISMATCH, entry, message=message, offset=offset, expected=base, actual=offset)
        elif ended >= offset:
            message = f"offset {offset} points to byte {position}, but earlier batches reach offset {ended}"
            self.note(INDEX_MISMATCH, entry, message=message, offset=offset, expected=last, actual=offset)
        else:
            self.confirm()

    def rest(self, part: SegmentContext) -> None:
        while self.entry is not None:
            entry = self.entry
            offset, position = entry.values["offset"], entry.values["position"]
            if part.size is not None and position >= part.size:
                message = f"offset {offset} points to byte {position}, but the segment has only {part.size} bytes"
                self.note(INDEX_BEYOND_LOG, entry, message=message, offset=offset, expected=part.size, actual=position)
            else:
                self._no_batch_there(entry)
            self.entry = self._next(part)


def missing_indexes(partition: PartitionDirectory) -> Iterator[Finding]:
    """Yield findings for segments without an .index, and for indexes without a segment."""
    for segment in partition.segments:
        if segment.log is not None and INDEX not in segment.indexes:
            now = identity(segment.log.path)
            yield INDEX_MISSING.finding(
                segment.log,
                message="the segment has no .index",
                offset=segment.offset,
                consequence=UNOPENED if now is not None and now.size > MAX_SEGMENT_SIZE else None,
            )
    for target in partition.orphans:
        yield INDEX_ORPHAN.finding(target, message="there is no .log of this name", offset=target.name_offset)
