"""Kinds of cells that row_writer.py can write, by JSON key or name of the table's column.

cells.pxd has the same constants: `python -m tools.core_columns` writes it."""

from __future__ import annotations

from kdump.core import column_numbers as columns

OF_RECORD, FIRST_CELL = columns.HEADER_WIDTH, columns.HEADER_WIDTH + columns.RECORD_WIDTH
"""Kinds below OF_RECORD are the number in that column of HeaderColumns, those below FIRST_CELL that (less OF_RECORD)
of RecordColumns. The others have names, first those of a batch, from OFFSET_CELL on those of a record."""
(
    POSITION_CELL,
    SIZE_CELL,
    LENGTH_CELL,
    MAGIC_CELL,
    CRC_CELL,
    LAST_OFFSET_DELTA_CELL,
    CRC_VALID_CELL,
    COMPRESSION_CELL,
    TIMESTAMP_TYPE_CELL,
    TRANSACTIONAL_CELL,
    CONTROL_CELL,
    HAS_DELETE_HORIZON_CELL,
    DELETE_HORIZON_CELL,
    LAST_SEQUENCE_CELL,
    OFFSETS_CELL,
    FLAGS_CELL,
    MOMENT_CELL,
    PRODUCER_CELL,
    SEQUENCES_CELL,
    OK_CELL,
    OFFSET_CELL,
    TIMESTAMP_CELL,
    TIME_CELL,
    SEQUENCE_CELL,
    SEQUENCE_OR_EMPTY_CELL,
    KEY_CELL,
    VALUE_CELL,
    HEADERS_CELL,
    JSON_KEY_CELL,
    JSON_VALUE_CELL,
    JSON_HEADERS_CELL,
) = range(FIRST_CELL, FIRST_CELL + 31)
MESSAGE_CRC_CELL = OF_RECORD + columns.HEADERS_START
"""Of a message of v0 or v1 (see message_set.py)."""

PLAN_CELLS, PLAN_OMITTED, PLAN_LINE_BYTES, PLAN_PER_BYTE, PLAN_PER_HEADER, PLAN_START = range(6)
"""Numbers with which a RowPlan begins: how many cells and how many omitted columns there are; the maximum bytes per
line, and those per byte of the record and per header that come on top. The last is where the cells start. Two rows
follow the cells, with the start and the end of the text after the last one; then the kinds of the omitted columns."""
CELL_KIND, CELL_TEXT, CELL_WIDTH, CELL_RIGHT, PLAN_WIDTH = range(5)
"""Numbers of each cell: its kind, where the text before it starts, its minimum width in bytes, and whether it is
right-aligned. The last is their number."""

BATCH_CELLS = {
    "position": POSITION_CELL,
    "size": SIZE_CELL,
    "baseOffset": columns.BASE_OFFSET,
    "batchLength": LENGTH_CELL,
    "partitionLeaderEpoch": columns.LEADER_EPOCH,
    "magic": MAGIC_CELL,
    "crc": CRC_CELL,
    "attributes": columns.ATTRIBUTES,
    "lastOffsetDelta": LAST_OFFSET_DELTA_CELL,
    "baseTimestamp": columns.BASE_TIMESTAMP,
    "maxTimestamp": columns.MAX_TIMESTAMP,
    "producerId": columns.PRODUCER_ID,
    "producerEpoch": columns.PRODUCER_EPOCH,
    "baseSequence": columns.BASE_SEQUENCE,
    "recordCount": columns.RECORD_COUNT,
    "crcValid": CRC_VALID_CELL,
    "compression": COMPRESSION_CELL,
    "timestampType": TIMESTAMP_TYPE_CELL,
    "isTransactional": TRANSACTIONAL_CELL,
    "isControlBatch": CONTROL_CELL,
    "hasDeleteHorizonMs": HAS_DELETE_HORIZON_CELL,
    "deleteHorizonMs": DELETE_HORIZON_CELL,
    "lastOffset": columns.LAST_OFFSET,
    "lastSequence": LAST_SEQUENCE_CELL,
}
"""The cells of a batch's JSON object."""
RECORD_CELLS = {
    "position": POSITION_CELL,
    "offset": OFFSET_CELL,
    "timestamp": TIMESTAMP_CELL,
    "timestampType": TIMESTAMP_TYPE_CELL,
    "attributes": OF_RECORD + columns.RECORD_ATTRIBUTES,
    "offsetDelta": OF_RECORD + columns.OFFSET_DELTA,
    "timestampDelta": OF_RECORD + columns.TIMESTAMP_DELTA,
    "sequence": SEQUENCE_CELL,
    "keySize": OF_RECORD + columns.KEY_SIZE,
    "valueSize": OF_RECORD + columns.VALUE_SIZE,
    "key": JSON_KEY_CELL,
    "value": JSON_VALUE_CELL,
    "headers": JSON_HEADERS_CELL,
}
"""The cells of a record's JSON object."""
TABLE_CELLS = {
    "offsets": OFFSETS_CELL,
    "flags": FLAGS_CELL,
    "maxTimestamp": MOMENT_CELL,
    "producer": PRODUCER_CELL,
    "sequences": SEQUENCES_CELL,
    "crcValid": OK_CELL,
    "timestamp": TIME_CELL,
    "sequence": SEQUENCE_OR_EMPTY_CELL,
    "key": KEY_CELL,
    "keyDecoded": KEY_CELL,
    "headers": HEADERS_CELL,
    "value": VALUE_CELL,
    "valueDecoded": VALUE_CELL,
}
"""Columns of the tables of batches and of records that have other cells than the keys of that name."""
