"""Family log, transactions: open transactions, and batches that violate the protocol.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.advice import RESTORE
from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.resume_state import NUMBER, TRANSACTIONS
from kdump.check.rule import DAY, NONE, BatchContext, PartitionContext, Rule, SegmentContext, hides
from kdump.check.rules.timestamps import utc
from kdump.format.batch import TRANSACTIONAL
from kdump.format.heads import (
    ATTRIBUTES,
    LAST,
    MAX_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH,
    Chain,
    Heads,
    chains,
    largest,
)
from kdump.log.region import Region
from kdump.state import transactions as state

TRANSACTION_OPEN = Code(
    code="transaction-open",
    family="transactions",
    severity=INFO,
    meaning="A transaction has no marker by the end of the log.",
    consequence=(
        "read_committed consumers wait at offset {offset} until the transaction ends, and the log cleaner stops there"
    ),
    fix=(
        "Wait for the producer or for transaction.timeout.ms. If the transaction is still open, run "
        "kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic TOPIC"
    ),
    source="ProducerStateManager.firstUndecidedOffset",
    unless="warning if it began more than --transaction-timeout before the newest batch",
    needs_log_dir=True,
)

TRANSACTION_HANGING = Code(
    code="transaction-hanging",
    family="transactions",
    severity=WARNING,
    meaning="The coordinator, whose log is on the same disk, does not have an open transaction as ongoing.",
    consequence=(
        "no coordinator will end it: the last stable offset stays at {offset}, where read_committed consumers and the "
        "log cleaner stop"
    ),
    fix=(
        "Confirm it on the running cluster (kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic "
        "TOPIC), because this disk may be older than the coordinator's state. Then abort it, which discards its "
        "records for read_committed consumers: kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic TOPIC "
        "--partition PARTITION --start-offset OFFSET. Do not delete snapshots instead"
    ),
    source="KIP-664, TransactionsCommand",
    needs_log_dir=True,
)

TRANSACTION_INVALID = Code(
    code="transaction-invalid",
    family="transactions",
    severity=ERROR,
    meaning="A producer wrote a non-transactional data batch while its transaction was open.",
    consequence=(
        "a broker that replays this batch to rebuild producer state exits with InvalidTxnStateException; at startup it "
        "replays every batch after the latest producer snapshot (usually none after a clean shutdown) and every "
        "segment that it recovers"
    ),
    fix=(
        "Look at the producer (kdump inspect --producer-id) and compare with another replica. Do not delete the .index "
        f"or the producer snapshots of this partition, which makes the broker replay the batch. {RESTORE}"
    ),
    source="ProducerAppendInfo.appendDataBatch, appendEndTxnMarker",
    unless="warning for a marker with a lower epoch than the producer's",
    needs_log_dir=True,
)


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
        return [
            TRANSACTION_INVALID.finding(seen.part.target, message=message, position=position, size=size, offset=base)
        ]

    def free(self, part: SegmentContext, heads: Heads, first: int, stop: int) -> int:
        stop, found = chains(heads, first, stop, False)
        return min((chain.first for chain in found if self._odd(heads, chain)), default=stop)

    def _odd(self, heads: Heads, chain: Chain) -> bool:
        """Return True if a producer begins a transaction, or writes outside of an open one."""
        transactional = bool(heads.of(chain.first, ATTRIBUTES) & TRANSACTIONAL.mask)
        return transactional != (heads.of(chain.first, PRODUCER) in self.state.open)

    def take(self, part: SegmentContext, heads: Heads, first: int, stop: int) -> None:
        self.ended = None
        self.newest = max(self.newest, largest(heads, MAX_TIMESTAMP, first, stop, part.modified + DAY))
        for chain in chains(heads, first, stop, False)[1]:
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
            yield TRANSACTION_INVALID.finding(
                seen.part.target,
                message=message,
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
        code, severity = TRANSACTION_OPEN, None
        records = "record" if running.records == 1 else "records"
        age = self.newest - running.timestamp if running.timestamp >= 0 else 0
        message = (
            f"transaction of producer {producer_id}, epoch {running.epoch}: {running.records} {records} from offset "
            f"{running.first_offset}, started at {utc(running.timestamp)}"
        )
        if self.is_hanging(producer_id, running):
            code = TRANSACTION_HANGING
            message += "; it is not ongoing in the coordinator's log"
        if code is TRANSACTION_OPEN and age > known.transaction_timeout:
            severity = WARNING
            message += f", {age // 1000} s before the newest batch"
        return code.finding(
            running.target,
            message=message,
            position=running.position,
            size=running.size,
            offset=running.first_offset,
            severity=severity,
        )
