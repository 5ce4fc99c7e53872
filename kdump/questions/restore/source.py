"""Reads the records of the partitions to restore, in order of offsets, as a consumer receives them."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.check.options import Options
from kdump.check.rules.bytes import first_offset
from kdump.core.column_numbers import (
    FIRST_TIME,
    LARGEST_RECORD,
    LAST_TIME,
    NO_KEYS,
    NO_TIME,
    PLAIN_BYTES,
    PLAIN_RECORDS,
    SUMS,
    UNFRAMED_KEYS,
    UNFRAMED_VALUES,
)
from kdump.core.plain_records import Parts, add_records, records_of
from kdump.decode.record_cut import CutRequest, RecordCut
from kdump.kafka.small_files import topic_id
from kdump.log.batch_records import decode_columns
from kdump.log.batch_validity import is_valid
from kdump.log.legacy_records import read_wrapper
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, Batch, DefaultRecordBatch, LegacyRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.questions.find_partitions import PartitionInput, find_partitions
from kdump.questions.read_committed import ReadCommitted
from kdump.questions.restore.answer import RestoreError, RestorePartition

Headers = list[tuple[str, bytes | None]]
LEDGER = "kdump-restore"
"""The topic of the target that has the positions of earlier runs; as a source, it is one of Kafka's own."""
DIGEST_SIZE = 16
OVERHEAD = 100
"""Bytes that a batch with one record has besides key, value and headers, at most."""


class SourceRecord(NamedTuple):
    """A record. `timestamp`: None if it has none, so that the producer's time takes its place."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        size = len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:
            size += len(name) + len(value or b"")
        return size


@dataclass(frozen=True)
class RestoreQuery:
    """Which records are selected. `all`: also those that no read_committed consumer receives. `renamed`: names of
    topics in the target, by those in the source. `limits`: by topic of the target, the size in bytes above which a
    record is skipped."""

    cut: CutRequest | None = None
    all: bool = False
    renamed: dict[str, str] = field(default_factory=dict)
    repartition: bool = False
    limits: dict[str, int] = field(default_factory=dict)


def digest(record: SourceRecord) -> int:
    """Return the hash of one record."""
    hashed = hashlib.blake2b(add_records((record,), _no_sums()), digest_size=DIGEST_SIZE)
    return int.from_bytes(hashed.digest(), "big")


def _no_sums() -> array[int]:
    return array("q", bytes(8 * SUMS))


class RestoreSource:
    """A partition on a disk. `plan` has what `survey` finds."""

    def __init__(self, place: PartitionInput, topic: str, partition: int, query: RestoreQuery) -> None:
        self.place, self.query = place, query
        self.topic, self.partition = topic, partition
        self.topic_id = place.known.topic_id or topic_id(place.partition) or ""
        self.target_topic = query.renamed.get(topic, topic)
        self.target_partition = None if query.repartition else partition
        self.plan = self._new_plan()
        limits = place.options.limits
        self._gate = None if query.all else ReadCommitted(limits, lambda line: None, by_markers=True)

    def _new_plan(self) -> RestorePartition:
        path = self.place.partition.path
        return RestorePartition(self.topic, self.partition, path, self.target_topic, self.target_partition)

    def survey(self) -> None:
        """Read all records once, and fill `plan`."""
        restored, self.plan = self.plan.restored, self._new_plan()
        plan, hashed, sums = self.plan, hashlib.blake2b(digest_size=DIGEST_SIZE), _no_sums()
        plan.restored = restored
        for chunk in self.chunks():
            hashed.update(add_records(chunk, sums))
            plan.firstOffset = chunk[0][0] if plan.firstOffset is None else plan.firstOffset
            plan.lastOffset = chunk[-1][0]
        plan.records, plan.bytes, plan.untimed = sums[PLAIN_RECORDS], sums[PLAIN_BYTES], sums[NO_TIME]
        plan.largest = sums[LARGEST_RECORD] + OVERHEAD if plan.records else 0
        plan.oldest, plan.newest = sums[FIRST_TIME] or None, sums[LAST_TIME] or None
        plan.nullKeys, plan.unframedKeys, plan.unframedValues = (
            sums[NO_KEYS],
            sums[UNFRAMED_KEYS],
            sums[UNFRAMED_VALUES],
        )
        plan.hash = hashed.hexdigest()

    def records(self, first: int = 0) -> Iterator[SourceRecord]:
        """Yield the records of `chunks`, one by one."""
        for chunk in self.chunks(first):
            yield from map(SourceRecord._make, chunk)

    def chunks(self, first: int = 0) -> Iterator[list[Parts]]:
        """Yield the selected records from offset `first` on, several at a time; if that is 0, count in `plan` what is
        left out. Raises SourceError."""
        query, counts = self.query, Counter[str]()
        cut = RecordCut(query.cut or CutRequest())
        limit = query.limits.get(self.target_topic)
        lowest = first if query.all else max(first, self.place.known.log_start or 0)
        last, segments, gate = -1, self.place.partition.segments, self._gate
        for segment, following in zip(segments, [*segments[1:], None]):
            target = segment.log
            if target is None:
                continue
            window = self.place.options.open(target)
            with closing(window.source):
                if gate is not None:
                    gate.turn_to(target, window)
                if query.cut is None and following is not None and following.offset <= first:
                    continue  # all its records are below `first`
                found = regions(window, name_offset=target.name_offset, limits=self.place.options.limits)
                for reading in self._batches(found, counts):
                    batch = reading.batch
                    if isinstance(batch, LegacyRecordBatch):
                        read_wrapper(batch)
                    base = first_offset(batch)
                    if base <= last:
                        counts["damages"] += 1
                        continue
                    last = batch.lastOffset
                    if batch.isControlBatch:
                        continue
                    if gate is not None and not gate.sees(batch):
                        counts["hidden"] += batch.possible_records
                        continue
                    if last < first and query.cut is None:
                        continue
                    for chunk in _chunks_of(cut, target, reading, base):
                        if base < lowest:
                            chunk = [record for record in chunk if record[0] >= lowest]
                        if limit is not None:
                            small = [each for each in chunk if SourceRecord._make(each).size + OVERHEAD <= limit]
                            counts["skipped"] += len(chunk) - len(small)
                            chunk = small
                        if chunk:
                            yield chunk
        if first == 0:
            plan = self.plan
            plan.damages, plan.hidden, plan.skipped = counts["damages"], counts["hidden"], counts["skipped"]
            plan.excluded, plan.undecided, plan.late = dict(cut.excluded), cut.undecided, cut.late

    @staticmethod
    def _batches(found: Iterable[Region], counts: Counter[str]) -> Iterator[Reading[Batch]]:
        """Yield the valid batches to be read, and count what is damaged, of their records, too."""
        for region in found:
            if isinstance(region, Batch) and is_valid(region):
                yield (reading := Reading(region))
                counts["damages"] += bool(reading.problems or region.problems)
            elif region.kind != PADDING:
                counts["damages"] += 1


def _chunks_of(cut: RecordCut, target: Target, reading: Reading[Batch], base: int) -> Iterator[list[Parts]]:
    """Yield the records of a valid batch that are kept, several at a time. Raises RestoreError for a header that no
    client can produce."""
    batch = reading.batch
    try:
        if isinstance(batch, DefaultRecordBatch) and cut.keeps_all(target, reading, base, batch.lastOffset):
            header = batch.header
            appended = header.maxTimestamp if header.timestampType == "LogAppendTime" else None
            for columns, _ in decode_columns(reading):
                yield records_of(columns, header.baseOffset, header.baseTimestamp, appended)
            return
        for record in cut.kept(target, reading, base, batch.lastOffset):
            time = record.timestamp if record.timestamp is not None and record.timestamp > 0 else None
            headers = [(name.decode(), value) for name, value in record.headers]
            yield [(record.offset or 0, time, record.key, record.value, headers)]
    except UnicodeDecodeError:
        raise RestoreError(
            f"{target.path}, offsets {base}..{batch.lastOffset}: a header has a name that is not UTF-8, which no "
            'client can produce; leave its record out: --without "offset == N"'
        ) from None


def find_sources(
    paths: Iterable[str], options: Options, query: RestoreQuery, is_selected: Callable[[str], bool]
) -> list[RestoreSource]:
    """Return the partitions at the paths: not those of Kafka's own topics, unless `is_selected` is asked for them by
    name. Raises RestoreError if two are the same partition."""
    found: dict[tuple[str, int], RestoreSource] = {}
    inputs, _ = find_partitions(paths, options)
    for place in inputs:
        topic, partition = place.partition.topic or place.known.topic, place.partition.partition
        if topic is None or partition is None:
            raise RestoreError(
                f"{place.partition.path}: nothing names its topic; put it into a directory TOPIC-PARTITION"
            )
        if ((topic.startswith("__") or topic == LEDGER) and not place.was_named) or not is_selected(topic):
            continue
        earlier = found.get((topic, partition))
        if earlier is not None:
            raise RestoreError(
                f"{topic}-{partition} is in {earlier.place.partition.path} and in {place.partition.path}; pass one, or"
                " make one of both: kdump salvage ONE --replica OTHER --out NEW"
            )
        found[topic, partition] = RestoreSource(place, topic, partition, query)
    return [found[key] for key in sorted(found)]
