"""Family log, offsets: checks that the offsets of a partition's batches are contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.finding import INFO, Code, Finding
from kdump.check.resume_state import FINDINGS, NUMBER
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.watchers.compaction import CompactionWatcher
from kdump.core.batch_scan import FURTHEST
from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET
from kdump.core.header_columns import HeaderColumns, are_adjacent, within
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET

OFFSET_NOT_MONOTONIC = Code("offset-not-monotonic")
OFFSET_GAP = Code("offset-gap")
SEGMENT_NAME_MISMATCH = Code("segment-name-mismatch")
SEGMENT_OVERLAP = Code("segment-overlap")


MAX_GAPS = 1000
"""Maximum number of gaps kept until it is known whether the log was compacted."""


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
            severity, case = None, ""
            if seen.damage is not None:
                message += f": there is damage at byte {seen.damage}"
                severity, case = INFO, "damage"
            gap = OFFSET_GAP.finding(
                target,
                message=message,
                position=batch.position,
                offset=last + 1,
                expected=last + 1,
                actual=base,
                severity=severity,
                case=case,
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
                facts={"lastSegment": seen.part.last},
            )
        ]

    def _report_gaps(self) -> Iterator[Finding]:
        for gap in self.gaps:
            if self.compaction.compacted and gap.severity != INFO:
                yield gap.in_case("cleaned", INFO)
            else:
                yield gap
        self.gaps.clear()

    def end(self) -> Iterable[Finding]:
        return self._report_gaps()
