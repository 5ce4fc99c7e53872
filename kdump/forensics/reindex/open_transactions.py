"""Finds the transactions that are open at the base offset of a segment.

A broker loads the newest producer snapshot up to that offset, and replays the batches after it; without a snapshot, it
replays the batches from the log start. Source: LogLoader.recoverSegment, UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from contextlib import closing

from kdump.check.options import Options
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.file_kinds import PRODUCER_SNAPSHOT
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.window import Window
from kdump.state.transaction_tracker import MAX_OPEN_TRANSACTIONS, OpenTransactions

MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Largest producer snapshot that is loaded, in bytes: about a million producers."""


def snapshot_at(partition: PartitionDirectory, offset: int, options: Options) -> tuple[Target, OpenTransactions] | None:
    """Return the producer snapshot at that offset and the transactions open in it; None if there is no valid one."""
    for target in partition.snapshots:
        if target.name_offset == offset:
            loaded = _load(target, options)
            return None if loaded is None else (target, loaded)
    return None


def first_needed(partition: PartitionDirectory, number: int, options: Options) -> int:
    """Return the number of the segment at which the replay for segment `number` has to start."""
    for before in range(number, 0, -1):
        if snapshot_at(partition, partition.segments[before].offset, options) is not None:
            return before
    return 0


def _load(target: Target, options: Options) -> OpenTransactions | None:
    rows: list[tuple[int, int, dict[str, int]]] = []
    try:
        with closing(options.open(target).source) as source:
            if (source.size or 0) > MAX_SNAPSHOT_BYTES:
                return None
            for item in entries(PRODUCER_SNAPSHOT, Window(source), 0):
                if not isinstance(item, Entry):
                    return None  # its checksum does not match, or it is truncated: a broker deletes it
                if item.type and item.values["currentTxnFirstOffset"] >= 0:
                    if len(rows) == MAX_OPEN_TRANSACTIONS:
                        return None
                    rows.append((item.position, item.size, item.values))
    except SourceError:
        return None
    loaded = OpenTransactions()
    for position, size, values in sorted(rows, key=lambda row: row[2]["currentTxnFirstOffset"]):
        loaded.seed(target, position, size, values)
    return loaded
