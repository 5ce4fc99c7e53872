"""`kdump connect`: Kafka Connect and MirrorMaker, as their topics on the disk have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from kdump.cluster.connect_clusters import ConnectCluster
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import topic_filter
from kdump.command_line.state_options import Notes, StateOptions, parse_as_of, run_command
from kdump.command_line.typed_options import takes
from kdump.query import CommandOptions, argument, flag, group, many, option
from kdump.questions.connect.run import ROWS, ConnectQuery, connect
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, TableRows
from kdump.state.as_of import AsOf, OffsetOfSeveralLogs
from kdump.state.connect_replay import ConnectState
from kdump.state.recorded_change import RecordedChange

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


@dataclass(frozen=True)
class ConnectOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    names: tuple[str, ...] = many(
        "--connector", metavar="GLOB", help="Show only these connectors (a glob, a /regex/); repeatable."
    )
    show: str | None = option(
        "--show", type=click.Choice(list(ROWS)), help="Show only one of the tables.  [all of them]"
    )
    deleted: bool = flag("--deleted", help="Show only what was deleted, also from topics that a broker was to delete.")
    topics: tuple[str, ...] = many(
        "--connect-topic",
        metavar="GLOB",
        help="Also read these topics of Connect, if they have other names than usual (a glob, a /regex/); repeatable.",
    )
    state: StateOptions = group(StateOptions)


@click.command(cls=HelpPage, epilog=EXAMPLES)
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
        self.options, self.moment = options, moment
        shown = options.state.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        rows = RecordedChange if options.state.history else ROWS[options.show or "connectors"]
        self.sink = shown.sink(self.output, lambda: TableRows(self.output, tables), (rows,))
        self.only = {rows} if options.show or shown.names is not None else set(ROWS.values())
        self.notes = Notes(self.sink)
        self.name = topic_filter(options.names, "--connector")
        self.topic = topic_filter(options.topics, "--connect-topic")
        self.shown = 0

    def run(self) -> None:
        options = self.options
        question = ConnectQuery(
            rows=frozenset(self.only),
            moment=self.moment,
            history=options.state.history,
            deleted=options.deleted,
            connector=self.name,
            topic=self.topic if options.topics else lambda name: False,
            on_cluster=self._end,
        )
        with Progress("connect") as progress:
            run = options.state.reading.run(unreadable=self.notes.add_unreadable, **progress.listeners)
            try:
                self.notes.add_all(connect(options.paths, question, run), self._add)
            except OffsetOfSeveralLogs as error:
                raise click.UsageError(f"--as-of: {error}") from None
        if not self.shown and not (*self.name.unmatched(), *self.topic.unmatched()) and not self.notes.failed:
            print_error("nothing to show")
        self.sink.end()

    def _end(self, cluster: ConnectCluster, state: ConnectState) -> None:
        self.notes.failed |= self.moment.offset is not None and state.end_offsets[0] <= self.moment.offset

    def _add(self, answer: Any) -> None:
        self.shown += 1
        self.sink.add(answer)
