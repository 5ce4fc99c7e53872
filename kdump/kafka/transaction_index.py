"""Is a .txnindex right? Its entries on their own, and compared with the ABORT markers of the segment.

Source: TransactionIndex (sanityCheck, collectAbortedTxns), AbortedTxn.version, which reads one byte of two up to 4.3;
LogSegment.updateTxnIndex, ProducerStateManager.lastStableOffset; for the entries that the log cleaner keeps, Cleaner's
CleanedTransactionMetadata."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.core.integer_rows import IntegerRows
from kdump.format.index import TXN_INDEX_ENTRY
from kdump.format.kafka_release import KafkaRelease, newer_text
from kdump.format.known_releases import newest
from kdump.format.numbers import LONG_MIN
from kdump.io.run import Limits
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.kafka.index_judge import MISMATCH, Fault
from kdump.log.entries import Entry
from kdump.log.live_files import open_target
from kdump.log.offset_index_lookup import index_size
from kdump.log.paths import seen_file
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.state.releases import TXN_INDEX_VERSION

TWO_BYTES = 1 << 8
"""The lowest version whose first byte is not zero."""
COMPACTED, LATER, UNKNOWN_START, EMPTY = "compacted", "laterTransaction", "startUnknown", "emptyTransaction"
"""Why an entry may differ from the log: the log cleaner has removed batches; a transaction was appended together with
the marker; the transaction may have begun below the offsets that are known; it has no data (up to 2.7, its
entry starts at the marker: ProducerAppendInfo.appendEndTxnMarker before KAFKA-10702)."""


class AbortMarker(NamedTuple):
    """An ABORT marker at bytes position..position+size-1 of the segment, with the first offset of its transaction (-1
    if no data of it is known) and the last stable offset after it. `whole`: the data of its transaction is in the log,
    from its first offset on."""

    offset: int
    producer_id: int
    first_offset: int
    stable: int
    position: int
    size: int
    whole: int


NO_MARKER = AbortMarker(0, 0, -1, 0, 0, 0, True)
NEAR = {"first_offset": "offset", "stable": "offset"}


class AbortMarkers:
    """The ABORT markers of a segment by offset, in at most 30 bytes each."""

    def __init__(self) -> None:
        names = AbortMarker._fields
        self._markers = IntegerRows(NO_MARKER, [names.index(NEAR[name]) if name in NEAR else -1 for name in names])
        self._found = bytearray()
        self._last = LONG_MIN
        self._latest = -1
        """The row found last: entries are usually in the order of their markers."""
        self._rows: dict[int, int] | None = None
        """Rows by offset, if offsets do not ascend."""

    def add(self, marker: AbortMarker) -> None:
        """Add a marker; it replaces one at the same offset."""
        row = len(self._found)
        if self._rows is None and marker.offset <= self._last:
            self._rows = {self._offset(number): number for number in range(row)}
        self._last = marker.offset
        self._markers.put(row, marker)
        self._found.append(False)
        if self._rows is not None:
            self._rows[marker.offset] = row

    def find(self, offset: int) -> AbortMarker | None:
        """Return the marker at an offset, None if there is none; `rest` leaves it out."""
        count, row = len(self._found), self._latest + 1
        if self._rows is not None:
            row = self._rows.get(offset, -1)
        elif row == count or self._offset(row) != offset:
            row = bisect_left(range(count), offset, key=self._offset)
            row = row if row < count and self._offset(row) == offset else -1
        if row < 0:
            return None
        self._latest = row
        self._found[row] = True
        return self._at(row)

    def rest(self) -> Iterator[AbortMarker]:
        """Yield the markers that have not been found."""
        for row in range(len(self._found)) if self._rows is None else self._rows.values():
            if not self._found[row]:
                yield self._at(row)

    def _offset(self, row: int) -> int:
        return self._markers.get(row)[0]

    def _at(self, row: int) -> AbortMarker:
        return AbortMarker._make(self._markers.get(row))


class TransactionIndexJudge(NamedTuple):
    """Judges the entries of a .txnindex by the markers of its segment. `known_from`: every transaction that began at or
    above this offset is known; `is_compacted`: the log cleaner may have cleaned the segment; `begins`: whether the
    transaction that begins next after a marker has that first offset; `explain` is called with the reason why an entry
    may differ from the log."""

    aborts: AbortMarkers
    known_from: int
    is_compacted: bool
    begins: Callable[[AbortMarker, int], bool]
    explain: Callable[[str], None] = lambda reason: None

    def entry(self, entry: Entry, number: int | None = None) -> Fault | None:
        """Return what is wrong with an entry; None if nothing is."""
        values = entry.values
        producer, last = values["producerId"], values["lastOffset"]
        abort = self.aborts.find(last)
        if abort is None or abort.producer_id != producer:
            message = f"producer {producer}: no ABORT marker at offset {last}"
            return Fault(MISMATCH, entry, number, message, offset=values["firstOffset"])
        message = f"producer {producer}: "
        if not abort.whole:
            if values["firstOffset"] == last:
                self.explain(EMPTY)
                return None
            if abort.first_offset >= 0 or not self._differs(values["firstOffset"], None):
                return None
            message += f"no data of the transaction aborted at offset {last}: no release writes such an entry"
            return Fault(MISMATCH, entry, number, message, True, offset=last)
        first, stable = values["firstOffset"], values["lastStableOffset"]
        if first == abort.first_offset and stable == abort.stable:
            return None
        for name, actual, expected, is_wrong in (
            ("firstOffset", first, abort.first_offset, self._differs(first, abort.first_offset)),
            ("lastStableOffset", stable, abort.stable, self._is_unstable(stable, abort)),
        ):
            if is_wrong:
                message += f"{name} is {actual} for the transaction aborted at offset {last}, but {expected} in the log"
                # A lookup stops at a last stable offset that is too high; one that is too low only makes it continue.
                is_usable = name == "lastStableOffset" and actual < expected
                message += ": no release writes such an entry" if is_usable else ""
                return Fault(MISMATCH, entry, number, message, is_usable, last, expected, actual)
        return None

    def missing(self) -> Iterator[Fault]:
        """Yield the markers without an entry, once all entries were judged."""
        for abort in self.aborts.rest():
            if abort.whole and self.is_compacted:
                self.explain(COMPACTED)
            elif abort.whole:
                message = f"the ABORT marker of producer {abort.producer_id} at offset {abort.offset}"
                message += f" (byte {abort.position}) has no entry"
                yield Fault(MISMATCH, None, None, message, offset=abort.offset)

    def _differs(self, offset: int, expected: int | None) -> bool:
        """Return True if an entry's offset differs from the log's (None: it is unknown), and nothing explains why."""
        if offset == expected:
            return False
        is_lower = expected is None or offset < expected
        if offset < self.known_from and is_lower:
            self.explain(UNKNOWN_START)
        elif self.is_compacted and is_lower:
            self.explain(COMPACTED)
        else:
            return True
        return False

    def _is_unstable(self, stable: int, abort: AbortMarker) -> bool:
        """Return True if an entry's last stable offset differs from the log's. It may legally be above it if no
        transaction was open after the marker: a follower appends all fetched batches at once, so that it may be the
        first offset of a transaction that begins later (UnifiedLog.append)."""
        if stable > abort.stable == abort.offset + 1 and self.begins(abort, stable):
            self.explain(LATER)
            return False
        return self._differs(stable, abort.stable)


def entry_problem(values: dict[str, int], last: int) -> str:
    """Return what is wrong with an entry on its own; empty if nothing is. `last`: the lastOffset that it must be
    above."""
    if values["version"]:
        return f"version {values['version']}, expected 0"
    return f"lastOffset {values['lastOffset']}, expected more than {last}" if values["lastOffset"] <= last else ""


def next_begins(window: Window, abort: AbortMarker, offset: int, limits: Limits, budget: int) -> tuple[bool, int]:
    """Return whether the next transaction after a marker that another producer begins has this first offset, and the
    number of bytes that were read for it. More than `budget` are not: then it may. Raises SourceError."""
    walked = 0
    for region in regions(window, start=abort.position, limits=limits):
        walked += region.size
        if walked > budget:
            return True, walked
        if isinstance(region, Batch) and region.isTransactional and not region.isControlBatch:
            if region.producerId != abort.producer_id:
                return region.baseOffset == offset, walked
            if (region.baseOffset or 0) > offset:
                break
    return False, walked


def newer_entry(version: int) -> str:
    """Return that the last entry of a file has a version that only a release newer than the newest known one writes;
    empty if it has another one. The first byte is not zero in damaged files alone: no release is near version 256."""
    highest = newest().messages["control"]["AbortedTxn"].highest
    return newer_text("AbortedTxn version", version, highest) if highest < version < TWO_BYTES else ""


def newer_last_entry(source: Source, size: int) -> str:
    """Return the same of the last entry in `size` bytes of a file; empty if there is none. Raises SourceError."""
    end = size // TXN_INDEX_ENTRY.size * TXN_INDEX_ENTRY.size
    if not end:
        return ""
    return newer_entry(TXN_INDEX_ENTRY.read(source.read_at(end - TXN_INDEX_ENTRY.size, TXN_INDEX_ENTRY.size)).version)


def sanity_problem(path: str, base: int, release: KafkaRelease, newer: list[str]) -> tuple[int, str, bool] | None:
    """Return the first error that TransactionIndex.sanityCheck finds: byte position, message, and whether the broker
    exits (otherwise it recovers the segment). None if there is no error. What only a release newer than the newest
    known one writes is added to `newer`. Raises SourceError."""
    source = open_target(seen_file(path))
    size = TXN_INDEX_ENTRY.size
    try:
        total = index_size(path, source)
        newer += filter(None, [newer_last_entry(source, total)])
        for position in range(0, total - size + 1, size):
            data = source.read_at(position, size)
            if len(data) < size:
                break
            entry = TXN_INDEX_ENTRY.read(data)
            # One byte, the first: versions below 256 count as 0.
            version = entry.version if TXN_INDEX_VERSION.applies(release) else max(0, entry.version >> 8)
            if version:
                return position, f"Unexpected aborted transaction version {version}", True
            if entry.lastOffset < base:
                return position, f"lastOffset {entry.lastOffset} is less than the segment's base offset {base}", False
    finally:
        source.close()
    return None
