"""Transaction markers.

Source: org.apache.kafka.common.record.EndTransactionMarker, ProducerAppendInfo.append.
"""

from __future__ import annotations

from typing import NamedTuple

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
