"""Table records: copies the columns of the record loop to Arrow arrays, without creating an object per record, and for
uncompressed batches none per batch.

The messages in a wrapper of magic 0 or 1 are copied in the same way. Uncompressed messages, anything irregular, and
control records are added one at a time."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from kdump import jsonl
from kdump.check.finding import Finding
from kdump.check.rules.records import Shown, with_findings
from kdump.core.arrow_buffers import (
    ArrowLists,
    ArrowStrings,
    decode_run,
    header_lists,
    numbers,
    numbers_from,
    pieces,
    taken_numbers,
)
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_START,
    HEADERS_START,
    KEY_START,
    LEADER_EPOCH,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    OFFSET_DELTA,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORD_ATTRIBUTES,
    RECORD_WIDTH,
    TIMESTAMP_DELTA,
    VALUE_START,
)
from kdump.core.header_columns import HeaderColumns
from kdump.core.record_columns import RecordColumns
from kdump.decode.decoder_interface import DecodedRecord, Decoder, DecoderError
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder, schemas_of, source_near
from kdump.format.batch_header import TIMESTAMP_TYPE, TRANSACTIONAL
from kdump.format.codec_table import codec_name
from kdump.format.numbers import int64
from kdump.io.directory_listing import parent
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import mount_paths
from kdump.io.run import ignore
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns
from kdump.log.expression.terms import MAYBE, NO, YES, RecordFacts
from kdump.log.inspect_answer import NOT_IN_MESSAGES
from kdump.log.legacy_records import plain_messages
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region, batches_of
from kdump.log.selection import Selection
from kdump.log.torn_batch import torn_batch
from kdump.render.decoded_values import add_decoded
from kdump.render.inspect_json import control_object
from kdump.render.line_parts import may_decode
from kdump.state.internal_records import too_large
from kdump.state.secrets import HIDDEN
from kdump.tables import arrow
from kdump.tables.arrow import ArrowArray, ArrowBatch, ArrowSchema, ArrowType
from kdump.tables.declarations import FROM_BATCH, RECORDS
from kdump.tables.fleet import expanded
from kdump.tables.read_options import OptionError, ReadOptions, SchemaFields
from kdump.tables.slice_rows import SliceRows

MAX_BATCH_ROWS, MAX_BATCH_BYTES = 16_384, 16 << 20
"""Rows and bytes at which a record batch is complete."""
STORED = {
    "attributes": RECORD_ATTRIBUTES,
    "offsetDelta": OFFSET_DELTA,
    "timestampDelta": TIMESTAMP_DELTA,
    "keySize": KEY_START + 1,
    "valueSize": VALUE_START + 1,
}
"""Columns that records store directly, and their numbers in kdump.core.column_numbers."""
NUMBERS = (*STORED, "offset", "timestamp", "sequence")
TEXTS = {"key": KEY_START, "value": VALUE_START}
RARE = ("crc", "crcValid", "control")
DECODED = tuple(column.name for column in RECORDS.on_request)
OF_BATCH = ("position", "timestampType", *FROM_BATCH)
BASES = {"offset": BASE_OFFSET, "timestamp": BASE_TIMESTAMP, "sequence": BASE_SEQUENCE}
"""Columns that are stored relative to a number in the header of the batch."""
OF_HEADS: dict[str, Callable[[HeaderColumns, int, int], list[Any]]] = {
    "position": lambda heads, first, stop: [start + heads.shift for start in heads.column(BATCH_START)[first:stop]],
    "partitionLeaderEpoch": lambda heads, first, stop: heads.column(LEADER_EPOCH)[first:stop].tolist(),
    "magic": lambda heads, first, stop: [2] * (stop - first),
    "compression": lambda heads, first, stop: [codec_name(0)] * (stop - first),
    "producerId": lambda heads, first, stop: heads.column(PRODUCER_ID)[first:stop].tolist(),
    "producerEpoch": lambda heads, first, stop: heads.column(PRODUCER_EPOCH)[first:stop].tolist(),
    "isTransactional": lambda heads, first, stop: [
        bool(attributes & TRANSACTIONAL.mask) for attributes in heads.column(ATTRIBUTES)[first:stop]
    ],
    "isControlBatch": lambda heads, first, stop: [False] * (stop - first),
    "timestampType": lambda heads, first, stop: [
        TIMESTAMP_TYPE.meanings[bool(attributes & LOG_APPEND_TIME)]
        for attributes in heads.column(ATTRIBUTES)[first:stop]
    ],
}
"""Values of OF_BATCH of the batches first..stop-1, which are uncompressed and have no control records."""


class KnownRecords:
    """What an expression asks about records besides their bytes. `of_transaction`: returns whether a transactional
    batch is of an aborted transaction, None if that is not known."""

    def __init__(self, decoding: RecordDecoder | None) -> None:
        self.decoding = decoding
        self.undecided = 0
        """Number of records of which it is not known whether they match."""
        self.of_transaction: Callable[[Batch], bool | None] = lambda batch: None

    def read(self, target: Target, record: Record) -> DecodedRecord | None:
        return None if self.decoding is None else self.decoding.read(target, record)

    def is_aborted(self, target: Target, batch: Batch) -> bool | None:
        return self.of_transaction(batch)


class RecordRows(SliceRows):
    """Reads slices of segments for the table records."""

    def __init__(self, options: ReadOptions, selection: Selection, schema: ArrowSchema) -> None:
        super().__init__(options, selection)
        self.schema = schema
        self.columns = [options.table.column(field.name) for field in schema]
        self.requested = {column.of or column.name for column in self.columns}
        self.of_batch = [name for name in OF_BATCH if name in self.requested]
        self.decoded = [name for name in DECODED if name in self.requested]
        self.where, self.control, self.fields = options.where, options.control, options.fields
        is_decoded = self.decoded or (self.where is not None and self.where.needs.decoded)
        self.decoding = _decoding(options) if is_decoded else None
        self.known = KnownRecords(self.decoding)
        self.on_finding: Callable[[Finding], None] | None = None
        """Called with the findings about records that are added, and about their batches."""
        self.on_rejected: Callable[[dict[str, Any]], None] = ignore
        """Called with the row of a record that does not fit the schema whose fields are columns."""
        self.target = Target("", None, None, None)
        self.decoder: Decoder | None = None
        """That of the segment; None if nothing of it is to be decoded."""
        self._begin()

    def _begin(self) -> None:
        requested = self.requested
        self.count = 0
        self.numbers = {name: array("q") for name in NUMBERS if name in requested}
        self.nulls: dict[str, list[int]] = {name: [] for name in self.numbers}
        self.texts = {name: ArrowStrings() for name in TEXTS if name in requested}
        self.headers = ArrowLists() if "headers" in requested else None
        names = (*RARE, *DECODED, *(self.fields.names if self.fields is not None else ()))
        self.rare: dict[str, dict[int, Any]] = {name: {} for name in names if name in requested}
        self.decoded_size = 0
        self.damaged: list[int] = []
        """Rows that are damaged although their batch is not: messages of magic 0 and 1."""
        self.batch_of = array("i")
        """The batch of each row. What follows has a value for each batch."""
        self.batches: dict[str, list[Any]] = {name: [] for name in self.of_batch}
        self.bases = {name: array("q") for name in BASES}
        self.is_damaged: list[bool] = []
        self.common_of = array("q")
        self.commons: list[dict[str, Any]] = []

    def begin(self, target: Target, common: dict[str, Any], window: Window) -> None:
        super().begin(target, common, window)
        self.target = target
        self.decoder = None if self.decoding is None else self.decoding.decoder(target)

    def region(self, region: Region) -> Iterator[ArrowBatch]:
        if isinstance(region, BatchRun) and region.checked and self.selection.is_all and self._is_plain:
            yield from self._run(region)
            return
        torn = torn_batch(region, self.window, self.limits)
        for batch in batches_of(region) if torn is None else (torn,):
            yield from self._matching(batch)

    @property
    def _is_plain(self) -> bool:
        """Whether no value of the segment has to be looked at."""
        return self.decoder is None and self.where is None and self.fields is None

    def _matching(self, batch: Batch) -> Iterator[ArrowBatch]:
        """Add the matching records of a batch."""
        if self._may_match(batch):
            yield from self._batch(Reading(batch))

    def _with_findings(self, reading: Reading[Batch], records: Iterable[Shown]) -> Iterable[Shown]:
        return records if self.on_finding is None else with_findings(self.target, reading, records, self.on_finding)

    def _may_match(self, batch: Batch) -> bool:
        return (
            (self.control or not batch.isControlBatch)
            and (self.selection.is_all or self.selection.batch(batch) != NO)
            and (self.where is None or self.where.batch(self.target, batch, self.known) != NO)
        )

    def _records(self, reading: Reading[Batch]) -> Iterator[Record]:
        """Yield the matching records of a batch."""
        for record in self.selection.records(reading):
            truth = YES if self.where is None else self.where.truth(RecordFacts(self.target, record, self.known))
            if truth == YES:
                yield record
            self.known.undecided += truth == MAYBE

    def _run(self, region: BatchRun) -> Iterator[ArrowBatch]:
        """Add the records of a batch run."""
        heads, columns = region.headers, RecordColumns(region.buffer)
        row = 0
        while row < len(heads):
            number = len(self.common_of)
            stop = decode_run(columns, heads, row, MAX_BATCH_ROWS - self.count, self.batch_of, number)
            if stop == row:
                yield from self._matching(region.batch(heads.of(row, BATCH_START)))
                row += 1
                continue
            for name, values in self.batches.items():
                values += OF_HEADS[name](heads, row, stop)
            is_append_time = bool(heads.of(row, ATTRIBUTES) & LOG_APPEND_TIME)
            for name, column in BASES.items():
                column = MAX_TIMESTAMP if is_append_time and name == "timestamp" else column
                self.bases[name].extend(heads.column(column)[row:stop])
            self._add_batches(stop - row, self.common, False)
            self._columns(columns, is_append_time)
            row = stop
            if self._full():
                yield from self.rest()

    def _batch(self, reading: Reading[Batch]) -> Iterator[ArrowBatch]:
        batch = reading.batch
        is_columnar = not batch.isControlBatch and self.where is None and self.fields is None
        if not isinstance(batch, DefaultRecordBatch) or not is_columnar or self._decodes(batch):
            yield from self._others(reading)
            return
        for columns, _ in self._with_findings(reading, decode_columns(reading)):
            if self.selection.chooses_records:
                self.selection.keep(batch, columns)
            if len(columns):
                header = batch.header
                is_append_time = header.timestampType == "LogAppendTime"
                time = header.maxTimestamp if is_append_time else header.baseTimestamp
                self._in_batch(batch, len(columns), (header.baseOffset, time, header.baseSequence))
                self._columns(columns, is_append_time)
                if self._full():
                    yield from self.rest()

    def _decodes(self, batch: DefaultRecordBatch) -> bool:
        """Return whether records of the batch may be decoded."""
        schemas = schemas_of(self.decoder)
        return self.decoder is not None and (schemas is None or may_decode(schemas, batch))

    def _columns(self, columns: RecordColumns, is_append_time: bool, missing: tuple[str, ...] = ()) -> None:
        """Add the records in the columns, whose batches have been added. `missing`: columns in which they are null."""
        count = len(columns)
        for name, values in self.numbers.items():
            if name in missing:
                self.nulls[name].extend(range(self.count, self.count + count))
                values.frombytes(bytes(values.itemsize * count))
            elif name == "timestamp" and is_append_time:
                values.extend(taken_numbers(self.bases[name], self.batch_of[-count:]))
            elif name in BASES:
                column = TIMESTAMP_DELTA if name == "timestamp" else OFFSET_DELTA
                numbers_from(values, columns, column, self.bases[name], self.batch_of, name == "sequence")
            else:
                numbers(values, columns, STORED[name])
        for name, strings in self.texts.items():
            pieces(strings, columns, TEXTS[name])
        if self.headers is not None:
            header_lists(self.headers, columns)
        self.count += count

    def _others(self, reading: Reading[Batch]) -> Iterator[ArrowBatch]:
        batch = reading.batch
        is_whole = self._is_plain and not self.selection.chooses_records
        columns = plain_messages(batch) if is_whole and isinstance(batch, LegacyRecordBatch) else None
        if columns is None:
            yield from self._one_by_one(reading)
            return
        assert isinstance(batch, LegacyRecordBatch)
        for each in self._with_findings(reading, (columns,)):
            self._messages(batch, each)
        if self._full():
            yield from self.rest()

    def _messages(self, batch: LegacyRecordBatch, columns: RecordColumns) -> None:
        """Add a message, or those of a wrapper, as kdump.core.message_set returns them."""
        count = len(columns)
        rows = range(self.count, self.count + count)
        is_append_time = batch.timestampType == "LogAppendTime"
        time = int64(batch.maxTimestamp or 0) if is_append_time else 0
        self._in_batch(batch, count, (batch.inner_base or 0, time, 0))
        missing = NOT_IN_MESSAGES if batch.format.has_timestamp else (*NOT_IN_MESSAGES, "timestamp")
        self._columns(columns, is_append_time, missing)
        if "crc" in self.rare:
            self.rare["crc"].update(zip(rows, columns.block[HEADERS_START : count * RECORD_WIDTH : RECORD_WIDTH]))
        if "crcValid" in self.rare:
            self.rare["crcValid"].update(dict.fromkeys(rows, True))

    def _one_by_one(self, reading: Reading[Batch]) -> Iterator[ArrowBatch]:
        batch = reading.batch
        for record in self._with_findings(reading, self._records(reading)):
            fields = self._fields(record)
            if fields is None:
                continue
            self._in_batch(batch, 1)
            for name, values in self.numbers.items():
                value = getattr(record, name)
                if value is None:
                    self.nulls[name].append(self.count)
                values.append(int64(value or 0))
            decoded = self._decoded(record)
            for name, strings in self.texts.items():
                strings.add(decoded.get(name, getattr(record, name)))
            if self.headers is not None:
                self.headers.add(record.headers)
            self._rare(record, decoded | fields)
            self.count += 1
            if self._full():
                yield from self.rest()

    def _fields(self, record: Record) -> dict[str, Any] | None:
        """Return the values of the columns of the schema; None for a record that does not fit it."""
        if self.fields is None or record.is_control:
            return {}
        fields = self.fields.decoder.row(self.target, record)
        if isinstance(fields, str):
            place = {"position": record.batch.position, "offset": record.offset, "timestamp": record.timestamp}
            content = {"key": record.key, "value": record.value, "reason": fields}
            self.on_rejected({**self.common, **place, **content})
            return None
        self.decoded_size += max(0, record.valueSize)
        return {name: fields.get(field) for name, field in self.fields.names.items()}

    def _rare(self, record: Record, decoded: dict[str, Any]) -> None:
        if record.crcValid is False:
            self.damaged.append(self.count)
        for name, values in self.rare.items():
            value: Any = decoded.get(name)
            if name in RARE:
                value = getattr(record, name) if name != "control" else _control(record)
            if value is not None:
                values[self.count] = value

    def _decoded(self, record: Record) -> dict[str, Any]:
        """Return the texts of the columns of a decoded record, and what replaces its key or value."""
        if self.decoder is None or record.is_control:
            return {}
        fields = decoded_fields(self.decoder, self.target, record)
        for name in ("keyDecoded", "valueDecoded"):
            if fields.get(name) is not None:
                fields[name] = jsonl.line(fields[name])
        self.decoded_size += sum(len(fields.get(name) or "") for name in self.decoded)
        return fields

    def _in_batch(self, batch: Batch, count: int, bases: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Record that the next `count` rows belong to this batch, and the BASES of what is stored of them."""
        self.batch_of.extend(array("i", [len(self.common_of)]) * count)
        for name, values in self.batches.items():
            values.append(getattr(batch, name))
        for held, base in zip(self.bases.values(), bases):
            held.append(base)
        self._add_batches(1, self.common, "damaged" in self.requested and not batch.crcValid)

    def _add_batches(self, count: int, common: dict[str, Any], is_damaged: bool) -> None:
        if not self.commons or self.commons[-1] is not common:
            self.commons.append(common)
        self.common_of.extend(array("q", [len(self.commons) - 1]) * count)
        self.is_damaged += [is_damaged] * count

    def _full(self) -> bool:
        held = sum(len(strings.data) for strings in self.texts.values())
        held += self.decoded_size
        held += len(self.headers.values.data) + len(self.headers.keys.data) if self.headers else 0
        return self.count >= MAX_BATCH_ROWS or held >= MAX_BATCH_BYTES

    def rest(self) -> Iterator[ArrowBatch]:
        """Yield the rows that have been read but not yielded yet."""
        if not self.count:
            return
        batch = arrow.batch_of(self.schema, self.columns, self.count, self._array)
        self._begin()
        yield batch

    def _array(self, name: str, kind: ArrowType, is_time: bool) -> ArrowArray:
        if name in self.numbers:
            return (arrow.times if is_time else arrow.numbers)(self.numbers[name], self.nulls[name], kind)
        if name in self.texts:
            return arrow.strings(self.texts[name], kind)
        if name == "headers":
            assert self.headers is not None
            return arrow.header_lists(self.headers, kind)
        if name in self.rare:
            held = self.rare[name]
            if not held:
                return arrow.nulls(self.count, kind)
            return arrow.plain([held.get(row) for row in range(self.count)], kind)
        if name in self.batches:
            return arrow.taken(self.batches[name], self.batch_of, kind)
        if name == "damaged":
            gone = bytearray(self.count)
            for row, number in enumerate(self.batch_of) if any(self.is_damaged) else ():
                gone[row] = self.is_damaged[number]
            for row in self.damaged:
                gone[row] = 1
            return arrow.flags(gone)
        if len(self.commons) == 1:
            rows = array("i", bytes(4 * self.count))
        else:
            rows = array("i", taken_numbers(self.common_of, self.batch_of))
        return arrow.taken([common.get(name) for common in self.commons], rows, kind)


def decoded_fields(decoder: Decoder, target: Target, record: Record) -> dict[str, Any]:
    """Return what a decoder makes of a record, by the keys of JSON objects, and what replaces the bytes in which it
    hides secrets."""
    if too_large(record):
        return {"valueProblem": f"too large to decode: {record.keySize} + {record.valueSize} bytes"}
    reading = decoder.read(target, record)
    fields: dict[str, Any] = {name: HIDDEN.encode() for name in TEXTS if getattr(reading, name).hides}
    add_decoded(fields, reading)
    return fields


def _decoding(options: ReadOptions) -> RecordDecoder:
    """Return the decoders of a read. Raises OptionError, such as for a path without schemas."""
    decode = options.decode
    if decode.schemas is not None:
        mount_paths([decode.schemas])
    paths = [path for given in options.paths for path in expanded(given)]
    try:
        return RecordDecoder(replace(decode, paths=tuple(paths)))
    except (DecoderError, SourceError) as error:
        is_about_schemas = decode == DecodeOptions(schemas=decode.schemas)
        raise OptionError(f"option schemas: {error}" if is_about_schemas else str(error)) from None


def _control(record: Record) -> dict[str, Any] | None:
    """Return the contents of a control record, with its decoded value as JSON; None for any other record."""
    if not record.is_control:
        return None
    control = control_object(record)
    if "value" in control:
        control["value"] = json.dumps(control["value"], ensure_ascii=False)
    return {name: control.get(name) for name in ("type", "version", "coordinatorEpoch", "value")}


def schema_fields(paths: Iterable[str], topic: str, schemas: str | None) -> SchemaFields:
    """Return the fields of the newest schema of a topic: in the registry on one of the disks, or at `schemas`. Raises
    OptionError."""
    from kdump.decode.registry_decoder import named_source
    from kdump.decode.schema_columns import ColumnDecoder

    near = [(path, parent(path), parent(parent(path))) for given in paths for path in expanded(given)]
    places = list(chain.from_iterable(near))
    mount_paths(places if schemas is None else [schemas])
    try:
        if schemas is not None:
            return SchemaFields.of(ColumnDecoder(named_source(schemas), topic))
        sources = (source_near(place, places) for place in places)
        source = next((source for source in sources if source is not None and source.known() is not None), None)
        if source is None:
            raise DecoderError("no registry is on the same disk; name its schemas with --schemas")
        return SchemaFields.of(ColumnDecoder(source, topic))
    except (DecoderError, SourceError) as error:
        raise OptionError(f"schema of {topic}: {error}") from None
