"""A segment in a bundle: its regions, without the payloads of most batches (docs/bundle.md)."""

from __future__ import annotations

import io
import json
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kdump.core.batch_scan import ValidRun
from kdump.core.column_numbers import BATCH_START, HEADER_WIDTH
from kdump.core.header_columns import HeaderColumns
from kdump.format.batch_header import BATCH_HEADER, MIN_BATCH_LENGTH, BatchHeader
from kdump.format.errors import DecodeError
from kdump.format.header_planes import decode_headers
from kdump.io.bundle.directory import block_of
from kdump.io.bundle.index import REDACTED, REGIONS, SIZE, Block
from kdump.io.bundle.rows import RowsReader
from kdump.io.bundle.tree import StoredSegment
from kdump.io.errors import SourceError, damaged_mount
from kdump.io.hash_key import RecordHash
from kdump.io.run import Limits
from kdump.io.source import BYTES, RECORDS, Source
from kdump.io.window import BufferWindow
from kdump.log.header_totals import HeaderTotals
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, Region, make_batch
from kdump.log.stored_hashes import StoredHashes
from kdump.log.stored_regions import kept_size, region_of
from kdump.log.stored_verdicts import StoredVerdicts

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
        SourceError for a damaged bundle."""
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
    """Reads the regions of a segment in a bundle."""

    def __init__(self, source: StoredSegment) -> None:
        self.source = source
        self.name, self.key, self.log = source.name, source.key, source.log
        self._container = source.container
        self.blocks: RowsReader[Block] = RowsReader(source.container, self.log.blocks, block_of)
        self._verdicts = None if self.log.records is None else StoredVerdicts(source.container, self.log.records)
        self._hashes = None if self.log.hashes is None else StoredHashes(source.container, self.log.hashes)
        self._headers: dict[int, bytes] = {}
        """Headers of batches by their positions, as header_at has read them last."""

    @property
    def hides_records(self) -> bool:
        """Whether there are records that are not those of the segment: they are withheld, or names in them replaced."""
        return RECORDS in self.source.lacks or self.log.redacted

    def unchecked(self, *, keyed: bool) -> set[str]:
        """Return what of the segment is neither in the bundle nor was it checked when the bundle was made: RECORDS,
        CHECKSUMS. `keyed`: whether records should have keys."""
        records = self.log.records
        is_known = records is not None and (records.keyed or not keyed)
        return {*self.source.lacks} - {BYTES} - ({RECORDS} if is_known else set())

    def hashes(self, position: int) -> list[tuple[int, RecordHash]] | None:
        """Return offset delta and hash of each record of the batch at a position; None if they are not known. Raises
        SourceError for a damaged bundle."""
        try:
            return None if self._hashes is None else self._hashes.of_batch(position)
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def totals(self) -> HeaderTotals:
        """Return the totals over the headers of the segment. Raises SourceError for a damaged bundle."""
        try:
            return HeaderTotals.of(self.log.totals)
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def sums(self) -> Any:
        """Return the sums over the segment's records, as an object of JSON's types from another host; None if they are
        not known. Raises SourceError for a damaged bundle."""
        if self.log.records is None:
            return None
        try:
            return json.loads(self._container.read(self.log.records.sums))
        except (DecodeError, ValueError, RecursionError) as error:
            raise damaged_mount(self.name, error) from error

    def stored_regions(self, start: int, limits: Limits, *, runs: bool) -> Iterator[Region]:
        """Yield the regions from position `start` on. `runs`: as batch runs where possible. Raises SourceError for a
        damaged bundle."""
        try:
            for region in self._regions(start, limits):
                if isinstance(region, BatchRun) and (not runs or region.position < start):
                    yield from (batch for batch in region.batches() if batch.position >= start)
                elif isinstance(region, BatchRun) or region.position >= start:
                    yield region
        except DecodeError as error:
            raise damaged_mount(self.name, error) from error

    def header_at(self, position: int) -> bytes:
        """Return the header of the v2 batch that begins at `position`; empty if there is none. Raises SourceError for a
        damaged bundle."""
        if position not in self._headers:
            self._headers = {}
            try:
                self._headers = self._headers_of_block(position)
            except DecodeError as error:
                raise damaged_mount(self.name, error) from error
        return self._headers.get(position, b"")

    def _headers_of_block(self, position: int) -> dict[int, bytes]:
        """Return the headers of the batches in the block that contains `position`, by their positions."""
        headers = {}
        for region in self._regions(position, Limits()):
            if isinstance(region, BatchRun):
                for batch in region.batches():
                    headers[batch.position] = batch.header.packed()
            elif isinstance(region, DefaultRecordBatch):
                headers[region.position] = region.stored_header.packed()
            if region.end > position:
                break
        return headers

    def _regions(self, start: int, limits: Limits) -> Iterator[Region]:
        """Yield the regions of the blocks that end after position `start`. Raises DecodeError."""
        position = 0
        for number, block in enumerate(self.blocks.after(start)):
            if not number and block.position <= start:
                position = block.position
            if block.position != position:
                raise DecodeError("Block", "position", 0, f"byte {block.position} follows {position}")
            if block.is_incomplete > self.log.incomplete or (block.kind == REDACTED) > self.log.redacted:
                raise DecodeError("Block", "kind", 0, "its records are not those that the index has")
            position = block.end
            if position > start:
                yield from self.block_regions(block, limits)
        if position != self.log.size:
            raise DecodeError("Log", "size", 0, f"{self.log.size} bytes, blocks up to {position}")

    def block_regions(self, block: Block, limits: Limits) -> Iterator[Region]:
        """Yield the regions of a block. Raises DecodeError."""
        stored = self._others(block, limits) if block.kind == REGIONS else self._batches(block, limits)
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

    def _batches(self, block: Block, limits: Limits) -> Iterator[Region]:
        headers = decode_headers(self._container.read(block.frame))
        count = len(headers) // BATCH_HEADER.size
        complete = self._container.read(block.complete) if block.complete else bytes((bool(block.payload),)) * count
        if len(complete) != count:
            raise DecodeError("Block", "complete", 0, f"{len(complete)} marks for {count} batches")
        payload = b"".join(map(self._container.read, block.payload))
        taken = 0
        builder = _RunBuilder(self, limits)
        position = block.position
        for row, header in enumerate(BATCH_HEADER.read_all(headers)):
            size = header.size
            if header.batchLength < MIN_BATCH_LENGTH:
                raise DecodeError("Block", "batchLength", row, f"{header.batchLength} is below the minimum")
            body: bytes | None = None
            if complete[row]:
                length = size - BATCH_HEADER.size
                if block.kind == REDACTED:
                    length, taken = _payload_size(payload, taken, row), taken + SIZE.size
                body = payload[taken : taken + length]
                taken += length
                if taken > len(payload):
                    raise DecodeError("Block", "payload", row, f"{len(payload)} bytes of payloads, {taken} needed")
            stored = headers[row * BATCH_HEADER.size : (row + 1) * BATCH_HEADER.size]
            is_redacted = block.kind == REDACTED and body is not None
            if builder.size and (builder.size + size > RUN_BYTES or is_redacted):
                yield builder.run()
                builder = _RunBuilder(self, limits)
            if is_redacted and body is not None:
                yield RedactedBatch(stored + body, position, limits, header, self.key)
            elif size > RUN_BYTES:
                window: Any = NoPayload(self) if body is None else BufferWindow(stored + body, position)
                yield make_batch(window, position, size, limits, header, crc=header.crc)
            else:
                builder.add(position, header, stored, body)
            position += size
        if builder.size:
            yield builder.run()
        if position != block.position + block.size or taken != len(payload):
            raise DecodeError("Block", "size", 0, f"batches up to byte {position}, {taken} bytes of payloads")

    def _others(self, block: Block, limits: Limits) -> Iterator[Region]:
        payload = b"".join(map(self._container.read, block.payload))
        position = block.position
        taken = 0
        for line in io.BytesIO(self._container.read(block.frame)):
            try:
                row = json.loads(line)
                has_payload = bool(row.get("complete"))
            except (ValueError, RecursionError, AttributeError) as error:
                raise DecodeError("Block", "frame", 0, str(error)) from error
            region = region_of(row, NoPayload(self), limits)
            if region.position != position or not region.size:
                raise DecodeError("Block", "position", 0, f"a region at byte {region.position}, expected {position}")
            if isinstance(region, Batch) and has_payload:
                count = kept_size(row, region)
                if taken + count > len(payload):
                    raise DecodeError("Block", "payload", 0, "a payload is missing")
                data = payload[taken : taken + count]
                taken += count
                if "keptSize" in row and isinstance(region, DefaultRecordBatch):
                    region = RedactedBatch(data, position, limits, region.header, self.key)
                else:
                    region.window = BufferWindow(data, position)  # type: ignore[assignment]
            yield region
            position += region.size
        if position != block.position + block.size:
            raise DecodeError("Block", "size", 0, f"regions up to byte {position}")


def _payload_size(payload: bytes, position: int, row: int) -> int:
    """Return the size that precedes a payload. Raises DecodeError."""
    stored = payload[position : position + SIZE.size]
    size: int = SIZE.unpack(stored)[0] if len(stored) == SIZE.size else -1
    if size < 0:
        raise DecodeError("Block", "payload", row, f"no size of a payload at byte {position}")
    return size


class _RunBuilder:
    """Joins batches to a batch run; the payloads that are missing are zeros in its buffer."""

    def __init__(self, log: WithheldSegment, limits: Limits) -> None:
        self.log = log
        self.limits = limits
        self.size = 0
        self.position = 0
        self.records = 0
        self.headers: list[BatchHeader] = []
        self.parts: list[bytes] = []
        self.numbers: list[int] = []
        self.complete: set[int] = set()
        self.lacks_checksum = False

    def add(self, position: int, header: BatchHeader, stored: bytes, body: bytes | None) -> None:
        size, start = header.size, self.size
        if not self.headers:
            self.position = position
        if body is not None:
            self.complete.add(start)
        self.lacks_checksum |= body is None and not header.crc
        self.parts += (stored, bytes(size - len(stored)) if body is None else body)
        self.numbers += (
            start,
            start + size,
            header.baseOffset,
            header.lastOffset,
            header.partitionLeaderEpoch,
            header.attributes,
            header.maxTimestamp,
            header.producerId,
            header.producerEpoch,
            header.baseSequence,
            header.recordCount,
            header.baseTimestamp,
        )
        self.records += header.recordCount
        self.headers.append(header)
        self.size += size

    def run(self) -> BatchRun:
        buffer = b"".join(self.parts)
        columns = HeaderColumns(buffer, 0)
        columns.block, columns.count = array("q", self.numbers), len(self.headers)
        assert len(self.numbers) == HEADER_WIDTH * columns.count
        first, last = self.headers[0], self.headers[-1]
        before = self.headers[-2].lastOffset if len(self.headers) > 1 else -1
        run = ValidRun(self.size, columns, self.records, first.baseOffset, last.lastOffset, before, 0)
        missing = None if len(self.complete) == len(self.headers) else NoPayload(self.log)
        stored_run = StoredRun(self.limits, self.position, run, missing, self.complete)
        stored_run.lacks_checksum = self.lacks_checksum
        return stored_run


class StoredRun(BatchRun):
    """A batch run of a bundle: its buffer has the headers, and the payloads of the batches that start at the indexes
    `complete`."""

    def __init__(
        self, limits: Limits, position: int, run: ValidRun, missing: NoPayload | None, complete: set[int]
    ) -> None:
        super().__init__(limits, position, 0, run, True)
        self.missing = missing
        self.complete = complete
        self.verdicts: StoredVerdicts | None = None

    def batch(self, at: int) -> DefaultRecordBatch:
        batch = super().batch(at)
        if self.missing is not None and at not in self.complete:
            batch.window = self.missing  # type: ignore[assignment]
        if self.verdicts is not None:
            batch.known_records = self.verdicts.on(batch.position)
        return batch
