"""`kdump transactions` for people: the ledger of each partition, or a row a partition, and what is open in detail."""

from __future__ import annotations

from typing import Any

from kdump.check.finding import Finding
from kdump.forensics.answers import (
    HANGING,
    OPEN,
    CoordinatorTransaction,
    Difference,
    PartitionTransactions,
    Transaction,
)
from kdump.render.durations import duration_text
from kdump.render.escape import path_text, printable
from kdump.render.forensic_objects import answer_object
from kdump.render.output import Output
from kdump.render.report import STYLE
from kdump.render.state_tables import StateTables, style
from kdump.render.style import painter
from kdump.render.table import Table
from kdump.render.times import iso

MOST_DETAILS = 100
"""Open transactions, and findings, of a partition that are told in full; of those beyond only the number."""


class TransactionReport:
    """Takes the answers as they come. With `ledger` every transaction is a row; else every partition is one."""

    def __init__(self, output: Output, tables: StateTables, *, ledger: bool) -> None:
        self.output = output
        self.tables = tables
        self.ledger = ledger
        self.paint = painter(output.colour)
        self.rows: Table | None = None
        self.shown = 0
        self.partitions = 0
        """Those that have transactions; `idle` have none."""
        self.idle = 0
        self._summary: list[PartitionTransactions] = []
        self._details: list[tuple[PartitionTransactions, list[Transaction]]] = []
        self._open: list[Transaction] = []
        self._said: list[Finding | Difference] = []
        self._kept: list[Finding | Difference] = []
        self._untold = 0

    def add(self, answer: Any) -> None:
        if isinstance(answer, Transaction):
            self._transaction(answer)
        elif isinstance(answer, PartitionTransactions):
            self._partition(answer)
        elif isinstance(answer, (Finding, Difference)) and not (
            isinstance(answer, Finding) and answer.severity == "info"
        ):
            if len(self._said) < MOST_DETAILS:
                self._said.append(answer)
            else:
                self._untold += 1

    def _transaction(self, row: Transaction) -> None:
        if row.state in (OPEN, HANGING) and len(self._open) < MOST_DETAILS:
            self._open.append(row)
        if self.ledger:
            if self.rows is None:
                if self.shown:
                    self.output.line("")
                self.rows = self.tables.open("transaction")
            value = answer_object(row)
            if self._open and self._open[-1] is row:
                value["remarks"] = []  # they are told behind the table
            self.rows.add(value, style(value))

    def _partition(self, partition: PartitionTransactions) -> None:
        has = partition.committed + partition.aborted + partition.open + partition.hanging + partition.emptyMarkers
        self.partitions += bool(has)
        self.idle += not has
        if self.ledger:
            if self.rows is not None:
                self.rows.flush()
                self.rows = None
                self.output.line("")
            elif has and self.shown:
                self.output.line("")
            if has:
                self.shown += 1
                self._end(partition, self._open)
            self._findings(self._said)
            self._said = []
        elif has or self._said:
            if has:
                self._summary.append(partition)
            if self._open:
                self._details.append((partition, self._open))
            self._kept += self._said[: MOST_DETAILS - len(self._kept)]
            self._said = []
        self._open = []

    def finish(self) -> None:
        """Write what waited for the end: the table of partitions, and what is open in them."""
        if self.ledger:
            return
        if self._summary:
            self.tables.write("transactionPartition", map(answer_object, self._summary))
            self.shown += 1
        for partition, rows in self._details:
            self.output.line("")
            self._end(partition, rows)
        if self._kept and self.shown:
            self.output.line("")
        self._findings(self._kept)

    def coordinator(self, rows: list[CoordinatorTransaction]) -> None:
        """What the coordinators say, as a table."""
        self.shown += bool(self.tables.write("transactionCoordinator", map(answer_object, rows)))

    def _end(self, partition: PartitionTransactions, rows: list[Transaction]) -> None:
        zone = self.tables.zone
        name = _name(partition)
        counts = [(getattr(partition, word), word) for word in ("committed", "aborted", "open", "hanging")]
        text = ", ".join(f"{count} {word}" for count, word in counts if count) or "no transaction left"
        text = f"{name}: {text}"
        if partition.logStartOffset is not None and partition.logEndOffset is not None:
            text += f"; offsets {partition.logStartOffset}..{partition.logEndOffset - 1}"
        if partition.lastStableOffset is not None:
            text += f", last stable offset {partition.lastStableOffset}"
            if partition.heldBy is None:
                text += ", the log end"
            else:
                text += f", held back by producer {partition.heldBy}"
        if partition.highWatermark is not None and partition.highWatermark < (partition.lastStableOffset or 0):
            text += f"; the high watermark was {partition.highWatermark} when it was written down last"
        self._text(text, name)
        if partition.emptyMarkers:
            emptied = "marker that compaction has" if partition.emptyMarkers == 1 else "markers that compaction has"
            self._text(f"  {partition.emptyMarkers} {emptied} emptied: nothing of their transactions is left")
        if partition.seededFrom is not None:
            self._text(f"  what was open at the first offset here is taken from {_file(partition.seededFrom)}")
        if partition.damages:
            many = "1 damaged stretch" if partition.damages == 1 else f"{partition.damages} damaged stretches"
            self._text(f"  {many} could not be taken into account", paint="torn")
        for row in rows:
            self._detail(row, zone)
        more = partition.open + partition.hanging - len(rows)
        if more > 0 and rows:
            self._text(f"  … and {more} more that have not ended: --open --json has them")

    def _detail(self, row: Transaction, zone: Any) -> None:
        whose = f"producer {row.producerId}, epoch {row.producerEpoch}"
        if row.transactionalId is not None:
            whose = f"{printable(row.transactionalId)}, {whose}"
        text = f"  {row.state}: {whose}, from offset {row.firstOffset}"
        text += f", {row.records} record{'' if row.records == 1 else 's'}"
        if row.begun is not None:
            text += f", begun {iso(row.begun, zone)}, {duration_text(row.age)} ago"
        if row.idle is not None and row.idle != row.age:
            text += f", last written {duration_text(row.idle)} ago"
        self._text(text, f"{row.state}:", "bad" if row.state == HANGING else "torn")
        self._text(f"    at byte {row.position} of {_file(row.file)}")
        for remark in row.remarks:
            self._text(f"    {printable(remark)}")
        if row.abort is not None:
            self._text("    to abort it:")
            self.output.line(f"      {printable(row.abort)}")
            self._text("    on brokers before 3.0:")
            self.output.line(f"      {printable(row.abortBefore3 or '')}")

    def _findings(self, said: list[Finding | Difference]) -> None:
        for each in said:
            if isinstance(each, Finding):
                where = f"{_file(each.file)} at {each.position}"
                text = f"  {each.severity} {each.code}, {where}: {printable(each.message)}"
                self._text(text, each.code, STYLE[each.severity])
            else:
                where = f"{_file(each.file)} at {each.position}" if each.offset is not None else _file(each.file)
                text = f"  differs, {printable(each.transactionalId)}, producer {each.producerId} epoch "
                text += f"{each.producerEpoch}, {where}: {printable(each.message)} (offset {each.coordinatorOffset} of "
                text += f"{_file(each.coordinator)})"
                self._text(text, "differs", "bad")
        if self._untold:
            self._text(f"  … and {self._untold} more: kdump verify tells all")
            self._untold = 0

    def _text(self, text: str, head: str = "", paint: str = "head") -> None:
        indent = len(text) - len(text.lstrip())
        for number, line in enumerate(self.output.wrapped(text, indent + 2)):
            shown = " " * indent + line.lstrip() if number == 0 else line
            self.output.line(shown.replace(head, self.paint(head, paint), 1) if head and number == 0 else shown)


def _name(partition: PartitionTransactions) -> str:
    if partition.topic is not None:
        return printable(f"{partition.topic}-{partition.partition}")
    return printable(path_text(partition.path))


def _file(path: str) -> str:
    """A file by its directory and name: what tells it from others, and fits a line."""
    return printable("/".join(path_text(path).split("/")[-2:]))
