"""Finds what the next cleaning of a log would remove, by its keys: records that a later one replaces, records without a
key, tombstones whose delete horizon has passed, and data of aborted transactions.

Source: org.apache.kafka.storage.internals.log.Cleaner (buildOffsetMap, shouldRetainRecord, checkBatchRetention),
CleanedTransactionMetadata and SkimpyOffsetMap of 4.3.1. A cleaning stops where its map is full; another one continues
there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kdump.check.options import Options
from kdump.core.record_columns import each_row
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.run import Run
from kdump.log.batch_records import decode_columns, records
from kdump.log.batch_validity import impossible_count
from kdump.log.legacy_records import Skimmed, read_wrapper
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.skim import key_digest
from kdump.log.walk import PartitionReader
from kdump.questions.retention.compaction import segment_horizon
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.observed_segments import ObservedSegment
from kdump.state.id_numbers import IdNumbers
from kdump.state.releases import DELETE_HORIZON

MAX_ABORTED_TRANSACTIONS = 1_000_000
ENTRY = 24
"""Bytes that a key takes in the cleaner's map: its MD5 and an offset."""
AbortedOffsets = Mapping[int, Sequence[tuple[int, int]]]
"""By producer ID, the first and last offset of each aborted transaction, in order."""


class CleaningResult(NamedTuple):
    """Result of a cleaning, as in PartitionRetention. `end`: the offset up to which it cleans (exclusive)."""

    keys: int
    keysFit: bool
    cleanedRecords: int
    cleanedBytes: int
    droppedRecords: int
    droppedBytes: int
    end: int


class _Row(NamedTuple):
    """A record. `name` is a hash of its key; None for a null key."""

    offset: int
    name: int | None
    has_value: bool
    size: int


def capacity_of(settings: Settings) -> int:
    """Return the number of keys that the map of one cleaner thread can hold."""
    memory = min(settings["log.cleaner.dedupe.buffer.size"] // max(1, settings["log.cleaner.threads"]), 2**31 - 1)
    return int(memory // ENTRY * settings["log.cleaner.io.buffer.load.factor"])


def simulate_cleaning(
    segments: Sequence[ObservedSegment],
    first_dirty: int,
    stop: int,
    settings: Settings,
    aborted: AbortedOffsets,
    options: Options,
    now: int,
    release: KafkaRelease = NEWEST,
) -> CleaningResult:
    """Return what a cleaning from offset `first_dirty` up to offset `stop` (exclusive) would remove. Raises
    SourceError."""
    newest, latest, is_full = _offset_map(segments, first_dirty, stop, capacity_of(settings), aborted, options)
    horizon_of_segments = segment_horizon(segments, first_dirty, settings)
    has_horizons = DELETE_HORIZON.applies(release)
    seen = seen_size = dropped = size = 0
    with_data: set[int] = set()
    """Producers with data after their last marker: the cleaner keeps the marker of a transaction that has data left."""
    for segment in segments:
        if segment.baseOffset > latest:
            break
        for batch in _batches(segment, options):
            horizon = batch.deleteHorizonMs
            is_due = horizon is not None and horizon <= now
            if not has_horizons or isinstance(batch, LegacyRecordBatch):
                is_due = segment.modified <= horizon_of_segments
            producer = -1 if batch.producerId is None else batch.producerId
            if batch.isControlBatch:
                is_due = is_due and (has_horizons or producer not in with_data)
                with_data.discard(producer)
                count = batch.possible_records
                seen += count
                dropped += count if is_due else 0
                continue
            if batch.isTransactional:
                with_data.add(producer)
            all_go = _is_aborted(batch, aborted)
            for row in _rows(batch):
                seen += 1
                seen_size += row.size
                if all_go or (row.offset <= latest and _goes(row, newest, is_due)):
                    dropped += 1
                    size += row.size
    return CleaningResult(len(newest), not is_full, seen, seen_size, dropped, size, latest + 1)


def _offset_map(
    segments: Sequence[ObservedSegment],
    first_dirty: int,
    stop: int,
    capacity: int,
    aborted: AbortedOffsets,
    options: Options,
) -> tuple[IdNumbers, int, bool]:
    """Return the newest offset of each key in the dirty part, the last offset that the map covers, and whether it is
    full before `stop`. Source: Cleaner.buildOffsetMap."""
    newest = IdNumbers("q")
    reached = first_dirty - 1
    bases = [segment.baseOffset for segment in segments]
    for segment, upper in zip(segments, [*bases[1:], stop]):
        if segment.baseOffset >= stop or upper <= first_dirty:
            continue
        for batch in _batches(segment, options):
            for row in () if batch.isControlBatch or _is_aborted(batch, aborted) else _rows(batch):
                if row.name is None or row.offset < first_dirty:
                    continue
                # As in Kafka's Cleaner, a full map accepts no key, not even a known one.
                if len(newest) >= capacity:
                    return newest, reached, True
                newest.put(row.name, row.offset)
            reached = batch.lastOffset
        reached = upper - 1
    return newest, stop - 1, False


def _goes(row: _Row, newest: IdNumbers, is_due: bool) -> bool:
    if row.name is None or row.offset < newest.get(row.name):
        return True
    return is_due and not row.has_value


def _name(key: bytes, digest: bytes) -> int:
    """Return a key's first eight digest bytes, as its hash; `digest` is given if the key is truncated."""
    return int.from_bytes((digest or key_digest(key))[:8], "big", signed=True)


def _is_aborted(batch: Batch, aborted: AbortedOffsets) -> bool:
    if not batch.isTransactional or batch.isControlBatch or batch.producerId is None:
        return False
    ranges = aborted.get(batch.producerId, ())
    number = bisect_right(ranges, (batch.baseOffset or 0, 2**63)) - 1
    return number >= 0 and (batch.baseOffset or 0) <= ranges[number][1]


def _batches(segment: ObservedSegment, options: Options) -> Iterator[Batch]:
    for region in PartitionReader(options.open, Run(options.limits)).segment(segment.target):
        # The cleaner does not verify checksums.
        if isinstance(region, Batch) and not region.problems and impossible_count(region) is None:
            yield region


def _rows(batch: Batch) -> Iterator[_Row]:
    if isinstance(batch, DefaultRecordBatch):
        base = batch.header.baseOffset
        for columns, _ in decode_columns(batch, values=False):
            data = columns.data
            for start, end, _, _, delta, key_start, key_size, _, value_size, _, _ in each_row(columns):
                name = None
                if key_size >= 0:
                    name = _name(bytes(data[key_start : key_start + key_size]), columns.digest)
                yield _Row(base + delta, name, value_size >= 0, end - start)
        return
    if isinstance(batch, LegacyRecordBatch):
        read_wrapper(batch)
    for record in records(batch, values=False):
        if record.offset is not None:
            digest = record.data.digest if isinstance(record.data, Skimmed) else b""
            name = None if record.key is None else _name(record.key, digest)
            yield _Row(record.offset, name, record.valueSize >= 0, record.end - record.start)
