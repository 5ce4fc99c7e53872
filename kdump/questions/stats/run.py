"""Computes the statistics of partitions: reads each once, batch by batch, records as columns."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

from kdump.check.log_dir_context import Surroundings
from kdump.check.options import Options
from kdump.check.rule import SegmentObserver
from kdump.cluster.directory_summary import LogDirectoryStates, single_partition_summary
from kdump.core.batch_counts import count_batches, decode_batches
from kdump.core.column_numbers import (
    BASE_OFFSET,
    BATCH_END,
    BATCH_START,
    EXTREME_ROW,
    EXTREMES,
    HEADERS_START,
    LAST_OFFSET,
    LATE_RECORDS,
    LATEST,
    NEWEST,
    OLDEST,
    PRODUCER_ID,
    RECORD_BYTES,
    RECORD_COUNT,
    RECORD_END,
    RECORD_WIDTH,
    RECORDS,
    TIMESTAMP_DELTA,
    UNTIMED,
)
from kdump.core.header_columns import HeaderColumns, are_adjacent
from kdump.core.record_columns import RecordColumns
from kdump.core.record_counts import LATE, count_records
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, CONTROL, TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.format.count_text import count_text, plain_count
from kdump.format.errors import RECORD_COUNT_MISMATCH, DecodeError
from kdump.format.numbers import int64
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.run import Run
from kdump.io.source import Source
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns, records
from kdump.log.batch_validity import invalidity, is_valid, undecoded_count_problem
from kdump.log.histograms import Histogram
from kdump.log.legacy_records import Skimmed, plain_messages
from kdump.log.partition_directory import PartitionDirectory, current
from kdump.log.paths import FilePosition, Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, TORN, Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region
from kdump.log.region_reader import regions
from kdump.log.walk import PartitionReader, observe
from kdump.log.withheld import withheld_segment
from kdump.query import OptionsQuery, internal_option, offered, partition_option, topic_option
from kdump.questions.find_copies import of_places, reject_others
from kdump.questions.ls.run import is_of_kind
from kdump.questions.read_committed import ReadCommitted, surroundings_of_gates
from kdump.questions.stats.totals import Codec, RecordLocation, Stats, newest_before, sums_of

__all__ = ["stats"]


class ReadableRecords(NamedTuple):
    """Numbers of records for any consumer, and for a read_committed one; None if not known."""

    any: int | None
    committed: int | None


UNKNOWN = ReadableRecords(None, None)


@dataclass(frozen=True)
class StatsQuery(OptionsQuery):
    """Which partitions of directories to count."""

    options: Run | None = None
    _: KW_ONLY
    topics: Iterable[str] = topic_option("Read only partitions of these topics")
    partitions: Iterable[int] = partition_option("Read only partitions")
    internal: bool | None = internal_option()
    is_selected: Callable[[PartitionDirectory], bool] = lambda partition: True

    def has_topic(self, topic: str) -> bool:
        return is_of_kind(topic, self.internal) and self.of_topic(topic)

    def wants(self, place: PartitionDirectory) -> bool:
        has_topic = self.is_selected(place) and self.has_topic(place.topic or place.name)
        return has_topic and self.of_partition(place.partition)


def answers(query: StatsQuery) -> Iterator[Stats]:
    """Yield the statistics of each partition in the paths: files, partition directories, log directories. `is_selected`
    selects among the partitions of directories; `run.unreadable` is called with the SourceError for a path that could
    not be read. What could not be read of a partition is in its `unread`. Raises SourceError."""
    options = Options.given(query.run)
    states: LogDirectoryStates = {}
    surroundings = surroundings_of_gates(options.limits)
    for made, segments, place in read_each(query, options):
        if place is not None:
            made.start = single_partition_summary(place, states).log_start
            made.readable, made.committed = readable_records(segments, made.start, made, options, surroundings)
        yield made


stats = offered("stats", StatsQuery, answers)


def read_each(
    query: StatsQuery, options: Options, moments: Callable[[], Histogram] = Histogram
) -> Iterator[tuple[Stats, list[Target], PartitionDirectory | None]]:
    """Yield the same statistics, without what consumers receive, with the segments and the partition directory, None
    for a single segment. `moments`: makes what counts records by time."""
    for place in of_places(query.paths, options):
        if isinstance(place, Target):
            try:
                reject_others(place, options)
            except SourceError as error:
                options.unreadable(error)
                continue
            alone = Stats(place.path, place.topic, place.partition, moments=moments())
            yield read([place], alone, options), [place], None
        elif query.wants(place):
            options.begin(place)
            place = current(place)
            if not place.segments and place.listing_errors:  # deleted during the run, or not readable
                for problem in place.listing_errors:
                    options.unreadable(SourceError(problem))
                continue
            segments = [segment.log for segment in place.segments if segment.log is not None]
            made = Stats(place.path, place.topic, place.partition, moments=moments())
            made.unread += place.listing_errors
            yield read(segments, made, options), segments, place


def read(segments: list[Target], into: Stats, options: Options) -> Stats:
    """Add the statistics of segments that form one log to `into`, and return it. Never raises SourceError: see
    `unread`."""
    observer = StatsReader(into, options)
    reader = PartitionReader(observer.open, Run(options.limits, observer.note_unread))
    for target in segments:
        observer.is_last = target is segments[-1]
        observe(partial(reader.segment, target), [observer], options)
        if reader.grown > 0:
            into.note(f"{target.path}: grew while being read; the new data is not counted")
    into.files += reader.files
    into.bytes += reader.size
    return into


ROWS = 8192
"""Maximum number of small batches, and of their records, that are counted together."""
SPECIAL = COMPRESSION.mask | TIMESTAMP_TYPE.mask | CONTROL.mask


class StatsReader(SegmentObserver):
    """Adds up the statistics of one partition. `is_last`: the current segment is the newest."""

    is_last = False

    def __init__(self, into: Stats, options: Options) -> None:
        self.stats, self.options = into, options
        self.path = ""
        self.hidden = False
        """Whether the records of the segment are withheld."""
        self.block = array("q", [0]) * (RECORD_WIDTH * ROWS)
        self.bases, self.ends = array("q", [0]) * ROWS, array("q", [0]) * ROWS

    def open(self, target: Target) -> Window:
        """Open a segment, and begin with it. Raises SourceError."""
        window = self.options.open(target)
        try:
            self.begin(target, window, self.is_last)
        except SourceError as error:
            self.note_unread(error)
        return window

    def begin(self, target: Target, window: Window, is_last: bool) -> None:
        """Take what a bundle knows about the records of a segment that are not in it. Raises SourceError for damage."""
        self.path, self.is_last = target.path, is_last
        withheld = withheld_segment(window.source)
        self.hidden = withheld is not None and withheld.hides_records
        if withheld is None or not self.hidden:
            return
        self.stats.unknown += 1  # unless there are sums
        row = withheld.sums()
        try:
            if row is None or newest_before(row) != self.stats.sums[NEWEST]:
                return
            sums = sums_of(row, target.path)
        except DecodeError as error:
            raise damaged_mount(target.path, error) from error
        self.stats.add(sums)
        self.stats.unknown -= 1
        self.stats.keyless += 1

    def finish(self, source: Source) -> None:
        self.stats.files += 1
        self.stats.bytes += source.size or 0

    def note_unread(self, error: SourceError) -> None:
        self.stats.unread.append(str(error))

    def region(self, region: Region) -> None:
        stats, path = self.stats, self.path
        if isinstance(region, BatchRun):
            self._batch_run(region)
        elif isinstance(region, Batch):
            self._batch(region)
        elif region.kind == PADDING or (region.kind == TORN and self.is_last):
            stats.padding += region.size
            stats.note(
                f"{path}: {plain_count(region.size, 'byte')}"
                f" at byte {region.position} belong to no batch: {region.kind}"
            )
        else:
            stats.miss(FilePosition(path, region.position, region.size), region.reason)

    def _batch_run(self, run: BatchRun) -> None:
        """Add a run of valid batches. Uncompressed data batches with CreateTime are counted many at a time, because
        they may be very small."""
        if self.hidden:
            for batch in run.batches():
                self.stats.batches += 1
                self._v2(batch)
            return
        heads, columns = run.headers, RecordColumns(run.buffer)
        columns.block = self.block
        row = 0
        while row < len(heads):
            stop = decode_batches(heads, row, columns, ROWS, SPECIAL, self.bases, self.ends)
            if stop > row:
                self._small(heads, row, stop, columns)
                row = stop
            else:
                self.stats.batches += 1
                self._v2(run.batch(heads.of(row, BATCH_START)))
                row += 1

    def _small(self, heads: HeaderColumns, first: int, stop: int, columns: RecordColumns) -> None:
        """Add the batches first..stop (`stop` excluded), whose records are in the columns."""
        stats = self.stats
        counts = count_batches(heads, first, stop, stats.batchRecords, stats.batchSizes)
        stats.batches += stop - first
        stats.soundBatches += stop - first
        stats.batchBytes += counts.bytes
        stats.records += counts.records
        stats.emptyBatches += counts.empty
        stats.transactionalBatches += counts.transactional
        stats.transactionalRecords += counts.transactional_records
        stats.idempotentBatches += counts.idempotent
        stats.formats[2] += stop - first
        stats.timestampTypes["CreateTime"] += counts.records
        payload = counts.bytes - (stop - first) * BATCH_HEADER.size
        self._codec("none", counts.records, payload, payload, stop - first)
        row = first
        while row < stop:
            base, place = self._place(heads, row)
            row = are_adjacent(heads, row, stop, base - 1)
            stats.extend(base, heads.of(row - 1, LAST_OFFSET), place)
        for row in sorted({counts.largest, counts.fullest}):
            stats.consider(*self._place(heads, row), heads.of(row, RECORD_COUNT))
        if counts.idempotent:
            self._producers(heads, first, stop)
        bases, ends = self.bases[: stop - first], self.ends[: stop - first]
        self._tally(columns, bases, ends, True, lambda number: self._place(heads, first + number))

    def _place(self, heads: HeaderColumns, row: int) -> tuple[int, FilePosition]:
        """Return the base offset of a batch and its place."""
        start = heads.of(row, BATCH_START)
        size = heads.of(row, BATCH_END) - start
        return heads.of(row, BASE_OFFSET), FilePosition(self.path, start + heads.shift, size)

    def _producers(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Count the producers of the batches; adjacent batches of one producer together."""
        ids, counts = heads.column(PRODUCER_ID), heads.column(RECORD_COUNT)
        starts, ends = heads.column(BATCH_START), heads.column(BATCH_END)
        row = first
        while row < stop:
            producer, begun = ids[row], row
            row += 1
            while row < stop and ids[row] == producer:
                row += 1
            if producer >= 0:
                self.stats.producers.add(producer, sum(counts[begun:row]), ends[row - 1] - starts[begun])

    def _header(
        self, place: FilePosition, base: int, last: int, count: int | None, attributes: int, producer: int
    ) -> None:
        """Add the header of a valid v2 batch."""
        stats = self.stats
        stats.batch(place, base, last, count)
        count = count or 0
        stats.formats[2] += 1
        if attributes & TRANSACTIONAL.mask:
            stats.transactionalBatches += 1
            stats.transactionalRecords += count
        if producer >= 0:
            stats.idempotentBatches += 1
            stats.producers.add(producer, count, place.size)

    def _batch(self, batch: Batch) -> None:
        """Add a batch that is not part of a batch run: it may be damaged, or of an old format."""
        self.stats.batches += 1
        place = FilePosition(self.path, batch.position, batch.size)
        damage = invalidity(batch)
        if damage is not None:
            self.stats.miss(place, damage.reason)
        elif isinstance(batch, LegacyRecordBatch):
            self._legacy(batch, place)
        elif isinstance(batch, DefaultRecordBatch):
            self._v2(batch)

    def _v2(self, batch: DefaultRecordBatch) -> None:
        stats, header, reading = self.stats, batch.header, Reading(batch)
        base, attributes, count = header.baseOffset, header.attributes, header.possible_records
        place = FilePosition(self.path, batch.position, batch.size)
        last = base + header.lastOffsetDelta
        if attributes & CONTROL.mask:
            self._header(place, base, last, count, attributes, header.producerId)
            stats.controlBatches += 1
            stats.controlRecords += count
            payload = batch.size - batch.headerSize
            is_counted = self.hidden or batch.compression != "none"  # in the sums of a bundle, or not known
            self._codec(batch.compression, count, payload, 0 if is_counted else payload)
            return
        if (problem := undecoded_count_problem(batch)) is not None:
            reading.note(problem)
            decoded = 0
            self._codec(header.compression, 0, batch.size - BATCH_HEADER.size, 0)
        elif self.hidden:
            decoded = self._known(reading, count)
            self._codec(header.compression, decoded, batch.size - batch.headerSize, 0)
        else:
            decoded = self._decoded(reading, place)
        has_all = any(problem.code == RECORD_COUNT_MISMATCH for problem in reading.problems)  # all that there are
        lost = 0 if has_all else max(0, count - decoded)
        records = decoded + lost if problem is None else None
        self._header(place, base, last, records, attributes, header.producerId)
        if decoded != header.recordCount:
            self._undecoded(reading, place, lost)

    def _known(self, reading: Reading[Any], count: int) -> int:
        """Return the number of records of a batch that decode, as far as the bundle without them knows; note the
        problems of decoding. `count`: that in the header."""
        verdict = reading.batch.known.records
        if verdict is None:
            return count
        reading.note(*verdict.problems)
        return count if verdict.records is None else verdict.records

    def _decoded(self, reading: Reading[DefaultRecordBatch], place: FilePosition) -> int:
        """Add the records of a batch; return their number."""
        stats, batch = self.stats, reading.batch
        header = batch.header
        base = header.baseOffset
        before = stats.sums[RECORDS], stats.sums[RECORD_BYTES]
        appended = bool(header.attributes & TIMESTAMP_TYPE.mask)
        for columns, _ in decode_columns(reading, values=False):
            self._columns(columns, header.baseTimestamp, not appended, base, place)
        decoded = stats.sums[RECORDS] - before[0]
        stats.timestampTypes["LogAppendTime" if appended else "CreateTime"] += decoded
        if appended:
            self._appended(header.maxTimestamp, decoded, base, place, stats.sums[RECORD_BYTES] - before[1])
        self._codec(header.compression, decoded, batch.size - batch.headerSize, stats.sums[RECORD_BYTES] - before[1])
        return decoded

    def _undecoded(self, reading: Reading[Any], place: FilePosition, count: int) -> None:
        self.stats.undecoded += count
        reason = reading.problems[0].reason if reading.problems else "its records do not decode"
        lost = f" has {count_text(count, 'record')} not counted" if count else ""
        self.stats.note(f"{place.file}: the batch at byte {place.position}{lost}: {reason}")

    def _codec(self, name: str, records: int, stored: int, unpacked: int, batches: int = 1) -> None:
        codec = self.stats.codecs.get(name)
        if codec is None:
            codec = self.stats.codecs[name] = Codec()
        codec.batches += batches
        codec.records += records
        codec.storedBytes += stored
        codec.unpackedBytes += unpacked

    def _columns(self, columns: RecordColumns, base: int, timed: bool, offset: int, place: FilePosition) -> None:
        """Add records of one batch."""
        self._tally(columns, array("q", (base,)), array("q", (len(columns),)), timed, lambda number: (offset, place))

    def _tally(
        self,
        columns: RecordColumns,
        bases: array[int],
        ends: array[int],
        timed: bool,
        batch: Callable[[int], tuple[int, FilePosition]],
    ) -> None:
        """Add records of several batches: see count_records. `batch` returns the base offset of a batch, by its number,
        and its place."""
        stats = self.stats
        sums = stats.sums
        before = sums[min(EXTREMES) : max(EXTREMES) + 1]
        sizes = stats.keySizes, stats.valueSizes
        count_records(columns, bases, ends, timed, sums, *sizes, stats.late, stats.moments, stats.keys)
        if before != sums[min(EXTREMES) : max(EXTREMES) + 1]:
            for extreme, old in zip(EXTREMES, before):
                if sums[extreme] != old:
                    row = sums[extreme + EXTREME_ROW]
                    offset, place = batch(bisect_right(ends, row))
                    stats.extremes[extreme] = RecordLocation(int64(offset + columns.offset_delta[row]), place)

    def _appended(self, timestamp: int, count: int, offset: int, place: FilePosition, size: int) -> None:
        """Add records that all have the time at which the broker appended them."""
        stats = self.stats
        sums = stats.sums
        if timestamp < 0 or not count:
            sums[UNTIMED] += count
            return
        stats.moments.add(timestamp, count, *((size,) if stats.moments.weighs else ()))
        if sums[OLDEST] < 0 or timestamp < sums[OLDEST]:
            sums[OLDEST] = timestamp
            stats.extremes[OLDEST] = RecordLocation(offset, place)
        if timestamp < sums[NEWEST]:
            self._late(sums[NEWEST] - timestamp, count, offset, place)
            return
        stats.late[0] += count
        if timestamp > sums[NEWEST]:
            sums[NEWEST] = timestamp
            stats.extremes[NEWEST] = RecordLocation(offset, place)

    def _late(self, milliseconds: int, count: int, offset: int, place: FilePosition) -> None:
        stats = self.stats
        stats.late[1 + sum(milliseconds > bound for bound in LATE)] += count
        stats.sums[LATE_RECORDS] += count
        if milliseconds > stats.sums[LATEST]:
            stats.sums[LATEST] = milliseconds
            stats.extremes[LATEST] = RecordLocation(offset, place)

    def _legacy(self, batch: LegacyRecordBatch, place: FilePosition) -> None:
        """Add a message of magic 0 or 1, or a wrapper of several."""
        stats = self.stats
        reading = Reading(batch)
        columns, before = plain_messages(reading), stats.sums[RECORD_BYTES]
        if self.hidden:
            decoded = self._known(reading, batch.recordCount or 0)
        elif columns is not None:
            decoded = len(columns)
            self._columns(_as_records(batch, columns), 0, True, batch.inner_base or 0, place)
            stats.timestampTypes[batch.timestampType] += decoded
        else:
            decoded = self._messages(reading, place)
        count = decoded if batch.recordCount is None else batch.recordCount
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        stats.batch(place, base, batch.lastOffset, count)
        stats.formats[batch.magic] += 1
        self._codec(batch.compression, decoded, batch.size, stats.sums[RECORD_BYTES] - before)
        if reading.problems:
            self._undecoded(reading, place, max(0, count - decoded))

    def _messages(self, reading: Reading[LegacyRecordBatch], place: FilePosition) -> int:
        """Add messages one by one, each as columns with one row. Returns their number."""
        decoded = 0
        for record in records(reading, values=False):
            decoded += 1
            columns = RecordColumns(bytes(record.data[record.start : record.end]))
            columns.digest = record.data.digest if isinstance(record.data, Skimmed) else b""
            start = record.start
            end = record.end - start
            stamp = -1 if record.timestamp is None else record.timestamp
            numbers = (0, end, 0, 0, 0, record.key_start - start, record.keySize, record.value_start - start)
            columns.block = array("q", (*numbers, record.valueSize, end, 0))
            columns.count = 1
            offset = reading.batch.lastOffset if record.offset is None else record.offset
            self._columns(columns, stamp, True, offset, place)
            self.stats.timestampTypes[record.timestampType] += 1
        return decoded


def _as_records(batch: LegacyRecordBatch, messages: RecordColumns) -> RecordColumns:
    """Return the messages of a wrapper, as core.message_set gives them, as records without headers, whose timestamp
    deltas are their timestamps (-1: none)."""
    columns = RecordColumns(messages.data)
    columns.block, columns.count = messages.block[:], messages.count
    block = memoryview(columns.block)
    block[HEADERS_START::RECORD_WIDTH] = block[RECORD_END::RECORD_WIDTH]
    if not batch.format.has_timestamp or batch.timestampType == "LogAppendTime":
        stamp = -1 if batch.maxTimestamp is None else batch.maxTimestamp
        block[TIMESTAMP_DELTA::RECORD_WIDTH] = array("q", [stamp]) * columns.count
    return columns


def readable_records(
    segments: list[Target], start: int | None, stats: Stats, options: Options, surroundings: Surroundings
) -> ReadableRecords:
    """Return how many of the data records that `stats` has counted in the segments of a log consumers receive. `start`:
    the log start offset; `surroundings`: see surroundings_of_gates. Reads again only what is below the log start
    offset, and logs with transactions. What cannot be read is unknown, and noted."""
    if stats.unknown or start is None:
        return UNKNOWN
    try:
        readable = stats.dataRecords
        if stats.firstOffset is not None and stats.firstOffset < start:
            for batch in _data(segments, options, None):
                if batch.baseOffset is not None and batch.baseOffset >= start:
                    break
                readable -= batch.possible_records - _from(batch, start)
        if not stats.transactionalBatches:
            return ReadableRecords(readable, readable)
        gate = ReadCommitted(options.limits, lambda line: None, surroundings=surroundings)
        hidden = sum(_from(batch, start) for batch in _data(segments, options, gate) if not gate.sees(batch))
    except SourceError as error:
        stats.note(f"{error}; how many records consumers receive is unknown")
        return UNKNOWN
    return ReadableRecords(readable, readable - hidden)


def _data(segments: Iterable[Target], options: Options, gate: ReadCommitted | None) -> Iterator[Batch]:
    """Yield the valid batches of data. Raises SourceError."""
    for target in segments:
        window = options.open(target)
        with closing(window.source):
            if gate is not None:
                gate.turn_to(target, window)
            for region in regions(window, name_offset=target.name_offset, limits=options.limits):
                if isinstance(region, Batch) and is_valid(region) and not region.isControlBatch:
                    yield region


def _from(batch: Batch, start: int) -> int:
    """Return the number of records of a batch at or above an offset."""
    if batch.baseOffset is not None and batch.baseOffset >= start:
        return batch.possible_records
    if batch.lastOffset < start:
        return 0
    if batch.baseOffset is not None and batch.possible_records == batch.lastOffset - batch.baseOffset + 1:
        return batch.lastOffset - start + 1  # every offset has a record
    offsets = [record.offset for record in records(batch, values=False)]
    if len(offsets) < batch.possible_records:
        raise SourceError(f"the records of the batch with offset {start}, the log start, are not known")
    return sum(offset is not None and offset >= start for offset in offsets)
