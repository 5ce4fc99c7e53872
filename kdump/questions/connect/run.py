"""Kafka Connect and MirrorMaker, as their topics on a disk have them: the answers of `kdump connect` and
`kdump.connect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kdump.answer import Note
from kdump.cluster.connect_clusters import (
    CONFIGS,
    OFFSETS,
    STATUS,
    ConnectCluster,
    FoundConnect,
    connect_changes,
    find_connect,
    missing_partitions,
    read_checkpoints,
)
from kdump.cluster.find_state_logs import OLDER, logs_in
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, log_name, newest, read_groups, size_of
from kdump.io.errors import SourceError, within
from kdump.io.run import PLAIN_RUN, Run, ignore
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.questions.connect.answer import (
    Connector,
    ConnectorOffset,
    ConnectorTask,
    MirrorCheckpoint,
    checkpoint_answer,
    connectors,
    sink_offsets,
    source_offsets,
    tasks,
)
from kdump.state.as_of import AsOf, Change, OffsetOfSeveralLogs
from kdump.state.connect_replay import CONNECTOR_DELETED, DELETED, ConnectState
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.recorded_change import RecordedChange, change_answer

Row = Connector | ConnectorTask | ConnectorOffset | MirrorCheckpoint
ConnectAnswer = Row | RecordedChange | Note
ROWS: dict[str, type] = {
    "connectors": Connector,
    "tasks": ConnectorTask,
    "offsets": ConnectorOffset,
    "checkpoints": MirrorCheckpoint,
}
"""Answers by name."""


class ConnectQuery(NamedTuple):
    """What to select. `rows`: the classes of the answers; `history`: what each record changed in their place;
    `deleted`: only what was deleted. `connector` is a predicate of names; `topic`: of topics of Connect that have other
    names than usual. `on_cluster` is called after the answers of each Connect cluster, with its state."""

    rows: frozenset[type] = frozenset(ROWS.values())
    moment: AsOf = AsOf()
    history: bool = False
    deleted: bool = False
    connector: Callable[[str], bool] = lambda name: True
    topic: Callable[[str], bool] = lambda name: False
    on_cluster: Callable[[ConnectCluster, ConnectState], object] = ignore


def connect(paths: Iterable[str], question: ConnectQuery, run: Run = PLAIN_RUN) -> Iterator[ConnectAnswer]:
    """Yield the answers about each Connect cluster and MirrorMaker whose topics are under the paths, with a Note for
    what could not be read, and for what workers skip. What cannot be read is passed to `run.unreadable`. Raises
    OffsetOfSeveralLogs."""
    sources, notes = _find(tuple(paths), question, run)
    yield from notes
    clusters = [each for each in sources.clusters if question.deleted or not each.is_deleted]
    logs = [each.log for cluster in clusters for each in cluster.logs] + [log for _, log in sources.checkpoints]
    if question.moment.offset is not None and len(logs) > 1:
        raise OffsetOfSeveralLogs
    run.expect(size_of(logs))
    groups = _groups(sources, question, run)
    for state in groups.values():
        yield from (Note("", problem) for problem in state.problems)
    for each in clusters:
        directories = sources.topics.disks.clusters.get(each.cluster, [])
        paths = (directory.path for directory in directories)
        metadata = sources.topics.disks.newest_metadata(*paths)[1] if directories else None
        if not each.is_deleted:
            yield from (Note(each.name, missing) for missing in missing_partitions(each, metadata))
        ends = LogOffsetsByPartition(directories, metadata)
        yield from _cluster(each, groups[each.cluster], ends, question, run)
    if MirrorCheckpoint in question.rows and not question.deleted and not question.history:
        for cluster, log in sources.checkpoints:
            yield from _checkpoints(log, groups[cluster], question.moment, run)


def _find(paths: tuple[str, ...], question: ConnectQuery, run: Run) -> tuple[FoundConnect, list[Note]]:
    """Return what is under the paths, and notes on copies of logs that are not read."""
    sources = find_connect(paths, run, question.topic)
    if not sources.clusters and not sources.checkpoints and sources.topics.is_complete:
        run.unreadable(SourceError(f"{', '.join(paths)}: no topics of Connect or MirrorMaker found"))
    return sources, [Note(log.path, OLDER) for log in sources.topics.older]


def _groups(sources: FoundConnect, question: ConnectQuery, run: Run) -> dict[str, GroupCoordinatorState]:
    """Return the committed offsets in each Kafka cluster, as far as they are on its disks."""
    clusters = {other.cluster for other in sources.clusters} | {cluster for cluster, _ in sources.checkpoints}
    wanted = question.rows & {ConnectorOffset, MirrorCheckpoint} and not question.history
    moment = question.moment if question.moment.offset is None else AsOf()
    states = {}
    for cluster in clusters:
        mine = sources.topics.disks.clusters.get(cluster, [])
        logs = newest([log for directory in mine for log in logs_in(directory, (OFFSETS_TOPIC,))])
        states[cluster] = read_groups(logs if wanted else [], moment, room=ROOM_ALONE, run=run)
    return states


def _cluster(
    cluster: ConnectCluster,
    groups: GroupCoordinatorState,
    ends: LogOffsetsByPartition,
    question: ConnectQuery,
    run: Run,
) -> Iterator[ConnectAnswer]:
    state = ConnectState()
    for log, change in connect_changes(cluster, state, question.moment, reports=question.history, run=run):
        if question.connector(change.name) or any(map(question.connector, _connectors_in(change))):
            yield change_answer(log.path, change)
    if not question.history:
        yield from (row for row in _rows(cluster, state, groups, ends) if _is_asked_for(row, question))
    question.on_cluster(cluster, state)
    yield from (Note(cluster.name, problem) for problem in state.problems)
    if question.moment.offset is not None and state.end_offsets[0] <= question.moment.offset:
        note = f"ends at offset {state.end_offsets[0]}; this is the state at its end"
        yield Note(cluster.logs[0].log.path, note)


def _rows(
    cluster: ConnectCluster, state: ConnectState, groups: GroupCoordinatorState, ends: LogOffsetsByPartition
) -> Iterator[Connector | ConnectorTask | ConnectorOffset]:
    kinds = {log.kind for log in cluster.logs}
    if kinds & {CONFIGS, STATUS}:
        yield from connectors(cluster, state, ends)
        yield from tasks(cluster, state)
    if OFFSETS in kinds:
        yield from source_offsets(cluster, state)
    yield from sink_offsets(cluster, state, groups)


def _is_asked_for(row: Connector | ConnectorTask | ConnectorOffset, question: ConnectQuery) -> bool:
    is_deleted = row.deleted if isinstance(row, Connector) else row.state in (DELETED, CONNECTOR_DELETED)
    name = row.name if isinstance(row, Connector) else row.connector
    return type(row) in question.rows and question.connector(name) and (is_deleted or not question.deleted)


def _checkpoints(
    log: CoordinatorLog, groups: GroupCoordinatorState, moment: AsOf, run: Run
) -> Iterator[MirrorCheckpoint | Note]:
    notes: list[Note] = []
    place = log_name(log)
    checkpoints = read_checkpoints(log, moment, lambda problem: notes.append(Note("", within(place, problem))), run)
    yield from (checkpoint_answer(log, checkpoint, groups) for checkpoint in sorted(checkpoints))
    yield from notes


def _connectors_in(change: Change) -> tuple[str, ...]:
    """Return the connector of a change whose name has more than it."""
    if change.entity in ("pendingTask", "taskStatus"):
        return (change.name.rpartition("-")[0],)
    return (change.name.partition(" ")[0],) if change.entity in ("topic", "sourceOffset") else ()
