"""Show Kafka Connect from its topics: connectors, configs, tasks, offsets; MirrorMaker's checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.cluster.connect_clusters import ConnectCluster
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import has_unmatched
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.state_options import Notes, limit_options, run_command
from kdump.command_line.typed_options import takes
from kdump.query import CommandOptions, LimitOptions, added, group
from kdump.questions.connect.run import ROWS, ConnectQuery, answers
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, TableRows
from kdump.state.as_of import OffsetOfSeveralLogs
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

    query: ConnectQuery = group(ConnectQuery)
    output: OutputOptions = added(output_options())
    reading: LimitOptions = added(limit_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 4))
@takes(ConnectOptions)
def command(options: ConnectOptions) -> None:
    """Show Kafka Connect as its topics have it: connectors, the configs in effect, tasks, states and offsets; and where
    MirrorMaker's checkpoints let a group go on. A path is a log directory, a partition directory of one of these
    topics, or a segment in it. The records are applied by the rules of Connect's workers; none is contacted. Secrets in
    configs are hidden. Nothing is written."""
    if options.query.history and (options.query.show != (*ROWS,) or options.query.deleted):
        raise click.UsageError("--history cannot be combined with --show or --deleted")
    run_command(ConnectCommand(options))


class ConnectCommand:
    """One run of the command."""

    def __init__(self, options: ConnectOptions) -> None:
        self.options, self.query = options, options.query
        shown = options.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        first = next(iter(self.query.show))
        if shown.names is not None:
            self.query = replace(self.query, show=first)
        rows = RecordedChange if self.query.history else ROWS[first]
        self.sink = shown.sink(self.output, lambda: TableRows(self.output, tables), (rows,))
        self.notes = Notes(self.sink)
        self.shown = 0

    def run(self) -> None:
        with Progress("connect") as progress:
            run = self.options.reading.run(unreadable=self.notes.add_unreadable, found=self._end, **progress.listeners)
            try:
                self.notes.add_all(answers(replace(self.query, run=run)), self._add)
            except OffsetOfSeveralLogs as error:
                raise click.UsageError(f"--as-of: {error}") from None
        if not self.shown and not has_unmatched() and not self.notes.failed:
            print_error("nothing to show")
        self.sink.end()

    def _end(self, found: tuple[ConnectCluster, ConnectState]) -> None:
        offset = self.query.moment.offset
        self.notes.failed |= offset is not None and found[1].end_offsets[0] <= offset

    def _add(self, answer: Any) -> None:
        self.shown += 1
        self.sink.add(answer)
