"""Show what may be deleted on a full disk, in which order, what it frees and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from kdump.command_line.command_run import report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.properties_option import NodeProperties, properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.io.run import Run
from kdump.kafka.server_properties import ServerProperties
from kdump.query import CommandOptions, added, group, refuse_unmatched
from kdump.questions.retention.command import configured
from kdump.questions.space.answer import SpaceStep, SpaceSummary
from kdump.questions.space.report import SpaceReport
from kdump.questions.space.run import SpaceQuery, answers
from kdump.render.progress import Progress

EXAMPLES = """
\b
Examples:
  kdump space /var/lib/kafka
  kdump space /data/1 /data/2 --need 50G
  kdump space /var/lib/kafka --with broker-2.bundle --with broker-3.bundle
  kdump space /var/lib/kafka --json | jq -r 'select(.type=="spaceStep" and .isNeeded).command'

\b
Exit status: 0 if the steps free enough, 1 if they free less than is needed, or a stopped broker could still not start,
2 for a usage error, if something could not be read, or if the free space is unknown and --need does not state a goal.
"""


@dataclass(frozen=True)
class SpaceOptions(CommandOptions):
    """The options of the command."""

    query: SpaceQuery = group(SpaceQuery)
    server: ServerProperties | None = properties_option(found=True)
    output: OutputOptions = added(
        output_options(columns=CSV_COLUMNS_HELP, full="Do not truncate values, and show every path.", quiet="")
    )
    metrics: str | None = metrics_option()
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("retention", 2), to_the_end=True)
@takes(SpaceOptions)
def command(options: SpaceOptions) -> None:
    """Show what may be deleted on a broker's full disk, in which order, what each step frees and what it costs: the
    cheapest first. The log directories must all belong to one broker. Reads names, sizes and time indexes. Nothing is
    written."""
    read_once(options.query.paths)
    exit_with(lambda: _run(options))


def _run(options: SpaceOptions) -> int:
    """Run the command and return its exit status."""
    query = options.query
    node = NodeProperties(options.server, tuple(query.paths))
    properties = configured(node)
    output = options.output.output()
    sink = options.output.sink(output, lambda: SpaceReport(output, full=options.output.full), (SpaceStep,), report=True)
    node.show(options.output, output, sink)
    is_enough: bool | None = None
    with Progress("space") as progress:
        count = 0

        def begin(_: object) -> None:
            nonlocal count
            count += 1
            if not count % 100:
                progress.show(count_text(count, "partition"))

        run, remote = Run(options.reading.limits, report_unreadable, begin=begin), options.remote.storage()
        query = replace(query, properties=properties, remote=remote, run=run)
        for answer in answers(query):
            if isinstance(answer, SpaceSummary):
                is_enough = answer.isEnough
                refuse_unmatched(query.topics)
            sink.add(answer)
    sink.end()
    output.flush()
    return 2 if unreadable() or is_enough is None else int(not is_enough)
