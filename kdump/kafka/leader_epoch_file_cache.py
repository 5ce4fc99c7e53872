"""Leader epochs during startup: loaded from the checkpoint, added by recovery, truncated at both ends of the log. The
checkpoint file itself is parsed in format/text_files.py and, as Kafka does it, in kafka/checkpoint_file.py.

Source: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol


class StoredEpoch(Protocol):
    """An entry, wherever it was read."""

    @property
    def epoch(self) -> int: ...

    @property
    def startOffset(self) -> int: ...


class EpochEntry(NamedTuple):
    """An entry of leader-epoch-checkpoint."""

    epoch: int
    startOffset: int


def first_falling(entries: Sequence[StoredEpoch]) -> int | None:
    """Return the number of the first entry that is not above the one before it in both columns; None if the entries are
    as a broker writes them."""
    for number, (one, other) in enumerate(pairwise(entries), 1):
        if one.epoch >= other.epoch or one.startOffset >= other.startOffset:
            return number
    return None


def epoch_for_offset(entries: Sequence[StoredEpoch], offset: int) -> int | None:
    """Return the epoch of an offset; None if it is below the first entry (epochForOffset)."""
    place = bisect_right(entries, offset, key=lambda each: each.startOffset)
    return entries[place - 1].epoch if place else None


def end_offset_for(entries: Sequence[StoredEpoch], requested: int, end: int) -> EpochEntry | None:
    """Return the largest epoch at or below `requested` with its end offset (exclusive), in a log that ends at `end`;
    None if undefined (endOffsetFor)."""
    if entries and entries[-1].epoch == requested:
        return EpochEntry(requested, end)
    above = bisect_right(entries, requested, key=lambda each: each.epoch)
    if above == len(entries):
        return None
    return EpochEntry(entries[above - 1].epoch if above else requested, entries[above].startOffset)


class LeaderEpochFileCache:
    """The entries, in ascending order of epochs. `written`: whether the broker rewrites the checkpoint file."""

    def __init__(self, entries: Sequence[EpochEntry] = ()) -> None:
        self.entries = list(entries)
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
