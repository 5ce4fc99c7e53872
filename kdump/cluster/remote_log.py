"""Reads from __remote_log_metadata up to which offset each tiered partition was copied to remote storage.

Source: org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataCache and RemoteLogLeaderEpochState
(highestLogOffset: counts segments whose copy has finished, even if they were deleted since), RemoteLogSegmentState, and
RemoteLogMetadataTopicPartitioner (all records of a partition are in the same partition of the topic).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdump.cluster.internal_log import bounded, read_records
from kdump.cluster.topic_coverage import TopicCoverage
from kdump.format.iso_time import iso
from kdump.format.metadata_record import decode_metadata_record
from kdump.io.errors import reason
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.served_files import segments_in
from kdump.state.internal_records import MAX_PROBLEMS, too_large

COPIED = 1
"""COPY_SEGMENT_FINISHED. Segments in the delete states (2, 3) had this state before."""
DELETED = (2, 3)
"""DELETE_SEGMENT_STARTED and DELETE_SEGMENT_FINISHED: no broker reads the segment any more."""
MAX_KEPT = 1_000_000
"""Maximum number of partitions, and of unfinished segment copies, that are kept."""
Partition = tuple[str, int]
"""Topic ID and partition number."""


class BegunCopy(NamedTuple):
    """A copy of a segment to remote storage that has begun (COPY_SEGMENT_STARTED): its first and last offset, when and
    by which broker it was begun, and the offset of that record."""

    place: Partition
    first: int
    last: int
    time: int
    broker: int
    record: int

    @property
    def text(self) -> str:
        return (
            f"the copy of offsets {self.first}..{self.last} by broker {self.broker} has neither finished nor failed "
            f"since {iso(self.time)} (COPY_SEGMENT_STARTED at offset {self.record} of {REMOTE_METADATA_TOPIC})"
        )


@dataclass
class RemoteLog:
    """Contents of __remote_log_metadata. `ends`: by partition, the last offset ever copied to remote storage, -1 for
    none; `begun`: by ID, copies that have neither finished nor been given up; `copied`: by ID, the partition and the
    first and last offset of each segment that is there. `is_complete`: every partition of __remote_log_metadata was
    found and could be read. `problems`: one line for each thing that could not be read."""

    ends: dict[Partition, int] = field(default_factory=dict)
    begun: dict[str, BegunCopy] = field(default_factory=dict)
    copied: dict[str, tuple[Partition, int, int]] = field(default_factory=dict)
    is_complete: bool = False
    problems: list[str] = field(default_factory=list)

    def end_of(self, topic_id: str | None, partition: int | None) -> int | None:
        """Return the last offset of a partition ever copied to remote storage; -1 for none, None if unknown."""
        if topic_id is None or partition is None:
            return None
        return self.ends.get((topic_id, partition), -1 if self.is_complete else None)

    def start_of(self, topic_id: str | None, partition: int | None) -> int:
        """Return the log start offset of a tiered partition that log-start-offset-checkpoint does not list: where its
        first segment in remote storage begins (RemoteLogManager.updateLogStartOffset); 0 if none is known, as
        LogLoader.load sets it."""
        return min((first for place, first, _ in self.copied.values() if place == (topic_id, partition)), default=0)

    def copy_of(self, topic_id: str | None, partition: int | None) -> BegunCopy | None:
        """Return the last copy of offsets above `end_of` that has begun; None if there is none."""
        end = self.end_of(topic_id, partition)
        mine = [each for each in self.begun.values() if each.place == (topic_id, partition)]
        return next((each for each in reversed(mine) if end is not None and each.last > end), None)

    def lacks(self, topic_id: str | None, partition: int | None, start: int, stop: int) -> list[tuple[int, int]] | None:
        """Return which of the offsets from `start` to before `stop` no segment in remote storage has, as pairs of first
        and last offset: no broker finds them there, even if the store has their object. None if unknown."""
        if topic_id is None or partition is None or not self.is_complete:
            return None
        here = sorted((first, last) for place, first, last in self.copied.values() if place == (topic_id, partition))
        lacking, offset = [], start
        for first, last in [*here, (stop, stop)]:
            if offset < min(first, stop):
                lacking.append((offset, min(first, stop) - 1))
            offset = max(offset, last + 1)
        return lacking


def read_remote_log(
    directories: Sequence[str], partition_count: int | None, limits: Limits = PLAIN_RUN.limits
) -> RemoteLog:
    """Read `directories`, the partitions of __remote_log_metadata on the disk. `partition_count`: how many the cluster
    has (None: unknown). Never raises: what cannot be read is listed in `problems`."""
    log = RemoteLog()

    def note(problem: str) -> None:
        if len(log.problems) < MAX_PROBLEMS:
            log.problems.append(problem)

    for directory in directories:
        try:
            segments = segments_in(directory)
        except OSError as error:
            note(f"{directory}: {reason(error, directory)}")
            continue
        for name in segments:
            for record in read_records(os.path.join(directory, name), note, Run(bounded(limits))):
                if record is None or record.is_control or too_large(record):
                    continue
                decoded = decode_metadata_record(record.value, "storage")
                if decoded.newer:
                    note(f"{REMOTE_METADATA_TOPIC}: at offset {record.offset}: {decoded.newer}")
                elif decoded.values is None or decoded.problem is not None:
                    note(f"{REMOTE_METADATA_TOPIC}: the record at offset {record.offset} cannot be decoded")
                if decoded.values is not None and decoded.problem is None:
                    _apply(log, decoded.values, record.offset or 0)
    numbers = {int(directory.rpartition("-")[2]) for directory in directories}
    whole = TopicCoverage(REMOTE_METADATA_TOPIC, frozenset(numbers), partition_count).is_complete
    log.is_complete = whole and not log.problems and len(log.copied) < MAX_KEPT
    return log


def _apply(log: RemoteLog, values: dict[str, Any], offset: int) -> None:
    segment = values.get("remoteLogSegmentId")
    if segment is None:
        return
    place = segment["topicIdPartition"]
    key = (place["id"], place["partition"])
    if "endOffset" in values and len(log.begun) < MAX_KEPT:
        first, last, time = (values[name] for name in ("startOffset", "endOffset", "eventTimestampMs"))
        log.begun[segment["id"]] = BegunCopy(key, first, last, time, values["brokerId"], offset)
    if len(log.ends) < MAX_KEPT:
        log.ends.setdefault(key, -1)
    state = values.get("remoteLogSegmentState")
    if state == COPIED and key in log.ends:
        begun = log.begun.pop(segment["id"], None)
        if begun is not None:
            log.ends[key] = max(log.ends[key], begun.last)
            if len(log.copied) < MAX_KEPT:
                log.copied[segment["id"]] = key, begun.first, begun.last
    elif state in DELETED:
        log.begun.pop(segment["id"], None)
        log.copied.pop(segment["id"], None)
