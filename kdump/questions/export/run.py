"""The rows of a table of a disk as Arrow record batches, one partition after the other, and findings about the bytes
that were read for them.

Without a selection, the rows are taken in the same walk in which kdump verify checks the files, so that the findings
are those of verify. With one, only what may match is read, as kdump inspect does, and the findings are about that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.rule import SegmentContext, SegmentObserver
from kdump.check.rules.bytes import region_finding
from kdump.check.rules.records import noted_and_count_findings
from kdump.check.totals import CheckTotals
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import read_problem
from kdump.io.run import ignore
from kdump.io.window import Window
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from kdump.questions.read_committed import ReadCommitted
from kdump.tables.arrow import ArrowBatch, ArrowSchema, arrow_schema
from kdump.tables.batch_rows import BatchRows
from kdump.tables.declarations import BATCHES, FINDINGS, RECORDS, REJECTED, SparkTable
from kdump.tables.disk_identity import DiskIdentity
from kdump.tables.filters import PushedFilters
from kdump.tables.fleet import Fleet
from kdump.tables.read_options import ReadOptions, TaskItem
from kdump.tables.record_rows import RecordRows
from kdump.tables.small_tables import row_of
from kdump.tables.table_plan import parts_of
from kdump.tables.table_read import TableRead, file_of
from kdump.text import path_text

ANY_SIZE = 1 << 62
"""So that segments are not split."""
Note = Callable[[str], None]


@dataclass(frozen=True)
class ExportQuery:
    """What to export: a table, or some of its columns, from partitions for which `topic` and `partition` are true;
    of records and batches, those that `selection` selects. `committed`: only what a read_committed consumer receives;
    `by_markers`: as in ReadCommitted."""

    reading: ReadOptions
    selection: Selection = field(default_factory=Selection)
    topic: Callable[[str], bool] = lambda name: True
    partition: Callable[[int | None], bool] = lambda number: True
    committed: bool = False
    by_markers: bool = False

    @property
    def table(self) -> SparkTable:
        return self.reading.table

    @property
    def second_tables(self) -> tuple[SparkTable, ...]:
        """The tables of what has no row in its own."""
        return (FINDINGS,) if self.reading.fields is None else (FINDINGS, REJECTED)

    @property
    def schema(self) -> ArrowSchema:
        return arrow_schema(self.table, self.reading.columns)

    @property
    def has_regions(self) -> bool:
        """Whether its rows are read from the batches of segments."""
        return self.is_of_records or self.table is BATCHES

    @property
    def is_of_records(self) -> bool:
        return self.table.name == RECORDS.name

    @property
    def reads_all(self) -> bool:
        return self.selection.is_all and self.reading.where is None and not self.committed

    def is_selected(self, place: Target | PartitionDirectory) -> bool:
        return (place.topic is None or self.topic(place.topic)) and self.partition(place.partition)


class Export:
    """One read. `totals` has what could not be read, and, if everything is read, what was counted."""

    def __init__(self, query: ExportQuery, check: Options, note: Note = lambda text: None) -> None:
        """`note`: called with what --read-committed leaves out, and why."""
        self.query, self.note = query, note
        self.totals = CheckTotals()
        self.check = replace(check, unreadable=self.totals.add_unreadable)
        self.read = TableRead(query.reading, check=self.check)
        self.target: Target | None = None
        """Segment of the current rows."""
        self.unjudged = 0
        """Byte ranges that belong to no batch, and may have had records that match."""
        self.identity = DiskIdentity()
        """Whose disk the current findings are about."""
        self.on_rejected: Callable[[dict[str, Any]], None] = ignore
        """Called with the rows of the table rejected."""

    def rows(self) -> Iterator[ArrowBatch | Finding]:
        """Yield the rows of the table; of records and batches also the findings that reading them shows. Raises
        OptionError for a path that does not exist."""
        if self.query.has_regions:
            yield from self._selected()
            return
        for pieces in self.read.parts():
            yield from self.read.read([piece for piece in pieces if self._wants(piece)], self.query.schema)

    def checked(self, put: Callable[[ArrowBatch], None]) -> Iterator[Finding]:
        """Yield the findings of verify, and call `put` with the rows of records or batches that the same walk reads.
        Raises OptionError as `rows` does."""
        fleet, reader = self._fleet(), self._reader() if self.query.has_regions else None
        whose = {each.place.path: each.identity for each in fleet.found}
        for unit in units_of(self.check.disks([each.place for each in fleet.found]), self.check):
            place = unit.partition or unit.target
            if place is not None and not self._is_read(place):
                continue
            source = place.source if place is not None else unit.name
            self.identity = whose.get(source) or whose[unit.name]
            state = place.state or "live" if isinstance(place, PartitionDirectory) else None
            taker = None
            if reader is not None and place is not None:
                taker = _Taker(reader, partial(self._begin, reader, TaskItem(unit, self.identity, 0, state)), put)
            yield from unit.run(self.totals, None if taker is None else taker.alone)
            for batch in reader.rest() if reader is not None else ():
                put(batch)

    def _fleet(self) -> Fleet:
        fleet = self.read.fleet()
        for _, why in fleet.unreadable:
            self.totals.problem(why)
        return fleet

    def _reader(self) -> RecordRows | BatchRows:
        arguments = self.query.reading, self.query.selection, self.query.schema
        if not self.query.is_of_records:
            return BatchRows(*arguments)
        rows = RecordRows(*arguments)
        rows.on_rejected = self.on_rejected
        return rows

    def _begin(self, reader: RecordRows | BatchRows, piece: TaskItem, target: Target, window: Window) -> None:
        self.target = target
        reader.begin(target, self.read.common(piece, target), window)

    def _is_read(self, place: Target | PartitionDirectory) -> bool:
        """Whether the rows of a partition or file are wanted: those that a broker serves, and what was named."""
        is_live = isinstance(place, Target) or not place.state or place.path in self.query.reading.paths
        return is_live and self.query.is_selected(place)

    def _wants(self, piece: TaskItem) -> bool:
        unit = piece.input
        place = unit.partition or unit.target if isinstance(unit, CheckUnit) else file_of(unit)
        return place is None or self.query.is_selected(place)

    def _selected(self) -> Iterator[ArrowBatch | Finding]:
        query, findings = self.query, list[Finding]()
        where, committed = query.reading.where, None
        if query.committed or (where is not None and where.needs.aborted):
            note = self.note if query.committed else ignore
            committed = ReadCommitted(self.check.limits, note, by_markers=query.by_markers)
        selection = replace(query.selection, gate=committed if query.committed else None)
        reader = self._reader()
        reader.selection = selection
        if isinstance(reader, RecordRows):
            reader.on_finding = findings.append
            if committed is not None:
                reader.known.of_transaction = committed.is_aborted
        scan = RegionScan(selection, self.check.limits, query.is_of_records, self.check.window, whole_runs=True)
        scan.run = self.check
        before: tuple[Any, ...] | None = None
        for piece, target, is_last in self._segments():
            place = (target.source, target.topic, target.partition)
            if before not in (None, place):
                yield from reader.rest()
            before, self.identity = place, piece.identity
            try:
                window = self.check.open(target)
            except SourceError as error:
                self.totals.add_unreadable(error)
                continue
            with closing(window.source):
                try:
                    if committed is not None:
                        window.source.keep = True
                        committed.turn_to(target, window, self.check)
                    self._begin(reader, piece, target, window)
                    part = SegmentContext(SegmentFiles("", 0, target), target, is_last, None, 0, window.source.size)
                    for region in scan.chosen(target, window):
                        yield from reader.region(region)
                        if isinstance(region, Batch) and isinstance(reader, BatchRows):
                            findings += noted_and_count_findings(target, scan.reading(region))
                        if not isinstance(region, (Batch, BatchRun)):
                            findings.append(region_finding(part, region, window.source.size))
                        yield from findings
                        findings.clear()
                    if problem := read_problem(window.source):
                        self.totals.problem(problem)
                except SourceError as error:
                    self.totals.add_unreadable(error)
        yield from reader.rest()
        if committed is not None and query.committed:
            committed.end()
        undecided = reader.known.undecided if isinstance(reader, RecordRows) else 0
        if undecided:
            count = count_text(undecided, "record that may match is", "records that may match are")
            self.note(
                f"{count} left out, because not all that the expression asks for could be decoded; see kdump find"
            )
        self.unjudged = scan.unshown - scan.zeros
        if self.unjudged:
            regions = count_text(self.unjudged, "byte range that belongs", "byte ranges that belong")
            self.note(f"{regions} to no batch, which may have matched; kdump verify reports them")

    def _segments(self) -> Iterator[tuple[TaskItem, Target, bool]]:
        """Yield the segments to read, in offset order, each with its owner and whether it is its partition's last."""
        fleet = self._fleet()
        options = replace(self.query.reading, split_bytes=ANY_SIZE, parallelism=1)
        live = [each for each in fleet.found if self._may_have_rows(each.place)]
        filters = PushedFilters(selection=self.query.selection)
        pieces = [piece for part in parts_of(Fleet(live), options, self.check, filters) for piece in part]
        places = [(each.input.target.source, each.input.target.topic, each.input.target.partition) for each in pieces]
        for number, piece in enumerate(pieces):
            target: Target = piece.input.target
            is_named = {target.path, target.path.rpartition("/")[0]} & {*self.query.reading.paths}
            if (piece.state in (None, "live") or is_named) and self.query.is_selected(target):
                yield piece, target, places[number : number + 2] != [places[number]] * 2

    def _may_have_rows(self, place: LogDirectory | PartitionDirectory | Target) -> bool:
        return isinstance(place, LogDirectory) or self.query.is_selected(place)


class _Taker(SegmentObserver):
    """Takes the rows of a scan; `turn_to` tells its reader of each segment."""

    def __init__(
        self,
        reader: RecordRows | BatchRows,
        turn_to: Callable[[Target, Window], None],
        put: Callable[[ArrowBatch], None],
    ) -> None:
        self.reader, self.turn_to, self.put = reader, turn_to, put
        self.depth = reader.depth

    def alone(self, _: object) -> list[SegmentObserver]:
        return [self]

    def begin(self, target: Target, window: Window, is_last: bool) -> None:
        self.turn_to(target, window)

    def region(self, region: Region) -> None:
        for batch in self.reader.region(region):
            self.put(batch)


def finding_row(finding: Finding, identity: DiskIdentity) -> dict[str, Any]:
    """Return the row of a finding about this disk in the table findings."""
    return {**vars(identity), **row_of(finding), "source": path_text(finding.source)}
