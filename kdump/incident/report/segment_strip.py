"""A segment's bytes in file order, as a bounded number of cells, each with its predominant content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_CELLS = 256
"""Maximum number of cells of a segment. Up to this number of regions, each is a cell of its own."""
LOOKS = 16
"""Maximum number of different looks counted for a cell; beyond it, only half of them are kept."""
DAMAGED = "damaged"
"""Used instead of a codec for a batch that is not valid. Other bytes have the kind of their region."""
CONTROL = "control"
"""Used instead of a codec for a marker, which has no data to compress."""

Ref = tuple[int, int]
"""A transaction in a partition: its producer ID and first offset."""


class CellContent(NamedTuple):
    """The content of a byte range. `codec`: none, gzip, … of a valid data batch, else CONTROL, DAMAGED, torn, junk or
    padding. `producer`: its ID, -1 if there is none. `transaction`: None for bytes outside transactions."""

    codec: str
    producer: int = -1
    transaction: Ref | None = None


NO_BATCH = frozenset((DAMAGED, "torn", "junk", "padding"))
"""Values of `codec` for bytes that are not a valid batch."""


class Cell(NamedTuple):
    """Bytes start..end-1 of a file. `look` is that of most bytes or, if some are not a valid batch, that of most of
    those. Offsets are None if there is no batch; `batches` counts those that begin here."""

    start: int
    end: int
    look: CellContent
    first: int | None
    last: int | None
    batches: int
    records: int


class _Bin:
    """The contents of one of the byte ranges of equal width."""

    __slots__ = ("batches", "first", "last", "looks", "records")

    def __init__(self) -> None:
        self.looks: dict[CellContent, int] = {}
        self.first: int | None = None
        self.last: int | None = None
        self.batches = 0
        self.records = 0

    def add(
        self, look: CellContent, size: int, first: int | None, last: int | None, batches: int, records: int
    ) -> None:
        looks = self.looks
        looks[look] = looks.get(look, 0) + size
        if len(looks) > LOOKS:
            kept = sorted(looks.items(), key=lambda each: (each[0].codec not in NO_BATCH, -each[1]))
            self.looks = dict(kept[: LOOKS // 2])
        if first is not None and last is not None:
            self.first = first if self.first is None else min(first, self.first)
            self.last = last if self.last is None else max(last, self.last)
        self.batches += batches
        self.records += records

    def merge(self, other: _Bin) -> None:
        for look, size in other.looks.items():
            self.add(look, size, other.first, other.last, 0, 0)
        self.batches += other.batches
        self.records += other.records

    @property
    def look(self) -> CellContent:
        return min(self.looks, key=lambda look: (look.codec not in NO_BATCH, -self.looks[look]))


class SegmentStrip:
    """Collects the regions of a file in order. `size`: the file's size in bytes, None if it is not known yet."""

    def __init__(self, size: int | None, max_cells: int = MAX_CELLS) -> None:
        self.max_cells = max_cells
        self.width = max(1, -(-(size or max_cells) // max_cells))
        self.bins: list[_Bin | None] = [None] * max_cells
        self.exact: list[Cell] | None = []
        self.end = 0

    def add(
        self,
        start: int,
        end: int,
        look: CellContent,
        first: int | None = None,
        last: int | None = None,
        batches: int = 0,
        records: int = 0,
    ) -> None:
        """Add bytes start..end-1."""
        if self.exact is not None:
            self.exact.append(Cell(start, end, look, first, last, batches, records))
            if len(self.exact) > self.max_cells:
                self._divide()
            return
        self._reach(end)
        for number in range(start // self.width, (end - 1) // self.width + 1):
            size = min(end, (number + 1) * self.width) - max(start, number * self.width)
            self._bin(number).add(look, size, first, last, batches, records)
            batches = records = 0

    def add_many(
        self,
        look: CellContent,
        starts: Sequence[int],
        end: int,
        firsts: Sequence[int],
        last: int,
        records: Sequence[int],
    ) -> None:
        """Add consecutive batches with the same look: the position, first offset and record count of each. The last one
        ends before byte `end`, with offset `last`."""
        if self.exact is not None and len(self.exact) + len(starts) <= self.max_cells:
            ends, lasts = [*starts[1:], end], [*(offset - 1 for offset in firsts[1:]), last]
            for row, start in enumerate(starts):
                self.add(start, ends[row], look, firsts[row], lasts[row], 1, records[row])
            return
        self._divide()
        self._reach(end)
        row, position = 0, starts[0]
        while position < end:
            number = position // self.width
            stop = min(end, (number + 1) * self.width)
            upto = bisect_left(starts, stop, row)
            begun = max(row - 1, 0) if upto == row or starts[row] > position else row
            previous = last if upto == len(starts) else firsts[upto] - 1
            self._bin(number).add(look, stop - position, firsts[begun], previous, upto - row, sum(records[row:upto]))
            row, position = upto, stop

    def _divide(self) -> None:
        """Add the regions to byte ranges of equal width from now on, and those so far: they are too many for a cell
        each."""
        regions, self.exact = self.exact or [], None
        for region in regions:
            self.add(*region)

    def _reach(self, end: int) -> None:
        """Make room for bytes up to `end`, by doubling the width if necessary."""
        self.end = max(self.end, end)
        while end > self.width * self.max_cells:
            merged: list[_Bin | None] = []
            for number in range(0, self.max_cells, 2):
                one, other = self.bins[number], self.bins[number + 1] if number + 1 < self.max_cells else None
                if one is not None and other is not None:
                    one.merge(other)
                merged.append(one or other)
            self.bins = merged + [None] * (self.max_cells - len(merged))
            self.width *= 2

    def _bin(self, number: int) -> _Bin:
        own = self.bins[number]
        if own is None:
            own = self.bins[number] = _Bin()
        return own

    def cells(self) -> list[Cell]:
        """Return the cells in order: one per region or, if there are too many, with adjacent ones of the same look
        merged."""
        return self.exact if self.exact is not None else list(self._merged())

    def _merged(self) -> Iterator[Cell]:
        running: Cell | None = None
        for number, content in enumerate(self.bins):
            if content is None:
                continue
            start, end = number * self.width, min(self.end, (number + 1) * self.width)
            cell = Cell(start, end, content.look, content.first, content.last, content.batches, content.records)
            if running is not None and running.look == cell.look and running.end == cell.start:
                running = joined(running, cell)
                continue
            if running is not None:
                yield running
            running = cell
        if running is not None:
            yield running


def joined(one: Cell, other: Cell) -> Cell:
    """Merge two cells into one with the look of the first."""
    firsts = [offset for offset in (one.first, other.first) if offset is not None]
    lasts = [offset for offset in (one.last, other.last) if offset is not None]
    first, last = min(firsts, default=None), max(lasts, default=None)
    return Cell(one.start, other.end, one.look, first, last, one.batches + other.batches, one.records + other.records)


def coarser(cells: list[Cell], max_cells: int) -> list[Cell]:
    """Merge adjacent pairs until at most `max_cells` cells remain; a pair keeps the look of its larger cell, but damage
    always wins."""
    while len(cells) > max_cells:
        made: list[Cell] = []
        for one, other in zip(cells[::2], cells[1::2]):
            wins = max(one, other, key=lambda each: (each.look.codec in NO_BATCH, each.end - each.start))
            made.append(joined(one, other)._replace(look=wins.look))
        cells = made + ([cells[-1]] if len(cells) % 2 else [])
    return cells
