"""Is an index right? Compares the entries of an .index or .timeindex with the batches of its segment, in one pass over
both, so that neither has to be kept in memory.

Two facts of an entry are judged: whether a broker that uses it finds what it should, in every release; and whether any
release writes such an entry. It is wrong if either is not so."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kdump.core.header_columns import HeaderColumns
from kdump.log.entries import Entry, EntryRun
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import PADDING, TORN, Batch, LegacyRecordBatch, Region, ZeroEntries

SIZE, ORDER, MISMATCH, BEYOND, ZEROS = "size", "order", "mismatch", "beyond", "zeros"
"""What is wrong: bytes after the last entry, less than one; entries out of order; an entry that contradicts the
batches; one that points past the end of the segment; zeros after the last entry of a segment that was closed."""


class Fault(NamedTuple):
    """Something wrong with an index. `entry`: None if one is missing; `number` counts entries from 0; `is_usable`: a
    broker finds what it should, but no release writes it so; `before`: the last entry before it that was in order."""

    what: str
    entry: Entry | Region | None
    number: int | None
    message: str
    is_usable: bool = False
    offset: int | None = None
    expected: int | None = None
    actual: int | None = None
    before: Entry | None = None


class Doubt(NamedTuple):
    """A batch that does not follow the one before it: if its `base` offset is damaged, which no checksum covers, its
    offsets are first..last. The next batch shows it: it continues there."""

    first: int
    last: int
    base: int

    def is_shown_by(self, entry: Entry) -> bool:
        """Return True if an entry with one of those offsets shows the damage, which is one flipped bit."""
        return self.first <= entry.values["offset"] <= self.last and (self.base ^ self.first).bit_count() == 1


def _packed(numbers: list[int]) -> Sequence[int]:
    """Return the numbers as an array; as they are if one of them, from a name of 20 digits, does not fit."""
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


def base_offset(batch: Batch) -> int | None:
    """Return a batch's base offset, for which a message of magic 0 or 1 may have to be decompressed; None if that
    fails."""
    if batch.baseOffset is None and isinstance(batch, LegacyRecordBatch):
        read_wrapper(batch)
    return batch.baseOffset


class IndexJudge:
    """Base class for both indexes. `runs`: what is in the index; `note` is called with each Fault. `may_be_open`: a
    broker may be appending to the segment, or was when it stopped, so that its indexes are preallocated and not closed;
    `is_last`: it is the last segment of its log; `start`: the offset of the first batch, if known."""

    zeros_usable = False
    """Whether a broker finds what it should although zeros count as entries."""

    def __init__(
        self,
        runs: Iterator[EntryRun | Region],
        note: Callable[[Fault], None],
        *,
        may_be_open: bool = True,
        is_last: bool = True,
        start: int | None = None,
    ) -> None:
        self.runs, self.note, self.may_be_open, self.is_last = runs, note, may_be_open, is_last
        self.run: EntryRun | None = None
        self.numbers: Sequence[int] = ()
        """The values of the entries of `run`, one entry after the other."""
        self.next_row = 0
        """The entry of `run` that is next."""
        self.number = -1
        """Number of `entry` in the file."""
        self.entry: Entry | None = None
        self.before: Entry | None = None
        self.entries = 0
        """Number of entries so far, without those of zeros."""
        self.faults = self.confirmed = 0
        """Numbers of entries: wrong ones, and those after the first wrong one that the segment confirms."""
        self.next_offset = start
        """The offset after the last batch; None if unknown."""
        self.doubted: Doubt | None = None
        """The last batch, if it does not follow."""
        self.zeros: Region | None = None
        """Zeros at the end, which may be preallocated."""
        self.ends_in_zeros = False
        """Whether zeros are the last entries of a segment that was closed."""
        self.advance()

    @property
    def is_left_over(self) -> bool:
        """Whether what is wrong is left from before a truncation, which changes only the number of entries that the
        running broker knows (AbstractIndex.truncateToEntries): then old entries match only by chance."""
        return self.zeros is not None and self.confirmed < self.faults

    def is_not_above(self, before: Entry, entry: Entry) -> bool:
        raise NotImplementedError

    def gap(self, end: int) -> None:
        """Process bytes up to `end` that are not a valid batch."""
        raise NotImplementedError

    def batch(self, batch: Batch) -> None:
        """Process a valid batch."""
        raise NotImplementedError

    def follow(self, base: int | None, last: int) -> Doubt | None:
        """Take the offsets of the next batch. Return the one before it if that is shown to be damaged."""
        doubted, self.doubted = self.doubted, None
        if doubted is not None and base == doubted.last + 1:
            self.next_offset = base
        else:
            doubted = None
        if base is not None and self.next_offset is not None and self.next_offset != base:
            self.doubted = Doubt(self.next_offset, self.next_offset + last - base, base)
        self.next_offset = last + 1
        return doubted

    def invalid_batch(self, batch: Batch) -> None:
        """Process a batch whose fields cannot be relied on."""
        self.gap(batch.end)

    def accept_run(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Process the valid v2 batches first..stop (`stop` excluded) at once."""
        raise NotImplementedError

    def finish(self, size: int | None) -> None:
        """Judge what is left at the end of the segment of `size` bytes."""
        raise NotImplementedError

    def entry_text(self, entry: Entry) -> str:
        """Return an entry's names and values as text."""
        return " ".join(f"{name} {value}" for name, value in entry.values.items())

    def wrong(
        self,
        entry: Entry,
        message: str,
        *,
        what: str = MISMATCH,
        is_usable: bool = False,
        offset: int | None = None,
        expected: int | None = None,
        actual: int | None = None,
        number: int | None = None,
    ) -> None:
        """Note a wrong entry: by default the current one."""
        if actual is None and expected is not None:
            actual = entry.values["position" if what == BEYOND else "offset"]
        number = self.number if number is None else number
        self.count(Fault(what, entry, number, message, is_usable, offset, expected, actual, self.before))

    def count(self, fault: Fault) -> None:
        self.faults += 1
        self.note(fault)

    def confirm(self, entry: Entry, last: int | None) -> None:
        """Process an entry that a broker can use. `last`: last offset of the batch that it is about, if known."""
        self.confirmed += self.faults > 0

    def unknown(self) -> None:
        """Process an entry that damage in the segment may explain."""

    def advance(self) -> None:
        """Move to the next entry in ascending order, None at the end. Notes entries that are not in order, and bytes
        that are not an entry."""
        while True:
            while self.run is not None and self.next_row < self.run.rows:
                entry = self.run.entry(self.next_row, self.numbers)
                self.next_row += 1
                self.number += 1
                self.entries += 1
                if self.before is None or not self.is_not_above(self.before, entry):
                    self.entry = self.before = entry
                    return
                message = f"{self.entry_text(entry)} follows {self.entry_text(self.before)}"
                self.wrong(entry, message, what=ORDER)
            item = next(self.runs, None)
            if isinstance(item, Region):
                self._region(item)
            elif item is None:
                self.entry = self.run = None
                return
            else:
                self.run, self.next_row, self.numbers = item, 0, _packed(item.numbers())

    def skip(self, count: int) -> None:
        """Pass over the next `count` entries of the run, which are right."""
        if count and self.run is not None:
            self.next_row += count
            self.number += count
            self.entries += count
            self.before = self.run.entry(self.next_row - 1, self.numbers)
            self.confirmed += count * (self.faults > 0)

    def start_at(self, position: int, offset: int) -> None:
        """Begin with the batch at a position of the segment and with that offset: the entries of batches before it are
        only read."""
        while self.entry is not None and self.is_before(self.entry, position, offset):
            self.advance()

    def is_before(self, entry: Entry, position: int, offset: int) -> bool:
        """Return True if an entry is about a batch below that position and offset."""
        raise NotImplementedError

    def read_alone(self) -> None:
        """Read the index to its end, without its segment."""
        while self.entry is not None:
            self.advance()

    def _region(self, region: Region) -> None:
        if region.kind == TORN:
            self.note(Fault(SIZE, region, None, region.reason, True))
        elif region.kind == PADDING:
            first = self.number + 1
            self.number += len(range(0, region.size, self.entry_size))
            if isinstance(region, ZeroEntries):
                self.faults += 1
                self.note(Fault(ORDER, region, first, region.reason, before=self.before))
            elif self.may_be_open:
                self.zeros = region
            else:
                message = f"{region.size} zeros at the end, which a broker reads as entries: the segment was closed"
                self.ends_in_zeros = True
                self.note(Fault(ZEROS, region, first, message, self.zeros_usable))

    entry_size = 0
    """Bytes of an entry."""
