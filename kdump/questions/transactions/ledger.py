"""The transactions of one partition, collected batch by batch.

Source: ProducerAppendInfo, ProducerStateManager (firstUndecidedOffset), UnifiedLog.fetchLastStableOffsetMetadata.

Source: org.apache.kafka.coordinator.transaction.TransactionMetadata (prepareAbortOrCommit, prepareComplete).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.answer import Note, Unknown, of_fact, unknown_keys
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import ledger_rules
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.core.column_numbers import BATCH_START
from kdump.core.header_columns import HeaderColumns
from kdump.format.transaction_record import TransactionMetadata as CoordinatorRecord
from kdump.log.paths import Target
from kdump.problems.problem import title_of
from kdump.questions.abort_command import abort_command, abort_command_before_3
from kdump.questions.transactions.answer import (
    ABORTED,
    COMMITTED,
    HANGING,
    LOST,
    OPEN,
    Difference,
    PartitionTransactions,
    Transaction,
)
from kdump.state.releases import ABORTS_BY_OFFSET
from kdump.state.transaction_history import CoordinatorDecision, Life
from kdump.state.transaction_marker import ABORT, COMMIT
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn
from kdump.state.unknown_offsets import NOT_SELECTED, no_end

OUTCOME = {COMMIT: COMMITTED, ABORT: ABORTED}

LOST_BEGIN = "its first data is below the first offset on this disk; its start is known from {name}"
ONLY_SNAPSHOT = "the log shows no such transaction; {name}, which a broker loads, lists it as open"
REPAIRED = "its marker is damaged; with one flipped bit corrected, the checksum matches"
ENDED_BEFORE = "its marker cannot be read; {name} shows that it had ended"
NOT_IN_INDEX = "the .txnindex shows that it was not aborted"
NOT_LOADED = "it has no marker, and a broker that starts does not have it open: {why}"
NO_SNAPSHOT = "the shutdown was clean and there is no .snapshot, so it does not read the log"
NOT_IN_SNAPSHOT = "{name}, which it loads, does not list it"
NOT_READ = "it does not read the log below offset {offset}"
UNCHECKED = "it reads the damaged log without checking it"
NO_DATA_BELOW = "it has no data on this disk: its data may be below offset {first}, the first one here"
NO_DATA_COMPACTED = "it has no data left: the log is compacted"
NO_DATA = "it has no data in this partition: its producer added the partition, but wrote nothing to it"
NO_DATA_DAMAGED = "it has no valid data left: there is damage before its marker"
ONLY_INDEX = "its marker cannot be read; according to the .txnindex it was aborted"
DAMAGE_WITHIN = "there is damage inside this transaction: it may be two transactions, or records may be missing"
EPOCHS = "its data has the epochs {first} to {last}, with no marker in between"
NO_ID = "no record in __transaction_state (all partitions are present) has this producer ID"
NOT_IN_IT = "but without this partition: it will write no marker here"
OVERDUE = "overdue: the broker that leads {log} aborts it once it runs"
MARKER_DUE = "its marker has not been written yet"
LATER = "its marker may be in a later segment, which was not selected"


def with_transactions(scan: PartitionScan) -> list[Observer]:
    """Return the observers of a scan whose answers are those of TransactionLedger."""
    return [*ledger_rules(scan), TransactionLedger(scan)]


class TransactionLedger(Observer):
    """Yields Transaction, Difference and Note, and at the end PartitionTransactions."""

    def __init__(self, scan: PartitionScan) -> None:
        self.scan = scan
        self.known = scan.known
        coordinator = scan.known.coordinator
        self.coordinator = coordinator if isinstance(coordinator, TransactionCoordinatorState) else None
        self.now = scan.options.now
        self.timeout = scan.options.transaction_timeout
        self.counts = {COMMITTED: 0, ABORTED: 0, OPEN: 0, HANGING: 0, LOST: 0}
        self.belowLogStart = 0
        scan.transactions.keeps = scan.entries_of_index.keeps = True
        self.emptyMarkers = self.repeatedMarkers = 0
        self.seededFrom = None if scan.seeded_from is None else scan.seeded_from.path
        self.differences = CoordinatorMismatches(scan, self.coordinator)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> Iterator[Any]:
        for row, ended in self.scan.transactions.ended_in_run:
            position, entry = (
                heads.of(row, BATCH_START) + heads.shift,
                self.scan.entries_of_index.entries_in_run.get(row),
            )
            if ended.repeats:
                self.repeatedMarkers += 1
            else:
                yield self._ended(part.target.path, position, ended, entry)

    def batch(self, seen: BatchContext) -> Iterator[Any]:
        yield from self._lost()
        ended, batch = self.scan.transactions.ended, seen.batch
        if ended is not None and ended.repeats:
            self.repeatedMarkers += 1
        elif ended is not None:
            row = self._ended(seen.part.target.path, batch.position, ended, self.scan.entries_of_index.entry)
            yield row if seen.is_valid else row._replace(remarks=(*row.remarks, REPAIRED))
        elif seen.is_valid and batch.isControlBatch and batch.isTransactional and not batch.recordCount:
            self.emptyMarkers += 1

    def _ended(self, path: str, position: int, ended: CompletedTxn, entry: dict[str, int] | None) -> Transaction:
        state = OUTCOME[ended.marker.type]
        self.counts[state] += 1
        in_index = entry is not None if state == ABORTED and self.scan.entries_of_index.is_valid else None
        begun = ended.transaction
        self.differences.add(ended, path, position)
        remarks = self._of_data(begun) if begun is not None else [self._without_data()]
        first = begun.first_offset if begun else entry["firstOffset"] if entry else None
        row = self._row(ended.producer_id, begun, state)
        return row._replace(
            firstOffset=first,
            ended=ended.marker.timestamp,
            age=None,
            idle=None,
            markerOffset=ended.offset,
            markerEpoch=ended.epoch,
            coordinatorEpoch=ended.marker.coordinatorEpoch,
            inTxnIndex=in_index,
            markerFile=path,
            markerPosition=position,
            file=row.file if begun else path,
            position=row.position if begun else position,
            remarks=tuple(remarks),
        )

    def _row(self, producer_id: int, begun: OngoingTxn | None, state: str) -> Transaction:
        target = self.scan.partition
        name = self.coordinator.history.names.get(producer_id) if self.coordinator else None
        first, last = (begun.timestamp, begun.last_timestamp) if begun else (-1, -1)
        producer = (target.source, self.known.topic, self.known.partition, name, producer_id)
        if begun is None:
            return Transaction(*producer, None, state, file=target.path)
        first, last = begun.timestamp, begun.last_timestamp
        return Transaction(
            *producer,
            begun.epoch,
            state,
            begun.first_offset,
            begun.last_offset if begun.last_offset >= 0 else None,
            begun.records,
            begun.batches,
            begun.bytes,
            first if first >= 0 else None,
            last if last >= 0 else None,
            age=self.now - first if first >= 0 else None,
            idle=self.now - last if last >= 0 else None,
            file=begun.target.path,
            position=begun.position,
        )

    def _of_data(self, begun: OngoingTxn) -> list[str]:
        remarks = []
        if begun.seeded:
            is_below = begun.first_offset < self.scan.partition.segments[0].offset
            remarks.append((LOST_BEGIN if is_below else ONLY_SNAPSHOT).format(name=_name(begun.target)))
        if begun.damages != self.scan.transactions.damages:
            remarks.append(DAMAGE_WITHIN)
        if begun.last_epoch != begun.epoch:
            remarks.append(EPOCHS.format(first=begun.epoch, last=begun.last_epoch))
        return remarks

    def _without_data(self) -> str:
        if self.scan.transactions.damages:
            return NO_DATA_DAMAGED
        if self.known.compacted:
            return NO_DATA_COMPACTED
        first = self.scan.partition.segments[0].offset
        return NO_DATA_BELOW.format(first=first) if first > 0 and self.seededFrom is None else NO_DATA

    def finish(self, part: SegmentContext) -> Iterator[Any]:
        yield from self._lost()
        self.scan.entries_of_index.unmatched.clear()  # a finding reports them

    def _lost(self) -> Iterator[Transaction]:
        """Yield the transactions whose markers are lost to damage."""
        if self.scan.transactions.without_marker:
            yield from self._ended_before()
        entries = self.scan.entries_of_index
        taken, entries.lost = entries.lost, []
        for target, position, entry, closed in taken:
            self.counts[ABORTED] += 1
            remarks = [ONLY_INDEX, *(self._of_data(closed) if closed is not None else ())]
            row = self._row(entry["producerId"], closed, ABORTED)
            yield row._replace(
                firstOffset=entry["firstOffset"],
                age=None,
                idle=None,
                markerOffset=entry["lastOffset"],
                inTxnIndex=True,
                remarks=tuple(remark for remark in remarks if remark != DAMAGE_WITHIN),
                file=target.path,
                position=position,
            )

    def _ended_before(self) -> Iterator[Transaction]:
        watcher = self.scan.transactions
        ended, watcher.without_marker = watcher.without_marker, []
        is_listed = self.scan.entries_of_index.lists_all
        for producer_id, running, target in ended:
            state = COMMITTED if is_listed else LOST
            self.counts[state] += 1
            remarks = [ENDED_BEFORE.format(name=_name(target)), *([NOT_IN_INDEX] if is_listed else [])]
            remarks += (remark for remark in self._of_data(running) if remark != DAMAGE_WITHIN)
            yield self._row(producer_id, running, state)._replace(age=None, idle=None, remarks=tuple(remarks))

    def _not_in_broker(self) -> Iterator[Transaction]:
        """Yield the transactions without a marker that a broker does not have, except those below the log start."""
        tracker, start = self.scan.transactions.state, self.scan.transactions.start
        if start is None:
            return
        for producer_id, running in tracker.open.items():
            if tracker.of_broker(producer_id) is running:
                continue
            if running.last_offset < start.log_start and running.first_offset < start.log_start:
                self.belowLogStart += 1
                continue
            self.counts[LOST] += 1
            newest = start.newest(self.scan.log_end)
            loaded = next((point for point in start.points if point.offset == self.scan.transactions.loaded_at), None)
            why = NOT_READ.format(offset=start.log_start)
            if start.starts_empty:
                why = NO_SNAPSHOT
            elif newest is not None and running.first_offset < (newest.name_offset or 0):
                why = NOT_IN_SNAPSHOT.format(name=_name(newest))
            elif loaded is not None and loaded.target is not None:
                why = UNCHECKED
            row = self._row(producer_id, running, LOST)
            yield row._replace(age=None, idle=None, remarks=(NOT_LOADED.format(why=why), *self._of_data(running)))

    def end(self) -> Iterator[Any]:
        yield from self._ended_before()
        yield from self._not_in_broker()
        tracker = self.scan.transactions.state
        for producer_id, running in tracker.in_broker.items():
            yield self._open(producer_id, running)
        yield from self.differences.found()
        if tracker.untracked:
            yield Note(
                self.scan.partition.path, f"more than {len(tracker.open)} open transactions: the others are left out"
            )
        yield self._partition()

    def _open(self, producer_id: int, running: OngoingTxn) -> Transaction:
        known, remarks = self.known, self._of_data(running)
        is_later = known.last is False
        hanging = None if is_later else known.is_hanging(producer_id, running)
        state = HANGING if hanging else OPEN
        self.counts[state] += 1
        outcome = known.outcome(producer_id, running) if hanging else None
        row = self._row(producer_id, running, state)._replace(outcome=outcome)
        is_old = (row.idle if row.idle is not None else row.age or 0) > self.timeout
        record = self.coordinator.of_producer(producer_id) if self.coordinator else None
        if record is not None:
            remarks.append(self._of_coordinator(record, hanging))
        elif hanging:
            remarks.append(NO_ID)
        if is_later:
            remarks.append(LATER)
        elif hanging is None and is_old:
            remarks.append(title_of("transaction-note", **({"TOPIC": known.topic} if known.topic else {})))
        if outcome is not None:
            remarks.append(title_of("transaction-note", outcome))
        is_for_person = (hanging or (hanging is None and is_old)) and not is_later and outcome != COMMIT
        if not is_for_person or known.topic is None or known.partition is None:
            return row._replace(remarks=tuple(remarks))
        producer = self.scan.producers.state.get(producer_id)
        coordinator_epoch = producer.coordinator_epoch if producer else -1
        topic, partition = known.topic, known.partition
        epoch = running.last_epoch if running.last_epoch >= 0 else running.epoch
        old = abort_command_before_3(topic, partition, producer_id, epoch, coordinator_epoch)
        is_old_broker = not ABORTS_BY_OFFSET.applies(known.release.release)
        return row._replace(
            remarks=tuple(remarks),
            abort=old if is_old_broker else abort_command(topic, partition, running.first_offset),
            abortBefore3=old if ABORTS_BY_OFFSET.is_open(known.release) else None,
        )

    def _of_coordinator(self, record: CoordinatorRecord, hanging: bool | None) -> str:
        state = f"its coordinator's state for {record.transactionalId}: {record.state}, epoch {record.producerEpoch}"
        if hanging:
            return f"{state}, {NOT_IN_IT}"
        start, timeout = record.transactionStartTimestampMs, record.transactionTimeoutMs
        if record.state == "Ongoing" and start >= 0 and timeout >= 0:
            late = self.now - start - timeout
            state += f", timeout {timeout // 1000} s"
            last = self.coordinator.history.last_records.get(record.transactionalId or "") if self.coordinator else None
            log = "its partition of __transaction_state" if last is None else last.name
            state += f"; {OVERDUE.format(log=log)}" if late > 0 else ""
        elif record.state.startswith("Prepare"):
            state += f"; {MARKER_DUE}"
        return state

    def _partition(self) -> PartitionTransactions:
        scan, known = self.scan, self.known
        segments = scan.partition.segments
        first = segments[0].offset if segments else None
        end = scan.log_end
        stable = None if known.last is False else scan.last_stable_offset
        no_log_end = no_end(len(segments), scan.start.unread)
        no_stable = no_log_end._replace(key="lastStableOffset")
        if known.last is False:
            no_stable = Unknown("lastStableOffset", NOT_SELECTED, "the newest segment is not selected", None)
        return of_fact(
            PartitionTransactions,
            known,
            scan.partition,
            self,
            logStartOffset=known.log_start_offset(first),
            logEndOffset=end,
            startLogEndOffset=None if known.last is False else end,
            highWatermark=known.high_watermark,
            lastStableOffset=stable,
            heldBy=scan.held_by,
            **self.counts,
            segments=len(segments),
            damages=scan.transactions.damages,
            unknown=unknown_keys(
                known.unstated("highWatermark"),
                no_log_end if end is None else None,
                no_stable if stable is None else None,
            ),
        )


def _name(target: Target) -> str:
    return target.path.rpartition("/")[2]


MAX_PRODUCER_EPOCHS = 1_000_000
"""Maximum number of producer epochs whose last marker is compared with the coordinator's decision."""


class _Marker(NamedTuple):
    """The last marker of a producer epoch: COMMIT or ABORT, its offset and its place."""

    type: str
    offset: int
    file: str
    position: int


class CoordinatorMismatches:
    """Collects the markers of a partition and returns those that differ from the coordinator's decision. There are none
    if the coordinator's log is missing or damaged, because its decisions are then unknown."""

    def __init__(self, scan: PartitionScan, coordinator: TransactionCoordinatorState | None) -> None:
        self.scan = scan
        self.known = scan.known
        self.history = coordinator.history if coordinator is not None and not coordinator.problems else None
        self.markers: dict[Life, _Marker] = {}

    def add(self, ended: CompletedTxn, file: str, position: int) -> None:
        """Add a marker at byte `position` of `file`."""
        if self.history is not None and ended.producer_id in self.history.names:
            life = (ended.producer_id, ended.epoch)
            if life in self.markers or len(self.markers) < MAX_PRODUCER_EPOCHS:
                self.markers[life] = _Marker(ended.marker.type, ended.offset, file, position)

    def found(self) -> Iterator[Difference]:
        """Yield the differences. The last marker of a producer epoch must match the coordinator's last decision for
        that epoch, once the coordinator has recorded the transaction as complete: before that, in transaction version
        1, the marker may belong to the previous transaction."""
        known, scan = self.known, self.scan
        if self.history is None or known.topic is None or known.partition is None or known.last is False:
            return
        segments = scan.partition.segments
        is_whole = bool(segments) and not (segments[0].offset or scan.transactions.damages or known.compacted)
        is_whole = is_whole and len(self.markers) < MAX_PRODUCER_EPOCHS
        for life, decision in self.history.decided.get((known.topic, known.partition), {}).items():
            if life not in self.history.done:
                continue
            marker = self.markers.get(life)
            if marker is not None and marker.type != decision.type:
                message = f"the marker is {marker.type}, but its coordinator decided {decision.type}"
                yield self._difference(life, decision, marker, message)
            elif marker is None and is_whole:
                message = f"no marker, though its coordinator recorded that every partition has its {decision.type}"
                yield self._difference(life, decision, None, message)

    def _difference(
        self, life: Life, decision: CoordinatorDecision, marker: _Marker | None, message: str
    ) -> Difference:
        target = self.scan.partition
        return Difference(
            target.source,
            self.known.topic,
            self.known.partition,
            decision.transactionalId,
            *life,
            offset=marker.offset if marker else None,
            file=marker.file if marker else target.path,
            position=marker.position if marker else 0,
            coordinator=decision.name,
            coordinatorOffset=decision.offset,
            message=message,
        )
