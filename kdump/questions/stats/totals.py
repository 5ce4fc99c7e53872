"""Statistics of a partition: batches and how full they are, compression, sizes of keys and values, timestamps, and the
most frequent keys and producers; in bounded memory, whatever the size of the log."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from kdump.answer import INLINE, Doc
from kdump.check.totals import LogCounts
from kdump.core.column_numbers import (
    EXTREME_ROW,
    EXTREMES,
    KEY_BYTES,
    LATE_RECORDS,
    LATEST,
    LONGEST_KEY,
    LONGEST_VALUE,
    NEWEST,
    NULL_KEYS,
    NULL_VALUES,
    OLDEST,
    RECORD_BYTES,
    RECORDS,
    UNTIMED,
    VALUE_BYTES,
)
from kdump.core.record_counts import new_counts
from kdump.format.errors import DecodeError
from kdump.io.untrusted_json import LONG_MAX, LONG_MIN, integer, natural, text
from kdump.log.histograms import MAX_BUCKETS, SIZES, Histogram, class_of
from kdump.log.paths import FilePosition
from kdump.questions.stats.frequent_items import SpaceSaving

__all__ = ["Stats"]

STRUCT = "RecordSums"
COUNTS = ("sums", "keySizes", "valueSizes", "late")
"""Fields of Stats that are arrays of numbers."""


def sums_row(stats: Stats, before: int) -> dict[str, Any]:
    """Return what the records of a segment add to statistics, as an object of JSON's types. `before`: the largest
    timestamp of the records before them, from which their lateness was counted."""
    return {
        "before": before,
        **{name: list(getattr(stats, name)) for name in COUNTS},
        "extremes": [
            [which, location.offset, location.place.position, location.place.size]
            for which, location in stats.extremes.items()
        ],
        "times": [stats.moments.step, [[bucket, *counts] for bucket, counts in stats.moments.counts.items()]],
        "unpackedBytes": {name: codec.unpackedBytes for name, codec in stats.codecs.items()},
        "timestampTypes": stats.timestampTypes,
    }


def newest_before(row: Any) -> int:
    """Return the `before` of sums_row. Raises DecodeError."""
    try:
        return integer(row["before"], LONG_MIN, LONG_MAX)
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(STRUCT, "before", 0, str(error)) from error


def newest(row: Any) -> int:
    """Return the largest timestamp of the records up to the end of the segment. Raises DecodeError."""
    return sums_of(row, "").sums[NEWEST]


def sums_of(row: Any, path: str) -> Stats:
    """Return statistics with nothing but what sums_row has; the records are in the file `path`. Raises DecodeError."""
    stats = Stats(path, partitions=0)
    try:
        for name in COUNTS:
            numbers = array("q", (integer(number, LONG_MIN, LONG_MAX) for number in row[name]))
            if len(numbers) != len(getattr(stats, name)):
                raise ValueError(f"{len(numbers)} numbers in {name}")
            setattr(stats, name, numbers)
        for which, offset, position, size in row["extremes"]:
            if which not in EXTREMES:
                raise ValueError(f"an extreme of kind {which}")
            place = FilePosition(path, natural(position), natural(size))
            stats.extremes[which] = RecordLocation(integer(offset, LONG_MIN, LONG_MAX), place)
        for which in EXTREMES:
            stats.sums[which + EXTREME_ROW] = 0
        _read_times(stats, *row["times"])
        stats.codecs = {text(name): Codec(unpackedBytes=natural(size)) for name, size in row["unpackedBytes"].items()}
        stats.timestampTypes = Counter({text(name): natural(count) for name, count in row["timestampTypes"].items()})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecodeError(STRUCT, "", 0, f"{type(error).__name__}: {error}") from error
    return stats


def _read_times(stats: Stats, step: Any, buckets: Any) -> None:
    moments = stats.moments
    if len(buckets) > MAX_BUCKETS:
        raise ValueError(f"{len(buckets)} buckets of time")
    for _ in range(integer(step, 0, 20)):
        moments.widen()
    moments.counts = {integer(bucket, LONG_MIN, LONG_MAX): [natural(count)] for bucket, count in buckets}


MAX_DAMAGE_ENTRIES = 100
"""Maximum number of damaged byte ranges, and of notes, that are kept; more damage is only counted."""


class TopicKey(NamedTuple):
    """A key with its topic, for counting the keys of several topics together."""

    topic: str | None
    key: Hashable


class RecordLocation(NamedTuple):
    """A record that is the extreme of something, and the place of its batch."""

    offset: int
    place: FilePosition


class SkippedBytes(NamedTuple):
    """Bytes that the statistics leave out, and the reason."""

    place: Annotated[FilePosition, INLINE]
    reason: Annotated[str, Doc()]


@dataclass
class Codec:
    """Batches with one compression: the bytes of their records as stored and uncompressed."""

    batches: int = 0
    records: int = 0
    storedBytes: int = 0
    unpackedBytes: int = 0

    @property
    def ratio(self) -> float | None:
        """Uncompressed bytes per stored byte; None if there are none."""
        return self.unpackedBytes / self.storedBytes if self.storedBytes and self.unpackedBytes else None


def _classes() -> array[int]:
    return array("q", bytes(8 * SIZES))


@dataclass
class Stats(LogCounts):
    """Statistics of one partition, or of several together (then `topic` is None and `partitions` their number). `sums`,
    `keySizes` and `valueSizes` cover data records, of which there are sums[RECORDS]; control records are counted
    separately. A damaged byte range counts only in `damaged`, `damagedBytes`, `bytes` (the size of the files) and, if
    it is a batch, in `batches`."""

    source: str
    topic: str | None = None
    partition: int | None = None
    partitions: int = field(default=1, kw_only=True)
    soundBatches: int = 0
    batchBytes: int = 0
    """Bytes of valid batches, headers included."""
    controlRecords: int = 0
    undecoded: int = 0
    """Records that the headers of valid batches count but that could not be decoded."""
    emptyBatches: int = 0
    controlBatches: int = 0
    transactionalBatches: int = 0
    transactionalRecords: int = 0
    idempotentBatches: int = 0
    firstOffset: int | None = None
    lastOffset: int | None = None
    codecs: dict[str, Codec] = field(default_factory=dict)
    formats: Counter[int] = field(default_factory=Counter)
    """Number of batches by magic."""
    timestampTypes: Counter[str] = field(default_factory=Counter)
    """Number of data records by timestamp type."""
    sums: array[int] = field(default_factory=new_counts)
    extremes: dict[int, RecordLocation] = field(default_factory=dict)
    batchRecords: array[int] = field(default_factory=_classes)
    batchSizes: array[int] = field(default_factory=_classes)
    largestBatch: RecordLocation | None = None
    fullestBatch: tuple[int, RecordLocation] | None = None
    keySizes: array[int] = field(default_factory=_classes)
    valueSizes: array[int] = field(default_factory=_classes)
    late: array[int] = field(default_factory=lambda: array("q", bytes(8 * 8)))
    moments: Histogram = field(default_factory=Histogram)
    keys: SpaceSaving = field(default_factory=SpaceSaving)
    producers: SpaceSaving = field(default_factory=SpaceSaving)
    missed: list[SkippedBytes] = field(default_factory=list)
    damaged: int = 0
    damagedBytes: int = 0
    padding: int = 0
    unknown: int = 0
    """Number of segments of a bundle about whose records nothing is known, and `keyless`: of which only sums are."""
    keyless: int = 0
    readable: int | None = None
    """Data records that consumers receive, and `committed`: that read_committed ones do; None if not known."""
    committed: int | None = None
    start: int | None = None
    """Log start offset of a partition, if known."""
    in_order: bool = True
    """Whether the offsets of valid batches rise."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def dataRecords(self) -> int:
        return self.sums[RECORDS]

    @property
    def recordBytes(self) -> int:
        """Bytes of data records, uncompressed."""
        return self.sums[RECORD_BYTES]

    @property
    def nullKeys(self) -> int:
        return self.sums[NULL_KEYS]

    @property
    def keyBytes(self) -> int:
        return self.sums[KEY_BYTES]

    @property
    def tombstones(self) -> int:
        """Data records with a null value."""
        return self.sums[NULL_VALUES]

    @property
    def valueBytes(self) -> int:
        return self.sums[VALUE_BYTES]

    @property
    def untimed(self) -> int:
        """Data records without a timestamp, or with an impossible one."""
        return self.sums[UNTIMED]

    @property
    def lateRecords(self) -> int:
        """Data records with a timestamp before that of an earlier record in their partition."""
        return self.sums[LATE_RECORDS]

    @property
    def oldest(self) -> int | None:
        """Timestamp of the oldest data record, epoch ms; None if no record has a timestamp."""
        return self._extreme(OLDEST)

    @property
    def newest(self) -> int | None:
        return self._extreme(NEWEST)

    @property
    def latest(self) -> int | None:
        """Maximum lateness in ms: how much older a record's timestamp is than that of an earlier one; None if none is
        late."""
        return self._extreme(LATEST)

    @property
    def longestKey(self) -> int | None:
        return self._extreme(LONGEST_KEY)

    @property
    def longestValue(self) -> int | None:
        return self._extreme(LONGEST_VALUE)

    def _extreme(self, which: int) -> int | None:
        return None if self.sums[which] < 0 else self.sums[which]

    @property
    def seconds(self) -> float | None:
        """Seconds from the oldest record to the newest; None if no rate can be computed."""
        if self.oldest is None or self.newest is None or self.newest <= self.oldest:
            return None
        return (self.newest - self.oldest) / 1000

    @property
    def over_time(self) -> list[tuple[int, int]]:
        """The start (epoch ms) and the records of each bucket of time that is not empty, in order."""
        return [(start, records) for start, (records,) in self.moments]

    @property
    def peak(self) -> tuple[int, int] | None:
        """The start and the records of the fullest of these buckets; None if there is none."""
        return max(self.over_time, key=lambda each: each[1], default=None)

    @property
    def ratio(self) -> float | None:
        """Uncompressed bytes per stored byte of the compressed records; None if there are none."""
        packed = [codec for name, codec in self.codecs.items() if name != "none"]
        stored = sum(codec.storedBytes for codec in packed)
        unpacked = sum(codec.unpackedBytes for codec in packed)
        return unpacked / stored if stored and unpacked else None

    def batch(self, place: FilePosition, base: int, last: int, records: int | None) -> None:
        """Count a valid batch. `records`: None if its count is impossible."""
        self.soundBatches += 1
        self.batchBytes += place.size
        self.batchSizes[class_of(place.size)] += 1
        if records is not None:
            self.records += records
            self.batchRecords[class_of(records)] += 1
            self.emptyBatches += not records
        records = records or 0
        self.consider(base, place, records)
        self.extend(base, last, place)

    def consider(self, base: int, place: FilePosition, records: int) -> None:
        """Keep a valid batch if none before it is as large, or none as full."""
        if self.largestBatch is None or place.size > self.largestBatch.place.size:
            self.largestBatch = RecordLocation(base, place)
        if self.fullestBatch is None or records > self.fullestBatch[0]:
            self.fullestBatch = (records, RecordLocation(base, place))

    def extend(self, first: int, last: int, place: FilePosition) -> None:
        """Note that adjacent valid batches, the first at `place`, have these offsets."""
        if self.lastOffset is not None and first <= self.lastOffset and self.in_order:
            self.in_order = False
            self.note(
                f"{place.file}: the batch at byte {place.position} has base offset {first}, after offset"
                f" {self.lastOffset}: the first and last offset are as the headers have them (kdump verify)"
            )
        self.firstOffset = first if self.firstOffset is None else min(first, self.firstOffset)
        self.lastOffset = last if self.lastOffset is None else max(last, self.lastOffset)

    def miss(self, place: FilePosition, reason: str) -> None:
        """Record bytes that are left out."""
        self.damaged += 1
        self.damagedBytes += place.size
        if len(self.missed) < MAX_DAMAGE_ENTRIES:
            self.missed.append(SkippedBytes(place, reason))

    def note(self, text: str) -> None:
        """Add a note; only the first MAX_DAMAGE_ENTRIES are kept."""
        if len(self.notes) < MAX_DAMAGE_ENTRIES:
            self.notes.append(text)

    def add(self, other: Stats) -> None:
        """Add the statistics of another partition. Its keys are counted with its topic."""
        is_first = not self.partitions
        self._add_counts(other)
        for name in ("readable", "committed"):
            own, more = getattr(self, name), getattr(other, name)
            setattr(self, name, more if is_first else None if None in (own, more) else own + more)
        for name, codec in other.codecs.items():
            own = self.codecs.setdefault(name, Codec())
            own.batches += codec.batches
            own.records += codec.records
            own.storedBytes += codec.storedBytes
            own.unpackedBytes += codec.unpackedBytes
        self.formats.update(other.formats)
        self.timestampTypes.update(other.timestampTypes)
        for counts, more in (
            (self.batchRecords, other.batchRecords),
            (self.batchSizes, other.batchSizes),
            (self.keySizes, other.keySizes),
            (self.valueSizes, other.valueSizes),
            (self.late, other.late),
        ):
            for number, count in enumerate(more):
                counts[number] += count
        for number in range(min(EXTREMES)):
            self.sums[number] += other.sums[number]
        for extreme in EXTREMES:
            mine, theirs = self.sums[extreme], other.sums[extreme]
            if theirs >= 0 and (mine < 0 or (theirs < mine if extreme == OLDEST else theirs > mine)):
                self.sums[extreme], self.sums[extreme + EXTREME_ROW] = theirs, other.sums[extreme + EXTREME_ROW]
                if extreme in other.extremes:
                    self.extremes[extreme] = other.extremes[extreme]
        large, full = other.largestBatch, other.fullestBatch
        if large and (self.largestBatch is None or large.place.size > self.largestBatch.place.size):
            self.largestBatch = large
        if full and (self.fullestBatch is None or full[0] > self.fullestBatch[0]):
            self.fullestBatch = full
        self.moments.merge(other.moments)
        self.keys.merge(other.keys, lambda key: key if isinstance(key, TopicKey) else TopicKey(other.topic, key))
        self.producers.merge(other.producers)
        self.missed += other.missed[: MAX_DAMAGE_ENTRIES - len(self.missed)]
        self.unread += other.unread
        self.notes += other.notes[: MAX_DAMAGE_ENTRIES - len(self.notes)]


def codecs_of(stats: Stats) -> Iterator[tuple[str, Codec]]:
    """Return the codecs, the one with the most stored bytes first."""
    return iter(sorted(stats.codecs.items(), key=lambda item: (-item[1].storedBytes, item[0])))
