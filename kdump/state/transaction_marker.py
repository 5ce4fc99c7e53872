"""Transaction markers.

Source: org.apache.kafka.common.record.EndTransactionMarker, ProducerAppendInfo.append."""

from __future__ import annotations

from typing import NamedTuple

from kdump.core.column_numbers import BATCH_START, HEADER_SIZE, MARKER_EPOCH_AT, MARKER_TYPE_AT, MAX_TIMESTAMP
from kdump.core.header_columns import HeaderColumns, is_marker
from kdump.format.control_record import decode_control
from kdump.log.batch_records import records
from kdump.log.region import Batch, DefaultRecordBatch

COMMIT, ABORT = "COMMIT", "ABORT"


def is_commit(outcome: str | None) -> bool | None:
    """Return True for COMMIT and False for ABORT; None if the outcome is unknown."""
    return None if outcome is None else outcome == COMMIT


class EndTxnMarker(NamedTuple):
    """A COMMIT or ABORT marker. `timestamp` is in epoch ms; `coordinatorEpoch` is None if its value does not contain
    it."""

    type: str
    coordinatorEpoch: int | None
    timestamp: int | None


def plain_marker(heads: HeaderColumns, row: int) -> EndTxnMarker | None:
    """Return the transaction marker in a valid batch that is exactly as brokers write it; None for any other batch. A
    twin of marker_of for logs in which every other batch is a marker."""
    return marker_at(heads, row) if is_marker(heads, row) else None


def marker_at(heads: HeaderColumns, row: int) -> EndTxnMarker:
    """Return the transaction marker in a batch for which is_marker is true."""
    return EndTxnMarker(marker_type(heads, row), coordinator_epoch(heads, row), heads.of(row, MAX_TIMESTAMP))


def marker_type(heads: HeaderColumns, row: int) -> str:
    """Return the type of a transaction marker in a batch for which is_marker is true."""
    return COMMIT if heads.data[heads.of(row, BATCH_START) + HEADER_SIZE + MARKER_TYPE_AT] else ABORT


def coordinator_epoch(heads: HeaderColumns, row: int) -> int:
    """Return the coordinator epoch of a transaction marker in a batch for which is_marker is true."""
    position = heads.of(row, BATCH_START) + HEADER_SIZE + MARKER_EPOCH_AT
    return int.from_bytes(heads.data[position : position + 4], "big", signed=True)


def marker_of(batch: Batch) -> EndTxnMarker | None:
    """Return the transaction marker in a batch; None for any other batch, and for one that compaction has emptied: no
    data of its transaction is left then, and a broker skips it."""
    if not isinstance(batch, DefaultRecordBatch) or not batch.isControlBatch or not batch.isTransactional:
        return None
    for record in records(batch, values=False):
        control = decode_control(record.key, record.value)
        if control.type in (COMMIT, ABORT):
            return EndTxnMarker(control.type, control.coordinatorEpoch, record.timestamp)
    return None
