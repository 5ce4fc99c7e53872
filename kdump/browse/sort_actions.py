"""The commands that sort the table by a column."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.browse.finding_actions import FindingActions
from kdump.browse.level import Level
from kdump.browse.row_lines import table
from kdump.browse.row_listings import BrowseRow
from kdump.browse.screens import Overlay
from kdump.browse.sorting import SortOrder, chosen_order
from kdump.render.table import Column


class SortActions(FindingActions):
    """Sorts the table that is shown."""

    def run_sort(self, argument: str) -> None:
        level = self.browser.level
        if not level.listing.columns:
            raise ValueError("this list has no columns to sort by")
        if argument in ("off", "none"):
            self._sort(None)
        elif argument:
            self._sort(chosen_order(argument, level.listing.columns))
        else:
            self.push_screen(SortScreen(level.listing.columns, level.order), lambda name: self._sorted_by(name, level))

    def _sorted_by(self, column: str | None, level: Level) -> None:
        """Sort by the column that was chosen in the list; by the same one again: the other way round. `level`: whose
        columns were listed."""
        order = level.order
        if column is None:
            return
        if level is not self.browser.level:  # what was still being read when the list was opened has arrived
            self.trouble("the table has changed; press s to sort it")
            return
        if not column:
            self._sort(None)
        elif order is not None and order.column == column:
            self._sort(SortOrder(column, not order.descending))
        else:
            self._sort(chosen_order(column, self.browser.level.listing.columns))

    def run_reverse(self, argument: str) -> None:
        order = self.browser.level.order
        if order is None:
            raise ValueError("the list is in the order of the files; press s to sort it")
        self._sort(SortOrder(order.column, not order.descending))

    def _sort(self, order: SortOrder | None) -> None:
        browser, depth = self.browser, self.browser.depth
        level = browser.level
        if order is None and level.order is None:
            return
        description = "sorting" if order is None else f"sorting by {order.column}: reading all rows"
        job = self._look(description, lambda job: browser.sort(depth, order, job.report_progress))
        job.total = (level.file.length or 0) if level.file is not None else 0


class SortScreen(Overlay):
    """The columns to sort by. Enter returns the name of one, empty for the order of the files."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "leave", "close", show=False)]

    def __init__(self, columns: list[Column], order: SortOrder | None) -> None:
        super().__init__(" sort by", " Enter sorts; the same column again: the other way round   Esc closes")
        self.columns = columns
        self.order = order
        self.names = [*(column.name for column in columns), ""]
        if order is not None:
            self.pane.cursor = self.names.index(order.column)

    def fill(self) -> None:
        order = self.order
        rows = []
        for number, name in enumerate(self.names):
            now = ("descending" if order.descending else "ascending") if order and order.column == name else ""
            label = self.columns[number].label if name else "the order of the files"
            rows.append(BrowseRow("column", number, name, label, (label, name, now)))
        head, lines = table(SORT_COLUMNS, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head)

    def on_pane_entered(self, message: Any) -> None:
        message.stop()
        self.leave(self.names[message.number])


SORT_COLUMNS = [
    Column("label", "column", str),
    Column("name", "name", str, rank=3),
    Column("now", "sorted", str),
]
