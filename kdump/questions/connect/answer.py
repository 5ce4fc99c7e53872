"""Answers of `kdump connect`: connectors, tasks, offsets, and MirrorMaker's checkpoints. Secrets are hidden."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, OFFSET, TEXT, Doc, PathText, Shown, answer, of_fact
from kdump.cluster.connect_clusters import CONFIGS, Checkpoint, ConnectCluster, schema_history
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog
from kdump.format.count_text import count_text
from kdump.state.connect_records import connect_value, hides, offset_key, without_secrets
from kdump.state.connect_replay import DELETED, ConnectState, Stored
from kdump.state.groups import GroupCoordinatorState
from kdump.state.secrets import HIDDEN

SOURCE, SINK = "source", "sink"
CHECKPOINTS_TOPIC = re.compile(r"(.*)(?:\W|_)checkpoints(?:\W|_)internal")
ConnectClusterName = Annotated[str, Doc("topics of the Connect cluster, * in place of configs, offsets and status")]
ConnectorName = Annotated[str, Doc("connector")]
StatusState = Annotated[
    str | None, Doc("last state: UNASSIGNED, RUNNING, PAUSED, STOPPED, FAILED, RESTARTING; null if there is none")
]
WorkerId = Annotated[str | None, Doc("worker that reported it")]
Generation = Annotated[int | None, Doc("generation of the worker group in which it was reported")]
PluginVersion = Annotated[str | None, Doc("version of the plugin, as of Kafka 4.3")]
Trace = Annotated[str | None, Doc("stack trace of a failure")]
Failure = Annotated[
    str | None,
    Doc("cause of a failure: the last one that the trace names; null without a trace"),
    Shown(rank=7, least=24, after="state"),
]
RecordSource = Annotated[PathText | None, Doc("partition directory of the record; null if there is none")]
RecordOffset = Annotated[int | None, Doc("offset of the record", OFFSET)]
RecordTime = Annotated[int | None, Doc("timestamp of the record", EPOCH_MS)]
RemovedAt = Annotated[int | None, Doc("offset of the record that deleted it", OFFSET)]
RemovedTime = Annotated[int | None, Doc("timestamp of the record that deleted it", EPOCH_MS)]


def _style(value: Any) -> str:
    state = getattr(value, "state", None)
    if getattr(value, "deleted", False) or state in ("deleted", "connectorDeleted", "unknownConnector"):
        return "dim"
    return "bad" if state == "FAILED" else "torn" if getattr(value, "remarks", ()) else ""


@answer("connector", _style)
class Connector(NamedTuple):
    """A connector. Its source, offset and timestamp are those of the record with its config."""

    connectCluster: Annotated[ConnectClusterName, Shown("topics", 3)]
    name: Annotated[ConnectorName, Shown("connector", least=12, cuts=NAME)]
    connectorType: Annotated[str | None, Doc("source or sink; null if nothing shows which"), Shown("type", 6)]
    targetState: Annotated[str | None, Doc("state that was asked for: STARTED, PAUSED or STOPPED"), Shown("target", 7)]
    state: Annotated[StatusState, Shown()]
    tasks: Annotated[int | None, Doc("number of tasks as of the last commit; null if there was none"), Shown(rank=7)]
    config: Annotated[
        dict[str, Any] | None,
        Doc("config; null if only statuses or offsets are left"),
        Shown(least=24, after="remarks"),
    ]
    topics: Annotated[list[str], Doc("topics that its tasks have used")]
    consumerGroup: Annotated[str | None, Doc("of a sink: the group that commits its offsets")]
    workerId: WorkerId
    generation: Generation
    version: PluginVersion
    trace: Trace
    failure: Failure
    deleted: Annotated[bool, Doc("whether it was deleted"), Shown(rank=8)]
    source: RecordSource
    offset: RecordOffset
    timestamp: Annotated[RecordTime, Shown("config of", 4, after="removedTime")]
    removedAt: RemovedAt
    removedTime: Annotated[RemovedTime, Shown("removed", 4)]
    remarks: Annotated[
        tuple[str, ...], Doc("what is not in effect, or not known"), Shown(rank=8, least=24, blank=0, cuts=TEXT)
    ]


@answer("connectorTask", _style)
class ConnectorTask(NamedTuple):
    """A task. Its source, offset and timestamp are those of the record with its config."""

    connectCluster: Annotated[ConnectClusterName, Shown("topics", 3)]
    connector: Annotated[ConnectorName, Shown(least=12, cuts=NAME)]
    task: Annotated[int, Doc("number of the task"), Shown()]
    state: Annotated[StatusState, Shown()]
    committed: Annotated[
        bool | None,
        Doc("whether its config is in effect; false: no commit follows it; null if only a status is left"),
        Shown(),
    ]
    config: Annotated[dict[str, Any] | None, Doc("config")]
    workerId: Annotated[WorkerId, Shown("worker", 5)]
    generation: Annotated[Generation, Shown(rank=3)]
    version: PluginVersion
    trace: Trace
    failure: Failure
    source: RecordSource
    offset: RecordOffset
    timestamp: Annotated[RecordTime, Shown("config of", 4)]


@answer("connectorOffset", _style)
class ConnectorOffset(NamedTuple):
    """Where a connector goes on, in Connect's own terms: of a sink, as its REST interface shows it."""

    connectCluster: Annotated[ConnectClusterName, Shown("topics", 3)]
    connector: Annotated[ConnectorName, Shown(least=12, cuts=NAME)]
    partition: Annotated[
        dict[str, Any] | None,
        Doc("partition of the source, or kafka_topic and kafka_partition"),
        Shown(least=20, cuts=NAME),
    ]
    offset: Annotated[Any, Doc("offset in it, or kafka_offset: the next one that it reads"), Shown(least=12)]
    state: Annotated[
        str,
        Doc(
            "live; deleted: by the record at removedAt; connectorDeleted: its connector was deleted; unknownConnector: "
            "no config of its connector is on these disks"
        ),
        Shown(),
    ]
    source: RecordSource
    recordOffset: RecordOffset
    timestamp: Annotated[RecordTime, Shown("time", 5)]
    removedAt: RemovedAt = None
    removedTime: Annotated[RemovedTime, Shown("removed", 4)] = None


@answer("mirrorCheckpoint", _style)
class MirrorCheckpoint(NamedTuple):
    """Where a group of another cluster would go on in this one, as MirrorMaker has translated its offset last."""

    sourceClusterAlias: Annotated[str, Doc("alias of the other cluster, from the topic's name"), Shown("from", 6)]
    group: Annotated[str, Doc("group"), Shown(least=12, cuts=NAME)]
    topic: Annotated[str, Doc("topic in this cluster"), Shown(least=12, cuts=NAME)]
    partition: Annotated[int, Doc("partition"), Shown()]
    upstreamOffset: Annotated[
        int, Doc("offset that the group has committed in the other cluster", OFFSET), Shown("upstream")
    ]
    offset: Annotated[int, Doc("offset in this cluster that it was translated to", OFFSET), Shown()]
    committedOffset: Annotated[
        int | None,
        Doc("offset that the group has committed in this cluster: it continues there; null if there is none", OFFSET),
        Shown("committed here", 8),
    ]
    metadata: Annotated[str, Doc("metadata of the commit")]
    source: RecordSource
    recordOffset: RecordOffset
    timestamp: Annotated[RecordTime, Shown("time", 5)]


def connectors(cluster: ConnectCluster, state: ConnectState, ends: LogOffsetsByPartition) -> Iterator[Connector]:
    """Yield all connectors, those that were deleted after the others. `ends`: the partitions of the same cluster."""
    for name in sorted({*state.configs, *state.statuses}):
        yield _connector(cluster, state, name, state.configs.get(name), None, ends)
    for name, removed in sorted(state.removed.items()):
        yield _connector(cluster, state, name, removed.config, removed.removed, ends)


def _connector(
    cluster: ConnectCluster,
    state: ConnectState,
    name: str,
    config: Stored | None,
    removed: Stored | None,
    ends: LogOffsetsByPartition,
) -> Connector:
    shown = None if config is None else without_secrets(config.value)
    kind = connector_type(state, name)
    target, count = state.target_states.get(name), state.task_counts.get(name)
    return Connector(
        connectCluster=cluster.name,
        name=name,
        connectorType=kind,
        targetState=None if target is None else target.value,
        tasks=None if count is None else count.value,
        config=shown,
        topics=sorted(state.topics.get(name, ())),
        consumerGroup=consumer_group(state, name) if kind == SINK else None,
        **_status(state.statuses.get(name)),
        deleted=removed is not None,
        **_place(cluster, config),
        removedAt=None if removed is None else removed.offset,
        removedTime=None if removed is None else removed.timestamp,
        remarks=tuple(_remarks(cluster, state, name, removed, ends)),
    )


def _remarks(
    cluster: ConnectCluster, state: ConnectState, name: str, removed: Stored | None, ends: LogOffsetsByPartition
) -> Iterator[str]:
    if removed is not None:
        return
    config, applied = state.configs.get(name), state.applied.get(name)
    if config is None and any(log.kind == CONFIGS for log in cluster.logs):
        yield "no config is left"
    if name in state.inconsistent:
        yield "the last commit lacks configs of tasks: workers run no task"
    elif config is not None and applied is not None and applied.value != config.value:
        yield f"its tasks run with the config at offset {applied.offset}"
    elif config is not None and applied is None:
        yield "no commit of its tasks yet"
    waiting = state.deferred.get(name)
    if waiting:
        yield f"{count_text(len(waiting), 'config')} of tasks without a commit, not in effect"
    history = None if config is None else schema_history(config.value, ends)
    yield from () if history is None else history.problems


def connector_type(state: ConnectState, name: str) -> str | None:
    """Return whether a connector is a source or a sink, as far as its config shows it."""
    removed = state.removed.get(name)
    stored = state.configs.get(name) or (removed and removed.config)
    config = {} if stored is None else stored.value
    if re.search(r"Source(Connector)?$|\.mirror\.Mirror", str(config.get("connector.class", ""))):
        return SOURCE
    return SINK if config.get("topics") or config.get("topics.regex") else None


def consumer_group(state: ConnectState, name: str) -> str:
    """Return the group of a sink. Source: SinkUtils.consumerGroupId."""
    removed = state.removed.get(name)
    stored = state.configs.get(name) or (removed and removed.config)
    named = {} if stored is None else stored.value
    return str(named.get("consumer.override.group.id") or f"connect-{name}")


def tasks(cluster: ConnectCluster, state: ConnectState) -> Iterator[ConnectorTask]:
    """Yield the tasks with a config in effect, those whose config no commit follows, and those that only have a
    status."""
    for name in sorted({*state.tasks, *state.deferred, *state.task_statuses}):
        effective, deferred = state.effective_tasks(name), state.deferred.get(name, {})
        statuses = state.task_statuses.get(name, {})
        rows: list[tuple[int, bool | None, Stored | None]] = [(task, True, effective[task]) for task in effective]
        rows += [(task, False, deferred[task]) for task in deferred]
        rows += [(task, None, None) for task in statuses if task not in effective and task not in deferred]
        for number, committed, config in sorted(rows, key=lambda row: (row[0], row[1] is False)):
            yield ConnectorTask(
                connectCluster=cluster.name,
                connector=name,
                task=number,
                committed=committed,
                config=None if config is None else without_secrets(config.value),
                **_status(statuses.get(number)),
                **_place(cluster, config),
            )


def source_offsets(cluster: ConnectCluster, state: ConnectState) -> Iterator[ConnectorOffset]:
    """Yield the offsets of sources, by connector, in the order of their records."""
    order = sorted((offset_key(key)[0], stored.at, stored.offset, key) for key, stored in state.offsets.items())
    for name, _, _, key in order:
        stored, partition = state.offsets[key], offset_key(key)[1]
        yield ConnectorOffset(
            connectCluster=cluster.name,
            connector=name,
            partition=without_secrets(partition),
            offset=without_secrets(connect_value(stored.value)),
            state=DELETED if stored.removed else state.state_of(name),
            source=cluster.logs[stored.at].log.path,
            recordOffset=stored.offset,
            timestamp=stored.timestamp,
            removedAt=stored.removed.offset if stored.removed else None,
            removedTime=stored.removed.timestamp if stored.removed else None,
        )


def sink_offsets(
    cluster: ConnectCluster, state: ConnectState, groups: GroupCoordinatorState
) -> Iterator[ConnectorOffset]:
    """Yield the offsets of sinks: those that their groups have committed."""
    for name in sorted({*state.configs, *state.removed}):
        group = consumer_group(state, name)
        if connector_type(state, name) != SINK or group not in groups.offsets:
            continue
        for (topic, partition), commit in sorted(groups.offsets[group].items()):
            yield ConnectorOffset(
                connectCluster=cluster.name,
                connector=name,
                partition={"kafka_topic": topic, "kafka_partition": partition},
                offset={"kafka_offset": commit.offset},
                state=state.state_of(name),
                source=None,
                recordOffset=commit.recordOffset,
                timestamp=commit.commitTimestamp,
            )


def checkpoint_answer(log: CoordinatorLog, checkpoint: Checkpoint, groups: GroupCoordinatorState) -> MirrorCheckpoint:
    commit = groups.offsets.find(checkpoint.group, (checkpoint.topic, checkpoint.partition))
    alias = CHECKPOINTS_TOPIC.fullmatch(log.topic)
    return of_fact(
        MirrorCheckpoint,
        checkpoint,
        sourceClusterAlias=alias[1] if alias else log.topic,
        committedOffset=None if commit is None else commit.offset,
        source=log.path,
        recordOffset=checkpoint.record_offset,
    )


def _place(cluster: ConnectCluster, stored: Stored | None) -> dict[str, Any]:
    if stored is None:
        return {"source": None, "offset": None, "timestamp": None}
    return {"source": cluster.logs[stored.at].log.path, "offset": stored.offset, "timestamp": stored.timestamp}


def _status(status: Stored | None) -> dict[str, Any]:
    """Return what a status states of a connector or task."""
    fields = {} if status is None else status.value
    texts = {"state": "state", "workerId": "worker_id", "version": "version", "trace": "trace"}
    stated = {name: _text(fields, key) for name, key in texts.items()}
    return {**stated, "generation": fields.get("generation"), "failure": _failure(fields)}


def _failure(fields: dict[str, Any]) -> str | None:
    """Return the last cause in a stack trace, or its first line."""
    lines = [line for line in (_text(fields, "trace") or "").splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = next(iter([*causes[-1:], *lines[:1]]), None)
    return HIDDEN if cause is not None and hides("failure", cause) else cause


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if value is None or isinstance(value, str) else json.dumps(value)
