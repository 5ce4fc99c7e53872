"""How the core writes lines of a file or batch: their layouts, as kdump.log.inspect_answer declares the keys, and the
columns of a header."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kdump import jsonl
from kdump.answer import ANSWERS, answer_keys
from kdump.core.batch_scan import read_one_header
from kdump.core.cells import BATCH_CELLS, MESSAGE_CRC_CELL, RECORD_CELLS, TABLE_CELLS
from kdump.core.header_columns import HeaderColumns, wrapper_header
from kdump.core.record_columns import RecordColumns, may_hold_schema_ids
from kdump.core.row_plan import RowPlan, json_plan
from kdump.core.row_writer import write_record_rows
from kdump.decode.decoder_interface import DecodedRecord
from kdump.log.batch_records import decode_columns
from kdump.log.inspect_answer import NOT_IN_MESSAGES
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.render.decoded_values import add_decoded
from kdump.render.inspect_json import log_keys
from kdump.render.table import GAP, SizedColumns

if TYPE_CHECKING:
    from kdump.decode.kafka_topic_decoders import KafkaDecoder
    from kdump.decode.registry_decoder import SchemaSource

VALID, DAMAGED, *MESSAGES = range(4)
"""Kinds of records, as numbers of json_plans: in a batch of which the checksum matches or does not match; in a wrapper
of magic 0 or 1."""
LONGEST_DECODED = 1 << 16
"""Size in bytes of the longest line of DecodedLines. Longer ones are rare, and left to jsonl."""
MAY_BE_EMPTY = ("flags", "producer", "sequences", "sequence", "headers", "key", "keyDecoded")
"""Columns that a table omits while they are empty in all rows."""


def json_plans(target: Target, *, records: bool) -> tuple[RowPlan, ...]:
    """Return the layouts of the JSON objects of the batches in that file, or of the kinds of records."""
    if not records:
        return (_plan("batch", target, BATCH_CELLS),)
    no_timestamp: dict[str, int | bytes] = {"timestamp": b"null", "timestampType": b'"NoTimestampType"'}
    v2: dict[str, int | bytes] = {**RECORD_CELLS}
    v1 = {**v2, **dict.fromkeys(NOT_IN_MESSAGES, b"null"), "crc": MESSAGE_CRC_CELL, "crcValid": b"true"}
    kinds = (v2, v2 | {"damaged": b"true"}, v1 | no_timestamp, v1)
    return tuple(_plan("record", target, cells) for cells in kinds)


def _plan(kind: str, target: Target, cells: Mapping[str, int | bytes]) -> RowPlan:
    """Return the layout of the JSON objects of a kind for that file: their keys are those of the declaration that are
    always there, and those that have a cell. Without a cell is what the format of these batches does not have."""
    keys = [key for key in answer_keys(ANSWERS[kind]) if not key.optional or key.name in cells]
    same = log_keys(target)
    start = jsonl.line({"type": kind, **same})[:-1].encode("utf-8", "backslashreplace")
    return json_plan(start, {key.name: cells.get(key.name, b"null") for key in keys if key.name not in same}, b"}\n")


def table_plan(placed: SizedColumns, *, records: bool) -> RowPlan | None:
    """Return the layout of a table's rows; None if the table shows or hides a column that cannot be written from
    columns."""
    kinds = (RECORD_CELLS if records else BATCH_CELLS) | TABLE_CELLS
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


def own_header(batch: Batch) -> HeaderColumns:
    """Return the columns of that batch's header: of a v2 batch, or of a wrapper that read_wrapper has read."""
    if isinstance(batch, LegacyRecordBatch):
        appended = batch.maxTimestamp if batch.timestampType == "LogAppendTime" else None
        return wrapper_header(batch.position, batch.inner_base or 0, appended)
    assert isinstance(batch, DefaultRecordBatch)
    # Not from the file, which may have been truncated, and would be read again from there.
    return read_one_header(batch.header.packed(), batch.position)


def may_decode(schemas: SchemaSource | None, batch: Batch) -> bool:
    """Return whether a key or value in the batch may hold the ID of one of these schemas."""
    if schemas is None or batch.isControlBatch:
        return False
    if isinstance(batch, LegacyRecordBatch):
        return True
    assert isinstance(batch, DefaultRecordBatch)
    return any(may_hold_schema_ids(columns, schemas.highest_id) for columns, _ in decode_columns(batch))


class DecodedLines:
    """Writes the lines that record_object and jsonl give, for records of valid v2 batches that are not control batches:
    the core writes what does not come from the decoder."""

    def __init__(self) -> None:
        self._room = bytearray(LONGEST_DECODED)
        self._columns = RecordColumns(b"")
        self._columns.count = 1
        self._target: Target | None = None
        self._plan: RowPlan | None = None
        self._batch: Batch | None = None
        self._is_plain = False

    def line(self, target: Target, record: Record, reading: DecodedRecord) -> bytes | None:
        """Return the line of a record; None if it is for jsonl to write."""
        batch, columns = record.batch, self._columns
        if batch is not self._batch:
            self._batch = batch
            self._is_plain = isinstance(batch, DefaultRecordBatch) and batch.crcValid and not batch.isControlBatch
            if self._is_plain:
                self._heads = own_header(batch)
        if not self._is_plain or record.is_cut or reading.key.hides or reading.value.hides:
            return None
        if self._plan is None or target is not self._target:
            self._target = target
            self._plan = json_plans(target, records=True)[VALID]
        columns.data = record.data
        columns.block = array(
            "q",
            (
                record.start,
                record.end,
                record.attributes,
                record.timestampDelta or 0,
                record.offsetDelta or 0,
                record.key_start,
                record.keySize,
                record.value_start,
                record.valueSize,
                record.header_start,
                record.header_count,
            ),
        )
        more = _members(reading).encode("utf-8", "backslashreplace")
        row, used = write_record_rows(self._room, 0, columns, 0, self._plan, self._heads, 0, lambda key, value: more)
        return bytes(self._room[:used]) if row else None


class DecodedMembers:
    """What is decoded of the records of Kafka's own topics, as members of their JSON objects."""

    def __init__(self, decoder: KafkaDecoder) -> None:
        self.decode = decoder.decode
        self._text = decoder.text

    def of(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """Members for write_record_rows; None if a secret is hidden, whose bytes it would write."""
        members = self._text(key, value)
        if members is not None:
            members = jsonl.escaped(members)
        else:
            reading = self.decode(key, value)
            if reading.key.hides or reading.value.hides:
                return None
            members = _members(reading)
        return members.encode("utf-8", "backslashreplace")


def _members(reading: DecodedRecord) -> str:
    decoded: dict[str, object] = {}
    add_decoded(decoded, reading)
    return jsonl.line(decoded)[1:-1]
