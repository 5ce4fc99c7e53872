"""Facts about a copy of a partition, known once it has been read."""

from __future__ import annotations

from dataclasses import dataclass

from kdump.cluster.partition_summary import log_end
from kdump.kafka.follower_truncation import EpochLineage
from kdump.kafka.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache, epoch_for_offset, first_falling
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import partition
from kdump.questions.diff.copy_damage import EpochInBatches, UnreadableSpan
from kdump.questions.diff.copy_reader import CopyReader
from kdump.questions.find_copies import Copy


@dataclass
class CopyFacts:
    """Facts about a copy, known once it has been read. Its log contains the offsets logStartOffset..logEndOffset-1;
    logEndOffset is None if the last segment could not be read.

    `epochs`: the entries of leader-epoch-checkpoint, None if there is no such file or they are not in ascending order
    in both columns; `batchEpochs`: the leader epochs in the batch headers. `damages`: the first damaged byte
    ranges, `damaged`: their number; `tail`: how the log ends, if in an incomplete batch or zeros."""

    path: str
    copy: Copy
    logStartOffset: int
    logEndOffset: int | None
    highWatermark: int | None
    topicId: str | None
    segments: int
    epochs: list[EpochEntry] | None
    batchEpochs: list[EpochInBatches]
    damages: list[UnreadableSpan]
    damaged: int
    tail: UnreadableSpan | None
    compacted: str
    """The sign of compaction that was found; empty if there is none."""
    unread: list[str]
    notes: list[str]
    lacks: frozenset[str]
    """What of it is withheld: RECORDS, CHECKSUMS."""

    @property
    def lineage(self) -> EpochLineage | None:
        """What decides where a broker with this copy truncates; None if a segment could not be read."""
        if self.unread or self.logEndOffset is None:
            return None
        return EpochLineage(self.history, self.logStartOffset, self.logEndOffset, self.highWatermark)

    @property
    def history(self) -> tuple[EpochEntry, ...]:
        """The leader epochs that a broker uses after loading this copy: the checkpoint's, or else those of the batch
        headers."""
        cache = LeaderEpochFileCache()
        cache.load(self.epochs or [])
        if self.epochs is None:
            cache.load([EpochEntry(batch.epoch, batch.offset) for batch in self.batchEpochs])
        return tuple(cache.entries)

    def checkpoint_epoch(self, offset: int) -> int | None:
        """Return the epoch of `offset` according to leader-epoch-checkpoint; None if it has none, or if `offset` is not
        below the log end offset."""
        if self.logEndOffset is not None and offset >= self.logEndOffset:
            return None
        return epoch_for_offset(self.epochs or (), offset)

    def batch_epoch(self, offset: int) -> int | None:
        """Return the epoch of `offset` according to the batch headers; None if the log does not contain it."""
        if self.logEndOffset is None or not self.logStartOffset <= offset < self.logEndOffset:
            return None
        return next((batch.epoch for batch in reversed(self.batchEpochs) if batch.offset <= offset), None)


def facts_of(cursor: CopyReader) -> CopyFacts:
    """Return the facts about a copy that has been read to its end."""
    copy = cursor.copy
    return CopyFacts(
        copy.path,
        copy,
        cursor.start or 0,
        None if cursor.end_unread else max(cursor.start or 0, _end(copy, cursor)),  # a broker starts an empty one there
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
        list(dict.fromkeys([*copy.notes, *cursor.notes])),
        frozenset(cursor.lacks),
    )


def _end(copy: Copy, cursor: CopyReader) -> int:
    """Return the log end offset as a broker finds it; it starts an empty log where this is below the log start
    offset."""
    known, end = copy.known, cursor.end
    is_part = not copy.segments or copy.segments[0].path == copy.path or known.topic == METADATA_TOPIC
    if is_part or known.clean is None or not (known.clean or cursor.damages):
        return end
    found = log_end(partition(copy.path), known.clean, [], lambda: known.release.release)
    return end if found is None else found


def _checkpoint(copy: Copy) -> list[EpochEntry] | None:
    if copy.epochs is None or first_falling(copy.epochs) is not None:
        return None
    return [EpochEntry(entry.epoch, entry.startOffset) for entry in copy.epochs]
