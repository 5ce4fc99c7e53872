"""Rebuild a cluster's metadata, if controllers are lost or halt at a record, from what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.params import Param, parse_as_of
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.format.kafka_release import KafkaRelease
from kdump.io.run import Run
from kdump.log.output_directory import OutputError
from kdump.query import CommandOptions, added, argument, flag, many, option, release_option
from kdump.questions.rescue.answer import RescueCopy, RescueError
from kdump.questions.rescue.report import RescueReport
from kdump.questions.rescue.rescuer import NewController, RescueRequest
from kdump.questions.rescue.run import rescue
from kdump.render.progress import Progress

CONTROLLER = re.compile(r"(\d{1,10})@(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@\[\]]+)):(\d{1,5})")
EXAMPLES = """
\b
Examples:
  kdump rescue /mnt/controller-1 /mnt/broker-2 --dry-run
  kdump rescue /mnt/broker-* --controller 1@kafka-1:9093 --out /tmp/rescued
  kdump rescue /mnt/broker-* --as-of 2026-11-20T03:00 --out /tmp/rescued
  kdump rescue /mnt/controller-* --leave-out 8153 --out /tmp/rescued    # also without the record at offset 8153
  kdump rescue /mnt/broker-* --from-data --kafka-version 4.3 --controller 1@kafka-1:9093 --out /tmp/rescued

\b
Exit status: 0 if every record of every copy is kept, 1 if records were left out, or other copies have records that
this one does not, or directories are of topics that it does not have, or with --from-data, 2 for a usage error, if a
path could not be read, or if nothing was written.
"""


class ControllerParam(Param):
    """A controller as controller.quorum.voters names it: 1@host:9093."""

    name = "ID@HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NewController:
        if isinstance(value, NewController):
            return value
        match = CONTROLLER.fullmatch(value)
        if match is None or int(match[1]) >= 1 << 31 or not 0 < int(match[4]) < 1 << 16:
            self.fail(f"{value!r} is not a controller; use ID@HOST:PORT, such as 1@kafka-1:9093", param, ctx)
        return NewController(int(match[1]), match[2] or match[3], int(match[4]))


@dataclass(frozen=True)
class RescueOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    out: str | None = option(
        "--out", metavar="DIR", help="Write log directories for controllers to this new directory."
    )
    dry_run: bool = flag("--dry-run", help="Write nothing; show what would be written.")
    as_of: str | None = option(
        "--as-of",
        metavar="OFFSET|TIME",
        help="Take the state as of this offset or time, inclusive (ISO-8601, epoch ms, -2h).",
    )
    copy: str | None = option(
        "--copy", metavar="DIR", help="Take the state from the copy in this log directory.  [the newest]"
    )
    leave_out: tuple[int, ...] = many(
        "--leave-out", type=click.IntRange(0, (1 << 63) - 1), help="Leave out the record at this offset; repeatable."
    )
    controllers: tuple[NewController, ...] = many(
        "--controller",
        type=ControllerParam(),
        help="Write a log directory for this controller; repeatable.  [the voters that the metadata names]",
    )
    kafka_version: KafkaRelease | None = release_option("Leave out what controllers cannot apply that are")
    from_data: bool = flag(
        "--from-data", help="If no copy of the metadata is left: rebuild it from the brokers' partition directories."
    )
    configs: str | None = option(
        "--configs",
        metavar="FILE",
        help="With --from-data: take configs from this file: the output of kafka-configs.sh --describe or "
        "kafka-topics.sh --describe, or JSON.",
    )
    with_stray: bool = flag(
        "--with-stray", help="With --from-data: also rebuild topics that only stray directories have."
    )
    dynamic_quorum: bool = flag(
        "--dynamic-quorum",
        help="With --from-data: the nodes have controller.quorum.bootstrap.servers, not controller.quorum.voters.",
    )
    while_running: bool = flag("--while-running", help="Also read disks of running nodes, which may change.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one rescueSummary, then rescueCopy, rescueRecord and others.",
            columns=CSV_COLUMNS_HELP,
            quiet="Print nothing; only write files and set the exit status.",
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("salvage", 4), to_the_end=True)
@takes(RescueOptions)
def command(options: RescueOptions) -> None:
    """Rebuild a cluster's metadata from the copies on its nodes' disks, without the records that controllers cannot
    apply, and write a log directory for each controller: one metadata snapshot, and an empty log after it. For a
    controller that halts whenever it starts, or controllers whose disks are lost. A path is a log directory of any node
    of the cluster, or a directory above it; pass all that are left. If no copy is left, --from-data rebuilds topics,
    leaders and replicas from the partition directories. Nothing is changed in place."""
    if (options.out is None) != options.dry_run:
        raise click.UsageError("pass one of --out DIR and --dry-run")
    if options.from_data and (options.as_of or options.copy or options.leave_out):
        raise click.UsageError(
            "--as-of, --copy and --leave-out are about a copy of the metadata; --from-data uses none"
        )
    if not options.from_data and (options.configs or options.with_stray or options.dynamic_quorum):
        raise click.UsageError("--configs, --with-stray and --dynamic-quorum need --from-data")
    exit_with(lambda: run(options), RescueError, OutputError)


def run(options: RescueOptions) -> int:
    """Run the command and return its exit status."""
    output = options.output.output()
    sink = options.output.sink(
        output, lambda: RescueReport(output, options.output.zone, full=options.output.full), (RescueCopy,), report=True
    )
    request = RescueRequest(
        parse_as_of(options.as_of, options.output.zone),
        options.copy,
        frozenset(options.leave_out),
        options.controllers,
        options.kafka_version,
        options.while_running,
        options.from_data,
        options.configs,
        options.with_stray,
        options.dynamic_quorum,
    )
    expected = (lambda: segment_bytes(options.paths, lambda topic: True)) if options.from_data else None

    with Progress("rescue", expected=expected) as progress:

        def at(done: int, total: int | None) -> None:
            progress.total = total
            progress.more(done - progress.done)

        reading = Run(limits=options.reading.limits, at=at, more=progress.more)
        made = rescue(options.paths, options.out, request=request, run=reading)
    for answer in (made.summary, *made.copies, *made.ledger, *made.controllers, *made.steps):
        sink.add(answer)
    sink.end()
    output.flush()
    return int(not made.is_whole)
