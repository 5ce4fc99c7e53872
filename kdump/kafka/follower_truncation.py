"""Where a follower truncates its log when it starts to fetch from a leader: the leader epochs of both determine it
(KIP-101, KIP-279).

Source: AbstractFetcherThread.getOffsetTruncationState, LeaderEpochFileCache.endOffsetFor, LogLoader.load."""

from __future__ import annotations

from typing import NamedTuple

from kdump.kafka.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache, end_offset_for, epoch_for_offset


class EpochLineage(NamedTuple):
    """The leader epochs of a replica, its log start offset, log end offset and high watermark (None: unknown)."""

    epochs: tuple[EpochEntry, ...]
    start: int
    end: int
    highWatermark: int | None = None

    def loaded(self) -> EpochLineage:
        """Return it as a broker has it after loading the log: without entries at or above the log end offset, and with
        those below the log start offset replaced by one that starts there."""
        cache = LeaderEpochFileCache(self.epochs)
        cache.truncate_from_end(self.end)
        cache.truncate_from_start(self.start)
        return self._replace(epochs=tuple(cache.entries))

    def cut(self, offset: int) -> EpochLineage:
        """Return it for the log truncated to an offset."""
        cache = LeaderEpochFileCache(self.epochs)
        cache.truncate_from_end(offset)
        return self._replace(epochs=tuple(cache.entries), end=min(self.end, offset))

    def common_end(self, other: EpochLineage) -> int:
        """Return the offset up to which (exclusive) both have the same records, as far as their epochs state it; if one
        has no epochs, the end of the shorter one."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        if self.epochs and other.epochs:
            starts = (entry.startOffset for each in (self, other) for entry in each.epochs)
            for offset in sorted({start, *(each for each in starts if start < each < end)}):
                if offset < end and self._epoch_at(offset) != other._epoch_at(offset):
                    return offset
        return end

    def _epoch_at(self, offset: int) -> int:
        """Return the epoch of an offset; below the first entry, the first epoch, which a trimmed checkpoint starts
        with."""
        return epoch_for_offset(self.epochs, max(offset, self.epochs[0].startOffset)) or 0


class Truncation(NamedTuple):
    """`offset`: the first offset that the follower removes, and from which it then fetches; None if unknown. `loses`:
    number of offsets it removes. `by`: epochs, highWatermark (the follower has no epochs), or logStart (truncation
    would end below the leader's log start offset, so the follower removes its whole log and starts there)."""

    offset: int | None
    loses: int | None
    by: str


def truncation(leader: EpochLineage, follower: EpochLineage) -> Truncation:
    """Return what the follower does if the leader has just been elected, in an epoch above all that either replica
    has."""
    leader, follower = leader.loaded(), follower.loaded()
    whole = follower.end
    highest = max((entry.epoch for lineage in (leader, follower) for entry in lineage.epochs), default=-1)
    epochs = (*leader.epochs, EpochEntry(highest + 1, leader.end))
    while follower.epochs:
        answer = end_offset_for(epochs, follower.epochs[-1].epoch, leader.end)
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
