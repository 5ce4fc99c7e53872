"""An index that was found, held against its segment's batches as they go by: what all three kinds have in common."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kdump.forensics.reindex.verdict import MOST_TOLD, Verdict, WrongEntry
from kdump.format.layout import Layout
from kdump.log.entries import FIXED, Entry, Item
from kdump.log.kinds import Kind
from kdump.log.region import PADDING, TORN, Region


class Judge:
    """Knows the entries that were found, in order, one ahead. `open_end`: the segment may be the one that a broker
    appends to, whose files are preallocated and not closed yet."""

    kind: Kind
    telling: tuple[str, ...]
    """Values that rise from entry to entry."""

    def __init__(self, items: Iterator[Item], verdict: Verdict, base_offset: int, *, open_end: bool) -> None:
        self.items = items
        self.verdict = verdict
        self.base_offset = base_offset
        self.open_end = open_end
        self.layout: Layout[Any] = FIXED[self.kind][0]
        self.number = -1
        self.before: Entry | None = None
        self.pending: list[tuple[int, Entry, str]] = []
        """Wrong entries of which it is not known yet what they should be."""
        self.lacking: list[tuple[dict[str, Any], str]] = []
        self.entry = self._next()

    def finish(self, rebuilt: bytes, valid_end: int, size: int, *, is_stopped: bool) -> None:
        """The segment has ended: its first `valid_end` bytes of `size` were taken; `is_stopped`: by no means all."""
        raise NotImplementedError

    def rises(self, before: Entry, entry: Entry) -> bool:
        raise NotImplementedError

    def expected(self, number: int, found: dict[str, Any], rebuilt: bytes) -> dict[str, Any] | None:
        """The rebuilt entry that has one of the values that tell entries apart, or the one in the same place."""
        for name in self.telling:
            at = self.first_not_below(rebuilt, name, found[name])
            values = None if at is None else self.values(rebuilt, at)
            if values is not None and values[name] == found[name]:
                return values
        return self.values(rebuilt, number) if number * self.layout.size < len(rebuilt) else None

    def advance(self) -> None:
        self.entry = self._next()

    def is_wrong(self, entry: Entry, what: str) -> None:
        """What it should be is told when all is rebuilt."""
        if len(self.pending) < MOST_TOLD:
            self.pending.append((self.number, entry, what))
        else:
            self.verdict.wrongCount += 1

    def lacks(self, values: dict[str, Any], what: str) -> None:
        """There is no entry with these values."""
        if len(self.lacking) < MOST_TOLD:
            self.lacking.append((values, what))
        else:
            self.verdict.wrongCount += 1

    def told(self, rebuilt: bytes) -> None:
        """The wrong entries, each with what it should be; and those that are lacking and not merely wrong."""
        instead = []
        for number, entry, what in self.pending:
            expected = self.expected(number, entry.values, rebuilt)
            self.verdict.note(WrongEntry(number, entry.position, entry.values, expected, what))
            instead.append(expected)
        for values, what in self.lacking:
            if values not in instead:
                self.verdict.note(WrongEntry(None, None, None, values, what))

    def values(self, rebuilt: bytes, number: int) -> dict[str, Any]:
        """A rebuilt entry by its JSON names."""
        row = self.layout.read(rebuilt, number * self.layout.size)
        return FIXED[self.kind][2](row, self.base_offset)

    def first_not_below(self, rebuilt: bytes, name: str, value: int) -> int | None:
        """The number of the first rebuilt entry of which that value is not below; None: all are."""
        count = len(rebuilt) // self.layout.size
        number = bisect_left(range(count), value, key=lambda number: int(self.values(rebuilt, number)[name]))
        return number if number < count else None

    def _next(self) -> Entry | None:
        """The next entry that rises."""
        for item in self.items:
            if isinstance(item, Entry):
                self.number += 1
                self.verdict.entries += 1
                if self.before is not None and not self.rises(self.before, item):
                    self.is_wrong(item, "it does not rise above the entry before it")
                    continue
                self.before = item
                return item
            if isinstance(item, Region):
                self._region(item)
        return None

    def _region(self, region: Region) -> None:
        if region.kind == TORN:
            what = f"{region.size} bytes at the end, fewer than an entry of {self.layout.size}"
            self.verdict.note(WrongEntry(None, region.position, None, None, what))
        elif region.kind == PADDING:
            zeros = region.size // self.layout.size
            self.number += zeros
            if "before another" in region.reason:
                what = f"{zeros} entries of zeros before another entry: a broker takes them for entries"
                self.verdict.note(WrongEntry(self.number - zeros + 1, region.position, None, None, what))
            elif self.open_end:
                self.verdict.because("preallocated")
            else:
                what = f"{region.size} zeros at the end, of a segment that was closed: a broker takes them for entries"
                self.verdict.note(WrongEntry(self.number - zeros + 1, region.position, None, None, what))
