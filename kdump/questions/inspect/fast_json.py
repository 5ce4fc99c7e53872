"""Fast path of `inspect --records --json`: converts columns to lines, many batches at a time.

Its output is identical to that of JsonView. Special cases are passed to JsonView: batches whose checksum does not match
or whose records cannot be decoded, control batches, the old formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kdump import jsonl
from kdump.answer import answer_object
from kdump.check.finding import Finding
from kdump.check.rules.records import noted_and_count_findings, noted_findings
from kdump.core.cells import MESSAGE_V0_CELLS, MESSAGE_V1_CELLS, RECORD_CELLS
from kdump.core.column_numbers import BATCH_START, RECORD_WIDTH
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns, decode_all, keep_keys, may_hold_schema_ids
from kdump.core.row_plan import RowPlan, json_plan
from kdump.core.row_writer import MAX_LINE_BYTES, ROOM, Members, bytes_needed, write_batches_records, write_record_rows
from kdump.decode.record_decoder import KeyValueDecoder
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.codec.decompress_small import decompress_small
from kdump.log.batch_records import decode_columns, rows_of
from kdump.log.paths import Target
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import NO, Selection
from kdump.render.decoded_lines import DecodedMembers
from kdump.render.inspect_json import record_line
from kdump.render.line_parts import object_start, own_header
from kdump.render.ordered_pool import OrderedPool, OutputSlot
from kdump.render.stdout import Output

if TYPE_CHECKING:  # views are created by the caller
    from kdump.decode.decoder_interface import Decoder
    from kdump.decode.record_decoder import RecordDecoder
    from kdump.decode.registry_decoder import SchemaSource
    from kdump.questions.inspect.views import View

PlainBatchWriter = Callable[[Target, Batch], int]


class RecordPlans(NamedTuple):
    """Layouts of the JSON objects of a file's records."""

    valid: RowPlan
    damaged: RowPlan
    """In a batch whose checksum does not match."""
    messages: tuple[RowPlan, RowPlan]
    """In a wrapper of magic 0 or 1."""


def highest_id(schemas: SchemaSource | None) -> int:
    """Return the argument of write_batches_records of that name."""
    return -1 if schemas is None else schemas.highest_id


def schemas_of(decoder: Decoder | None) -> SchemaSource | None:
    """Return the schemas of a decoder by schema IDs, if it is one."""
    return decoder.schemas if isinstance(decoder, KeyValueDecoder) else None


def may_decode(schemas: SchemaSource | None, batch: Batch) -> bool:
    """Return whether a key or value in the batch may hold the ID of one of these schemas."""
    if schemas is None or batch.isControlBatch:
        return False
    if isinstance(batch, LegacyRecordBatch):
        return True
    assert isinstance(batch, DefaultRecordBatch)
    return any(may_hold_schema_ids(columns, schemas.highest_id) for columns, _ in decode_columns(batch))


def record_plans(target: Target) -> RecordPlans:
    """Return the layouts for that file."""
    start = object_start("record", target)
    return RecordPlans(
        json_plan(start, RECORD_CELLS, b"}\n"),
        json_plan(start, RECORD_CELLS | {"damaged": b"true"}, b"}\n"),
        (json_plan(start, MESSAGE_V0_CELLS, b"}\n"), json_plan(start, MESSAGE_V1_CELLS, b"}\n")),
    )


def record_lines(
    target: Target,
    batch: DefaultRecordBatch,
    columns: RecordColumns,
    base: int,
    plan: RowPlan,
    heads: HeaderColumns,
    room: bytearray | None = None,
    decoded: DecodedMembers | None = None,
) -> Iterator[bytes | memoryview]:
    """Yield the lines of the columns' records, as views of `room` that are valid until the next one is requested.
    `heads`: the columns of the batch's header; `decoded`: what is decoded of a record."""
    members = decoded.of if decoded is not None else None
    room = bytearray(ROOM) if room is None else room
    view = memoryview(room)
    row = 0
    while row < len(columns):
        row, used = write_record_rows(room, 0, columns, row, plan, heads, 0, members)
        if used:
            yield view[:used]
            continue
        need = bytes_needed(columns, row, plan)
        if len(room) < need <= MAX_LINE_BYTES:
            room = bytearray(need)
            view = memoryview(room)
            continue
        one = RecordColumns(columns.data)
        one.block, one.count = columns.block[row * RECORD_WIDTH : (row + 1) * RECORD_WIDTH], 1
        for record in rows_of(batch, one, base, 0):
            reading = decoded.decode(record.key, record.value) if decoded is not None else None
            yield from record_line(target, record, reading)
        row += 1


class FastRecordLines:
    """Writes the lines of the batches' matching records. `plain` writes a control batch; `coverage` counts the batches
    of a search."""

    def __init__(
        self, output: Output, selection: Selection, plain: PlainBatchWriter, coverage: SearchCoverage | None = None
    ) -> None:
        self.output = output
        self.plain = plain
        self.coverage = coverage
        self.selection = selection
        self.chooses = selection.chooses_records
        self.room = bytearray(ROOM)
        self.used = 0
        self._path: str | None = None
        self._made: RecordPlans | None = None
        self.unpacked = RecordColumns(b"")
        self.keys = list(selection.keys)
        self.only_keys = selection == Selection(keys=selection.keys)
        self.schemas: SchemaSource | None = None
        """The schemas by which `plain` decodes keys and values with schema IDs."""
        self.decoded: DecodedMembers | None = None
        """What is decoded of the records of the current file."""

    def batch_run(self, target: Target, run: BatchRun) -> None:
        """Write what JsonView writes for each batch of a batch run that may contain a match."""
        if run.checked and (self.selection.is_all or self.only_keys):
            self._checked_run(target, run)
            return
        look = self.selection.batch if not self.selection.is_all else None
        for batch in run.batches():
            if look is None or look(batch) != NO:
                self._one(target, batch)

    def _one(self, target: Target, batch: Batch) -> None:
        """Write a batch of a run that is a special case."""
        rows = (self.plain if batch.isControlBatch else self.batch)(target, batch)
        if self.coverage is not None:
            self.coverage.batch(target.path, batch, rows)

    def _checked_run(self, target: Target, run: BatchRun) -> None:
        """Write a checked batch run, most batches without creating an object."""
        plan = self._plans(target).valid
        heads = run.headers
        columns = RecordColumns(run.buffer)
        row = 0
        more = highest_id(self.schemas), self._members
        while row < len(heads):
            before = row
            row, self.used = write_batches_records(
                self.room, self.used, columns, plan, heads, row, len(heads), self.keys, *more
            )
            if row == len(heads):
                break
            if self.used and row > before:  # perhaps it only lacked room
                self._flush()
                continue
            if not self._compressed(target, run, row, plan):
                self._flush()
                self._one(target, run.batch(heads.of(row, BATCH_START)))
            row += 1
        self._flush()

    @property
    def _members(self) -> Members | None:
        return self.decoded.of if self.decoded is not None else None

    def _plans(self, target: Target) -> RecordPlans:
        """Return the layouts of a file's lines; made once per file."""
        if self._made is None or self._path != target.path:
            self._path, self._made = target.path, record_plans(target)
        return self._made

    def _flush(self) -> None:
        if self.used:
            self.output.write_now(memoryview(self.room)[: self.used])
            self.used = 0
            if self.coverage is not None:
                self.coverage.matched = True

    def _compressed(self, target: Target, run: BatchRun, number: int, plan: RowPlan) -> bool:
        """Write the lines of the run's batch with that number, which is compressed, into `room`. Returns False, without
        writing any of them, for special cases."""
        place = run.headers.of(number, BATCH_START)
        header = BATCH_HEADER.read(run.buffer, place)
        if not header.codec or header.isControlBatch:
            return False
        payload = memoryview(run.buffer)[place + BATCH_HEADER.size : place + header.size]
        unpacked = decompress_small(header.compression, payload, run.limits.max_decompressed_size)
        if unpacked is None:
            return False
        columns, count = self.unpacked, header.recordCount
        columns.data = unpacked
        if not decode_all(columns, 0, len(unpacked), count):
            return False
        if self.schemas is not None and may_hold_schema_ids(columns, self.schemas.highest_id):
            return False
        if self.keys:
            keep_keys(columns, self.keys)
        row, members = 0, self._members
        while row < len(columns):
            row, self.used = write_record_rows(self.room, self.used, columns, row, plan, run.headers, number, members)
            if row < len(columns) and self.used:
                self._flush()
            elif row < len(columns):  # the line does not fit into `room`
                rest = RecordColumns(unpacked)
                rest.block, rest.count = (
                    columns.block[row * RECORD_WIDTH : len(columns) * RECORD_WIDTH],
                    len(columns) - row,
                )
                batch = run.batch(place)
                for part in record_lines(target, batch, rest, 0, plan, own_header(batch), self.room, self.decoded):
                    self.output.write_now(part)
                    if self.coverage is not None:
                        self.coverage.matched = True
                break
        return True

    def batch(self, target: Target, batch: Batch) -> int:
        """Write what JsonView writes for a batch that is not a control batch. Returns the number of records."""
        if may_decode(self.schemas, batch) or (self.decoded is not None and not (batch.magic == 2 and batch.crcValid)):
            return self.plain(target, batch)
        if isinstance(batch, DefaultRecordBatch):
            return self._batch(target, batch)
        assert isinstance(batch, LegacyRecordBatch)
        return self._wrapper(target, batch, batch.inner) if batch.inner is not None else self.plain(target, batch)

    def _wrapper(self, target: Target, batch: LegacyRecordBatch, inner: RecordColumns) -> int:
        """Write the messages of a wrapper message."""
        plan = self._plans(target).messages[batch.magic]
        heads = own_header(batch)
        ordinary = batch.crcValid and not batch.problems and (self.selection.is_all or self.only_keys)
        if not ordinary or plan.bytes_needed(len(inner.data)) > ROOM:
            return self.plain(target, batch)
        if self.keys:
            keep_keys(inner, self.keys)
        row = 0
        while row < len(inner):
            row, self.used = write_record_rows(self.room, self.used, inner, row, plan, heads, 0)
            self._flush()
        return len(inner)

    def _batch(self, target: Target, batch: DefaultRecordBatch) -> int:
        noted = list(noted_findings(target, batch))
        self._findings(noted)
        plans = self._plans(target)
        plan = plans.valid if batch.crcValid else plans.damaged
        heads = None
        rows = 0
        for columns, base in decode_columns(batch):
            if self.chooses:
                self.selection.keep(batch, columns)
            if len(columns):
                rows += len(columns)
                heads = heads or own_header(batch)
                for part in record_lines(target, batch, columns, base, plan, heads, self.room, self.decoded):
                    self.output.write_now(part)
        if batch.problems:
            self._findings(finding for finding in noted_and_count_findings(target, batch) if finding not in noted)
        return rows

    def _findings(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.output.line(jsonl.line(answer_object(finding)))


class FastRecordWriter:
    """Writes matching records as JSON, in order. If `jobs` is above 1, batch runs are processed in threads, and
    everything else in the calling thread. `other` creates a view that writes special cases to an output; `decoding`
    decodes for it, but only in the calling thread."""

    def __init__(
        self,
        output: Output,
        selection: Selection,
        jobs: int,
        other: Callable[..., View],
        coverage: SearchCoverage | None = None,
        decoding: RecordDecoder | None = None,
    ) -> None:
        self.selection = selection
        self.coverage = coverage
        self.other = other
        self.here = self._lines(output, decoding)
        self.ordered = OrderedPool(output, jobs) if jobs > 1 else None
        self._several = False
        self._decodes = False
        self._idle: list[FastRecordLines] = []

    def decode_by(self, decoder: Decoder | None) -> bool:
        """Decode the records of the current file, in the calling thread. Returns False if only another view can."""
        self.here.schemas, self.here.decoded = schemas_of(decoder), None
        self._decodes = decoder is not None
        if decoder is None or self.here.schemas is not None:
            return True
        from kdump.decode.kafka_topic_decoders import KafkaDecoder

        self.here.decoded = DecodedMembers(decoder) if isinstance(decoder, KafkaDecoder) else None
        return self.here.decoded is not None

    def _lines(self, output: Output, decoding: RecordDecoder | None = None) -> FastRecordLines:
        return FastRecordLines(output, self.selection, self._plain(output, decoding), self.coverage)

    def _plain(self, output: Output, decoding: RecordDecoder | None = None) -> PlainBatchWriter:
        view = self.other(output, decoding=decoding)
        return lambda at, batch: view.batch(at, batch, self.selection.records(batch))

    def batch_run(self, target: Target, run: BatchRun) -> None:
        if self.ordered is None or not self._several or self._decodes:  # a single batch run is not worth a thread
            self._several = True
            self.here.batch_run(target, run)
            return
        self.here.output.flush()
        self.ordered.submit(partial(self._work, target, run))

    def _work(self, target: Target, run: BatchRun, turn: OutputSlot) -> None:
        try:
            lines = self._idle.pop()
            lines.output, lines.plain = turn, self._plain(turn)
        except IndexError:
            lines = self._lines(turn)
        lines.batch_run(target, run)
        self._idle.append(lines)

    def batch(self, target: Target, batch: Batch) -> int:
        """Write a batch in the calling thread; call `drain` first. Returns the number of records."""
        return self.here.batch(target, batch)

    def drain(self) -> None:
        """Wait until all batch runs are written; then the output may be used."""
        if self.ordered is not None:
            self.ordered.drain()
