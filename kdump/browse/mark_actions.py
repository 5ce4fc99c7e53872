"""The commands that set marks, list them, and go to them."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from kdump.browse.background_jobs import Job
from kdump.browse.browser import Browser
from kdump.browse.level import Level
from kdump.browse.marks import LAST, LETTERS, Mark, mark_of, to_mark
from kdump.browse.pane_layout import PromptParsers
from kdump.browse.row_lines import table
from kdump.browse.row_listings import BrowseRow
from kdump.browse.screens import Overlay
from kdump.browse.sort_actions import SortActions
from kdump.render.escape import path_text, printable
from kdump.render.table import NAME, Column


class MarkActions(SortActions):
    """Keeps the marks of the session."""

    def __init__(self, browser: Browser, typed: PromptParsers) -> None:
        super().__init__(browser, typed)
        self.marks: dict[str, Mark] = {}
        """By letter."""

    def mark_letters(self) -> list[str]:
        return sorted(self.marks)

    def run_mark(self, argument: str) -> None:
        if not argument:
            self.next_key("mark: press a letter or digit", self._set_mark)
        else:
            self._set_mark(argument)

    def run_jump(self, argument: str) -> None:
        if not argument:
            known = " ".join(sorted(self.marks)) or "none is set"
            self.next_key(f"go to mark: press its letter ({known})", self._to_letter)
        else:
            self._to_letter(argument)

    def run_marks(self, argument: str) -> None:
        if not self.marks:
            raise ValueError("no mark is set; press m and a letter to set one")

        def chosen(letter: str | None) -> None:
            if letter is not None:
                self._to_letter(letter)

        self.push_screen(MarksScreen(self.marks), chosen)

    def _set_mark(self, letter: str) -> None:
        mark = mark_of(self.browser)
        if letter not in LETTERS or len(letter) != 1:
            self.trouble(f"{letter!r} is not a mark; use a letter or a digit")
        elif mark is None:
            self.trouble("there is nothing to mark here")
        else:
            self.marks[letter] = mark
            self.message = (printable(path_text(f" mark {letter}: {mark.label}")), "")
            self.show_status(self.message)

    def _to_letter(self, letter: str) -> None:
        mark = self.marks.get(letter)
        if mark is None:
            known = f"set are {' '.join(sorted(self.marks))}" if self.marks else "press m and a letter to set one"
            self.trouble(f"mark {letter!r} is not set; {known}")
            return
        self.to_place(mark, f"mark {letter}: {mark.label}")

    def to_place(self, mark: Mark, description: str) -> None:
        """Go to a place, and set the mark ' where the jump began."""
        note = self._unfilter()
        before = mark_of(self.browser)
        changed = ""

        def work(job: Job) -> list[Level]:
            nonlocal changed
            levels, changed = to_mark(self.browser, mark, job.report_progress)
            return levels

        def then() -> None:
            if before is not None:
                self.marks[LAST] = before
            text = f" {description}{note}" + (f"; {changed}" if changed else "")
            self.message = (printable(path_text(text)), "torn" if changed else "")

        self._look("going to the place", work, then)


class MarksScreen(Overlay):
    """The marks. Enter returns the letter of the selected one; d deletes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "delete", "delete", show=False)]

    def __init__(self, marks: dict[str, Mark]) -> None:
        super().__init__(" marks of this session", " Enter goes there   d deletes   Esc closes")
        self.marks = marks

    def fill(self) -> None:
        rows = []
        for letter, mark in sorted(self.marks.items()):
            position = "" if mark.position is None else str(mark.position)
            offset = "" if mark.offset is None else str(mark.offset)
            cells = (letter, printable(path_text(mark.label)), offset, position, printable(path_text(mark.path)))
            rows.append(BrowseRow("mark", letter, mark, letter, cells))
        head, lines = table(MARK_COLUMNS, rows, max(20, self.size.width))
        self.pane.show(lines, self.pane.cursor, head if rows else None)

    def action_delete(self) -> None:
        letters = sorted(self.marks)
        if letters:
            del self.marks[letters[self.pane.cursor]]
            self.fill()

    def on_pane_entered(self, message: Any) -> None:
        message.stop()
        letters = sorted(self.marks)
        if letters:
            self.leave(letters[message.number])


MARK_COLUMNS = [
    Column("mark", "mark", str),
    Column("place", "place", str, least=20),
    Column("offset", "offset", str, right=True, rank=7),
    Column("position", "position", str, right=True, rank=5),
    Column("path", "file", str, rank=3, least=24, cuts=NAME),
]
