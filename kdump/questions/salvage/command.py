"""Copy partitions, damaged, deleted, or up to a time, to new directories that a broker loads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

import click

from kdump import jsonl
from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.cut_options import CutOptions
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, old_format, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.io.errors import SourceError, SourceNotFound
from kdump.log.batch_records import records
from kdump.log.output_directory import OutputDirectory, OutputError
from kdump.query import CommandOptions, added, group, option
from kdump.questions.diff.run import LITTLE
from kdump.questions.salvage.answer import Salvaged, SalvageSummary
from kdump.questions.salvage.partition_run import SalvageQuery
from kdump.questions.salvage.report import SalvageReport
from kdump.questions.salvage.run import LEDGER, answers
from kdump.questions.salvage.source.salvage_reader import SalvageCandidate
from kdump.questions.salvage.source.sources import SalvageError, SalvageInput
from kdump.render.escape import path_text
from kdump.render.inspect_json import record_object
from kdump.render.progress import Progress
from kdump.render.stdout import Output


class RecordLines:
    """One file per partition, topic-partition.jsonl. Records recovered from damaged batches have `damaged`: true."""

    def __init__(self, out: OutputDirectory, job: SalvageInput) -> None:
        self.out = out
        self.name = f"{job.name}.jsonl"
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    @property
    def files(self) -> list[str]:
        """The file, if one has been started."""
        return [self.name] if self._file is not None else []

    def write(self, head: SalvageCandidate) -> tuple[str, None]:
        """Write the records of a batch."""
        if self._file is None:
            self._file = self._stack.enter_context(self.out.writing(self.name))
        target = head.reader.place.target
        for record in records(head.batch):
            value = record_object(target, record)
            if head.recovered is not None:
                value["damaged"] = True
            self._file.write(jsonl.line(value).encode() + b"\n")
        return self.name, None

    def close(self) -> None:
        """Complete the file after the last batch."""
        self._stack.close()

    def abandon(self) -> None:
        """Discard the incomplete file."""
        error = RuntimeError("abandoned")
        self._stack.__exit__(RuntimeError, error, None)


SEGMENTS, JSONL = WRITES = ("segments", "jsonl")
EXAMPLES = """
\b
Examples:
  kdump salvage /var/lib/kafka/payments-0 --out /tmp/saved
  kdump salvage /mnt/broker-2/ledger-0 --replica /mnt/broker-1 --out /tmp/saved
  kdump salvage /var/lib/kafka --topic 'orders-*' --write jsonl --out /tmp/saved
  kdump salvage /var/lib/kafka --topic payments --until 2026-11-20T14:05 --out /tmp/saved
  kdump salvage /var/lib/kafka/orders-0.6ab1c2d3e4f5a6b7c8d9e0f1a2b3c4d5-delete --out /tmp/saved

\b
Exit status: 0 if everything was kept, 1 if something was lost or may be wrong (the ledger lists it), or could not be
read, 2 for a usage error, if a path does not exist, or if nothing was written.
"""


@dataclass(frozen=True)
class SalvageOptions(CommandOptions):
    """The options of the command. `write`: one of WRITES."""

    query: SalvageQuery = group(SalvageQuery)
    cut: CutOptions = group(CutOptions)
    write: str | None = option(
        "--write", type=click.Choice(WRITES), help="Write segments, or records as JSON Lines.  [segments]"
    )
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one salvage per partition, one salvageSummary.",
            columns=CSV_COLUMNS_HELP,
            quiet="Print nothing; only write files and set the exit status.",
            zone=False,
            old=WRITES,
        )
    )
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("salvage", 1), to_the_end=True, mounts=False)
@takes(SalvageOptions)
def command(options: SalvageOptions) -> None:
    """Copy partitions to new, intact directories that a broker can load: every valid batch in offset order, unchanged
    except for corrected header fields that no checksum covers, with new indexes; and write a ledger of what was lost or
    left out. A source is a segment, a partition directory (also one that is named -delete or -stray), a log directory,
    or a parent directory. --replica fills gaps from other copies, but never where the replicas diverge; --until and
    --without leave records out. Nothing is changed in place."""
    sources, replicas = tuple(options.query.paths), tuple(options.query.replicas)
    if (*sources, *replicas).count("-") > 1:
        raise click.UsageError("standard input (-) can be given only once")
    if "-" in (*sources, *replicas) and replicas:
        raise click.UsageError(
            "standard input (-) cannot be combined with --replica: sources and replicas are read more than once"
        )
    exit_with(SalvageCommand(options, options.output.output()).run, SalvageError, OutputError, if_unread=1)


@contextmanager
def _further_pass(what: str, size: int) -> Iterator[Callable[[int], None]]:
    """Show a pass that is needed in addition, as progress of its own."""
    with Progress(f"salvage {what}") as progress:
        progress.expect(size)
        yield progress.more


class SalvageCommand:
    """One run of the command."""

    def __init__(self, options: SalvageOptions, output: Output) -> None:
        self.options, self.output = options, output
        self.is_complete = True
        """Whether all paths exist that were given."""
        self.write = options.write or old_format() or SEGMENTS
        self.cut = options.cut.request
        if options.query.abort_open and self.write != SEGMENTS:
            raise click.UsageError("--abort-open writes markers to segments; it cannot be combined with --write jsonl")
        self.sink = options.output.sink(
            output,
            lambda: SalvageReport(output, full=options.output.full, loads=self.write == SEGMENTS),
            (Salvaged,),
            report=True,
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        options = self.options
        options.remote.mount(tuple(options.query.paths))
        with Progress("salvage") as progress:
            run = options.reading.run(only=LITTLE, unreadable=self._note_unread, **progress.listeners)
            query = replace(options.query, run=run, cut=self.cut, on_pass=_further_pass)
            results = answers(replace(query, sink=RecordLines) if self.write == JSONL else query)
        self._report(results, time.monotonic() - began)
        self.output.flush()
        if not self.is_complete or not any(made.is_written for made in results):
            return 2
        return int(bool(unreadable()) or not all(made.is_whole for made in results))

    def _note_unread(self, error: SourceError) -> None:
        if report_unreadable(error) and isinstance(error, SourceNotFound):
            self.is_complete = False

    def _report(self, results: list[Salvaged], seconds: float) -> None:
        if not results:
            if not unreadable() and not self.options.query.topics and not self.options.output.quiet:
                print_error("no partition with a segment found")
            self.sink.end()
            return
        for made in results:
            self.sink.add(made)
        out = path_text(self.options.query.out)
        ledger = os.path.join(out, LEDGER)
        whole, empty = sum(each.is_whole for each in results), sum(not each.is_written for each in results)
        self.sink.add(SalvageSummary(out, ledger, len(results), whole, empty, unreadable(), round(seconds, 3)))
        self.sink.end()
