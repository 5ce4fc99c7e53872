"""`kdump carve`: finds batches in files of any kind."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, output_for, refuse, unread
from kdump.commands.params import ZoneParam, limit_options, read_once
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.forensics.carve.answer import CarveSummary, NestedBatch
from kdump.forensics.carve.run import CarvedFile, carve
from kdump.forensics.carve.runs import CarvedRun
from kdump.forensics.carve.search import CarvedBatch
from kdump.forensics.output_directory import OutputError
from kdump.log.errors import SourceError
from kdump.log.paths import target
from kdump.render import jsonl
from kdump.render.carve_report import batch_table, nested_line, run_line, run_table
from kdump.render.escape import path_text, printable
from kdump.render.forensic_objects import answer_line
from kdump.render.objects import batch_object
from kdump.render.output import Output
from kdump.render.progress import Progress

EXAMPLES = """
\b
Examples:
  kdump carve indexed-1/payments-0 --runs
  cat clean-1/payments-0/* | kdump carve - --out carved
  kdump carve clean-1 --json | jq -c 'select(.type=="run") | [.position, .firstOffset, .lastOffset]'

\b
Exit status: 0 if batches were found, 1 if none were, 2 for a usage error, or if something could not be read.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="FILE…", nargs=-1, required=True)
@click.option("--out", metavar="DIR", help="Write each run as a segment with its indexes to this new directory.")
@click.option("--runs", "only_runs", is_flag=True, help="Show one line per run, and no batches.")
@click.option(
    "--json", "as_json", is_flag=True, help="Write JSON Lines: batch, nested and run objects, and one carveSummary."
)
@click.option("--full", is_flag=True, help="Do not truncate values.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only write files and set the exit status.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Show times in this time zone.  [UTC]")
@click.option("--max-rate", type=RateParam(), help="Read no faster than this, such as 50MB/s.")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Find batches in any file: a disk image, a core dump, a truncated backup, freed blocks (files, devices, - for
    standard input, or directories of files). A batch may start at any byte; it is recognized by a plausible header and
    a matching checksum, in every format (magic 0, 1 and 2). Consecutive batches form a run: as far as the bytes show,
    they were one segment. Batches do not contain their topic or partition. Nothing is written to the input."""
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    read_once(paths)
    exit_with(lambda: _Run(paths, options, output_for(options)).run(), OutputError)


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.counts: Counter[str] = Counter()
        self.unread: list[str] = []
        make = run_table if options["only_runs"] else batch_table
        self.table = make(output, options["zone"], full=options["full"])
        self.shown = ""
        """The file that the table is about; empty before the first."""

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        check = reading(self.options)
        with Progress("carve", self.output) as progress:

            def met(file: str, position: int, size: int | None) -> None:
                progress.at(position, size)
                self.table.tick()

            for found in carve(self.paths, self.options["out"], options=check, refused=self._refused, met=met):
                if isinstance(found, CarvedBatch):
                    self._batch(found)
                elif isinstance(found, CarvedRun):
                    self._found(found)
                else:
                    self._searched(found)
        self._end(time.monotonic() - began)
        self.output.flush()
        if self.unread or self.counts["unreadable"]:
            return 2
        return int(not self.counts["batches"])

    def _refused(self, error: SourceError) -> None:
        if refuse(error):
            self.unread.append(str(error))

    def _batch(self, found: CarvedBatch) -> None:
        self.counts["batches"] += 1
        self.counts["nested"] += found.within is not None
        self.counts["batchBytes"] += found.batch.size if found.within is None else 0
        if self.options["quiet"] or self.options["only_runs"]:
            return
        if self.options["as_json"]:
            self.output.line(jsonl.line(batch_object(target(found.file), found.batch)))
            if found.within is not None:
                batch = found.batch
                self.output.line(answer_line(NestedBatch(found.file, batch.position, batch.size, found.within)))
            return
        self._title(found.file)
        self.table.add(found.batch)
        if found.within is not None:
            self.table.line(nested_line(found))

    def _title(self, file: str) -> None:
        """Print the name of a file before its rows, if there are several files."""
        if self.shown != file and (len(self.paths) > 1 or file != self.paths[0]):
            self.table.flush()
            self.output.line(printable(path_text(file)) + ":")
        self.shown = file

    def _found(self, run: CarvedRun) -> None:
        self.counts["runs"] += 1
        if self.options["as_json"]:
            self.output.line(answer_line(run))
        elif not self.options["quiet"]:
            if self.options["only_runs"]:
                self._title(run.file)
                self.table.add(run)
            else:
                self.table.line(run_line(run))
        if run.note:
            complain(f"run {run.number}: {run.note}")

    def _searched(self, done: CarvedFile) -> None:
        self.counts["files"] += 1
        self.counts["bytes"] += done.size
        self.counts["holes"] += done.skipped
        self.counts["unchecked"] += done.unchecked
        self.counts["unreadable"] += done.unreadable
        for note in done.notes:
            self._refused(SourceError(note))
        if done.unchecked:
            complain(
                f"{done.file}: {done.unchecked:,} possible headers were not checked: too many bytes look like headers"
            )
        if done.unreadable:
            complain(f"{done.file}: the device could not read {done.unreadable:,} bytes; they were treated as zeros")

    def _end(self, seconds: float) -> None:
        counts, written = self.counts, 0
        out = self.options["out"]
        if out is not None:
            written = counts["runs"]
        if self.options["as_json"]:
            names = ("files", "bytes", "holes", "batches", "nested", "batchBytes", "runs", "unchecked", "unreadable")
            sums = {name: counts[name] for name in names}
            found = CarveSummary(**sums, written=written, unread=unread(), seconds=round(seconds, 3))
            self.output.line(answer_line(found))
            return
        if self.options["quiet"] or not counts["files"]:
            return
        self.table.flush()
        if counts["batches"]:
            self.output.line("")
        nested = f" ({counts['nested']:,} nested)" if counts["nested"] else ""
        text = f"{counts['batches']:,} batches{nested} in {counts['runs']:,} runs, {counts['batchBytes']:,} of"
        text += f" {counts['bytes']:,} bytes"
        if written:
            text += f"; {written:,} segments written to {out}"
        self.output.line(printable(path_text(text)))
