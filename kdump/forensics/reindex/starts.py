"""Which transactions are open where a segment begins.

A broker loads the newest snapshot of producer states up to there, and replays the batches behind it; without a snapshot
those from the log's start. Source: LogLoader.recoverSegment, UnifiedLog.rebuildProducerState.
"""

from __future__ import annotations

from contextlib import closing

from kdump.check.options import Options
from kdump.log.disk import Partition
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.kinds import PRODUCER_SNAPSHOT
from kdump.log.paths import Target
from kdump.log.window import Window
from kdump.state.transactions import MOST_OPEN, Transactions

MOST_SNAPSHOT = 64 * 1024 * 1024
"""Bytes of a snapshot that is loaded: a million producers."""


def snapshot_at(partition: Partition, offset: int, options: Options) -> tuple[Target, Transactions] | None:
    """What the snapshot at that offset says is open; None without one, or if it is not sound."""
    for at in partition.snapshots:
        if at.name_offset == offset:
            loaded = _load(at, options)
            return None if loaded is None else (at, loaded)
    return None


def first_needed(partition: Partition, number: int, options: Options) -> int:
    """The segment, by number, from which on batches have to be replayed for that `number`."""
    for before in range(number, 0, -1):
        if snapshot_at(partition, partition.segments[before].offset, options) is not None:
            return before
    return 0


def _load(at: Target, options: Options) -> Transactions | None:
    rows: list[tuple[int, int, dict[str, int]]] = []
    try:
        with closing(options.open(at).source) as source:
            if (source.size or 0) > MOST_SNAPSHOT:
                return None
            for item in entries(PRODUCER_SNAPSHOT, Window(source), 0):
                if not isinstance(item, Entry):
                    return None  # its checksum does not hold, or it ends early: a broker deletes it
                if item.type and item.values["currentTxnFirstOffset"] >= 0:
                    if len(rows) == MOST_OPEN:
                        return None
                    rows.append((item.position, item.size, item.values))
    except SourceError:
        return None
    loaded = Transactions()
    for position, size, values in sorted(rows, key=lambda row: row[2]["currentTxnFirstOffset"]):
        loaded.seed(at, position, size, values)
    return loaded
