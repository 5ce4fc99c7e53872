"""Explain when segments are deleted or compacted, by which config, and why others are not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.answer import Note
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.properties_option import NodeProperties, properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.state_options import Notes, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.kafka.server_properties import ServerProperties
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.retention.answer import PartitionRetention, RetentionBlocker, SegmentRetention
from kdump.questions.retention.configs import broker_names
from kdump.questions.retention.partition import RetentionQuery
from kdump.questions.retention.report import HoldTable, RetentionReport
from kdump.questions.retention.run import answers
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables

EXAMPLES = """
\b
Examples:
  kdump retention /var/lib/kafka/clicks-0
  kdump retention /var/lib/kafka --properties /etc/kafka/server.properties
  kdump retention /var/lib/kafka --json | jq -c 'select(.type=="retentionHold")'
  kdump retention clicks-0 --config retention.ms=3600000 --now 2026-11-21T09:00

\b
Exit status: 0 if nothing is kept longer than the configs require, 1 if something is, 2 for a usage error, or if
something could not be read or determined.
"""


@dataclass(frozen=True)
class RetentionOptions(CommandOptions):
    """The options of the command."""

    listing: bool = flag("--list", help="Show each partition in full.  [log directory: one row per partition]")
    holds: bool = flag("--holds", help="Show only what keeps data longer than the configs require, one row per cause.")
    server: ServerProperties | None = properties_option(found=True)
    headers: bool = flag("--headers", help="Read batch headers only: faster, but tombstones are not counted.")
    query: RetentionQuery = group(RetentionQuery)
    remote: RemoteOptions = group(RemoteOptions)
    output: OutputOptions = added(output_options())
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("retention", 1), to_the_end=True)
@takes(RetentionOptions)
def command(options: RetentionOptions) -> None:
    """Explain why segments are not deleted or compacted: which are deleted now, which later and when, and by which
    config; what is clean and dirty, and whether the log cleaner would clean it; and what is kept longer than the
    configs require, and by which record (a timestamp in the future), transaction or bytes. With tiered storage, also
    what local.retention.ms and local.retention.bytes keep on the disk. A path is a segment, a partition directory, a
    log directory, or a parent directory. Nothing is written."""
    if options.query.keys and options.headers:
        raise click.UsageError("choose one of --keys and --headers")
    if options.holds and options.listing:
        raise click.UsageError("choose one of --list and --holds")
    read_once(options.query.paths)
    run_command(RetentionCommand(options))


def configured(node: NodeProperties) -> Mapping[str, str]:
    """Return the configs from --properties, or the file that was found."""
    server = node.server
    values = server.values if server is not None else {}
    if server is not None and node.is_given and not broker_names() & values.keys():
        print_error(
            f"--properties {path_text(server.path)}: sets none of the configs used here, such as log.retention.ms"
        )
    return values


class RetentionCommand:
    """One run of the command."""

    def __init__(self, options: RetentionOptions) -> None:
        self.options = options
        self.node = NodeProperties(options.server, tuple(options.query.paths))
        self.output = options.output.output()
        self.now = round(time.time() * 1000) if options.query.now is None else options.query.now
        row = RetentionBlocker if options.holds else SegmentRetention if options.listing else PartitionRetention
        self.sink = options.output.sink(self.output, self._text, (row,))
        self.notes = Notes(self.sink)
        self.status = 0
        self.holds = 0
        """Number of what keeps data longer than the configs require."""

    def _text(self) -> Sink[Any]:
        options, shown = self.options, self.options.output
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        if options.holds:
            return HoldTable(tables)
        if options.listing and shown.columns:
            raise click.UsageError("--columns applies only to the rows of partitions, or to those of --holds")
        return RetentionReport(self.output, tables, self.now, single=options.listing)

    def run(self) -> int:
        options = self.options
        self.node.show(options.output, self.output, self.sink)
        properties = configured(self.node)
        query = replace(options.query, now=self.now, properties=properties, deep=not options.headers)
        with Progress("retention") as progress:
            run = options.reading.run(
                unreadable=self.notes.add_unreadable, begin=self.notes.begin, **progress.listeners
            )
            servers = self.node.disks.servers
            for answer in answers(replace(query, run=run), servers=servers, remote=options.remote.storage()):
                self._status(answer)
                if isinstance(answer, Note):
                    self.notes.add(answer.source, answer.message)
                elif not options.holds or isinstance(answer, RetentionBlocker):
                    self.holds += isinstance(answer, RetentionBlocker)
                    self.sink.add(answer)
        if not self.notes.seen and not self.notes.failed:
            if not options.query.topics:
                print_error("no partition with a segment found")
            self.notes.failed = True
        if options.holds and not self.holds:
            seen = count_text(self.notes.seen, "partition")
            print_error(f"nothing is kept longer than the configs require in {seen}")
        self.sink.end()
        return self.status

    def _status(self, answer: SegmentRetention | RetentionBlocker | PartitionRetention | Note) -> None:
        if isinstance(answer, PartitionRetention):
            status = {"held": 1, "unknown": 2}.get(answer.verdict, 0)
            self.status = max(self.status, status)
