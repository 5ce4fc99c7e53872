"""Reads from __remote_log_metadata up to which offset each tiered partition was copied to remote storage.

Source: org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataCache and RemoteLogLeaderEpochState
(highestLogOffset: counts segments whose copy has finished, even if they were deleted since), RemoteLogSegmentState, and
RemoteLogMetadataTopicPartitioner (all records of a partition are in the same partition of the topic)."""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from kdump.cluster.internal_log import bounded, read_records
from kdump.cluster.topic_coverage import TopicCoverage
from kdump.format.iso_time import iso
from kdump.format.metadata_record import decode_metadata_record
from kdump.io.directory_listing import length
from kdump.io.errors import reason
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.live_files import identity
from kdump.log.lock_holder import is_running
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.served_files import segments_in
from kdump.state.internal_records import MAX_PROBLEMS, too_large

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = range(4)
"""RemoteLogSegmentState. No broker reads a segment in one of the last two states."""
MAX_OFFSET = 1 << 63
UNDER_WAY = 10 * 60 * 1000
"""Age in ms up to which a copy of a segment to remote storage, or its deletion, may be under way."""
MAX_KEPT = 1_000_000
"""Maximum number of partitions, and of segments, that are kept."""
Partition = tuple[str, int]
"""Topic ID and partition number."""


class RemoteSegment(NamedTuple):
    """A segment as __remote_log_metadata states it. `place`: its partition; `first`, `last`: its offsets; `size` in
    bytes; `time` in epoch ms, `broker` and `record`: of the record, at that offset, that set its state."""

    id: str
    place: Partition
    topic: str
    first: int
    last: int
    size: int
    max_timestamp: int
    epochs: tuple[tuple[int, int], ...]
    """Its leader epochs and the first offset of each."""
    has_txn_index: bool | None
    """None if the record is of a release that does not state it (before 4.0)."""
    state: int
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
    none; `segments`: those that were not deleted, by partition and ID; `count`: of them; `expired`: first and last
    offsets of what was deleted after it was copied, in the order of its deletion. `is_complete`: every partition of
    __remote_log_metadata was found and could be read. `problems`: one line for each thing that could not be read."""

    ends: dict[Partition, int] = field(default_factory=dict)
    segments: dict[Partition, dict[str, RemoteSegment]] = field(default_factory=dict)
    expired: dict[Partition, list[tuple[int, int]]] = field(default_factory=dict)
    count: int = 0
    is_complete: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def copied_ids(self) -> set[str]:
        """The IDs of the segments that a broker may read."""
        every = chain.from_iterable(here.values() for here in self.segments.values())
        return {segment.id for segment in every if segment.state == COPY_FINISHED}

    def of(self, topic_id: str | None, partition: int | None, *states: int) -> list[RemoteSegment]:
        """Return a partition's segments in one of these states, in the order of their records."""
        if topic_id is None or partition is None:
            return []
        here = self.segments.get((topic_id, partition), {}).values()
        return [segment for segment in here if segment.state in states]

    def end_of(self, topic_id: str | None, partition: int | None) -> int | None:
        """Return the last offset of a partition ever copied to remote storage; -1 for none, None if unknown."""
        if topic_id is None or partition is None:
            return None
        return self.ends.get((topic_id, partition), -1 if self.is_complete else None)

    def start_of(
        self,
        topic_id: str | None,
        partition: int | None,
        checkpointed: int | None = None,
        deleted: int | None = None,
        lineage: Sequence[tuple[int, int]] = (),
    ) -> int:
        """Return the log start offset of a tiered partition. If log-start-offset-checkpoint does not list it: where its
        first segment in remote storage begins (RemoteLogManager.updateLogStartOffset); 0 if none is known, as
        LogLoader.load sets it. Else the `checkpointed` one, which is up to a minute old, raised over the segments that
        were deleted since: the leader raises it before (RLMExpirationTask.cleanupExpiredRemoteLogSegments). `deleted`:
        see deleted_below; `lineage`: see `lacks`."""
        start = checkpointed
        if start is None:
            start = min((segment.first for segment in self.of(topic_id, partition, COPY_FINISHED)), default=0)
        for first, last in sorted(self.expired.get((topic_id or "", partition or 0), ())):
            start = last + 1 if first <= start <= last else start
        lacking = None if deleted is None else self.lacks(topic_id, partition, start, deleted, lineage)
        return lacking[0][1] + 1 if lacking and lacking[0][0] == start else start

    def copy_of(self, topic_id: str | None, partition: int | None) -> RemoteSegment | None:
        """Return the last copy of offsets above `end_of` that has begun; None if there is none."""
        end = self.end_of(topic_id, partition)
        begun = self.of(topic_id, partition, COPY_STARTED)
        return next((segment for segment in reversed(begun) if end is not None and segment.last > end), None)

    def lacks(
        self,
        topic_id: str | None,
        partition: int | None,
        start: int,
        stop: int,
        lineage: Sequence[tuple[int, int]] = (),
    ) -> list[tuple[int, int]] | None:
        """Return which of the offsets from `start` to before `stop` no segment in remote storage has, as pairs of first
        and last offset: no broker finds them there, even if the store has their object. None if unknown. `lineage`: the
        leader epochs of the log, each with its first offset: the leader looks for an offset in its epoch
        (RemoteLogManager.fetchRemoteLogSegmentMetadata); without it, in any."""
        if topic_id is None or partition is None or not self.is_complete:
            return None
        here, ends, ranges = [*self._by_epoch(topic_id, partition)], _epoch_ends(lineage), []
        for (epoch, first, last, _), (after, following, *_) in zip(here, [*here[1:], (None, 0, 0, None)]):
            if after == epoch:  # the broker takes the segment whose first offset is the largest that is not above
                last = min(last, following - 1)
            if not lineage:
                ranges.append((first, last))
            elif epoch in ends:
                ranges.append((max(first, ends[epoch][0]), min(last, ends[epoch][1] - 1)))
        return uncovered(ranges, start, stop)

    def in_log(
        self, topic_id: str | None, partition: int | None, lineage: Sequence[tuple[int, int]] = ()
    ) -> list[RemoteSegment]:
        """Return the segments that a log with this lineage has in remote storage, in the order of their offsets."""
        finished = self.of(topic_id, partition, COPY_FINISHED)
        ordered = sorted(finished, key=lambda each: (each.first, -each.last, -each.record))
        return [segment for segment in ordered if offsets_in(segment, lineage)]

    def superseded(self, topic_id: str | None, partition: int | None) -> set[str]:
        """Return the IDs of the segments that no broker reads, because a later leader has copied their offsets
        again."""
        referenced = {segment.id for *_, segment in self._by_epoch(topic_id, partition)}
        return {segment.id for segment in self.of(topic_id, partition, COPY_FINISHED)} - referenced

    def _by_epoch(self, topic_id: str | None, partition: int | None) -> Iterator[tuple[int, int, int, RemoteSegment]]:
        """Yield the segments that a broker reads, by leader epoch (-1: the record has none) and the first and last
        offset of the segment in that, in ascending order
        (RemoteLogLeaderEpochState.handleSegmentWithCopySegmentFinishedState)."""
        starts: dict[int, list[int]] = {}
        found: dict[tuple[int, int], tuple[int, RemoteSegment]] = {}
        highest: dict[int, int] = {}
        for segment in sorted(self.of(topic_id, partition, COPY_FINISHED), key=lambda each: each.record):
            for epoch, first, last in _epoch_ranges(segment):
                here = starts.setdefault(epoch, [])
                while here and here[-1] >= first and highest[epoch] <= last:
                    del found[epoch, here.pop()]
                if (epoch, first) not in found:
                    insort(here, first)
                found[epoch, first] = last, segment
                highest[epoch] = max(highest.get(epoch, -1), last)
        for epoch, offsets in sorted(starts.items()):
            yield from ((epoch, first, *found[epoch, first]) for first in offsets)

    def served(
        self, topic_id: str, partition: int, start: int, stop: int, lineage: Sequence[tuple[int, int]] = ()
    ) -> list[tuple[RemoteSegment, int]]:
        """Return the segments from which a broker reads the offsets from `start` to before `stop`, in their order, each
        with the offset at which the next one, or the local log, begins. `lineage`: see `lacks`."""
        here: list[RemoteSegment] = []
        for segment in self.in_log(topic_id, partition, lineage):
            is_inside = here and segment.last <= here[-1].last  # RemoteLogLeaderEpochState: it is unreferenced
            if not (is_inside or segment.last < start or segment.first >= stop):
                here.append(segment)
        return [*zip(here, [*(each.first for each in here[1:]), stop])]


def _epoch_ranges(segment: RemoteSegment) -> list[tuple[int, int, int]]:
    """Return the leader epochs of a segment, -1 if its record has none, each with its first and last offset there."""
    epochs = segment.epochs or ((-1, segment.first),)
    ends = [first for _, first in epochs[1:]] + [segment.last + 1]
    return [(epoch, first, end - 1) for (epoch, first), end in zip(epochs, ends)]


def _epoch_ends(lineage: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the first offset of each leader epoch of a log, and the one after its last."""
    return {epoch: (first, end) for (epoch, first), (_, end) in zip(lineage, [*lineage[1:], (0, MAX_OFFSET)])}


def offsets_in(segment: RemoteSegment, lineage: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and last offsets that a leader finds in a segment, in each epoch of its log; those of the
    segment without a lineage."""
    if not lineage:
        return [(segment.first, segment.last)]
    ends, here = _epoch_ends(lineage), []
    for epoch, first, last in _epoch_ranges(segment):
        low, end = ends.get(epoch, (MAX_OFFSET, 0))
        here.append((max(first, low), min(last, end - 1)))
    return [offsets for offsets in here if offsets[0] <= offsets[1]]


def deleted_below(place: PartitionDirectory, checkpoint: Target | None) -> int | None:
    """Return the first offset of the segments here if a broker at work may have deleted some before it since it wrote
    the `checkpoint` of its log start offset (None: it has not): kafka-delete-records.sh raises that also over what was
    not copied. None if it has deleted none."""
    if not (place.segments and is_running(os.path.dirname(os.path.abspath(place.path)))):
        return None
    listed, written = identity(place.path), None if checkpoint is None else identity(checkpoint.path)
    is_newer = listed is not None and written is not None and listed.modified < written.modified
    return None if is_newer else place.segments[0].offset


def never_copied(bases: Sequence[int], snapshots: Collection[int], end: int | None) -> int | None:
    """Return the base offset of the segment after the first that is to be copied, if its producer snapshot is missing:
    the broker then copies neither that segment nor a later one (RemoteLogManager.copyLogSegment). `end`: the last
    offset in remote storage, None if unknown."""
    following = next((later for later in bases[1:] if end is not None and later - 1 > end), None)
    return None if following in snapshots else following


def uncovered(ranges: Iterable[tuple[int, int]], start: int, stop: int) -> list[tuple[int, int]]:
    """Return which of the offsets from `start` to before `stop` are in none of the ranges, each with its last offset;
    so are those returned."""
    lacking, offset = [], start
    for first, last in [*sorted(pair for pair in ranges if pair[0] <= pair[1]), (stop, stop)]:
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
    log.is_complete = whole and not log.problems and log.count < MAX_KEPT
    return log


def longest_copies(directories: Sequence[str]) -> list[str]:
    """Return of each partition among the directories the one whose last segment begins at the highest offset; of
    several, the largest."""
    longest: dict[str, tuple[tuple[str, int], str]] = {}
    for directory in directories:
        with suppress(OSError):  # which read_remote_log states
            names = segments_in(directory)
            last = names[-1] if names else ""
            order = last, length(os.path.join(directory, last)) or 0
            number = directory.rpartition("-")[2]
            longest[number] = max(longest.get(number, (("", -1), "")), (order, directory))
    return [directory for _, directory in longest.values()]


def _apply(log: RemoteLog, values: dict[str, Any], offset: int) -> None:
    segment = values.get("remoteLogSegmentId")
    if segment is None:
        return
    place = segment["topicIdPartition"]
    key = (place["id"], place["partition"])
    if len(log.ends) < MAX_KEPT:
        log.ends.setdefault(key, -1)
    state = values["remoteLogSegmentState"]
    by = state, values["eventTimestampMs"], values["brokerId"], offset
    here = log.segments.setdefault(key, {})
    known = here.get(segment["id"])
    if "endOffset" in values and log.count < MAX_KEPT:
        is_empty = values.get("txnIndexEmpty")
        epochs = tuple((each["leaderEpoch"], each["offset"]) for each in values["segmentLeaderEpochs"])
        log.count += known is None
        here[segment["id"]] = known = RemoteSegment(
            segment["id"],
            key,
            place["name"],
            values["startOffset"],
            values["endOffset"],
            values["segmentSizeInBytes"],
            values["maxTimestampMs"],
            epochs,
            None if is_empty is None else not is_empty,
            *by,
        )
    if known is None:
        return
    if state in (DELETE_STARTED, DELETE_FINISHED) and known.state == COPY_FINISHED:
        _expire(log.expired.setdefault(key, []), known.first, known.last)
    if state == DELETE_FINISHED:
        del here[segment["id"]]
        log.count -= 1
        return
    here[segment["id"]] = RemoteSegment(*known[:-4], *by)
    if state == COPY_FINISHED and key in log.ends:
        log.ends[key] = max(log.ends[key], known.last)


def _expire(ranges: list[tuple[int, int]], first: int, last: int) -> None:
    if ranges and ranges[-1][0] <= first <= ranges[-1][1] + 1:
        ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
    elif len(ranges) < MAX_KEPT:
        ranges.append((first, last))
