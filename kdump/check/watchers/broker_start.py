"""Which producer snapshots a broker may load when it starts, where it begins to read the log, and what it has then: its
log end offset, its open transactions, and its last stable offset.

Source: ProducerStateManager (removeStraySnapshots, truncateAndReload, loadFromSnapshot), UnifiedLog
(rebuildProducerState), LogLoader (recoverSegment)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from kdump.check.partition_context import PartitionContext
from kdump.cluster.partition_summary import broker_end, leads_astray, log_end, recovers_last
from kdump.io.errors import OnUnreadable, SourceError
from kdump.kafka.errors import KafkaError
from kdump.kafka.log_segment import LogSegment, first_unflushed, segment_at
from kdump.kafka.producer_state_manager import SnapshotFiles
from kdump.kafka.unified_log import LoadedLog, batch_of, first_unstable_offset, load_clean
from kdump.log.file_kinds import INDEX
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import Open
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
    checking them, as after a clean shutdown. `open_` opens a file; `on_unreadable` is told what cannot be read."""

    def __init__(
        self,
        partition: PartitionDirectory,
        known: PartitionContext,
        read: Callable[[Target], SnapshotEntries | None],
        open_: Open,
        on_unreadable: OnUnreadable,
    ) -> None:
        self.read, self.partition, self.known, self.open_ = read, partition, known, open_
        self.on_unreadable = on_unreadable
        self.unread: list[str] = []
        """What could not be read of that which decides what a broker does."""
        self._ends: dict[tuple[int | None, bool], int | None] = {}
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

    def segments(self) -> list[LogSegment]:
        """The segments as a broker opens them."""
        release, logs = self.known.release.release, (segment.log for segment in self.partition.segments)
        return [segment_at(log, log.name_offset or 0, self.open_, release=release) for log in logs if log]

    @cached_property
    def loaded(self) -> LoadedLog | None:
        """The log as a broker loads it without checking it; None if it checks it, or this is unknown."""
        kinds = (segment.index_kinds for segment in self.partition.segments)
        is_recovered = self.known.clean is True and not all(INDEX in has for has in kinds)
        if not self.trusts or is_recovered or self.partition.given is not None or self.known.last is False:
            return None
        snapshots = SnapshotFiles({target.name_offset or 0: target for target in self.partition.snapshots}, self.open_)
        try:
            return load_clean(self.segments(), snapshots, self.log_start, self.known.clean is True)
        except SourceError as error:
            self._not_read(error)
            return None
        except (KafkaError, OSError):
            return None

    def transaction_at(self, producer_id: int, offset: int) -> OngoingTxn:
        """Return the transaction of a producer that is open from `offset` in `loaded`."""
        for point in reversed(self.snapshots):
            stored = None if point.target is None or offset >= point.offset else self.open_in(point.target)
            if stored and producer_id in stored and stored[producer_id].first_offset == offset:
                return stored[producer_id]
        segments = self.segments()
        place = batch_of(segments, offset)
        if place is None or place[1].header is None:
            return OngoingTxn(segments[0].target, 0, 0, offset, -1, -1)
        segment, head, header = place[0], place[1], place[1].header
        return OngoingTxn(segment.target, head.position, head.size, offset, header.producerEpoch, header.maxTimestamp)

    def log_end(self, read: int | None, *, is_suspect: bool) -> int | None:
        """Return the log end offset: not below the log start offset, because a broker deletes a log that ends there."""
        end = self.stored_end(read, is_suspect=is_suspect)
        return None if end is None else max(end, self.log_start)

    def stored_end(self, read: int | None, *, is_suspect: bool) -> int | None:
        """Return the offset at which a broker finds the end of the log. `read`: that of the valid batches, None if
        unknown; `is_suspect`: whether a broker may read the log in another way, as where an index misleads it."""
        if read is not None and (read, is_suspect) not in self._ends:
            is_other = is_suspect or self._is_misled(read)
            self._ends[read, is_suspect] = self._broker_end(read) if is_other else None
        end = self._ends.get((read, is_suspect))
        return None if self.unread else read if end is None else end

    @property
    def _is_part(self) -> bool:
        known, place = self.known, self.partition
        is_part = place.given is not None or known.last is False or known.topic == METADATA_TOPIC
        return is_part or not place.segments

    def _is_misled(self, end: int) -> bool:
        return not self._is_part and leads_astray(self.partition.segments[-1], self.known.clean, end)

    def _broker_end(self, read: int) -> int | None:
        known, segments = self.known, self.partition.segments
        if self._is_part:
            return None
        if recovers_last(segments[-1], known.clean):  # then only the last batch may be one that a recovery keeps
            return max(read, log_end(self.partition, known.clean, [], lambda: known.release.release) or 0)
        try:
            return broker_end(segments[-1], known.clean, read, self.open_, lambda: known.release.release)
        except SourceError as error:
            self._not_read(error)
            return None

    def last_stable_offset(self, end: int | None, first: int, *, is_suspect: bool) -> int | None:
        """Return the last stable offset of a log that ends at `end`, and whose earliest open transaction has the first
        offset `first`; None if it is unknown."""
        offset = max(first, self.log_start)
        if self.unread:
            return None
        if end is None or (offset == first and not is_suspect):
            return offset
        try:
            return first_unstable_offset(self.segments(), offset, end, self.known.release.release)
        except SourceError as error:
            self._not_read(error)
            return None
        except (KafkaError, OSError):
            return offset

    def _not_read(self, error: SourceError) -> None:
        self.unread.append(str(error))
        self.on_unreadable(error)

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
