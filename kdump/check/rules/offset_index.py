"""Family files, indexes: findings about .index files. Whether one is right is decided in
kafka/offset_index_judge.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.core.header_columns import HeaderColumns
from kdump.format.count_text import count_text
from kdump.kafka.index_judge import BEYOND, MISMATCH, ORDER, SIZE, ZEROS, Fault, IndexJudge
from kdump.kafka.offset_index_judge import OffsetIndexJudge
from kdump.log.entries import EntryRun
from kdump.log.file_kinds import INDEX, TIME_INDEX, FileKind
from kdump.log.live_files import identity
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.region import Region
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
UNWRITTEN_WARNING = "warning if reads that use it are right, but no release writes such an entry"
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
        "An .index entry's position is not the start of a batch, an earlier batch reaches its offset, or no batch from "
        "there on ends at it."
    ),
    consequence=UNCHECKED,
    fix=REBUILD,
    source="OffsetIndex.lookup, LogSegment.translateOffset, FileRecords.searchForOffsetFromPosition",
    unless=f"{UNWRITTEN_WARNING}; {LEFT_OVER_INFO}",
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
        "warning in an .index: reads that use it start at the beginning of the segment; warning in an empty last "
        "segment, which is never deleted; info, as preallocation, in the last segment after an unclean shutdown, in "
        "the metadata log, and in directories that are being deleted"
    ),
)

INDEX_MISSING = Code(
    code="index-missing",
    family="indexes",
    severity=WARNING,
    meaning="A segment has no .index, or no .timeindex.",
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
    source="LogLoader.loadSegmentFiles, LogSegment.changeFileSuffixes",
    unless="error if it is not empty and there is no .log.deleted or .log.swap of this name: the records are gone",
)


UNOPENED = "the broker does not rebuild it: it exits, because the segment is too large to open (segment-too-large)"
NO_TIME_INDEX = (
    "the broker creates an empty one: lookups by timestamp read the segment from its start, and time-based retention "
    "uses the time at which it was modified"
)
NO_LAST_ENTRY = "time-based retention uses the time at which the segment was modified; lookups by timestamp are slow"
PREALLOCATED = "none: the node has preallocated this space for further entries, and rebuilds the index at startup"
UNWRITTEN = (
    "reads that use this entry are right, but no broker writes it; whatever wrote it may have caused other damage"
)
LOST = (
    "the records of this segment are gone: no broker deletes a .log and leaves its indexes. The broker deletes the "
    "indexes at startup; consumers skip these offsets, or auto.offset.reset decides where they continue"
)
EMPTY = "none, as nothing was written to the segment: a broker never deletes an empty last segment"
SLOW = "reads that use it start at the beginning of the segment, which is slow"
ReadRuns = Callable[[Target, FileKind], Iterator[EntryRun | Region]]


def fault_finding(code: Code, target: Target, fault: Fault, consequence: str | None) -> Finding:
    """Return the finding for something wrong with an index; `consequence`: None for that of the code."""
    position, size = (0, 0) if fault.entry is None else (fault.entry.position, fault.entry.size)
    return code.finding(
        target,
        message=fault.message,
        position=position,
        size=size,
        offset=fault.offset,
        expected=fault.expected,
        actual=fault.actual,
        severity=WARNING if fault.is_usable else ERROR,
        consequence=consequence,
    )


class IndexRule(Observer):
    """Base class of the rules for both indexes: reports what its judge notes, findings with the same code and severity
    in one file once, with the number of further ones."""

    kind: FileKind
    judge_type: type[IndexJudge]
    codes: dict[str, Code]
    """By what is wrong with an index (kafka/index_judge.py), except ZEROS."""

    def __init__(self, read: ReadRuns, context: PartitionContext) -> None:
        self.read = read
        self.known = context
        self.target: Target | None = None
        self.is_empty = False
        """Whether the segment is the last one, and has no bytes."""
        self.judge: IndexJudge | None = None
        self.reported: dict[tuple[str, bool], tuple[Finding, int]] = {}
        """By code, and whether a broker finds what it should: the first finding, and the number of them."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.target = part.segment.indexes.get(self.kind)
        self.reported, self.judge, self.is_empty = {}, None, part.last and part.size == 0
        if self.target is not None:
            runs = self.read(self.target, self.kind)
            may_be_open = self.known.may_be_open(part.last)
            self.judge = self.judge_type(runs, self.note, may_be_open=may_be_open, is_last=part.last)
        return NONE

    def note(self, fault: Fault) -> None:
        assert self.target is not None
        code = INDEX_PADDING if fault.what == ZEROS else self.codes[fault.what]
        consequence = None
        if fault.what == ZEROS and self.is_empty and not fault.is_usable:
            fault, consequence = fault._replace(is_usable=True), EMPTY
        key = code.code, fault.is_usable
        if key in self.reported:
            finding, count = self.reported[key]
            self.reported[key] = finding, count + 1
            return
        if fault.is_usable and consequence is None:
            usual = {MISMATCH: UNWRITTEN, ORDER: UNWRITTEN, ZEROS: SLOW}.get(fault.what)
            consequence = NO_LAST_ENTRY if fault.entry is None else usual
        self.reported[key] = fault_finding(code, self.target, fault, consequence), 1

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        if self.judge is not None:
            self.judge.gap(region.end)
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if self.judge is not None:
            (self.judge.batch if seen.is_valid else self.judge.invalid_batch)(seen.batch)
        return NONE

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        if self.judge is not None:
            self.judge.accept_run(heads, first, stop)

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        judge, self.judge = self.judge, None  # it calls `note`, a cycle that would keep both until a garbage collection
        if judge is None:
            return
        judge.finish(part.size)
        zeros = judge.zeros
        if zeros is not None:
            assert self.target is not None
            yield INDEX_PADDING.finding(
                self.target,
                message=zeros.reason,
                position=zeros.position,
                size=zeros.size,
                severity=INFO,
                consequence=PREALLOCATED,
            )
        others = (INDEX_PADDING.code, self.codes[SIZE].code)
        for finding, count in self.reported.values():
            if judge.is_left_over and finding.code not in others:
                finding = finding._replace(severity=INFO, consequence=LEFT_OVER)
            more = f"; {count_text(count - 1, 'more such entry', 'more such entries')}" if count > 1 else ""
            yield finding._replace(message=finding.message + more)


class OffsetIndexRule(IndexRule):
    """Checks .index files."""

    kind, judge_type = INDEX, OffsetIndexJudge
    codes = {
        SIZE: INDEX_SIZE_INVALID,
        ORDER: INDEX_NOT_SORTED,
        MISMATCH: INDEX_MISMATCH,
        BEYOND: INDEX_BEYOND_LOG,
    }


def missing_indexes(partition: PartitionDirectory) -> Iterator[Finding]:
    """Yield findings for segments without an .index or .timeindex, and for indexes without a segment."""
    for segment in partition.segments:
        if segment.log is not None and not {INDEX, TIME_INDEX} <= segment.indexes.keys():
            now = identity(segment.log.path)
            is_large = now is not None and now.size > MAX_SEGMENT_SIZE
            missing = INDEX if INDEX not in segment.indexes else TIME_INDEX  # the .index brings the .timeindex back
            yield INDEX_MISSING.finding(
                segment.log,
                message=f"the segment has no .{missing.name}",
                offset=segment.offset,
                consequence=UNOPENED if is_large else NO_TIME_INDEX if missing is TIME_INDEX else None,
            )
    names = [] if partition.given else partition.file_names
    renamed = {name.partition(".")[0] for name in names if name.partition(".")[2].startswith("log.")}
    reported = set()
    for target in partition.orphans:
        stem, now = os.path.basename(target.path).partition(".")[0], identity(target.path)
        is_lost = bool(names and now is not None and now.size and stem not in renamed)
        if is_lost and stem in reported:
            continue
        yield INDEX_ORPHAN.finding(
            target,
            message="there is no .log of this name" + (", and its indexes are not empty" if is_lost else ""),
            offset=target.name_offset,
            severity=ERROR if is_lost else WARNING,
            consequence=LOST if is_lost else None,
        )
        reported |= {stem} if is_lost else set()
