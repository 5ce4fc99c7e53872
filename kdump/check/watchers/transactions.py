"""Keeps the open transactions of a partition: those of the log, and those that a broker has.

A broker that starts loads a producer snapshot and reads the log from there. Where damage may hide batches, the next
snapshot shows which transactions are still open.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker; UnifiedLog.rebuildProducerState."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from kdump.check.resume_state import FLAG, NUMBER, TRANSACTIONS, StateError
from kdump.check.rule import DAY, BatchContext, Observer, SegmentContext, may_hide_batches
from kdump.check.watchers.broker_start import BrokerStart, SnapshotPoint
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_END,
    BATCH_START,
    IS_TRANSACTIONAL,
    LAST_OFFSET,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from kdump.core.header_columns import HeaderColumns, ProducerWrites, are_adjacent, largest, producer_writes, within
from kdump.log.paths import Target
from kdump.log.region import Batch, Region
from kdump.state.transaction_marker import marker_at
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn, OpenTransactions


class EndedBeforeSnapshot(NamedTuple):
    """A transaction whose marker is lost to damage, and the snapshot that shows that it had ended."""

    producer_id: int
    transaction: OngoingTxn
    snapshot: Target


class TransactionWatcher(Observer):
    """Keeps the open transactions in `state`. `ended`: effect of the current batch's marker, None if it has none;
    `ended_in_run`: the markers of the current run, as their rows and effects;
    `open_before`: for a data batch, the transaction that its producer had open before it, None if there was none;
    `newest`: the largest credible timestamp so far, epoch ms; `damages`: number of damaged places so far;
    `without_marker`: filled only if `keeps`, and whoever sets it removes what is in it."""

    saved_fields = {
        "state": TRANSACTIONS,
        **dict.fromkeys(("newest", "damages", "confirmed", "loaded_at"), NUMBER),
        "is_suspect": FLAG,
    }

    def __init__(self) -> None:
        self.state = OpenTransactions()
        self.newest = -1
        self.damages = 0
        self.ended: CompletedTxn | None = None
        self.ended_in_run: list[tuple[int, CompletedTxn]] = []
        self.open_before: OngoingTxn | None = None
        self.start: BrokerStart | None = None
        self.confirmed = 0
        """Number of damaged places before the last snapshot that was applied."""
        self.is_suspect = False
        """Whether a broker that does not check the log may read it in another way."""
        self.log_end = 0
        """The log end offset so far, as a broker reads it."""
        self.loaded_at = -1
        """Offset of the last snapshot that a broker may load."""
        self.keeps = False
        self.without_marker: list[EndedBeforeSnapshot] = []
        self._next = 0
        self._below = sys.maxsize

    @property
    def is_doubtful(self) -> bool:
        """Whether damage since the last snapshot may hide batches."""
        return self.damages != self.confirmed

    def begin(self, part: SegmentContext) -> None:
        self.log_end = part.start_offset if part.start else part.target.name_offset or 0
        self._below = sys.maxsize if part.next_offset is None else part.next_offset
        self._reach(self.log_end, self.log_end)

    def region(self, part: SegmentContext, region: Region) -> None:
        self.damages += may_hide_batches(part, region)
        self.is_suspect = True

    def unread(self) -> None:
        self.damages += 1
        self.state.clear()  # their markers may be in the unreadable part

    def batch(self, seen: BatchContext) -> None:
        batch = seen.batch
        self.ended = self.open_before = None
        if seen.is_valid:
            self._apply(seen, batch)
            return
        self.is_suspect = True
        if seen.repaired is None:
            self.damages += 1
        else:
            self._apply(seen, seen.repaired)

    def _apply(self, seen: BatchContext, batch: Batch) -> None:
        first = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        self._reach(first, batch.lastOffset)
        self.is_suspect = self.is_suspect or first != self.log_end
        self.log_end = batch.lastOffset + 1
        if batch.maxTimestamp is not None and batch.maxTimestamp <= seen.part.modified + DAY:
            self.newest = max(self.newest, batch.maxTimestamp)
        if batch.producerId is None or batch.producerId < 0:
            return
        if not batch.isControlBatch:
            self.open_before = self.state.data(seen.part.target, batch, self.damages)
        elif seen.marker is not None:
            self.ended = self.state.marker(batch.producerId, batch.producerEpoch or 0, batch.lastOffset, seen.marker)

    def finish(self, part: SegmentContext) -> None:
        """Apply the snapshots whose batches damage at the end of the segment hides."""
        if part.next_offset is not None:
            self._reach(part.next_offset - 1, part.next_offset - 1)

    def _reach(self, first: int, last: int) -> None:
        """Apply the snapshots up to offset `first`, before the batch with the offsets `first` to `last`. A damaged base
        offset may be above the segment: the snapshots there are for the next one."""
        points = self.start.points if self.start is not None else []
        while self._next < len(points):
            point = points[self._next]
            if point.offset > (first if point.target is not None else last) or point.offset >= self._below:
                return
            self._next += 1
            self._take(point)

    def _take(self, point: SnapshotPoint) -> None:
        assert self.start is not None
        if point.target is None:
            self.state.load({})
            return
        stored = self.start.open_in(point.target) if point.loads or self.is_doubtful else None
        if stored is None:
            return
        if self.is_doubtful:
            ended = self.state.correct(stored)
            if self.keeps:
                self.without_marker += (EndedBeforeSnapshot(*each, point.target) for each in ended)
            self.confirmed = self.damages
        if point.loads:
            self.state.load(stored)
            self.loaded_at = point.offset

    def continue_at(self, offset: int, *, is_within: bool) -> None:
        """Continue at this offset, that of a segment or `is_within` one, with a restored state. Raises StateError if a
        broker now loads another snapshot below it, unless its transactions are those of the log all the same."""
        points = self.start.points if self.start is not None else []
        below = [point for point in points if point.offset < offset]
        self._next = len(below)
        if is_within and not self.state.loaded:
            return
        if self.loaded_at != max((point.offset for point in below if point.loads and point.target), default=-1):
            raise StateError("the state is of other producer snapshots")

    def end(self) -> None:
        self._reach(self.log_end, self.log_end)
        start = self.start
        if start is None:
            return
        loaded = start.loaded if self.is_suspect else None
        if loaded is not None:
            self._replace(loaded.open)
        elif start.starts_empty or self.log_end <= start.log_start:
            self.state.load({})

    def _replace(self, loaded: Mapping[int, int]) -> None:
        """Note that these are a broker's open transactions, by their first offsets."""
        assert self.start is not None
        for producer_id in self.state.in_broker.keys() - loaded.keys():
            self.state.differ(producer_id, None)
        for producer_id, first in loaded.items():
            stored = (self.state.of_broker(producer_id), self.state.open.get(producer_id))
            same = next((running for running in stored if running is not None and running.first_offset == first), None)
            self.state.differ(producer_id, same or self.start.transaction_at(producer_id, first))

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        points = self.start.points if self.start is not None else []
        for point in points[self._next :]:
            if point.loads or self.is_doubtful:
                column = BASE_OFFSET if point.target is not None else LAST_OFFSET
                stop = within(heads, column, first, stop, 0, point.offset - 1)
                break
        stop, writes = producer_writes(heads, first, stop, False)
        has_room = self.state.has_room(len(writes))
        return min((chain.begins for chain in writes if self._is_suspect(heads, chain, has_room)), default=stop)

    def _is_suspect(self, heads: HeaderColumns, chain: ProducerWrites, has_room: bool) -> bool:
        """Return True if a producer writes outside of its open transaction, there is no room for a new one, the epoch
        of its marker is lower than that of its data, or a broker has another transaction of it."""
        producer_id = heads.of(chain.begins, PRODUCER_ID)
        if producer_id in self.state.loaded:
            return True
        if chain.marker >= 0 and heads.of(chain.marker, PRODUCER_EPOCH) < self.state.epochs.get(producer_id):
            return True
        if chain.first < 0:
            return False
        is_open = not chain.is_next and producer_id in self.state.open
        if heads.of(chain.first, ATTRIBUTES) & IS_TRANSACTIONAL:
            return not (is_open or has_room)
        return is_open

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.ended = self.open_before = None
        self.newest = max(self.newest, largest(heads, MAX_TIMESTAMP, first, stop, part.modified + DAY))
        self.ended_in_run = []
        self.is_suspect = self.is_suspect or are_adjacent(heads, first, stop, self.log_end - 1) < stop
        self.log_end = heads.of(stop - 1, LAST_OFFSET) + 1
        rows = [
            (row, chain)
            for chain in producer_writes(heads, first, stop, False)[1]
            for row in (chain.first, chain.marker)
            if row >= 0
        ]
        for row, chain in sorted(rows):  # in the order in which transactions begin and end
            batch = heads.row(row)
            producer_id, epoch = batch[PRODUCER_ID], batch[PRODUCER_EPOCH]
            if row == chain.marker:
                ended = self.state.marker(producer_id, epoch, batch[LAST_OFFSET], marker_at(heads, row))
                self.ended_in_run.append((row, ended))
                continue
            self.state.wrote(producer_id, epoch)
            if not batch[ATTRIBUTES] & IS_TRANSACTIONAL:
                continue
            running = self.state.open.get(producer_id)
            if running is None:
                running = self.state.begin(
                    producer_id,
                    part.target,
                    batch[BATCH_START] + heads.shift,
                    batch[BATCH_END] - batch[BATCH_START],
                    batch[BASE_OFFSET],
                    epoch,
                    batch[MAX_TIMESTAMP],
                    self.damages,
                )
            last = batch if chain.last == row else heads.row(chain.last)
            running.add(chain.records, chain.batches, chain.bytes, last[LAST_OFFSET], last[MAX_TIMESTAMP], epoch)
