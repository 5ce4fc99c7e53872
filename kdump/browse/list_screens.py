"""Screens with a list to choose from: the columns, marks, findings, transactions, and records with a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.answer import answer_object
from kdump.browse.background_jobs import Job, Jobs
from kdump.browse.background_verify import BackgroundVerify
from kdump.browse.key_search import Hit, KeySearch
from kdump.browse.marks import Mark
from kdump.browse.row_listings import BrowseRow
from kdump.browse.screens import Overlay, TextScreen
from kdump.browse.sorting import SortOrder
from kdump.check.finding import INFO, Finding
from kdump.forensics.answers import ABORTED, COMMITTED, HANGING, OPEN, PartitionTransactions, Transaction
from kdump.forensics.transactions import transactions
from kdump.format.count_text import count_text, plain_count
from kdump.log.errors import SourceError
from kdump.log.run import Limits
from kdump.render.escape import path_text, printable
from kdump.render.state_tables import columns, style
from kdump.render.table import NAME, Column
from kdump.render.times import iso

MAX_TRANSACTIONS = 20_000
"""Maximum number of transactions that are kept."""
SEVERITY = {"error": "bad", "warning": "torn", "info": "dim"}


class SortScreen(Overlay):
    """The columns to sort by. Enter returns the name of one, empty for the order of the files."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "leave", "close", show=False)]

    def __init__(self, columns: list[Column], order: SortOrder | None) -> None:
        super().__init__("sort by", " Enter sorts; the same column again: the other way round   Esc closes")
        direction = "" if order is None else "descending" if order.descending else "ascending"
        named = [(column.label, column.name) for column in columns]
        self.rows = []
        for number, (label, name) in enumerate([*named, ("the order of the files", "")]):
            is_chosen = order is not None and order.column == name
            cells = (label, name, direction if is_chosen else "")
            self.rows.append(BrowseRow("column", number, name, label, cells))
            self.pane.cursor = number if is_chosen else self.pane.cursor

    def fill(self) -> None:
        self.show_rows(SORT_COLUMNS, self.rows)


SORT_COLUMNS = [
    Column("label", "column", str),
    Column("name", "name", str, rank=3),
    Column("now", "sorted", str),
]


class MarksScreen(Overlay):
    """The marks. Enter returns the letter of the selected one; d deletes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "delete", "delete", show=False)]

    def __init__(self, marks: dict[str, Mark]) -> None:
        super().__init__("marks of this session", " Enter goes there   d deletes   Esc closes")
        self.marks = marks

    def fill(self) -> None:
        rows = []
        for letter, mark in sorted(self.marks.items()):
            position = "" if mark.position is None else str(mark.position)
            offset = "" if mark.offset is None else str(mark.offset)
            cells = (letter, printable(path_text(mark.label)), offset, position, printable(path_text(mark.path)))
            rows.append(BrowseRow("mark", letter, letter, letter, cells))
        self.show_rows(MARK_COLUMNS, rows)

    def action_delete(self) -> None:
        if self.answers:
            del self.marks[self.answers[self.pane.cursor]]
            self.fill()


MARK_COLUMNS = [
    Column("mark", "mark", str),
    Column("place", "place", str, least=20),
    Column("offset", "offset", str, right=True, rank=7),
    Column("position", "position", str, right=True, rank=5),
    Column("path", "file", str, rank=3, least=24, cuts=NAME),
]


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

    def state(self) -> Any:
        return len(self.check.findings), self.check.running

    def fill(self) -> None:
        check = self.check
        shown = [(n, each) for n, each in enumerate(check.findings) if self.with_info or each.severity != INFO]
        self.show_rows(FINDING_COLUMNS, [_finding_row(*each) for each in shown])
        legal = f", {check.info} informational" if check.info and not self.with_info else ""
        state = "so far" if check.running or check.stopped else "in all"
        self.show_title(f"findings: {check.serious_text} {state}{legal}")
        self.show_note(check.summary(), has_gaps=bool(check.totals.unread))

    def action_info(self) -> None:
        self.with_info = not self.with_info
        self.fill()


def _finding_row(number: int, finding: Finding) -> BrowseRow:
    cells = tuple(column.cell(finding) for column in FINDING_COLUMNS)
    return BrowseRow("finding", number, number, finding.code, cells, style=SEVERITY.get(finding.severity, ""))


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

    def on_unmount(self) -> None:
        self.jobs.cancel("transactions")

    def state(self) -> Any:
        return None if self.job is None else (len(self.found), self.job.done, self.job.cancelled)

    def _read(self, job: Job) -> None:
        def unreadable(error: SourceError) -> None:
            self.troubles.append(str(error))

        for answer in transactions(self.path, run=replace(job.run, limits=self.limits, unreadable=unreadable)):
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
        rows = [self._row(number, each) for number, each in enumerate(found) if each.state in states]
        if self.partitions > 1 or self._several(found):
            self.show_rows(self.columns, rows)
        else:
            self.show_rows(self.columns[1:], [row._replace(cells=row.cells[1:]) for row in rows])
        self.show_title(f"transactions, {name}: {len(rows)} of {len(found)}")
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


class KeySearchScreen(Overlay):
    """Enter returns the selected record. The search goes on when the screen is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stop", "stop", show=False),
        Binding("u", "unsearched", "what was not searched", show=False),
        Binding("K", "leave", "close", show=False),
    ]

    noted = True

    def __init__(self, search: KeySearch, progress: Callable[[], str], zone: tzinfo, jobs: Jobs) -> None:
        super().__init__("", " Enter goes there   s stops   u not searched   Esc closes, the search goes on")
        self.search = search
        self.progress = progress
        self.jobs = jobs
        self.rows: list[BrowseRow] = []
        self.columns = [
            Column("partition", "partition", lambda h: printable(h.name), rank=8, least=16, cuts=NAME),
            Column("offset", "offset", lambda h: "?" if h.offset is None else str(h.offset), right=True),
            Column("timestamp", "timestamp", lambda h: iso(h.timestamp, zone), rank=7),
            Column(
                "value",
                "value",
                lambda h: "null" if h.size < 0 else plain_count(h.size, "byte"),
                right=True,
                rank=6,
            ),
            Column("position", "batch at", lambda h: str(h.position), right=True, rank=4),
            Column("flags", "flags", lambda h: "CRC!" if h.doubtful else "", rank=5),
        ]

    def state(self) -> Any:
        return self.search.found, self.search.running, self.search.bytes

    def fill(self) -> None:
        search = self.search
        hits = search.hits[: len(search.hits)]
        self.rows += [self._row(n, hits[n]) for n in range(len(self.rows), len(hits))]
        self.show_rows(self.columns, self.rows)
        self.show_title(f"key {search.text!r} in {search.title or '…'}")
        self.show_note(f"{self.progress()}{search.summary()}", has_gaps=bool(search.unsearched_count))

    def _row(self, number: int, hit: Hit) -> BrowseRow:
        cells = tuple(column.cell(hit) for column in self.columns)
        return BrowseRow("hit", number, hit, "", cells, style="bad" if hit.doubtful else "")

    def action_stop(self) -> None:
        if self.jobs.cancel("find"):
            self.search.running = False
            self.fill()

    def action_unsearched(self) -> None:
        reasons = [printable(path_text(each)) for each in self.search.unsearched]
        more = self.search.unsearched_count - len(reasons)
        reasons += [f"and {more} more"] if more else []
        self.app.push_screen(TextScreen("not searched", "\n".join(reasons) or "nothing: all was searched so far"))
