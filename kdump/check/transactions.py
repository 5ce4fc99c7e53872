"""Family log, transactions: those left open, and batches that cannot be where they are; .txnindex held against them.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker; TransactionIndex; LogSegment.updateTxnIndex.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kdump.check.catalogue import WARNING
from kdump.check.finding import Finding, found
from kdump.check.rule import DAY, NONE, Known, Part, Rule, Seen
from kdump.check.timestamps import utc
from kdump.format.heads import (
    ATTRIBUTES,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    TRANSACTIONAL,
    Chain,
    Heads,
    chains,
    largest,
)
from kdump.log.paths import Target
from kdump.log.region import Region


@dataclass
class Open:
    """A transaction without a marker yet."""

    target: Target
    position: int
    size: int
    first_offset: int
    epoch: int
    timestamp: int
    records: int = 0


class Transactions(Rule):
    """Which transactions are open, and which a marker has closed."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.open: dict[int, Open] = {}
        self.epochs: dict[int, int] = {}
        self.newest = -1
        self.damaged = False
        self.closed: tuple[int, Open | None] | None = None
        """Of the batch that is being looked at: the producer whose ABORT it is, and what that aborts."""

    def region(self, part: Part, region: Region) -> Iterable[Finding]:
        self.damaged = True
        return NONE

    def batch(self, seen: Seen) -> Iterable[Finding]:
        batch = seen.batch
        self.closed = None
        if not seen.sound:
            self.damaged = True
            return NONE
        if batch.maxTimestamp is not None and batch.maxTimestamp <= seen.part.modified + DAY:
            self.newest = max(self.newest, batch.maxTimestamp)
        producer_id = batch.producerId
        if producer_id is None or producer_id < 0:
            return NONE
        epoch, base = batch.producerEpoch or 0, batch.baseOffset or 0
        if batch.isControlBatch:
            return list(self._marker(seen, producer_id, epoch)) if seen.marker else NONE
        self._wrote(producer_id, epoch)
        running = self.open.get(producer_id)
        if batch.isTransactional:
            if running is None:
                timestamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
                running = Open(seen.part.target, batch.position, batch.size, base, epoch, timestamp)
                self.open[producer_id] = running
            running.records += batch.recordCount or 0
            return NONE
        if running is None or self.damaged:
            return NONE
        message = (
            f"producer {producer_id} writes outside a transaction, while that of offset {running.first_offset} is open"
        )
        position, size = batch.position, batch.size
        return [found("transaction-invalid", seen.part.target, message, position=position, size=size, offset=base)]

    def free(self, part: Part, heads: Heads, first: int, stop: int) -> int:
        stop, found = chains(heads, first, stop, False)
        return min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: Heads, chain: Chain) -> bool:
        """Whether a producer begins a transaction, or writes outside of one."""
        transactional = bool(heads.of(chain.first, ATTRIBUTES) & TRANSACTIONAL)
        return transactional != (heads.of(chain.first, PRODUCER) in self.open)

    def take(self, part: Part, heads: Heads, first: int, stop: int) -> None:
        self.closed = None
        self.newest = max(self.newest, largest(heads, MAX_TIMESTAMP, first, stop, part.modified + DAY))
        for chain in chains(heads, first, stop, False)[1]:
            producer_id = heads.of(chain.first, PRODUCER)
            self._wrote(producer_id, heads.of(chain.first, PRODUCER_EPOCH))
            if producer_id in self.open:
                self.open[producer_id].records += chain.records

    def _wrote(self, producer_id: int, epoch: int) -> None:
        if len(self.epochs) < 1_000_000:
            self.epochs[producer_id] = max(epoch, self.epochs.get(producer_id, -1))

    def _marker(self, seen: Seen, producer_id: int, epoch: int) -> Iterator[Finding]:
        batch = seen.batch
        assert seen.marker is not None
        closed = self.open.pop(producer_id, None)
        if seen.marker.type == "ABORT":
            self.closed = (producer_id, closed)
        newest = self.epochs.get(producer_id, -1)
        if epoch < newest:
            message = f"{seen.marker.type} marker of producer {producer_id} with epoch {epoch}, its data have {newest}"
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
                consequence="a coordinator that was fenced has written it; the transaction ends all the same",
            )
        self.epochs[producer_id] = max(epoch, newest)

    def end(self) -> Iterable[Finding]:
        if self.known.last is False:  # what ends the transactions stands in later segments
            return
        for producer_id, running in self.open.items():
            yield self._left_open(producer_id, running)

    def _left_open(self, producer_id: int, running: Open) -> Finding:
        known = self.known
        code, severity = "transaction-open", None
        records = "record" if running.records == 1 else "records"
        age = self.newest - running.timestamp if running.timestamp >= 0 else 0
        message = (
            f"transaction of producer {producer_id}, epoch {running.epoch}: {running.records} {records} from offset "
            f"{running.first_offset}, begun {utc(running.timestamp)}"
        )
        if known.coordinator is not None and known.topic is not None and known.partition is not None:
            ongoing = known.coordinator.ongoing(producer_id, running.epoch, known.topic, known.partition)
            code = "transaction-hanging" if ongoing is False else code
        if code == "transaction-hanging":
            message += "; the coordinator does not know it as ongoing"
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


class TransactionIndex(Rule):
    """A segment's .txnindex and its ABORT markers say the same."""

    def __init__(self, transactions: Transactions, known: Known, entries: Any) -> None:
        self.transactions = transactions
        self.known = known
        self.entries = entries
        """Target -> (position, values) of each entry of that file, or None where it cannot be read."""
        self.aborts: dict[int, tuple[int, bool, int, int]] = {}

    def begin(self, part: Part) -> Iterable[Finding]:
        self.aborts = {}
        return NONE

    def batch(self, seen: Seen) -> Iterable[Finding]:
        closed = self.transactions.closed
        if closed is not None:
            producer_id, aborted = closed
            start = self.known.log_start
            whole = aborted is not None and (start is None or aborted.first_offset >= start)
            batch = seen.batch
            self.aborts[batch.lastOffset] = (producer_id, whole, batch.position, batch.size)
        return NONE

    def finish(self, part: Part) -> Iterable[Finding]:
        read = self.entries(part)
        if read is None or self.transactions.damaged:
            return NONE
        return list(self._compared(part, *read))

    def _compared(self, part: Part, at: Target | None, entries: list[tuple[int, dict[str, int]]]) -> Iterator[Finding]:
        if at is None:
            yield from self._lost(part)
            return
        indexed = set()
        for position, entry in entries:
            last = entry["lastOffset"]
            indexed.add(last)
            marker = self.aborts.get(last)
            if marker is None or marker[0] != entry["producerId"]:
                message = f"producer {entry['producerId']}: no ABORT marker of it at offset {last}"
                yield found("txn-index-mismatch", at, message, position=position, size=34, offset=entry["firstOffset"])
        for offset, (producer_id, whole, position, _) in self.aborts.items():
            if offset not in indexed and whole and not self.known.compacted:
                message = (
                    f"the ABORT marker of producer {producer_id} at offset {offset} (byte {position}) has no entry"
                )
                yield found("txn-index-mismatch", at, message, offset=offset)

    def _lost(self, part: Part) -> Iterator[Finding]:
        missing = [offset for offset, (_, whole, _, _) in self.aborts.items() if whole]
        if missing and not self.known.compacted:
            _, _, position, size = self.aborts[missing[0]]
            markers = "an ABORT marker" if len(missing) == 1 else f"{len(missing)} ABORT markers"
            message = f"{markers} of data on disk from offset {missing[0]} on, and the segment has no .txnindex"
            yield found("txn-index-mismatch", part.target, message, position=position, size=size, offset=missing[0])
