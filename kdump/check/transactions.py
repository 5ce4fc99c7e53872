"""Family log, transactions: finds open transactions and batches that violate the protocol, and compares .txnindex files
with the ABORT markers.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker; TransactionIndex; LogSegment.updateTxnIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kdump.check.carried import NUMBER, TRANSACTIONS
from kdump.check.catalogue import WARNING
from kdump.check.finding import Finding, found
from kdump.check.rule import DAY, NONE, BatchContext, PartitionContext, Rule, SegmentContext, hides
from kdump.check.timestamps import utc
from kdump.format.batch import TRANSACTIONAL
from kdump.format.header_columns import (
    ATTRIBUTES,
    LAST,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    HeaderColumns,
    ProducerWrites,
    largest,
    producer_writes,
)
from kdump.log.paths import Target
from kdump.log.region import Region
from kdump.state import transactions as state
from kdump.state.marker import ABORT


class TransactionRule(Rule):
    """Checks transactions. `state`: the open ones; `ended`: effect of the current batch's marker, None if the batch has
    none."""

    carries = {"state": TRANSACTIONS, "newest": NUMBER, "damages": NUMBER}

    def __init__(self, known: PartitionContext) -> None:
        self.known = known
        self.state = state.OpenTransactions()
        self.newest = -1
        self.damages = 0
        self.ended: state.CompletedTxn | None = None

    @property
    def damaged(self) -> bool:
        return self.damages > 0

    def region(self, part: SegmentContext, region: Region) -> Iterable[Finding]:
        self.damages += hides(part, region)
        return NONE

    def unread(self) -> None:
        self.damages += 1
        self.state.open.clear()  # their markers may be in the unreadable part

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        batch = seen.batch
        self.ended = None
        if not seen.sound:
            self.damages += 1
            return NONE
        if batch.maxTimestamp is not None and batch.maxTimestamp <= seen.part.modified + DAY:
            self.newest = max(self.newest, batch.maxTimestamp)
        producer_id = batch.producerId
        if producer_id is None or producer_id < 0:
            return NONE
        if batch.isControlBatch:
            if seen.marker is None:
                return NONE
            self.ended = self.state.marker(batch, seen.marker)
            return list(self._marker(seen, self.ended))
        running = self.state.data(seen.part.target, batch, self.damages)
        if batch.isTransactional or running is None or self.damaged:
            return NONE
        message = (
            f"producer {producer_id} wrote a non-transactional batch while its transaction from offset "
            f"{running.first_offset} is open"
        )
        position, size, base = batch.position, batch.size, batch.baseOffset
        return [found("transaction-invalid", seen.part.target, message, position=position, size=size, offset=base)]

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        stop, found = producer_writes(heads, first, stop, False)
        return min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: HeaderColumns, chain: ProducerWrites) -> bool:
        """Return True if a producer begins a transaction, or writes outside of an open one."""
        transactional = bool(heads.of(chain.first, ATTRIBUTES) & TRANSACTIONAL.mask)
        return transactional != (heads.of(chain.first, PRODUCER) in self.state.open)

    def take(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self.ended = None
        self.newest = max(self.newest, largest(heads, MAX_TIMESTAMP, first, stop, part.modified + DAY))
        for chain in producer_writes(heads, first, stop, False)[1]:
            producer_id, epoch = heads.of(chain.first, PRODUCER), heads.of(chain.first, PRODUCER_EPOCH)
            last, timestamp = heads.of(chain.last, LAST), heads.of(chain.last, MAX_TIMESTAMP)
            self.state.wrote(producer_id, epoch)
            if producer_id in self.state.open:
                self.state.open[producer_id].add(chain.records, chain.batches, chain.bytes, last, timestamp, epoch)

    def _marker(self, seen: BatchContext, ended: state.CompletedTxn) -> Iterator[Finding]:
        batch, epoch, newest = seen.batch, ended.epoch, ended.newest
        if epoch < newest:
            message = (
                f"{ended.marker.type} marker of producer {ended.producer_id} has epoch {epoch}, but its data has epoch "
                f"{newest}"
            )
            yield found(
                "transaction-invalid",
                seen.part.target,
                message,
                position=batch.position,
                size=batch.size,
                offset=batch.baseOffset,
                expected=newest,
                actual=epoch,
                severity=WARNING,
                consequence="a fenced coordinator wrote this marker; it still ends the transaction",
            )

    def end(self) -> Iterable[Finding]:
        if self.known.last is False:  # the markers are in later segments
            return
        for producer_id, running in self.state.open.items():
            yield self._left_open(producer_id, running)

    def is_hanging(self, producer_id: int, running: state.OngoingTxn) -> bool | None:
        """Return True if no coordinator will end an open transaction: its coordinator does not list it as ongoing.
        Returns None if the coordinators' logs are not available or not complete."""
        known = self.known
        if known.coordinator is None or known.topic is None or known.partition is None:
            return None
        ongoing = known.coordinator.ongoing(producer_id, running.epoch, known.topic, known.partition)
        return None if ongoing is None else not ongoing

    def _left_open(self, producer_id: int, running: state.OngoingTxn) -> Finding:
        known = self.known
        code, severity = "transaction-open", None
        records = "record" if running.records == 1 else "records"
        age = self.newest - running.timestamp if running.timestamp >= 0 else 0
        message = (
            f"transaction of producer {producer_id}, epoch {running.epoch}: {running.records} {records} from offset "
            f"{running.first_offset}, started at {utc(running.timestamp)}"
        )
        if self.is_hanging(producer_id, running):
            code = "transaction-hanging"
        if code == "transaction-hanging":
            message += "; it is not ongoing in the coordinator's log"
        if code == "transaction-open" and age > known.transaction_timeout:
            severity = WARNING
            message += f", {age // 1000} s before the newest batch"
        return found(
            code,
            running.target,
            message,
            position=running.position,
            size=running.size,
            offset=running.first_offset,
            severity=severity,
        )


class Aborted(NamedTuple):
    """An ABORT marker at bytes position..position+size-1 of the segment. `whole`: the data of its transaction is in the
    log, from its first offset on."""

    ended: state.CompletedTxn
    whole: bool
    position: int
    size: int


Begins = Callable[[SegmentContext, int, int], bool]
"""Segment, position, offset -> whether a transaction begins at that offset, after the batch at that position of the
segment."""


class TxnIndexRule(Rule):
    """Checks that a segment's .txnindex matches its ABORT markers."""

    carries = {"first": NUMBER}

    def __init__(self, transactions: TransactionRule, known: PartitionContext, entries: Any, begins: Begins) -> None:
        self.transactions = transactions
        self.known = known
        self.entries = entries
        """Segment -> the segment's .txnindex (None: there is none) and (position, values) of each entry; None if it
        cannot be read."""
        self.begins = begins
        self.first: int | None = None
        """First offset on the disk."""
        self.aborts: dict[int, Aborted] = {}

    def begin(self, part: SegmentContext) -> Iterable[Finding]:
        self.aborts = {}
        return NONE

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if self.first is None and seen.sound:
            self.first = seen.batch.baseOffset
        ended = self.transactions.ended
        if ended is not None and ended.marker.type == ABORT:
            aborted = ended.transaction
            start = self.known.log_start
            whole = aborted is not None and (start is None or aborted.first_offset >= start)
            self.aborts[ended.offset] = Aborted(ended, whole, seen.batch.position, seen.batch.size)
        return NONE

    def free(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return first if self.first is None else stop

    def finish(self, part: SegmentContext) -> Iterable[Finding]:
        read = self.entries(part)
        if read is None or self.transactions.damaged:
            return NONE
        return list(self._compared(part, *read))

    def _compared(
        self, part: SegmentContext, at: Target | None, entries: list[tuple[int, dict[str, int]]]
    ) -> Iterator[Finding]:
        if at is None:
            yield from self._lost(part)
            return
        indexed = set()
        for position, entry in entries:
            last = entry["lastOffset"]
            indexed.add(last)
            abort = self.aborts.get(last)
            if abort is None or abort.ended.producer_id != entry["producerId"]:
                message = f"producer {entry['producerId']}: no ABORT marker at offset {last}"
                yield found("txn-index-mismatch", at, message, position=position, size=34, offset=entry["firstOffset"])
            else:
                yield from self._fields(part, at, position, entry, abort)
        for offset, (ended, whole, position, _) in self.aborts.items():
            if offset not in indexed and whole and not self.known.compacted:
                message = f"the ABORT marker of producer {ended.producer_id} at offset {offset} (byte {position})"
                message += " has no entry"
                yield found("txn-index-mismatch", at, message, offset=offset)

    def _fields(
        self, part: SegmentContext, at: Target, position: int, entry: dict[str, int], abort: Aborted
    ) -> Iterator[Finding]:
        """Yield findings for an entry whose firstOffset or lastStableOffset differs from the log."""
        ended = abort.ended
        if not abort.whole or ended.transaction is None or self.known.compacted:
            return
        first, stable = ended.transaction.first_offset, ended.stable
        # The start of a transaction that began below the first segment is unknown here. A last stable offset that is
        # too low does no harm: a lookup only continues with later entries.
        starts_wrong = entry["firstOffset"] != first and entry["firstOffset"] >= (self.first or 0)
        for name, expected, is_wrong in (
            ("firstOffset", first, starts_wrong),
            ("lastStableOffset", stable, self._is_too_high(part, entry["lastStableOffset"], abort)),
        ):
            if is_wrong:
                message = f"producer {ended.producer_id}: {name} is {entry[name]} for the transaction aborted at "
                message += f"offset {ended.offset}, but {expected} in the log"
                yield found(
                    "txn-index-mismatch",
                    at,
                    message,
                    position=position,
                    size=34,
                    offset=ended.offset,
                    expected=expected,
                    actual=entry[name],
                )

    def _is_too_high(self, part: SegmentContext, stable: int, abort: Aborted) -> bool:
        """Return True if an entry's last stable offset is too high. It may legally be above the log's if no transaction
        was open after the marker: a follower appends all fetched batches at once, so that it may be the first offset of
        a transaction that begins later (UnifiedLog.append, ProducerStateManager.lastStableOffset)."""
        if stable <= abort.ended.stable:
            return False
        return abort.ended.stable != abort.ended.offset + 1 or not self.begins(part, abort.position, stable)

    def _lost(self, part: SegmentContext) -> Iterator[Finding]:
        missing = [offset for offset, abort in self.aborts.items() if abort.whole]
        if missing and not self.known.compacted:
            _, _, position, size = self.aborts[missing[0]]
            first = missing[0]
            markers = f"ABORT marker at offset {first}"
            if len(missing) > 1:
                markers = f"{len(missing)} ABORT markers from offset {first} on"
            message = f"{markers}, with their data on this disk, but the segment has no .txnindex"
            yield found("txn-index-mismatch", part.target, message, position=position, size=size, offset=missing[0])
