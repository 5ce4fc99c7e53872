"""Family log, offsets: checks that the offsets of a partition's batches are contiguous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.carried import FINDINGS, FLAG, NUMBER
from kdump.check.catalogue import INFO
from kdump.check.finding import Finding, found
from kdump.check.rule import LOST, NONE, BatchContext, PartitionContext, Rule, SegmentContext
from kdump.format.batch_runs import FURTHEST
from kdump.format.header_columns import BASE, LAST, HeaderColumns, are_adjacent, missing_records, within

MOST = 2147483647
KEPT = 1000
"""Maximum number of gaps kept until it is known whether the log was compacted."""
COMPACTION = "the log cleaner removed these records; consumers skip the gap"


class Offsets(Rule):
    """Checks offsets for gaps across all segments. Reports gaps at the end, because signs of compaction may follow
    them."""

    carries = {"compacted": FLAG, "last": NUMBER, "gaps": FINDINGS}

    def __init__(self, known: PartitionContext, *, separate: bool = False) -> None:
        self.separate = separate
        """Whether the segments do not form one log, such as copies in remote storage."""
        self.compacted = bool(known.compacted) or "cleaner-offset" in known.checkpoints
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
        if not seen.sound:
            return NONE
        batch = seen.batch
        count = batch.recordCount
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.lastOffset < base or base < 0:
            return NONE
        if not self.compacted and count is not None:
            self.compacted = count < batch.lastOffset - base + 1 or bool(batch.hasDeleteHorizonMs)
        last, self.last = self.last, batch.lastOffset
        first, self.first_of_part = self.first_of_part, False
        if last is None or base == last + 1:
            return self._name(seen, base) if seen.part.target.name_offset is not None else NONE
        return list(self._compared(seen, base, last, first))

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.last is None or self.first_of_part:
            return first
        name = part.target.name_offset
        if name is not None and not self.named_wrong:
            stop = within(heads, BASE, first, stop, name, FURTHEST)
            stop = within(heads, LAST, first, stop, name, name + MOST)
        return are_adjacent(heads, first, stop, self.last)

    def take(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.compacted = self.compacted or missing_records(heads, first, stop)
        self.last = heads.of(stop - 1, LAST)

    def _compared(self, seen: BatchContext, base: int, last: int, first: bool) -> Iterator[Finding]:
        batch, target = seen.batch, seen.part.target
        yield from self._name(seen, base)
        if base <= last:
            name = seen.part.target.name_offset
            overlaps = first and name is not None and name <= base
            code = "segment-overlap" if overlaps else "offset-not-monotonic"
            message = f"base offset {base}, but the batch before it ends at offset {last}"
            if overlaps:
                message = f"this segment starts at offset {base}, but the one before it ends at offset {last}"
            self.last = max(last, batch.lastOffset) if overlaps else batch.lastOffset
            position, size = batch.position, batch.size
            yield found(
                code, target, message, position=position, size=size, offset=base, expected=last + 1, actual=base
            )
        elif batch.baseOffset is not None or not batch.is_compressed:
            missing = base - last - 1
            offsets = f"offset {base - 1} is" if missing == 1 else f"offsets {last + 1}..{base - 1} are"
            message = f"{offsets} missing between {last} and {base}"
            severity = consequence = None
            if seen.damage is not None:
                message += f": there is damage at byte {seen.damage}"
                severity, consequence = INFO, LOST
            gap = found(
                "offset-gap",
                target,
                message,
                position=batch.position,
                offset=last + 1,
                expected=last + 1,
                actual=base,
                severity=severity,
                consequence=consequence,
            )
            self.gaps.append(gap)
            if len(self.gaps) >= KEPT:
                yield from self._told()

    def _name(self, seen: BatchContext, base: int) -> Iterable[Finding]:
        name = seen.part.target.name_offset
        if name is None or self.named_wrong or (name <= base and seen.batch.lastOffset - name <= MOST):
            return NONE
        self.named_wrong = True
        batch = seen.batch
        message = f"offsets {base}..{batch.lastOffset} in the file named {name}"
        if base >= name:
            message += f", more than {MOST} above it"
        return [
            found(
                "segment-name-mismatch",
                seen.part.target,
                message,
                position=batch.position,
                size=batch.size,
                offset=base,
                expected=name,
                actual=base,
            )
        ]

    def _told(self) -> Iterator[Finding]:
        for gap in self.gaps:
            if self.compacted and gap.severity != INFO:
                yield gap._replace(severity=INFO, consequence=COMPACTION)
            else:
                yield gap
        self.gaps.clear()

    def end(self) -> Iterable[Finding]:
        return self._told()
