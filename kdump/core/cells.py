"""Kinds of cells that table_rows.py can write, by JSON key or name of the table's column.

cells.pxd has the same constants: `python -m tools.core_columns` writes it.
"""

from __future__ import annotations

(
    POSITION_CELL,
    SIZE_CELL,
    BASE_OFFSET_CELL,
    LENGTH_CELL,
    LEADER_EPOCH_CELL,
    MAGIC_CELL,
    CRC_CELL,
    ATTRIBUTES_CELL,
    LAST_OFFSET_DELTA_CELL,
    BASE_TIMESTAMP_CELL,
    MAX_TIMESTAMP_CELL,
    PRODUCER_ID_CELL,
    PRODUCER_EPOCH_CELL,
    BASE_SEQUENCE_CELL,
    RECORD_COUNT_CELL,
    CRC_VALID_CELL,
    COMPRESSION_CELL,
    TIMESTAMP_TYPE_CELL,
    TRANSACTIONAL_CELL,
    CONTROL_CELL,
    HAS_DELETE_HORIZON_CELL,
    DELETE_HORIZON_CELL,
    LAST_OFFSET_CELL,
    LAST_SEQUENCE_CELL,
    OFFSETS_CELL,
    FLAGS_CELL,
    MOMENT_CELL,
    PRODUCER_CELL,
    SEQUENCES_CELL,
    OK_CELL,
) = range(30)

BATCH_CELLS = {
    "position": POSITION_CELL,
    "size": SIZE_CELL,
    "baseOffset": BASE_OFFSET_CELL,
    "batchLength": LENGTH_CELL,
    "partitionLeaderEpoch": LEADER_EPOCH_CELL,
    "magic": MAGIC_CELL,
    "crc": CRC_CELL,
    "attributes": ATTRIBUTES_CELL,
    "lastOffsetDelta": LAST_OFFSET_DELTA_CELL,
    "baseTimestamp": BASE_TIMESTAMP_CELL,
    "maxTimestamp": MAX_TIMESTAMP_CELL,
    "producerId": PRODUCER_ID_CELL,
    "producerEpoch": PRODUCER_EPOCH_CELL,
    "baseSequence": BASE_SEQUENCE_CELL,
    "recordCount": RECORD_COUNT_CELL,
    "crcValid": CRC_VALID_CELL,
    "compression": COMPRESSION_CELL,
    "timestampType": TIMESTAMP_TYPE_CELL,
    "isTransactional": TRANSACTIONAL_CELL,
    "isControlBatch": CONTROL_CELL,
    "hasDeleteHorizonMs": HAS_DELETE_HORIZON_CELL,
    "deleteHorizonMs": DELETE_HORIZON_CELL,
    "lastOffset": LAST_OFFSET_CELL,
    "lastSequence": LAST_SEQUENCE_CELL,
}
"""The cells of a batch's JSON object, in order."""
BATCH_COLUMNS = {
    **BATCH_CELLS,
    "offsets": OFFSETS_CELL,
    "flags": FLAGS_CELL,
    "maxTimestamp": MOMENT_CELL,
    "producer": PRODUCER_CELL,
    "sequences": SEQUENCES_CELL,
    "crcValid": OK_CELL,
}
"""The columns of the table of batches."""

(
    OFFSET_CELL,
    TIMESTAMP_CELL,
    SEQUENCE_CELL,
    BATCH_POSITION_CELL,
    KEY_SIZE_CELL,
    VALUE_SIZE_CELL,
    KEY_CELL,
    HEADERS_CELL,
    VALUE_CELL,
) = range(9)

RECORD_COLUMNS = {
    "offset": OFFSET_CELL,
    "timestamp": TIMESTAMP_CELL,
    "sequence": SEQUENCE_CELL,
    "position": BATCH_POSITION_CELL,
    "keySize": KEY_SIZE_CELL,
    "valueSize": VALUE_SIZE_CELL,
    "key": KEY_CELL,
    "headers": HEADERS_CELL,
    "value": VALUE_CELL,
}
"""The columns of the table of records."""

LINE_BYTES = 400
"""Maximum bytes of the keys and numbers of a record's JSON line, together."""
