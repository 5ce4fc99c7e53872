"""A producer with its history in the log, and its state in a broker that replays the log.

Source: ProducerStateManager (loadFromSnapshot, writeSnapshot), ProducerStateEntry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kdump.state.producer_state import ProducerStateEntry


@dataclass(slots=True)
class ProducerHistory(ProducerStateEntry):
    """A producer with its history in the log. `last_seen`: offset of its last batch or marker; `seen_epoch`: its
    highest epoch so far, without the current batch until that has been counted; `file` and `position`: where its last
    batch or marker is, the file as its index in ProducerLedger.files."""

    NEAR: ClassVar[dict[str, str]] = ProducerStateEntry.NEAR | {
        "first_epoch": "epoch",
        "last_data": "last_offset",
        "last_seen": "last_data",
        "seen_epoch": "highest_epoch",
    }

    first_epoch: int = -1
    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int = -1
    last_data: int = -1
    first_timestamp: int = -1
    commits: int = 0
    aborts: int = 0
    gaps: int = 0
    duplicates: int = 0
    fenced: int = 0
    starts: int = 0
    last_seen: int = -1
    seen_epoch: int = -1
    file: int = 0
    position: int = 0

    @classmethod
    def first(cls, epoch: int) -> ProducerHistory:
        return cls(epoch, epoch, first_epoch=epoch)


def as_entry(life: ProducerStateEntry) -> dict[str, int]:
    """Return the entry that a producer snapshot would have for it (ProducerStateManager.writeSnapshot)."""
    return {
        "epoch": life.epoch,
        "lastSequence": life.last_sequence,
        "lastOffset": life.last_offset,
        "offsetDelta": life.offset_delta,
        "timestamp": life.timestamp,
        "coordinatorEpoch": life.coordinator_epoch,
        "currentTxnFirstOffset": life.txn_first_offset,
    }


def replayed(life: ProducerHistory, entry: dict[str, int] | None) -> dict[str, int]:
    """Return the producer state of a broker that loads `entry` and replays the log after it: values from the log, or
    from `entry` where the log has none."""
    now = as_entry(life)
    if entry is None:
        return now
    if life.coordinator_epoch < 0:
        now["coordinatorEpoch"] = entry["coordinatorEpoch"]
    if life.last_offset < 0 and life.epoch == entry["epoch"]:
        now.update({name: entry[name] for name in ("lastSequence", "lastOffset", "offsetDelta")})
    return now
