"""Table records: copies the columns of the record loop to Arrow arrays, without creating an object per record.

The messages in a wrapper of magic 0 or 1 are copied in the same way. Uncompressed messages, anything irregular, and
control records are added one at a time.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from kdump import jsonl
from kdump.core.arrow_buffers import ArrowLists, ArrowStrings, header_lists, numbers, pieces, sequences
from kdump.core.column_numbers import HEADERS_START, KEY_START, OFFSET_DELTA, RECORD_WIDTH, TIMESTAMP_DELTA, VALUE_START
from kdump.core.record_columns import RecordColumns
from kdump.decode.decoder_interface import Decoder, DecoderError
from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.numbers import int64
from kdump.io.errors import SourceError
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns
from kdump.log.expression.terms import NO
from kdump.log.inspect_answer import NOT_IN_MESSAGES
from kdump.log.legacy_records import read_wrapper
from kdump.log.mounted_bundles import mount_bundles
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch, Region, batches_of
from kdump.log.selection import Selection
from kdump.log.walk import RegionObserver, walk
from kdump.render.decoded_values import add_decoded
from kdump.render.inspect_json import control_object
from kdump.render.line_parts import may_decode, schemas_of
from kdump.spark import arrow
from kdump.spark.data_source_options import OptionError, ReadOptions
from kdump.spark.fleet import expanded
from kdump.spark.segment_split import SegmentSplit, own_regions
from kdump.spark.tables import FROM_BATCH, RECORDS
from kdump.state.internal_records import too_large

MAX_BATCH_ROWS, MAX_BATCH_BYTES = 16_384, 16 << 20
"""Rows and bytes at which a record batch is complete."""
ATTRIBUTES = 2
STORED = {
    "attributes": ATTRIBUTES,
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


class RecordRows(RegionObserver):
    """Reads slices of segments for the table records."""

    def __init__(self, options: ReadOptions, selection: Selection, schema: pa.Schema) -> None:
        self.limits, self.selection = options.limits, selection
        self.schema = schema
        self.columns = [options.table.column(name) for name in schema.names]
        self.requested = {column.of or column.name for column in self.columns}
        self.of_batch = [name for name in OF_BATCH if name in self.requested]
        self.decoded = [name for name in DECODED if name in self.requested]
        self.decoding = _decoding(options) if self.decoded else None
        self.target = Target("", None, None, None)
        self.common: dict[str, Any] = {}
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
        self.rare: dict[str, dict[int, Any]] = {name: {} for name in (*RARE, *DECODED) if name in requested}
        self.decoded_size = 0
        self.damaged: list[int] = []
        """Rows that are damaged although their batch is not: messages of magic 0 and 1."""
        self.batch_of = array("i")
        self.batches: list[dict[str, Any]] = []

    def read(self, part: SegmentSplit, window: Window, common: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice. Raises SourceError."""
        self.target, self.common = part.target, common
        self.decoder = None if self.decoding is None else self.decoding.decoder(part.target)
        offsets = self.selection.offsets
        source = partial(own_regions, part, window, self.limits, first_offset=offsets.first if offsets else None)
        yield from walk(source, [self])

    def region(self, region: Region) -> Iterator[pa.RecordBatch]:
        selection = self.selection
        for batch in batches_of(region):
            if not selection.is_all and selection.batch(batch) == NO:
                continue
            if not isinstance(batch, DefaultRecordBatch) or batch.isControlBatch or self._decodes(batch):
                yield from self._others(batch, self.common)
                continue
            for columns, _ in decode_columns(batch):
                if selection.chooses_records:
                    selection.keep(batch, columns)
                if len(columns):
                    self._columns(batch, columns, self.common)
                    if self._full():
                        yield from self.rest()

    def _decodes(self, batch: DefaultRecordBatch) -> bool:
        """Return whether records of the batch may be decoded."""
        schemas = schemas_of(self.decoder)
        return self.decoder is not None and (schemas is None or may_decode(schemas, batch))

    def _columns(self, batch: DefaultRecordBatch, columns: RecordColumns, common: dict[str, Any]) -> None:
        header = batch.header
        count = len(columns)
        self._in_batch(batch, count, common)
        for name, values in self.numbers.items():
            if name == "offset":
                numbers(values, columns, OFFSET_DELTA, header.baseOffset)
            elif name == "timestamp":
                if header.timestampType == "LogAppendTime":
                    values.extend([header.maxTimestamp] * count)
                else:
                    numbers(values, columns, TIMESTAMP_DELTA, header.baseTimestamp)
            elif name == "sequence":
                sequences(values, columns, header.baseSequence)
            else:
                numbers(values, columns, STORED[name], 0)
        self._texts(columns)
        self.count += count

    def _texts(self, columns: RecordColumns) -> None:
        """Add keys, values and headers."""
        for name, strings in self.texts.items():
            pieces(strings, columns, TEXTS[name])
        if self.headers is not None:
            header_lists(self.headers, columns)

    def _others(self, batch: Batch, common: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        is_whole = self.decoder is None and not self.selection.chooses_records
        if is_whole and isinstance(batch, LegacyRecordBatch) and batch.is_compressed:
            read_wrapper(batch)
            if batch.inner is not None and not batch.problems:
                self._messages(batch, batch.inner, common)
                if self._full():
                    yield from self.rest()
                return
        yield from self._one_by_one(batch, common)

    def _messages(self, batch: LegacyRecordBatch, columns: RecordColumns, common: dict[str, Any]) -> None:
        """Add the messages of a wrapper, as kdump.core.message_set returns them."""
        count = len(columns)
        rows = range(self.count, self.count + count)
        self._in_batch(batch, count, common)
        for name, values in self.numbers.items():
            if name in NOT_IN_MESSAGES or (name == "timestamp" and not batch.format.has_timestamp):
                self.nulls[name].extend(rows)
                values.frombytes(bytes(values.itemsize * count))
            elif name == "offset":
                numbers(values, columns, OFFSET_DELTA, batch.inner_base or 0)
            elif name == "timestamp" and batch.timestampType == "LogAppendTime":
                values.extend([int64(batch.maxTimestamp or 0)] * count)
            elif name == "timestamp":
                numbers(values, columns, TIMESTAMP_DELTA, 0)
            else:
                numbers(values, columns, STORED[name], 0)
        self._texts(columns)
        if "crc" in self.rare:
            self.rare["crc"].update(zip(rows, columns.block[HEADERS_START : count * RECORD_WIDTH : RECORD_WIDTH]))
        if "crcValid" in self.rare:
            self.rare["crcValid"].update(dict.fromkeys(rows, True))
        self.count += count

    def _one_by_one(self, batch: Batch, common: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        for record in self.selection.records(batch):
            self._in_batch(batch, 1, common)
            for name, values in self.numbers.items():
                value = getattr(record, name)
                if value is None:
                    self.nulls[name].append(self.count)
                values.append(int64(value or 0))
            for name, strings in self.texts.items():
                strings.add(getattr(record, name))
            if self.headers is not None:
                self.headers.add(record.headers)
            self._rare(record)
            self.count += 1
            if self._full():
                yield from self.rest()

    def _rare(self, record: Record) -> None:
        if record.crcValid is False:
            self.damaged.append(self.count)
        decoded = self._decoded(record)
        for name, values in self.rare.items():
            value: Any = decoded.get(name)
            if name not in DECODED:
                value = getattr(record, name) if name != "control" else _control(record)
            if value is not None:
                values[self.count] = value

    def _decoded(self, record: Record) -> dict[str, str]:
        """Return the texts of the columns of a decoded record."""
        if self.decoder is None or record.is_control:
            return {}
        fields = decoded_fields(self.decoder, self.target, record)
        for name in ("keyDecoded", "valueDecoded"):
            if fields.get(name) is not None:
                fields[name] = jsonl.line(fields[name])
        self.decoded_size += sum(len(fields.get(name) or "") for name in self.decoded)
        return fields

    def _in_batch(self, batch: Batch, count: int, common: dict[str, Any]) -> None:
        """Record that the next `count` rows belong to this batch."""
        values = dict(common)
        for name in self.of_batch:
            values[name] = getattr(batch, name)
        if "damaged" in self.requested:
            values["damaged"] = not batch.crcValid
        self.batch_of.extend(array("i", [len(self.batches)]) * count)
        self.batches.append(values)

    def _full(self) -> bool:
        held = sum(len(strings.data) for strings in self.texts.values())
        held += self.decoded_size
        held += len(self.headers.values.data) + len(self.headers.keys.data) if self.headers else 0
        return self.count >= MAX_BATCH_ROWS or held >= MAX_BATCH_BYTES

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that have been read but not yielded yet."""
        if not self.count:
            return
        arrays = [
            self._array(column.of or column.name, self.schema.field(n).type, bool(column.of))
            for n, column in enumerate(self.columns)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self._begin()

    def _array(self, name: str, kind: pa.DataType, is_time: bool) -> pa.Array:
        if is_time:
            return arrow.times(arrow.numbers(self.numbers[name], self.nulls[name], pa.int64()), kind)
        if name in self.numbers:
            return arrow.numbers(self.numbers[name], self.nulls[name], kind)
        if name in self.texts:
            return arrow.strings(self.texts[name], kind)
        if name == "headers":
            assert self.headers is not None
            return arrow.header_lists(self.headers, kind)
        if name in self.rare:
            held = self.rare[name]
            if not held:
                return pa.nulls(self.count, kind)
            return arrow.plain([held.get(row) for row in range(self.count)], kind)
        column = arrow.plain([values.get(name) for values in self.batches], kind)
        column = column.take(pa.Array.from_buffers(pa.int32(), self.count, [None, pa.py_buffer(self.batch_of)]))
        if name == "damaged" and self.damaged:
            gone = set(self.damaged)
            return pa.array([row in gone or value for row, value in enumerate(column.to_pylist())], type=kind)
        return column


def decoded_fields(decoder: Decoder, target: Target, record: Record) -> dict[str, Any]:
    """Return what a decoder makes of a record, by the keys of JSON objects."""
    if too_large(record):
        return {"valueProblem": f"too large to decode: {record.keySize} + {record.valueSize} bytes"}
    fields: dict[str, Any] = {}
    add_decoded(fields, decoder.read(target, record))
    return fields


def _decoding(options: ReadOptions) -> RecordDecoder:
    """Return the decoders of a read. Raises OptionError if there are no schemas at the path in the options."""
    if options.schemas is not None:
        mount_bundles([options.schemas])
    paths = [path for given in options.paths for path in expanded(given)]
    try:
        return RecordDecoder(DecodeOptions(schemas=options.schemas, paths=tuple(paths)))
    except (DecoderError, SourceError) as error:
        raise OptionError(f"option schemas: {error}") from None


def _control(record: Record) -> dict[str, Any] | None:
    """Return the contents of a control record, with its decoded value as JSON; None for any other record."""
    if not record.is_control:
        return None
    control = control_object(record)
    if "value" in control:
        control["value"] = json.dumps(control["value"], ensure_ascii=False)
    return {name: control.get(name) for name in ("type", "version", "coordinatorEpoch", "value")}
