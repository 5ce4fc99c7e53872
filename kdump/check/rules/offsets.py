"""Family log, offsets: checks that the offsets of a partition's batches are contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.advice import RESTORE
from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.resume_state import FINDINGS, NUMBER
from kdump.check.rule import LOST, NONE, BatchContext, Observer, SegmentContext
from kdump.check.watchers.compaction import CompactionWatcher
from kdump.core.batch_scan import FURTHEST
from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET
from kdump.core.header_columns import HeaderColumns, are_adjacent, within
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET

OFFSET_NOT_MONOTONIC = Code(
    code="offset-not-monotonic",
    family="offsets",
    severity=ERROR,
    meaning="A batch's base offset is not above the previous batch's last offset.",
    consequence=(
        "a consumer skips these records, gets offsets twice or stops; recovery that indexes such a batch fails with "
        "InvalidOffsetException: after an unclean shutdown the broker then deletes this whole segment and every later "
        "one, and if the .index is missing it exits"
    ),
    fix=f"Do not let a broker recover this log, and do not delete the .index: back the directory up first. {RESTORE}",
    source="UnifiedLog.append, OffsetIndex.append, LogLoader.recoverLog, LogLoader.loadSegmentFiles",
)

OFFSET_GAP = Code(
    code="offset-gap",
    family="offsets",
    severity=WARNING,
    meaning="Offsets are missing between two batches or two segments.",
    consequence="consumers skip the gap without an error; the records are not on this disk",
    fix="Compare with another replica (kdump diff); records that no replica has are lost",
    source="LogSegment.read: a gap is legal for every reader",
    unless="info if the log shows signs of compaction, or if damage that is reported explains the gap",
)

SEGMENT_NAME_MISMATCH = Code(
    code="segment-name-mismatch",
    family="offsets",
    severity=ERROR,
    meaning=(
        "The first base offset is below the one in the file's name, or an offset is more than "
        f"{MAX_RELATIVE_OFFSET} above it."
    ),
    consequence=(
        "the broker looks for the offsets below the name in the previous segment and cannot append to this one; it "
        "splits a segment with offsets too far above when it recovers it"
    ),
    fix=(
        "If the file was renamed, and no damage in the .log files is found, stop the broker and name it after the base "
        "offset of its first batch; the broker deletes the indexes of the old name, recovers the segment and rebuilds "
        f"them. If it is not the last segment, delete the last one's .index, too, as for index-mismatch. Otherwise: "
        f"{RESTORE}"
    ),
    source="LogSegment.ensureOffsetInRange, LocalLog.splitOverflowedSegment, LogLoader.loadSegmentFiles",
)

SEGMENT_OVERLAP = Code(
    code="segment-overlap",
    family="offsets",
    severity=ERROR,
    meaning="Two live segments of one directory share offsets.",
    consequence=(
        "each shared offset is read from only one of the two segments: if they differ, consumers miss records or get "
        "them twice"
    ),
    fix=(
        "Stop the broker, compare the two (kdump inspect SEGMENT --records) and move the .log that does not belong out "
        "of the directory, together with its indexes"
    ),
    source="LogSegments.floorSegment, LogLoader",
)


MAX_GAPS = 1000
"""Maximum number of gaps kept until it is known whether the log was compacted."""
COMPACTION = "the log cleaner removed these records; consumers skip the gap"


def missing_text(last: int, base: int) -> str:
    """Return which offsets are missing between the last offset of one batch and the base offset of the next."""
    offsets = f"offset {base - 1} is" if base - last == 2 else f"offsets {last + 1}..{base - 1} are"
    return f"{offsets} missing between {last} and {base}"


class OffsetRule(Observer):
    """Checks offsets for gaps across all segments. Reports gaps at the end, because signs of compaction may follow
    them."""

    saved_fields = {"last": NUMBER, "gaps": FINDINGS}

    def __init__(self, compaction: CompactionWatcher, *, separate: bool = False) -> None:
        self.compaction = compaction
        self.separate = separate
        """Whether the segments do not form one log, such as copies in remote storage."""
        self.last: int | None = None
        self.first_of_part = True
        self.named_wrong = False
        self.gaps: list[Finding] = []

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        if self.separate:
            self.last = None
        self.first_of_part = True
        self.named_wrong = False
        return NONE

    def unread(self) -> None:
        self.last = None

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        if not seen.is_valid and not batch.crcValid:  # with the checksum, only its length or magic is wrong
            return NONE
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.lastOffset < base or base < 0:
            return NONE
        last, self.last = self.last, batch.lastOffset
        first, self.first_of_part = self.first_of_part, False
        if last is None or base == last + 1:
            return self._compare_name(seen, base) if seen.part.target.name_offset is not None else NONE
        return list(self._compare(seen, base, last, first))

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.last is None or self.first_of_part:
            return first
        name = part.target.name_offset
        if name is not None and not self.named_wrong:
            stop = within(heads, BASE_OFFSET, first, stop, name, FURTHEST)
            stop = within(heads, LAST_OFFSET, first, stop, name, name + MAX_RELATIVE_OFFSET)
        return are_adjacent(heads, first, stop, self.last)

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.last = heads.of(stop - 1, LAST_OFFSET)

    def _compare(self, seen: BatchContext, base: int, last: int, first: bool) -> Iterator[Finding]:
        batch, target = seen.batch, seen.part.target
        yield from self._compare_name(seen, base)
        if base <= last:
            name = seen.part.target.name_offset
            overlaps = first and name is not None and name <= base
            code = SEGMENT_OVERLAP if overlaps else OFFSET_NOT_MONOTONIC
            message = f"base offset {base}, but the batch before it ends at offset {last}"
            if overlaps:
                message = f"this segment starts at offset {base}, but the one before it ends at offset {last}"
            self.last = max(last, batch.lastOffset) if overlaps else batch.lastOffset
            position, size = batch.position, batch.size
            yield code.finding(
                target, message=message, position=position, size=size, offset=base, expected=last + 1, actual=base
            )
        elif batch.baseOffset is not None or not batch.is_compressed:
            message = missing_text(last, base)
            severity = consequence = None
            if seen.damage is not None:
                message += f": there is damage at byte {seen.damage}"
                severity, consequence = INFO, LOST
            gap = OFFSET_GAP.finding(
                target,
                message=message,
                position=batch.position,
                offset=last + 1,
                expected=last + 1,
                actual=base,
                severity=severity,
                consequence=consequence,
            )
            self.gaps.append(gap)
            if len(self.gaps) >= MAX_GAPS:
                yield from self._report_gaps()

    def _compare_name(self, seen: BatchContext, base: int) -> Iterable[Finding]:
        name = seen.part.target.name_offset
        if name is None or self.named_wrong or (name <= base and seen.batch.lastOffset - name <= MAX_RELATIVE_OFFSET):
            return NONE
        self.named_wrong = True
        batch = seen.batch
        message = f"offsets {base}..{batch.lastOffset} in the file named {name}"
        if base >= name:
            message += f", more than {MAX_RELATIVE_OFFSET} above it"
        return [
            SEGMENT_NAME_MISMATCH.finding(
                seen.part.target,
                message=message,
                position=batch.position,
                size=batch.size,
                offset=base,
                expected=name,
                actual=base,
            )
        ]

    def _report_gaps(self) -> Iterator[Finding]:
        for gap in self.gaps:
            if self.compaction.compacted and gap.severity != INFO:
                yield gap._replace(severity=INFO, consequence=COMPACTION)
            else:
                yield gap
        self.gaps.clear()

    def end(self) -> Iterable[Finding]:
        return self._report_gaps()
