"""Builds rows from items of every kind: their cells, in the same columns as in other commands, and their styles."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timezone, tzinfo
from functools import partial
from typing import Any, NamedTuple

from kdump.browse.hexdump_lines import HexField
from kdump.browse.row_listings import BrowseRow
from kdump.browse.segment_pages import as_if_valid, is_unchecked
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.count_text import plain_count
from kdump.log import file_system
from kdump.log.batch_validity import impossible_count
from kdump.log.entries import Entry
from kdump.log.legacy_records import read_wrapper
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, LegacyRecordBatch, Problem, Region
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.inspect_columns import TableDecoder, columns_of
from kdump.render.table import NAME, Column
from kdump.render.times import iso

CHECKED = 64 * 1024
"""Size in bytes of the largest batch whose checksum is computed for its row; for larger ones, only when selected."""
LABEL = 40
"""Maximum characters of a key in the tree."""


class FileRow(NamedTuple):
    """A directory, partition or file as the table shows it: its name, and data from the directory and the checkpoints,
    by the names of their columns. Sizes in bytes, times in epoch ms."""

    name: str
    what: str
    size: int | None
    modified: int | None = None
    segments: int | None = None
    logStartOffset: int | None = None
    highWatermark: int | None = None


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def file_columns(zone: tzinfo) -> list[Column]:
    """Return the columns for directories, partitions and files."""
    return [
        Column("name", "name", lambda t: t.name, least=24, cuts=NAME),
        Column("segments", "segments", lambda t: _number(t.segments), right=True, rank=5),
        Column("size", "size", lambda t: "" if t.size is None else size_text(t.size), right=True),
        Column("logStartOffset", "logStart", lambda t: _number(t.logStartOffset), right=True, rank=6),
        Column("highWatermark", "highWatermark", lambda t: _number(t.highWatermark), right=True, rank=7),
        Column("what", "what", lambda t: t.what, rank=3, least=12),
        Column("modified", "modified", lambda t: "" if t.modified is None else iso(t.modified, zone), rank=4),
    ]


def field_columns() -> list[Column]:
    """Return the columns for the fields of a batch or a record."""
    return [
        Column("name", "field", lambda f: f.name),
        Column("value", "value", lambda f: f.value, rank=8),
        Column("meaning", "meaning", lambda f: (f"WRONG: {f.wrong}; " if f.wrong else "") + f.meaning, least=12),
        Column("position", "position", lambda f: f"+{f.position}" if f.inner else str(f.position), right=True, rank=5),
        Column("size", "size", lambda f: str(f.size), right=True, rank=3),
        Column("bytes", "bytes", lambda f: f.data.hex(" "), rank=1, least=12),
    ]


class RowFactory:
    """Builds rows, with times in `zone`, and with the topic's decoder for keys and values."""

    def __init__(self, zone: tzinfo = timezone.utc, decode: DecodeOptions | None = None) -> None:
        self.zone = zone
        self.decoding = RecordDecoder(decode or DecodeOptions())
        self.file_columns = file_columns(zone)
        self.fields = field_columns()
        self.batches = columns_of("batch", zone, None, False)
        self._flags = [column.name for column in self.batches].index("flags")

    def records(self, target: Target) -> list[Column]:
        """Return the columns for the records of a file."""
        return columns_of("record", self.zone, None, False, self._decodes(target))

    def entries(self, type_name: str) -> list[Column]:
        """Return the columns for entries of this type."""
        return columns_of(type_name, self.zone, None, False)

    def _decodes(self, target: Target) -> TableDecoder | None:
        decoder = self.decoding.decoder(target)
        if decoder is None:
            return None
        return TableDecoder(partial(self.decoding.read, target), decoder.is_keyless, decoder.is_wide)

    def file_row(self, type_name: str, key: str, item: Any, facts: FileRow, style: str = "") -> BrowseRow:
        """Return the row of a directory, partition or file; `key` is its path."""
        shown = facts._replace(name=printable(path_text(facts.name)), what=printable(path_text(facts.what)))
        cells = tuple(column.cell(shown) for column in self.file_columns)
        return BrowseRow(type_name, key, item, shown.name, cells, style=style, facts=facts)

    def directory(self, place: LogDirectory | PartitionDirectory | Target) -> BrowseRow:
        """Return the row of one of several places below a path."""
        if isinstance(place, LogDirectory):
            shown = FileRow(place.path, f"log directory, {plain_count(len(place.partitions), 'partition')}", None)
            return self.file_row("directory", place.path, place, shown)
        if isinstance(place, PartitionDirectory):
            return self.file_row("partition", place.path, place, FileRow(place.path, "partition", None))
        return self.file(place)

    def file(self, target: Target) -> BrowseRow:
        size: int | None = None
        modified: int | None = None
        with suppress(OSError):
            status = file_system.stat(target.path)
            size, modified = status.st_size, status.st_mtime_ns // 1_000_000
        description = target.kind.title.removeprefix("a ").removeprefix("an ") if target.kind else "not a file of Kafka"
        style = "" if target.kind is not None and target.kind.name in ("segment", "kraft-snapshot") else "dim"
        return self.file_row(
            "file", target.path, target, FileRow(os.path.basename(target.path), description, size, modified), style
        )

    def region(self, region: Region) -> BrowseRow:
        """Return the row of a batch, or of bytes that belong to no batch."""
        if not isinstance(region, Batch):
            text = f"{region.kind}: {plain_count(region.size, 'byte')} at {region.position}..{region.end - 1}"
            text += f": {region.reason}" if region.reason else ""
            return BrowseRow("region", region.position, region, region.kind, (), printable(text), region.kind)
        if isinstance(region, LegacyRecordBatch):
            read_wrapper(region)
        shown = as_if_valid(region) if is_unchecked(region) and region.size > CHECKED else region
        cells = [column.cell(shown) for column in self.batches]
        if shown is not region:
            cells[self._flags] = ",".join(filter(None, (cells[self._flags], "crc?")))
        bad = (shown is region and bool(not region.crcValid or region.problems)) or impossible_count(region) is not None
        style = "bad" if bad else "control" if region.isControlBatch else ""
        base = region.baseOffset
        label = f"{region.lastOffset}" if base in (None, region.lastOffset) else f"{base}..{region.lastOffset}"
        return BrowseRow("batch", region.position, region, label, tuple(cells), style=style)

    def header(self, batch: Batch) -> BrowseRow:
        """Return the row before the records of a batch, which leads to the fields of the batch header."""
        return BrowseRow("header", 0, batch, "header", (), "header: press Enter for its fields", "dim")

    def record(self, number: int, record: Record, columns: list[Column]) -> BrowseRow:
        cells = tuple(column.cell(record) for column in columns)
        key = cells[[column.name for column in columns].index("keyDecoded" if _decoded(columns) else "key")]
        offset = "?" if record.offset is None else record.offset
        bad = record.crcValid is False or not record.batch.crcValid
        style = "bad" if bad else "control" if record.is_control else ""
        return BrowseRow("record", number, record, f"{offset} {key[:LABEL]}", cells, style=style)

    def problem(self, number: int, problem: Problem) -> BrowseRow:
        """Return the row of a problem, shown instead of data that cannot be read."""
        text = f"! {problem.code}: {problem.struct}.{problem.field} at {problem.position}: {problem.reason}"
        return BrowseRow("note", number, problem, "!", (), printable(text), "bad")

    def entry(self, number: int, entry: Entry | Region | Problem) -> BrowseRow:
        """Return the row of an entry of a file without batches, or of bytes that are not an entry."""
        if isinstance(entry, Problem):
            return self.problem(number, entry)
        if isinstance(entry, Region):
            return self.region(entry)._replace(key=number, item=entry)
        if not entry.type:
            fields = ", ".join(f"{key} {value}" for key, value in entry.values.items())
            text = printable(
                path_text(f"{entry.what or 'line'}: {fields}" if fields else entry.what or "an empty line")
            )
            return BrowseRow("entry", number, entry, printable(entry.what) or "line", (), text, "dim")
        columns = self.entries(entry.type)
        cells = tuple(column.cell(entry) for column in columns)
        return BrowseRow("entry", number, entry, " ".join(filter(None, cells[:2]))[:LABEL], cells)

    def field(self, number: int, field: HexField) -> BrowseRow:
        cells = tuple(column.cell(field) for column in self.fields)
        style = "bad" if field.wrong else ""
        return BrowseRow("field", number, field, f"{field.name} {field.value}".strip(), cells, style=style)


def _decoded(columns: list[Column]) -> bool:
    return any(column.name == "keyDecoded" for column in columns)
