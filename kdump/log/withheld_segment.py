"""A segment of which bytes are withheld: its regions, without the payloads of most batches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kdump.core.batch_scan import FURTHEST, ValidRun, scan_valid_batches
from kdump.core.column_numbers import BATCH_START
from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.batch_header import BATCH_HEADER, MIN_BATCH_LENGTH, BatchHeader
from kdump.format.errors import DecodeError
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.hash_key import RecordHash
from kdump.io.run import Limits
from kdump.io.sorted_lines import SortedLines
from kdump.io.source import BYTES, RECORDS
from kdump.io.untrusted_json import natural
from kdump.io.window import BufferWindow
from kdump.io.withheld import HASHES, KNOWN, MAX_KEPT, REGIONS, StoredSegment
from kdump.log.header_candidate import REACH
from kdump.log.header_totals import HeaderTotals
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, KnownBatch, Region, make_batch, read_header
from kdump.log.stored_regions import KEPT, STRUCT, WITHHELD, region_of, size_of
from kdump.log.stored_verdicts import HashRows, RecordVerdict, StoredVerdicts

RUN_BYTES = 1 << 20
"""Maximum bytes of a batch run. A larger batch is a region of its own."""


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
            raise SourceError.at(self.name, f"the records before byte {position + count} are not in the bundle")
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
            raise DecodeError(STRUCT, "position", position, "nothing is known about this byte")
        return start, row

    def regions_of_line(self, position: int, row: Any, limits: Limits) -> Iterator[Region]:
        """Yield the regions that a line describes. Raises DecodeError."""
        kind, size = row["kind"], size_of(row)
        if kind in (KEPT, WITHHELD):
            return self._batches(position, position + size, limits, kept=kind == KEPT)
        return iter((self._other(position, row, limits),))

    def _verdict(self, position: int) -> RecordVerdict | None:
        """Return what is known of the records of the batch at a position. Raises DecodeError."""
        return None if self._verdicts is None else self._verdicts.on(position)

    def _batches(self, position: int, end: int, limits: Limits, *, kept: bool) -> Iterator[Region]:
        """Yield valid v2 batches whose payloads are all there, or none is."""
        missing = None if kept else NoPayload(self)
        while position < end:
            # With the header after the last batch, which confirms it.
            data = self.source.bytes.read(position, min(RUN_BYTES, end - position) + BATCH_HEADER.size)
            run = scan_valid_batches(
                data,
                0,
                source_end=FURTHEST,
                largest=FURTHEST,
                latest=-1,
                lowest=0,
                highest=2 * FURTHEST - 1,
                budget=FURTHEST,
                check=False,
                reach=REACH,
            )
            if run is not None and position + run.stop <= end:
                yield StoredRun(limits, position, run, missing, self._verdicts)
                position += run.stop
                continue
            if len(data) < BATCH_HEADER.size:
                raise DecodeError("RecordBatch", "batchLength", position, f"{len(data)} bytes left")
            header = BATCH_HEADER.read(data)
            if header.batchLength < MIN_BATCH_LENGTH or position + header.size > end:
                raise DecodeError("RecordBatch", "batchLength", position, f"{header.batchLength} is impossible here")
            window: Any = missing or BufferWindow(self._kept(position, header.size), position)
            batch = make_batch(window, position, header.size, limits, header, crc=header.crc)
            batch.known = KnownBatch(self._verdict(position))
            yield batch
            position += header.size

    def _kept(self, position: int, size: int) -> bytes:
        if size > MAX_KEPT:
            raise DecodeError(STRUCT, "size", position, f"a batch of {size} bytes")
        return self.source.bytes.read(position, size)

    def _replaced(self, extent: Any, batch: Batch) -> bytes:
        """Return bytes in place of those of a batch, its header at least."""
        start, size = map(natural, extent)
        data = self.source.replaced(start, min(size, MAX_KEPT))
        if len(data) < max(size, batch.format.header.size):
            raise ValueError(f"a batch of {len(data)} bytes")
        return data

    def _other(self, position: int, row: Any, limits: Limits) -> Region:
        region = region_of(position, row, NoPayload(self), limits)
        try:
            if not isinstance(region, Batch):
                return region
            repair = None
            if "repaired" in row:
                data = self._replaced(row["repaired"], region)
                header: Any = read_header(data)
                if header.size != region.size:
                    raise ValueError(f"a batch of {header.size} bytes")
                window: Any = NoPayload(self) if len(data) < header.size else BufferWindow(data, position)
                repair = make_batch(window, position, header.size, limits, header, crc=header.crc)
            region.known = region.known._replace(records=self._verdict(position), repair=repair)
            if "replaced" in row:
                data = self._replaced(row["replaced"], region)
                if isinstance(region, DefaultRecordBatch):
                    replaced = RedactedBatch(data, position, limits, region.header, self.source.key)
                    replaced.header_problems, replaced.broker_view = region.header_problems, region.broker_view
                    replaced.known = region.known
                    return replaced
                region.window = BufferWindow(data, position)  # type: ignore[assignment]
            elif row.get("complete"):
                region.window = BufferWindow(self._kept(position, region.size), position)  # type: ignore[assignment]
        except (TypeError, ValueError) as error:
            raise DecodeError(STRUCT, "replaced", position, str(error)) from error
        return region


class StoredRun(BatchRun):
    """A batch run whose buffer has zeros in place of payloads that are `missing`. Raises DecodeError for damage of the
    verdicts."""

    def __init__(
        self, limits: Limits, position: int, run: ValidRun, missing: NoPayload | None, verdicts: StoredVerdicts | None
    ) -> None:
        super().__init__(limits, position, 0, run, True)
        self.missing, self.verdicts = missing, verdicts
        if verdicts is not None:
            suspects = verdicts.positions(position, self.end)
            starts = run.headers.column(BATCH_START) if suspects else []
            self.suspects = [bisect_left(starts, suspect - position) for suspect in suspects]
        self.lacks_checksum = missing is not None and not BATCH_HEADER.read(run.headers.data).crc

    def batch(self, at: int) -> DefaultRecordBatch:
        batch = super().batch(at)
        if self.missing is not None:
            batch.window = self.missing  # type: ignore[assignment]
        if self.verdicts is not None:
            batch.known = KnownBatch(self.verdicts.on(batch.position))
        return batch
