"""`kdump connect`: Kafka Connect and MirrorMaker, as their topics on the disk have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.cluster.connect_clusters import (
    CONFIGS,
    OFFSETS,
    STATUS,
    ConnectCluster,
    FoundConnect,
    find_connect,
    read_checkpoints,
    read_connect,
)
from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.read_groups import CoordinatorLog, log_name, newest, read_groups
from kdump.commands.input_files import print_error
from kdump.commands.name_options import topic_filter
from kdump.commands.state_options import Notes, StateOptions, parse_as_of, run_command
from kdump.commands.typed_options import CommandOptions, argument, flag, group, many, option, takes
from kdump.forensics.answers import RecordedChange
from kdump.forensics.connect_answer import (
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
from kdump.forensics.groups_answer import change_object
from kdump.log import file_system
from kdump.log.errors import SourceError, within
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.log.run import QUIET_RUN
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, TableRows
from kdump.state.as_of import AsOf, Change
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE

EXAMPLES = """
\b
Examples:
  kdump connect /var/lib/kafka
  kdump connect /var/lib/kafka --connector orders-sink --json | jq .config
  kdump connect /var/lib/kafka --show offsets --deleted
  kdump connect /var/lib/kafka --history --connector 'orders-*'

\b
Exit status: 0 on success, 2 for a usage error, if a path could not be read (the others are shown), or if a log
does not reach the offset in --as-of.
"""
SHOW: dict[str, type] = {
    "connectors": Connector,
    "tasks": ConnectorTask,
    "offsets": ConnectorOffset,
    "checkpoints": MirrorCheckpoint,
}


@dataclass(frozen=True)
class ConnectOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    names: tuple[str, ...] = many(
        "--connector", metavar="GLOB", help="Show only these connectors (a glob, a /regex/); repeatable."
    )
    show: str | None = option(
        "--show", type=click.Choice(list(SHOW)), help="Show only one of the tables.  [all of them]"
    )
    deleted: bool = flag("--deleted", help="Show only what was deleted, also from topics that a broker was to delete.")
    topics: tuple[str, ...] = many(
        "--connect-topic",
        metavar="GLOB",
        help="Also read these topics of Connect, if they have other names than usual (a glob, a /regex/); repeatable.",
    )
    state: StateOptions = group(StateOptions)


@click.command(epilog=EXAMPLES)
@takes(ConnectOptions)
def command(options: ConnectOptions) -> None:
    """Show Kafka Connect as its topics have it: connectors, the configs in effect, tasks, states and offsets; and where
    MirrorMaker's checkpoints let a group go on. A path is a log directory, a partition directory of one of these
    topics, or a segment in it. The records are applied by the rules of Connect's workers; none is contacted. Secrets in
    configs are hidden. Nothing is written."""
    if options.state.history and (options.show or options.deleted):
        raise click.UsageError("--history cannot be combined with --show or --deleted")
    moment = parse_as_of(options.state.as_of, options.state.output.zone)
    run_command(ConnectCommand(options, moment))


class ConnectCommand:
    """One run of the command."""

    def __init__(self, options: ConnectOptions, moment: AsOf) -> None:
        self.options = options
        self.moment = moment
        shown = options.state.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        self.rows = RecordedChange if options.state.history else SHOW[options.show or "connectors"]
        self.sink = shown.sink(self.output, lambda: TableRows(self.output, tables), (self.rows,))
        self.only = {self.rows} if options.show or shown.names is not None else set(SHOW.values())
        self.notes = Notes(self.sink)
        self.name = topic_filter(options.names, "--connector")
        self.topic = topic_filter(options.topics, "--connect-topic")
        self.reading = options.state.reading.run(unreadable=self.notes.add_unreadable)
        self.shown = 0

    def run(self) -> None:
        found = self._find()
        clusters = [each for each in found.clusters if self.options.deleted or not each.is_deleted]
        logs = [each.log for cluster in clusters for each in cluster.logs] + [log for _, log in found.checkpoints]
        if self.moment.offset is not None and len(logs) > 1:
            raise click.UsageError("--as-of: an offset applies to a single log; pass one, or use a time")
        with Progress("connect") as progress:
            paths = [path for log in logs for path in log.segments]
            progress.total = sum(file_system.getsize(path) for path in paths if file_system.isfile(path))
            self.reading = replace(self.reading, more=progress.more)
            groups = self._groups(found)
            for each in clusters:
                self._cluster(each, groups)
            for cluster, log in found.checkpoints if MirrorCheckpoint in self.only and not self.options.deleted else ():
                self._checkpoints(log, groups[cluster])
        if not self.shown and not (*self.name.unmatched(), *self.topic.unmatched()) and not self.notes.failed:
            print_error("nothing to show")
        self.sink.end()

    def _find(self) -> FoundConnect:
        paths = self.options.paths
        readable = []
        for path in paths:
            try:
                find_connect([path], QUIET_RUN)
                readable.append(path)
            except SourceError as error:
                self.notes.add_unreadable(error)
        found = find_connect(readable, self.reading, lambda topic: bool(self.options.topics) and self.topic(topic))
        if not found.clusters and not found.checkpoints and not self.notes.failed:
            self.notes.add_unreadable(SourceError(f"{', '.join(paths)}: no topics of Connect or MirrorMaker found"))
        for log in found.topics.older:
            print_error(f"{path_text(log.path)}: not read; another copy of it ends at the same offset or a higher one")
        return found

    def _groups(self, found: FoundConnect) -> dict[str, GroupCoordinatorState]:
        """Return the committed offsets in each Kafka cluster, as far as they are on its disks."""
        clusters = {each.cluster for each in found.clusters} | {cluster for cluster, _ in found.checkpoints}
        states = {}
        for cluster in clusters:
            mine = [each for other, each in found.topics.directories if other == cluster]
            logs = newest([log for each in mine for log in logs_in(each, (OFFSETS_TOPIC,))])
            wanted = self.only & {ConnectorOffset, MirrorCheckpoint} and not self.options.state.history
            moment = self.moment if self.moment.offset is None else AsOf()
            states[cluster] = read_groups(logs if wanted else [], moment, room=ROOM_ALONE, run=self.reading)
            self.notes.all("", states[cluster].problems)
        return states

    def _cluster(self, found: ConnectCluster, groups: dict[str, GroupCoordinatorState]) -> None:
        history = self._history if self.options.state.history else None
        state = read_connect(found, self.moment, on_change=history, run=self.reading)
        kinds = {each.kind for each in found.logs}
        if history is None:
            if kinds & {CONFIGS, STATUS}:
                self._add_all(connectors(found, state))
                self._add_all(tasks(found, state))
            if OFFSETS in kinds:
                self._add_all(source_offsets(found, state))
            self._add_all(sink_offsets(found, state, groups[found.cluster]))
        self.notes.all(found.name, state.problems)
        if self.moment.offset is not None and state.end_offsets[0] <= self.moment.offset:
            text = f"ends at offset {state.end_offsets[0]}; this is the state at its end"
            self.notes.add(path_text(found.logs[0].log.path), text)
            self.notes.failed = True

    def _checkpoints(self, log: CoordinatorLog, groups: GroupCoordinatorState) -> None:
        place = log_name(log)
        found = read_checkpoints(
            log,
            self.moment,
            lambda problem: self.notes.add("", within(place, problem)),
            self.reading,
        )
        for each in sorted(found):
            self._add(checkpoint_answer(log, each, groups))

    def _add_all(self, answers: Any) -> None:
        for each in answers:
            name = each.name if isinstance(each, Connector) else each.connector
            is_deleted = getattr(each, "deleted", getattr(each, "state", "") in ("deleted", "connectorDeleted"))
            if type(each) in self.only and self.name(name) and (is_deleted or not self.options.deleted):
                self._add(each)

    def _add(self, answer: Any) -> None:
        self.shown += 1
        self.sink.add(answer)

    def _history(self, log: CoordinatorLog) -> Callable[[Change], None]:
        def on_change(change: Change) -> None:
            if self.name(change.name) or any(map(self.name, _connectors_in(change))):
                self._add(change_object(path_text(log.path), change))

        return on_change


def _connectors_in(change: Change) -> tuple[str, ...]:
    """Return the connector of a change whose name has more than it."""
    if change.entity in ("pendingTask", "taskStatus"):
        return (change.name.rpartition("-")[0],)
    return (change.name.partition(" ")[0],) if change.entity in ("topic", "sourceOffset") else ()
