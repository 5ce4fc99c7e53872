"""Prints indexes and snapshots like kafka-dump-log, and finds the wrong entries of indexes.

Source: org.apache.kafka.tools.DumpLogSegments (dumpIndex, dumpTimeIndex, dumpTxnIndex, dumpProducerIdSnapshot),
OffsetIndex, TimeIndex and their sanityCheck, TransactionIndex, ProducerStateManager.readSnapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from kdump.format.batch_header import MAX_SEQUENCE
from kdump.format.checksum import checksum
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.layout import Layout
from kdump.format.numbers import int32
from kdump.format.producer_snapshot import CRC_START, PRODUCER_ENTRY, SNAPSHOT_HEADER
from kdump.io.run import PLAIN_RUN, Run
from kdump.io.window import Window
from kdump.kafka.errors import KafkaError
from kdump.kafka.file_log_input_stream import read_batches
from kdump.kafka.index_judge import ZEROS, Fault
from kdump.kafka.offset_index import read_index
from kdump.kafka.offset_index_judge import OffsetIndexJudge
from kdump.kafka.time_index_judge import TimeIndexJudge
from kdump.log.batch_validity import is_valid
from kdump.log.entries import entry_runs
from kdump.log.file_kinds import INDEX, FileKind
from kdump.log.paths import Target
from kdump.log.region import Batch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.walk import RegionObserver, walk
from kdump.questions.dump_log.java import optional_long
from kdump.state.releases import TXN_INDEX_VERSION

SNAPSHOT_VERSION = 1
"""The only version that Kafka's tool reads."""


class CorruptFile(Exception):
    """Raised if the file fails Kafka's sanity check, or if Kafka's tool cannot read it."""


class RejectedFile(CorruptFile):
    """Raised if Kafka rejects the file or the end of it, but its tool still exits with 0."""


def rows(window: Window, entry: Layout[Any], position: int = 0) -> Iterator[Any]:
    """Yield the entries from `position` on; a partial entry at the end is ignored."""
    while True:
        window.release(position)
        data = window.view(position, max(entry.size, window.size // entry.size * entry.size))
        whole = len(data) // entry.size * entry.size
        if not whole:
            return
        for values in entry.struct.iter_unpack(data[:whole]):
            yield entry.cls._make(values)
        position += whole


def index_lines(window: Window, base: int) -> Iterator[str]:
    """Yield the entries of an .index, up to the first repetition of the base offset: zeros, left by a crash."""
    for number, row in enumerate(rows(window, INDEX_ENTRY)):
        if not row.relativeOffset and number:
            return
        yield f"offset: {base + row.relativeOffset} position: {row.position}"


def time_index_lines(window: Window, base: int) -> Iterator[str]:
    """Like index_lines, for a .timeindex."""
    for row in _time_index_rows(window):
        yield f"timestamp: {row.timestamp} offset: {base + row.relativeOffset}"


def _time_index_rows(window: Window) -> Iterator[Any]:
    for number, row in enumerate(rows(window, TIME_INDEX_ENTRY)):
        if not row.relativeOffset and number:
            return
        yield row


def log_throws(path: str, base: int, window: Window, log: Window) -> bool:
    """Return True if Kafka's tool throws for a .timeindex, because it reads all batches of the segment at `path` from
    the position on at which the .index has an entry's offset."""
    size = log.source.size
    if size is None:
        return False
    index = read_index(path.removesuffix(".log") + ".index", base)
    starts = {index.lookup(base + row.relativeOffset)[1] for row in _time_index_rows(window)}
    if starts and not 0 <= min(starts) <= max(starts) <= size:
        return True
    read: set[int] = set()
    with suppress(KafkaError):
        for start in sorted(starts):
            for head in read_batches(log, start, size) if start not in read else ():
                if head.position in starts:
                    read.add(head.position)
        return False
    return True


def check_sanity(window: Window, entry: Layout[Any], base: int) -> None:
    """Check an index like a broker that loads it (sanityCheck). Raises CorruptFile."""
    size = _size(window)
    count = size // entry.size
    if count:
        first = entry.read(window.view(0, entry.size))
        last = entry.read(window.view((count - 1) * entry.size, entry.size))
        if entry is TIME_INDEX_ENTRY and last.timestamp < first.timestamp:
            raise CorruptFile(f"the last timestamp, {last.timestamp}, is less than the first, {first.timestamp}")
        if last.relativeOffset < 0:
            offset = base + last.relativeOffset
            raise CorruptFile(f"the last offset, {offset}, is less than the base offset, {base}")
    if size % entry.size:
        raise CorruptFile(f"{size} bytes, which is not a multiple of {entry.size}")


def _size(window: Window) -> int:
    size = window.source.size
    position = 0
    while size is None:  # a stream
        position += window.size
        window.reaches(position)
        size = window.source.size
    return size


def txn_index_lines(window: Window, release: KafkaRelease = NEWEST) -> Iterator[str]:
    """Yield the entries of a .txnindex. Raises CorruptFile for an unknown version, and RejectedFile for a partial entry
    at the end."""
    end = 0
    for row in rows(window, TXN_INDEX_ENTRY):
        is_whole = TXN_INDEX_VERSION.applies(release)
        version = row.version if is_whole else row.version >> 8
        if version > 0 or (is_whole and version):
            raise CorruptFile(f"position {end}: the entry has version {row.version}, only 0 is supported")
        yield (
            f"version: {version} producerId: {row.producerId} firstOffset: {row.firstOffset}"
            f" lastOffset: {row.lastOffset} lastStableOffset: {row.lastStableOffset}"
        )
        end += TXN_INDEX_ENTRY.size
    left = len(window.view(end, TXN_INDEX_ENTRY.size))
    if left:
        raise RejectedFile(
            f"position {end}: {left} bytes left over, less than one entry ({TXN_INDEX_ENTRY.size} bytes)"
        )


def snapshot_lines(window: Window) -> Iterator[str]:
    """Yield the producers in a .snapshot, or none if its checksum does not match. Raises RejectedFile."""
    data = window.view(0, SNAPSHOT_HEADER.size)
    if len(data) < SNAPSHOT_HEADER.size:
        raise RejectedFile(f"Snapshot failed schema validation: {len(data)} bytes, fewer than a header")
    header = SNAPSHOT_HEADER.read(data)
    if header.version != SNAPSHOT_VERSION:
        raise RejectedFile(
            f"Snapshot failed schema validation: Snapshot contained an unknown file version {header.version}"
        )
    size = _size(window)
    computed = checksum(2, window.chunks(CRC_START, size - CRC_START))
    if computed != header.crc:
        raise RejectedFile(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {header.crc}. Computed crc: {computed}"
        )
    for number, row in enumerate(rows(window, PRODUCER_ENTRY, SNAPSHOT_HEADER.size)):
        if number == header.producerEntries:
            break
        yield _producer_line(row)


def _producer_line(row: Any) -> str:
    transaction = None if row.currentTxnFirstOffset < 0 else row.currentTxnFirstOffset
    line = (
        f"producerId: {row.producerId} producerEpoch: {row.epoch} coordinatorEpoch: {row.coordinatorEpoch}"
        f" currentTxnFirstOffset: {optional_long(transaction)} lastTimestamp: {row.timestamp}"
    )
    if row.lastOffset < 0:
        return line
    first = row.lastSequence - row.offsetDelta  # DefaultRecordBatch.decrementSequence
    if row.lastSequence < row.offsetDelta:
        first = int32(MAX_SEQUENCE - (row.offsetDelta - row.lastSequence) + 1)
    return (
        f"{line} firstSequence: {int32(first)} lastSequence: {row.lastSequence} lastOffset: {row.lastOffset}"
        f" offsetDelta: {row.offsetDelta} timestamp: {row.timestamp}"
    )


MAX_MISMATCHES = 100_000
"""Maximum number of wrong entries reported per file; an index has up to 1.3 million entries."""


def wrong_entries(
    index: Target, kind: FileKind, window: Window, log: Target, log_window: Window, run: Run = PLAIN_RUN
) -> Iterator[Fault]:
    """Yield the wrong entries of `index`, an index of `kind` INDEX or TIME_INDEX, in order and at most MAX_MISMATCHES.
    The segment at `log` is read once; calls `run.at` with each position reached in it. Raises SourceError."""
    comparison = _Comparison(index, kind, window, lambda position: run.at(position, log_window.source.size))
    yield from walk(partial(regions, log_window, name_offset=log.name_offset, limits=run.limits), [comparison])
    comparison.judge.finish(log_window.source.size)
    yield from comparison.wrong


class _Comparison(RegionObserver):
    """Lets the judge of an index see the batches, and answers the entries that it has found wrong."""

    depth = Depth.BATCHES

    def __init__(self, index: Target, kind: FileKind, window: Window, at: Callable[[int], object]) -> None:
        self.wrong: list[Fault] = []
        self.at = at
        self._count = 0
        judge_type = OffsetIndexJudge if kind is INDEX else TimeIndexJudge
        self.judge = judge_type(entry_runs(kind, window, index.name_offset or 0), self._note)

    def _note(self, fault: Fault) -> None:
        self._count += 1
        if self._count <= MAX_MISMATCHES and fault.what != ZEROS:
            self.wrong.append(fault)

    def region(self, region: Region) -> list[Fault]:
        self.at(region.position)
        if not isinstance(region, Batch):
            self.judge.gap(region.end)
        elif not is_valid(region):
            self.judge.invalid_batch(region)
        else:
            self.judge.batch(region)
        wrong, self.wrong = self.wrong, []
        return wrong
