"""What a check of segments reads besides them: their indexes, snapshots of producer states, and once more a stretch of
their own batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from kdump.check.carried import NUMBER, Carrier
from kdump.check.options import Options
from kdump.check.producers import Row
from kdump.check.rule import Part
from kdump.check.totals import Totals
from kdump.log.entries import Entry, Item
from kdump.log.entries import entries as read_entries
from kdump.log.errors import SourceError
from kdump.log.kinds import INDEX, PRODUCER_SNAPSHOT, TXN_INDEX, Kind
from kdump.log.paths import Target
from kdump.log.reader import regions
from kdump.log.region import Batch
from kdump.log.window import Window

MOST_SNAPSHOT = 64 * 1024 * 1024
"""Bytes of a snapshot that is held against the log: a million producers."""
MOST_WALKED = 256 * 1024 * 1024
"""Bytes of batches of a partition that are walked over once more for what entries of a .txnindex say."""
MOST_ABORTED = 1_000_000
"""Entries of a .txnindex that are held against its segment."""


Aborted = tuple[Target | None, list[Row]] | None


class Beside(Carrier):
    """The files around a partition's segments. What cannot be read is told to the totals."""

    carries = {"walked": NUMBER}

    def __init__(self, options: Options, totals: Totals) -> None:
        self.options = options
        self.totals = totals
        self.walked = 0
        """Bytes of batches that have been walked over once more."""

    def entries(self, at: Target, kind: Kind) -> Iterator[Item]:
        """Everything in a file beside a segment; the problems that opening it meets are noted."""
        try:
            window = self.options.open(at)
        except SourceError as error:
            self.totals.refused(error)
            return
        self.totals.files += 1
        self.totals.bytes += window.source.size or 0
        try:
            yield from read_entries(kind, window, at.name_offset or 0)
        except SourceError as error:
            self.totals.refused(error)
        finally:
            window.source.close()

    def snapshot(self, at: Target) -> Iterator[Row] | None:
        """The entries of a snapshot of producer states; None where it is not sound. Read twice, for its checksum tells
        only at the end, and it may hold a million."""
        try:
            with closing(self.options.open(at).source) as source:
                if (source.size or 0) > MOST_SNAPSHOT:
                    return None
                if not all(isinstance(item, Entry) for item in read_entries(PRODUCER_SNAPSHOT, Window(source), 0)):
                    return None
        except (SourceError, OSError):
            return None
        return self._snapshot(at)

    def _snapshot(self, at: Target) -> Iterator[Row]:
        try:
            with closing(self.options.open(at).source) as source:
                for item in read_entries(PRODUCER_SNAPSHOT, Window(source), 0):
                    if isinstance(item, Entry) and item.type:
                        yield item.position, item.values
        except SourceError as error:
            self.totals.refused(error)

    def aborted(self, part: Part) -> Aborted:
        """The entries of the segment's .txnindex; None where it is not sound, or nothing says that it should be here.
        A segment with its other indexes has none if nothing in it was aborted."""
        at = part.segment.beside.get(TXN_INDEX)
        if at is None:
            return (None, []) if INDEX in part.segment.beside else None
        rows: list[Row] = []
        for item in self.entries(at, TXN_INDEX):
            if not isinstance(item, Entry) or len(rows) == MOST_ABORTED:
                return None
            rows.append((item.position, item.values))
        return at, rows

    def begins(self, part: Part, position: int, offset: int) -> bool:
        """Whether `offset` is that of a producer's first transactional batch of data behind the batch at `position`.
        What cannot be read, or only at great length, contradicts nothing."""
        if self.walked > MOST_WALKED:
            return True
        try:
            window = self.options.open(part.target)
        except SourceError:
            return True
        limits = self.options.limits
        producers: set[int | None] = set()
        try:
            for region in regions(window, name_offset=part.target.name_offset, start=position, limits=limits):
                self.walked += region.size
                if not isinstance(region, Batch) or not region.isTransactional or region.isControlBatch:
                    continue
                if (region.baseOffset or 0) >= offset or self.walked > MOST_WALKED:
                    return region.baseOffset == offset and region.producerId not in producers
                producers.add(region.producerId)
        except SourceError:
            return True
        finally:
            window.source.close()
        return False
