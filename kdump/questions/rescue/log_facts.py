"""What the files of one copy of a partition show: its leader epochs and end, and settings that the log was written
with. The headers of all batches are read, not their records.

Source: LogLoader.recoverLog (a log that was not shut down cleanly ends before the first damage above its recovery
point), LogCleaner (only it leaves gaps between the offsets of records).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing

from kdump.core.column_numbers import ATTRIBUTES, LAST_OFFSET, LEADER_EPOCH, PRODUCER_ID
from kdump.core.column_numbers import BASE_OFFSET as BASE
from kdump.format.batch_header import CONTROL, TIMESTAMP_TYPE
from kdump.io.run import Run
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.follower_truncation import EpochLineage
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.log import file_kinds
from kdump.log.batch_validity import is_valid
from kdump.log.entries import Entry, entries
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.region import PADDING, TORN, Batch, BatchRun, Region
from kdump.log.segment_summary import summarize_headers
from kdump.log.walk import RegionObserver
from kdump.questions.rescue.answer import RescueError
from kdump.state.partition_summary import open_window


class LogFacts(RegionObserver):
    """`known`: the partition's offsets, by the name of the checkpoint. `lineage`: leader epochs, start, end and high
    watermark, as a broker has them after startup; `damaged`: offset from which on the log is damaged, None if no header
    shows that; `newest`: largest timestamp, epoch ms; `producer_id`, `coordinator_epoch`: the highest; `has_gaps`:
    offsets of closed segments have no record, as after compaction; `append_time`: whether the last data batch has the
    time of the append; `closed`: size in bytes of the largest closed segment; `remote_start`: log start offset below
    the first segment, None if there is none.

    Raises RescueError if the directory cannot be listed."""

    def __init__(self, log: PartitionDirectory, known: Mapping[str, int], clean: bool, run: Run) -> None:
        if log.listing_errors:
            raise RescueError(log.listing_errors[0])
        self.damaged: int | None = None
        self.newest = self.producer_id = self.coordinator_epoch = -1
        self.has_gaps = self.append_time = False
        self.closed = 0
        self._epochs: list[EpochEntry] = []
        self._next = 0
        """Offset after the last valid batch so far."""
        end = 0
        segments = log.segments
        for number, segment in enumerate(segments):
            assert segment.log is not None
            window = open_window(segment.log)
            self._next = segment.offset
            damaged = self.damaged
            with closing(window.source):
                found = summarize_headers(segment.log, window, run=run, others=(self,))
                size = window.source.size or 0
            self.damaged = self.damaged if damaged is None else damaged
            self.newest = max(self.newest, -1 if found.newest is None else found.newest)
            end = max(segment.offset, end if found.last is None else found.last + 1)
            if number + 1 < len(segments):
                self.closed = max(self.closed, size)
                if not found.damage and found.records is not None and found.last is not None:
                    self.has_gaps = self.has_gaps or found.last + 1 - segment.offset > found.records
        if self.damaged is not None and not clean and self.damaged >= known.get("recovery-point-offset", 0):
            end = min(end, self.damaged)
        first = segments[0].offset if segments else 0
        start = known.get("log-start-offset", 0)
        self.remote_start = start if start < first else None
        epochs = self._checkpointed(log)
        lineage = EpochLineage(tuple(epochs or self._epochs), max(first, start), end, known.get("replication-offset"))
        self.lineage = lineage.loaded()
        self.epoch = max((each.epoch for each in (*(epochs or ()), *self._epochs)), default=-1)
        self._snapshots(log)

    def region(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            heads = region.headers
            self.producer_id = max(self.producer_id, max(heads.column(PRODUCER_ID)))
            self._next = heads.of(len(heads) - 1, LAST_OFFSET) + 1
            if max(heads.column(LEADER_EPOCH)) > self._last_epoch:
                for row in range(len(heads)):
                    self._led(heads.of(row, LEADER_EPOCH), heads.of(row, BASE))
            for attributes in reversed(heads.column(ATTRIBUTES)):
                if not attributes & CONTROL.mask:
                    self.append_time = bool(attributes & TIMESTAMP_TYPE.mask)
                    break
        elif isinstance(region, Batch) and is_valid(region):
            self.producer_id = max(self.producer_id, -1 if region.producerId is None else region.producerId)
            self._led(region.partitionLeaderEpoch or 0, region.lastOffset - (region.lastOffsetDelta or 0))
            self._next = region.lastOffset + 1
            if not region.isControlBatch:
                self.append_time = bool(region.attributes & TIMESTAMP_TYPE.mask)
        elif region.kind not in (PADDING, TORN) and self.damaged is None:
            self.damaged = self._next

    @property
    def _last_epoch(self) -> int:
        return self._epochs[-1].epoch if self._epochs else -1

    def _led(self, epoch: int, offset: int) -> None:
        if epoch > self._last_epoch:
            self._epochs.append(EpochEntry(epoch, offset))

    @staticmethod
    def _checkpointed(log: PartitionDirectory) -> list[EpochEntry] | None:
        try:
            return checkpoint_file.epochs(os.path.join(log.path, "leader-epoch-checkpoint"))
        except BadLine:
            return None

    def _snapshots(self, log: PartitionDirectory) -> None:
        """Read the producer snapshots that are valid."""
        for target in log.snapshots:
            window = open_window(target)
            with closing(window.source):
                found = list(entries(file_kinds.PRODUCER_SNAPSHOT, window, target.name_offset or 0))
            rows = [each.values for each in found if isinstance(each, Entry) and each.type]
            if len(rows) + 1 == len(found):
                self.producer_id = max([self.producer_id, *(each["producerId"] for each in rows)])
                self.coordinator_epoch = max([self.coordinator_epoch, *(each["coordinatorEpoch"] for each in rows)])
