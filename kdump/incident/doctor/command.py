"""Examine disks in an incident: what to do first, with evidence, and what not to do."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.properties_option import print_unused, properties_option, show_configurations
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.incident.doctor.answer import Item
from kdump.incident.doctor.log_directories import find_log_directories
from kdump.incident.doctor.report import DoctorReport
from kdump.incident.doctor.run import Doctor, DoctorQuery
from kdump.io.run import Run
from kdump.kafka.server_properties import ServerProperties
from kdump.query import CommandOptions, added, group
from kdump.render.progress import Progress
from kdump.signals import Terminated, uninterrupted

EXAMPLES = """
\b
Examples:
  kdump doctor
  kdump doctor /var/lib/kafka
  kdump doctor /var/lib/kafka --log /var/log/kafka/server.log
  kdump doctor /disk1/kafka /disk2/kafka --budget 10m
  kdump doctor /var/lib/kafka --json | jq 'select(.type=="doctorItem") | .title'

\b
Exit status: 0 if there is nothing to do in what was examined, 1 if there is, 2 for a usage error, if something could
not be read, or if it is unknown whether the broker starts, 3 if it does not.
"""


@dataclass(frozen=True)
class DoctorOptions(CommandOptions):
    """The options of the command."""

    query: DoctorQuery = group(DoctorQuery)
    server: ServerProperties | None = properties_option(found=True)
    remote: RemoteOptions = group(RemoteOptions)
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: doctorItem and doctorQuestion as each is known, at the end one doctor.",
            columns=CSV_COLUMNS_HELP,
            full="",
            quiet=QUIET_HELP,
            zone=True,
        )
    )
    metrics: str | None = metrics_option()
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("incident", 1), to_the_end=True)
@takes(DoctorOptions)
def command(options: DoctorOptions) -> None:
    """Examine disks in an incident: whether the broker starts and what that loses, which partitions lack a leader or
    replicas, which transactions hold read_committed consumers, which groups are behind or were reset, what fills the
    disk, what is damaged, with the disks of several brokers where replicas diverge, and what a log is about. Ends with
    what to do, in order, with evidence, commands that show more, and what not to do. May be interrupted at any time.
    Nothing is written. Without LOGDIR it examines the log directories of the broker that is running here, or else those
    in the usual places."""
    query = options.query
    read_once((*query.paths, *(os.fspath(each) for each in query.logs)))
    exit_with(lambda: _run(options, query if query.paths else _found(query)))


def _found(query: DoctorQuery) -> DoctorQuery:
    """Return the question with the log directories on this machine. Raises SourceError if there are none."""
    found = find_log_directories()
    print_error(f"examining {', '.join(found.directories)}: {found.why}")
    return replace(query, paths=found.directories)


def _run(options: DoctorOptions, query: DoctorQuery) -> int:
    """Run the command and return its exit status."""
    output = options.output.output(headline=False)
    paths = tuple(query.paths)
    sink = options.output.sink(output, lambda: DoctorReport(output, paths), (Item,), report=True)

    def emit(answer: Any) -> None:
        with uninterrupted():  # so that no line is cut
            sink.add(answer)
            output.tick()

    reading = options.reading.run(server=options.server, remote=options.remote.storage())
    query = replace(query, run=reading, zone=options.output.zone)
    ended: BaseException | None = None
    with Progress("doctor") as progress:

        def begin(name: str) -> None:
            progress.name, progress.done, progress.total = f"doctor: {name}", 0, None

        doctor = Doctor(query, emit, Run(begin=begin, more=progress.more, expect=progress.expect))
        print_unused(doctor.unused)
        show_configurations(doctor.configurations, options.output, output, sink)
        try:
            doctor.run()
        except (KeyboardInterrupt, Terminated) as error:
            ended = error
    page = doctor.page(interrupted=ended is not None)
    sink.add(page)
    sink.end()
    output.flush()
    if ended is not None:
        raise ended
    for unread in page.unread if not sink.shows_unread else ():
        print_error(unread)
    return page.status
