"""Reads the files next to the segments for a check: indexes, producer snapshots, and again parts of the segments
themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from kdump.check.options import Options
from kdump.check.resume_state import NUMBER, Resumable
from kdump.check.rule import SegmentContext
from kdump.check.rules.producer_snapshots import SnapshotEntry
from kdump.check.totals import CheckTotals
from kdump.check.watchers.txn_index_entries import IndexedAborts
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.kafka.transaction_index import AbortMarker, newer_entry, next_begins
from kdump.log.entries import Entry, EntryRun, Item, entry_runs, single_entries
from kdump.log.entries import entries as read_entries
from kdump.log.file_kinds import INDEX, PRODUCER_SNAPSHOT, TXN_INDEX, FileKind
from kdump.log.packed_entries import PackedEntries
from kdump.log.paths import Target
from kdump.log.region import Region

MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Size in bytes of the largest producer snapshot that is compared with the log: a million producers."""
SMALL_SNAPSHOT = 64 * 1024
"""Size in bytes up to which the entries of a producer snapshot are kept while it is compared."""
MAX_BYTES_READ_AGAIN = 256 * 1024 * 1024
"""Maximum number of bytes per partition that are read again to check entries of .txnindex files."""
MAX_ABORTED_ENTRIES = 1_000_000
"""Maximum number of entries of a .txnindex that are compared with its segment."""


class NeighborFiles(Resumable):
    """Reads the files next to the segments of a partition. Adds read errors to the totals."""

    saved_fields = {"walked": NUMBER}

    def __init__(self, options: Options, totals: CheckTotals) -> None:
        self.options, self.totals = options, totals
        self.walked = 0
        """Bytes of batches that have been read again."""
        self.valid_snapshots: dict[str, int] = {}
        """Bytes of each producer snapshot that has been read and is valid, by its path."""
        self._last: tuple[SegmentContext, IndexedAborts] | None = None
        """The segment whose .txnindex was read last, and its entries: several rules use them."""

    def entries(self, target: Target, kind: FileKind) -> Iterator[Item]:
        """Yield everything in an index. An error that prevents reading it is added to the totals."""
        return single_entries(self.entry_runs(target, kind))

    def entry_runs(self, target: Target, kind: FileKind) -> Iterator[EntryRun | Region]:
        """Like `entries`, but yields adjacent entries at once."""
        try:
            yield from self._read(target, kind)
        except SourceError as error:
            self.totals.add_unreadable(error)

    def _read(self, target: Target, kind: FileKind) -> Iterator[EntryRun | Region]:
        """Yield everything in an index. Raises SourceError."""
        window = self.options.open(target)
        self.totals.count_file(window.source.size)
        with closing(window.source):
            yield from entry_runs(kind, window, target.name_offset or 0)

    def snapshot(self, target: Target) -> Iterator[SnapshotEntry] | None:
        """Return the entries of a producer snapshot; None if it is not valid. Reads a large file twice, because the
        checksum is only known at its end and it may have a million entries."""
        entries: list[SnapshotEntry] = []
        try:
            with closing(self.options.open(target).source) as source:
                size = source.size or 0
                if size > MAX_SNAPSHOT_BYTES:
                    return None
                for item in read_entries(PRODUCER_SNAPSHOT, Window(source), 0):
                    if not isinstance(item, Entry):
                        return None
                    if size <= SMALL_SNAPSHOT and item.type:
                        entries.append((item.position, item.values))
            self.valid_snapshots[target.path] = size
        except (SourceError, OSError):
            return None
        return iter(entries) if size <= SMALL_SNAPSHOT else self._snapshot(target)

    def _snapshot(self, target: Target) -> Iterator[SnapshotEntry]:
        try:
            with closing(self.options.open(target).source) as source:
                for item in read_entries(PRODUCER_SNAPSHOT, Window(source), 0):
                    if isinstance(item, Entry) and item.type:
                        yield item.position, item.values
        except SourceError as error:
            self.totals.add_unreadable(error)

    def aborted(self, part: SegmentContext) -> IndexedAborts:
        """Return the entries of the segment's .txnindex; None if it cannot be read, is invalid or too large, or if the
        .index is missing too, so that it may have been lost. A segment with an .index but no .txnindex has no aborted
        transactions."""
        if self._last is None or self._last[0] is not part:
            self._last = None  # before other entries are read: an index may have a million
            self._last = part, self._aborted(part)
        return self._last[1]

    def _aborted(self, part: SegmentContext) -> IndexedAborts:
        target = part.segment.indexes.get(TXN_INDEX)
        if target is None:
            return (None, PackedEntries()) if INDEX in part.segment.indexes else None
        entries = PackedEntries()
        try:
            for item in self._read(target, TXN_INDEX):
                if not isinstance(item, EntryRun) or len(entries) + item.rows > MAX_ABORTED_ENTRIES:
                    return None
                for values in item.tuples():
                    entries.add(values)
        except SourceError as error:
            self.totals.add_unreadable(error)
            return None
        return None if len(entries) and newer_entry(entries[len(entries) - 1][1]["version"]) else (target, entries)

    def begins(self, part: SegmentContext, abort: AbortMarker, offset: int) -> bool:
        """Return True if the next transaction after a marker begins at `offset`. Also returns True if the file is
        unreadable or MAX_BYTES_READ_AGAIN bytes were read again."""
        try:
            window = self.options.open(part.target)
            with closing(window.source):
                left = MAX_BYTES_READ_AGAIN - self.walked
                begins, walked = next_begins(window, abort, offset, self.options.limits, left)
        except SourceError:
            return True
        self.walked += walked
        return begins
