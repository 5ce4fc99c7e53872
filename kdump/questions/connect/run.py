"""Kafka Connect and MirrorMaker, as their topics on a disk have them: the answers of `kdump connect` and
`kdump.connect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

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
from kdump.io.run import Run
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.query import Query, as_of_option, flag, history_option, many, offered, option, selects
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
from kdump.state.as_of import AskedAsOf, AsOf, Change, OffsetOfSeveralLogs
from kdump.state.connect_replay import CONNECTOR_DELETED, DELETED, ConnectState
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.recorded_change import RecordedChange, change_answer

__all__ = ["connect"]

Row = Connector | ConnectorTask | ConnectorOffset | MirrorCheckpoint
ConnectAnswer = Row | RecordedChange | Note
ROWS: dict[str, type] = {
    "connectors": Connector,
    "tasks": ConnectorTask,
    "offsets": ConnectorOffset,
    "checkpoints": MirrorCheckpoint,
}
"""Answers by name."""


@dataclass(frozen=True, kw_only=True)
class ConnectQuery(Query, AskedAsOf):
    """What to yield of Kafka Connect, and as of when."""

    connectors: Iterable[str] = many(
        "--connector", type="globs", help="Show only these connectors (a glob, a /regex/); repeatable."
    )
    show: Iterable[str] = option(
        "--show", choices=tuple(ROWS), otherwise=tuple(ROWS), help="Show only one of the tables.  [all of them]"
    )
    deleted: bool = flag("--deleted", help="Show only what was deleted, also from topics that a broker was to delete.")
    connect_topics: Iterable[str] = many(
        "--connect-topic",
        type="globs",
        help="Also read these topics of Connect, if they have other names than usual (a glob, a /regex/); repeatable.",
    )
    as_of: int | AsOf | None = as_of_option()
    history: bool = history_option()

    @cached_property
    def rows(self) -> frozenset[type]:
        return frozenset(ROWS[name] for name in self.show)

    @cached_property
    def connector(self) -> Callable[[str], bool]:
        return selects(self.connectors)


def answers(query: ConnectQuery) -> Iterator[ConnectAnswer]:
    """Yield what Kafka Connect and MirrorMaker hold, as their topics on these disks have it, with a Note for what could
    not be read and for what their workers skip. Secrets in configs are hidden.

    `show`: connectors (Connector), tasks (ConnectorTask), offsets (ConnectorOffset), checkpoints (MirrorCheckpoint);
    `history`: a RecordedChange for each change in place of these. Raises ValueError for an offset if there are several
    logs, and SourceError as `transactions` does."""
    run = query.run
    sources, notes = _find(tuple(query.paths), query)
    yield from notes
    clusters = [each for each in sources.clusters if query.deleted or not each.is_deleted]
    logs = [each.log for cluster in clusters for each in cluster.logs] + [log for _, log in sources.checkpoints]
    if query.moment.offset is not None and len(logs) > 1:
        raise OffsetOfSeveralLogs
    run.expect(size_of(logs))
    groups = _groups(sources, query)
    for state in groups.values():
        yield from (Note("", problem) for problem in state.problems)
    for each in clusters:
        directories = sources.topics.disks.clusters.get(each.cluster, [])
        paths = (directory.path for directory in directories)
        metadata = sources.topics.disks.newest_metadata(*paths)[1] if directories else None
        if not each.is_deleted:
            yield from (Note(each.name, missing) for missing in missing_partitions(each, metadata))
        ends = LogOffsetsByPartition(directories, metadata)
        yield from _cluster(each, groups[each.cluster], ends, query)
    if MirrorCheckpoint in query.rows and not query.deleted and not query.history:
        for cluster, log in sources.checkpoints:
            yield from _checkpoints(log, groups[cluster], query.moment, run)


connect = offered("connect", ConnectQuery, answers)


def _find(paths: tuple[str, ...], query: ConnectQuery) -> tuple[FoundConnect, list[Note]]:
    """Return what is under the paths, and notes on copies of logs that are not read."""
    topic = selects(query.connect_topics) if query.connect_topics else lambda name: False
    sources = find_connect(paths, query.run, topic)
    if not sources.clusters and not sources.checkpoints and sources.topics.is_complete:
        query.run.unreadable(SourceError.at(", ".join(paths), "no topics of Connect or MirrorMaker found"))
    return sources, [Note(log.path, OLDER) for log in sources.topics.older]


def _groups(sources: FoundConnect, query: ConnectQuery) -> dict[str, GroupCoordinatorState]:
    """Return the committed offsets in each Kafka cluster, as far as they are on its disks."""
    clusters = {other.cluster for other in sources.clusters} | {cluster for cluster, _ in sources.checkpoints}
    wanted = query.rows & {ConnectorOffset, MirrorCheckpoint} and not query.history
    moment = query.moment if query.moment.offset is None else AsOf()
    states = {}
    for cluster in clusters:
        mine = sources.topics.disks.clusters.get(cluster, [])
        logs = newest([log for directory in mine for log in logs_in(directory, (OFFSETS_TOPIC,))])
        states[cluster] = read_groups(logs if wanted else [], moment, room=ROOM_ALONE, run=query.run)
    return states


def _cluster(
    cluster: ConnectCluster,
    groups: GroupCoordinatorState,
    ends: LogOffsetsByPartition,
    query: ConnectQuery,
) -> Iterator[ConnectAnswer]:
    state = ConnectState()
    for log, change in connect_changes(cluster, state, query.moment, reports=query.history, run=query.run):
        if query.connector(change.name) or any(map(query.connector, _connectors_in(change))):
            yield change_answer(log.path, change)
    if not query.history:
        yield from (row for row in _rows(cluster, state, groups, ends) if _is_asked_for(row, query))
    query.run.found((cluster, state))
    yield from (Note(cluster.name, problem) for problem in state.problems)
    if query.moment.offset is not None and state.end_offsets[0] <= query.moment.offset:
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


def _is_asked_for(row: Connector | ConnectorTask | ConnectorOffset, query: ConnectQuery) -> bool:
    is_deleted = row.deleted if isinstance(row, Connector) else row.state in (DELETED, CONNECTOR_DELETED)
    name = row.name if isinstance(row, Connector) else row.connector
    return type(row) in query.rows and query.connector(name) and (is_deleted or not query.deleted)


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
