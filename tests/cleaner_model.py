"""Random logs of compacted topics, and a model of what Kafka's log cleaner makes of them.

Source: org.apache.kafka.storage.internals.log.Cleaner, MemoryRecords.filterTo."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tests import craft

RETENTION = 1000
"""delete.retention.ms of the topic."""
START = 1_700_000_000_000
TRANSACTIONAL, CONTROL, HORIZON = 0x10, 0x20, 0x40


class Stored(NamedTuple):
    """A record."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class StoredBatch:
    """A batch. `producer`: of a transactional one, its producer ID. `marker`: COMMIT or ABORT."""

    base: int
    last: int
    records: tuple[Stored, ...]
    producer: int = -1
    sequence: int = -1
    marker: str = ""
    horizon: int | None = None

    @property
    def data(self) -> bytes:
        """The batch as bytes."""
        attributes = TRANSACTIONAL * (self.producer >= 0) | CONTROL * bool(self.marker)
        attributes |= HORIZON * (self.horizon is not None)
        first = START if self.horizon is None else self.horizon
        records = [
            craft.record(record.offset - self.base, record.key, record.value, timestamp=START - first)
            for record in self.records
        ]
        return craft.batch(
            records,
            offset=self.base,
            lastOffsetDelta=self.last - self.base,
            attributes=attributes,
            baseTimestamp=first,
            maxTimestamp=START,
            producerId=self.producer,
            producerEpoch=0 if self.producer >= 0 else -1,
            baseSequence=self.sequence,
        )


class Round(NamedTuple):
    """One run of the cleaner: the dirty offsets first..end-1, and its time in epoch ms."""

    first: int
    end: int
    now: int


@dataclass
class Log:
    """Segments: the base offset of each, and its batches."""

    segments: list[tuple[int, list[StoredBatch]]] = field(default_factory=list)

    @property
    def batches(self) -> Iterator[StoredBatch]:
        for _, batches in self.segments:
            yield from batches

    @property
    def records(self) -> dict[int, Stored]:
        """The records by offset, without markers."""
        return {record.offset: record for batch in self.batches if not batch.marker for record in batch.records}

    def write(self, directory: Path) -> Path:
        """Write the segments to a partition directory."""
        for base, batches in self.segments:
            craft.write_file(directory / f"{base:020}.log", b"".join(batch.data for batch in batches))
        return directory

    def aborted(self) -> set[int]:
        """Return the offsets of the records of aborted transactions."""
        found: set[int] = set()
        pending: dict[int, list[int]] = {}
        for batch in self.batches:
            if batch.marker:
                offsets = pending.pop(batch.producer, [])
                found.update(offsets if batch.marker == "ABORT" else ())
            elif batch.producer >= 0:
                pending.setdefault(batch.producer, []).extend(record.offset for record in batch.records)
        return found

    def stable(self, end: int) -> int:
        """Return the last stable offset of the log up to `end`."""
        begun: dict[int, int] = {}
        for batch in self.batches:
            if batch.base >= end:
                break
            if batch.marker:
                begun.pop(batch.producer, None)
            elif batch.producer >= 0:
                begun.setdefault(batch.producer, batch.base)
        return min([end, *begun.values()])

    def up_to(self, batches: int) -> Log:
        """Return the log of a follower that has so many batches."""
        made, left = Log(), batches
        for base, stored in self.segments:
            if left > 0:
                made.segments.append((base, stored[:left]))
            left -= len(stored)
        return made

    def cleaned(self, rounds: Sequence[Round]) -> Log:
        """Return the log after some runs of the cleaner."""
        made, aborted = self, self.aborted()
        for each in rounds:
            made = Log(list(made._cleaned(each, aborted)))
        return made

    def _cleaned(self, once: Round, aborted: set[int]) -> Iterator[tuple[int, list[StoredBatch]]]:
        newest: dict[bytes, int] = {}
        latest = -1
        for batch in self.batches:
            if once.first <= batch.last and batch.base < once.end:
                latest = batch.last
                for record in batch.records if not batch.marker else ():
                    if record.key is not None and record.offset not in aborted:
                        newest[record.key] = record.offset
        with_data: set[int] = set()
        for base, batches in self.segments:
            if base > latest:
                yield base, batches
                continue
            kept = [self._filtered(batch, once, newest, latest, aborted, with_data) for batch in batches]
            yield base, [batch for batch in kept if batch is not None]

    @staticmethod
    def _filtered(
        batch: StoredBatch, once: Round, newest: dict[bytes, int], latest: int, aborted: set[int], with_data: set[int]
    ) -> StoredBatch | None:
        past = batch.horizon is not None and once.now >= batch.horizon
        can_discard = False
        if batch.marker:
            can_discard = batch.producer not in with_data
            with_data.discard(batch.producer)
            records = () if can_discard and past else batch.records
        else:
            if batch.producer >= 0:
                with_data.add(batch.producer)
            records = tuple(
                record
                for record in batch.records
                if record.offset not in aborted
                and (
                    record.offset > latest
                    or (
                        record.key is not None
                        and record.offset >= newest.get(record.key, -1)
                        and (record.value is not None or not past)
                    )
                )
            )
        if not records and batch.last + 1 != once.end:
            return None
        horizon = batch.horizon
        if horizon is None and (can_discard or any(record.value is None for record in records)):
            horizon = once.now + RETENTION
        return replace(batch, records=records, horizon=horizon)


def random_log(dice: random.Random) -> Log:
    """Return a log of some segments: few keys, tombstones, records without a key, transactions that are committed,
    aborted or open."""
    made, offset = Log(), 0
    keys = [b"k%d" % number for number in range(dice.randint(1, 8))]
    sequences: dict[int, int] = {}
    open_: list[int] = []
    for _ in range(dice.randint(2, 6)):
        first, segment = offset, list[StoredBatch]()
        for _ in range(dice.randint(1, 6)):
            producer = dice.choice((-1, -1, 7, 8))
            if producer in open_ and dice.random() < 0.5:
                marker = dice.choice(("COMMIT", "ABORT"))
                key = struct.pack(">hh", 0, marker == "COMMIT")
                record = Stored(offset, key, struct.pack(">hi", 0, 0))
                segment.append(StoredBatch(offset, offset, (record,), producer, -1, marker))
                open_.remove(producer)
                offset += 1
                continue
            if producer >= 0 and producer not in open_:
                open_.append(producer)
            count = dice.randint(1, 4)
            records = tuple(
                Stored(
                    offset + number,
                    None if dice.random() < 0.02 else dice.choice(keys),
                    None if dice.random() < 0.25 else b"v%d" % (offset + number),
                )
                for number in range(count)
            )
            sequence = sequences.get(producer, 0) if producer >= 0 else -1
            sequences[producer] = sequence + count
            segment.append(StoredBatch(offset, offset + count - 1, records, producer, sequence))
            offset += count
        made.segments.append((first, segment))
    return made


def random_rounds(log: Log, dice: random.Random) -> list[Round]:
    """Return some runs of the cleaner, each of which goes on where the one before ended."""
    rounds: list[Round] = []
    first, now = 0, START
    for _ in range(dice.randint(0, 3)):
        stable = log.stable(dice.choice([base for base, _ in log.segments if base >= first] or [first]))
        end = max(base for base, _ in log.segments if base <= stable)  # no segment is cleaned in part
        if end <= first:
            continue
        now += dice.choice((1, 2 * RETENTION))
        rounds.append(Round(first, end, now))
        first = end
    return rounds
