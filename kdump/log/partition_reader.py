"""Reads the segments of a log as regions; what cannot be read is reported, and the next segment follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import read_problem
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.log.region_reader import regions


class PartitionReader:
    """Opens, reads and closes segments, one at a time.

    `open_window` opens a segment, and raises SourceError; `run_mode` is as in kdump.log.region_reader.regions.
    `run.unreadable` is called once with the SourceError for a file that could not be read completely, and raises it by
    default.

    While a region is processed, `at` is its segment and `window` can read it. `files` and `size` (bytes) count the
    segments that were opened and closed; `grown`: by how many bytes the last one grew or, if negative, shrank
    meanwhile."""

    def __init__(
        self,
        open_window: Callable[[Target], Window],
        run: Run = PLAIN_RUN,
        *,
        run_mode: str = "",
    ) -> None:
        self.target: Target | None = None
        self.window: Window | None = None
        self.files = self.size = self.grown = 0
        self._open = open_window
        self._run_mode = run_mode
        self._run = run

    def log(self, segments: list[Target]) -> Iterator[Region]:
        """Yield the regions of all segments, in order."""
        for target in segments:
            yield from self.segment(target)

    def segment(self, target: Target) -> Iterator[Region]:
        """Yield the regions of one segment: together they cover the file, or what could be read of it."""
        self.target, self.grown = target, 0
        try:
            window = self._open(target)
        except SourceError as error:
            self._run.unreadable(error)
            return
        self.window, source = window, window.source
        try:
            yield from regions(window, name_offset=target.name_offset, limits=self._run.limits, run_mode=self._run_mode)
            if problem := read_problem(source):
                self._run.unreadable(SourceError(problem))
            elif isinstance(source, FileSource):
                self.grown = source.grown()
        except SourceError as error:
            self._run.unreadable(error)
        finally:
            self.files += 1
            self.size += source.size or 0
            source.close()
