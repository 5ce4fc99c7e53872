"""Fast path of `inspect`: table rows in a pipe, and JSON objects of batches, from columns, many at a time.

Its output is identical to that of TableView and JsonView. Special cases are passed to them: text that is not ASCII,
control batches, records that cannot be decoded, and the first rows, which determine the widths of a table's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kdump.check.rules.records import noted_and_count_findings
from kdump.core.cells import BATCH_CELLS, BATCH_COLUMNS, RECORD_COLUMNS
from kdump.core.column_numbers import BATCH_START, RECORD_WIDTH
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns
from kdump.core.row_plan import RowPlan, json_plan
from kdump.core.row_writer import ROOM, write_batch_rows, write_batches_records, write_record_rows
from kdump.core.table_values import know_plain_characters
from kdump.log.batch_records import decode_columns, rows_of
from kdump.log.legacy_records import messages_of, read_wrapper
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import NO, Selection
from kdump.questions.inspect.fast_json import highest_id, may_decode, schemas_of
from kdump.questions.inspect.views import TableView, View
from kdump.render.line_parts import object_start, own_header
from kdump.render.stdout import Output
from kdump.render.table import GAP, SizedColumns

if TYPE_CHECKING:
    from kdump.decode.decoder_interface import Decoder
    from kdump.decode.registry_decoder import SchemaSource

IN_TABLE = (
    BATCH_COLUMNS,
    RECORD_COLUMNS | {"keyDecoded": RECORD_COLUMNS["key"], "valueDecoded": RECORD_COLUMNS["value"]},
)
"""Kinds of cells by column name, for the table of batches and for that of records."""
MAY_BE_EMPTY = ("flags", "producer", "sequences", "sequence", "headers", "key", "keyDecoded")
"""Columns that a table omits while they are empty in all rows."""


def batch_plan(target: Target) -> RowPlan:
    """Return the layout of a batch's JSON object for that file, identical to batch_object written by jsonl."""
    return json_plan(object_start("batch", target), BATCH_CELLS, b"}\n")


def table_plan(placed: SizedColumns, kinds: dict[str, int]) -> RowPlan | None:
    """Return the layout of a table's rows; None if the table shows or hides a column that cannot be written from
    columns."""
    names = [column.name for column, _ in placed.shown]
    if not kinds.keys() >= set(names) or not {column.name for column in placed.hidden} <= set(MAY_BE_EMPTY):
        return None
    return RowPlan(
        [kinds[name] for name in names],
        [b"", *[GAP.encode()] * (len(names) - 1), b"\n"],
        [width for _, width in placed.shown],
        [column.right for column, _ in placed.shown],
        [kinds[column.name] for column in placed.hidden],
    )


class FastRows:
    """Writes rows of the selected batches (`records`: of their records). `view` writes special cases, and the first
    rows of a table; `coverage` counts the batches of a search."""

    def __init__(
        self,
        output: Output,
        view: View,
        selection: Selection,
        coverage: SearchCoverage | None = None,
        *,
        records: bool,
    ) -> None:
        self.output = output
        self.view = view
        self.selection = selection
        self.coverage = coverage
        self.records = records
        self.chooses = selection.chooses_records
        self.schemas: SchemaSource | None = None
        """The schemas by which the view decodes keys and values with schema IDs."""
        self.room = bytearray(ROOM)
        self.used = 0
        self._plan: RowPlan | None = None
        self._planned: object = None

    def decode_by(self, decoder: Decoder | None) -> bool:
        """Let the view decode what has schema IDs. Returns False for any other decoder."""
        self.schemas = schemas_of(decoder)
        return decoder is None or self.schemas is not None

    def batch_run(self, target: Target, run: BatchRun) -> None:
        """Write what the view writes for each selected batch in the batch run."""
        if not run.checked or not self.selection.is_all:
            for batch in run.batches():
                if self.selection.batch(batch) != NO:
                    rows = self.batch(target, batch)
                    if self.coverage is not None:
                        self.coverage.batch(target.path, batch, rows)
            return
        heads = run.headers
        own = RecordColumns(run.buffer)
        row = 0
        while row < len(heads):
            row = self._ahead(target, heads, row, own)
            if row < len(heads):
                self.batch(target, run.batch(heads.of(row, BATCH_START)))
                row += 1
        self._flush()

    def _ahead(self, target: Target, heads: HeaderColumns, row: int, own: RecordColumns) -> int:
        """Write batches from number `row` on, up to the first special case. Returns the number of that batch."""
        plan = self._current(target)
        while plan is not None and row < len(heads):
            before = self.used
            if self.records:
                then, self.used = write_batches_records(
                    self.room, self.used, own, plan, heads, row, len(heads), [], highest_id(self.schemas)
                )
            else:
                then, self.used = write_batch_rows(self.room, self.used, heads, row, len(heads), plan)
            if then == row and not before:
                break
            if then < len(heads):
                self._flush()
            row = then
        return row

    def batch(self, target: Target, batch: Batch) -> int:
        """Write what the view writes for one batch. Returns the number of rows."""
        self._flush()
        if self.records and may_decode(self.schemas, batch):
            return self.view.batch(target, batch, self.selection.records(batch))
        if isinstance(batch, LegacyRecordBatch) and self._is_plain_wrapper(batch):
            assert batch.inner is not None
            self._rows(target, batch.inner, own_header(batch), partial(messages_of, batch))
            self._flush()
            return len(batch.inner)
        ordinary = isinstance(batch, DefaultRecordBatch) and batch.crcValid and not batch.problems
        if not self.records or not isinstance(batch, DefaultRecordBatch) or not ordinary or batch.isControlBatch:
            return self.view.batch(target, batch, self.selection.records(batch))
        heads = own_header(batch)
        count = 0
        for columns, base in decode_columns(batch):
            if self.chooses:
                self.selection.keep(batch, columns)
            self._rows(target, columns, heads, partial(rows_of, batch, base=base, index=0))
            count += len(columns)
        self._flush()
        for finding in noted_and_count_findings(target, batch):
            self.view.finding(finding)
        return count

    def _is_plain_wrapper(self, batch: LegacyRecordBatch) -> bool:
        """Return whether the batch is a wrapper of magic 1 whose messages are in columns."""
        if not self.records or not self.selection.is_all or not batch.format.has_timestamp:
            return False
        read_wrapper(batch)
        return batch.inner is not None and bool(batch.crcValid) and not batch.problems

    def _rows(
        self,
        target: Target,
        columns: RecordColumns,
        heads: HeaderColumns,
        records: Callable[[RecordColumns], Iterator[Record]],
    ) -> None:
        """Write the records in the columns; the view writes special cases, as `records` returns them."""
        row = 0
        while row < len(columns):
            plan = self._current(target)
            if plan is not None:
                row, self.used = write_record_rows(self.room, self.used, columns, row, plan, heads, 0)
                if row < len(columns) and self.used:  # perhaps there was no room
                    self._flush()
                    continue
            if row < len(columns) and not know_plain_characters():
                one = RecordColumns(columns.data)
                one.block, one.count = columns.block[row * RECORD_WIDTH : (row + 1) * RECORD_WIDTH], 1
                assert isinstance(self.view, TableView)
                for record in records(one):
                    self.view.record(record)
                row += 1

    def drain(self) -> None:
        """Do nothing: no rows are pending."""

    def _flush(self) -> None:
        if self.used:
            self.output.write_now(memoryview(self.room)[: self.used])
            self.used = 0

    def _current(self, target: Target) -> RowPlan | None:
        """Return the current row layout; None if rows cannot be written from columns."""
        if isinstance(self.view, TableView):
            table = self.view.table
            placed = None if table is None else table.placed
            if placed is not self._planned:
                self._planned = placed
                self._plan = None if placed is None else table_plan(placed, IN_TABLE[self.records])
        elif self._planned != target.path:
            self._planned, self._plan = target.path, batch_plan(target)
        return self._plan
