"""Writes a segment into a part of a bundle, without the payloads of most batches, and what is known of its regions, as
kdump.log.withheld_segment reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from kdump.check.diagnosis.diagnose import UNKNOWN, diagnose
from kdump.check.engine.unflipped import unflipped
from kdump.core.column_numbers import ATTRIBUTES, BATCH_END, BATCH_START
from kdump.decode.redaction.batches import redacted_batch
from kdump.decode.redaction.schema_records import Unclear, kept_schema_record
from kdump.format.batch_header import BATCH_HEADER, CONTROL, CRC_START
from kdump.io.hash_key import HashKey, RecordHash
from kdump.io.run import Limits, Run
from kdump.io.sorted_lines import Extent
from kdump.io.window import Window
from kdump.io.withheld import HASHES, KNOWN, MAX_KEPT, REGIONS, REPLACED, FileStatus, Log
from kdump.log.batch_records import records
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, Batch, BatchRun, DefaultRecordBatch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.region_totals import RegionTotals
from kdump.log.stored_regions import BATCH, KEPT, WITHHELD, row_of
from kdump.log.stored_verdicts import hash_rows
from kdump.log.walk import RegionObserver, observe
from kdump.log.withheld_bytes import broker_view, broker_view_of, bytes_of_view
from kdump.questions.bundle.hidden_secrets import (
    connect_bytes,
    control_bytes,
    looks_like_metadata,
    without_secrets,
)
from kdump.questions.bundle.part_writer import Member, PartWriter, Spool
from kdump.questions.bundle.records_writer import RecordsWriter
from kdump.questions.diff.comparable_records import hash_record, rows
from kdump.questions.diff.copy_damage import damage_digest

LINE_BYTES = 1 << 20
"""Bytes of batches after which the line about them ends."""

CRC = slice(BATCH_HEADER.positions["crc"], CRC_START)


class RecordHasher:
    """Hashes the records of batches of a segment that a bundle has without their records, so that copies of a compacted
    topic can be compared record by record."""

    def __init__(self, key: HashKey) -> None:
        self.key = key
        self.lines = Spool()

    def instead(self, keep: Callable[[Batch], bytes | None]) -> Callable[[Batch], bytes | None]:
        """Return a function that does as `keep` does, and hashes the records of a batch that is not kept."""

        def kept(batch: Batch) -> bytes | None:
            data = keep(batch)
            if data is None:
                self._hash(batch)
            return data

        return kept

    def _hash(self, batch: Batch) -> None:
        reading = Reading(batch)
        deltas: list[int] = []
        hashes: list[bytes] = []
        base = batch.baseOffset or 0
        for row in rows(reading):
            hashed = hash_record(self.key, row).value
            assert isinstance(hashed, RecordHash)
            deltas.append(row.offset - base)
            hashes.append(hashed.digest)
        if not reading.problems:
            for position, row in hash_rows(batch.position, deltas, hashes):
                self.lines.row(position, row)


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
    reading: Reading[Batch] = Reading(batch)
    try:
        same = all(kept_schema_record(record, None) == (record.key, record.value) for record in records(reading))
    except Unclear:
        return None
    return None if reading.problems else _complete(batch) if same else redacted_batch(batch, SCHEMAS_TOPIC, None)


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
    part: PartWriter,
    name: str,
    status: FileStatus,
    keep: Keep,
    *,
    checksums: bool,
    limits: Limits,
    records: RecordsWriter | None,
    hashes: RecordHasher | None,
    run: Run,
) -> Log:
    """Write the segment in `window`, which is closed, under a name. `checksums`: verify them; otherwise batches are
    taken for valid as far as their headers are. `records` decodes their records, `hashes` hashes those that are left
    out. Raises SourceError if the device fails, and LineTooLong."""
    source = window.source
    totals = RegionTotals(target.name_offset, checksums=checksums)
    totals.depth = Depth.CHECKSUMS if checksums else Depth.PAYLOADS
    of_repaired = keep.bytes_of
    if hashes is not None:
        keep = Keep(hashes.instead(keep.bytes_of), only_control=False, hides=keep.hides)
    observers: list[RegionObserver] = [totals]
    if records is not None:
        observers += [records.reader, records]
    with closing(source), part.member(name, source.size, status) as data:
        writer = _LogWriter(data, window, keep, of_repaired, checksums=checksums)
        regions_of_log = partial(regions, window, name_offset=target.name_offset, limits=limits)
        observe(regions_of_log, [*observers, writer], run)
        writer.end()
    spools = {REGIONS: writer.lines, REPLACED: writer.replaced}
    if records is not None:
        spools[KNOWN] = records.end()
    if hashes is not None:
        spools[HASHES] = hashes.lines
    known = {what: part.facts(name, what, spool) for what, spool in spools.items() if spool.size or what == REGIONS}
    return Log(
        Extent(data.start, writer.position),
        source.error,
        tuple(getattr(source, "unreadable", ())),
        writer.is_incomplete,
        writer.is_redacted,
        checksums,
        None if records is None else records.keyed,
        None if hashes is None else hashes.key.name,
        totals.finished().row(),
        known,
    )


class _LogWriter(RegionObserver):
    depth = Depth.PAYLOADS

    def __init__(
        self, data: Member, window: Window, keep: Keep, of_repaired: Callable[[Batch], bytes | None], *, checksums: bool
    ) -> None:
        self.data = data
        self.window = window
        self.keep = keep
        self.of_repaired = of_repaired
        """`bytes_of` for a repaired batch, in whose place a damaged one is."""
        self.checksums = checksums
        self.lines, self.replaced = Spool(), Spool()
        self.is_incomplete = self.is_redacted = False
        self.position = 0
        """End of the last region."""
        self._kind = ""
        """Of the line that is being collected, about batches from `_start` on."""
        self._start = 0

    def region(self, region: Region) -> None:
        if not self.keep.hides:
            region.broker_view = broker_view(self.window, region)
            if self.checksums:
                damage_digest(region, self.window)
        if isinstance(region, BatchRun):
            self._add_run(region)
        else:
            self._add_other(region)

    def _add_other(self, region: Region) -> None:
        row = row_of(region, checksums=self.checksums)
        if isinstance(region, Batch) and "computedCrc" in row:
            row["diagnosis"] = UNKNOWN if self.keep.hides else diagnose(region)
            repaired = unflipped(region)
            if repaired is not None:
                row["repaired"] = self.replaced.add(self._repaired(repaired))
        elif isinstance(region, Batch) and region.size <= MAX_KEPT:
            kept = self.keep.bytes_of(region)
            if kept is not None and self._is_other(kept, region.size):
                self._replaced(row | {"header": region.format.header.read(kept)}, region.position, kept)
                return
            if kept is not None:
                self.data.put(region.position, kept)
                self._line(row | {"complete": True}, region.position)
                return
        if self.keep.hides and "header" in row:
            row["header"] = row["header"]._replace(crc=0)
            row |= {"computedCrc": 1} if "computedCrc" in row else {}
        self.data.put(region.position, self._there(region, row)[: region.size])
        self._line(row, region.position)
        self.is_incomplete |= region.kind != PADDING

    def _there(self, region: Region, row: dict[str, Any]) -> bytes:
        """Return the first bytes of a region of which the others are withheld."""
        if isinstance(region, DefaultRecordBatch):
            return bytes(row["header"]._replace(magic=region.stored_header.magic).packed())
        if "header" in row:
            return bytes(row["header"].packed())
        view = None if region.kind == PADDING else broker_view_of(region)
        return b"" if view is None or self.keep.hides else bytes_of_view(view, region.size)

    def _repaired(self, batch: Batch) -> bytes:
        """Return the bytes of a repaired batch, or its header alone."""
        kept = self.of_repaired(batch)
        if kept is not None and len(kept) == batch.size:
            return kept
        return bytes((batch.header._replace(crc=0) if self.keep.hides else batch.header).packed())

    def _is_other(self, kept: bytes, size: int) -> bool:
        """Return True if the bytes of a batch of that size were replaced by others."""
        return self.keep.hides or len(kept) != size

    def _replaced(self, row: dict[str, Any], position: int, kept: bytes) -> None:
        """Write a batch in place of which there are other bytes."""
        self.data.put(position, kept[: BATCH_HEADER.size])
        self._line(row | {"replaced": self.replaced.add(kept)}, position)
        self.is_redacted = True

    def _line(self, row: dict[str, Any], position: int) -> None:
        self.end()
        self.lines.row(position, row)
        self.position = self._start = position + row["size"]

    def _add_run(self, batches: BatchRun) -> None:
        heads, buffer, begin = batches.headers, batches.buffer, batches.start
        size = BATCH_HEADER.size
        only_control = self.keep.only_control
        attributes = heads.column(ATTRIBUTES)
        for row, (start, end) in enumerate(zip(heads.column(BATCH_START), heads.column(BATCH_END))):
            position, kept = batches.position + start - begin, None
            if not only_control or attributes[row] & CONTROL.mask:
                kept = self.keep.bytes_of(batches.batch(start))
            if kept is None:
                header = buffer[start : start + size]
                if self.keep.hides:
                    header = header[: CRC.start] + bytes(4) + header[CRC.stop :]
                self.data.put(position, header)
                self._batch(WITHHELD, end - start)
            elif self._is_other(kept, end - start):
                row_of_batch = {"kind": BATCH, "size": end - start, "header": BATCH_HEADER.read(kept)}
                self._replaced(row_of_batch, position, kept)
            else:
                self.data.put(position, kept)
                self._batch(KEPT, end - start)

    def _batch(self, kind: str, size: int) -> None:
        """Add a batch to the line."""
        if kind != self._kind or self.position - self._start >= LINE_BYTES:
            self.end()
            self._kind = kind
        self.position += size
        self.is_incomplete |= kind == WITHHELD

    def end(self) -> None:
        """Write the line that has been collected."""
        if self._kind:
            self.lines.row(self._start, {"kind": self._kind, "size": self.position - self._start})
        self._kind, self._start = "", self.position
