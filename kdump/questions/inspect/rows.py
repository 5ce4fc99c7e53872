"""Passes what is selected of a file to a view, up to a limit of rows."""

from __future__ import annotations

from itertools import islice

from kdump.format.count_text import plain_count
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.window import Window
from kdump.log.entries import Entry, Item
from kdump.log.file_kinds import BATCHES
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import Batch, BatchRun, Defect, Region
from kdump.questions.inspect.selected_files import SelectedFiles
from kdump.questions.inspect.views import View
from kdump.render.progress import Progress


class Rows:
    """`left`: how many rows may still be shown; None if there is no limit."""

    def __init__(self, files: SelectedFiles, view: View) -> None:
        self.files, self.view, self.left = files, view, files.options.limit

    def show(self, file: Target) -> None:
        """Show what is selected of a file."""
        scan, view = self.files.scan, self.view
        view.file(file)
        if self.files.committed is not None:  # which turns to this file, and away from those that are still written
            view.drain()
        opened = self.files.open(file)
        if opened is None:
            return
        target, window = opened
        view.begin(target)
        before, shown = scan.batches, 0
        try:
            with Progress(target.path) as progress:

                def at(position: int, size: int | None) -> None:
                    progress.at(position, size)
                    view.tick()

                scan.run = Run(at=at)
                for item in self.files.items(target, window):
                    self.item(target, item, window)
                    shown += not isinstance(item, Entry) or bool(item.type)
                    if self.left == 0:
                        return
            self.files.ended(target, window, scan.batches - before if target.kind in BATCHES else shown)
        except SourceError as error:
            self.files.report_unreadable(error)
        finally:
            window.source.close()

    def item(self, target: Target, item: Item, window: Window, skip: int = 0) -> None:
        """Show a region or an entry. `skip`: how many of its records are not shown."""
        view, coverage = self.view, self.files.coverage
        if isinstance(item, BatchRun):
            view.batch_run(target, item)
            return
        if isinstance(item, Defect):
            from kdump.check.engine.check_small_files import file_finding

            view.finding(file_finding(target, item))
            return
        if isinstance(item, Entry):
            rows = view.entry(target, item)
        elif isinstance(item, Batch):
            reading = self.files.scan.reading(item)
            records = self.files.selection.records(reading)
            if self.files.options.of_records and (skip or self.left is not None):
                records = islice(records, skip, None if self.left is None else skip + self.left)
            rows = view.batch(target, reading, records)
            if coverage is not None:
                coverage.batch(target.path, reading, rows)
        else:
            rows = self._region(target, item, window)
            if coverage is not None:
                coverage.region(item)
        if self.left is not None:
            self.left -= rows

    def _region(self, target: Target, region: Region, window: Window) -> int:
        """Show bytes that are not a valid batch. If the end of the file truncates a batch, also show its complete
        records, unless the file may be growing, or only the last rows were requested. Returns the number of rows."""
        options, torn = self.files.options, None
        if options.of_records and not (options.follow or options.last):
            torn = self.files.torn(region, window)
        complete = 0 if torn is None else torn.complete_records
        if torn is None or not complete:
            self.view.region(target, region, window)
            return 0
        note = f"; {complete} of its {plain_count(torn.recordCount or 0, 'record')} are complete"
        note += ", but no checksum covers them"
        self.view.region(target, region.with_reason(region.reason + note), window)
        return self.view.batch(target, Reading(torn), islice(self.files.selection.records(torn), self.left))
