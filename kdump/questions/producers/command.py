"""Show producers: epochs, sequences and gaps, and the state that a broker would load at startup."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.answer import Note, row_style
from kdump.check.finding import INFO, Finding
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import SelectedNames, has_unmatched
from kdump.command_line.output_options import OutputOptions, note_outside_columns, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.state_options import Notes, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.producers.answer import PartitionProducers, Producer, ProducerEvent
from kdump.questions.producers.run import ProducersQuery, answers
from kdump.questions.summary_lines import SummaryLines, file_text, place_text
from kdump.render.amounts import duration_text
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import OneTable, StateTables
from kdump.render.stdout import Output
from kdump.render.table import Table

BREAKS = (
    ("gaps", "gap", "gaps"),
    ("duplicates", "duplicate", "duplicates"),
    ("fenced", "fenced batch", "fenced batches"),
    ("epochStarts", "odd epoch start", "odd epoch starts"),
)


class ProducerReport(Sink[Any]):
    """Receives the answers as they come. If `lists`, or if the first partition was named by the user, each producer is
    a row; else each partition with producers is."""

    def __init__(self, output: Output, tables: StateTables, *, lists: bool) -> None:
        self.output, self.tables = output, tables
        self.lines = SummaryLines(output)
        self.rows: Table | None = None
        self.shown = 0
        self.lists = lists
        self._begun = False
        self._summary: list[PartitionProducers] = []

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.lists = self.lists or (was_named and not self._begun)
        self._begun = True

    def add(self, answer: Any) -> None:
        if isinstance(answer, (Producer, ProducerEvent)):
            if not self.lists:
                return
            if self.rows is None:
                if self.shown:
                    self.output.line("")
                self.rows = self.tables.open(type(answer))
                self.shown += 1
            self.rows.add(answer, row_style(answer))
        elif isinstance(answer, PartitionProducers):
            self._partition(answer)
        elif isinstance(answer, Finding):
            self.lines.keep_finding(answer)

    def _partition(self, partition: PartitionProducers) -> None:
        if not self.lists:
            if partition.producers:
                self._summary.append(partition)
            return
        if self.rows is not None:
            self.rows.flush()
            self.rows = None
            self.output.line("")
        elif self.lines.waiting and self.shown:
            self.output.line("")
        if partition.producers and self.shown:
            self._totals(partition)
        self.shown += self.lines.write()

    def _totals(self, partition: PartitionProducers) -> None:
        name = place_text(partition)
        count = partition.producers
        line = f"{name}: {count_text(count, 'producer')}"
        parts = [
            f"{getattr(partition, word):,} {word}"
            for word in ("live", "expired", "unknown")
            if getattr(partition, word)
        ]
        line += f": {', '.join(parts)}" if parts else ""
        for key, one, more in BREAKS:
            number = getattr(partition, key)
            line += f"; {count_text(number, one, more)}" if number else ""
        self.lines.text(line, name)
        if partition.stateOffset is not None:
            line = f"  at startup, a broker loads {file_text(partition.stateFrom)}"
            if partition.logEndOffset is not None and partition.logEndOffset > partition.stateOffset:
                line += f" and replays offsets {partition.stateOffset}..{partition.logEndOffset - 1}"
        elif partition.stateFrom == "log":
            line = _replay(partition)
        else:
            line = "  these files do not contain a broker's producer state" if partition.unknown else ""
        if line:
            self.lines.text(line)
        if partition.expired:
            self.lines.text(f"  expired: idle for {duration_text(partition.producerIdExpirationMs)} or more")
        self.lines.damages(partition.damages)

    def end(self) -> None:
        """Write what has waited for the end: the table of partitions, and the findings in them."""
        if self.lists:
            return
        if self._summary:
            self.shown += 1
            self.tables.write_summary(self._summary)
        if self.lines.waiting and self.shown:
            self.output.line("")
        self.shown += self.lines.write()


def _replay(partition: PartitionProducers) -> str:
    """Return what a broker does at startup without a snapshot that it can load."""
    start, end = partition.logStartOffset, partition.logEndOffset
    if start and end is not None and start >= end:
        return (
            f"  at startup, a broker replays nothing: the log starts at its end, {end}, and there is no newer .snapshot"
        )
    if start:
        return f"  at startup, a broker replays the log from offset {start}: there is no valid .snapshot above it"
    return "  at startup, a broker replays the whole log: there is no valid .snapshot"


EXAMPLES = """
\b
Examples:
  kdump producers /var/lib/kafka/payments-0
  kdump producers /var/lib/kafka --broken
  kdump producers /var/lib/kafka/payments-0 --producer-id 11 --history
  kdump producers /var/lib/kafka --state live --json | jq -r .producerId

\b
Exit status: 0 on success, 2 for a usage error, or if a path could not be read (the others are shown).
"""


@dataclass(frozen=True)
class ProducersOptions(CommandOptions):
    """The options of the command."""

    listing: bool = flag("--list", help="Show one row per producer.  [log directory: one row per partition]")
    query: ProducersQuery = group(ProducersQuery)
    output: OutputOptions = added(output_options())
    reading: ReadingOptions = added(reading_options)

    @property
    def asks_for_rows(self) -> bool:
        """Whether an option asks for one row per producer."""
        query = self.query
        return bool(self.listing or query.events or query.broken or query.selects_states or query.selects_producers)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 6))
@takes(ProducersOptions)
def command(options: ProducersOptions) -> None:
    """Show the producers in partitions: what each wrote, in which epochs and sequences, where these have errors, and
    the producer state that a broker would load at startup, compared with the .snapshot files. A path is a segment, a
    partition directory, a log directory, or a parent directory. Nothing is written.

    A log does not contain the client.id of a producer, nor its host: it has the producer ID and epoch, and the
    transaction coordinator's log (__transaction_state) the transactional ID of each."""
    if options.query.events and (options.query.broken or options.query.selects_states):
        raise click.UsageError("--history cannot be combined with --broken or --state")
    read_once(options.query.paths)
    run_command(ProducersCommand(options))


class ProducersCommand:
    """One run of the command."""

    def __init__(self, options: ProducersOptions) -> None:
        self.options, self.query = options, options.query
        self.output = options.output.output()
        self.row: type = ProducerEvent if self.query.events else Producer
        self.sink = options.output.sink(self.output, self._text, (self.row,))
        self.notes = Notes(self.sink)
        self.busy = self.rows = 0
        """`busy`: number of partitions with producers; `rows`: number of rows and of problems."""

    def _text(self) -> Sink[Any]:
        shown = self.options.output
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        if shown.names is not None:
            return OneTable(tables, self.row, note_outside_columns)
        return ProducerReport(self.output, tables, lists=self.options.asks_for_rows)

    def run(self) -> None:
        with Progress("producers") as progress:
            run = self.options.reading.run(
                unreadable=self.notes.add_unreadable, begin=self.notes.begin, **progress.listeners
            )
            for answer in answers(replace(self.query, run=run)):
                if isinstance(answer, Note):
                    self.notes.add(answer.source, answer.message)
                elif not (self.query.events and isinstance(answer, Producer)):
                    self.busy += isinstance(answer, PartitionProducers) and bool(answer.producers)
                    self.rows += isinstance(answer, self.row) or (
                        isinstance(answer, Finding) and answer.severity != INFO
                    )
                    self.sink.add(answer)
        self.sink.end()
        if self.notes.seen and not self.rows and not self.notes.failed and not has_unmatched(SelectedNames):
            print_error(f"{self._nothing()} in {count_text(self.notes.seen, 'partition')}")

    def _nothing(self) -> str:
        """Return what there is none of."""
        if not self.busy:
            return "no idempotent producers"
        if self.options.query.selects_producers:
            return "no producer with these IDs and states"
        nothing = f"no {' or '.join(self.query.states)} producers" if self.query.selects_states else "no producers"
        return f"{nothing} with a sequence or epoch error" if self.query.broken else nothing
