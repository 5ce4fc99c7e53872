"""Base class of the comparisons of an existing index with its segment's batches, for all three index types."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kdump.forensics.reindex.verdict import MAX_WRONG_ENTRIES, Verdict, WrongEntry
from kdump.format.layout import Layout
from kdump.log.entries import FIXED, Entry, EntryRun, Item
from kdump.log.file_kinds import FileKind
from kdump.log.region import PADDING, TORN, Region, ZeroEntries


class IndexComparer:
    """Reads the existing entries in order; `entry` is the next one to compare, None at the end. `open_end`: the segment
    may be the active one, whose index files are preallocated and not closed yet."""

    kind: FileKind
    telling: tuple[str, ...]
    """JSON names of values in ascending order, by which an entry is found among the rebuilt ones."""

    def __init__(self, items: Iterator[Item], verdict: Verdict, base_offset: int, *, open_end: bool) -> None:
        self.items = items
        self.verdict = verdict
        self.base_offset = base_offset
        self.open_end = open_end
        self.layout: Layout[Any] = FIXED[self.kind].layout
        self.number = -1
        self.before: Entry | None = None
        self.pending: list[tuple[int, Entry, str]] = []
        """Wrong entries (number, entry, what is wrong) whose expected values are not known yet."""
        self.lacking: list[tuple[dict[str, Any], str]] = []
        self.entry = self._next()

    def finish(self, rebuilt: bytes, valid_end: int, size: int, *, is_stopped: bool) -> None:
        """Compare what remains at the end of the segment, of which recovery accepts the first `valid_end` of `size`
        bytes. `is_stopped`: recovery stops at damage, before the end."""
        raise NotImplementedError

    def rises(self, before: Entry, entry: Entry) -> bool:
        raise NotImplementedError

    def expected(self, number: int, found: dict[str, Any], rebuilt: bytes) -> dict[str, Any] | None:
        """Return the rebuilt entry that shares a value in `telling` with `found`, otherwise the one with the same
        number; None if there is neither."""
        for name in self.telling:
            at = self.first_not_below(rebuilt, name, found[name])
            values = None if at is None else self.values(rebuilt, at)
            if values is not None and values[name] == found[name]:
                return values
        return self.values(rebuilt, number) if number * self.layout.size < len(rebuilt) else None

    def advance(self) -> None:
        self.entry = self._next()

    def is_wrong(self, entry: Entry, reason: str) -> None:
        """Record a wrong entry. Its expected values are added by `report`, once the rebuilt index is complete."""
        if len(self.pending) < MAX_WRONG_ENTRIES:
            self.pending.append((self.number, entry, reason))
        else:
            self.verdict.wrongCount += 1

    def lacks(self, values: dict[str, Any], reason: str) -> None:
        """Record a missing entry with these values."""
        if len(self.lacking) < MAX_WRONG_ENTRIES:
            self.lacking.append((values, reason))
        else:
            self.verdict.wrongCount += 1

    def report(self, rebuilt: bytes) -> None:
        """Report the wrong entries with their expected values, and the missing entries that are not among those."""
        instead = []
        for number, entry, reason in self.pending:
            expected = self.expected(number, entry.values, rebuilt)
            self.verdict.note(WrongEntry(number, entry.position, entry.values, expected, reason))
            instead.append(expected)
        for values, reason in self.lacking:
            if values not in instead:
                self.verdict.note(WrongEntry(None, None, None, values, reason))

    def values(self, rebuilt: bytes, number: int) -> dict[str, Any]:
        """Return the values of a rebuilt entry by their JSON names."""
        start = number * self.layout.size
        part = rebuilt[start : start + self.layout.size]
        return next(EntryRun(FIXED[self.kind], start, part, self.base_offset).entries()).values

    def first_not_below(self, rebuilt: bytes, name: str, value: int) -> int | None:
        """Return the number of the first rebuilt entry whose `name` is at least `value`; None if there is none."""
        count = len(rebuilt) // self.layout.size
        number = bisect_left(range(count), value, key=lambda number: int(self.values(rebuilt, number)[name]))
        return number if number < count else None

    def _next(self) -> Entry | None:
        """Return the next entry that is in ascending order; those that are not are recorded as wrong."""
        for item in self.items:
            if isinstance(item, Entry):
                self.number += 1
                self.verdict.entries += 1
                if self.before is not None and not self.rises(self.before, item):
                    self.is_wrong(item, "not above the previous entry")
                    continue
                self.before = item
                return item
            if isinstance(item, Region):
                self._region(item)
        return None

    def _region(self, region: Region) -> None:
        if region.kind == TORN:
            reason = f"{region.size} bytes left over at the end, less than one entry ({self.layout.size} bytes)"
            self.verdict.note(WrongEntry(None, region.position, None, None, reason))
        elif region.kind == PADDING:
            zeros = region.size // self.layout.size
            self.number += zeros
            if isinstance(region, ZeroEntries):
                reason = f"{zeros} entries of zeros before another entry, which a broker reads as entries"
                self.verdict.note(WrongEntry(self.number - zeros + 1, region.position, None, None, reason))
            elif self.open_end:
                self.verdict.because("preallocated")
            else:
                reason = (
                    f"{region.size} zeros at the end, though the segment was closed: a broker reads them as entries"
                )
                self.verdict.note(WrongEntry(self.number - zeros + 1, region.position, None, None, reason))
