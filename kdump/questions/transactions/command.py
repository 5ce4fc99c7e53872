"""Show committed, aborted, open and hanging transactions, and what blocks the last stable offset."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.answer import Note, row_style
from kdump.check.finding import Finding
from kdump.cluster.topic_coverage import TopicCoverage
from kdump.cluster.transaction_coordinator import PREPARED, TransactionCoordinatorState
from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import SelectedNames, explain_absent, has_unmatched
from kdump.command_line.output_options import OutputOptions, note_outside_columns, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.state_options import Notes, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.io import file_system
from kdump.log.internal_topics import TRANSACTION_TOPIC
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.summary_lines import SummaryLines, file_text, place_text
from kdump.questions.transactions.answer import (
    HANGING,
    OPEN,
    CoordinatorTransaction,
    Difference,
    PartitionTransactions,
    Transaction,
)
from kdump.questions.transactions.run import STATES, TransactionsQuery, answers
from kdump.render.amounts import duration_text
from kdump.render.escape import printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import OneTable, StateTables, TableRows
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.times import iso

MAX_DETAILED_TRANSACTIONS = 100
"""Maximum number of open transactions of a partition that are shown in full; the others are only counted."""
CONCURRENT = "CONCURRENT_TRANSACTIONS"
"""Error of a producer whose previous transaction is not completed."""


class TransactionReport(Sink[Any]):
    """Receives the answers as they come. With `ledger`, or if the first partition was named by the user, each
    transaction is a row; else each partition is. `selected`:
    only some producers are shown, and no partition without a transaction of theirs."""

    def __init__(self, output: Output, tables: StateTables, *, ledger: bool, selected: bool) -> None:
        self.output, self.tables, self.ledger, self.selected = output, tables, ledger, selected
        self.lines = SummaryLines(output)
        self.rows: Table | None = None
        self.shown = 0
        self._begun = self._was_named = False
        self._summary: list[PartitionTransactions] = []
        self._details: list[tuple[PartitionTransactions, list[Transaction]]] = []
        self._open: list[Transaction] = []
        self._prepared: list[CoordinatorTransaction] = []

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.ledger = self.ledger or (was_named and not self._begun)
        self._begun = True
        self._was_named = was_named

    def add(self, answer: Any) -> None:
        if isinstance(answer, Transaction):
            self._transaction(answer)
        elif isinstance(answer, PartitionTransactions):
            self._partition(answer)
        elif isinstance(answer, Finding):
            self.lines.keep_finding(answer)
        elif isinstance(answer, Difference):
            self.lines.keep(_difference_text(answer), "differs", "bad")
        elif isinstance(answer, CoordinatorTransaction):
            self._prepared.append(answer)

    def _transaction(self, row: Transaction) -> None:
        if row.state in (OPEN, HANGING) and len(self._open) < MAX_DETAILED_TRANSACTIONS:
            self._open.append(row)
        if self.ledger:
            if self.rows is None:
                if self.shown:
                    self.output.line("")
                self.rows = self.tables.open(Transaction)
                if not self._was_named and row.topic is not None:
                    self.rows.title = place_text(row)
            is_open = self._open and self._open[-1] is row  # whose remarks are after the table
            self.rows.add(row._replace(remarks=()) if is_open else row, row_style(row))

    def _partition(self, partition: PartitionTransactions) -> None:
        has = partition.committed + partition.aborted + partition.open + partition.hanging + partition.emptyMarkers
        has += partition.lost + partition.belowLogStart
        if self.ledger:
            has = has and (not self.selected or self.rows is not None or bool(partition.damages))
            if self.rows is not None:
                self.rows.flush()
                self.rows = None
                self.output.line("")
            elif has and self.shown:
                self.output.line("")
            if has:
                self.shown += 1
                self._end(partition, self._open)
            self.shown += self.lines.write()
        elif has:
            self._summary.append(partition)
            if self._open:
                self._details.append((partition, self._open))
        self._open = []

    def end(self) -> None:
        """Write what has waited for the end: the table of partitions, and their open transactions."""
        if self.ledger:
            self._show_prepared()
            return
        if self._summary:
            self.tables.write_summary(self._summary)
            self.shown += 1
        for partition, rows in self._details:
            self.output.line("")
            self._end(partition, rows)
        if self.lines.waiting and self.shown:
            self.output.line("")
        self.shown += self.lines.write()
        self._show_prepared()

    def _show_prepared(self) -> None:
        """Write which transactions their coordinators have not completed."""
        if self._prepared and self.shown:
            self.output.line("")
        for transaction in self._prepared[:MAX_DETAILED_TRANSACTIONS]:
            line = f"{printable(transaction.transactionalId)}, producer {transaction.producerId}, "
            line += f"epoch {transaction.producerEpoch}: {transaction.state} at offset {transaction.offset} of "
            line += printable(transaction.path)
            if transaction.transactionLastUpdateTimestampMs is not None:
                line += f", {iso(transaction.transactionLastUpdateTimestampMs, self.tables.zone)}"
            line += f"; not completed since, so its producer gets {CONCURRENT}; partitions: "
            self.lines.text(line + (", ".join(map(printable, transaction.partitions)) or "none"))
        more = len(self._prepared) - MAX_DETAILED_TRANSACTIONS
        if more > 0:
            self.lines.text(f"… and {more} more that are not completed (--coordinator)")

    def _end(self, partition: PartitionTransactions, rows: list[Transaction]) -> None:
        zone = self.tables.zone
        name = place_text(partition)
        counts = [(getattr(partition, word), word) for word in ("committed", "aborted", "open", "hanging", "lost")]
        line = ", ".join(f"{count} {word}" for count, word in counts if count) or "no transactions left"
        line = f"{name}: {line}"
        if partition.logStartOffset is not None and partition.logEndOffset is not None:
            line += f"; offsets {partition.logStartOffset}..{partition.logEndOffset - 1}"
        if partition.lastStableOffset is not None:
            line += f", last stable offset {partition.lastStableOffset}"
            if partition.heldBy is None:
                line += ", the log end"
            else:
                line += f", blocked by producer {partition.heldBy}"
                name_of = next((row.transactionalId for row in rows if row.producerId == partition.heldBy), None)
                line += f" ({printable(name_of)})" if name_of is not None else ""
        if partition.highWatermark is not None and partition.highWatermark < (partition.lastStableOffset or 0):
            line += f"; last checkpointed high watermark {partition.highWatermark}"
        self.lines.text(line, name)
        if partition.belowLogStart:
            below = count_text(partition.belowLogStart, "transaction")
            self.lines.text(f"  {below} without a marker below the log start offset {partition.logStartOffset}: gone")
        if partition.emptyMarkers:
            emptied = count_text(partition.emptyMarkers, "marker")
            self.lines.text(f"  {emptied} emptied by compaction: nothing is left of the transactions")
        if partition.repeatedMarkers:
            repeated = count_text(partition.repeatedMarkers, "marker")
            self.lines.text(f"  {repeated} written again by a coordinator that ended an interrupted transaction")
        if partition.seededFrom is not None:
            self.lines.text(
                f"  the transactions open at the first offset here are from {file_text(partition.seededFrom)}"
            )
        self.lines.damages(partition.damages)
        for row in rows:
            self._detail(row, zone)
        more = partition.open + partition.hanging - len(rows)
        if more > 0 and rows:
            self.lines.text(f"  … and {more} more that have not ended (--open --json)")

    def _detail(self, row: Transaction, zone: Any) -> None:
        whose = f"producer {row.producerId}, epoch {row.producerEpoch}"
        if row.transactionalId is not None:
            whose = f"{printable(row.transactionalId)}, {whose}"
        line = f"  {row.state}: {whose}, from offset {row.firstOffset}"
        line += f", {count_text(row.records, 'record')}"
        if row.begun is not None:
            line += f", started {iso(row.begun, zone)}, {duration_text(row.age)} ago"
        if row.idle is not None and row.idle != row.age:
            line += f", last written {duration_text(row.idle)} ago"
        self.lines.text(line, f"{row.state}:", "bad" if row.state == HANGING else "torn")
        self.lines.text(f"    at byte {row.position} of {file_text(row.file)}")
        for remark in row.remarks:
            self.lines.text(f"    {printable(remark)}")
        if row.abort is not None:
            self.lines.text("    to abort it, with the brokers running:")
            self.output.line(f"      {printable(row.abort)}")
        if row.abortBefore3 is not None:
            self.lines.text("    on brokers before 3.0:")
            self.output.line(f"      {printable(row.abortBefore3)}")


def _difference_text(answer: Difference) -> str:
    where = file_text(answer.file) + (f" at byte {answer.position}" if answer.offset is not None else "")
    return (
        f"  differs, {printable(answer.transactionalId)}, producer {answer.producerId} epoch {answer.producerEpoch}, "
        f"{where}: {printable(answer.message)} (offset {answer.coordinatorOffset} of {file_text(answer.coordinator)})"
    )


EXAMPLES = """
\b
Examples:
  kdump transactions /var/lib/kafka
  kdump transactions /var/lib/kafka --open
  kdump transactions /var/lib/kafka/payments-0
  kdump transactions /var/lib/kafka --open --json | jq -r '.abort // empty'
  kdump transactions /var/lib/kafka --coordinator

\b
Exit status: 0 on success, 2 for a usage error, or if a path could not be read (the others are shown).
"""


@dataclass(frozen=True)
class TransactionsOptions(CommandOptions):
    """The options of the command."""

    listing: bool = flag("--list", help="Show one row per transaction.  [log directory: one row per partition]")
    only_open: bool = flag("--open", help="Show only transactions that have not ended: open and hanging.")
    coordinator: bool = flag("--coordinator", help="Show the coordinator's last record for each transactional ID.")
    query: TransactionsQuery = group(TransactionsQuery)
    output: OutputOptions = added(output_options())
    reading: ReadingOptions = added(reading_options)

    @property
    def selects_states(self) -> bool:
        return self.query.states is not STATES

    @property
    def selects(self) -> bool:
        """Whether only some transactions are to be shown."""
        return self.only_open or self.selects_states or self.query.selects_producers


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 5))
@takes(TransactionsOptions)
def command(options: TransactionsOptions) -> None:
    """Show the transactions in partitions: which were committed or aborted, which are open or hanging, and at which
    offset they block read_committed consumers; compared with the .txnindex, and with the transaction coordinators if
    __transaction_state is on the same disks. A path is a segment, a partition directory, a log directory, or a parent
    directory. Nothing is written."""
    if options.only_open and options.selects_states:
        raise click.UsageError("choose one of --open and --state")
    if options.coordinator and (options.listing or options.only_open or options.selects_states):
        raise click.UsageError("--coordinator cannot be combined with --list, --open or --state")
    read_once(options.query.paths)
    run_command(TransactionsCommand(options))


class TransactionsCommand:
    """One run of the command."""

    def __init__(self, options: TransactionsOptions) -> None:
        self.options = options
        self.output = options.output.output()
        # The logs of the coordinators contain only the state of transactions, and none of their own.
        self.of_coordinator = options.coordinator or any(map(is_coordinator_log, options.query.paths))
        row = CoordinatorTransaction if self.of_coordinator else Transaction
        self.sink = options.output.sink(self.output, self._text, (row,))
        self.notes = Notes(self.sink)
        self.query = replace(options.query, states=(OPEN, HANGING)) if options.only_open else options.query
        self.coordinators: TopicCoverage | None = None
        """What was read of __transaction_state; None if nothing."""
        self.busy = self.rows = 0
        """`busy`: number of partitions with transactions; `rows`: number of answers that are rows."""
        self.damaged = 0
        """Number of partitions with damage, which may hide transactions."""

    def _text(self) -> Sink[Any]:
        options, shown = self.options, self.options.output
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        if self.of_coordinator:
            return TableRows(self.output, tables)
        if shown.names is not None:
            return OneTable(tables, Transaction, note_outside_columns)
        asks_for_rows = options.listing or options.selects
        return TransactionReport(self.output, tables, ledger=asks_for_rows, selected=options.selects)

    def run(self) -> None:
        with Progress("transactions") as progress:
            run = self.options.reading.run(
                unreadable=self.notes.add_unreadable,
                begin=self.notes.begin,
                found=self._begin_coordinator,
                **progress.listeners,
            )
            for answer in answers(replace(self.query, run=run)):
                if isinstance(answer, Note):
                    self.notes.add(answer.source, answer.message)
                elif isinstance(answer, CoordinatorTransaction):
                    self._coordinator(answer)
                elif self.of_coordinator:
                    break  # its answers come first
                else:
                    self.busy += isinstance(answer, PartitionTransactions) and has_any(answer)
                    self.rows += isinstance(answer, Transaction)
                    self.damaged += isinstance(answer, PartitionTransactions) and bool(answer.damages)
                    self.sink.add(answer)
        self.sink.end()
        self._report_nothing()

    def _begin_coordinator(self, coordinator: TransactionCoordinatorState) -> None:
        self.coordinators = coverage = coordinator.coverage | self.coordinators
        explain_absent("--transactional-id", coverage.lacks)

    def _coordinator(self, answer: CoordinatorTransaction) -> None:
        is_prepared = answer.state in PREPARED and bool({*self.query.states} & {OPEN, HANGING})
        if self.of_coordinator or self.sink.is_complete or (is_prepared and isinstance(self.sink, TransactionReport)):
            self.rows += self.of_coordinator
            self.sink.add(answer)

    def _report_nothing(self) -> None:
        """Say why there is no row, or that there may be others."""
        if self.of_coordinator and self.coordinators is not None and self.coordinators.is_partial:
            print_error(self.coordinators.note("the transactional IDs"))
        if has_unmatched(SelectedNames) or self.rows:
            return
        if self.of_coordinator:
            print_error("no __transaction_state on these disks, or nothing in it matches")
        elif self.notes.failed or (not self.notes.seen and self.query.topics):
            pass  # reported already
        elif not self.notes.seen:
            print_error("no partitions that may have transactions; --coordinator shows what the coordinators know")
        elif not self.busy:
            print_error(f"no transactions in {count_text(self.notes.seen, 'partition')}")
        elif self.options.query.selects_producers:
            print_error(f"no transaction of this producer in {count_text(self.notes.seen, 'partition')}")
        elif self.options.selects:
            unknown = f"; damage in {self.damaged} of them may hide some" if self.damaged else ""
            states = " or ".join(self.query.states)
            print_error(f"no {states} transactions in {count_text(self.notes.seen, 'partition')}{unknown}")


def has_any(partition: PartitionTransactions) -> bool:
    """Return True if there are, or were, transactions in a partition."""
    markers = partition.emptyMarkers + partition.repeatedMarkers
    return bool(partition.committed + partition.aborted + partition.open + partition.hanging + partition.lost + markers)


def is_coordinator_log(path: str) -> bool:
    """Return True if the path is a partition directory of __transaction_state, or a file in one."""
    directory = path if file_system.isdir(path) else os.path.dirname(os.path.abspath(path))
    return os.path.basename(os.path.abspath(directory)).startswith(f"{TRANSACTION_TOPIC}-")
