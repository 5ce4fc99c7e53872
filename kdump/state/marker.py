"""What a transaction marker says.

Source: org.apache.kafka.common.record.EndTransactionMarker, ProducerAppendInfo.append.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.format.control import decode_control
from kdump.log.payload import records
from kdump.log.region import Batch, BatchV2

COMMIT, ABORT = "COMMIT", "ABORT"


class Marker(NamedTuple):
    """A transaction marker: COMMIT or ABORT. `timestamp` is epoch ms; `coordinatorEpoch` None where its value does not
    say it."""

    type: str
    coordinatorEpoch: int | None
    timestamp: int | None


def marker_of(batch: Batch) -> Marker | None:
    """What a transaction marker says; None for any other batch, and for one that compaction has emptied: no data of its
    transaction is left then, and a broker passes it over."""
    if not isinstance(batch, BatchV2) or not batch.isControlBatch or not batch.isTransactional:
        return None
    for record in records(batch, values=False):
        control = decode_control(record.key, record.value)
        if control.type in (COMMIT, ABORT):
            return Marker(control.type, control.coordinatorEpoch, record.timestamp)
    return None
