"""The JSON objects of `kdump producers`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key
from kdump.format.snapshot import PRODUCER_ENTRY
from kdump.render.transaction_keys import (
    BYTE,
    NULL_NUMBER,
    NUMBER,
    OFFSET,
    PARTITION,
    PRODUCER_ID,
    SOURCE,
    TEXT,
    TIME,
    TOPIC,
    TRANSACTIONAL_ID,
)

BROKER = (
    "epoch",
    "lastSequence",
    "lastOffset",
    "offsetDelta",
    "timestamp",
    "coordinatorEpoch",
    "currentTxnFirstOffset",
)
"""What a broker that starts on this disk would know, by the names of ProducerSnapshot."""
BREAKS = (
    Key("gaps", NUMBER, "", "data batches whose sequence leaves some out"),
    Key("duplicates", NUMBER, "", "data batches whose sequence had come already"),
    Key("fenced", NUMBER, "", "data batches with an epoch older than one before"),
    Key("epochStarts", NUMBER, "", "new epochs that do not begin with sequence 0"),
)
STATE_FROM = (
    "the .snapshot that a broker begins with; log: it replays all; nothing: it starts without, or that is not here"
)


def _broker_keys() -> tuple[Key, ...]:
    fields = [PRODUCER_ENTRY.field(name) for name in BROKER]
    return tuple(Key(each.name, NULL_NUMBER, each.unit, f"in the broker: {each.meaning}") for each in fields)


PRODUCER_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    TRANSACTIONAL_ID,
    PRODUCER_ID,
    Key("firstEpoch", NULL_NUMBER, "", "on the disk: its first epoch; null: nothing of it is there"),
    Key("lastEpoch", NULL_NUMBER, "", "on the disk: its highest epoch"),
    Key("batches", NUMBER, "", "on the disk: its data batches"),
    Key("records", NUMBER, "", "on the disk: its records"),
    Key("bytes", NUMBER, "bytes", "on the disk: of its data batches"),
    Key("firstOffset", NULL_NUMBER, OFFSET, "on the disk: of its data"),
    Key("lastDataOffset", NULL_NUMBER, OFFSET, "on the disk: of its data"),
    Key("firstTimestamp", NULL_NUMBER, TIME, "on the disk: the largest of its first data batch"),
    Key("lastBatchTimestamp", NULL_NUMBER, TIME, "on the disk: of its last batch or marker"),
    Key("commits", NUMBER, "", "on the disk: its COMMIT markers"),
    Key("aborts", NUMBER, "", "on the disk: its ABORT markers"),
    *BREAKS,
    Key("state", TEXT, "", "live; expired: the broker drops it; unknown: the broker would not know it"),
    *_broker_keys(),
    Key("stateFrom", TEXT, "", STATE_FROM),
    Key("inSnapshot", "boolean or null", "", "whether that .snapshot has it; null without one"),
    Key("idle", NULL_NUMBER, "ms", "since its last batch or marker"),
    Key("file", TEXT, "", "that has its last batch or marker; the .snapshot, if nothing of it is on the disk"),
    Key("position", NUMBER, BYTE, "of that batch or marker; of the entry"),
    Key("remarks", "array", "", "what is not as usual, and why"),
)
EVENT_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    Key("offset", NUMBER, OFFSET, "of the batch"),
    Key("timestamp", NULL_NUMBER, TIME, "of the batch: the largest in it"),
    TRANSACTIONAL_ID,
    PRODUCER_ID,
    Key("producerEpoch", NUMBER, "", "of the batch"),
    Key("event", TEXT, "", "first, epoch, gap, duplicate, fenced, epochStart, forgotten, COMMIT, ABORT"),
    Key("baseSequence", NUMBER, "", "of the batch; -1: none"),
    Key("lastSequence", NUMBER, "", "of the batch; -1: none"),
    Key("message", TEXT, "", "what happened"),
    Key("file", TEXT, "", "the segment"),
    Key("position", NUMBER, BYTE, "of the batch"),
)
PARTITION_PRODUCERS_KEYS = (
    SOURCE,
    TOPIC,
    PARTITION,
    Key("path", TEXT, "", "the directory, or the file that was given"),
    Key("logStartOffset", NULL_NUMBER, OFFSET, "by log-start-offset-checkpoint, else that of the first segment"),
    Key("logEndOffset", NULL_NUMBER, OFFSET, "behind the last sound batch"),
    Key("producers", NUMBER, "", "on the disk, or in the snapshot"),
    Key("live", NUMBER, "", "that a broker which starts on this disk knows"),
    Key("expired", NUMBER, "", "that it drops, for they were idle for too long"),
    Key("unknown", NUMBER, "", "that are on the disk, and that it does not know"),
    *BREAKS,
    Key("snapshotOnly", NUMBER, "", "in the snapshot, with nothing on the disk"),
    Key("stateFrom", TEXT, "", STATE_FROM),
    Key("stateOffset", NULL_NUMBER, OFFSET, "of that snapshot: the log behind is replayed"),
    Key("segments", NUMBER, "", "that were read"),
    Key("damages", NUMBER, "", "damaged stretches, which could not be taken into account"),
    Key("forgotten", NUMBER, "", "producers for which there was no room"),
)
PRODUCER_TYPES: dict[str, tuple[Key, ...]] = {
    "producer": PRODUCER_KEYS,
    "producerEvent": EVENT_KEYS,
    "producerPartition": PARTITION_PRODUCERS_KEYS,
}
