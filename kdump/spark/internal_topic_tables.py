"""Tables group_offsets, transactions and metadata_records: records of Kafka's internal topics, decoded one at a time by
the decoders of `kdump inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from kdump.decode.record_decoder import DecodeOptions, RecordDecoder
from kdump.format.control_record import decode_control
from kdump.format.transaction_record import decode_transaction
from kdump.log.batch_records import records
from kdump.log.record import Record
from kdump.log.region import batches_of
from kdump.log.region_reader import CHECKED
from kdump.log.selection import Selection
from kdump.log.window import Window
from kdump.render.decoded_values import add_decoded
from kdump.render.inspect_json import plain
from kdump.spark.arrow import Rows
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.segment_split import SegmentSplit, own_regions
from kdump.state.internal_records import too_large

Row = dict[str, Any]
NOT_THE_RECORDS = ("topic", "partition", "state")
"""Columns that come from the file's directory in other tables, but from the record in these."""


class DecodedRows:
    """Reads slices of segments. Skips batches whose checksum does not match."""

    def __init__(self, options: ReadOptions, selection: Selection, schema: pa.Schema) -> None:
        self.limits = options.limits
        self.rows = Rows(options.table, schema)
        self.read_record = ROWS[options.table.name]

    def read(self, part: SegmentSplit, window: Window, common: Row) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice. Raises SourceError."""
        own = {name: value for name, value in common.items() if name not in NOT_THE_RECORDS}
        decoder = RecordDecoder(DecodeOptions()).decoder(part.target)
        for region in own_regions(part, window, self.limits, CHECKED):
            for batch in batches_of(region):
                if not batch.crcValid:
                    continue
                for record in records(batch):
                    row_values: Row = {}
                    if too_large(record):
                        row_values["valueProblem"] = f"too large to decode: {record.keySize} + {record.valueSize} bytes"
                    elif decoder is not None and not record.is_control:
                        add_decoded(row_values, decoder.read(part.target, record))
                    row = self.read_record(record, row_values)
                    if row is None:
                        continue
                    row |= own | {"recordOffset": record.offset, "timestamp": record.timestamp}
                    row["problem"] = row_values.get("keyProblem") or row_values.get("valueProblem")
                    if self.rows.add(row):
                        yield from self.rows.take()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that have been read but not yielded yet."""
        yield from self.rows.take()


def _data(fields: Row, part: str) -> Row:
    """Return the fields of a decoded key or value."""
    found = fields.get(f"{part}Decoded")
    data = found.get("data") if isinstance(found, dict) else None
    return data if isinstance(data, dict) else {}


def _group_offset(record: Record, fields: Row) -> Row | None:
    key = fields.get("keyDecoded")
    if not isinstance(key, dict) or key.get("name") != "OffsetCommitKey":
        return None
    names, value = _data(fields, "key"), _data(fields, "value")
    return {
        "groupId": names.get("group"),
        "topic": names.get("topic"),
        "partition": names.get("partition"),
        **{name: value.get(name) for name in ("offset", "leaderEpoch", "metadata", "commitTimestamp")},
        **{name: value.get(name) for name in ("expireTimestamp", "topicId")},
        "producerId": record.batch.producerId if record.batch.isTransactional else -1,
        "tombstone": record.valueSize < 0,
    }


def _transaction(record: Record, fields: Row) -> Row | None:
    if record.is_control:
        return None
    found = decode_transaction(record.key, record.value)
    if found.problem is not None:
        fields.setdefault("valueProblem", str(found.problem))
    row: Row = {"transactionalId": found.transactionalId, "tombstone": found.tombstone}
    if not found.tombstone:
        row |= {name: getattr(found, name) for name in OF_TRANSACTION}
        row["partitions"] = [{"topic": topic, "partitions": each} for topic, each in found.partitions.items()]
    return row


def _metadata_record(record: Record, fields: Row) -> Row | None:
    if record.is_control:
        control = decode_control(record.key, record.value)
        data = None if control.value is None else json.dumps(plain(control.value), ensure_ascii=False)
        return {"name": control.type, "version": control.version, "data": data}
    found = fields.get("valueDecoded")
    if not isinstance(found, dict):
        return {}
    data = json.dumps(found["data"], ensure_ascii=False) if "data" in found else None
    return {"name": found.get("name"), "apiKey": found.get("type"), "version": found.get("version"), "data": data}


OF_TRANSACTION = (
    "producerId",
    "producerEpoch",
    "state",
    "transactionStartTimestampMs",
    "transactionLastUpdateTimestampMs",
    "transactionTimeoutMs",
    "clientTransactionVersion",
)
ROWS: dict[str, Callable[[Record, Row], Row | None]] = {
    "group_offsets": _group_offset,
    "transactions": _transaction,
    "metadata_records": _metadata_record,
}
"""Functions that return the row of a record, given its decoded form; None for a record without a row."""
