"""Family log, transactions: open transactions, and batches that violate the protocol.

Source: ProducerAppendInfo.appendDataBatch, appendEndTxnMarker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.check.finding import WARNING, Code, Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import NONE, BatchContext, Observer, SegmentContext
from kdump.check.rules.timestamps import utc
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.header_columns import HeaderColumns
from kdump.state.transaction_marker import is_commit
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn

TRANSACTION_OPEN = Code("transaction-open")
TRANSACTION_HANGING = Code("transaction-hanging")
TRANSACTION_INVALID = Code("transaction-invalid")


class TransactionRule(Observer):
    """Reports transactions that a batch violates, and those that are open at the end of the log."""

    def __init__(self, transactions: TransactionWatcher, context: PartitionContext) -> None:
        self.transactions, self.known = transactions, context

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
                case="fenced",
                producer_id=ended.producer_id,
            )

    def end(self) -> Iterable[Finding]:
        if self.known.last is False:  # the markers are in later segments
            return
        for producer_id, running in self.transactions.state.in_broker.items():
            yield self._left_open(producer_id, running)

    def _left_open(self, producer_id: int, running: OngoingTxn) -> Finding:
        context = self.known
        code, severity = TRANSACTION_OPEN, None
        facts: dict[str, bool | None] = {}
        records = "record" if running.records == 1 else "records"
        age = self.transactions.newest - running.timestamp if running.timestamp >= 0 else 0
        message = (
            f"transaction of producer {producer_id}, epoch {running.epoch}: {running.records} {records} from offset "
            f"{running.first_offset}, "
        )
        if running.seeded:
            name = running.target.path.rpartition("/")[2]
            message += f"known from {name}, which a broker loads"
        else:
            message += f"started at {utc(running.timestamp)}"
        if context.is_hanging(producer_id, running):
            code = TRANSACTION_HANGING
            message += "; it is not ongoing in the coordinator's log"
            facts["committed"] = is_commit(context.outcome(producer_id, running))
        if code is TRANSACTION_OPEN and age > context.transaction_timeout:
            severity, facts["overdue"] = WARNING, True
            message += f", {age // 1000} s before the newest batch"
        return code.finding(
            running.target,
            message=message,
            position=running.position,
            size=running.size,
            offset=running.first_offset,
            severity=severity,
            facts=facts,
        )
