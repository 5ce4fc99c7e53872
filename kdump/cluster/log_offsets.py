"""Log start and end offsets of the partitions on a disk, according to their files.

Source: org.apache.kafka.storage.internals.log.LogLoader (log start), OffsetCheckpointFile."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.cluster.partition_summary import log_end
from kdump.cluster.release_evidence import applied_release
from kdump.format.errors import DecodeError
from kdump.format.number_range import Range
from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.kafka.checkpoint_file import BadLine, epochs
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.kafka.small_files import offsets
from kdump.log.batch_records import records
from kdump.log.batch_validity import is_valid
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, current, log_start_offset
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from kdump.state.effective_config import is_tiered
from kdump.state.metadata_image import MetadataImage, PartitionRegistration
from kdump.state.unknown_offsets import UNREADABLE

if TYPE_CHECKING:
    from kdump.cluster.remote_log import RemoteLog

MOST_COUNTED = 1000
"""Maximum number of offsets among which records are counted."""
MOST_TAILS = 1000
"""Maximum number of partitions whose last offsets are kept."""


class LogOffsets(NamedTuple):
    """A replica on a disk. `logEndOffset`: that of `log_end`; `highWatermark`: the
    last checkpointed one (every 5 s), None if there is none. `path` is its directory. `is_behind`: whether the leader's
    log may end later: the metadata names another leader, whose replica is not on these disks. `localStart`: the first
    offset on the disk, above logStartOffset if the records before it are in remote storage."""

    logStartOffset: int
    logEndOffset: int
    highWatermark: int | None
    path: str
    is_behind: bool = False
    localStart: int = 0


class LogOffsetsByPartition:
    """The partitions of log directories; each is examined on first use. `metadata`: shows which topics are tiered, and
    who leads them; `node_id`: whose a log directory is, None if unknown; `remote` reads its __remote_log_metadata;
    `problems`: as in Groups."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        metadata: MetadataImage | None = None,
        node_id: Callable[[LogDirectory], int | None] = lambda directory: None,
        remote: Callable[[LogDirectory], RemoteLog] | None = None,
    ) -> None:
        self.metadata, self.remote = metadata, remote
        self._remote_logs: dict[str, RemoteLog] = {}
        self.node_id = node_id
        self.problems: list[str] = []
        self.found: dict[tuple[str, int], list[tuple[LogDirectory, PartitionDirectory]]] = {}
        self.deleted: set[str] = set()
        """Topics with a directory that is still being deleted."""
        self._checkpoints: dict[str, dict[tuple[str, int], int]] = {}
        self._ends: dict[tuple[str, int], LogOffsets | None] = {}
        self._epochs: dict[str, Sequence[EpochEntry]] = {}
        self._tails: dict[tuple[str, int], tuple[int, array[int]]] = {}
        """Of each partition, the offsets of its last records, and from which offset on they are all known: many groups
        read one topic."""
        for directory in directories:
            for partition in directory.partitions:
                if partition.topic is None or partition.partition is None:
                    continue
                if partition.state == "delete":
                    self.deleted.add(partition.topic)
                elif not partition.state:
                    key = (partition.topic, partition.partition)
                    self.found.setdefault(key, []).append((directory, partition))

    def end(self, topic: str, partition: int) -> LogOffsets | None:
        """Return the replica with the highest log end offset; None if no replica has a segment."""
        key = (topic, partition)
        if key not in self._ends:
            ends = [self._of(directory, place) for directory, place in self.found.get(key, ())]
            known = [end for end in ends if end is not None]
            newest = max(known, key=lambda end: end.logEndOffset, default=None)
            self._ends[key] = None if newest is None else newest._replace(is_behind=self._is_behind(topic, partition))
        return self._ends[key]

    @property
    def behind(self) -> dict[str, int]:
        """The partitions whose end was asked for, and may be later on their leader, with that; -1: no leader."""
        every = {f"{at[0]}-{at[1]}": at for at, end in self._ends.items() if end is not None and end.is_behind}
        return {name: self._leader(*every[name]) for name in sorted(every)}

    def _leader(self, topic: str, partition: int) -> int:
        registration = self._registration(topic, partition)
        return -1 if registration is None else registration.leader

    def _registration(self, topic: str, partition: int) -> PartitionRegistration | None:
        described = self.metadata.topics.get(topic) if self.metadata is not None else None
        return None if described is None else described.partitions.get(partition)

    def _is_behind(self, topic: str, partition: int) -> bool:
        """Return True if no replica here is the leader's or, without a leader, one with all committed records."""
        registration = self._registration(topic, partition)
        nodes = {self.node_id(directory) for directory, _ in self.found.get((topic, partition), ())}
        if registration is None or None in nodes or nodes >= set(registration.replicas):
            return False
        has_all = {*registration.isr, *registration.eligibleLeaderReplicas}
        return not nodes & ({registration.leader} if registration.leader >= 0 else has_all)

    def epochs(self, topic: str, partition: int) -> Sequence[EpochEntry]:
        """Return the leader epochs of that replica; none if they cannot be read."""
        end = self.end(topic, partition)
        if end is not None and end.path not in self._epochs:
            self._epochs[end.path] = ()
            with suppress(BadLine, SourceError, OSError):
                self._epochs[end.path] = epochs(os.path.join(end.path, "leader-epoch-checkpoint")) or ()
        return () if end is None else self._epochs[end.path]

    def records_from(self, topic: str, partition: int, offset: int) -> int | None:
        """Return how many records are at `offset` and after it: markers, and offsets that compaction has removed, are
        none. None if more than MOST_COUNTED offsets are left, or if damage is among them."""
        end = self.end(topic, partition)
        if end is None or not 0 <= end.logEndOffset - offset <= MOST_COUNTED:
            return None
        if offset < max(end.logStartOffset, end.localStart):  # deleted, or in remote storage
            return None
        if offset == end.logEndOffset:
            return 0
        if (topic, partition) not in self._tails:
            place = next(other for _, other in self.found[topic, partition] if other.path == end.path)
            if len(self._tails) >= MOST_TAILS:
                del self._tails[next(iter(self._tails))]
            self._tails[topic, partition] = _tail(
                place, max(end.logStartOffset, end.localStart, end.logEndOffset - MOST_COUNTED), end
            )
        first, offsets = self._tails[topic, partition]
        return None if offset < first else len(offsets) - bisect_left(offsets, offset)

    def _of(self, directory: LogDirectory, partition: PartitionDirectory) -> LogOffsets | None:
        topic, number = partition.topic, partition.partition
        assert topic is not None
        assert number is not None
        key = topic, number
        partition = current(partition)  # a committed offset may be in a segment that was rolled since
        if not partition.segments:
            return None
        checkpointed = self._checkpoint(directory, "log-start-offset").get(key)
        first = partition.segments[0].offset
        tiered = is_tiered(self.metadata, topic)
        if tiered and first > (checkpointed or 0) and self.remote is not None and self.metadata is not None:
            described = self.metadata.topics[topic]
            if directory.path not in self._remote_logs:
                self._remote_logs[directory.path] = self.remote(directory)
            checkpointed = self._remote_logs[directory.path].start_of(described.id, number, checkpointed)
        start = log_start_offset(checkpointed, first, tiered)
        assert start is not None
        end = log_end(
            partition,
            had_clean_shutdown(directory),
            self.problems,
            lambda: applied_release([directory.path], self.metadata, None).release,
        )
        mark = self._checkpoint(directory, "replication-offset").get(key)
        return None if end is None else LogOffsets(start, max(start, end), mark, partition.path, localStart=first)

    def _checkpoint(self, directory: LogDirectory, name: str) -> dict[tuple[str, int], int]:
        target = directory.files.get(f"{name}-checkpoint")
        if target is None:
            return {}
        if target.path not in self._checkpoints:
            self._checkpoints[target.path], unknown = offsets(target)
            self.problems += [unknown.reason] if unknown and unknown.code == UNREADABLE else []
        return self._checkpoints[target.path]


def _tail(place: PartitionDirectory, first: int, end: LogOffsets) -> tuple[int, array[int]]:
    """Return the offsets of the records from `first` on, without markers, and the offset from which on they are all
    known: after the last damage."""
    scan = RegionScan(Selection(offsets=Range(first, end.logEndOffset)), Limits(), keeps=True)
    logs = [each.log for each in place.segments if each.log is not None]
    later = [number for number, each in enumerate(logs) if (each.name_offset or 0) > first]
    offsets, known = array("q"), True
    for log in logs[max(0, (later[0] if later else len(logs)) - 1) :]:
        try:
            window = scan.open(log)
            with closing(window.source):
                for region in scan.chosen(log, window):
                    if not isinstance(region, Batch) or not is_valid(region):
                        offsets, known = array("q"), False
                        continue
                    if not known:
                        first, known = region.baseOffset or 0, True
                    if not region.isControlBatch:
                        offsets.extend(each.offset or 0 for each in records(region, values=False))
        except (SourceError, DecodeError):
            offsets, known = array("q"), False
    return (first if known else end.logEndOffset), offsets
