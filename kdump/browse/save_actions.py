"""The command that saves the selected row to a file."""

from __future__ import annotations

from textual.widgets import Input

from kdump.browse.background_jobs import Job
from kdump.browse.level import Level
from kdump.browse.mark_actions import MarkActions
from kdump.browse.row_listings import BrowseRow
from kdump.browse.save import Exists, parse_saved, save


class SaveActions(MarkActions):
    """Saves in the background."""

    def run_save(self, argument: str) -> None:
        part, path = parse_saved(argument)
        level = self.browser.level
        if level.row is None:
            raise ValueError("nothing is selected")
        self._save(level, level.row, part, path, replaces=False)

    def _save(self, level: Level, row: BrowseRow, part: str, path: str, *, replaces: bool) -> None:
        browser = self.browser

        def work(job: Job) -> tuple[str, bool]:
            try:
                return save(browser, level, row, part, path, job.report_progress, replaces=replaces), True
            except Exists as error:
                return str(error), False

        def done(answer: tuple[str, bool]) -> None:
            text, is_saved = answer
            if is_saved or replaces:
                self.trouble(text)
            elif self.screen is not self.screen_stack[0] or isinstance(self.focused, Input):
                self.trouble(f"{path} exists: not saved")  # what is being typed is no answer
            else:
                self.next_key(f"{path} exists: overwrite it? y: yes, any other key: no", overwrite)

        def overwrite(key: str) -> None:
            if key in ("y", "Y"):
                self._save(level, row, part, path, replaces=True)
            else:
                self.trouble("not saved")

        self.jobs.start("save", "saving", work, done)
