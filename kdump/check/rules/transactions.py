"""Family log, transactions: open transactions, and batches that violate the protocol.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.advice import RESTORE
from kdump.check.finding import ERROR, INFO, WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.rules.timestamps import utc
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.header_columns import HeaderColumns
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn

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
    meaning="The coordinator, whose log is on the same disk, does not list an open transaction as Ongoing.",
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
        "Look at the producer (kdump inspect DIR --producer-id PRODUCER-ID) and compare with another replica. Do not "
        "delete the .index or the producer snapshots of this partition, which makes the broker replay the batch. "
        f"{RESTORE}"
    ),
    source="ProducerAppendInfo.appendDataBatch, appendEndTxnMarker",
    unless="warning for a marker with a lower epoch than the producer's",
    needs_log_dir=True,
)


class TransactionRule(Observer):
    """Reports transactions that a batch violates, and those that are open at the end of the log."""

    def __init__(self, transactions: TransactionWatcher, context: PartitionContext) -> None:
        self.transactions = transactions
        self.known = context

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop  # the watcher examines batches that write outside of a transaction; markers are passed one by one

    def batch(self, seen: BatchContext) -> Iterable[Finding]:
        if self.transactions.ended is not None:
            return list(self._marker(seen, self.transactions.ended))
        running, batch = self.transactions.open_before, seen.batch
        if running is None or batch.isTransactional or self.transactions.damages:
            return NONE
        message = (
            f"producer {batch.producerId} wrote a non-transactional batch while its transaction from offset "
            f"{running.first_offset} is open"
        )
        position, size, base = batch.position, batch.size, batch.baseOffset
        return [
            TRANSACTION_INVALID.finding(
                seen.part.target,
                message=message,
                position=position,
                size=size,
                offset=base,
                producer_id=batch.producerId,
            )
        ]

    def _marker(self, seen: BatchContext, ended: CompletedTxn) -> Iterator[Finding]:
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
                producer_id=ended.producer_id,
            )

    def end(self) -> Iterable[Finding]:
        if self.known.last is False:  # the markers are in later segments
            return
        for producer_id, running in self.transactions.state.open.items():
            yield self._left_open(producer_id, running)

    def _left_open(self, producer_id: int, running: OngoingTxn) -> Finding:
        context = self.known
        code, severity = TRANSACTION_OPEN, None
        records = "record" if running.records == 1 else "records"
        age = self.transactions.newest - running.timestamp if running.timestamp >= 0 else 0
        message = (
            f"transaction of producer {producer_id}, epoch {running.epoch}: {running.records} {records} from offset "
            f"{running.first_offset}, "
        )
        if running.seeded:
            message += "which is below the first one on this disk: the snapshot there shows that it was open"
        else:
            message += f"started at {utc(running.timestamp)}"
        if context.is_hanging(producer_id, running.epoch):
            code = TRANSACTION_HANGING
            message += "; it is not ongoing in the coordinator's log"
        if code is TRANSACTION_OPEN and age > context.transaction_timeout:
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
