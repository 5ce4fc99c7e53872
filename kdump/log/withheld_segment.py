"""A segment of which bytes are withheld: its regions, without the payloads of most batches."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kdump.core.batch_scan import ValidRun
from kdump.core.column_numbers import BATCH_START, HEADER_WIDTH
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.batch_header import BATCH_HEADER, MIN_BATCH_LENGTH, BatchHeader
from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.hash_key import RecordHash
from kdump.io.run import Limits
from kdump.io.sorted_lines import SortedLines
from kdump.io.source import BYTES, RECORDS, Source
from kdump.io.untrusted_json import natural
from kdump.io.window import BufferWindow
from kdump.io.withheld import HASHES, KNOWN, MAX_KEPT, REGIONS, StoredSegment
from kdump.log.header_totals import HeaderTotals
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, Region, make_batch
from kdump.log.stored_regions import KEPT, STRUCT, WITHHELD, region_of, size_of
from kdump.log.stored_verdicts import HashRows, StoredVerdicts

MAGIC = 2
RUN_BYTES = 1 << 20
"""Maximum bytes of a batch run. A larger batch is a region of its own."""


def withheld_segment(source: Source) -> WithheldSegment | None:
    """Return the reader of a segment of which bytes are withheld; None for any other source."""
    if not isinstance(source, StoredSegment):
        return None
    source.reader = source.reader or WithheldSegment(source)
    return source.reader  # type: ignore[no-any-return]


class NoPayload:
    """The window of a batch whose payload is not in the bundle."""

    lacks = frozenset({RECORDS})

    def __init__(self, log: WithheldSegment) -> None:
        self.name = log.name
        self._log = log

    def hashes(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position; None if they are not known. Raises
        SourceError for damage."""
        return self._log.hashes(position)

    def chunks(self, position: int, count: int) -> Iterator[memoryview]:
        """Raises SourceError if there is anything to read."""
        self.view(position, count)
        return iter(())

    def view(self, position: int, count: int) -> memoryview:
        """Raises SourceError if there is anything to read."""
        if count > 0:
            raise SourceError(f"{self.name}: the records before byte {position + count} are not in the bundle")
        return memoryview(b"")

    peek = view


class RedactedBatch(DefaultRecordBatch):
    """A batch whose records were changed, and not compressed again: they are as long as its payload is, at the position
    and in place of those that its header describes."""

    def __init__(self, data: bytes, position: int, limits: Limits, header: BatchHeader, key: str) -> None:
        window: Any = BufferWindow(data, position)
        super().__init__(window, position, header.size, limits, header)
        self.replaced_under = key
        self._computed = header.crc
        self._length = len(data)

    @property
    def is_compressed(self) -> bool:
        return False

    @property
    def payload_size(self) -> int:
        return self._length - self.header.headerSize

    def chunks(self, start: int, size: int) -> Iterator[memoryview]:
        return self.window.chunks(self.position + start, size)


class WithheldSegment:
    """Reads the regions of a segment of which bytes are withheld."""

    def __init__(self, source: StoredSegment) -> None:
        self.source = source
        self.name, self.log = source.name, source.log
        try:
            regions, verdicts, hashes = map(source.known, (REGIONS, KNOWN, HASHES))
            if regions is None:
                raise DecodeError(STRUCT, "known", 0, "its regions are not in the bundle")
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error
        self.lines: SortedLines = regions
        self._verdicts = None if verdicts is None else StoredVerdicts(verdicts)
        self._hashes = None if hashes is None or self.log.hashKey is None else HashRows(hashes, self.log.hashKey)

    @property
    def hides_records(self) -> bool:
        """Whether there are records that are not those of the segment: they are withheld, or names in them replaced."""
        return RECORDS in self.source.lacks or self.log.redacted

    def unchecked(self, *, keyed: bool) -> set[str]:
        """Return what of the segment is neither there nor was it checked where it was: RECORDS, CHECKSUMS. `keyed`:
        whether records should have keys."""
        is_known = self.log.keyed is not None and (self.log.keyed or not keyed)
        return {*self.source.lacks} - {BYTES} - ({RECORDS} if is_known else set())

    def hashes(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position; None if they are not known. Raises
        SourceError for damage."""
        try:
            return None if self._hashes is None else self._hashes.of_batch(position)
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def totals(self) -> HeaderTotals:
        """Return the totals over the headers of the segment. Raises SourceError for damage."""
        try:
            return HeaderTotals.of(self.log.totals)
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def sums(self) -> Any:
        """Return the sums over the segment's records, as an object of JSON's types from another host; None if they are
        not known. Raises SourceError for damage."""
        try:
            return None if self._verdicts is None else self._verdicts.sums()
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def stored_regions(self, start: int, limits: Limits, *, runs: bool) -> Iterator[Region]:
        """Yield the regions from position `start` on. `runs`: as batch runs where possible. Raises SourceError for
        damage."""
        try:
            for region in self._regions(start, limits):
                if isinstance(region, BatchRun) and (not runs or region.position < start):
                    yield from (batch for batch in region.batches() if batch.position >= start)
                elif isinstance(region, BatchRun) or region.position >= start:
                    yield region
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def header_at(self, position: int) -> bytes:
        """Return the bytes at a position where a header is, if a batch begins there. Raises SourceError for damage."""
        return self.source.bytes.read(position, LARGEST_HEADER)

    def _regions(self, start: int, limits: Limits) -> Iterator[Region]:
        """Yield the regions of the lines that end after position `start`. Raises DecodeError."""
        reached: int | None = None
        for position, row in self.lines.from_key(start):
            if position != reached and (reached is not None or not 0 <= position <= start):
                raise DecodeError(STRUCT, "position", position, f"byte {position} follows {reached}")
            reached = position + size_of(row)
            if reached > self.log.data.size:
                break
            if reached > start:
                yield from self.regions_of_line(position, row, limits)
        if (reached or 0) != self.log.data.size:
            raise DecodeError(STRUCT, "size", 0, f"{self.log.data.size} bytes, regions up to {reached or 0}")

    def line_at(self, position: int) -> tuple[int, Any]:
        """Return the line that describes the byte at a position. Raises DecodeError."""
        start, row = next(self.lines.from_key(position), (-1, None))
        if row is None or not 0 <= start <= position < start + size_of(row) <= self.log.data.size:
            raise DecodeError(STRUCT, "position", position, "nothing is known of this byte")
        return start, row

    def regions_of_line(self, position: int, row: Any, limits: Limits) -> Iterator[Region]:
        """Yield the regions that a line describes. Raises DecodeError."""
        kind, size = row["kind"], size_of(row)
        if kind in (KEPT, WITHHELD):
            stored = self._batches(position, position + size, limits, kept=kind == KEPT)
        else:
            stored = iter((self._other(position, row, limits),))
        return stored if self._verdicts is None else self._with_verdicts(stored, self._verdicts)

    def _with_verdicts(self, stored: Iterator[Region], verdicts: StoredVerdicts) -> Iterator[Region]:
        for region in stored:
            if isinstance(region, Batch):
                region.known_records = verdicts.on(region.position)
            elif isinstance(region, StoredRun):
                region.verdicts = verdicts
                suspects = verdicts.positions(region.position, region.end)
                if suspects:
                    starts = region.headers.column(BATCH_START)
                    region.suspects = [bisect_left(starts, suspect - region.position) for suspect in suspects]
                else:
                    region.suspects = []
            yield region

    def _batches(self, position: int, end: int, limits: Limits, *, kept: bool) -> Iterator[Region]:
        """Yield valid v2 batches whose payloads are all there, or none is."""
        while position < end:
            data = self.source.bytes.read(position, min(RUN_BYTES, end - position))
            run = StoredRun.of(data, position, limits, None if kept else NoPayload(self))
            if run is not None:
                yield run
                position = run.end
                continue
            if len(data) < BATCH_HEADER.size:
                raise DecodeError("RecordBatch", "batchLength", position, f"{len(data)} bytes left")
            header = BATCH_HEADER.read(data)
            if header.batchLength < MIN_BATCH_LENGTH or position + header.size > end:
                raise DecodeError("RecordBatch", "batchLength", position, f"{header.batchLength} is impossible here")
            window: Any = NoPayload(self)
            if kept:
                window = BufferWindow(self._kept(position, header.size), position)
            yield make_batch(window, position, header.size, limits, header, crc=header.crc)
            position += header.size

    def _kept(self, position: int, size: int) -> bytes:
        if size > MAX_KEPT:
            raise DecodeError(STRUCT, "size", position, f"a batch of {size} bytes")
        return self.source.bytes.read(position, size)

    def _other(self, position: int, row: Any, limits: Limits) -> Region:
        region = region_of(position, row, NoPayload(self), limits)
        try:
            if not isinstance(region, Batch):
                return region
            if "replaced" in row:
                start, size = map(natural, row["replaced"])
                data = self.source.replaced(start, min(size, MAX_KEPT))
                if len(data) < max(size, region.format.header.size):
                    raise ValueError(f"a batch of {len(data)} bytes")
                if isinstance(region, DefaultRecordBatch):
                    replaced = RedactedBatch(data, position, limits, region.header, self.source.key)
                    replaced.problems, replaced.broker_view = region.problems, region.broker_view
                    return replaced
                region.window = BufferWindow(data, position)  # type: ignore[assignment]
            elif row.get("complete"):
                region.window = BufferWindow(self._kept(position, region.size), position)  # type: ignore[assignment]
        except (TypeError, ValueError) as error:
            raise DecodeError(STRUCT, "replaced", position, str(error)) from error
        return region


class StoredRun(BatchRun):
    """A batch run whose buffer has zeros in place of payloads that are `missing`."""

    missing: NoPayload | None
    verdicts: StoredVerdicts | None = None

    @classmethod
    def of(cls, data: bytes, position: int, limits: Limits, missing: NoPayload | None) -> StoredRun | None:
        """Return the v2 batches from the beginning of `data` on that are whole in it; None if there is none."""
        numbers: list[int] = []
        records = start = 0
        first = last = before = -1
        unknown = False
        while len(data) - start >= BATCH_HEADER.size:
            header = BATCH_HEADER.read(data, start)
            end = start + header.size
            if header.magic != MAGIC or header.batchLength < MIN_BATCH_LENGTH or end > len(data):
                break
            unknown |= missing is not None and not header.crc
            first, before, last = first if start else header.baseOffset, last, header.lastOffset
            records += header.recordCount
            numbers += (
                start,
                end,
                header.baseOffset,
                last,
                header.partitionLeaderEpoch,
                header.attributes,
                header.maxTimestamp,
                header.producerId,
                header.producerEpoch,
                header.baseSequence,
                header.recordCount,
                header.baseTimestamp,
            )
            start = end
        if not numbers:
            return None
        columns = HeaderColumns(data, 0)
        columns.block, columns.count = array("q", numbers), len(numbers) // HEADER_WIDTH
        run = cls(limits, position, 0, ValidRun(start, columns, records, first, last, before, 0), True)
        run.missing, run.lacks_checksum = missing, unknown
        return run

    def batch(self, at: int) -> DefaultRecordBatch:
        batch = super().batch(at)
        if self.missing is not None:
            batch.window = self.missing  # type: ignore[assignment]
        if self.verdicts is not None:
            batch.known_records = self.verdicts.on(batch.position)
        return batch
