"""Rebuild a cluster's metadata, if controllers are lost or halt at a record, from what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.io.run import Run
from kdump.log.output_directory import OutputError
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.rescue.answer import RescueCopy, RescueError
from kdump.questions.rescue.report import RescueReport
from kdump.questions.rescue.rescuer import RescueQuery
from kdump.questions.rescue.run import answers
from kdump.render.progress import Progress
from kdump.state.as_of import AsOf

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


@dataclass(frozen=True)
class RescueOptions(CommandOptions):
    """The options of the command."""

    dry_run: bool = flag("--dry-run", help="Write nothing; show what would be written.")
    query: RescueQuery = group(RescueQuery)
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
    query = options.query
    if (query.out is None) != options.dry_run:
        raise click.UsageError("pass one of --out DIR and --dry-run")
    if query.from_data and (query.moment != AsOf() or query.copy or query.leave_out):
        raise click.UsageError(
            "--as-of, --copy and --leave-out are about a copy of the metadata; --from-data uses none"
        )
    if not query.from_data and (query.configs or query.with_stray or query.dynamic_quorum):
        raise click.UsageError("--configs, --with-stray and --dynamic-quorum need --from-data")
    exit_with(lambda: run(options), RescueError, OutputError)


def run(options: RescueOptions) -> int:
    """Run the command and return its exit status."""
    output = options.output.output()
    sink = options.output.sink(
        output, lambda: RescueReport(output, options.output.zone, full=options.output.full), (RescueCopy,), report=True
    )
    query = options.query
    expected = (lambda: segment_bytes(query.paths, lambda topic: True)) if query.from_data else None
    with Progress("rescue", expected=expected) as progress:

        def at(done: int, total: int | None) -> None:
            progress.total = total
            progress.more(done - progress.done)

        reading = Run(limits=options.reading.limits, at=at, more=progress.more)
        made = answers(replace(query, run=reading))
    for answer in (made.summary, *made.copies, *made.ledger, *made.controllers, *made.steps):
        sink.add(answer)
    sink.end()
    output.flush()
    return int(not made.is_whole)
