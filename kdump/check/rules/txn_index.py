"""Family files, indexes: .txnindex files on their own, and compared with the ABORT markers.

Source: TransactionIndex; LogSegment.updateTxnIndex.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kdump.check.finding import ERROR, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import NUMBER
from kdump.check.rule import NONE, BatchContext, Rule, SegmentContext
from kdump.check.rules.indexes import REBUILD
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.header_columns import HeaderColumns
from kdump.core.integer_rows import IntegerRows
from kdump.log.entries import Entry, Item
from kdump.log.packed_entries import PackedEntries
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state.marker import ABORT

TXN_INDEX_INVALID = Code(
    code="txn-index-invalid",
    family="indexes",
    severity=ERROR,
    meaning=(
        "The size of a .txnindex is not a multiple of 34, an entry's version is above 0, or the entries' lastOffset is "
        "not ascending or is below the segment."
    ),
    consequence=(
        "if an entry's lastOffset is below the segment, the broker recovers the segment at startup; if an entry's "
        "version is 256 to 32767, it exits; anything else it does not detect, and read_committed consumers may read "
        "records of aborted transactions"
    ),
    fix=REBUILD,
    source="TransactionIndex.sanityCheck, AbortedTxn.version (which reads one byte), LogLoader.loadSegmentFiles",
)

TXN_INDEX_MISMATCH = Code(
    code="txn-index-mismatch",
    family="indexes",
    severity=ERROR,
    meaning=(
        "An entry has no ABORT marker of that producer at its lastOffset, or a different firstOffset or a higher "
        "lastStableOffset than the log gives; or an ABORT marker of data still on disk has no entry."
    ),
    consequence="read_committed consumers read records of an aborted transaction, or miss committed ones",
    fix=REBUILD,
    source="TransactionIndex.collectAbortedTxns, LogSegment.updateTxnIndex",
)


def invalid_entries(target: Target, items: Iterable[Item]) -> Iterator[Finding]:
    """Yield findings for a .txnindex on its own, given everything in it."""
    last = -1 if target.name_offset is None else target.name_offset - 1
    for item in items:
        if isinstance(item, Region):
            yield TXN_INDEX_INVALID.finding(target, message=item.reason, position=item.position, size=item.size)
        if not isinstance(item, Entry):
            continue
        values = item.values
        reason = ""
        if values["version"] > 0:
            reason = f"version {values['version']}, expected 0"
        elif values["lastOffset"] <= last:
            reason = f"lastOffset {values['lastOffset']}, expected more than {last}"
        if reason:
            yield TXN_INDEX_INVALID.finding(target, message=reason, position=item.position, size=item.size)
        last = max(last, values["lastOffset"])


LARGEST_OFFSET = 2**63 - 1


class AbortMarker(NamedTuple):
    """An ABORT marker at bytes position..position+size-1 of the segment, with the first offset of its transaction and
    the last stable offset after it. `whole`: the data of its transaction is in the log, from its first offset on."""

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
        self._latest = -1
        """The row found last: entries are usually in the order of their markers."""
        self._rows: dict[int, int] | None = None
        """Rows by offset, if offsets do not ascend."""

    def add(self, marker: AbortMarker) -> None:
        """Add a marker; it replaces one at the same offset."""
        row = len(self._found)
        if self._rows is None and row and marker.offset <= self._offset(row - 1):
            self._rows = {self._offset(number): number for number in range(row)}
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
        return AbortMarker(*self._markers.get(row))


Begins = Callable[[SegmentContext, int, int], bool]
"""Segment, position, offset -> whether a transaction begins at that offset, after the batch at that position of the
segment."""


class TxnIndexRule(Rule):
    """Checks that a segment's .txnindex matches its ABORT markers."""

    saved_fields = {"first": NUMBER}

    def __init__(self, transactions: TransactionWatcher, known: PartitionContext, entries: Any, begins: Begins) -> None:
        self.transactions = transactions
        self.known = known
        self.entries = entries
        """Segment -> the segment's .txnindex (None: there is none) and (position, values) of each entry; None if it
        cannot be read."""
        self.begins = begins
        self.first: int | None = None
        """First offset on the disk."""
        self.aborts = AbortMarkers()

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.aborts = AbortMarkers()
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if self.first is None and seen.is_valid:
            self.first = seen.batch.baseOffset
        ended = self.transactions.ended
        if ended is not None and ended.marker.type == ABORT:
            aborted = ended.transaction
            start = self.known.log_start
            whole = aborted is not None and (start is None or aborted.first_offset >= start)
            first = aborted.first_offset if aborted is not None else -1
            position, size = seen.batch.position, seen.batch.size
            stable = min(ended.stable, LARGEST_OFFSET)  # after a marker at that offset, it would not fit in 64 bits
            self.aborts.add(AbortMarker(ended.offset, ended.producer_id, first, stable, position, size, whole))
        return NONE

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return first if self.first is None else stop

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        read = self.entries(part)
        if read is None or self.transactions.damages:
            return NONE
        return list(self._compare(part, *read))

    def _compare(self, part: SegmentContext, target: Target | None, entries: PackedEntries) -> Iterator[Finding]:
        if target is None:
            yield from self._no_index(part)
            return
        for position, entry in entries:
            last = entry["lastOffset"]
            abort = self.aborts.find(last)
            if abort is None or abort.producer_id != entry["producerId"]:
                message = f"producer {entry['producerId']}: no ABORT marker at offset {last}"
                yield TXN_INDEX_MISMATCH.finding(
                    target, message=message, position=position, size=34, offset=entry["firstOffset"]
                )
            else:
                yield from self._compare_entry(part, target, position, entry, abort)
        for abort in self.aborts.rest():
            if abort.whole and not self.known.compacted:
                message = f"the ABORT marker of producer {abort.producer_id} at offset {abort.offset}"
                message += f" (byte {abort.position}) has no entry"
                yield TXN_INDEX_MISMATCH.finding(target, message=message, offset=abort.offset)

    def _compare_entry(
        self, part: SegmentContext, target: Target, position: int, entry: dict[str, int], abort: AbortMarker
    ) -> Iterator[Finding]:
        """Yield findings for an entry whose firstOffset or lastStableOffset differs from the log."""
        if not abort.whole or self.known.compacted:
            return
        first, stable = abort.first_offset, abort.stable
        # The start of a transaction that began below the first segment is unknown here. A last stable offset that is
        # too low does no harm: a lookup only continues with later entries.
        starts_wrong = entry["firstOffset"] != first and entry["firstOffset"] >= (self.first or 0)
        for name, expected, is_wrong in (
            ("firstOffset", first, starts_wrong),
            ("lastStableOffset", stable, self._is_too_high(part, entry["lastStableOffset"], abort)),
        ):
            if is_wrong:
                message = f"producer {abort.producer_id}: {name} is {entry[name]} for the transaction aborted at "
                message += f"offset {abort.offset}, but {expected} in the log"
                yield TXN_INDEX_MISMATCH.finding(
                    target,
                    message=message,
                    position=position,
                    size=34,
                    offset=abort.offset,
                    expected=expected,
                    actual=entry[name],
                )

    def _is_too_high(self, part: SegmentContext, stable: int, abort: AbortMarker) -> bool:
        """Return True if an entry's last stable offset is too high. It may legally be above the log's if no transaction
        was open after the marker: a follower appends all fetched batches at once, so that it may be the first offset of
        a transaction that begins later (UnifiedLog.append, ProducerStateManager.lastStableOffset)."""
        if stable <= abort.stable:
            return False
        return abort.stable != abort.offset + 1 or not self.begins(part, abort.position, stable)

    def _no_index(self, part: SegmentContext) -> Iterator[Finding]:
        missing = 0
        first: AbortMarker | None = None
        for abort in self.aborts.rest():
            missing += bool(abort.whole)
            first = abort if first is None and abort.whole else first
        if first is not None and not self.known.compacted:
            markers = f"ABORT marker at offset {first.offset}"
            if missing > 1:
                markers = f"{missing} ABORT markers from offset {first.offset} on"
            message = f"{markers}, with their data on this disk, but the segment has no .txnindex"
            yield TXN_INDEX_MISMATCH.finding(
                part.target, message=message, position=first.position, size=first.size, offset=first.offset
            )
