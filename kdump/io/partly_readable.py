"""Sources of which some bytes cannot be read."""

from __future__ import annotations

from bisect import bisect_right

from kdump.format.count_text import plain_count
from kdump.io.errors import Located
from kdump.io.unreadable_paths import note


class PartlyReadable:
    """Base class of a Source that returns zeros in place of the bytes that cannot be read: `unreadable` lists
    (position, size) of each byte range, in order and never adjacent."""

    name: str

    def __init__(self) -> None:
        self.unreadable: list[tuple[int, int]] = []
        self.fault: str | None = None
        """Why the last read failed."""

    @property
    def unreadable_text(self) -> Located:
        """How much of the file cannot be read, and why."""
        count = sum(size for _, size in self.unreadable)
        first = self.unreadable[0][0]
        text = f"{self.name}: cannot read {plain_count(count, 'byte')}, the first at byte {first}: {self.fault}"
        return Located(text, self.name)

    def unreadable_in(self, position: int, size: int) -> list[tuple[int, int]]:
        """Return (position, size) of each byte range in these bytes that is known to be unreadable."""
        stop = position + size
        index = max(0, bisect_right(self.unreadable, (position, 0)) - 1)
        unreadable = []
        while index < len(self.unreadable) and self.unreadable[index][0] < stop:
            at, length = self.unreadable[index]
            start, end = max(at, position), min(at + length, stop)
            if start < end:
                unreadable.append((start, end - start))
            index += 1
        return unreadable

    def add_unreadable(self, start: int, stop: int) -> tuple[int, int]:
        """Add start..stop; return the start and end of the byte range that now contains it."""
        first = bisect_right(self.unreadable, (start, 0))
        if first and sum(self.unreadable[first - 1]) >= start:
            first -= 1
            start = self.unreadable[first][0]
        after = first
        while after < len(self.unreadable) and self.unreadable[after][0] <= stop:
            stop = max(stop, sum(self.unreadable[after]))
            after += 1
        self.unreadable[first:after] = [(start, stop - start)]
        return start, stop

    def note_unreadable(self) -> None:
        """Note what could not be read, when the source is closed."""
        if self.unreadable:
            note(self.unreadable_text)
