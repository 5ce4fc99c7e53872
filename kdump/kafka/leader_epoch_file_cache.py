"""Leader epochs during startup: loaded from the checkpoint, added by recovery, truncated at both ends of the log.

Source: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

from __future__ import annotations

from typing import NamedTuple


class EpochEntry(NamedTuple):
    """An entry of leader-epoch-checkpoint."""

    epoch: int
    startOffset: int


class LeaderEpochFileCache:
    """The entries, in ascending order of epochs. `written`: whether the broker rewrites the checkpoint file."""

    def __init__(self) -> None:
        self.entries: list[EpochEntry] = []
        self.written = False

    @property
    def latest(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def load(self, entries: list[EpochEntry]) -> None:
        """Load the checkpoint: each line removes earlier ones whose epoch or start offset is not below its own."""
        for entry in entries:
            self._assign(entry)

    def assign(self, epoch: int, offset: int) -> None:
        """Add the epoch of a batch with base offset `offset`."""
        if self._assign(EpochEntry(epoch, offset)):
            self.written = True

    def _assign(self, entry: EpochEntry) -> bool:
        last = self.entries[-1] if self.entries else None
        if last is not None and entry.epoch == last.epoch and entry.startOffset >= last.startOffset:
            return False
        while self.entries and (
            self.entries[-1].epoch >= entry.epoch or self.entries[-1].startOffset >= entry.startOffset
        ):
            self.entries.pop()
        self.entries.append(entry)
        return True

    def truncate_from_end(self, end: int) -> None:
        """Remove the entries that start at or above `end`, the log end offset."""
        while self.entries and self.entries[-1].startOffset >= end:
            self.entries.pop()
            self.written = True

    def truncate_from_start(self, start: int) -> None:
        """Replace the entries that start at or below `start`, the log start offset, with one that starts there."""
        below = 0
        while below < len(self.entries) and self.entries[below].startOffset <= start:
            below += 1
        if below:
            self.written = True
            self.entries[:below] = [EpochEntry(self.entries[below - 1].epoch, start)]

    def clear(self) -> None:
        self.entries.clear()
        self.written = True
