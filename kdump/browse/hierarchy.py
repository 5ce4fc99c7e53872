"""The hierarchy of the browser: path, log directory, partition, file, batch, record; each lists its rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from kdump.browse.hexdump_lines import HEADER, AnnotatedDump, HexDump
from kdump.browse.level import Level
from kdump.browse.open_file import OpenFile
from kdump.browse.row_factory import FileRow, RowFactory
from kdump.browse.row_listings import BrowseRow, CountedListing, FullListing
from kdump.browse.segment_pages import Pages
from kdump.browse.sorting import SortOrder
from kdump.check.engine.check_small_files import file_finding
from kdump.check.finding import Finding
from kdump.cluster.directory_summary import LogDirectorySummary, log_directory_summary, single_partition_summary
from kdump.cluster.disks import Disks
from kdump.format.count_text import plain_count
from kdump.log import file_system
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.file_kinds import BATCHES
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, Region
from kdump.log.run import PLAIN_RUN, Limits, Run
from kdump.log.selection import Selection
from kdump.render.ls_report import directory_lines, partition_lines
from kdump.state.partition_summary import PartitionSummary

FULL = 64 * 1024
"""Size in bytes of the largest item that can be shown in full."""
BEFORE, BEHIND = 5, 25
"""Records of a batch to dump: before the selected one, and from it on."""
NO_RECORDS = "the records of this batch are not in the bundle"
SAMPLE = 20
"""Entries to dump when a file is selected."""


class Places:
    """Enters rows and dumps their bytes. `selection` restricts batches and records, like inspect's options."""

    def __init__(self, path: str, maker: RowFactory, limits: Limits | None = None) -> None:
        self.path = path
        self.maker = maker
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
        found = list(find_directories(self.path, Run(unreadable=lambda error: self.unread.append(str(error)))))
        if not found:
            raise SourceError(f"{self.path}: no Kafka files here")
        place = found[0]
        if len(found) > 1 or not (isinstance(place, Target) or place.path == self.path):
            rows = [self.maker.directory(each) for each in found]
            return Level(FullListing(rows, self.maker.file_columns), None, path=self.path)
        if isinstance(place, LogDirectory):
            return self._directory(place, None)
        if isinstance(place, PartitionDirectory):
            return self._partition(single_partition_summary(place), None)
        if "://" not in place.path and not file_system.exists(place.path):
            raise SourceError(f"{place.path}: no such file or directory")
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
            for record in self.selection.records(batch):
                run.at(batch.position, None)
                yield record
            yield from batch.problems

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
        rows = [self.maker.field(n, each) for n, each in enumerate(dump.fields) if each.record == mine]
        return Level(FullListing(rows, self.maker.fields), row, level.file, path=level.path) if rows else None

    def with_finding(self, dump: HexDump, finding: Finding, width: int) -> HexDump:
        """Return the dump with the finding and its consequence above it."""
        show = AnnotatedDump(width, zone=self.maker.zone)
        show.add_finding(finding)
        return dump._replace(lines=[*show.captured.lines, *dump.lines])

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
            for text, style in directory_lines(self.facts_of(item), self.maker.zone):
                show.text(text, style)
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
    for text in partition_lines(facts):
        show.text(text)
    for segment in facts.segments:
        name = segment.segment.name
        show.text(
            f"  {name}.log  {plain_count(segment.size, 'byte')}"
            f", with {', '.join(segment.sibling_kinds) or 'no other files'}",
            "dim",
        )
    for text in facts.partition.listing_errors:
        show.text(text, "bad")
    return show.dump(label)
