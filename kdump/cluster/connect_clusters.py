"""Finds the topics of Kafka Connect and MirrorMaker on disks, and reads those of each Connect cluster into its state.

Topics are recognized by their names, and by their records if their names may be those of others. They are read as
workers with exactly-once support read them, without the records of aborted and open transactions: other workers write
no transactions there.

Also, the topics that a connector's config names, and of which it needs every record: Debezium's schema history. Source:
io.debezium.storage.kafka.history.KafkaSchemaHistory, and the documentation of its connectors: the topic has one
partition, and infinite retention; `database.history.kafka.topic` before Debezium 2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import TopicLogs, find_topic_logs, topic_logs
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, log_name, log_records
from kdump.cluster.topic_coverage import coverage
from kdump.format.control_record import decode_control
from kdump.format.count_text import count_text
from kdump.format.known_releases import config_default
from kdump.format.mirror_record import MIRROR_MESSAGES
from kdump.format.numbers import parse_int
from kdump.format.versioned_messages import try_decode
from kdump.io.errors import within
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.log.internal_topics import system_topic
from kdump.log.record import Record
from kdump.state.as_of import AsOf, Change
from kdump.state.connect_records import BadRecord, offset_key, text_key
from kdump.state.connect_replay import ConnectReplay, ConnectState
from kdump.state.effective_config import effective
from kdump.state.internal_records import ENTRY, ROOM
from kdump.state.metadata_image import MetadataImage
from kdump.state.read_committed_view import ReadCommittedView
from kdump.state.transaction_marker import ABORT

HISTORY_KEYS = ("schema.history.internal.kafka.topic", "database.history.kafka.topic")


CONFIGS, OFFSETS, STATUS, CHECKPOINTS = "connect-configs", "connect-offsets", "connect-status", "mm2-checkpoints"
KINDS = (CONFIGS, OFFSETS, STATUS)
ORDER = {CONFIGS: 0, STATUS: 1, OFFSETS: 2}
WORD = re.compile(r"configs?|offsets?|status(?:es)?")
MAX_LOOKED_AT = 20
"""Records whose keys show whether a topic is one of Connect's."""


class ConnectLog(NamedTuple):
    """A log of Connect, and the decoder of its records."""

    log: CoordinatorLog
    kind: str


class ConnectCluster(NamedTuple):
    """The topics of a Connect cluster. `name`: that of its topics, with * in place of what differs. `cluster`: the
    Kafka cluster. `is_deleted`: its topics are among those that a broker was to delete."""

    cluster: str
    name: str
    logs: tuple[ConnectLog, ...]
    is_deleted: bool = False


class FoundConnect(NamedTuple):
    """What is under some paths. `checkpoints`: logs of MirrorMaker's checkpoints, with their Kafka cluster."""

    clusters: list[ConnectCluster]
    checkpoints: list[tuple[str, CoordinatorLog]]
    topics: TopicLogs


class _Names:
    """The topics that may be Connect's: by their names, or because the user says so."""

    def __init__(self, named: Callable[[str], bool]) -> None:
        self.named = named

    def __contains__(self, topic: object) -> bool:
        system = system_topic(str(topic))
        return (system is not None and system.decoder in (*KINDS, CHECKPOINTS)) or self.named(str(topic))


def find_connect(paths: Iterable[str], run: Run, named: Callable[[str], bool] = lambda topic: False) -> FoundConnect:
    """Return the Connect clusters whose topics are under the paths. `named`: further topics. A path without Kafka files
    is passed to `run.unreadable`."""
    return _connect(find_topic_logs(paths, _Names(named), run, lone=""))


def connect_in(disks: Disks) -> list[ConnectCluster]:
    """Return the Connect clusters whose topics are in log directories, without those that a broker was to delete."""
    found = _connect(topic_logs(disks, _Names(lambda topic: False)))
    return [cluster for cluster in found.clusters if not cluster.is_deleted]


def _connect(topics: TopicLogs) -> FoundConnect:
    clusters, checkpoints = [], []
    for is_deleted, by_cluster in ((False, topics.newest), (True, topics.deleted)):
        by_name: dict[tuple[str, str], list[ConnectLog]] = {}
        for cluster, logs in by_cluster.items():
            kinds = {topic: _kind(topic, [each for each in logs if each.topic == topic]) for topic in _topics(logs)}
            for log in logs:
                kind = kinds[log.topic]
                if kind == CHECKPOINTS and not is_deleted:
                    checkpoints.append((cluster, log))
                elif kind in KINDS:
                    by_name.setdefault((cluster, _stem(log.topic)), []).append(ConnectLog(log, kind))
        for (cluster, name), mine in sorted(by_name.items()):
            mine.sort(key=lambda each: (ORDER[each.kind], each.log.topic, each.log.partition, each.log.path))
            clusters.append(ConnectCluster(cluster, name, tuple(mine), is_deleted))
    return FoundConnect(clusters, checkpoints, topics)


HELD = {CONFIGS: "the configs of connectors", STATUS: "the states of connectors", OFFSETS: "the offsets of sources"}
"""What is in the topics of each kind."""


def missing_partitions(found: ConnectCluster, metadata: MetadataImage | None) -> Iterator[str]:
    """Yield what is not known of a Connect cluster because partitions of its topics are not on these disks."""
    topics: dict[str, tuple[str, set[int]]] = {}
    for log, kind in found.logs:
        topics.setdefault(log.topic, (kind, set()))[1].add(log.partition)
    kinds = {kind for kind, _ in topics.values()}
    for name in () if metadata is None else sorted(metadata.topics):
        system = system_topic(name)
        if system is not None and system.decoder in KINDS and system.decoder not in kinds and _stem(name) == found.name:
            topics[name] = system.decoder, set()
    for topic, (kind, read) in topics.items():
        covered = coverage(topic, read, metadata)
        if covered.is_partial:
            yield covered.note(HELD[kind])


def _topics(logs: Iterable[CoordinatorLog]) -> list[str]:
    return list(dict.fromkeys(log.topic for log in logs))


def _stem(topic: str) -> str:
    """Return the name of a topic with * in place of the last word, which differs between the topics of a cluster."""
    words = list(WORD.finditer(topic))
    return topic if not words else topic[: words[-1].start()] + "*" + topic[words[-1].end() :]


def _kind(topic: str, logs: list[CoordinatorLog]) -> str:
    """Return the decoder of a topic; empty if its records are not Connect's."""
    system = system_topic(topic)
    if system is not None and system.is_sure:
        return system.decoder
    records = (record for log in logs for record in islice(_data(log), MAX_LOOKED_AT))
    return next(filter(None, map(_kind_of, islice(records, MAX_LOOKED_AT))), "")


def _data(log: CoordinatorLog) -> Iterator[Record]:
    return (record for record in log_records(log, AsOf(), ignore) if not record.is_control)


def _kind_of(record: Record) -> str:
    for kind in KINDS:
        try:
            if kind == OFFSETS:
                offset_key(record.key)
            else:
                text_key(record.key, kind)
            return kind
        except BadRecord:
            continue
    return ""


def connect_changes(
    found: ConnectCluster, state: ConnectState, moment: AsOf, *, reports: bool = False, run: Run = PLAIN_RUN
) -> Iterator[tuple[CoordinatorLog, Change]]:
    """Read a Connect cluster as of `moment` into `state`; yield what each record changes, with its log, if `reports`.
    Never raises for what is on the disk: what cannot be read, and what Connect skips, is listed in `problems`."""
    replay = ConnectReplay(state)
    changes: list[Change] = []
    replay.on_change = changes.append if reports else None
    for number, (log, kind) in enumerate(found.logs):
        place, end = log_name(log), 0
        replay.log = number

        def note(problem: str, place: str = place) -> None:
            replay.note(within(place, problem))

        if not log.segments:
            note("no segments")
        for record in committed_records(log, moment, note, run):
            end = (record.offset or 0) + 1
            if not record.is_control:
                problem = replay.apply(kind, record)
                if problem:
                    note(problem)
            if changes:
                yield from ((log, change) for change in changes)
                changes.clear()
        state.end_offsets.append(end)
    configs = {(log.topic, log.partition) for log, kind in found.logs if kind == CONFIGS}
    if len({topic for topic, _ in configs}) < len(configs):
        replay.note("workers reject a config topic with several partitions: their order is unknown")


def committed_records(
    log: CoordinatorLog, moment: AsOf, note: Callable[[str], None], run: Run = PLAIN_RUN
) -> Iterator[Record]:
    """Yield the records of a log that a read_committed consumer receives, and the control records."""
    view, begun = ReadCommittedView(), dict[int, int]()
    for record in log_records(log, moment, ignore, Run(run.limits)):
        batch, offset = record.batch, record.offset or 0
        if not batch.isTransactional or batch.producerId is None:
            continue
        if not batch.isControlBatch:
            begun.setdefault(batch.producerId, offset)
            continue
        first = begun.pop(batch.producerId, None)
        if first is not None and decode_control(record.key, record.value).type == ABORT:
            view.add(batch.producerId, first, offset)
    view.stable = min(begun.values(), default=None)
    left_out = 0
    for record in log_records(log, moment, note, run):
        batch, offset = record.batch, record.offset or 0
        is_aborted = batch.isTransactional and view.aborted(batch.producerId or 0, offset) is not None
        if not batch.isControlBatch and (is_aborted or (view.stable is not None and offset >= view.stable)):
            left_out += 1
            continue
        yield record
    if view.is_full:
        note("too many aborted transactions: records of some of them are applied")
    if left_out:
        note(f"{count_text(left_out, 'record')} of aborted or open transactions, or after these, are not applied")


class Checkpoint(NamedTuple):
    """The last checkpoint of a group and partition."""

    group: str
    topic: str
    partition: int
    upstreamOffset: int
    offset: int
    metadata: str
    record_offset: int
    timestamp: int | None


def read_checkpoints(
    log: CoordinatorLog, moment: AsOf, note: Callable[[str], None], run: Run = PLAIN_RUN
) -> list[Checkpoint]:
    """Return the last checkpoint of each group and partition. Source: org.apache.kafka.connect.mirror.Checkpoint."""
    checkpoints: dict[bytes, Checkpoint] = {}
    room = ROOM
    for record in log_records(log, moment, note, run):
        if record.is_control or record.key is None:
            continue
        if record.value is None:
            checkpoints.pop(record.key, None)
            continue
        key, key_error = try_decode(MIRROR_MESSAGES["CheckpointKey"], 0, record.key)
        value, error = try_decode(MIRROR_MESSAGES["CheckpointValue"], 0, record.value)
        if key_error or error:
            note(f"at offset {record.offset}: {key_error or error}")
            continue
        if record.key not in checkpoints:
            room -= ENTRY + 2 * len(record.key) + len(record.value)
            if room < 0:
                note(f"at offset {record.offset}: too many checkpoints to keep in memory ({ROOM} bytes)")
                break
        fields = value.value
        checkpoints[record.key] = Checkpoint(
            **key.value,
            upstreamOffset=fields["upstreamOffset"],
            offset=fields["offset"],
            metadata=fields["metadata"],
            record_offset=record.offset or 0,
            timestamp=record.timestamp,
        )
    return list(checkpoints.values())


class SchemaHistory(NamedTuple):
    """The topic that `key` of a connector's config names. `lost`: log start offset, below which records are gone; 0:
    none is. `deletes`: how a config of the topic removes records; empty if it removes none, or is not known."""

    key: str
    topic: str
    lost: int
    deletes: str

    @property
    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it."""
        if self.lost:
            yield (
                f"schema history incomplete: offsets 0..{self.lost - 1} of {self.topic} ({self.key}) are gone, and "
                "the connector needs all of them"
            )
        if self.deletes:
            yield f"schema history at risk: {self.topic} ({self.key}) has {self.deletes}, and must keep every record"


def schema_history(config: Mapping[str, Any], ends: LogOffsetsByPartition) -> SchemaHistory | None:
    """Return the schema history of a connector; None if it has none, or neither the topic's log nor the metadata of it
    are on the disks."""
    key = next((key for key in HISTORY_KEYS if isinstance(config.get(key), str)), None)
    if key is None:
        return None
    topic, metadata = config[key], ends.metadata
    end = ends.end(topic, 0)
    if end is None and (metadata is None or topic not in metadata.topics):
        return None
    deletes = ""
    if metadata is not None and topic in metadata.topics:
        values = {}
        for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
            values[name] = effective(metadata, topic, name, None) or str(config_default(name))
        limits = [name for name in ("retention.ms", "retention.bytes") if parse_int(values[name]) != -1]
        causes = [] if values["cleanup.policy"] == "delete" else ["cleanup.policy"]
        causes += limits if "delete" in values["cleanup.policy"] else []
        deletes = ", ".join(f"{name}={values[name]}" for name in causes)
    return SchemaHistory(key, topic, 0 if end is None else end.logStartOffset, deletes)
