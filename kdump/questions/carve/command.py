"""Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

import click

from kdump.check.finding import Finding
from kdump.check.rules.records import count_findings
from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text, plain_count
from kdump.io.errors import SourceError
from kdump.log.batch_validity import impossible_count
from kdump.log.inspect_answer import InspectedBatch
from kdump.log.output_directory import OutputError
from kdump.log.paths import target
from kdump.log.region import Batch
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.carve.answer import CarvedTornBatch, CarveSummary, NestedBatch
from kdump.questions.carve.carved_runs import CarvedRun
from kdump.questions.carve.run import CarvedFile, CarveQuery, answers
from kdump.questions.carve.search import CarvedBatch
from kdump.questions.inspect.columns import columns_of
from kdump.render.escape import path_text, printable
from kdump.render.inspect_json import batch_object
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table, problem_line

Found = CarvedBatch | Finding | CarvedRun | CarveSummary


def carve_objects(answer: Found) -> Iterator[Any]:
    """Yield what is written of an answer: of a batch, also where it is nested."""
    if not isinstance(answer, CarvedBatch):
        yield answer
        return
    batch = answer.batch
    yield batch_object(target(answer.file), batch)
    if answer.within is not None:
        yield NestedBatch(answer.file, batch.position, batch.size, answer.within)
    if answer.records_before is not None:
        records = batch.possible_records
        yield CarvedTornBatch(answer.file, batch.position, records, answer.records_before)


class CarveReport(Sink[Found]):
    """Writes a table of batches with a line after each run, or one of runs, and last a line about everything. A file
    has a heading unless it is the only one that the user has `named`. `out`: where the runs were written."""

    def __init__(
        self, output: Output, zone: tzinfo, *, full: bool, only_runs: bool, named: tuple[str, ...], out: str | None
    ) -> None:
        self.output, self.only_runs, self.named, self.out = output, only_runs, named, out
        columns = (
            table_columns(CarvedRun, zone)
            if only_runs
            else columns_of("batch", zone, None, full or output.width is None, None)
        )
        self.table = Table(columns, output, full=full)
        self._shown = ""
        """The file that the table is about; empty before the first."""

    def add(self, answer: Found) -> None:
        if isinstance(answer, CarveSummary):
            self._summary(answer)
        elif isinstance(answer, CarvedBatch):
            self._title(answer.file)
            self.table.add(answer.batch)
            if answer.within is not None:
                self.table.line(nested_line(answer))
            if answer.records_before is not None:
                self.table.line(torn_line(answer.batch, answer.records_before), "torn")
        elif isinstance(answer, Finding):
            self._title(answer.file)
            self.table.line(problem_line(answer.code, answer.position, answer.message), "bad")
        elif self.only_runs:
            self._title(answer.file)
            self.table.add(answer)
        else:
            self.table.line(run_line(answer))

    def tick(self) -> None:
        self.table.tick()

    def _title(self, file: str) -> None:
        if self._shown != file and (len(self.named) > 1 or file != self.named[0]):
            self.table.flush()
            self.output.line(printable(path_text(file)) + ":")
        self._shown = file

    def _summary(self, summary: CarveSummary) -> None:
        if not summary.files:
            return
        self.table.flush()
        if summary.batches:
            self.output.line("")
        nested = f" ({summary.nested:,} nested)" if summary.nested else ""
        line = (
            f"{count_text(summary.batches, 'batch', 'batches')}{nested} in {count_text(summary.runs, 'run')}"
            f", {summary.batchBytes:,} of"
        )
        line += f" {count_text(summary.bytes, 'byte')}"
        if summary.written:
            line += f"; {count_text(summary.written, 'segment')} written to {self.out}"
        self.output.line(printable(path_text(line)))


def run_line(carved: CarvedRun) -> str:
    """Return the line after the batches of a run."""
    count = f"{carved.batches:,} batch{'es' * (carved.batches != 1)}"
    offsets = f"offsets {carved.firstOffset}..{carved.lastOffset}"
    where = f"{count_text(carved.size, 'byte')} at byte {carved.position}, {offsets}"
    line = f"run {carved.number}: {count}, {where}"
    if carved.mayFollow:
        line += f"; may follow run {' or '.join(map(str, carved.mayFollow))}"
    return line


def torn_line(batch: Batch, records: int) -> str:
    complete = f"{batch.possible_records} of its {plain_count(records, 'record')} are complete"
    return f"torn: the file ends within the batch at byte {batch.position}: {complete}, but no checksum covers them"


def nested_line(carved: CarvedBatch) -> str:
    return f"nested: the batch at byte {carved.batch.position} is in a value of the batch at byte {carved.within}"


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

    query: CarveQuery = group(CarveQuery)
    only_runs: bool = flag("--runs", help="Show one line per run, and no batches.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: batch, finding, nested and run objects, and one carveSummary.",
            columns=CSV_COLUMNS_HELP,
            quiet="Print nothing; only write files and set the exit status.",
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("salvage", 5), to_the_end=True, mounts=False)
@takes(CarveOptions)
def command(options: CarveOptions) -> None:
    """Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks (files, devices, - for
    standard input, or directories of files). A batch may start at any byte; it is recognized by a plausible header and
    a matching checksum, in every format (magic 0, 1 and 2). Consecutive batches form a run: as far as the bytes show,
    they were one segment. Batches do not contain their topic or partition. Nothing is written to the input."""
    read_once(options.query.paths)
    exit_with(CarveCommand(options, options.output.output()).run, OutputError)


class CarveCommand:
    """One run of the command."""

    def __init__(self, options: CarveOptions, output: Output) -> None:
        self.options, self.output = options, output
        self.counts: Counter[str] = Counter()
        self.sink = options.output.sink(
            output,
            lambda: CarveReport(
                output,
                options.output.zone,
                full=options.output.full,
                only_runs=options.only_runs,
                named=tuple(options.query.paths),
                out=options.query.out,
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
            for answer in answers(replace(options.query, run=check)):
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
            *("files", "bytes", "holes", "batches", "nested", "torn", "batchBytes", "runs", "unchecked"),
            "unreadable",
        )
        sums = {name: counts[name] for name in names}
        written = counts["runs"] if self.options.query.out is not None else 0
        self.sink.add(CarveSummary(**sums, written=written, unread=unreadable(), seconds=round(seconds, 3)))
        self.sink.end()
