"""Output of `kdump transactions` for people: the ledger of each partition, or one row per partition, and details of
open transactions."""

from __future__ import annotations

from typing import Any

from kdump.answer import answer_object
from kdump.check.finding import Finding
from kdump.format.count_text import count_text
from kdump.questions.summary_lines import SummaryLines, file_text, place_text
from kdump.questions.transactions.answer import (
    HANGING,
    OPEN,
    CoordinatorTransaction,
    Difference,
    PartitionTransactions,
    Transaction,
)
from kdump.render.amounts import duration_text
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables, style
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
        self.output = output
        self.tables = tables
        self.ledger = ledger
        self.selected = selected
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
                self.rows = self.tables.open("transaction")
                if not self._was_named and row.topic is not None:
                    self.rows.title = place_text(row)
            value = answer_object(row)
            if self._open and self._open[-1] is row:
                value["remarks"] = []  # shown after the table
            self.rows.add(value, style(value))

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
            self.tables.write_summary("transactionPartition", [*map(answer_object, self._summary)])
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
            if partition.startLogEndOffset not in (None, partition.logEndOffset):
                line += f" (up to {partition.startLogEndOffset - 1} for a broker, which does not check the damage)"
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
