"""What the hour after a startup does to logs whose topics have remote storage.

Source: RemoteLogManager (findHighestRemoteOffset, deleteLogSegmentsDueToLeaderEpochCacheTruncation,
updateRemoteLogStartOffset), UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from kdump.cluster.missing_partitions import metadata_partition_of
from kdump.cluster.remote_log import RemoteLog, read_remote_log
from kdump.format.count_text import offsets_text
from kdump.io import file_system
from kdump.io.run import Limits
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.served_files import current_segments
from kdump.problems.problem import Problem, title_of
from kdump.questions.restart_plan.answer import PartitionPlan
from kdump.questions.restart_plan.course import CERTAIN, FIRST_MINUTES, MAY, RECORDS, Loss, StartupEvent
from kdump.state.effective_config import is_tiered
from kdump.state.metadata_image import MetadataImage


@dataclass
class RemoteStorage:
    """What remote storage has, as far as a node's log directories (`places`) state it: __remote_log_metadata is read
    when a log first depends on it."""

    metadata: MetadataImage
    node: int | None
    places: Collection[LogDirectory]
    limits: Limits

    def has(self, log: PartitionPlan) -> bool:
        """Return whether a live log is of a tiered topic."""
        return not log.state and log.topic in self._tiered

    def after(self, log: PartitionPlan) -> tuple[list[str], tuple[StartupEvent, ...], bool | None]:
        """Return notes on a log that loses records, is missing, or begins after its log start offset, what happens to
        what remote storage has of it, and whether that is what the log loses; None if it is unknown."""
        notes: list[str] = []
        events: tuple[StartupEvent, ...] = ()
        if not self.has(log):
            return notes, events, False
        topic_id = self.metadata.topics[log.topic].id
        start, first = log.logStartOffset or 0, _first_here(log)
        if first is not None and start < first:
            if self._gone and (number := metadata_partition_of(self.metadata, log.topic, log.partition)) in self._gone:
                events = (self._forgotten(log, first, number),)
            start = self._log.start_of(topic_id, log.partition, start)
            if lacks := self._log.lacks(topic_id, log.partition, start, first):
                notes.append(f"tiered: {title_of('offsets-unreadable', offsets=offsets_text(lacks))}")
        if not (log.loses or log.missing):
            return notes, events, False
        last = self._log.end_of(topic_id, log.partition)
        return [*notes, _note(log, last)], events, None if last is None else last >= (log.logEndOffset or 0)

    @cached_property
    def _tiered(self) -> set[str]:
        return {name for name in self.metadata.topics if is_tiered(self.metadata, name)}

    @cached_property
    def _here(self) -> dict[int, str]:
        """The paths of the live partitions of __remote_log_metadata."""
        logs = (log for place in self.places for log in place.partitions if log.topic == REMOTE_METADATA_TOPIC)
        return {log.partition: log.path for log in logs if log.partition is not None and not log.state}

    @cached_property
    def _log(self) -> RemoteLog:
        topic = self.metadata.topics.get(REMOTE_METADATA_TOPIC)
        paths = [path for path in self._here.values() if file_system.isdir(path)]
        return read_remote_log(paths, None if topic is None else len(topic.partitions), self.limits)

    @cached_property
    def _gone(self) -> set[int]:
        """The partitions of __remote_log_metadata of which this broker had the only replica, and has nothing."""
        topic = self.metadata.topics.get(REMOTE_METADATA_TOPIC)
        registered = {} if topic is None else topic.partitions
        sole = {number for number, partition in registered.items() if partition.replicas == (self.node,)}
        return sole - self._here.keys()

    def _forgotten(self, log: PartitionPlan, first: int, number: int) -> StartupEvent:
        """Return that the leader, which finds no segment in the remote metadata, raises the log start offset to the
        first one on the disk."""
        start = log.logStartOffset or 0
        problem = Problem("startup-remote-metadata-gone", {"number": number, "start": start, "first": first})
        elsewhere = None if log.replicas is None else log.replicas.brokers
        loss = Loss(RECORDS, MAY if elsewhere else CERTAIN, None, first - start, None, start, first - 1, elsewhere)
        return StartupEvent(FIRST_MINUTES, problem, 0, "", self.node, log.topic, log.partition, log.path, loss)


def _first_here(log: PartitionPlan) -> int | None:
    """Return the base offset of the first segment on the disk; None if there is none, or the log does not load."""
    names = [] if log.missing or log.logStartOffset is None else current_segments(log.path)
    return int(names[0][:20]) if names else None


def _note(log: PartitionPlan, last: int | None) -> str:
    """Return what remote storage has. `last`: the last offset that was ever copied, -1 for none, None if unknown."""
    end = log.logEndOffset or 0
    case = "unknown" if last is None else "nothing" if last == -1 else "" if last < end else "has"
    is_empty = log.missing or not log.epochsAfter
    led = title_of("startup-remote-copy", "led" + ("Empty" if is_empty else ""), end=end)
    return title_of("startup-remote-copy", case, last=last, led=led)
