"""Finds the transactions that are open at the base offset of a segment.

A broker loads the newest producer snapshot up to that offset, and replays the batches after it; without a snapshot, it
replays the batches from the log start. Source: LogLoader.recoverSegment, UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from contextlib import suppress

from kdump.check.options import Options
from kdump.kafka.producer_state_manager import OngoingTxns, SnapshotFiles
from kdump.log.errors import SourceError
from kdump.log.partition_directory import PartitionDirectory


def snapshot_at(partition: PartitionDirectory, offset: int, options: Options) -> OngoingTxns | None:
    """Return the transactions that are open in the producer snapshot at that offset; None if there is no valid one."""
    for target in partition.snapshots:
        if target.name_offset == offset:
            with suppress(SourceError):
                ongoing = SnapshotFiles({offset: target}, options.open).read(offset)
                return None if ongoing is None else OngoingTxns(ongoing)
    return None


def first_needed(partition: PartitionDirectory, number: int, options: Options) -> int:
    """Return the number of the segment at which the replay for segment `number` has to start."""
    for before in range(number, 0, -1):
        if snapshot_at(partition, partition.segments[before].offset, options) is not None:
            return before
    return 0
