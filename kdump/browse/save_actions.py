"""The command that saves the selected row to a file."""

from __future__ import annotations

from kdump.browse.background_jobs import Job
from kdump.browse.mark_actions import MarkActions
from kdump.browse.save import Exists, parse_saved, save


class SaveActions(MarkActions):
    """Saves in the background."""

    def run_save(self, argument: str) -> None:
        part, path = parse_saved(argument)
        self._save(part, path, replaces=False)

    def _save(self, part: str, path: str, *, replaces: bool) -> None:
        browser, level = self.browser, self.browser.level
        row = level.row
        if row is None:
            raise ValueError("nothing is selected")

        def work(job: Job) -> tuple[str, bool]:
            try:
                return save(browser, level, row, part, path, job.report_progress, replaces=replaces), True
            except Exists as error:
                return str(error), False

        def done(answer: tuple[str, bool]) -> None:
            text, is_saved = answer
            if is_saved or replaces:
                self.trouble(text)
            else:
                self.next_key(f"{path} exists: overwrite it? y: yes, any other key: no", overwrite)

        def overwrite(key: str) -> None:
            if key in ("y", "Y"):
                self._save(part, path, replaces=True)
            else:
                self.trouble("not saved")

        self.jobs.start("save", "saving", work, done)
