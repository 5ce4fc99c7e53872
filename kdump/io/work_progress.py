"""Progress of work on one file or partition whose size is known, but not how much of it has to be read."""

from __future__ import annotations

from kdump.io.run import Run


class WorkProgress:
    """Passes on the bytes that are read of `size` bytes in total: never more, and the rest at the end. Bytes that are
    read twice count once."""

    def __init__(self, size: int, run: Run) -> None:
        self._left, self._run = size, run

    def expect(self, size: int) -> None:
        """Set the number of bytes that are left."""
        self._left = size

    def more(self, count: int) -> None:
        """Count bytes that have been read."""
        count = min(count, self._left)
        if count > 0:
            self._left -= count
            self._run.more(count)

    def end(self) -> None:
        """Count the bytes that did not have to be read."""
        self.more(self._left)
