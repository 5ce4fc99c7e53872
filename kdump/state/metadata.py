"""What a KRaft metadata directory says of the cluster: its topics, where they live, and how they are configured.

The newest sound snapshot, then the records of the log from its end on. The log is a chain of changes, so its replay
ends at the first bytes that are not sound, and what there is then is right as of that offset. Nothing on the disk says
how far the log is committed: on a controller that lost its quorum, the last records may be ones that were undone.

Source: org.apache.kafka.image.loader.MetadataLoader and MetadataBatchLoader (transactions), the deltas of
org.apache.kafka.image (what a record changes), org.apache.kafka.snapshot.RecordsSnapshotReader, KIP-630, KIP-868.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdump.format.control import decode_control
from kdump.format.metadata_record import decode_metadata_record, metadata_record_name
from kdump.log.disk import METADATA_TOPIC
from kdump.log.errors import SourceError
from kdump.log.paths import segments_in, target
from kdump.log.payload import records
from kdump.log.reader import regions
from kdump.log.record import Record
from kdump.log.region import PADDING, Batch, Limits
from kdump.log.source import open_source
from kdump.log.window import Window

LIMITS = Limits(max_batch_size=16 * 1024 * 1024, max_decompressed_size=16 * 1024 * 1024)
"""KRaft ends a batch at 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); a coordinator writes a record a batch."""
MOST_VALUE = 512 * 1024
"""Bytes of a key or value that are decoded: a decoded one takes a hundred times as much."""
MOST_PROBLEMS = 100
MOST_RANGES = 100_000
"""Runs of offsets that do not count."""
ROOM = 48 * 1024 * 1024
"""Bytes of memory that what is remembered may take."""
ENTRY = 300
"""Bytes that a partition, a config or a transaction takes beside its text, about."""

SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
TOPIC, BROKER = 2, 4
"""ConfigResource.Type by id."""
NO_LEADER_CHANGE = -2

_SAME = "compression.type compression.gzip.level compression.lz4.level compression.zstd.level min.insync.replicas"
_SAME += " unclean.leader.election.enable"
_LOG = "cleanup.policy index.interval.bytes local.retention.bytes local.retention.ms message.timestamp.after.max.ms"
_LOG += " message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type preallocate"
_LOG += " retention.bytes retention.ms segment.bytes"
_CLEANER = "delete.retention.ms max.compaction.lag.ms min.compaction.lag.ms"
SYNONYMS = {
    **{key: key for key in _SAME.split()},
    **{key: f"log.{key}" for key in _LOG.split()},
    **{key: f"log.cleaner.{key}" for key in _CLEANER.split()},
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
}
"""A topic's config -> the broker's that is its default, where that can be set while the broker runs
(ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS). A broker's other defaults are in its server.properties."""


class PartitionInfo(NamedTuple):
    """`directories`: the id of the log directory of each replica, in their order; empty where the record has none.
    `leader` is -1 for none."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    leader: int
    leaderEpoch: int


@dataclass
class Topic:
    """`id` is what Kafka prints, base64; `configs` are the topic's own."""

    name: str
    id: str
    configs: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, PartitionInfo] = field(default_factory=dict)


@dataclass
class Metadata:
    """What is known of the cluster as of `end_offset`, the offset behind the last record that was read.

    `broker_configs` are the dynamic ones by node id as text, "" for the cluster-wide defaults; `brokers` are the ids
    of the log directories of each registered broker (empty before metadata.version 3.7). `problems`: one line for
    what could not be read; with any, what is here may be out of date or incomplete.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[str, Topic] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    end_offset: int = 0
    problems: list[str] = field(default_factory=list)


def effective(metadata: Metadata, topic: str, key: str, node_id: int | None) -> str | None:
    """The value of a topic's config `key` on the broker `node_id` (None: on one that is not known): the topic's own,
    else the broker's, else the cluster's. None when none of these is set, or the topic is not known: it is then what
    server.properties says, or Kafka's default."""
    found = metadata.topics.get(topic)
    if found is None:
        return None
    if key in found.configs:
        return found.configs[key]
    synonym = SYNONYMS.get(key)
    if synonym is None:
        return None
    own = metadata.broker_configs.get("" if node_id is None else str(node_id), {})
    return own.get(synonym, metadata.broker_configs.get("", {}).get(synonym))


def read_metadata(directory: str, limits: Limits | None = None) -> Metadata | None:
    """What __cluster_metadata-0 in the log directory `directory` says. None when there is no such directory, or nothing
    of KRaft in it. Never raises: what cannot be read is in `problems`."""
    folder = os.path.join(directory, f"{METADATA_TOPIC}-0")
    try:
        snapshots = sorted(name for name in os.listdir(folder) if SNAPSHOT.fullmatch(name))
        paths = [os.path.join(folder, name) for name in segments_in(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Metadata(problems=[f"{folder}: {error.strerror}"])
    if not snapshots and not paths:
        return None
    limits = bounded(limits)
    replay, start = _Replay(Metadata()), None
    unsound: list[str] = []
    for name in reversed(snapshots):
        tried = _Replay(Metadata())
        reason = _read_snapshot(tried, os.path.join(folder, name), limits)
        if not reason:
            replay, start = tried, int(name[:20])
            replay.metadata.end_offset = start
            break
        unsound.append(f"{name}: not a sound snapshot: {reason}")
    replay.metadata.problems[:0] = unsound[:MOST_PROBLEMS]
    _read_log(replay, paths, start, limits)
    return replay.metadata


def bounded(limits: Limits | None) -> Limits:
    """LIMITS, or what `limits` has below them: these logs are remembered, and not only shown."""
    if limits is None:
        return LIMITS
    size, decompressed = LIMITS.max_batch_size or 0, LIMITS.max_decompressed_size
    return Limits(min(limits.max_batch_size or size, size), min(limits.max_decompressed_size, decompressed))


def read_records(path: str, limits: Limits, note: Callable[[str], None]) -> Iterator[Record | None]:
    """The records of a file in order, of sound batches alone. None for each place where something else stands, which
    `note` is told; zeros at the end of the file are not such a place. A record can be read until the next one is asked
    for, and should be decoded only if it is not `too_large`. Never raises for what is on the disk."""
    name = os.path.basename(path)
    if not os.path.isfile(path):  # a pipe under that name would never end
        note(f"{name}: not a file")
        yield None
        return
    try:
        source = open_source(path)
    except SourceError as error:
        note(str(error))
        yield None
        return
    zeros = None
    try:
        for region in regions(Window(source), name_offset=target(path).name_offset, limits=limits):
            if zeros is not None:
                note(f"{name} at {zeros}: zeros")
                yield None
            zeros = region.position if region.kind == PADDING else None
            if zeros is not None:
                continue
            if not isinstance(region, Batch) or not region.crcValid:
                reason = "its checksum does not hold" if isinstance(region, Batch) else region.reason
                note(f"{name} at {region.position}: {region.kind}: {reason}")
                yield None
                continue
            yield from records(region)
            for problem in region.problems:
                note(f"{name} at {region.position}: {problem.reason}")
            if region.problems:
                yield None
        if source.error:  # a damaged compressed file ends where it breaks
            note(source.error)
            yield None
    except SourceError as error:
        note(str(error))
        yield None
    finally:
        source.close()


def too_large(record: Record) -> bool:
    """Whether its key or value takes more memory, once decoded, than Kafka would ever ask for."""
    return max(record.keySize, record.valueSize) > MOST_VALUE


def _read_snapshot(replay: _Replay, path: str, limits: Limits) -> str:
    """Apply a snapshot's records. Why it is not sound; empty when it is."""
    first, last = None, ""
    told = ""

    def note(problem: str) -> None:
        nonlocal told
        told = problem
        replay.note(problem)

    for record in read_records(path, limits, note):
        if record is None:
            return told
        is_control = record.is_control and not too_large(record)
        last = decode_control(record.key, record.value).type if is_control else ""
        first = last if first is None else first
        if not record.is_control:
            replay.apply(record)
    if first != "SNAPSHOT_HEADER":
        return "it does not begin with its header"
    return "" if last == "SNAPSHOT_FOOTER" else "it does not end with its footer"


def _read_log(replay: _Replay, paths: Sequence[str], start: int | None, limits: Limits) -> None:
    """Apply the log's records from offset `start` on, None when there is no snapshot."""
    bases = [target(path).name_offset or 0 for path in paths]
    # A segment is needed if the next one begins behind `start`.
    needed = [path for i, path in enumerate(paths) if start is None or i + 1 == len(paths) or bases[i + 1] > start]
    dropped = _uncounted(replay, _log_records(needed, start, limits, lambda problem: None))
    dropped.reverse()
    for record in _log_records(needed, start, limits, replay.note):
        assert record.offset is not None
        replay.metadata.end_offset = record.offset + 1
        while dropped and dropped[-1][1] < record.offset:
            dropped.pop()
        if not record.is_control and not (dropped and dropped[-1][0] <= record.offset):
            replay.apply(record)


def _log_records(
    paths: Sequence[str], start: int | None, limits: Limits, note: Callable[[str], None]
) -> Iterator[Record]:
    """The log's records with the offsets `start`, start + 1 … as far as they are sound and none is missing. What stands
    below `start` is in the snapshot, and only told when it is not sound."""
    expected = start
    begun = False
    for path in paths:
        for record in read_records(path, limits, note):
            if record is None:
                if begun or start is None:
                    return
                continue
            if record.offset is None or (not begun and start is not None and record.offset < start):
                continue
            if expected is None and record.offset > 0:
                note(f"the log begins at offset {record.offset}, and there is no sound snapshot of what came before")
            if expected is not None and record.offset != expected:
                note(f"{os.path.basename(path)}: offset {record.offset} where {expected} should follow")
                return
            begun = True
            expected = record.offset + 1
            yield record


def _uncounted(replay: _Replay, log: Iterator[Record]) -> list[tuple[int, int]]:
    """The offsets, first and last, of the metadata transactions that were aborted or never ended."""
    ranges: list[tuple[int, int]] = []
    begun = None
    for record in log:
        assert record.offset is not None
        name = "" if record.is_control else metadata_record_name(record.value)
        if begun is not None and name in ("AbortTransactionRecord", "BeginTransactionRecord"):
            ranges.append((begun, record.offset - 1))
            if len(ranges) == MOST_RANGES:
                replay.note(f"at offset {record.offset}: more than {MOST_RANGES} aborted transactions")
                return [*ranges, (record.offset, sys.maxsize)]
        if name == "BeginTransactionRecord":
            begun = record.offset
        elif name in ("AbortTransactionRecord", "EndTransactionRecord"):
            begun = None
    return ranges if begun is None else [*ranges, (begun, sys.maxsize)]


class _Replay:
    """Records -> what they make of the metadata, in bounded memory."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.room = ROOM
        self.is_full = False
        self.known_ids: dict[str, str] = {}
        # A topic's configs are known by its name, and may come before it.
        self.topic_configs: dict[str, dict[str, str]] = {}
        self.handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "TopicRecord": self.topic,
            "RemoveTopicRecord": self.remove_topic,
            "PartitionRecord": self.partition,
            "PartitionChangeRecord": self.partition_change,
            "ConfigRecord": self.config,
            "RegisterBrokerRecord": self.register_broker,
            "BrokerRegistrationChangeRecord": self.broker_change,
            "UnregisterBrokerRecord": self.unregister_broker,
        }
        self.offset: int | None = None

    def note(self, problem: str) -> None:
        if len(self.metadata.problems) < MOST_PROBLEMS:
            self.metadata.problems.append(problem)

    def charge(self, size: int, reserve: int = 0) -> bool:
        """Whether there is room for so many bytes more beside the `reserve`; what there is none for is not
        remembered."""
        if size > self.room - reserve:
            if not self.is_full:
                self.note(f"at offset {self.offset}: more metadata than is kept in memory, {ROOM} bytes")
            self.is_full = True
            return False
        self.room -= size
        return True

    def apply(self, record: Record) -> None:
        """What a record that is no control record changes; one that does not decode changes nothing."""
        self.offset = record.offset
        if too_large(record):
            self.note(f"at offset {self.offset}: a record of {record.valueSize} bytes")
            return
        value = record.value
        name = metadata_record_name(value)
        handler = self.handlers.get(name)
        # Most others are of no interest here, and not decoded.
        if handler is None and not name.startswith("UNKNOWN"):
            return
        said = decode_metadata_record(value)
        if said.problem is not None:
            self.note(f"at offset {self.offset}: {said.problem}")
        elif handler is not None:
            assert said.values is not None
            handler(said.values)

    def topic(self, values: dict[str, Any]) -> None:
        name, topic_id = values["name"], values["topicId"]
        metadata = self.metadata
        for known in (metadata.topics.get(name), metadata.by_id.get(topic_id)):
            if known is not None:
                self.forget(known)
        if self.charge(2 * ENTRY + 2 * sys.getsizeof(name)):
            topic = Topic(name, topic_id, self.topic_configs.setdefault(name, {}))
            metadata.topics[name] = metadata.by_id[topic_id] = topic

    def forget(self, topic: Topic) -> None:
        self.room += 2 * ENTRY + 2 * sys.getsizeof(topic.name) + sum(map(_size, topic.partitions.values()))
        self.metadata.topics.pop(topic.name, None)
        self.metadata.by_id.pop(topic.id, None)

    def remove_topic(self, values: dict[str, Any]) -> None:
        topic = self.find(values)
        if topic is not None:
            self.forget(topic)
            self.room += sum(_config_size(*config) for config in self.topic_configs.pop(topic.name, {}).items())

    def find(self, values: dict[str, Any]) -> Topic | None:
        topic = self.metadata.by_id.get(values["topicId"])
        if topic is None and not self.is_full:
            self.note(f"at offset {self.offset}: there is no topic with the id {values['topicId']}")
        return topic

    def partition(self, values: dict[str, Any]) -> None:
        topic = self.find(values)
        if topic is not None:
            self.put(topic, values["partitionId"], values, values["leader"], values["leaderEpoch"])

    def partition_change(self, values: dict[str, Any]) -> None:
        topic = self.find(values)
        if topic is None:
            return
        known = topic.partitions.get(values["partitionId"])
        if known is None:
            if not self.is_full:
                self.note(f"at offset {self.offset}: {topic.name} has no partition {values['partitionId']}")
        elif values["leader"] == NO_LEADER_CHANGE:
            self.put(topic, values["partitionId"], values, known.leader, known.leaderEpoch)
        else:
            self.put(topic, values["partitionId"], values, values["leader"], known.leaderEpoch + 1)

    def put(self, topic: Topic, number: int, values: dict[str, Any], leader: int, epoch: int) -> None:
        """The partition with what `values` say; what is null or absent there stays as it was."""
        known = topic.partitions.get(number)
        replicas, directories = values["replicas"], values.get("directories")
        partition = PartitionInfo(
            known.replicas if known and replicas is None else tuple(replicas),
            known.directories if known and directories is None else self.ids(directories),
            leader,
            epoch,
        )
        # A snapshot has the configs behind the partitions, and more depends on them.
        if self.charge(_size(partition) - (_size(known) if known else 0), reserve=ROOM // 3):
            topic.partitions[number] = partition

    def ids(self, directories: list[str] | None) -> tuple[str, ...]:
        """The ids of log directories, each kept once: the same few come with every partition."""
        for name in directories or ():
            if name not in self.known_ids and self.charge(ENTRY, reserve=ROOM // 3):
                self.known_ids[name] = name
        return tuple(self.known_ids.get(name, name) for name in directories or ())

    def config(self, values: dict[str, Any]) -> None:
        kind, resource, name, value = (values[key] for key in ("resourceType", "resourceName", "name", "value"))
        if kind not in (TOPIC, BROKER):
            return
        resources = self.topic_configs if kind == TOPIC else self.metadata.broker_configs
        if resource not in resources and (value is None or not self.charge(ENTRY + sys.getsizeof(resource))):
            return
        configs = resources.setdefault(resource, {})
        before = _config_size(name, configs[name]) if name in configs else 0
        if value is None:
            configs.pop(name, None)
            self.room += before
        elif self.charge(_config_size(name, value) - before):
            configs[name] = value

    def register_broker(self, values: dict[str, Any]) -> None:
        directories = self.ids(values.get("logDirs"))
        if self.charge(ENTRY + 80 * len(directories)):
            self.metadata.brokers[values["brokerId"]] = directories

    def broker_change(self, values: dict[str, Any]) -> None:
        if values["brokerId"] not in self.metadata.brokers:
            self.note(f"at offset {self.offset}: broker {values['brokerId']} is not registered")
        elif values.get("logDirs"):
            self.register_broker(values)

    def unregister_broker(self, values: dict[str, Any]) -> None:
        self.metadata.brokers.pop(values["brokerId"], None)


def _size(partition: PartitionInfo) -> int:
    return ENTRY + 8 * (len(partition.replicas) + len(partition.directories))


def _config_size(name: str, value: str) -> int:
    return ENTRY + sys.getsizeof(name) + sys.getsizeof(value)
