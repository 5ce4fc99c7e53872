"""The partition directories on the disks of a cluster without metadata: which node has which partition of which topic.

And what the files of a copy show: its leader epochs and end, and settings that the log was written with. The headers of
all batches are read, not their records.

Source: PartitionMetadataFile (the topic ID in a directory), LogManager (-delete, -future and -stray directories),
LogLoader.recoverLog (a log that was not shut down cleanly ends before the first damage above its recovery point),
LogCleaner (only it leaves gaps between the offsets of records).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from sys import intern

from kdump.cluster.disks import Disks, Node
from kdump.core.column_numbers import ATTRIBUTES, LAST_OFFSET, LEADER_EPOCH, PRODUCER_ID
from kdump.core.column_numbers import BASE_OFFSET as BASE
from kdump.format.batch_header import CONTROL, TIMESTAMP_TYPE
from kdump.io.mounted_paths import origin
from kdump.io.run import Run
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.follower_truncation import EpochLineage
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.kafka.small_files import offsets, topic_id
from kdump.log import file_kinds
from kdump.log.batch_validity import is_valid
from kdump.log.entries import Entry, entries
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import open_window
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.region import PADDING, TORN, Batch, BatchRun, Region
from kdump.log.segment_summary import summarize_headers
from kdump.log.walk import RegionObserver
from kdump.problems.problem import title_of
from kdump.questions.rescue.answer import RescueDirectory, RescueError
from kdump.questions.rescue.config_file import GivenTopic
from kdump.questions.rescue.rescuer import new_uuid
from kdump.text import host_word, shell_word

STRAY, FUTURE, DELETE = "stray", "future", "delete"
OTHER_ID, OTHER_NAME, TWICE, NO_ID, TAKEN = "otherId", "otherName", "twice", "noId", "used"
CLEANED = "cleaner-offset"
NOT_USED = (STRAY, OTHER_ID, OTHER_NAME, TWICE)
"""States of directories with records that are lost unless something is done."""
Key = tuple[str, int]


class LogFacts(RegionObserver):
    """`checkpointed`: the partition's offsets, by the name of the checkpoint. `lineage`: leader epochs, start, end and
    high watermark, as a broker has them after startup; `damaged`: offset from which on the log is damaged, None if no
    header shows that; `newest`: largest timestamp, epoch ms; `producer_id`, `coordinator_epoch`: the highest;
    `has_gaps`: offsets of closed segments have no record, as after compaction; `append_time`: whether the last data
    batch has the time of the append; `closed`: size in bytes of the largest closed segment; `remote_start`: log start
    offset below the first segment, None if there is none.

    Raises RescueError if the directory cannot be listed."""

    def __init__(self, log: PartitionDirectory, checkpointed: Mapping[str, int], clean: bool, run: Run) -> None:
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
                headers = summarize_headers(segment.log, window, run=run, others=(self,))
                size = window.source.size or 0
            self.damaged = self.damaged if damaged is None else damaged
            self.newest = max(self.newest, -1 if headers.newest is None else headers.newest)
            end = max(segment.offset, end if headers.last is None else headers.last + 1)
            if number + 1 < len(segments):
                self.closed = max(self.closed, size)
                if not headers.damage and headers.records is not None and headers.last is not None:
                    self.has_gaps = self.has_gaps or headers.last + 1 - segment.offset > headers.records
        if self.damaged is not None and not clean and self.damaged >= checkpointed.get("recovery-point-offset", 0):
            end = min(end, self.damaged)
        first = segments[0].offset if segments else 0
        start = checkpointed.get("log-start-offset", 0)
        self.remote_start = start if start < first else None
        epochs = self._checkpointed(log)
        lineage = EpochLineage(
            tuple(epochs or self._epochs), max(first, start), end, checkpointed.get("replication-offset")
        )
        self.lineage = lineage.loaded()
        self.epoch = max((entry.epoch for entry in (*(epochs or ()), *self._epochs)), default=-1)
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
                parts = list(entries(file_kinds.PRODUCER_SNAPSHOT, window, target.name_offset or 0))
            rows = [each.values for each in parts if isinstance(each, Entry) and each.type]
            if len(rows) + 1 == len(parts):
                self.producer_id = max([self.producer_id, *(each["producerId"] for each in rows)])
                self.coordinator_epoch = max([self.coordinator_epoch, *(each["coordinatorEpoch"] for each in rows)])


@dataclass(eq=False, slots=True)
class LogCopy:
    """A copy of a partition in a node's log directory. `directory_id`: of the log directory, None if it has none;
    `offsets`: of the topic's partitions, by the name of the checkpoint; `topic_id`: None if its partition.metadata is
    missing or not valid."""

    node: int
    place: LogDirectory
    offsets: dict[str, dict[int, int]]
    log: PartitionDirectory
    directory_id: str | None
    topic_id: str | None
    run: Run
    _facts: LogFacts | None = None

    @property
    def facts(self) -> LogFacts:
        if self._facts is None:
            known = {name: each[self.key[1]] for name, each in self.offsets.items() if self.key[1] in each}
            self._facts = LogFacts(self.log, {} if self.log.state else known, self.place.is_clean, self.run)
            self.log.listed = None  # of 200,000 partitions, they would take 80 MiB
        return self._facts

    @property
    def key(self) -> Key:
        return self.log.topic or "", self.log.partition or 0

    @property
    def live_path(self) -> str:
        """The path that a broker would load it from."""
        return os.path.join(self.place.path, f"{self.log.topic}-{self.log.partition}")

    @property
    def rank(self) -> tuple[int, int]:
        """The replica with the highest one has the log that counts (KIP-101): its last leader epoch, then its end."""
        epochs = self.facts.lineage.epochs
        return epochs[-1].epoch if epochs else -1, self.facts.lineage.end


@dataclass
class FoundTopic:
    """A topic, with its copies by partition; those of a partition are on different nodes. `id_from`: see
    RescueTopic."""

    name: str
    topic_id: str
    id_from: str
    copies: dict[int, list[LogCopy]] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max((copy.facts.newest for copy in self.every()), default=-1)

    def every(self) -> Iterator[LogCopy]:
        for copies in self.copies.values():
            yield from copies


class DataCopies:
    """What is on the disks: `topics` by name, and the `directories` that are not used as they are."""

    def __init__(
        self, disks: Disks, cluster_id: str, given: dict[str, GivenTopic], *, with_stray: bool, run: Run
    ) -> None:
        self.cluster_id, self.given, self.run = cluster_id, given, run
        self.directories: list[RescueDirectory] = []
        self.checkpointed: dict[str, int] = {}
        """The highest partition that a checkpoint names of each topic."""
        self.cleaned: set[str] = set()
        """The topics that a cleaner-offset-checkpoint names, because they were compacted."""
        by_name: dict[str, list[LogCopy]] = {}
        for node in disks.nodes:
            for copy in self._of_node(node, disks):
                by_name.setdefault(copy.key[0], []).append(copy)
        used = {name: self._used(by_name.pop(name), with_stray) for name in sorted(by_name)}
        self.topics = {topic.name: topic for topic in self._topics(used)}

    def _used(self, copies: list[LogCopy], with_stray: bool) -> list[LogCopy]:
        """Return the copies of the topics of one name that are used: live ones, and others in the place of one."""
        live = [copy for copy in copies if not copy.log.state]
        if len(live) == len(copies):
            return live
        here = {(copy.node, *copy.key) for copy in live}
        ids = {copy.topic_id for copy in live} - {None}
        keys = {copy.key for copy in live}
        for copy in copies:
            state, place = copy.log.state, (copy.node, *copy.key)
            if not state:
                continue
            is_missing = copy.key not in keys if state == FUTURE else with_stray and place not in here
            if state != DELETE and is_missing:
                here.add(place)
                live.append(copy)
                command = f"mv {host_word(copy.log.path)} {host_word(copy.live_path)}"
                self._note(copy, TAKEN, _reason("future" if state == FUTURE else "asked"), command)
            else:
                has_live = with_stray and place in here
                self._note(copy, state, _unused(copy, copy.topic_id in ids, has_live=has_live))
        return live

    def _of_node(self, node: Node, disks: Disks) -> Iterator[LogCopy]:
        """Yield the copies on a node's disks. Raises RescueError if it is not known which node it is."""
        for place in node.directories:
            logs = [each for each in place.partitions if each.topic not in (None, METADATA_TOPIC)]
            if not logs:
                continue
            if node.node_id is None:
                raise RescueError(
                    f"{place.path}: no valid meta.properties states the node that it is of; write one with its "
                    "node.id, cluster.id and version=1"
                )
            offsets_by_topic: dict[str, dict[str, dict[int, int]]] = {}
            for file_name, target in place.files.items():
                if target.kind is file_kinds.OFFSET_CHECKPOINT:
                    name = file_name.removesuffix("-checkpoint")
                    for (topic, number), offset in offsets(target)[0].items():
                        offsets_by_topic.setdefault(topic, {}).setdefault(name, {})[number] = offset
                        self.checkpointed[topic] = max(number, self.checkpointed.get(topic, 0))
            self.cleaned |= {topic for topic, each in offsets_by_topic.items() if CLEANED in each}
            own = disks.ids(place).get("directory.id")
            for log in logs:
                stated_id = topic_id(log)
                stated_id = None if stated_id is None else intern(stated_id)
                yield LogCopy(
                    node.node_id, place, offsets_by_topic.get(log.topic or "", {}), log, own, stated_id, self.run
                )

    def _note(self, copy: LogCopy, state: str, reason: str, command: str | None = None) -> None:
        self.directories.append(RescueDirectory(copy.log.path, copy.node, state, copy.topic_id, reason, command))

    def _topics(self, used: dict[str, list[LogCopy]]) -> Iterator[FoundTopic]:
        """Return the topics: of two with one name, or with one ID, only one."""
        chosen: dict[str, FoundTopic] = {}
        for name, copies in used.items():
            by_id: dict[str | None, list[LogCopy]] = {}
            for copy in copies:
                by_id.setdefault(copy.topic_id, []).append(copy)
            if not by_id:
                continue
            topic = self._of_name(name, by_id)
            other = chosen.get(topic.topic_id)
            if other is not None:
                topic, other = sorted((topic, other), key=lambda one: (len(list(one.every())), one.newest))[::-1]
                for copy in other.every():
                    self._note(copy, OTHER_NAME, _reason(OTHER_NAME, other=other.name, topic=topic.name))
            chosen[topic.topic_id] = topic
        return iter(chosen.values())

    def _of_name(self, name: str, copies: dict[str | None, list[LogCopy]]) -> FoundTopic:
        """Return the topic of a name, with one of the IDs that its directories have."""
        given = self.given.get(name, GivenTopic())
        nameless = copies.pop(None, [])
        topics = [_topic(name, each or "", "partition.metadata", mine) for each, mine in copies.items()]
        by_id = {each.topic_id: each for each in topics}
        if given.topic_id is not None:
            topic = by_id.get(given.topic_id) or FoundTopic(name, given.topic_id, "configs")
        elif topics:
            topic = topics[0] if len(topics) == 1 else max(topics, key=lambda each: (each.newest, each.topic_id))
        else:
            topic = FoundTopic(name, new_uuid(self.cluster_id, f"topic {name}"), "made")
        for other in topics:
            for each in other.every() if other is not topic else ():
                why = "Given" if given.topic_id else "Older" if topic.newest > other.newest else ""
                self._note(each, OTHER_ID, _reason(OTHER_ID + why, topic=name, id=topic.topic_id))
        for each in nameless:
            topic.copies.setdefault(each.key[1], []).append(each)
            path = host_word(os.path.join(each.log.path, "partition.metadata"))
            command = f"printf 'version: 0\\ntopic_id: {topic.topic_id}\\n' > {path}"
            self._note(each, NO_ID, _reason(NO_ID), command)
        if not topic.copies:
            raise RescueError(
                f"--configs states the topic ID {topic.topic_id} of {name}, which none of its directories has: the "
                "topic was created again since, or this is the file of another cluster; leave its TopicId out"
            )
        for number, mine in topic.copies.items():
            topic.copies[number] = list(self._one_on_each_node(mine))
        return topic

    def _one_on_each_node(self, copies: Iterable[LogCopy]) -> Iterator[LogCopy]:
        by_node: dict[int, list[LogCopy]] = {}
        for copy in copies:
            by_node.setdefault(copy.node, []).append(copy)
        for _, mine in sorted(by_node.items()):
            best = max(mine, key=lambda copy: copy.rank) if len(mine) > 1 else mine[0]
            yield best
            for copy in mine:
                if copy is not best:
                    beside = origin(copy.place.path)[1].rstrip("/")
                    aside = shell_word(f"{beside}-{os.path.basename(copy.log.path)}.before-rescue")
                    reason = _reason(TWICE, path=best.log.path)
                    self._note(copy, TWICE, reason, f"mv {host_word(copy.log.path)} {aside}")


def _topic(name: str, topic: str, id_from: str, copies: Iterable[LogCopy]) -> FoundTopic:
    made = FoundTopic(name, topic, id_from)
    for copy in copies:
        made.copies.setdefault(copy.key[1], []).append(copy)
    return made


def _unused(copy: LogCopy, is_live: bool, *, has_live: bool) -> str:
    """Return why a directory that is not live is not used. `has_live`: the node has one of that name."""
    if copy.log.state in (DELETE, FUTURE):
        return _reason(DELETE if copy.log.state == DELETE else "")
    return _reason("replaced" if has_live else "elsewhere" if is_live else "notRebuilt", path=copy.live_path)


def _reason(case: str, **values: object) -> str:
    return title_of("rescue-directory", case, **values)
