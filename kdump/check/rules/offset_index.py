"""Family files, indexes: findings about .index files. Whether one is right is decided in
kafka/offset_index_judge.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator

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

INDEX_SIZE_INVALID = Code("index-size-invalid")
INDEX_NOT_SORTED = Code("index-not-sorted")
INDEX_MISMATCH = Code("index-mismatch")
INDEX_BEYOND_LOG = Code("index-beyond-log")
INDEX_PADDING = Code("index-padding")
INDEX_MISSING = Code("index-missing")
INDEX_ORPHAN = Code("index-orphan")


ReadRuns = Callable[[Target, FileKind], Iterator[EntryRun | Region]]


def fault_finding(code: Code, target: Target, fault: Fault, case: str = "") -> Finding:
    """Return the finding for something wrong with an index; `case`: which impact of the code."""
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
        case=case,
    )


class IndexRule(Observer):
    """Base class of the rules for both indexes: reports what its judge notes, findings with the same code and severity
    in one file once, with the number of further ones."""

    kind: FileKind
    judge_type: type[IndexJudge]
    codes: dict[str, Code]
    """By what is wrong with an index (kafka/index_judge.py), except ZEROS."""

    def __init__(self, read: ReadRuns, context: PartitionContext) -> None:
        self.read, self.known = read, context
        self.target: Target | None = None
        self.is_empty = False
        """Whether the segment is the last one, and has no bytes."""
        self.is_damaged = False
        """Whether bytes of the segment are not part of a valid batch."""
        self.judge: IndexJudge | None = None
        self.reported: dict[tuple[str, bool], tuple[Finding, int]] = {}
        """By code, and whether a broker finds what it should: the first finding, and the number of them."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.target = part.segment.indexes.get(self.kind)
        self.reported, self.judge, self.is_empty = {}, None, part.last and part.size == 0
        self.is_damaged = False
        if self.target is not None:
            runs = self.read(self.target, self.kind)
            may_be_open = self.known.may_be_open(part.last)
            start = part.start_offset if part.start else part.target.name_offset
            self.judge = self.judge_type(runs, self.note, may_be_open=may_be_open, is_last=part.last, start=start)
            if part.start:
                self.judge.start_at(part.start, part.start_offset)
        return NONE

    def note(self, fault: Fault) -> None:
        assert self.target is not None
        code = INDEX_PADDING if fault.what == ZEROS else self.codes[fault.what]
        case = ""
        if fault.what == ZEROS and self.is_empty and not fault.is_usable:
            fault, case = fault._replace(is_usable=True), "empty"
        key = code.code, fault.is_usable
        if key in self.reported:
            finding, count = self.reported[key]
            self.reported[key] = finding, count + 1
            return
        if fault.is_usable and not case:
            usual = {MISMATCH: "unwritten", ORDER: "unwritten", ZEROS: "slow"}.get(fault.what, "")
            case = "noLastEntry" if fault.entry is None else usual
        self.reported[key] = fault_finding(code, self.target, fault, case), 1

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.is_damaged = True
        if self.judge is not None:
            self.judge.gap(region.end)
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        self.is_damaged = self.is_damaged or not seen.is_valid
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
                case="preallocated",
            )
        others = (INDEX_PADDING.code, self.codes[SIZE].code)
        for finding, count in self.reported.values():
            if judge.is_left_over and finding.code not in others:
                finding = finding.in_case("leftOver", INFO)
            finding = finding.given({"logDamaged": self.is_damaged})
            more = f"; {count_text(count - 1, 'more such entry', 'more such entries')}" if count > 1 else ""
            yield finding._replace(message=finding.message + more)


class OffsetIndexRule(IndexRule):
    """Checks .index files."""

    kind, judge_type = INDEX, OffsetIndexJudge
    codes = {SIZE: INDEX_SIZE_INVALID, ORDER: INDEX_NOT_SORTED, MISMATCH: INDEX_MISMATCH, BEYOND: INDEX_BEYOND_LOG}


def missing_indexes(partition: PartitionDirectory, damaged: Collection[str]) -> Iterator[Finding]:
    """Yield findings for segments without an .index or .timeindex, and for indexes without a segment. `damaged`: the
    paths of those with damage."""
    for segment in partition.segments:
        if segment.log is not None and not {INDEX, TIME_INDEX} <= segment.indexes.keys():
            now = identity(segment.log.path)
            if now is not None and not now.size and segment is partition.segments[-1]:
                continue  # created at the first append (LazyIndex)
            is_large = now is not None and now.size > MAX_SEGMENT_SIZE
            missing = INDEX if INDEX not in segment.indexes else TIME_INDEX  # the .index brings the .timeindex back
            yield INDEX_MISSING.finding(
                segment.log,
                message=f"the segment has no .{missing.name}",
                offset=segment.offset,
                case="tooLarge" if is_large else "timeIndex" if missing is TIME_INDEX else "",
                facts={
                    "lastSegment": segment is partition.segments[-1],
                    "logDamaged": segment.log.path in damaged,
                },
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
            case="lost" if is_lost else "",
        )
        reported |= {stem} if is_lost else set()
