"""A broker's producer state, rebuilt from a partition's batches.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager, ProducerStateEntry and ProducerAppendInfo, as used
in a replay (AppendOrigin.REPLICATION), which rejects nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import ClassVar, Generic, NamedTuple, TypeVar

from kdump.core.id_rows import IdRows
from kdump.core.integer_rows import IntegerRows
from kdump.format.batch_header import sequence
from kdump.format.kafka_release import KafkaRelease
from kdump.format.known_releases import config_default
from kdump.log.region import Batch
from kdump.state.releases import PRODUCER_EXPIRATION

MAX_PRODUCERS = 1_000_000
"""Maximum number of producers kept; beyond that, the one that was idle for longest is removed."""
HALF = 1 << 30
WRAP = 1 << 31

EPOCH_DECREASED, EPOCH_START, GAP, DUPLICATE = "epoch-decreased", "epoch-start", "gap", "duplicate"
"""Ways in which a batch can fail to follow the previous batch of its producer."""


@dataclass(slots=True)
class ProducerStateEntry:
    """State of one producer ID; -1 for none. Timestamps are epoch ms; offsets and sequences are those of the last data
    batch in the current `epoch`, as in ProducerStateEntry."""

    NEAR: ClassVar[dict[str, str]] = {
        "highest_epoch": "epoch",
        "batch_epoch": "epoch",
        "timestamp": "batch_timestamp",
        "txn_first_offset": "last_offset",
    }
    """Fields with the earlier field whose values are close, for IntegerRows."""

    epoch: int
    highest_epoch: int = -1
    batch_epoch: int = -1
    """Epoch of the last data batch; a marker may raise `epoch` later."""
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    batch_timestamp: int = -1
    timestamp: int = -1
    """Timestamp of the last data batch or marker."""
    coordinator_epoch: int = -1
    txn_first_offset: int = -1
    damages: int = 0
    """Number of damaged regions found in the log up to the producer's last data batch."""

    @classmethod
    def first(cls, epoch: int) -> ProducerStateEntry:
        """Return the state of a producer that has just begun with this epoch."""
        return cls(epoch, epoch)


def default_expiration(release: KafkaRelease) -> int:
    """Return the ms after which a broker of this release removes an idle producer, unless it is configured."""
    name = "producer.id.expiration.ms" if PRODUCER_EXPIRATION.applies(release) else "transactional.id.expiration.ms"
    return int(config_default(name) or 0)


class SequenceBreak(NamedTuple):
    """A batch that does not follow the previous batch of the same producer.

    `kind` is EPOCH_DECREASED, EPOCH_START (a new epoch that does not start with sequence 0), GAP or DUPLICATE;
    `expected` and `actual` are epochs for EPOCH_DECREASED, else sequences; `epoch` is the batch's. `idle`: ms since
    the producer's last batch or marker; `damaged`: there is damage between the two batches."""

    kind: str
    epoch: int
    expected: int
    actual: int
    last_sequence: int
    last_offset: int
    idle: int
    damaged: bool


EntryT = TypeVar("EntryT", bound=ProducerStateEntry)


class ProducerState(Generic[EntryT]):
    """Producers by ID, as of the batches passed in so far, each in at most 100 bytes. `forgotten` counts those
    removed to limit memory; `kind` is the class of the entries."""

    def __init__(self, kind: type[EntryT] = ProducerStateEntry) -> None:  # type: ignore[assignment]
        self.kind = kind
        self.forgotten = 0
        self._rows = IdRows(by_age=True)
        names = [field.name for field in fields(kind)]
        self._of = attrgetter(*names)
        near = [names.index(kind.NEAR[name]) if name in kind.NEAR else -1 for name in names]
        self._first = self._of(kind.first(-1))
        """The values of a producer that has just begun, with the epoch that was last asked for."""
        self._entries = IntegerRows(self._first, near)

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, producer_id: int) -> int:
        """Return the number of a producer, less than the number of all; -1 if it is not known."""
        return self._rows.find(producer_id)

    def get(self, producer_id: int) -> EntryT | None:
        """Return a copy of the entry; `put` stores it."""
        row = self._rows.find(producer_id)
        return None if row < 0 else self._entry(row)

    def _entry(self, row: int) -> EntryT:
        return self.kind(*self._entries.get(row))

    def items(self) -> Iterator[tuple[int, EntryT]]:
        """Yield each producer ID with a copy of its entry, in the order in which they were last active."""
        for row in self._rows:
            yield self._rows.id_of(row), self._entry(row)

    def put(self, producer_id: int, entry: EntryT) -> None:
        """Store the entry, and make the producer the most recently active one."""
        self._entries.put(self._row(producer_id)[0], self._of(entry))

    def _row(self, producer_id: int) -> tuple[int, bool]:
        """Return the row of the producer, and whether it is new: then the caller must put its entry. Makes it the most
        recently active one."""
        rows, count = self._rows, len(self._rows)
        if count >= MAX_PRODUCERS and rows.find(producer_id) < 0:
            self.forgotten += 1
            return rows.replace_oldest(producer_id), True
        row = rows.add(producer_id)
        return row, row == count

    def _before(self, producer_id: int, epoch: int) -> tuple[int, Sequence[int]]:
        """Return the row of the producer, which the caller must put, and its values; those of a new one begin with that
        epoch."""
        row, is_new = self._row(producer_id)
        if not is_new:
            return row, self._entries.get(row)
        if self._first[0] != epoch:
            self._first = self._of(self.kind.first(epoch))
        return row, self._first

    def data(self, batch: Batch, damages: int = 0) -> None:
        """Apply a data batch of a producer (ProducerAppendInfo.appendDataBatch)."""
        assert batch.producerId is not None
        self.wrote(
            batch.producerId,
            batch.producerEpoch or 0,
            batch.lastSequence if batch.lastSequence is not None else -1,
            batch.lastOffset,
            batch.lastOffsetDelta or 0,
            -1 if batch.maxTimestamp is None else batch.maxTimestamp,
            batch.baseOffset or 0 if batch.isTransactional else None,
            damages,
        )

    def wrote(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
        transaction: int | None,
        damages: int,
    ) -> None:
        """Apply one or more data batches of a producer, given the values of the last one. `transaction` is the base
        offset of the first if they are transactional, else None."""
        row, before = self._before(producer_id, epoch)
        highest, first = before[1], before[9]
        data = (epoch, last_sequence, last_offset, offset_delta, timestamp, timestamp)
        transaction = transaction if transaction is not None and first < 0 else first
        self._entries.put(row, (epoch, max(highest, epoch), *data, before[8], transaction, damages, *before[11:]))

    def marker(self, producer_id: int, epoch: int, coordinator_epoch: int | None, timestamp: int) -> None:
        """Apply a transaction marker (ProducerAppendInfo.appendEndTxnMarker). Since transaction version 2 its epoch is
        one above that of the data; a different one resets sequences and offsets
        (ProducerStateEntry.maybeUpdateProducerEpoch)."""
        row, before = self._before(producer_id, epoch)
        data = before[2:6] if epoch == before[0] else (-1, -1, -1, 0)
        coordinator = before[8] if coordinator_epoch is None else coordinator_epoch
        self._entries.put(
            row, (epoch, max(before[1], epoch), *data, before[6], timestamp, coordinator, -1, *before[10:])
        )


def follows(before: ProducerStateEntry, batch: Batch, damages: int = 0) -> SequenceBreak | None:
    """Return how a data batch with a sequence breaks with the producer's state `before`; None if it follows correctly.
    The rules are those of ProducerAppendInfo.checkProducerEpoch and checkSequence."""
    epoch, base = batch.producerEpoch or 0, batch.baseSequence or 0
    idle = (batch.maxTimestamp or 0) - before.timestamp
    damaged = before.damages != damages

    def broken(kind: str, expected: int, actual: int) -> SequenceBreak:
        return SequenceBreak(kind, epoch, expected, actual, before.last_sequence, before.last_offset, idle, damaged)

    if epoch < before.highest_epoch:
        return broken(EPOCH_DECREASED, before.highest_epoch, epoch)
    if epoch > before.highest_epoch:
        return broken(EPOCH_START, 0, base) if base != 0 else None
    if before.last_sequence < 0 or before.batch_epoch != epoch:
        return None
    expected = sequence(before.last_sequence, 1)
    ahead = (base - expected) % WRAP
    if ahead == 0:
        return None
    return broken(GAP if ahead < HALF else DUPLICATE, expected, base)
