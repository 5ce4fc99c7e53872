"""`kdump salvage`: copies the valid batches of damaged partitions to new directories."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, output_for, refuse, unread
from kdump.commands.params import limit_options
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.diff import LITTLE
from kdump.forensics.output_directory import OutputError
from kdump.forensics.salvage.result import Salvaged, SalvageSummary
from kdump.forensics.salvage.run import LEDGER, salvage
from kdump.forensics.salvage.sources import SalvageError
from kdump.log.errors import SourceError, SourceNotFound
from kdump.render.escape import path_text
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.salvage_records import RecordLines
from kdump.render.salvage_report import SalvageReport

SEGMENTS, JSONL = "segments", "jsonl"
EXAMPLES = """
\b
Examples:
  kdump salvage crash-1/payments-0 --out /tmp/saved
  kdump salvage diverged-2/ledger-0 --replica diverged-1 --out /tmp/saved
  kdump salvage clean-1 --topic 'orders-*' --format jsonl --out /tmp/saved

\b
Exit status: 0 if everything was kept, 1 if something was lost or may be wrong (the ledger lists it), or could not be
read, 2 for a usage error, if a path does not exist, or if nothing was written.
"""


@click.command(epilog=EXAMPLES)
@click.argument("sources", metavar="SOURCE…", nargs=-1, required=True)
@click.option("--out", metavar="DIR", required=True, help="Write to this directory, which must be new or empty.")
@click.option(
    "--replica",
    "replicas",
    metavar="PATH",
    multiple=True,
    help="Fill what SOURCE lost from this other copy; repeatable.",
)
@click.option("--prefer", metavar="PATH", help="Follow this copy where the replicas diverge.")
@click.option("--deleted", is_flag=True, help="Also take missing records from .deleted, .swap and .cleaned files.")
@click.option(
    "--damaged-records",
    is_flag=True,
    help="Also recover the records of damaged batches that decode; their values may be wrong.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([SEGMENTS, JSONL]),
    default=SEGMENTS,
    help="Write segments, or records as JSON Lines.  [segments]",
)
@topic_option("Salvage only these topics")
@click.option("--name", metavar="TOPIC-PARTITION", help="Name the partition that SOURCE is, if its directory does not.")
@click.option(
    "--json", "as_json", is_flag=True, help="Write JSON Lines: one salvage per partition, one salvageSummary."
)
@click.option("--full", is_flag=True, help="Do not truncate values.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only write files and set the exit status.")
@click.option("--max-rate", type=RateParam(), help="Read no faster than this, such as 50MB/s.")
@limit_options
def command(sources: tuple[str, ...], **options: Any) -> None:
    """Copy the valid batches of damaged partitions to new, intact directories that a broker can load: every complete
    batch in offset order, byte for byte, with new indexes; and write a ledger of what was lost. A source is a segment,
    a partition directory, a log directory, or a parent directory. --replica fills gaps from other copies, but never
    where the replicas diverge. Nothing is changed in place."""
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    if (*sources, *options["replicas"]).count("-") > 1:
        raise click.UsageError("standard input (-) can be given only once")
    if "-" in (*sources, *options["replicas"]) and options["replicas"]:
        raise click.UsageError(
            "standard input (-) cannot be combined with --replica: sources and replicas are read more than once"
        )
    exit_with(lambda: _Run(sources, options, output_for(options)).run(), SalvageError, OutputError, if_unread=1)


class _Run:
    """One run of the command."""

    def __init__(self, sources: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.sources = sources
        self.options = options
        self.output = output
        self.unread: list[str] = []
        self.is_complete = True
        """Whether all paths exist that were given."""

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        options = self.options
        check = reading(options, only=LITTLE)
        with Progress("salvage", self.output, always=True) as progress:
            found = salvage(
                self.sources,
                options["out"],
                replicas=options["replicas"],
                prefer=options["prefer"],
                deleted=options["deleted"],
                damaged_records=options["damaged_records"],
                name=options["name"],
                options=check,
                wanted=matcher(options["topics"]),
                refused=self._refused,
                met=progress.more,
                sink=RecordLines if options["form"] == JSONL else None,
            )
        self._tell(found, time.monotonic() - began)
        self.output.flush()
        if not self.is_complete or not any(each.is_written for each in found):
            return 2
        return int(bool(self.unread) or not all(each.is_whole for each in found))

    def _refused(self, error: SourceError) -> None:
        if refuse(error):
            self.unread.append(str(error))
            self.is_complete = self.is_complete and not isinstance(error, SourceNotFound)

    def _tell(self, found: list[Salvaged], seconds: float) -> None:
        if self.options["quiet"]:
            return
        if not found:
            if not self.unread and not self.options["topics"]:
                complain("no partition with a segment found")
            return
        out = path_text(self.options["out"])
        ledger = os.path.join(out, LEDGER)
        if self.options["as_json"]:
            for made in found:
                self.output.line(answer_line(made))
            whole, empty = sum(each.is_whole for each in found), sum(not each.is_written for each in found)
            sums = SalvageSummary(out, ledger, len(found), whole, empty, unread(), round(seconds, 3))
            self.output.line(answer_line(sums))
            return
        report = SalvageReport(self.output, full=self.options["full"], loads=self.options["form"] == SEGMENTS)
        for made in found:
            report.write(made)
        report.end(found, out, ledger)
