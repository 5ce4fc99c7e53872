"""The walk over the batches of a segment: one loop, at the depth that its observers need.

A source returns the regions of a segment at a depth: `regions` of kdump.log.region_reader, `PartitionReader.segment`, a
split of Spark's. Who counts, checks, compares, hashes, exports or draws batches observes the walk; who stops early, or
needs two segments at once, iterates a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import read_problem
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.log.region_reader import Depth, regions

RegionSource = Callable[..., Iterable[Region]]
"""Returns the regions of a segment at its argument `depth`."""


class RegionObserver:
    """Sees the regions of a segment, in order. `depth`: what it needs of them (see log.region_reader.regions); they may
    have been read deeper for another observer."""

    depth = Depth.CHECKSUMS

    def region(self, region: Region) -> Iterable[Any] | None:
        """Take the next region; return what `walk` is to yield."""
        raise NotImplementedError


def walk(source: RegionSource, observers: Sequence[RegionObserver], run: Run = PLAIN_RUN) -> Iterator[Any]:
    """Let the observers see the regions that `source` returns for a depth, and yield what they answer. Calls `run.more`
    with the size of each region."""
    for region in source(depth=max(observer.depth for observer in observers)):
        run.more(region.size)
        for observer in observers:
            answers = observer.region(region)
            if answers is not None:
                yield from answers


def observe(source: RegionSource, observers: Sequence[RegionObserver], run: Run = PLAIN_RUN) -> None:
    """Do the same with observers that answer nothing."""
    for _ in walk(source, observers, run):
        pass


class PartitionReader:
    """Opens, reads and closes segments, one at a time; what cannot be read is reported.

    `open_window` opens a segment, and raises SourceError. `run.unreadable` is called once with the SourceError for a
    file that could not be read completely, and raises it by default.

    While a region is processed, `target` is its segment and `window` can read it. `files` and `size` (bytes) count the
    segments that were opened and closed; `grown`: by how many bytes the last one grew or, if negative, shrank
    meanwhile."""

    def __init__(self, open_window: Callable[[Target], Window], run: Run = PLAIN_RUN) -> None:
        self.target: Target | None = None
        self.window: Window | None = None
        self.files = self.size = self.grown = 0
        self._open, self._run = open_window, run

    def segment(self, target: Target, depth: Depth = Depth.BATCHES) -> Iterator[Region]:
        """Yield the regions of one segment: together they cover the file, or what could be read of it."""
        self.target, self.grown = target, 0
        try:
            window = self._open(target)
        except SourceError as error:
            self._run.unreadable(error)
            return
        self.window, source = window, window.source
        try:
            yield from regions(window, name_offset=target.name_offset, limits=self._run.limits, depth=depth)
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
