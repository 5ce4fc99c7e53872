"""Log start and end offsets of the partitions on a disk, according to their files.

Source: org.apache.kafka.storage.internals.log.LogLoader (log start), OffsetCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kdump.kafka.small_files import offsets
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, log_start_offset
from kdump.state.metadata_image import MetadataImage
from kdump.state.partition_summary import log_end
from kdump.state.topic_config import is_tiered
from kdump.state.unknown_offsets import UNREADABLE


class LogOffsets(NamedTuple):
    """A replica on a disk. `logEndOffset`: the offset after the last valid batch of its files; `highWatermark`: the
    last checkpointed one (every 5 s), None if there is none. `path` is its directory."""

    logStartOffset: int
    logEndOffset: int
    highWatermark: int | None
    path: str


class LogOffsetsByPartition:
    """The partitions of log directories; each is examined on first use. `metadata`: shows which topics are tiered;
    `problems`: as in Groups."""

    def __init__(self, directories: Sequence[LogDirectory], metadata: MetadataImage | None = None) -> None:
        self.metadata = metadata
        self.problems: list[str] = []
        self.found: dict[tuple[str, int], list[tuple[LogDirectory, PartitionDirectory]]] = {}
        self.deleted: set[str] = set()
        """Topics with a directory that is still being deleted."""
        self._checkpoints: dict[str, dict[tuple[str, int], int]] = {}
        self._ends: dict[tuple[str, int], LogOffsets | None] = {}
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
            found = [self._of(directory, each) for directory, each in self.found.get(key, ())]
            known = [end for end in found if end is not None]
            self._ends[key] = max(known, key=lambda end: end.logEndOffset, default=None)
        return self._ends[key]

    def _of(self, directory: LogDirectory, partition: PartitionDirectory) -> LogOffsets | None:
        assert partition.topic is not None
        assert partition.partition is not None
        key = (partition.topic, partition.partition)
        if not partition.segments:
            return None
        checkpointed = self._checkpoint(directory, "log-start-offset").get(key)
        first = partition.segments[0].offset
        start = log_start_offset(checkpointed, first, is_tiered(self.metadata, partition.topic))
        assert start is not None
        end = log_end(partition, self.problems)
        mark = self._checkpoint(directory, "replication-offset").get(key)
        return None if end is None else LogOffsets(start, end, mark, partition.path)

    def _checkpoint(self, directory: LogDirectory, name: str) -> dict[tuple[str, int], int]:
        target = directory.files.get(f"{name}-checkpoint")
        if target is None:
            return {}
        if target.path not in self._checkpoints:
            self._checkpoints[target.path], unknown = offsets(target)
            self.problems += [unknown.reason] if unknown and unknown.code == UNREADABLE else []
        return self._checkpoints[target.path]
