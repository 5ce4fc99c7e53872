"""Recovers one segment: checks every batch, rebuilds the indexes, and truncates the file at the first invalid batch.

Source: org.apache.kafka.storage.internals.log.LogSegment.recover; LogLoader.recoverLog.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kdump.io.run import Run
from kdump.kafka.errors import CorruptRecord
from kdump.kafka.file_log_input_stream import FileLogInputStream, read_batches
from kdump.kafka.file_records import ensure_valid
from kdump.kafka.index_builder import IndexBuilder
from kdump.kafka.leader_epoch_file_cache import LeaderEpochFileCache
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.offset_index import OffsetIndex
from kdump.kafka.producer_state_manager import ProducerStateManager


class Recovered(NamedTuple):
    """What recovery found. `valid`: bytes before the first invalid batch. `reason`: why recovery stopped there; empty
    at the end of the file, or if the bytes left are not a complete batch."""

    valid: int
    reason: str


def first_unflushed(bases: Sequence[int], recovery_point: int) -> int:
    """Return the number of the first segment that a startup after an unclean shutdown recovers: the one that contains
    the recovery point, or the first of all if none does. `bases`: the base offsets of all, ascending."""
    return max(0, bisect_right(bases, recovery_point) - 1)


def recover(
    segment: LogSegment,
    state: ProducerStateManager,
    epochs: LeaderEpochFileCache,
    interval: int,
    largest: int,
    run: Run,
) -> Recovered:
    """Perform LogSegment.recover: truncate the segment, and replace its index. `interval` is index.interval.bytes,
    `largest` segment.index.bytes. Raises KafkaError, SourceError."""
    builder = IndexBuilder(segment.base, interval, largest=largest, transactions=state, first=segment.first)
    valid, reason = segment.first, ""
    with segment.window() as window:
        stream = FileLogInputStream(window)
        try:
            for head in read_batches(window, segment.first, segment.size, whole=True):
                ensure_valid(window, head)
                builder.index(head)
                valid = head.end
                run.more(head.size)
                if head.header is not None:
                    epoch, latest = head.header.partitionLeaderEpoch, epochs.latest
                    if epoch >= 0 and (latest is None or epoch > latest):
                        epochs.assign(epoch, head.baseOffset)
                    builder.update_producers(head, stream)
                    state.map_end = head.lastOffset + 1
        except CorruptRecord as error:
            reason = str(error)
        rebuilt = builder.finish()
    segment.size = valid
    segment.index, segment.rebuilt = OffsetIndex(segment.base, rebuilt.index), True
    return Recovered(valid, reason)
