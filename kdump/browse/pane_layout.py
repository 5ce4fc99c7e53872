"""The screen except for the hexdump: the panes, the title, the status line and the progress of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from kdump.browse.background_jobs import Jobs
from kdump.browse.background_verify import BackgroundVerify
from kdump.browse.browser import Browser
from kdump.browse.hexdump_lines import HexDump, HexLine
from kdump.browse.level import Level
from kdump.browse.panes import Bar, KeyHints, Pane
from kdump.browse.row_lines import table, tree
from kdump.browse.row_listings import BrowseRow
from kdump.browse.segment_pages import Pages
from kdump.browse.sorting import SortedListing
from kdump.check.finding import Finding
from kdump.log.selection import Selection
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.style import width
from kdump.render.table import Column

KEYS = " ? help  : command  ⏎ in  ← out  ⇥ pane  g go  / find  f filter  s sort  q quit"


class PromptParsers(NamedTuple):
    """Parsers of typed text; each raises ValueError with the reason. `selection` parses options of inspect, whose
    names are `options`; `time` returns epoch ms."""

    selection: Callable[[str], Selection]
    time: Callable[[str], int]
    options: Sequence[str] = ()


class PaneLayout(App[None]):
    """Lays out the panes, and fills the tree, the table and the status line."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; overflow: hidden; }
    #panes { height: 1fr; }
    #tree { width: 25; height: 100%; }
    #gap { width: 1; height: 100%; }
    #table { width: 1fr; height: 100%; }
    #hex { height: 1fr; }
    #prompt { height: 1; border: none; padding: 0; display: none; }
    .wide #tree { width: 44; }
    .zoomed #tree, .zoomed #table, .zoomed #hex, .zoomed #gap { display: none; }
    .zoomed #tree.zoom { display: block; width: 1fr; }
    .zoomed #table.zoom { display: block; }
    .zoomed #hex.zoom { display: block; }
    .zoomed .empty { display: none; }
    """

    takes_key: Callable[[str], None] | None = None
    """What takes the next key, while `question` is shown."""
    question = ""

    def __init__(self, browser: Browser, typed: PromptParsers) -> None:
        super().__init__(ansi_color=True)
        self.browser = browser
        self.typed = typed
        self.jobs = Jobs(self, self)
        self.check: BackgroundVerify | None = None
        self.awaited = 0
        """Direction in which the user waits for a finding, 0 if not waiting."""
        self.finding: Finding | None = None
        """The finding that was visited last."""
        self.found: tuple[str, Any] | None = None
        """Its place, as returned by `spot`: the finding is shown only there."""
        self.options = ""
        """The filter options, as typed."""
        self.searched = ""
        self.message = ("", "")
        self.full = False
        self.dumped: tuple[Any, HexDump] | None = None
        self.laid: tuple[list[BrowseRow], int, tuple[HexLine, list[HexLine]]] | None = None
        """Rows, the width available for them, and the resulting table."""
        self.places: list[tuple[int, int]] = []
        """Level and row number for each line of the tree."""
        self.title_bar, self.hex_bar, self.status = Bar(id="title", style="reverse"), Bar(id="bytes"), Bar(id="status")
        self.tree_pane, self.table_pane, self.hex_pane = Pane(id="tree"), Pane(id="table"), Pane(id="hex")

    def compose(self) -> ComposeResult:
        yield self.title_bar
        with Horizontal(id="panes"):
            yield self.table_pane
            yield Bar(id="gap")
            yield self.tree_pane
        yield self.hex_bar
        yield self.hex_pane
        yield self.make_prompt()
        yield self.status
        yield KeyHints(self.status, KEYS, id="keys")

    def make_prompt(self) -> Widget:
        """Return the line in which commands are typed."""
        raise NotImplementedError

    def _draw_lists(self) -> None:
        browser = self.browser
        level = browser.level
        room = max(20, self.table_pane.size.width)
        if self.laid is None or self.laid[0] is not level.rows or self.laid[1] != room:
            self.laid = (level.rows, room, table(_with_arrow(level), level.rows, room))
        head, lines = self.laid[2]
        self.table_pane.show(lines, level.cursor, head if lines else None, keep=True)
        top = printable(path_text(browser.places.path))
        lines, self.places = tree(browser.levels, top, max(10, self.tree_pane.size.width))
        here = (browser.depth, level.cursor)
        number = self.places.index(here) if here in self.places else 0
        self.tree_pane.show(lines, number, keep=True)
        names = [top, *(each.owner.label for each in browser.levels[1 : browser.depth + 1] if each.owner is not None)]
        kinds = f"   filter {self.options}" if self.options else ""
        kinds, trail = printable(kinds), " › ".join(names)
        room = self.size.width - 15 - width(kinds)
        while width(trail) > room and len(trail) > 8:
            trail = "…" + trail[2:]
        self.title_bar.show((f" kdump browse  {trail}{kinds}", ""))

    def _show_place(self) -> None:
        """Fill the status line: with a message or finding, or with the current position."""
        if self.message[0]:
            self.show_status(self.message)
            return
        level = self.browser.level
        row = level.row
        if row is None:
            empty_text = "the filter matches no batch or record" if self.options else "nothing here"
            self.show_status((f" {empty_text}", "torn"))
            return
        if row.type == "field":
            field = row.item
            wrong = f"WRONG: {field.wrong}  " if field.wrong else ""
            self.show_status((f" {wrong}{field.name} = {field.value}  {field.meaning}", "bad" if wrong else ""))
            return
        text = ""
        if isinstance(level.listing, SortedListing):
            text = f" {level.listing.about}"
            remark = level.file.remark() if level.file is not None else ""
            text += f"; {remark}" if remark else ""
        elif isinstance(level.listing, Pages) and level.file is not None:
            size = level.file.length
            at = row.item.position
            text = (
                f" byte {at} of {size_text(size)}, {100 * at // max(1, size)}%" if size is not None else f" byte {at}"
            )
            remark = level.file.remark()
            text += f"; {remark}" if remark else ""
        elif level.last and level.first:
            words = [f"{level.cursor + 1} of {len(level.rows)}", level.order.text if level.order else "", level.about]
            text = " " + "; ".join(filter(None, words))
        else:
            text = f" {row.key}"
        self.show_status((printable(path_text(text)), ""))

    def _show_field(self, line: HexLine, dump: HexDump) -> None:
        if line.field is None:
            return
        field = dump.fields[line.field]
        wrong = f"WRONG: {field.wrong}  " if field.wrong else ""
        self.show_status((f" {wrong}{field.name} = {field.value}  {field.meaning}", "bad" if wrong else ""))

    def show_status(self, part: tuple[str, str]) -> None:
        """Fill the status line; but a question that is not answered stays, because the next key answers it."""
        self.status.show((self.question, "") if self.takes_key is not None else part)

    def trouble(self, text: str) -> None:
        """Show a message until the user moves on."""
        self.message = (" " + printable(path_text(text)), "torn")
        self.show_status(self.message)

    def _progress(self) -> None:
        for group in ("look", "save", "find", "check"):
            job = self.jobs.running.get(group)
            if job is None or (job.description == "reading" and not job.done):
                continue
            if group in ("find", "check") and self.message[0] and not self.awaited:
                continue
            far = f" {100 * min(job.done, job.total) // job.total}%" if job.total else ""
            far = far or (f" at byte {job.done}" if job.done else "")
            found = f", {self.check.serious} found" if group == "check" and self.check else ""
            self.show_status((f" {job.description} …{far}{found}  (Esc stops)", "dim"))
            return


def _with_arrow(level: Level) -> list[Column]:
    """Return the columns of a level; the one that it is sorted by is marked, and never left out."""
    if level.order is None:
        return level.listing.columns
    arrow = "▼" if level.order.descending else "▲"
    return [
        column._replace(label=f"{column.label} {arrow}", rank=9) if column.name == level.order.column else column
        for column in level.listing.columns
    ]
