"""Leader epochs for leader-epoch-checkpoint: the source's file if it matches the batches, otherwise their own epochs.

Source: LeaderEpochCheckpointFile (version, count, a line for each epoch and its first offset), LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

MAX_EPOCHS = 100_000
"""Maximum number of leader epochs that are kept; no log has so many."""


class EpochsWritten:
    """The leader epochs of the batches that are written, in order. `checkpoint`: (epoch, start offset) pairs of the
    source's file, None without one. The file is ignored if one of the columns is not in ascending order, or if a batch
    has a different epoch."""

    def __init__(self, checkpoint: Sequence[tuple[int, int]] | None) -> None:
        given = list(checkpoint or ())
        self._agrees = bool(given) and all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(given))
        self._given = given
        self._starts = [start for _, start in given]
        self._seen: list[tuple[int, int]] = []

    def add(self, epoch: int, base: int) -> bool:
        """Add a batch; return True if its epoch is lower than that of a batch before it."""
        if epoch < 0:
            return epoch < -1  # -1: none
        if self._agrees:
            at = bisect_right(self._starts, base) - 1
            self._agrees = at >= 0 and self._given[at][0] == epoch
        if self._seen and epoch <= self._seen[-1][0]:
            return epoch < self._seen[-1][0]
        if len(self._seen) < MAX_EPOCHS:
            self._seen.append((epoch, base))
        return False

    def entries(self, end: int) -> tuple[list[tuple[int, int]], str]:
        """Return (epoch, start offset) pairs, and their origin: source, batches or empty. `end`: the log end offset;
        entries of the source above it are dropped."""
        if self._agrees:
            kept = [(epoch, start) for epoch, start in self._given if start <= end]
            return kept, "source" if kept else ""
        return self._seen, "batches" if self._seen else ""


def checkpoint_text(entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the contents of the file."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()
