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
from kdump.log.region import DefaultRecordBatch, Region
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET
from kdump.problems.advice import NO_VALUES

OFFSET_NOT_MONOTONIC = Code("offset-not-monotonic")
OFFSET_GAP = Code("offset-gap")
SEGMENT_NAME_MISMATCH = Code("segment-name-mismatch")
SEGMENT_OVERLAP = Code("segment-overlap")


MAX_GAPS = 1000
"""Maximum number of gaps kept until it is known whether the log was compacted."""
DAMAGE_AT = "damage"
"""The value of a gap that damage explains: the position of that damage in the file."""
TWICE, ONLY_GAP = 1, 2
"""How one flipped bit in the base offset of the last batch shows: other batches have its offsets, they are below the
segment's name, or that is the right one; or it makes a gap."""


def missing_text(last: int, base: int) -> str:
    """Return which offsets are missing between the last offset of one batch and the base offset of the next."""
    offsets = f"offset {base - 1} is" if base - last == 2 else f"offsets {last + 1}..{base - 1} are"
    return f"{offsets} missing between {last} and {base}"


class OffsetRule(Observer):
    """Checks offsets for gaps across all segments. Reports gaps at the end, because signs of compaction may follow
    them.

    No checksum covers a base offset. A batch that is out of place is held until the next one decides: if that continues
    where the held one would end in its place, nothing is missing, and the base offset is damaged. Of the last batch of
    the log, one flipped bit has to explain offsets that other batches have or that are not those of the segment's name,
    or the only gap, as in salvage."""

    saved_fields = {
        "last": NUMBER,
        "gaps": FINDINGS,
        "held": FINDINGS,
        "damaged": FINDINGS,
        "follows": NUMBER,
        "if_last": NUMBER,
        "lowest": NUMBER,
        "disordered": NUMBER,
        "instead": FINDINGS,
        "unsure": NUMBER,
        "held_base": NUMBER,
        "held_expected": NUMBER,
    }

    def __init__(self, compaction: CompactionWatcher, *, separate: bool = False) -> None:
        self.compaction = compaction
        self.separate = separate
        """Whether the segments do not form one log, such as copies in remote storage."""
        self.last: int | None = None
        self.first_of_part = True
        self.named_wrong = False
        self.gaps: list[Finding] = []
        self.held: list[Finding] = []
        """The findings about a batch that is out of place, as its base offset is."""
        self.damaged: list[Finding] = []
        """The finding about it if its base offset is damaged; empty if no batch is held."""
        self.follows: int | None = None
        """The base offset of the next batch in that case."""
        self.if_last: int | None = None
        """TWICE if the base offset is damaged if no batch follows; ONLY_GAP if there must not be a gap, either."""
        self.lowest: int | None = None
        """The base offset of the first batch."""
        self.disordered = 0
        """1 if a batch is out of place for a reason that is not known, as if the first one begins above the segment's
        name, which is no finding."""
        self.held_base, self.held_expected = 0, 0
        """Of the held batch."""
        self.unsure: int | None = None
        """Where the batch after the held one would begin if its own base offset were damaged instead."""
        self.instead: list[Finding] = []
        """The findings about that batch in this case."""

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        if self.separate:
            self.last = self.if_last = self.follows = None
        self.first_of_part = True
        self.named_wrong = False
        return NONE

    def unread(self) -> None:
        self.last = self.if_last = self.follows = None

    def region(self, part: SegmentContext, region: Region) -> None:
        self.if_last = None

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        if not seen.is_valid and not batch.crcValid:  # with the checksum, only its length or magic is wrong
            self.if_last = None
            return NONE
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        if batch.lastOffset < base or base < 0:
            return NONE
        return list(self._next(seen, base))

    def _next(self, seen: BatchContext, base: int) -> Iterator[Finding]:
        batch, name = seen.batch, seen.part.target.name_offset
        first, self.first_of_part = self.first_of_part, False
        before: tuple[int, int] | None = None
        if self.unsure is not None and self.last is not None and self.follows is not None:
            span = self.last - self.follows + 1
            is_damaged = base == self.last + 1 or not _flips_into(self.follows, self.unsure, base - span)
            yield from self._resolve(is_damaged=is_damaged)
        elif self.damaged and base == self.follows and self.last is not None and self.held_base > self.held_expected:
            # One flipped bit of this batch may explain both as well, if a gap follows it.
            self.unsure, self.instead = self.last + 1, list(self._compare(seen, base, self.last, first))
            ended, self.last = self.last, batch.lastOffset
            yield from self._compare_name(seen, base, ended, first)
            return
        elif self.damaged:
            is_damaged = base == self.follows
            before = None if is_damaged else (self.held_base, self.held_expected)
            yield from self._resolve(is_damaged=is_damaged, continues=self.last is not None and base == self.last + 1)
            self.last = base - 1 if is_damaged else self.last
        last, self.last = self.last, batch.lastOffset
        self.lowest = base if self.lowest is None else self.lowest
        expected = name if last is None and first else None if last is None else last + 1
        if expected is None or base == expected:
            yield from self._compare_name(seen, base, last, first) if name is not None else NONE
            return
        compared = (
            self._compare_name(seen, base, last, first) if last is None else self._compare(seen, base, last, first)
        )
        found = list(compared)
        overlaps = any(finding.code == SEGMENT_OVERLAP.code for finding in found)
        # Or the base offset of the batch before it is damaged, and nothing decides.
        may_be_before = (
            before is not None and base < expected and _flips_into(before[0], before[1], base - (expected - before[0]))
        )
        if overlaps or may_be_before or seen.damage is not None or not isinstance(batch, DefaultRecordBatch):
            if not found:
                self.disordered = 1
            yield from self._report(found)
            return
        span = batch.lastOffset - base + 1
        self.held, self.follows = found, expected + span
        self.damaged = [_damaged_offset(seen, base, expected)]
        is_bit = last is not None and seen.part.last and (base ^ expected).bit_count() == 1
        self.held_base, self.held_expected = base, expected
        lowest = 0 if self.lowest is None else self.lowest
        is_doubled = is_bit and base < expected and (lowest < base + span or base + span <= (name or 0))
        is_doubled = is_doubled and not any(gap.expected <= base and base + span <= gap.actual for gap in self.gaps)
        is_alone = is_bit and (name or 0) <= expected < base - 1  # one offset may be that of a lost marker
        is_named = is_alone and first and name == expected  # the name says what the offset was
        self.if_last = TWICE if is_doubled or is_named else ONLY_GAP if is_alone else None

    def _resolve(self, *, is_damaged: bool, continues: bool = False) -> Iterator[Finding]:
        """Report the held batch. `continues`: whether the one after it begins where its offsets end, so that these are
        right."""
        held, self.held = self.held, []
        damaged, self.damaged = self.damaged, []
        instead, self.instead = self.instead, []
        self.follows = self.if_last = self.unsure = None
        if is_damaged:
            self.named_wrong = False
            yield from damaged
        else:
            if damaged and not held:
                self.disordered = 1
            held = [each.given({"nameWrong": True}) if continues else each for each in held]
            yield from self._report([*held, *instead])

    def _report(self, found: Iterable[Finding]) -> Iterator[Finding]:
        for finding in found:
            if finding.code == OFFSET_GAP.code:
                self.gaps.append(finding)
            else:
                self.disordered = 1
                yield finding
        if len(self.gaps) >= MAX_GAPS:
            yield from self._report_gaps()

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        if self.last is None or self.first_of_part or self.damaged:
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
        yield from self._compare_name(seen, base, last, first)
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
            severity, case, values = None, "", NO_VALUES
            if seen.damage is not None:
                message += f": there is damage at byte {seen.damage}"
                severity, case, values = INFO, "damage", {DAMAGE_AT: seen.damage}
            yield OFFSET_GAP.finding(
                target,
                message=message,
                position=batch.position,
                offset=last + 1,
                expected=last + 1,
                actual=base,
                severity=severity,
                case=case,
                values=values,
            )

    def _compare_name(self, seen: BatchContext, base: int, last: int | None, first: bool) -> Iterable[Finding]:
        """Compare a batch with the name of its file. Where the batch before ends, or the first one of the file, decides
        which of the two is wrong."""
        name = seen.part.target.name_offset
        if name is None or self.named_wrong or (name <= base and seen.batch.lastOffset - name <= MAX_RELATIVE_OFFSET):
            return NONE
        self.named_wrong = True
        batch = seen.batch
        message = f"offsets {base}..{batch.lastOffset} in the file named {name}"
        if base >= name:
            message += f", more than {MAX_RELATIVE_OFFSET} above it"
        facts = {"lastSegment": seen.part.last}
        if not first or (last is not None and last + 1 in (name, base)):
            facts["nameWrong"] = first and last is not None and last + 1 == base
        return [
            SEGMENT_NAME_MISMATCH.finding(
                seen.part.target,
                message=message,
                position=batch.position,
                size=batch.size,
                offset=base,
                expected=name,
                actual=base,
                facts=facts,
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
        has_gaps = bool(self.gaps) or bool(self.compaction.compacted)
        has_gaps = has_gaps or bool(self.disordered)
        is_damaged = self.if_last == TWICE or (self.if_last == ONLY_GAP and not has_gaps)
        yield from self._resolve(is_damaged=is_damaged or self.unsure is not None)
        yield from self._report_gaps()


def _flips_into(base: int, first: int, last: int) -> bool:
    """Return True if a base offset with one bit flipped is in the range first..last."""
    return any(first <= base ^ (1 << bit) <= last for bit in range(63))


def _damaged_offset(seen: BatchContext, base: int, expected: int) -> Finding:
    batch = seen.batch
    return OFFSET_NOT_MONOTONIC.finding(
        seen.part.target,
        message=f"base offset {base}, but the batches around it show {expected}: no offset is missing",
        position=batch.position,
        size=batch.size,
        offset=base,
        expected=expected,
        actual=base,
        case="baseOffsetDamaged",
    )
