"""Leader epochs for leader-epoch-checkpoint: the source's file if it matches the batches, otherwise their own epochs.

Source: LeaderEpochCheckpointFile (version, count, a line for each epoch and its first offset), LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdump.kafka.leader_epoch_file_cache import StoredEpoch, epoch_for_offset, first_falling

MAX_EPOCHS = 100_000
"""Maximum number of leader epochs that are kept; no log has so many."""


class EpochsWritten:
    """The leader epochs of the batches that are written, in order. `checkpoint`: the entries of the source's
    file, None without one. The file is ignored if one of the columns is not in ascending order, or if a batch
    has a different epoch."""

    def __init__(self, checkpoint: Sequence[StoredEpoch] | None) -> None:
        self._given = checkpoint or ()
        self._agrees = bool(self._given) and first_falling(self._given) is None
        self._seen: list[tuple[int, int]] = []

    def add(self, epoch: int, base: int) -> bool:
        """Add a batch; return True if its epoch is lower than that of a batch before it."""
        if epoch < 0:
            return epoch < -1  # -1: none
        self._agrees = self._agrees and epoch_for_offset(self._given, base) == epoch
        if self._seen and epoch <= self._seen[-1][0]:
            return epoch < self._seen[-1][0]
        if len(self._seen) < MAX_EPOCHS:
            self._seen.append((epoch, base))
        return False

    def entries(self, end: int) -> tuple[list[tuple[int, int]], str]:
        """Return (epoch, start offset) pairs, and their origin: source, batches or empty. `end`: the log end offset;
        entries of the source above it are dropped."""
        if self._agrees:
            kept = [(each.epoch, each.startOffset) for each in self._given if each.startOffset <= end]
            return kept, "source" if kept else ""
        return self._seen, "batches" if self._seen else ""


def checkpoint_text(entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the contents of the file."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()
