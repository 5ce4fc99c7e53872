"""Fast path of `inspect`: rows of a table in a pipe, and JSON lines, from columns, many batches at a time.

Its output is identical to that of TableView and JsonView. Special cases are passed to them: batches whose checksum does
not match or whose records cannot be decoded, control batches, unusual messages of v0 and v1; in a table also text
that is not ASCII, and the first rows, which determine the widths of its columns.

Threads are sufficient, because codecs, checksums and the compiled core run without the interpreter lock;
docs/performance.md compares them with processes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from kdump.check.finding import Finding
from kdump.check.rules.records import with_findings
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BATCH_END,
    BATCH_START,
    CODEC,
    HEADER_SIZE,
    IS_CONTROL,
    RECORD_COUNT,
)
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode_all, keep_keys, may_hold_schema_ids
from kdump.core.row_plan import RowPlan
from kdump.core.row_writer import (
    MAX_LINE_BYTES,
    ROOM,
    Members,
    write_batch_rows,
    write_batches_records,
    write_record_rows,
)
from kdump.core.table_values import know_plain_characters
from kdump.decode.record_decoder import RecordDecoder, schemas_of
from kdump.format.codec.decompress_small import decompress_small
from kdump.format.codec_table import codec_name
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns, rows_of
from kdump.log.entries import Entry
from kdump.log.expression.terms import NO
from kdump.log.legacy_records import messages_of, plain_messages
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection
from kdump.questions.inspect.views import JsonView, TableView, View
from kdump.render.line_parts import (
    DAMAGED,
    MESSAGES,
    VALID,
    DecodedMembers,
    json_plans,
    may_decode,
    own_header,
    table_plan,
)
from kdump.render.stdout import Output

if TYPE_CHECKING:
    from kdump.decode.decoder_interface import Decoder
    from kdump.decode.registry_decoder import SchemaSource

HELD = 4 << 20
"""Bytes of output that a task may buffer before its turn; then it blocks."""


class OrderedPool:
    """A pool of `jobs` threads that write to `output`. Nothing else may use `output` between `submit` and `drain`."""

    def __init__(self, output: Output, jobs: int) -> None:
        self.output, self.jobs = output, jobs
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Callable[[OutputSlot], None]]] = deque()
        self._submitted = 0
        self._turn = 0
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[OutputSlot], None]) -> None:
        """Queue `work`; blocks while `jobs` tasks are waiting. Raises the exception of an earlier task, if one
        failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or len(self._waiting) < self.jobs)
            self._raise()
            self._waiting.append((self._submitted, work))
            self._submitted += 1
            self._changed.notify_all()
        if len(self._threads) < self.jobs:
            thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def drain(self) -> None:
        """Wait until all output is written. Raises the exception of a task, if one failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._turn == self._submitted)
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                number, work = self._waiting.popleft()
                self._changed.notify_all()
            turn = OutputSlot(self, number)
            try:
                work(turn)
                turn.end()
            except BaseException as error:
                with self._changed:
                    self._error = self._error or error
                    self._changed.notify_all()
                return

    def wait(self, number: int) -> None:
        """Wait until it is this task's turn to write. Raises the exception of another task: its output will never
        come."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or self._turn == number)
            self._raise()

    def done(self) -> None:
        """Pass the turn to the next task."""
        with self._changed:
            self._turn += 1
            self._changed.notify_all()


class OutputSlot(Output):
    """Output of one task: buffered until the tasks before it have written theirs."""

    def __init__(self, ordered: OrderedPool, number: int) -> None:
        self.ordered, self.number = ordered, number
        self.terminal = False
        self._parts: list[bytes] = []
        self._size = 0
        self._mine = False

    def write(self, data: bytes) -> None:
        if self._mine:
            self.ordered.output.write(data)
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= HELD:
            self._take()

    def write_now(self, data: bytes | memoryview) -> None:
        if self._mine:
            self.ordered.output.write_now(data)
        else:
            self.write(bytes(data))

    def tick(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def end(self) -> None:
        """Write what is buffered and pass on the turn."""
        self._take()
        self.ordered.output.flush()
        self.ordered.done()

    def _take(self) -> None:
        """Wait for the turn, then write what is buffered."""
        if self._mine:
            return
        self.ordered.wait(self.number)
        self._mine = True
        parts, self._parts, self._size = self._parts, [], 0
        for part in parts:
            self.ordered.output.write_now(part)


class FastView(View):
    """Writes what `view` writes, faster. With more than one of `jobs`, JSON lines of the records in batch runs are made
    in as many threads, in order, and everything else in the calling one."""

    def __init__(
        self,
        view: TableView | JsonView,
        scan: RegionScan,
        coverage: SearchCoverage | None,
        decoding: RecordDecoder,
        *,
        records: bool,
        jobs: int,
    ) -> None:
        self.output, self.view, self.scan, self.coverage, self.decoding = view.output, view, scan, coverage, decoding
        self.records = records
        self.rows = FastRows(view.output, view, scan.selection, coverage, records=records)
        self.pool = OrderedPool(view.output, jobs) if jobs > 1 and records and isinstance(view, JsonView) else None
        self._is_fast = False
        """Whether the rows of the current file are written from columns."""
        self._decodes = False
        self._several = False
        self._idle: list[FastRows] = []

    def file(self, target: Target) -> None:
        self.view.file(target)

    def begin(self, target: Target) -> None:
        decoder = self.decoding.decoder(target) if self.records else None
        self._decodes = decoder is not None
        self._is_fast = self.scan.whole_runs = self.rows.decode_by(decoder)
        if self._decodes:
            self.drain()

    def batch_run(self, target: Target, run: BatchRun) -> None:
        if self.pool is None or not self._several or self._decodes:  # a single batch run is not worth a thread
            self._several = True
            self.rows.batch_run(target, run)
            return
        self.output.flush()
        self.pool.submit(partial(self._in_thread, target, run))

    def _in_thread(self, target: Target, run: BatchRun, turn: OutputSlot) -> None:
        view = JsonView(turn, records=True)
        try:
            rows = self._idle.pop()
            rows.output, rows.view = turn, view
        except IndexError:
            rows = FastRows(turn, view, self.scan.selection, self.coverage, records=True)
        rows.batch_run(target, run)
        self._idle.append(rows)

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        self.drain()
        if self._is_fast and not reading.batch.isControlBatch:
            return self.rows.batch(target, reading)
        return self.view.batch(target, reading, records)

    def entry(self, target: Target, entry: Entry) -> int:
        self.drain()
        return self.view.entry(target, entry)

    def finding(self, finding: Finding) -> None:
        self.drain()
        self.view.finding(finding)

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.drain()
        self.view.region(target, region, window)

    def tick(self) -> None:
        if self.pool is None or not self._is_fast:  # else threads write
            self.view.tick()

    def drain(self) -> None:
        if self.pool is not None:
            self.pool.drain()

    def end(self) -> None:
        self.view.end()


class FastRows:
    """Writes rows of the selected batches (`records`: of their records) to `output`. `view` writes special cases, and
    the first rows of a table; `coverage` counts the batches of a search."""

    def __init__(
        self,
        output: Output,
        view: TableView | JsonView,
        selection: Selection,
        coverage: SearchCoverage | None = None,
        *,
        records: bool,
    ) -> None:
        self.output, self.view, self.selection, self.coverage = output, view, selection, coverage
        self.records = records
        self.keys = selection.keys
        self.in_runs = selection.is_all or (bool(self.keys) and selection.meets_all)
        """Whether the selected records are found in the columns of a batch run."""
        self.schemas: SchemaSource | None = None
        """The schemas by which the view decodes keys and values with schema IDs."""
        self.decoded: DecodedMembers | None = None
        """What is decoded of the records of the current file."""
        self.room = bytearray(ROOM)
        self.used = 0
        self.unpacked = RecordColumns(b"")
        self._plans: tuple[RowPlan | None, ...] = ()
        self._planned: object = None

    def decode_by(self, decoder: Decoder | None) -> bool:
        """Decode the records of the current file, in the calling thread. Returns False if only the view can."""
        self.schemas, self.decoded = schemas_of(decoder), None
        if decoder is None or self.schemas is not None:
            return True
        from kdump.decode.kafka_topic_decoders import KafkaDecoder

        if isinstance(self.view, JsonView) and isinstance(decoder, KafkaDecoder):
            self.decoded = DecodedMembers(decoder)
        return self.decoded is not None

    @property
    def _members(self) -> Members | None:
        return self.decoded.of if self.decoded is not None else None

    def batch_run(self, target: Target, run: BatchRun) -> None:
        """Write what the view writes for each batch of a batch run that may contain a match."""
        if run.checked and self.in_runs:
            self._checked_run(target, run)
            return
        look = None if self.selection.is_all else self.selection.batch
        for batch in run.batches():
            if look is None or look(batch) != NO:
                self._special(target, batch)

    def _special(self, target: Target, batch: Batch) -> None:
        """Write a batch of a run that is a special case."""
        reading = Reading(batch)
        rows = self.batch(target, reading)
        if self.coverage is not None:
            self.coverage.batch(target.path, reading, rows)

    def _checked_run(self, target: Target, run: BatchRun) -> None:
        """Write a checked batch run, most batches without creating an object."""
        heads, columns = run.headers, RecordColumns(run.buffer)
        more = -1 if self.schemas is None else self.schemas.highest_id, self._members
        row, count = 0, len(heads)
        while row < count:
            plan, before = self._plan(target, VALID), row
            if plan is not None and self.records:
                row, self.used = write_batches_records(
                    self.room, self.used, columns, plan, heads, row, count, self.keys, *more
                )
            elif plan is not None:
                row, self.used = write_batch_rows(self.room, self.used, heads, row, count, plan)
            if row == count:
                break
            if self.used and row > before:  # perhaps it only lacked room
                self._flush()
                continue
            if not self._compressed(target, run, row):
                self._special(target, run.batch(heads.of(row, BATCH_START)))
            row += 1
        self._flush()

    def _compressed(self, target: Target, run: BatchRun, number: int) -> bool:
        """Write the lines of the run's batch with that number, which is compressed. Returns False, without writing any
        of them, for special cases."""
        header = run.headers.row(number)
        place, codec = header[BATCH_START], header[ATTRIBUTES] & CODEC
        if not self.records or not codec or header[ATTRIBUTES] & IS_CONTROL:
            return False
        payload = memoryview(run.buffer)[place + HEADER_SIZE : header[BATCH_END]]
        unpacked = decompress_small(codec_name(codec), payload, run.limits.max_decompressed_size)
        if unpacked is None:
            return False
        columns = self.unpacked
        columns.data = unpacked
        if not decode_all(columns, 0, len(unpacked), header[RECORD_COUNT]):
            return False
        if self.schemas is not None and may_hold_schema_ids(columns, self.schemas.highest_id):
            return False
        if self.keys:
            keep_keys(columns, self.keys)
        self._rows(target, columns, VALID, run.headers, number, lambda one: rows_of(run.batch(place), one, 0, 0))
        return True

    def batch(self, target: Target, reading: Reading[Batch]) -> int:
        """Write what the view writes for one batch. Returns the number of rows."""
        batch = reading.batch
        if self.used:
            self._flush()
        is_decoded = may_decode(self.schemas, batch) or (self.decoded is not None and not _is_valid_v2(batch))
        if self.records and not batch.isControlBatch and not is_decoded:
            if isinstance(batch, LegacyRecordBatch):
                columns = plain_messages(batch)
                if columns is not None and self._is_plain(reading):
                    return self._wrapper(target, batch, columns)
            elif isinstance(batch, DefaultRecordBatch) and (isinstance(self.view, JsonView) or _is_sound(reading)):
                return self._batch(target, reading)
        return self.view.batch(target, reading, self.selection.records(reading))

    def _is_plain(self, reading: Reading[Batch]) -> bool:
        """Return whether the messages of a wrapper can be written from columns."""
        has_columns = isinstance(self.view, JsonView) or reading.batch.format.has_timestamp
        return self.in_runs and _is_sound(reading) and has_columns

    def _wrapper(self, target: Target, batch: LegacyRecordBatch, inner: RecordColumns) -> int:
        if self.keys:
            keep_keys(inner, self.keys)
        self._rows(target, inner, MESSAGES[batch.magic], own_header(batch), 0, partial(messages_of, batch))
        self._flush()
        return len(inner)

    def _batch(self, target: Target, reading: Reading[Any]) -> int:
        batch: DefaultRecordBatch = reading.batch
        which = VALID if batch.crcValid else DAMAGED
        heads, chooses, count = None, self.selection.chooses_records, 0
        for columns, base in with_findings(target, reading, decode_columns(reading), self._finding):
            if chooses:
                self.selection.keep(batch, columns)
            if len(columns):
                heads = heads or own_header(batch)
                self._rows(target, columns, which, heads, 0, partial(rows_of, batch, base=base, index=0))
                count += len(columns)
        self._flush()
        return count

    def _finding(self, finding: Finding) -> None:
        self._flush()
        self.view.finding(finding)

    def _rows(
        self,
        target: Target,
        columns: RecordColumns,
        which: int,
        heads: HeaderColumns,
        number: int,
        records: Callable[[RecordColumns], Iterator[Record]],
    ) -> None:
        """Write the records in the columns, which belong to batch `number`; the view writes special cases, as `records`
        returns them."""
        row, members = 0, self._members
        while row < len(columns):
            plan = self._plan(target, which)
            if plan is not None:
                row, self.used = write_record_rows(self.room, self.used, columns, row, plan, heads, number, members)
                if row == len(columns):
                    break
                if self.used:  # perhaps there was no room
                    self._flush()
                    continue
                need = plan.record_bytes(columns, row)
                if len(self.room) < need <= MAX_LINE_BYTES:
                    self.room = bytearray(need)
                    continue
                if isinstance(self.view, TableView) and know_plain_characters():
                    continue
            for record in records(columns.only(row)):
                reading = self.decoded.decode(record.key, record.value) if self.decoded is not None else None
                self.view.record(target, record, reading)
            self._matched()
            row += 1

    def _matched(self) -> None:
        if self.coverage is not None:
            self.coverage.matched = True

    def _flush(self) -> None:
        if self.used:
            self.output.write_now(memoryview(self.room)[: self.used])
            self.used = 0
            self._matched()

    def _plan(self, target: Target, which: int) -> RowPlan | None:
        """Return the current layout of rows of a kind (see json_plans); None if they cannot be written from columns."""
        if isinstance(self.view, JsonView):
            if self._planned != target.path:
                self._planned, self._plans = target.path, json_plans(target, records=self.records)
            return self._plans[which]
        table = self.view.table
        placed = None if table is None else table.placed
        if placed is not self._planned:
            self._planned, self._plans = placed, (None if placed is None else table_plan(placed, records=self.records),)
        return self._plans[0] if self._plans else None


def _is_valid_v2(batch: Batch) -> bool:
    return isinstance(batch, DefaultRecordBatch) and batch.crcValid


def _is_sound(reading: Reading[Batch]) -> bool:
    return reading.batch.crcValid and not reading.problems
