"""JSON lines of records with decoded keys and values: the core writes what does not come from the decoder."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from kdump import jsonl
from kdump.core.cells import RECORD_CELLS
from kdump.core.record_columns import RecordColumns
from kdump.core.row_plan import RowPlan, json_plan
from kdump.core.row_writer import write_record_rows
from kdump.decode.decoder_interface import DecodedRecord
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.render.decoded_values import add_decoded
from kdump.render.line_parts import object_start, own_header

if TYPE_CHECKING:
    from kdump.decode.kafka_topic_decoders import KafkaDecoder

ROOM = 1 << 16
"""Size in bytes of the longest line. Longer ones are rare, and left to jsonl."""


class DecodedLines:
    """Writes the lines that record_object and jsonl give, for records of valid v2 batches that are not control
    batches."""

    def __init__(self) -> None:
        self._room = bytearray(ROOM)
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
        if not self._is_plain or record.is_cut:
            return None
        if self._plan is None or target is not self._target:
            self._target = target
            self._plan = json_plan(object_start("record", target), RECORD_CELLS, b"}\n")
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

    def of(self, key: bytes | None, value: bytes | None) -> bytes:
        """Members for write_record_rows."""
        text = self._text(key, value)
        text = jsonl.escaped(text) if text is not None else _members(self.decode(key, value))
        return text.encode("utf-8", "backslashreplace")


def _members(reading: DecodedRecord) -> str:
    decoded: dict[str, object] = {}
    add_decoded(decoded, reading)
    return jsonl.line(decoded)[1:-1]
