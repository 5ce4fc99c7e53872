"""Random partitions of every magic and codec, and random cuts of them, with what a naive reading says is left.

A record's value is a word of its own, so that a search of the decompressed output shows whether it was left out."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import lz4.frame
import snappy
import zstandard

from kdump.decode.record_cut import CutPoint, CutRequest
from kdump.format.batch_header import BATCH_HEADER
from kdump.log.expression.parser import parse
from tests import craft

BEGIN = 1_700_000_000_000
APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 8, 16, 32, 64
PRODUCERS = (-1, -1, 7, 8, 9)


class Row(NamedTuple):
    """A record as its consumers see it. `timestamp`: None in magic 0."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[craft.Header, ...] = ()
    is_control: bool = False


@dataclass
class Made:
    """A batch, its records, and the range of its offsets."""

    data: bytes
    first: int
    last: int
    rows: list[Row]


@dataclass
class Log:
    """A partition that a broker could have written. `open`: first offsets of the open transactions, by producer."""

    random: Random
    batches: list[Made] = field(default_factory=list)
    end: int = 0
    words: int = 0
    open: dict[int, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    rolls: list[int] = field(default_factory=lambda: [0])

    def fill(self) -> Log:
        magic = self.random.choice((0, 1, 2, 2, 2, 2))
        self.end = self.random.choice((0, 0, 5_000_000_000))
        self.rolls = [self.end]
        for _ in range(self.random.randint(1, 14)):
            magic = min(2, magic + (self.random.random() < 0.2))
            self.batches.append(self._legacy(magic) if magic < 2 else self._batch())
            self.end = self.batches[-1].last + 1
            if self.random.random() < 0.15:
                self.rolls.append(self.end)
        return self

    def _rows(self, count: int, *, times: bool = True, headers: bool = True) -> list[Row]:
        rows, offset = [], self.end
        for _ in range(count):
            self.words += 1
            value = f"word{self.words:06}.".encode() * self.random.choice((1, 3, 200))
            offset += 0 if not rows else 1 if self.random.random() < 0.8 else 3
            made = [(b"h", None), (b"word", value[:11])] if headers and self.random.random() < 0.3 else []
            timestamp = BEGIN + self.end * 10 % 100_000 + self.random.randint(-15, 15) if times else None
            key = self.random.choice((None, b"a", b"b", b"c", b"word%06d." % self.words))
            rows.append(Row(offset, timestamp, key, None if self.random.random() < 0.1 else value, tuple(made)))
        return rows

    def _legacy(self, magic: int) -> Made:
        codec = self.random.choice(("none", "gzip", "snappy", "lz4"))
        rows = self._rows(1 if codec == "none" else self.random.randint(1, 5), times=magic > 0, headers=False)
        first, last = rows[0].offset, rows[-1].offset
        if codec == "none":
            only = rows[0]
            data = craft.message(magic, only.value, offset=first, key=only.key, timestamp=only.timestamp or 0)
            return Made(data, first, last, rows)
        base = first if magic else 0
        inner = [
            craft.message(magic, row.value, offset=row.offset - base, key=row.key, timestamp=row.timestamp or 0)
            for row in rows
        ]
        attributes = APPEND_TIME if magic and self.random.random() < 0.2 else 0
        largest = max(row.timestamp or 0 for row in rows)
        if attributes:
            rows = [row._replace(timestamp=largest) for row in rows]
        data = craft.wrapper(magic, inner, codec, offset=last, timestamp=largest, attributes=attributes)
        return Made(data, first, last, rows)

    def _batch(self) -> Made:
        producer = self.random.choice(PRODUCERS)
        if producer in self.open and self.random.random() < 0.5:
            return self._marker(producer)
        rows = self._rows(self.random.randint(1, 6))
        last = rows[-1].offset + self.random.choice((0, 0, 0, 2))
        codec = self.random.choice(craft.CODECS)
        attributes = craft.CODECS.index(codec)
        fields: dict[str, int] = {"partitionLeaderEpoch": self.words // 10, "lastOffsetDelta": last - self.end}
        if producer >= 0:
            fields |= {"producerId": producer, "producerEpoch": 0}
            fields["baseSequence"] = self.sequences.get(producer, 0)
            self.sequences[producer] = fields["baseSequence"] + last - self.end + 1
            if producer > 7:
                attributes |= TRANSACTIONAL
                self.open.setdefault(producer, self.end)
        base = min(row.timestamp or 0 for row in rows) - 3
        if self.random.random() < 0.1:
            attributes |= HORIZON
            base = BEGIN + 9_999_999
        largest = max(row.timestamp or 0 for row in rows)
        records = [
            craft.record(row.offset - self.end, row.key, row.value, row.headers, (row.timestamp or 0) - base)
            for row in rows
        ]
        if self.random.random() < 0.15:
            attributes |= APPEND_TIME
            rows = [row._replace(timestamp=largest) for row in rows]
        fields |= {"attributes": attributes, "baseTimestamp": base, "maxTimestamp": largest}
        return Made(craft.batch(records, codec, offset=self.end, **fields), self.end, last, rows)

    def _marker(self, producer: int) -> Made:
        del self.open[producer]
        key, value = bytes((0, 0, 0, self.random.randint(0, 1))), bytes(6)
        time = BEGIN + 50_000_000  # of a coordinator, after all times of producers
        data = craft.batch(
            [craft.record(0, key, value)], offset=self.end, attributes=TRANSACTIONAL | CONTROL, producerId=producer,
            producerEpoch=0, baseTimestamp=time, maxTimestamp=time, partitionLeaderEpoch=self.words // 10,
        )  # fmt: skip
        return Made(data, self.end, self.end, [Row(self.end, time, key, value, is_control=True)])

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True)
        (directory / "partition.metadata").write_text("version: 0\ntopic_id: Ra3-wkJYTpWAUUFRjzXqJg\n")
        for number, roll in enumerate(self.rolls):
            stop = self.rolls[number + 1] if number + 1 < len(self.rolls) else self.end
            data = b"".join(made.data for made in self.batches if roll <= made.first < stop)
            (directory / f"{roll:020}.log").write_bytes(data)
        return directory


@dataclass
class Cut:
    """A cut, and what it means: `first` and `stop` are the first offset that is kept, and the first that is not."""

    request: CutRequest
    keys: frozenset[bytes | None]
    first: int
    stop: int

    def keeps(self, row: Row) -> bool:
        return self.first <= row.offset < self.stop and (row.is_control or row.key not in self.keys)

    def is_within(self, made: Made) -> bool:
        return made.last >= self.first and made.first < self.stop

    def left(self, log: Log) -> list[Row]:
        return [row for made in log.batches for row in made.rows if self.is_within(made) and self.keeps(row)]


def random_cut(log: Log, random: Random) -> Cut:
    rows = [row for made in log.batches for row in made.rows if not row.is_control]
    start, first = _random_point(rows, log, random, 0)
    after = [row for row in rows if row.offset >= first]
    end, stop = _random_point(after, log, random, 1)
    keys = frozenset(random.sample((None, b"a", b"b", b"c"), random.randint(0, 2)))
    exact = frozenset(key for key in keys if key is not None and random.random() < 0.5)
    texts = ["key == null" if key is None else f"key == '{key.decode()}'" for key in keys - exact]
    return Cut(CutRequest(start, end, tuple(map(parse, texts)), exact), keys, first, stop)


def _random_point(rows: list[Row], log: Log, random: Random, is_end: int) -> tuple[CutPoint | None, int]:
    kind = random.randint(0, 3)
    first = log.batches[0].first
    never = 1 << 62
    if kind == 0 or not rows:
        return None, never if is_end else 0
    if kind == 1:
        time = (random.choice(rows).timestamp or BEGIN) + random.randint(-1, 1)
        hits = [row.offset for row in rows if row.timestamp is not None and row.timestamp >= time]
        return CutPoint(time=time), hits[0] if hits else never
    offset = random.randint(first, log.end + 1)
    return CutPoint(offset=offset), offset + is_end


def payload(batch: bytes) -> bytes:
    """Return the bytes of the batch's records, decompressed by the codecs' own libraries."""
    if batch[16] < 2:
        codec, start = batch[17] & 7, 26 if batch[16] else 18
        data = batch[start + 8 :] if codec else batch[start:]
    else:
        header = BATCH_HEADER.read(batch)
        codec, data = header.codec, batch[craft.HEADER :]
    if not codec or not data:
        return data
    name = craft.CODECS[codec]
    if name == "gzip":
        return gzip.decompress(data)
    if name == "lz4":
        return bytes(lz4.frame.decompress(data))
    if name == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return _unframed(data)


def _unframed(data: bytes) -> bytes:
    made, position = b"", 16
    assert data[:8] == b"\x82SNAPPY\0"
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        made += snappy.decompress(data[position + 4 : position + 4 + size])
        position += 4 + size
    return made


def row_of(record: Any) -> Row:
    is_control = bool(record.batch.isControlBatch)
    return Row(record.offset, record.timestamp, record.key, record.value, tuple(record.headers), is_control)
