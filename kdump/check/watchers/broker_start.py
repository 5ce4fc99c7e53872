"""Which producer snapshots a broker may load when it starts, and where it begins to read the log.

Source: ProducerStateManager (removeStraySnapshots, truncateAndReload, loadFromSnapshot), UnifiedLog
(rebuildProducerState), LogLoader (recoverSegment).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from kdump.check.partition_context import PartitionContext
from kdump.kafka.log_segment import first_unflushed
from kdump.log.file_kinds import INDEX
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.state.transaction_tracker import MAX_OPEN_TRANSACTIONS, OngoingTxn, transaction_in

SnapshotEntries = Iterator[tuple[int, dict[str, Any]]]
"""Positions and values of the entries of a producer snapshot."""


class SnapshotPoint(NamedTuple):
    """A producer snapshot at an offset of the log; None: a broker begins to read the log there without one. `loads`:
    whether a broker may load it; otherwise it only shows what was open there."""

    offset: int
    target: Target | None
    loads: bool


class BrokerStart:
    """What a broker does with the producer snapshots of a partition when it starts. `read` returns the entries of a
    snapshot, None if it is not valid. `log_start`: log start offset; `points`: in ascending order; `starts_empty`: it
    does not read the log, because it was shut down cleanly and has no snapshot; `trusts`: it applies batches without
    checking them, as after a clean shutdown."""

    def __init__(
        self,
        partition: PartitionDirectory,
        known: PartitionContext,
        read: Callable[[Target], SnapshotEntries | None],
    ) -> None:
        self.read = read
        self.bases = [segment.offset for segment in partition.segments] or [0]
        first, is_whole = self.bases[0], partition.given is None
        checkpointed = known.log_start or 0
        self.log_start = (known.log_start_offset(first) or 0) if is_whole else checkpointed
        self.trusts = known.clean is not False
        without_index = (segment.offset for segment in partition.segments if INDEX not in segment.index_kinds)
        # Recovery of a segment deletes all snapshots above its base offset. A copy may have been made without indexes.
        highest = next(without_index, None) if known.clean is not None else None
        self.starts_empty = is_whole and known.clean is True and not partition.snapshots and highest is None
        # Only a clean shutdown leaves a snapshot at the log end, so that older ones are not needed.
        above = self.log_start if self.trusts else checkpointed
        start = self.log_start
        if not self.trusts:
            point = known.checkpoints.get("recovery-point-offset")
            # All of a segment is recovered, also what is below the log start offset.
            recovered = self.bases[first_unflushed(self.bases, 0 if point is None else point.offset)]
            highest = recovered if highest is None else min(recovered, highest)
            start = min(checkpointed, highest)
        snapshots = [(target.name_offset or 0, target) for target in partition.snapshots]
        newest = max((offset for offset, _ in snapshots), default=0)
        bases, last = set(self.bases), self.bases[-1]
        self.snapshots = [
            SnapshotPoint(offset, target, offset > above and (highest is None or offset <= highest))
            for offset, target in sorted(snapshots, key=lambda snapshot: snapshot[0])
            if offset >= first and (offset in bases or offset == newest >= last)
        ]
        """Those that are not removed as stray ones."""
        if known.last is False:
            self.snapshots = [point._replace(loads=False) for point in self.snapshots]
        self.points: list[SnapshotPoint] = []
        if known.last is not False and (is_whole or checkpointed > first):
            self.points.append(SnapshotPoint(start, None, True))
        base = self.newest(last)
        self.points += [
            point._replace(loads=point.loads and (point.offset > last or point.target is base))
            for point in self.snapshots
        ]
        self.points.sort(key=lambda point: point.offset)  # the one without a snapshot stays first

    def newest(self, end: int | None) -> Target | None:
        """Return the newest valid snapshot that a broker may load, not above the log end offset `end` (None: unknown);
        None if there is none."""
        for point in reversed(self.snapshots):
            is_below = end is None or point.offset <= end
            if point.loads and is_below and point.target is not None and self.read(point.target) is not None:
                return point.target
        return None

    def open_in(self, target: Target) -> dict[int, OngoingTxn] | None:
        """Return the open transactions in a snapshot by producer ID, earliest first; None if it is not valid."""
        entries = self.read(target)
        if entries is None:
            return None
        every = ((entry["producerId"], transaction_in(target, position, entry)) for position, entry in entries)
        running = ((producer_id, running) for producer_id, running in every if running is not None)
        return dict(sorted(islice(running, MAX_OPEN_TRANSACTIONS), key=lambda item: item[1].first_offset))
