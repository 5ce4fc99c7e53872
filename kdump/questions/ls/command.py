"""List log directories: whose disk each is (cluster and node IDs), and what each partition has."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import NoReturn

import click

from kdump.cluster.directory_summary import LogDirectorySummary
from kdump.cluster.disks import Disks
from kdump.cluster.segment_answer import ListedSegment
from kdump.command_line.command_run import print_error, report_unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.properties_option import properties_option
from kdump.command_line.reading_options import low_impact_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.unreadable_paths import failures
from kdump.kafka.server_properties import ServerProperties
from kdump.query import CommandOptions, added, group
from kdump.questions.ls.answer import ListedPartition, ListedTopic
from kdump.questions.ls.report import LsReport
from kdump.questions.ls.rows import LsRow
from kdump.questions.ls.run import (
    NONE_OF_KIND,
    DirectoryStart,
    Listing,
    LsPart,
    LsQuery,
    RowsEnd,
    ls_answers,
    ls_row_answers,
)
from kdump.render.amounts import size_text
from kdump.render.progress import Progress
from kdump.render.table import OtherColumns, UnknownColumn

EXAMPLES = """
\b
Examples:
  kdump ls /var/lib/kafka
  kdump ls /var/lib/kafka --sort size -n 20
  kdump ls /var/lib/kafka --by topic --no-internal --quick
  kdump ls /var/lib/kafka/payments-0

\b
Exit status: 0 on success, 2 for a usage error, or if something could not be read (the rest is shown).
"""
LARGE = 64 << 30
"""Total size of segments in bytes from which a note recommends --quick."""
ROWS: dict[str | None, tuple[type, ...]] = {
    "partition": (ListedPartition,),
    "topic": (ListedTopic,),
    "segment": (ListedSegment,),
    None: (ListedPartition, ListedSegment),
}
"""Classes of the rows, by the option --by."""


@dataclass(frozen=True)
class LsOptions(CommandOptions):
    """The options of the command."""

    query: LsQuery = group(LsQuery)
    server: ServerProperties | None = properties_option()
    metrics: str | None = metrics_option()
    remote: RemoteOptions = group(RemoteOptions)
    output: OutputOptions = added(output_options())


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("disk", 1))
@takes(LsOptions)
@low_impact_options
def command(options: LsOptions) -> None:
    """List log directories: cluster and node IDs, whether the broker was shut down cleanly, and the contents of each
    partition. A path is a log directory, a partition directory, a segment, or a parent directory. Every batch header
    is read, but no records; run kdump verify to check those, too. Nothing is written to the disk."""
    if options.query.segments and options.query.by not in (None, "segment"):
        raise click.UsageError("choose one of --segments and --by")
    if options.query.rows == "segment" and options.query.sort == "segments":
        raise click.UsageError("--sort segments applies only to rows of partitions or topics")
    run_ls(options)


class LsRun:
    """One run of the command. `failed`: whether something could not be read."""

    def __init__(self, options: LsOptions) -> None:
        self.options, self.query, shown = options, options.query, options.output
        self.output = shown.output()
        self.failed = False
        self._reads_all = not self.query.quick and self.query.limit is None
        self._damaged = self._shown = 0
        self._disks = Disks.at(tuple(self.query.paths), server=options.server)
        self._sink = shown.sink(
            self.output,
            lambda: LsReport(
                self.output, zone=shown.zone, names=shown.names, full=shown.full, by_size=self.query.sort == "size"
            ),
            ROWS[self.query.rows],
            objects=ls_answers,
            row_objects=ls_row_answers,
        )

    def run(self) -> None:
        """Show everything that is selected."""
        query = self.query
        with Progress("ls") as progress:

            def more(count: int) -> None:
                progress.more(count)
                self._sink.tick()

            def expect(size: int) -> None:
                progress.expect(progress.done + size)

            run = Run(more=more, expect=expect, found=self._found, unreadable=self._unread)
            try:
                for part in Listing(replace(query, run=run), self._disks).parts():
                    self._part(part)
            except (UnknownColumn, OtherColumns) as error:
                raise click.UsageError(str(error)) from None
        self._sink.end()
        self.output.flush()
        if not self._shown and query.internal is not None and not query.topics and not self.failed:
            print_error(NONE_OF_KIND[query.internal])
        if self._damaged:
            found_in = count_text(self._damaged, "place")
            print_error(f"damage found in {found_in}; run kdump verify for details and impact")

    def _part(self, part: LsPart) -> None:
        self._sink.add(part)
        if isinstance(part, LsRow):
            self._damaged += part.is_damaged
        elif isinstance(part, RowsEnd):
            self._shown += part.shown
            self.output.tick()
        elif isinstance(part, DirectoryStart) and part.rows.size >= LARGE and self._reads_all:
            size = size_text(part.rows.size)
            print_error(f"{size} of segments; use --quick to read only the first and last batches of each")

    def _found(self, facts: LogDirectorySummary) -> None:
        paths = {os.path.join(os.path.abspath(facts.directory.path), name) for name in facts.broken}
        self._damaged += bool(paths - failures().keys())

    def _unread(self, error: SourceError) -> None:
        self.failed |= report_unreadable(error)


def run_ls(options: LsOptions) -> NoReturn:
    """List the paths, then exit with its status."""

    def run() -> int:
        options.remote.mount(tuple(options.query.paths))
        ls = LsRun(options)
        ls.run()
        return 2 if ls.failed else 0

    exit_with(run)
