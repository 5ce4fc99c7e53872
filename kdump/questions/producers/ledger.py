"""The producers of one partition, collected batch by batch, and the state of each that a broker would rebuild.

Source: ProducerStateManager (truncateAndReload, loadFromSnapshot, isProducerExpired, writeSnapshot),
ProducerStateEntry, UnifiedLog.rebuildProducerState."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kdump.answer import of_fact
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.rule import BatchContext, Observer
from kdump.check.rules.producers import break_text
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.format.producer_snapshot import PRODUCER_ENTRY
from kdump.io import file_system
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.questions.producers.answer import EXPIRED, LIVE, UNKNOWN, PartitionProducers, ProducerEvent
from kdump.questions.producers.answer import Producer as Row
from kdump.state.producer_state import DUPLICATE, EPOCH_DECREASED, EPOCH_START, GAP, ProducerStateEntry, SequenceBreak
from kdump.state.transaction_tracker import CompletedTxn, OngoingTxn


@dataclass(slots=True)
class ProducerHistory(ProducerStateEntry):
    """A producer with its history in the log. `last_seen`: offset of its last batch or marker; `seen_epoch`: its
    highest epoch so far, without the current batch until that has been counted; `file` and `position`: where its last
    batch or marker is, the file as its index in ProducerLedger.files."""

    NEAR: ClassVar[dict[str, str]] = ProducerStateEntry.NEAR | {
        "first_epoch": "epoch",
        "last_data": "last_offset",
        "last_seen": "last_data",
        "seen_epoch": "highest_epoch",
    }

    first_epoch: int = -1
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int = -1
    last_data: int = -1
    first_timestamp: int = -1
    commits: int = 0
    aborts: int = 0
    gaps: int = 0
    duplicates: int = 0
    fenced: int = 0
    epochStarts: int = 0
    last_seen: int = -1
    seen_epoch: int = -1
    file: int = 0
    position: int = 0

    @classmethod
    def first(cls, epoch: int) -> ProducerHistory:
        return cls(epoch, epoch, first_epoch=epoch)


NO_HISTORY = ProducerHistory.first(-1)


def as_entry(life: ProducerStateEntry) -> dict[str, int]:
    """Return the entry that a producer snapshot would have for it (ProducerStateManager.writeSnapshot)."""
    return {
        "epoch": life.epoch,
        "lastSequence": life.last_sequence,
        "lastOffset": life.last_offset,
        "offsetDelta": life.offset_delta,
        "timestamp": life.timestamp,
        "coordinatorEpoch": life.coordinator_epoch,
        "currentTxnFirstOffset": life.txn_first_offset,
    }


def replayed(life: ProducerHistory, entry: dict[str, int] | None) -> dict[str, int]:
    """Return the producer state of a broker that loads `entry` and replays the log after it: values from the log, or
    from `entry` where the log has none."""
    now = as_entry(life)
    if entry is None:
        return now
    if life.coordinator_epoch < 0:
        now["coordinatorEpoch"] = entry["coordinatorEpoch"]
    if life.last_offset < 0 and life.epoch == entry["epoch"]:
        now.update({name: entry[name] for name in ("lastSequence", "lastOffset", "offsetDelta")})
    return now


EVENTS = {GAP: "gap", DUPLICATE: "duplicate", EPOCH_DECREASED: "fenced", EPOCH_START: "epochStart"}
FORGOTTEN = "forgotten"
SORTED = 20_000
"""Maximum number of producers that are sorted by ID; if there are more, they come in the order of the snapshot, then of
the log."""
LOG, NOTHING = "log", "nothing"
IN_BROKER = (
    *("epoch", "lastSequence", "lastOffset", "offsetDelta", "timestamp", "coordinatorEpoch"),
    "currentTxnFirstOffset",
)
"""Fields of Producer that are those of the broker's state."""

NOT_IN_SNAPSHOT = "not in {name}, which the broker loads: it had expired, or its state was lost"
ONLY_SNAPSHOT = "it has no batches on this disk: it is only in {name}"
PART = "its current state in a broker depends on later segments, which were not selected"
BELOW_START = "its batches are below the log start offset {start}, where the replay begins without a valid .snapshot"
NO_STATE = "the broker was shut down cleanly, and there is no valid .snapshot: it starts without producer state"


class ProducerLedger(Observer):
    """Yields ProducerEvent if `with_events`, and at the end each Producer and PartitionProducers. `expiration` is
    producer.id.expiration.ms, `base` the snapshot that the broker loads first."""

    def __init__(self, scan: PartitionScan, expiration: int, base: Target | None, *, with_events: bool = False) -> None:
        self.scan = scan
        self.known = scan.known
        coordinator = self.known.coordinator
        self.names = coordinator.history.names if isinstance(coordinator, TransactionCoordinatorState) else {}
        self.now = scan.options.now
        self.expiration, self.base, self.with_events = expiration, base, with_events
        self.is_part = self.known.last is False
        start = scan.transactions.start
        self.starts_empty = not self.is_part and start is not None and start.starts_empty
        self.counts = {LIVE: 0, EXPIRED: 0, UNKNOWN: 0}
        self.broken = {"gaps": 0, "duplicates": 0, "fenced": 0, "epochStarts": 0}
        self.snapshotOnly = 0
        self.files: list[str] = []
        """Paths of the segments so far."""
        self._reported = bytearray()
        self.open: Mapping[int, OngoingTxn] = {}

    def batch(self, seen: BatchContext) -> Iterator[Any]:
        batch, producer_id = seen.batch, seen.batch.producerId
        if not seen.is_valid or producer_id is None or producer_id < 0:
            return
        life = self.scan.producers.state.get(producer_id)
        if not isinstance(life, ProducerHistory) or (batch.isControlBatch and seen.marker is None):
            return
        ended, broken = self.scan.transactions.ended, self.scan.producers.broken
        if self.with_events:
            yield from self._events(seen, life, ended, broken)
        life.last_seen, life.file, life.position = batch.lastOffset, self._file(seen.part.target.path), batch.position
        life.seen_epoch = life.highest_epoch
        self._count(life, batch, ended, broken)
        self.scan.producers.state.put(producer_id, life)

    def _file(self, path: str) -> int:
        """Return the index of a file in `files`: the last one, as segments come in order."""
        if not self.files or self.files[-1] != path:
            self.files.append(path)
        return len(self.files) - 1

    def _count(
        self, life: ProducerHistory, batch: Batch, ended: CompletedTxn | None, broken: SequenceBreak | None
    ) -> None:
        if ended is not None:
            life.commits += ended.marker.type == "COMMIT" and not ended.repeats
            life.aborts += ended.marker.type == "ABORT" and not ended.repeats
            return
        life.batches += 1
        life.records += batch.possible_records
        life.bytes += batch.size
        life.last_data = batch.lastOffset
        if life.first_offset < 0:
            life.first_offset, life.first_timestamp = batch.baseOffset or 0, life.batch_timestamp
        if broken is not None:
            life.gaps += broken.kind == GAP
            life.duplicates += broken.kind == DUPLICATE
            life.fenced += broken.kind == EPOCH_DECREASED
            life.epochStarts += broken.kind == EPOCH_START

    def _events(
        self, seen: BatchContext, life: ProducerHistory, ended: CompletedTxn | None, broken: SequenceBreak | None
    ) -> Iterator[ProducerEvent]:
        """Yield the events of a batch. The producer state in `life` already includes the batch, its counts do not."""
        batch = seen.batch
        epoch = batch.producerEpoch or 0
        if ended is not None:
            raised = f", the epoch before was {ended.newest}" if 0 <= ended.newest != epoch else ""
            data = " repeated by its coordinator" if ended.repeats else ""
            data = data if ended.transaction is None else f" from offset {ended.transaction.first_offset}"
            yield self._event(seen, ended.marker.type, (data or " without data here").strip() + raised)
            return
        if life.batches == 0:
            yield self._event(seen, "first", f"starts with sequence {batch.baseSequence}")
        elif broken is None and epoch > life.seen_epoch:
            yield self._event(seen, "epoch", f"follows epoch {life.seen_epoch}, with no marker in between")
        if broken is not None:
            event = FORGOTTEN if broken.idle > self.expiration else EVENTS[broken.kind]
            lost = "; there is damage between the two" if broken.damaged else ""
            yield self._event(seen, event, break_text(broken) + lost)

    def _event(self, seen: BatchContext, event: str, message: str) -> ProducerEvent:
        batch, partition = seen.batch, self.scan.partition
        producer_id = batch.producerId or 0
        return ProducerEvent(
            partition.source,
            self.known.topic,
            self.known.partition,
            offset=batch.lastOffset if batch.baseOffset is None else batch.baseOffset,
            timestamp=batch.maxTimestamp,
            transactionalId=self.names.get(producer_id),
            producerId=producer_id,
            producerEpoch=batch.producerEpoch or 0,
            event=event,
            baseSequence=-1 if batch.baseSequence is None else batch.baseSequence,
            lastSequence=-1 if batch.lastSequence is None else batch.lastSequence,
            message=message,
            file=seen.part.target.path,
            position=batch.position,
        )

    def end(self) -> Iterator[Any]:
        self.open = self.scan.open_transactions
        rows = self._rows()
        if len(self.scan.producers.state) <= SORTED and (self.base is None or _entries(self.base) <= SORTED):
            rows = iter(sorted(rows, key=lambda row: row.producerId))
        yield from rows
        yield self._partition()

    def _rows(self) -> Iterator[Row]:
        state = self.scan.producers.state
        self._reported = bytearray(len(state))
        if self.base is not None:
            for position, entry in self.scan.neighbor_files.snapshot(self.base) or ():
                life = state.get(entry["producerId"])
                yield self._row(
                    entry["producerId"], life if isinstance(life, ProducerHistory) else None, position, entry
                )
        for producer_id, life in state.items():
            if isinstance(life, ProducerHistory) and not self._reported[state.row_of(producer_id)]:
                yield self._row(producer_id, life, 0, None)

    def _row(self, producer_id: int, life: ProducerHistory | None, position: int, entry: dict[str, int] | None) -> Row:
        """Return the row of a producer: from its `life` in the log, its `entry` in the snapshot at byte `position`, or
        both."""
        base, partition, known = self.base, self.scan.partition, self.known
        state, now, remarks = self._in_broker(producer_id, life, entry)
        self.counts[state] += 1
        if life is not None:
            self._reported[self.scan.producers.state.row_of(producer_id)] = True
            for count in self.broken:
                self.broken[count] += getattr(life, count)
        has_data = life is not None and life.batches > 0
        has_place = life is not None and life.last_seen >= 0
        last = now.get("timestamp", life.timestamp if life is not None else -1)
        return of_fact(
            Row,
            life or NO_HISTORY,
            source=partition.source,
            topic=known.topic,
            partition=known.partition,
            transactionalId=self.names.get(producer_id),
            producerId=producer_id,
            firstEpoch=life.first_epoch if life else None,
            lastEpoch=life.highest_epoch if life else None,
            firstOffset=life.first_offset if has_data and life else None,
            lastDataOffset=life.last_data if has_data and life else None,
            firstTimestamp=_time(life.first_timestamp) if has_data and life else None,
            lastBatchTimestamp=_time(life.timestamp) if life else None,
            state=state,
            **{name: now.get(name) for name in IN_BROKER},
            stateFrom=self.stateFrom,
            inSnapshot=None if base is None else entry is not None,
            idle=self.now - last if last >= 0 else None,
            file=self.files[life.file] if life and has_place else base.path if base else partition.path,
            position=life.position if life and has_place else position,
            remarks=remarks,
        )

    def _in_broker(
        self, producer_id: int, life: ProducerHistory | None, entry: dict[str, int] | None
    ) -> tuple[str, dict[str, int], tuple[str, ...]]:
        """Return the state of a producer in a broker that starts, the entry that a snapshot would have for it, empty if
        it has none, and remarks."""
        base, now = self.base, None
        log_start = -1 if self.known.log_start is None else self.known.log_start
        since = log_start if base is None else base.name_offset or 0
        name = "" if base is None else base.path.rpartition("/")[2]
        remarks = [PART] if self.is_part else []
        if not self.is_part and life is not None and life.last_seen >= since and not self.starts_empty:
            now = replayed(life, entry)
        elif not self.is_part and entry is not None:
            now = entry
        elif base is not None and not self.is_part:
            remarks.append(NOT_IN_SNAPSHOT.format(name=name))
        elif self.starts_empty:
            remarks.append(NO_STATE)
        elif not self.is_part:
            remarks.append(BELOW_START.format(start=log_start))
        if life is None:
            remarks.append(ONLY_SNAPSHOT.format(name=name))
            self.snapshotOnly += 1
        if now is None:
            return UNKNOWN, {}, tuple(remarks)
        running = self.open.get(producer_id)
        now = now | {"currentTxnFirstOffset": -1 if running is None else running.first_offset}
        expired = now["currentTxnFirstOffset"] < 0 and self.now - now["timestamp"] >= self.expiration
        return EXPIRED if expired else LIVE, now, tuple(remarks)

    @property
    def stateFrom(self) -> str:
        return self.base.path if self.base is not None else NOTHING if self.starts_empty or self.is_part else LOG

    def _partition(self) -> PartitionProducers:
        scan = self.scan
        segments = scan.partition.segments
        first = segments[0].offset if segments else None
        return of_fact(
            PartitionProducers,
            self.known,
            scan.partition,
            self,
            logStartOffset=self.known.log_start_offset(first),
            logEndOffset=scan.log_end,
            producers=sum(self.counts.values()),
            **self.counts,
            **self.broken,
            stateOffset=None if self.base is None else self.base.name_offset,
            segments=len(segments),
            damages=0,
            forgotten=scan.producers.state.forgotten,
            kafkaVersion=self.known.release.release.number,
            producerIdExpirationMs=self.expiration,
        )


def _time(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None


def _entries(target: Target) -> int:
    """Estimate the number of entries of a snapshot from its size."""
    try:
        return file_system.getsize(target.path) // PRODUCER_ENTRY.size
    except OSError:
        return 0
