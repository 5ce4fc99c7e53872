"""Writes the regions of a segment into a container, as kdump.log.withheld_segment reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import NamedTuple

from kdump.check.diagnosis.diagnose import UNKNOWN, diagnose
from kdump.core.column_numbers import ATTRIBUTES, BATCH_END, BATCH_START
from kdump.format.batch_header import BATCH_HEADER, CONTROL, CRC_START
from kdump.format.container import ContainerWriter, Frame
from kdump.format.header_planes import MAX_HEADERS, encode_headers
from kdump.format.varint import Bytes
from kdump.io.bundle.index import BATCHES, MAX_KEPT, REDACTED, REGIONS, SIZE, Block, Log
from kdump.io.bundle.rows import RowsWriter
from kdump.io.run import Limits, Run
from kdump.io.window import Window
from kdump.log.batch_records import records
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.log.paths import Target
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.region_totals import RegionTotals
from kdump.log.stored_regions import row_of
from kdump.log.walk import RegionObserver, observe
from kdump.log.withheld_bytes import broker_view
from kdump.questions.bundle.hidden_secrets import (
    connect_bytes,
    control_bytes,
    looks_like_metadata,
    without_secrets,
)
from kdump.questions.bundle.record_hasher import RecordHasher
from kdump.questions.bundle.records_writer import RecordsWriter
from kdump.questions.bundle.redact.batches import redacted_batch
from kdump.questions.bundle.redact.schema_records import Unclear, kept_schema_record
from kdump.questions.diff.copy_damage import damage_digest

MAX_PAYLOAD = 1 << 20
"""Bytes of payloads after which a block ends, and of rows."""

CRC = slice(BATCH_HEADER.positions["crc"], CRC_START)


class Keep(NamedTuple):
    """What a bundle is to have of batches. `bytes_of` returns the bytes of a batch, which may be of another size; None
    if it is to have the header alone. `only_control`: that is so for all but control batches. `hides`: there are names
    in them, which could be guessed from checksums."""

    bytes_of: Callable[[Batch], bytes | None]
    only_control: bool = False
    hides: bool = False


def _complete(batch: Batch) -> bytes:
    return b"".join(batch.chunks(0, batch.size))


def _without_secrets(batch: Batch) -> bytes | None:
    return without_secrets(batch) if isinstance(batch, DefaultRecordBatch) else None


def _schemas_without_secrets(batch: Batch) -> bytes | None:
    if batch.isControlBatch:
        return control_bytes(batch)
    if not isinstance(batch, DefaultRecordBatch) or not batch.crcValid:
        return None
    try:
        same = all(kept_schema_record(record, None) == (record.key, record.value) for record in records(batch))
    except Unclear:
        return None
    return None if batch.problems else _complete(batch) if same else redacted_batch(batch, SCHEMAS_TOPIC, None)


KEEP_CONTROL = Keep(control_bytes, only_control=True)
"""Control batches: they have markers of transactions, and nothing of a client."""
KEEP_ALL = Keep(_complete)
KEEP_WITHOUT_SECRETS = Keep(_without_secrets)
"""Batches of the cluster's metadata."""
KEEP_SCHEMAS = Keep(_schemas_without_secrets)
"""Batches of a schema registry."""


def keep_records(topic: str) -> Keep:
    """Return what to keep of a client's topic: batches, but of a copy of the cluster's metadata, and of Connect's
    records, only what is no secret."""
    return Keep(lambda batch: _without_secrets(batch) if looks_like_metadata(batch) else connect_bytes(batch, topic))


def write_log(
    target: Target,
    window: Window,
    container: ContainerWriter,
    keep: Keep,
    *,
    checksums: bool,
    limits: Limits,
    records: RecordsWriter | None,
    hashes: RecordHasher | None,
    run: Run,
) -> Log:
    """Write the segment in `window`, which is closed. `checksums`: verify them; otherwise batches are taken for valid
    as far as their headers are. `records` decodes their records, `hashes` hashes those that are left out.
    Raises SourceError if the device fails, and TooManyRows."""
    source = window.source
    totals = RegionTotals(target.name_offset, checksums=checksums)
    totals.depth = Depth.CHECKSUMS if checksums else Depth.PAYLOADS
    if hashes is not None:
        keep = Keep(hashes.instead(keep.bytes_of), only_control=False, hides=keep.hides)
    writer = _LogWriter(container, window, keep, checksums=checksums)
    observers: list[RegionObserver] = [totals]
    if records is not None:
        observers += [records.reader, records]
    with closing(source):
        regions_of_log = partial(regions, window, name_offset=target.name_offset, limits=limits)
        observe(regions_of_log, [*observers, writer], run)
        writer.end()
    unreadable = tuple(getattr(source, "unreadable", ()))
    known_records = None if records is None else records.end()
    hashed = None if hashes is None else hashes.writer.end()
    return Log(
        writer.position,
        writer.blocks.end(),
        source.error,
        unreadable,
        writer.is_incomplete,
        writer.is_redacted,
        checksums,
        known_records,
        hashed,
        totals.finished().row(),
    )


class _LogWriter(RegionObserver):
    depth = Depth.PAYLOADS

    def __init__(self, container: ContainerWriter, window: Window, keep: Keep, *, checksums: bool) -> None:
        self.container = container
        self.window = window
        self.keep = keep
        self.checksums = checksums
        self.blocks = RowsWriter(container)
        self.is_incomplete = self.is_redacted = False
        self.position = 0
        """End of the last region."""
        self._start = 0
        """Where the block begins that is being collected."""
        self._headers = bytearray()
        self._complete = bytearray()
        self._payload: list[Bytes] = []
        self._payload_size = 0
        self._is_redacted = False
        """Whether a payload is not what its header describes."""
        self._rows: list[str] = []
        self._rows_size = 0

    def region(self, region: Region) -> None:
        if not self.keep.hides:
            region.broker_view = broker_view(self.window, region)
            if self.checksums:
                damage_digest(region, self.window)
        if isinstance(region, BatchRun):
            if self._rows:
                self.end()
            self._add_run(region)
            return
        if self._headers:
            self.end()
        row = row_of(region, checksums=self.checksums)
        kept = None
        if isinstance(region, Batch) and "computedCrc" in row:
            row["diagnosis"] = UNKNOWN if self.keep.hides else diagnose(region)
        elif isinstance(region, Batch) and region.size <= MAX_KEPT:
            kept = self.keep.bytes_of(region)
            row |= {"complete": True} if kept is not None else {}
            if kept is not None and self._is_other(kept, region.size):
                row |= {"header": region.format.header.read(kept), "keptSize": len(kept)}
        if kept is not None:
            self._keep(kept)
        elif self.keep.hides and "header" in row:
            row["header"] = row["header"]._replace(crc=0)
            row |= {"computedCrc": 1} if "computedCrc" in row else {}
        line = json.dumps(row, separators=(",", ":"))
        self._rows.append(line)
        self._rows_size += len(line) + 1
        self.position = region.end
        if self._payload_size >= MAX_PAYLOAD or self._rows_size >= MAX_PAYLOAD:
            self.end()

    def _is_other(self, kept: bytes, size: int) -> bool:
        """Return True if the bytes of a batch of that size were replaced by others."""
        return self.keep.hides or len(kept) != size

    def _keep(self, kept: Bytes) -> None:
        self._payload.append(kept)
        self._payload_size += len(kept)

    def _add_run(self, batches: BatchRun) -> None:
        heads, buffer = batches.headers, batches.buffer
        size = BATCH_HEADER.size
        only_control = self.keep.only_control
        attributes = heads.column(ATTRIBUTES)
        ends = heads.column(BATCH_END)
        for row, start in enumerate(heads.column(BATCH_START)):
            kept = None
            if not only_control or attributes[row] & CONTROL.mask:
                kept = self.keep.bytes_of(batches.batch(start))
            if kept is not None:
                self._headers += kept[:size]
                self._keep(memoryview(kept)[size:])
                self._is_redacted |= self._is_other(kept, ends[row] - start)
            else:
                header = bytearray(buffer[start : start + size])
                if self.keep.hides:
                    header[CRC] = bytes(4)
                self._headers += header
            self._complete.append(kept is not None)
            self.position += ends[row] - start
            if len(self._headers) >= MAX_HEADERS * size or self._payload_size >= MAX_PAYLOAD:
                self.end()

    def end(self) -> None:
        """Write the block that has been collected."""
        if self._headers:
            frame = self.container.add(encode_headers(self._headers))
            some = 0 < sum(self._complete) < len(self._complete)
            complete = self.container.add(self._complete) if some else None
            self._write(REDACTED if self._is_redacted else BATCHES, frame, complete)
        elif self._rows:
            self._write(REGIONS, self.container.add("\n".join(self._rows).encode()), None)
        self._headers, self._complete, self._is_redacted = bytearray(), bytearray(), False
        self._payload, self._payload_size, self._rows, self._rows_size = [], 0, [], 0

    def _write(self, kind: str, frame: Frame, complete: Frame | None) -> None:
        parts = self._payload
        if kind == REDACTED:
            parts = [part for batch in self._payload for part in (SIZE.pack(len(batch)), batch)]
        view = memoryview(b"".join(parts))
        payload = tuple(
            self.container.add(view[start : start + MAX_PAYLOAD]) for start in range(0, len(view), MAX_PAYLOAD)
        )
        block = Block(kind, self._start, self.position - self._start, frame, complete, payload)
        self.blocks.add(block)
        self.is_incomplete |= block.is_incomplete
        self.is_redacted |= kind == REDACTED
        self._start = self.position
