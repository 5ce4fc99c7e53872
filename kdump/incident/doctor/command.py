"""Examine disks in an incident: what to do first, with evidence, and what not to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.params import DurationParam, parse_now, read_once
from kdump.command_line.properties_option import NodeProperties, properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.kafka_release import KafkaRelease
from kdump.incident.doctor.answer import Item
from kdump.incident.doctor.log_directories import find_log_directories
from kdump.incident.doctor.report import DoctorReport
from kdump.incident.doctor.run import Doctor, DoctorQuery
from kdump.io.run import Run
from kdump.kafka.server_properties import ServerProperties
from kdump.query import (
    OLD_TRANSACTION,
    CommandOptions,
    added,
    argument,
    group,
    many,
    now_option,
    option,
    release_option,
    timeout_option,
)
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
LOG_HELP = (
    "Also explain this log of the broker (server.log, also compressed, or - for standard input), next to what is on "
    "the disks; repeatable. Times without a zone are in that of --tz."
)
BUDGET = "Spend at most this long on each question; what was not examined is listed.  [60s]"


@dataclass(frozen=True)
class DoctorOptions(CommandOptions):
    """The options of the command. `budget` and `transaction_timeout` are in milliseconds."""

    paths: tuple[str, ...] = argument(metavar="[LOGDIR…]", nargs=-1)
    budget: int = option("--budget", type=DurationParam(), default="60s", metavar="TIME", help=BUDGET)
    logs: tuple[str, ...] = many("--log", metavar="FILE", help=LOG_HELP)
    now: str | None = now_option()
    transaction_timeout: int = timeout_option(OLD_TRANSACTION)
    kafka_version: KafkaRelease | None = release_option("Predict the startup")
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
    read_once((*options.paths, *options.logs))
    exit_with(lambda: _run(options if options.paths else _found(options)))


def _found(options: DoctorOptions) -> DoctorOptions:
    """Return the options with the log directories on this machine. Raises SourceError if there are none."""
    found = find_log_directories()
    print_error(f"examining {', '.join(found.directories)}: {found.why}")
    return replace(options, paths=found.directories)


def _run(options: DoctorOptions) -> int:
    """Run the command and return its exit status."""
    output = options.output.output(headline=False)
    sink = options.output.sink(output, lambda: DoctorReport(output, options.paths), (Item,), report=True)

    def emit(answer: Any) -> None:
        with uninterrupted():  # so that no line is cut
            sink.add(answer)
            output.tick()

    query = DoctorQuery(
        options.paths,
        options.reading.run(server=options.server, remote=options.remote.storage()),
        budget=options.budget / 1000,
        now=parse_now(options.now, options.output.zone),
        timeout=options.transaction_timeout,
        release=options.kafka_version,
        logs=options.logs,
        zone=options.output.zone,
    )
    ended: BaseException | None = None
    with Progress("doctor") as progress:

        def begin(name: str) -> None:
            progress.name, progress.done, progress.total = f"doctor: {name}", 0, None

        doctor = Doctor(query, emit, Run(begin=begin, more=progress.more, expect=progress.expect))
        NodeProperties(options.server, options.paths, doctor.disks).show(options.output, output, sink)
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
