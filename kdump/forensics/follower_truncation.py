"""Where a follower truncates its log when it starts to fetch from a leader: the leader epochs of both determine it
(KIP-101, KIP-279).

Source: AbstractFetcherThread.getOffsetTruncationState, LeaderEpochFileCache.endOffsetFor, LogLoader.load.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

Epochs = Sequence[tuple[int, int]]
"""(epoch, start offset), ascending in both."""


class EpochLineage(NamedTuple):
    """The leader epochs of a replica, its log start offset, log end offset and high watermark (None: unknown)."""

    epochs: tuple[tuple[int, int], ...]
    start: int
    end: int
    highWatermark: int | None = None

    def loaded(self) -> EpochLineage:
        """Return it as a broker has it after loading the log: without entries at or above the log end offset, and with
        those below the log start offset replaced by one that starts there."""
        kept = [(epoch, start) for epoch, start in self.epochs if start < self.end]
        below = [epoch for epoch, start in kept if start <= self.start]
        kept = [(epoch, start) for epoch, start in kept if start > self.start]
        if below:
            kept.insert(0, (below[-1], self.start))
        return self._replace(epochs=tuple(kept))

    def cut(self, offset: int) -> EpochLineage:
        """Return it for the log truncated to an offset."""
        return self._replace(epochs=tuple(each for each in self.epochs if each[1] < offset), end=min(self.end, offset))


class Truncation(NamedTuple):
    """`offset`: the first offset that the follower removes, and from which it then fetches; None if unknown. `loses`:
    number of offsets it removes. `by`: epochs, highWatermark (the follower has no epochs), or logStart (truncation
    would end below the leader's log start offset, so the follower removes its whole log and starts there)."""

    offset: int | None
    loses: int | None
    by: str


def end_offset_for(epochs: Epochs, requested: int, end: int) -> tuple[int, int] | None:
    """Return the largest epoch at or below `requested` and its end offset (exclusive); None if undefined."""
    if epochs and epochs[-1][0] == requested:
        return requested, end
    above = bisect_right([epoch for epoch, _ in epochs], requested)
    if above == len(epochs):
        return None
    return (requested if above == 0 else epochs[above - 1][0]), epochs[above][1]


def truncation(leader: EpochLineage, follower: EpochLineage) -> Truncation:
    """Return what the follower does if the leader has just been elected, in an epoch above all that either replica
    has."""
    leader, follower = leader.loaded(), follower.loaded()
    whole = follower.end
    highest = max((epoch for each in (leader, follower) for epoch, _ in each.epochs), default=-1)
    epochs = (*leader.epochs, (highest + 1, leader.end))
    while follower.epochs:
        answer = end_offset_for(epochs, follower.epochs[-1][0], leader.end)
        if answer is None:
            break
        epoch, epoch_end = answer
        own = end_offset_for(follower.epochs, epoch, follower.end)
        if own is None:
            offset = min(epoch_end, follower.end)
        elif own[0] != epoch:
            offset = min(own[1], follower.end)
        else:
            offset = min(own[1], epoch_end, follower.end)
        if offset == follower.end:
            return _fetching(leader, offset, whole, "epochs")
        follower = follower.cut(offset)
    if follower.end < whole:
        return _fetching(leader, follower.end, whole, "epochs")
    mark = follower.highWatermark
    return _fetching(leader, None if mark is None else min(mark, whole), whole, "highWatermark")


def _fetching(leader: EpochLineage, offset: int | None, whole: int, by: str) -> Truncation:
    if offset is not None and offset < leader.start:
        return Truncation(leader.start, whole, "logStart")
    return Truncation(offset, None if offset is None else whole - offset, by)
