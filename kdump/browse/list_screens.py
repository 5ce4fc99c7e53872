"""Screens with a list to choose from: the findings, and the transactions."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.answer import answer_object
from kdump.browse.background_jobs import Job, Jobs
from kdump.browse.background_verify import BackgroundVerify
from kdump.browse.row_lines import table
from kdump.browse.row_listings import BrowseRow
from kdump.browse.screens import Overlay
from kdump.check.finding import INFO, Finding
from kdump.forensics.answers import ABORTED, COMMITTED, HANGING, OPEN, PartitionTransactions, Transaction
from kdump.forensics.transactions import TransactionsQuery, transactions
from kdump.format.count_text import count_text
from kdump.log.errors import SourceError
from kdump.log.region import Limits
from kdump.render.escape import path_text, printable
from kdump.render.state_tables import columns, style
from kdump.render.table import Column

MAX_TRANSACTIONS = 20_000
"""Maximum number of transactions that are kept."""
SEVERITY = {"error": "bad", "warning": "torn", "info": "dim"}


class FindingsScreen(Overlay):
    """The findings so far. Enter returns the number of the selected finding."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "info", "info", show=False),
        Binding("v", "leave", "close", show=False),
    ]

    noted = True

    def __init__(self, check: BackgroundVerify) -> None:
        super().__init__("", " Enter goes there   i informational findings, too   Esc closes")
        self.check = check
        self.with_info = False
        self.numbers: list[int] = []
        self.seen = (-1, False)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(0.25, self.look)

    def look(self) -> None:
        """Refresh the list: the check runs in the background."""
        now = (len(self.check.findings), self.check.running)
        if now != self.seen:
            self.fill()

    def fill(self) -> None:
        check = self.check
        self.seen = (len(check.findings), check.running)
        self.numbers = [n for n, each in enumerate(check.findings) if self.with_info or each.severity != INFO]
        rows = [_finding_row(n, check.findings[n]) for n in self.numbers]
        head, lines = table(FINDING_COLUMNS, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if rows else None, keep=True)
        legal = f", {check.info} informational" if check.info and not self.with_info else ""
        state = "so far" if check.running or check.stopped else "in all"
        self.above.show((f" findings: {check.serious_text} {state}{legal}", ""))
        self.show_note(check.summary(), has_gaps=bool(check.totals.unread))

    def action_info(self) -> None:
        self.with_info = not self.with_info
        self.fill()

    def on_pane_entered(self, message: Any) -> None:
        message.stop()
        if self.numbers and not message.is_stale:
            self.leave(self.numbers[message.number])


def _finding_row(number: int, finding: Finding) -> BrowseRow:
    cells = tuple(column.cell(finding) for column in FINDING_COLUMNS)
    return BrowseRow("finding", number, finding, finding.code, cells, style=SEVERITY.get(finding.severity, ""))


def _where(finding: Finding) -> str:
    parts = path_text(finding.file).rstrip("/").split("/")
    return printable("/".join(parts[-2:]))


FINDING_COLUMNS = [
    Column("severity", "severity", lambda f: f.severity, rank=7),
    Column("code", "code", lambda f: f.code),
    Column("where", "where", _where, rank=8, least=16),
    Column("position", "position", lambda f: str(f.position), right=True, rank=6),
    Column("offset", "offset", lambda f: "" if f.offset is None else str(f.offset), right=True, rank=5),
    Column("message", "message", lambda f: printable(f.message), least=20),
]

VIEWS = {
    "asterisk": ("all", (COMMITTED, ABORTED, OPEN, HANGING)),
    "a": ("aborted", (ABORTED,)),
    "o": ("open and hanging", (OPEN, HANGING)),
    "c": ("committed", (COMMITTED,)),
    "": ("all but committed", (ABORTED, OPEN, HANGING)),
}


class TransactionsScreen(Overlay):
    """The transactions below a path, listed as they are found. Enter returns the selected transaction, to show its
    first batch."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"view('{key}')", key, show=False) for key in VIEWS if key),
        Binding("t", "leave", "close", show=False),
    ]

    noted = True

    def __init__(self, path: str, limits: Limits, zone: Any, jobs: Jobs) -> None:
        super().__init__("", " Enter goes to it   a aborted  o open  c committed  * all   Esc closes")
        self.path = path
        self.limits = limits
        self.jobs = jobs
        self.found: list[Transaction] = []
        self.rows: list[BrowseRow] = []
        self.left_out = 0
        self.view = ""
        self.troubles: list[str] = []
        self.ended: PartitionTransactions | None = None
        self.partitions = 0
        self.columns = [
            Column("partition", "partition", lambda v: printable(f"{v['topic']}-{v['partition']}"), rank=8),
            *columns("transaction", zone),
        ]
        self.job: Job | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.job = self.jobs.start("transactions", "transactions", self._read, lambda answer: self.fill())
        self.set_interval(0.25, self.look)
        self.seen = -1

    def on_unmount(self) -> None:
        self.jobs.cancel("transactions")

    def look(self) -> None:
        """Refresh the list: reading continues in the background."""
        if self.seen != len(self.found) or (self.job and not self.job.cancelled):
            self.fill()

    def _read(self, job: Job) -> None:
        def on_total(size: int) -> None:
            job.total = size

        def on_unreadable(error: SourceError) -> None:
            self.troubles.append(str(error))

        question = TransactionsQuery(limits=self.limits)
        for answer in transactions(
            self.path, question, on_unreadable=on_unreadable, on_progress=job.add, on_total=on_total
        ):
            if isinstance(answer, Transaction):
                if len(self.found) < MAX_TRANSACTIONS:
                    self.found.append(answer)
                else:
                    self.left_out += 1
            elif isinstance(answer, PartitionTransactions):
                self.partitions += 1
                self.ended = answer

    def fill(self) -> None:
        name, states = VIEWS[self.view]
        found = list(self.found)
        self.seen = len(found)
        self.rows = [self._row(number, each) for number, each in enumerate(found) if each.state in states]
        named = self.columns if self.partitions > 1 or self._several(found) else self.columns[1:]
        rows = self.rows if named is self.columns else [row._replace(cells=row.cells[1:]) for row in self.rows]
        head, lines = table(named, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if rows else None, keep=True)
        self.above.show((f" transactions, {name}: {len(self.rows)} of {len(self.found)}", ""))
        self.show_note(self._note(), has_gaps=bool(self.troubles))

    @staticmethod
    def _several(listed: list[Transaction]) -> bool:
        return len({(each.topic, each.partition) for each in listed[:1000]}) > 1

    def _note(self) -> str:
        """Return the text of the note: progress or result of the reading, omitted transactions, and the first
        problem."""
        words = []
        if self.job is not None and not self.job.cancelled:
            percent = f" {100 * self.job.done // self.job.total}%" if self.job.total else ""
            words.append(f"reading …{percent}")
        elif self.partitions == 1 and self.ended is not None:
            words.append(f"offsets up to {self.ended.logEndOffset}, last stable offset {self.ended.lastStableOffset}")
            if self.ended.heldBy is not None:
                words.append(f"blocked by producer {self.ended.heldBy}")
        else:
            words.append(f"{count_text(self.partitions, 'partition')} read")
        if self.left_out:
            words.append(f"{self.left_out} more are not shown")
        if self.troubles:
            words = [f"NOT READ: {count_text(len(self.troubles), 'place')}", *words, self.troubles[0]]
        return "; ".join(words)

    def _row(self, number: int, answer: Transaction) -> BrowseRow:
        value = answer_object(answer)
        cells = tuple(column.cell(value) for column in self.columns)
        return BrowseRow(
            "transaction", number, answer, "", cells, style="" if answer.state == ABORTED else style(value)
        )

    def action_view(self, view: str) -> None:
        self.view = view
        self.pane.move_to(0)
        self.fill()

    def on_pane_entered(self, message: Any) -> None:
        message.stop()
        if self.rows and not message.is_stale:
            self.leave(self.rows[message.number].item)
