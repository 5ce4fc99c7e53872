"""Facts about a copy of a partition, known once it has been read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from kdump.forensics.copy_damage import EpochInBatches, UnreadableSpan
from kdump.forensics.copy_reader import CopyReader
from kdump.forensics.find_copies import Copy
from kdump.forensics.follower_truncation import EpochLineage


class CopyEpoch(NamedTuple):
    """A leader epoch and its start offset."""

    epoch: int
    startOffset: int


@dataclass
class CopyFacts:
    """Facts about a copy, known once it has been read. Its log contains the offsets logStartOffset..logEndOffset-1;
    logEndOffset is None if the last segment could not be read.

    `epochs`: the entries of leader-epoch-checkpoint, None if there is no such file or they are not in ascending order
    in both columns; `batchEpochs`: the leader epochs in the batch headers. `damages`: the first damaged byte
    ranges, `damaged`: their number; `tail`: how the log ends, if in an incomplete batch or zeros.
    """

    path: str
    copy: Copy
    logStartOffset: int
    logEndOffset: int | None
    highWatermark: int | None
    topicId: str | None
    segments: int
    epochs: list[CopyEpoch] | None
    batchEpochs: list[EpochInBatches]
    damages: list[UnreadableSpan]
    damaged: int
    tail: UnreadableSpan | None
    compacted: str
    """The sign of compaction that was found; empty if there is none."""
    unread: list[str]
    notes: list[str]
    lacks: frozenset[str]
    """What of it is not in the bundle that it is read from: RECORDS, CHECKSUMS."""

    @property
    def lineage(self) -> EpochLineage | None:
        """What decides where a broker with this copy truncates; None if a segment could not be read."""
        if self.unread or self.logEndOffset is None:
            return None
        end = max(self.logStartOffset, self.logEndOffset)  # a broker starts an empty log there
        return EpochLineage(self.history, self.logStartOffset, end, self.highWatermark)

    @property
    def history(self) -> tuple[tuple[int, int], ...]:
        """The leader epochs that a broker uses after loading this copy: the checkpoint's, or else those of the batch
        headers."""
        known = (
            self.epochs
            if self.epochs is not None
            else [CopyEpoch(each.epoch, each.offset) for each in self.batchEpochs]
        )
        rising = [(each.epoch, each.startOffset) for each in known]
        return _rising(rising)

    def checkpoint_epoch(self, offset: int) -> int | None:
        """Return the epoch of `offset` according to leader-epoch-checkpoint; None if it has none, or if `offset` is not
        below the log end offset."""
        if self.logEndOffset is not None and offset >= self.logEndOffset:
            return None
        below = [each.epoch for each in self.epochs or () if each.startOffset <= offset]
        return below[-1] if below else None


def facts_of(cursor: CopyReader) -> CopyFacts:
    """Return the facts about a copy that has been read to its end."""
    copy = cursor.copy
    return CopyFacts(
        copy.path,
        copy,
        cursor.start or 0,
        None if cursor.end_unread else cursor.end,
        copy.high_watermark,
        copy.topic_id,
        len(copy.segments),
        _checkpoint(copy),
        cursor.epochs,
        cursor.damages,
        cursor.damaged,
        cursor.tail,
        cursor.sign,
        list(dict.fromkeys(cursor.unread)),
        list(dict.fromkeys(cursor.notes)),
        frozenset(cursor.lacks),
    )


def _checkpoint(copy: Copy) -> list[CopyEpoch] | None:
    if copy.epochs is None:
        return None
    entries = [CopyEpoch(each.epoch, each.startOffset) for each in copy.epochs]
    rises = all(a.epoch < b.epoch and a.startOffset < b.startOffset for a, b in pairwise(entries))
    return entries if rises else None


def _rising(entries: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the entries that ascend in both columns, as a broker keeps them when it assigns one after the other."""
    kept: list[tuple[int, int]] = []
    for epoch, start in entries:
        while kept and (kept[-1][0] >= epoch or kept[-1][1] >= start):
            kept.pop()
        kept.append((epoch, start))
    return tuple(kept)
