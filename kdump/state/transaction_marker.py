"""Transaction markers.

Source: org.apache.kafka.common.record.EndTransactionMarker, ProducerAppendInfo.append.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from kdump.core.column_numbers import HEADER_SIZE, HEADER_WIDTH, IS_CONTROL, IS_TRANSACTIONAL
from kdump.core.header_columns import HeaderColumns
from kdump.format.control_record import decode_control
from kdump.log.batch_records import records
from kdump.log.region import Batch, DefaultRecordBatch

COMMIT, ABORT = "COMMIT", "ABORT"


class EndTxnMarker(NamedTuple):
    """A COMMIT or ABORT marker. `timestamp` is in epoch ms; `coordinatorEpoch` is None if its value does not contain
    it."""

    type: str
    coordinatorEpoch: int | None
    timestamp: int | None


_RECORD = re.compile(rb"\x20\0\0\0\x08\0\0\0([\0\1])\x0c\0\0(.{4})\0", re.DOTALL)
"""The record of a marker: its length, attributes and deltas; key and value of version 0, each after its size, with type
and coordinator epoch; no headers."""
MARKER_SIZE = HEADER_SIZE + 17
"""Size in bytes of a batch with such a record."""
_COORDINATOR_EPOCH = struct.Struct(">i")


def plain_marker(heads: HeaderColumns, row: int) -> EndTxnMarker | None:
    """Return the transaction marker in a valid batch that is exactly as brokers write it; None for any other batch. A
    twin of marker_of for logs in which every other batch is a marker."""
    numbers = heads.block[row * HEADER_WIDTH : (row + 1) * HEADER_WIDTH]
    start, end, base, last, _, attributes, largest, producer_id, epoch, _, count, timestamp = numbers
    if attributes != IS_TRANSACTIONAL | IS_CONTROL or count != 1 or last != base:
        return None
    if producer_id < 0 or epoch < 0 or timestamp < 0 or timestamp != largest:
        return None
    record = _RECORD.fullmatch(heads.data, start + HEADER_SIZE, end)
    if record is None:
        return None
    kind, coordinator_epoch = record.groups()
    return EndTxnMarker(COMMIT if kind == b"\1" else ABORT, _COORDINATOR_EPOCH.unpack(coordinator_epoch)[0], timestamp)


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
