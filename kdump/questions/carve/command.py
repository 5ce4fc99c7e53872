"""`kdump carve`: finds batches in files of any kind."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import click

from kdump.check.rules.records import count_findings
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.input_files import print_error, report_unreadable, unreadable
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, option, takes
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.log.batch_validity import impossible_count
from kdump.log.inspect_answer import InspectedBatch
from kdump.log.output_directory import OutputError
from kdump.log.paths import target
from kdump.questions.carve.answer import CarveSummary
from kdump.questions.carve.carved_runs import CarvedRun
from kdump.questions.carve.report import CarveReport, carve_objects
from kdump.questions.carve.run import CarvedFile, carve
from kdump.questions.carve.search import CarvedBatch
from kdump.render.progress import Progress
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump carve disk.img --runs
  kdump carve disk.img --out /tmp/saved
  cat xaa xab | kdump carve - --json | jq -c 'select(.type=="run") | [.position, .firstOffset, .lastOffset]'

\b
Exit status: 0 if batches were found, 1 if none were, 2 for a usage error, or if something could not be read.
"""


@dataclass(frozen=True)
class CarveOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="FILE…", nargs=-1, required=True)
    out: str | None = option(
        "--out", metavar="DIR", help="Write each run as a segment with its indexes to this new directory."
    )
    only_runs: bool = flag("--runs", help="Show one line per run, and no batches.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: batch, finding, nested and run objects, and one carveSummary.",
            columns=CSV_COLUMNS_HELP,
            quiet="Print nothing; only write files and set the exit status.",
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES)
@takes(CarveOptions)
def command(options: CarveOptions) -> None:
    """Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks (files, devices, - for
    standard input, or directories of files). A batch may start at any byte; it is recognized by a plausible header and
    a matching checksum, in every format (magic 0, 1 and 2). Consecutive batches form a run: as far as the bytes show,
    they were one segment. Batches do not contain their topic or partition. Nothing is written to the input."""
    read_once(options.paths)
    exit_with(CarveCommand(options, options.output.output()).run, OutputError)


class CarveCommand:
    """One run of the command."""

    def __init__(self, options: CarveOptions, output: Output) -> None:
        self.options = options
        self.output = output
        self.counts: Counter[str] = Counter()
        self.sink = options.output.sink(
            output,
            lambda: CarveReport(
                output,
                options.output.zone,
                full=options.output.full,
                only_runs=options.only_runs,
                named=options.paths,
                out=options.out,
            ),
            (CarvedRun,) if options.only_runs else (InspectedBatch,),
            objects=carve_objects,
            report=True,
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        options = self.options
        with Progress("carve") as progress:

            def at(position: int, size: int | None) -> None:
                progress.at(position, size)
                self.sink.tick()

            check = options.reading.run(unreadable=report_unreadable, at=at)
            for answer in carve(options.paths, options.out, options=check):
                if isinstance(answer, CarvedBatch):
                    self._batch(answer)
                elif isinstance(answer, CarvedRun):
                    self._found(answer)
                else:
                    self._searched(answer)
        self._end(time.monotonic() - began)
        self.output.flush()
        if unreadable() or self.counts["unreadable"]:
            return 2
        return int(not self.counts["batches"])

    def _batch(self, carved: CarvedBatch) -> None:
        self.counts["batches"] += 1
        self.counts["nested"] += carved.within is not None
        self.counts["torn"] += carved.records_before is not None
        self.counts["batchBytes"] += carved.batch.size if carved.within is None else 0
        if not self.options.only_runs:
            self.sink.add(carved)
        if impossible_count(carved.batch) is not None:
            for finding in count_findings(target(carved.file), carved.batch):
                self.sink.add(finding)

    def _found(self, carved: CarvedRun) -> None:
        self.counts["runs"] += 1
        self.sink.add(carved)
        if carved.note:
            print_error(f"run {carved.number}: {carved.note}")

    def _searched(self, done: CarvedFile) -> None:
        self.counts["files"] += 1
        self.counts["bytes"] += done.size
        self.counts["holes"] += done.skipped
        self.counts["unchecked"] += done.unchecked
        self.counts["unreadable"] += done.unreadable
        for note in done.notes:
            report_unreadable(SourceError(note))
        if done.unchecked:
            print_error(
                f"{done.file}: {count_text(done.unchecked, 'possible header')}"
                f" were not checked: too many bytes look like headers"
            )
        if done.unreadable:
            print_error(
                f"{done.file}: the device could not read {count_text(done.unreadable, 'byte')}"
                f"; they were treated as zeros"
            )

    def _end(self, seconds: float) -> None:
        counts = self.counts
        names = (
            "files",
            "bytes",
            "holes",
            "batches",
            "nested",
            "torn",
            "batchBytes",
            "runs",
            "unchecked",
            "unreadable",
        )
        sums = {name: counts[name] for name in names}
        written = counts["runs"] if self.options.out is not None else 0
        self.sink.add(CarveSummary(**sums, written=written, unread=unreadable(), seconds=round(seconds, 3)))
        self.sink.end()
