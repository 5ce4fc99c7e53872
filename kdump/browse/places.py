"""The hierarchy of the browser: path, log directory, partition, file, batch, record; each lists its rows, in the same
columns as other commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timezone, tzinfo
from functools import partial
from itertools import islice
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, Cell, Doc, Shown
from kdump.browse.lines import HEADER, AnnotatedDump, HexDump, HexField
from kdump.browse.listings import BrowseRow, CountedListing, FullListing, Level, OpenFile, SortOrder
from kdump.browse.segment_pages import Pages, as_if_valid, is_unchecked
from kdump.check.engine.check_small_files import file_finding
from kdump.check.finding import Finding
from kdump.cluster.directory_summary import LogDirectorySummary, log_directory_summary, single_partition_summary
from kdump.cluster.disks import Disks
from kdump.cluster.partition_summary import PartitionSummary
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.count_text import plain_count
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.log.batch_validity import impossible_count
from kdump.log.entries import Entry, entries
from kdump.log.file_kinds import BATCHES
from kdump.log.find_directories import find_directories
from kdump.log.legacy_records import read_wrapper
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, Defect, LegacyRecordBatch, Region
from kdump.log.selection import Selection
from kdump.questions.inspect.columns import TableDecoder, columns_of
from kdump.questions.ls.report import directory_lines, partition_lines
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.state_tables import table_columns
from kdump.render.table import Column

FULL = 64 * 1024
"""Size in bytes of the largest item that can be shown in full."""
BEFORE, BEHIND = 5, 25
"""Records of a batch to dump: before the selected one, and from it on."""
NO_RECORDS = "the records of this batch are not in the bundle"
SAMPLE = 20
"""Entries to dump when a file is selected."""
CHECKED = 64 * 1024
"""Size in bytes of the largest batch whose checksum is computed for its row; for larger ones, only when selected."""
LABEL = 40
"""Maximum characters of a key in the tree."""


class FileRow(NamedTuple):
    """A directory, partition or file as the table shows it: its name, and data from the directory and the checkpoints,
    by the names of their columns. Sizes in bytes, times in epoch ms."""

    name: Annotated[str, Shown(least=24, cuts=NAME)]
    what: Annotated[str, Shown(rank=3, least=12, after="highWatermark")]
    size: Annotated[int | None, Shown(after="segments"), Cell(size_text)]
    modified: Annotated[int | None, Doc(unit=EPOCH_MS), Shown(rank=4, after="what")] = None
    segments: Annotated[int | None, Shown(rank=5)] = None
    logStartOffset: Annotated[int | None, Shown("logStart", 6, after="size")] = None
    highWatermark: Annotated[int | None, Shown(rank=7, after="logStartOffset")] = None


class RowFactory:
    """Builds rows, with times in `zone`, and with the topic's decoder for keys and values."""

    def __init__(self, zone: tzinfo = timezone.utc) -> None:
        self.zone = zone
        self.decoding = RecordDecoder(DecodeOptions())
        self.file_columns = table_columns(FileRow, zone)
        self.fields = table_columns(HexField)
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
            description = f"{region.kind}: {plain_count(region.size, 'byte')} at {region.position}..{region.end - 1}"
            description += f": {region.reason}" if region.reason else ""
            return BrowseRow("region", region.position, region, region.kind, (), printable(description), region.kind)
        if isinstance(region, LegacyRecordBatch):
            read_wrapper(region)
        shown = as_if_valid(region) if is_unchecked(region) and region.size > CHECKED else region
        cells = [column.cell(shown) for column in self.batches]
        if shown is not region:
            cells[self._flags] = ",".join(filter(None, (cells[self._flags], "crc?")))
        bad = shown is region and (not region.crcValid or bool(region.problems))
        style = "bad" if bad or impossible_count(region) is not None else "control" if region.isControlBatch else ""
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
        style = "bad" if record.is_damaged else "control" if record.is_control else ""
        return BrowseRow("record", number, record, f"{offset} {key[:LABEL]}", cells, style=style)

    def problem(self, number: int, problem: Defect) -> BrowseRow:
        """Return the row of a problem, shown instead of data that cannot be read."""
        description = f"! {problem.code}: {problem.struct}.{problem.field} at {problem.position}: {problem.reason}"
        return BrowseRow("note", number, problem, "!", (), printable(description), "bad")

    def entry(self, number: int, entry: Entry | Region | Defect) -> BrowseRow:
        """Return the row of an entry of a file without batches, or of bytes that are not an entry."""
        if isinstance(entry, Defect):
            return self.problem(number, entry)
        if isinstance(entry, Region):
            return self.region(entry)._replace(key=number, item=entry)
        if not entry.type:
            fields = ", ".join(f"{key} {value}" for key, value in entry.values.items())
            description = printable(
                path_text(f"{entry.what or 'line'}: {fields}" if fields else entry.what or "an empty line")
            )
            return BrowseRow("entry", number, entry, printable(entry.what) or "line", (), description, "dim")
        columns = self.entries(entry.type)
        cells = tuple(column.cell(entry) for column in columns)
        return BrowseRow("entry", number, entry, " ".join(filter(None, cells[:2]))[:LABEL], cells)

    def field(self, number: int, field: HexField) -> BrowseRow:
        cells = tuple(column.cell(field) for column in self.fields)
        style = "bad" if field.wrong else ""
        return BrowseRow("field", number, field, f"{field.name} {field.value}".strip(), cells, style=style)


def _decoded(columns: list[Column]) -> bool:
    return any(column.name == "keyDecoded" for column in columns)


class Places:
    """Enters rows and dumps their bytes. `selection` restricts batches and records, like inspect's options."""

    def __init__(self, path: str, maker: RowFactory, limits: Limits | None = None) -> None:
        self.path, self.maker = path, maker
        self.limits = limits or Limits()
        self.selection = Selection()
        self.unread: list[str] = []
        self.orders: dict[str, SortOrder] = {}
        """Orders of lists of directories, partitions and files, by the path that they list."""

    def top(self) -> Level:
        """Return the top level. Raises SourceError if the path contains no Kafka files."""
        return self._in_order(self._top())

    def _in_order(self, level: Level) -> Level:
        """Return the level in the order that was chosen for its path."""
        order = self.orders.get(level.path)
        if order is None or level.file is not None or order.column not in (each.name for each in level.listing.columns):
            return level
        return level.sorted(order, PLAIN_RUN)

    def _top(self) -> Level:
        self.unread = []
        places = list(find_directories(self.path, Run(unreadable=lambda error: self.unread.append(str(error)))))
        if not places:
            raise SourceError.at(self.path, "no Kafka files here")
        place = places[0]
        if len(places) > 1 or not (isinstance(place, Target) or place.path == self.path):
            rows = [self.maker.directory(entry) for entry in places]
            return Level(FullListing(rows, self.maker.file_columns), None, path=self.path)
        if isinstance(place, LogDirectory):
            return self._directory(place, None)
        if isinstance(place, PartitionDirectory):
            return self._partition(single_partition_summary(place), None)
        if "://" not in place.path and not file_system.exists(place.path):
            raise SourceError.at(place.path, "no such file or directory")
        return self._file(place, None)

    def into(self, row: BrowseRow, level: Level) -> Level | None:
        """Return the contents of a row of `level`; None for a field or a note. Raises SourceError."""
        inside = self._into(row, level)
        return None if inside is None else self._in_order(inside)

    def _into(self, row: BrowseRow, level: Level) -> Level | None:
        item = row.item
        if row.type == "directory":
            return self._directory(item, row)
        if row.type == "partition":
            return self._partition(item if isinstance(item, PartitionSummary) else single_partition_summary(item), row)
        if row.type == "file":
            return self._file(item, row)
        if row.type == "batch":
            return self._records(item, row, level)
        if row.type in ("header", "record", "entry", "region"):
            return self._fields(row, level)
        return None

    def facts_of(self, place: LogDirectory) -> LogDirectorySummary:
        """Return the summary of a log directory."""
        return log_directory_summary(place, Disks.at([self.path]))

    def _directory(self, place: LogDirectory, owner: BrowseRow | None) -> Level:
        facts = self.facts_of(place)
        rows = []
        for part in sorted(
            facts.partitions, key=lambda each: (bool(each.partition.state), each.topic, each.partition.partition or 0)
        ):
            description = f"NOT LIVE: {part.partition.state}" if part.partition.state else ""
            description = description or ("UNREADABLE" if part.partition.listing_errors else "")
            row = FileRow(
                part.name, description, part.size, None, len(part.segment_sizes), part.log_start, part.high_watermark
            )
            rows.append(self.maker.file_row("partition", part.partition.path, part, row, "torn" if description else ""))
        rows += [self.maker.file(target) for target in (*place.files.values(), *place.others)]
        ends = {True: "shut down cleanly", False: "NO CLEAN SHUTDOWN: the broker is running or has crashed"}
        words = [f"node {facts.identity['node.id']}"] if "node.id" in facts.identity else []
        words += [ends[facts.clean]] if facts.clean is not None else []
        words += [f"damaged: {', '.join(facts.broken)}"] if facts.broken else []
        return Level(FullListing(rows, self.maker.file_columns), owner, path=place.path, about=", ".join(words))

    def _partition(self, facts: PartitionSummary, owner: BrowseRow | None) -> Level:
        place = facts.partition
        self.unread += place.listing_errors
        logs = [segment.log for segment in place.segments if segment.log is not None]
        others = [target for target in place.files() if target not in logs]
        rows = [self.maker.file(target) for target in (*logs, *others)]
        return Level(FullListing(rows, self.maker.file_columns), owner, path=place.path, is_partition=True)

    def _file(self, target: Target, owner: BrowseRow | None) -> Level:
        file = OpenFile(target)
        kind = file.kind
        if kind in BATCHES:
            pages = Pages(file, self.selection, self.limits, self.maker.batches, self.maker.region)
            return Level(pages, owner, file, path=target.path)

        def items(run: Run) -> Iterator[Any]:
            for item in entries(kind, file.window, target.name_offset or 0):
                run.at(getattr(item, "position", 0), None)
                yield item

        first = islice(items(PLAIN_RUN), SAMPLE)
        type_name = next((item.type for item in first if isinstance(item, Entry) and item.type), "")
        columns = self.maker.entries(type_name) if type_name else []
        return Level(CountedListing(items, self.maker.entry, columns), owner, file, path=target.path)

    def _records(self, batch: Batch, owner: BrowseRow, level: Level) -> Level:
        assert level.file is not None
        columns = self.maker.records(level.file.target)

        def items(run: Run) -> Iterator[Any]:
            yield batch
            if batch.lacks:
                yield NO_RECORDS
                return
            reading = Reading(batch)
            for record in self.selection.records(reading):
                run.at(batch.position, None)
                yield record
            yield from reading.problems

        def row(number: int, item: Any) -> BrowseRow:
            if item is batch:
                return self.maker.header(batch)
            if isinstance(item, Record):
                return self.maker.record(number, item, columns)
            if item is NO_RECORDS:
                return BrowseRow("note", number, item, "…", (), NO_RECORDS, "dim")
            return self.maker.problem(number, item)

        return Level(CountedListing(items, row, columns), owner, level.file, path=level.path)

    def _fields(self, row: BrowseRow, level: Level) -> Level | None:
        dump = self.dump(row, level, 200, fields=True)
        mine = row.item.index if row.type == "record" else HEADER
        rows = [self.maker.field(n, field) for n, field in enumerate(dump.fields) if field.record == mine]
        return Level(FullListing(rows, self.maker.fields), row, level.file, path=level.path) if rows else None

    def with_finding(self, dump: HexDump, finding: Finding, width: int) -> HexDump:
        """Return the dump with the finding and its consequence above it."""
        show = AnnotatedDump(width, zone=self.maker.zone)
        show.add_finding(finding)
        return dump._replace(lines=[*show.lines, *dump.lines])

    def dump(self, row: BrowseRow, level: Level, width: int, *, full: bool = False, fields: bool = False) -> HexDump:
        """Return the annotated bytes of a row of `level`, or a directory's or partition's summary. Raises
        SourceError."""
        item: Any = row.item
        whole = full and getattr(item, "size", None) is not None and item.size <= FULL
        whole = whole or (row.type == "record" and full and len(item.raw) <= FULL)
        show = AnnotatedDump(width, full=whole or fields, zone=self.maker.zone, decoding=self.maker.decoding)
        file = level.file
        show.target = file.target if file else None
        if row.type == "directory":
            for line, style in directory_lines(self.facts_of(item), self.maker.zone):
                show.text(line, style)
            return show.dump(row.label)
        if row.type == "partition":
            facts = item if isinstance(item, PartitionSummary) else single_partition_summary(item)
            return _partition_dump(show, facts, row.label)
        if row.type == "file":
            return self._file_dump(show, item, row.label)
        if row.type in ("batch", "header"):
            return self._batch_dump(show, item, 0, BEHIND if not fields else 0)
        if row.type == "record":
            if fields:
                return self._batch_dump(show, item.batch, item.index, 1)
            return self._batch_dump(show, item.batch, max(0, item.index - BEFORE), BEFORE + BEHIND)
        assert file is not None
        if row.type == "region":
            show.region(item, file.window)
            return show.dump(f"{item.kind} at {item.position}..{item.end - 1}")
        if isinstance(item, Entry):
            show.entry(item)
            return show.dump(f"bytes {item.position}..{item.position + item.size - 1}")
        show.text(row.text, row.style)
        return show.dump("")

    def _batch_dump(self, show: AnnotatedDump, batch: Batch, first: int, count: int) -> HexDump:
        if batch.lacks:
            show.header_of(batch, NO_RECORDS)
            return show.dump(f"bytes {batch.position}..{batch.end - 1}")
        chosen = (record for record in self.selection.records(batch) if record.index >= first)
        show.records_of(batch, islice(chosen, count))
        return show.dump(f"bytes {batch.position}..{batch.end - 1}", (first, first + count - 1))

    def _file_dump(self, show: AnnotatedDump, target: Target, label: str) -> HexDump:
        """Return a dump of the beginning of a file."""
        file = OpenFile(target)
        try:
            show.target = target
            show.text(f"{label}: {file.kind.title}, {file.size} bytes", "head")
            if file.kind in BATCHES:
                level = self._file(target, None)
                assert level.file is not None
                part = level.listing.head(1, PLAIN_RUN)
                for row in part.rows:
                    if row.type == "batch" and row.item.lacks:
                        show.header_of(row.item, NO_RECORDS)
                    elif row.type == "batch":
                        show.records_of(row.item, islice(self.selection.records(row.item), 1))
                    else:
                        show.region(row.item, level.file.window)
                level.file.close()
            else:
                for item in islice(entries(file.kind, file.window, target.name_offset or 0), SAMPLE):
                    if isinstance(item, Entry):
                        show.entry(item)
                    elif isinstance(item, Region):
                        show.region(item, file.window)
                    else:
                        show.finding(file_finding(target, item))
        finally:
            file.close()
        return show.dump(label)


def _partition_dump(show: AnnotatedDump, facts: PartitionSummary, label: str) -> HexDump:
    show.text(label, "head")
    for line in partition_lines(facts):
        show.text(line)
    for segment in facts.segments:
        name = segment.segment.name
        show.text(
            f"  {name}.log  {plain_count(segment.size, 'byte')}"
            f", with {', '.join(segment.sibling_kinds) or 'no other files'}",
            "dim",
        )
    for line in facts.partition.listing_errors:
        show.text(line, "bad")
    return show.dump(label)
