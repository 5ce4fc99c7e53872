"""Reads the segments of a log as regions; what cannot be read is reported, and the next segment follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdump.log.errors import OnUnreadable, SourceError, raise_error
from kdump.log.fault_tolerant import read_problem
from kdump.log.paths import Target
from kdump.log.region import Limits, Region
from kdump.log.region_reader import regions
from kdump.log.source import FileSource
from kdump.log.window import Window


class PartitionReader:
    """Opens, reads and closes segments, one at a time.

    `open_window` opens a segment, and raises SourceError; `run_mode` is as in kdump.log.region_reader.regions.
    `on_unreadable` is called once with the SourceError for a file that could not be read completely, and raises it by
    default; `on_changed` is called with a segment that grew or shrank while it was read, and by how many bytes.

    While a region is processed, `at` is its segment and `window` can read it. `files` and `size` (bytes) count the
    segments that were opened and closed.
    """

    def __init__(
        self,
        open_window: Callable[[Target], Window],
        limits: Limits,
        *,
        run_mode: str = "",
        on_unreadable: OnUnreadable = raise_error,
        on_changed: Callable[[Target, int], None] = lambda at, count: None,
    ) -> None:
        self.target: Target | None = None
        self.window: Window | None = None
        self.files = self.size = 0
        self._open = open_window
        self._limits = limits
        self._run_mode = run_mode
        self._on_unreadable = on_unreadable
        self._on_changed = on_changed

    def log(self, segments: list[Target]) -> Iterator[Region]:
        """Yield the regions of all segments, in order."""
        for target in segments:
            yield from self.segment(target)

    def segment(self, target: Target) -> Iterator[Region]:
        """Yield the regions of one segment: together they cover the file, or what could be read of it."""
        self.target = target
        try:
            window = self._open(target)
        except SourceError as error:
            self._on_unreadable(error)
            return
        self.window, source = window, window.source
        try:
            yield from regions(window, name_offset=target.name_offset, limits=self._limits, run_mode=self._run_mode)
            if problem := read_problem(source):
                self._on_unreadable(SourceError(problem))
            elif isinstance(source, FileSource) and (grown := source.grown()):
                self._on_changed(target, grown)
        except SourceError as error:
            self._on_unreadable(error)
        finally:
            self.files += 1
            self.size += source.size or 0
            source.close()
