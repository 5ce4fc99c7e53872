"""The screen that lists the records with a key, as a search finds them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.browse.background_jobs import Jobs
from kdump.browse.key_search import Hit, KeySearch
from kdump.browse.row_lines import table
from kdump.browse.row_listings import BrowseRow
from kdump.browse.screens import Overlay, TextScreen
from kdump.render.escape import path_text, printable
from kdump.render.table import NAME, Column
from kdump.render.times import iso


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
        self.seen: Any = None
        self.columns = [
            Column("partition", "partition", lambda h: printable(h.name), rank=8, least=16, cuts=NAME),
            Column("offset", "offset", lambda h: "?" if h.offset is None else str(h.offset), right=True),
            Column("timestamp", "timestamp", lambda h: iso(h.timestamp, zone), rank=7),
            Column("value", "value", lambda h: "null" if h.size < 0 else f"{h.size} bytes", right=True, rank=6),
            Column("position", "batch at", lambda h: str(h.position), right=True, rank=4),
            Column("flags", "flags", lambda h: "CRC!" if h.doubtful else "", rank=5),
        ]

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(0.25, self.look)

    def look(self) -> None:
        """Refresh the list: the search runs in the background."""
        now = (self.search.found, self.search.running, self.search.bytes)
        if now != self.seen:
            self.fill()

    def fill(self) -> None:
        search = self.search
        self.seen = (search.found, search.running, search.bytes)
        hits = search.hits[: len(search.hits)]
        self.rows += [self._row(n, hits[n]) for n in range(len(self.rows), len(hits))]
        head, lines = table(self.columns, self.rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if lines else None, keep=True)
        self.above.show((printable(path_text(f" key {search.text!r} in {search.title or '…'}")), ""))
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

    def on_pane_entered(self, message: Any) -> None:
        message.stop()
        if message.number < len(self.rows):
            self.leave(self.rows[message.number].item)
