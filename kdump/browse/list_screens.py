"""The lists over the browser to choose from: the columns, marks, findings, transactions, and records with a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from typing import Annotated, Any, NamedTuple

from kdump.answer import NAME, PathText, Shown, row_style
from kdump.browse.background import BackgroundVerify, Job, Jobs
from kdump.browse.browser import Mark
from kdump.browse.key_search import Hit, KeySearch
from kdump.browse.listings import SortOrder
from kdump.browse.panes import Overlay, View, text_view
from kdump.check.finding import INFO, Finding
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.io.run import Limits
from kdump.questions.transactions.answer import ABORTED, COMMITTED, HANGING, OPEN, PartitionTransactions, Transaction
from kdump.questions.transactions.run import transactions
from kdump.render.escape import path_text, printable
from kdump.render.state_tables import table_columns
from kdump.render.table import Column

MAX_TRANSACTIONS = 20_000
"""Maximum number of transactions that are kept."""
SEVERITY = {"error": "bad", "warning": "torn", "info": "dim"}


def _text(value: Any) -> str:
    return "" if value is None else printable(path_text(str(value)))


class SortRow(NamedTuple):
    """A column to sort by."""

    column: Annotated[str, Shown()]
    name: Annotated[str, Shown(rank=3)]
    sorted: Annotated[str, Shown()]


def sort_view(table: list[Column], order: SortOrder | None) -> View:
    """The columns to sort by. Enter returns the name of one, empty for the order of the files."""
    chosen = "" if order is None else order.column
    named = [*((column.label, column.name) for column in table), ("the order of the files", "")]
    rows = [SortRow(label, name, order.direction if order and name == chosen else "") for label, name in named]

    def fill(screen: Overlay) -> None:
        if not screen.pane.lines:
            screen.pane.cursor = next((n for n, (_, name) in enumerate(named) if order and name == chosen), 0)
        screen.show_items(table_columns(SortRow), rows, answers=[name for _, name in named])

    keys = " Enter sorts; the same column again: the other way round   Esc closes"
    return View("sort by", keys, fill, {"s": None})


class MarkRow(NamedTuple):
    """A mark, by its letter."""

    mark: Annotated[str, Shown()]
    place: Annotated[str, Shown(least=20)]
    offset: Annotated[int | None, Shown(rank=7)]
    position: Annotated[int | None, Shown(rank=5)]
    path: Annotated[PathText, Shown("file", 3, 24, cuts=NAME)]


def marks_view(marks: dict[str, Mark]) -> View:
    """The marks. Enter returns the letter of the selected one; d deletes it."""

    def fill(screen: Overlay) -> None:
        rows = [MarkRow(letter, mark.label, mark.offset, mark.position, mark.path) for letter, mark in marks.items()]
        screen.show_items(table_columns(MarkRow), sorted(rows), answers=sorted(marks))

    def delete(screen: Overlay) -> None:
        if screen.answers:
            del marks[screen.answers[screen.pane.cursor]]
            fill(screen)

    return View("marks of this session", " Enter goes there   d deletes   Esc closes", fill, {"d": delete})


def findings_view(check: BackgroundVerify) -> View:
    """The findings so far. Enter returns the number of the selected finding."""
    with_info = False

    def fill(screen: Overlay) -> None:
        shown = [(n, finding) for n, finding in enumerate(check.findings) if with_info or finding.severity != INFO]
        findings, numbers = [finding for _, finding in shown], [n for n, _ in shown]
        screen.show_items(table_columns(Finding), findings, lambda f: SEVERITY.get(f.severity, ""), numbers)
        legal = f", {check.info} informational" if check.info and not with_info else ""
        state = "so far" if check.running or check.stopped else "in all"
        screen.show_title(f"findings: {check.serious_text} {state}{legal}")
        screen.show_note(check.summary(), has_gaps=bool(check.totals.unread))

    def info(screen: Overlay) -> None:
        nonlocal with_info
        with_info = not with_info
        fill(screen)

    keys = " Enter goes there   i informational findings, too   Esc closes"
    actions = {"i": info, "v": None}
    return View("", keys, fill, actions, lambda: (len(check.findings), check.running), noted=True)


VIEWS = {
    "asterisk": ("all", (COMMITTED, ABORTED, OPEN, HANGING)),
    "a": ("aborted", (ABORTED,)),
    "o": ("open and hanging", (OPEN, HANGING)),
    "c": ("committed", (COMMITTED,)),
    "": ("all but committed", (ABORTED, OPEN, HANGING)),
}


@dataclass
class TransactionList:
    """The transactions below a path, as far as they have been read. A thread fills it, and another one shows it."""

    listed: list[Transaction] = field(default_factory=list)
    left_out: int = 0
    troubles: list[str] = field(default_factory=list)
    ended: PartitionTransactions | None = None
    partitions: int = 0
    job: Job | None = None

    def read(self, path: str, limits: Limits, job: Job) -> None:
        """Read them all. Raises Cancelled."""

        def unreadable(error: SourceError) -> None:
            self.troubles.append(str(error))

        for answer in transactions(path, run=replace(job.run, limits=limits, unreadable=unreadable)):
            if isinstance(answer, PartitionTransactions):
                self.partitions += 1
                self.ended = answer
            elif isinstance(answer, Transaction) and len(self.listed) < MAX_TRANSACTIONS:
                self.listed.append(answer)
            elif isinstance(answer, Transaction):
                self.left_out += 1

    def note(self) -> str:
        """Return the progress or result of the reading, omitted transactions, and the first problem."""
        if self.job is not None and not self.job.cancelled:
            words = [f"reading …{self.job.percent}"]
        elif self.partitions == 1 and self.ended is not None:
            words = [f"offsets up to {self.ended.logEndOffset}, last stable offset {self.ended.lastStableOffset}"]
            words += [f"blocked by producer {self.ended.heldBy}"] if self.ended.heldBy is not None else []
        else:
            words = [f"{count_text(self.partitions, 'partition')} read"]
        words += [f"{self.left_out} more are not shown"] if self.left_out else []
        if self.troubles:
            words = [f"NOT READ: {count_text(len(self.troubles), 'place')}", *words, self.troubles[0]]
        return "; ".join(words)


def transactions_view(path: str, limits: Limits, zone: tzinfo, jobs: Jobs) -> View:
    """The transactions below a path, listed as they are found. Enter returns the selected transaction."""
    state, view = TransactionList(), ""

    def fill(screen: Overlay) -> None:
        name, states = VIEWS[view]
        read = list(state.listed)
        rows = [txn for txn in read if txn.state in states]
        several = state.partitions > 1 or len({(txn.topic, txn.partition) for txn in read[:1000]}) > 1
        shown = table_columns(Transaction, zone, sorted_by="partition" if several else "")
        screen.show_items(shown, rows, lambda txn: "" if txn.state == ABORTED else row_style(txn))
        screen.show_title(f"transactions, {name}: {len(rows)} of {len(read)}")
        screen.show_note(state.note(), has_gaps=bool(state.troubles))

    def choose(key: str) -> Callable[[Overlay], None]:
        def chosen(screen: Overlay) -> None:
            nonlocal view
            view = key
            screen.pane.move_to(0)
            fill(screen)

        return chosen

    def begin(screen: Overlay) -> None:
        work = partial(state.read, path, limits)
        state.job = jobs.start("transactions", "transactions", work, lambda _: fill(screen))

    return View(
        "",
        " Enter goes to it   a aborted  o open  c committed  * all   Esc closes",
        fill,
        {"t": None, **{key: choose(key) for key in VIEWS if key}},
        lambda: None if state.job is None else (len(state.listed), state.job.done, state.job.cancelled),
        noted=True,
        begin=begin,
        end=lambda: jobs.cancel("transactions"),
    )


def key_search_view(search: KeySearch, progress: Callable[[], str], zone: tzinfo, jobs: Jobs) -> View:
    """Enter returns the selected record. The search goes on when the screen is closed."""
    shown = table_columns(Hit, zone)

    def fill(screen: Overlay) -> None:
        screen.show_items(shown, search.hits[: len(search.hits)], lambda hit: "bad" if hit.doubtful else "")
        screen.show_title(f"key {search.text!r} in {search.title or '…'}")
        screen.show_note(f"{progress()}{search.summary()}", has_gaps=bool(search.unsearched_count))

    def stop(screen: Overlay) -> None:
        if jobs.cancel("find"):
            search.running = False
            fill(screen)

    def unsearched(screen: Overlay) -> None:
        reasons = [printable(path_text(reason)) for reason in search.unsearched]
        more = search.unsearched_count - len(reasons)
        reasons += [f"and {more} more"] if more else []
        lines = "\n".join(reasons) or "nothing: all was searched so far"
        screen.app.push_screen(Overlay(text_view("not searched", lines)))

    return View(
        "",
        " Enter goes there   s stops   u not searched   Esc closes, the search continues",
        fill,
        {"s": stop, "u": unsearched, "K": None},
        lambda: (search.found, search.running, search.bytes),
        noted=True,
    )
