"""The JSON objects of `kdump retention`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.render.key import Key

TEXT, NUMBER, BOOL = "string", "number", "boolean"
NULL_TEXT, NULL_NUMBER, NULL_BOOL = "string or null", "number or null", "boolean or null"
OFFSET, TIME, BYTES = "offset", "epoch ms", "bytes"

_WHERE = (
    Key("source", TEXT, "", "the log directory, or the path that was given"),
    Key("topic", NULL_TEXT, "", "from the name of the directory"),
    Key("partition", NULL_NUMBER, "", "from the name of the directory"),
)
NOT_COMPACTED = "; null: the topic is not compacted"

SEGMENT_KEYS = (
    *_WHERE,
    Key("file", TEXT, "", "the segment"),
    Key("baseOffset", NUMBER, OFFSET, "as its name says"),
    Key("lastOffset", NULL_NUMBER, OFFSET, "of its last sound batch; null: it has none"),
    Key("isActive", BOOL, "", "whether it is the newest, which is written to"),
    Key("size", NUMBER, BYTES, "without zeros or half a batch at the end of an active segment"),
    Key("batches", NUMBER, "", "sound ones"),
    Key("records", NUMBER, "", "in them"),
    Key("largestTimestamp", NULL_NUMBER, TIME, "as a broker has it; null: the segment could not be read"),
    Key("timestampFrom", NULL_TEXT, "", "batch, timeIndex (its .timeindex says otherwise), file (no record has one)"),
    Key("timestampPosition", NULL_NUMBER, "byte of the file", "of the batch that has it"),
    Key("timestampOffset", NULL_NUMBER, OFFSET, "the first of that batch"),
    Key("deletion", TEXT, "", "now, later, kept (no rule takes it), held (it is due, and something keeps it), unknown"),
    Key("deletionRule", NULL_TEXT, "", "what takes it: logStartOffset, or the name of a config"),
    Key("deletesAt", NULL_NUMBER, TIME, "from when on it is due, nothing else happening"),
    Key("deletesAfterBytes", NULL_NUMBER, BYTES, "so much more has to be written before retention.bytes takes it"),
    Key("waitsFor", NULL_NUMBER, OFFSET, "base offset of the earlier segment that decides deletesAt"),
    Key(
        "blockedBy",
        NULL_TEXT,
        "",
        "future, highWatermark, tier, tierUnknown, damage, cleanerDisabled; roll: the next check rolls it, for the "
        "tier to copy it; empty: the active one, without a batch",
    ),
    Key("compaction", NULL_TEXT, "", "clean, dirty, uncleanable" + NOT_COMPACTED),
    Key(
        "uncleanableBecause",
        "array",
        "",
        "active, lastStableOffset (an open transaction), highWatermark, min.compaction.lag.ms",
    ),
    Key("cleanableAt", NULL_NUMBER, TIME, "when that is over; null: no time takes it away"),
    Key("tombstones", NULL_NUMBER, "", "records without a value; null: not compacted, or not looked for"),
    Key("tombstonesDue", NULL_NUMBER, "", "of them in batches whose delete horizon has passed"),
    Key("markers", NULL_NUMBER, "", "control batches with a record" + NOT_COMPACTED),
    Key("markersDue", NULL_NUMBER, "", "of them those whose delete horizon has passed"),
    Key("emptyBatches", NUMBER, "", "batches that the cleaner has emptied, and keeps for their offsets and sequences"),
    Key("nextDeleteHorizonMs", NULL_NUMBER, TIME, "the first delete horizon that has not passed"),
)
HOLD_KEYS = (
    *_WHERE,
    Key(
        "hold",
        TEXT,
        "",
        "futureTimestamp, openTransaction, hangingTransaction, highWatermark, damage, cleanerDisabled, tier, stray",
    ),
    Key("isAgainstPolicy", BOOL, "", "whether the configs would let it go; false: the cleaner waits as it should"),
    Key("keeps", TEXT, "", "from deletion or compaction"),
    Key("segments", NUMBER, "", "how many it keeps"),
    Key("bytes", NUMBER, BYTES, "of them"),
    Key("file", TEXT, "", "where the evidence is"),
    Key("position", NULL_NUMBER, "byte of the file", "of the batch, or of the damaged bytes"),
    Key("offset", NULL_NUMBER, OFFSET, "of the record, of the transaction's first, the high watermark, the tier's end"),
    Key("timestamp", NULL_NUMBER, TIME, "the record's; when the transaction began"),
    Key("until", NULL_NUMBER, TIME, "when it ends by itself; null: nothing on the disk says"),
    Key("producerId", NULL_NUMBER, "", "of the transaction"),
    Key("transactionalId", NULL_TEXT, "", "of the transaction, as __transaction_state has it"),
    Key("message", TEXT, "", "why it is kept"),
    Key("fix", NULL_TEXT, "", "what a person can do about it"),
)
PARTITION_KEYS = (
    *_WHERE,
    Key("path", TEXT, "", "the directory, or the file that was given"),
    Key("state", TEXT, "", "delete, future or stray for a directory of that kind; else empty"),
    Key("verdict", TEXT, "", "held (something is kept beyond the configs), free, unknown (something is not readable)"),
    Key("cleanupPolicy", TEXT, "", "delete, compact, both, or empty"),
    Key(
        "settings",
        "object",
        "",
        "by config {value, source}: option, topic, broker, cluster default, server.properties, default, assumed",
    ),
    Key("isConfigKnown", BOOL, "", "whether the topic's own configs were found"),
    Key("segments", NUMBER, "", "how many there are"),
    Key("bytes", NUMBER, BYTES, "of all"),
    Key("deletableSegments", NUMBER, "", "that the next check deletes"),
    Key("deletableBytes", NUMBER, BYTES, "of them"),
    Key("heldSegments", NUMBER, "", "that are due, and kept"),
    Key("heldBytes", NUMBER, BYTES, "of them"),
    Key("nextDeletionAt", NULL_NUMBER, TIME, "when the first segment goes that does not go now"),
    Key("logStartOffset", NULL_NUMBER, OFFSET, "by log-start-offset-checkpoint, else that of the first segment"),
    Key("logEndOffset", NULL_NUMBER, OFFSET, "behind the last sound batch"),
    Key("highWatermark", NULL_NUMBER, OFFSET, "as replication-offset-checkpoint has it"),
    Key("lastStableOffset", NULL_NUMBER, OFFSET, "the first offset of an open transaction, else the log end"),
    Key("cleanerCheckpoint", NULL_NUMBER, OFFSET, "as cleaner-offset-checkpoint has it"),
    Key("firstDirtyOffset", NULL_NUMBER, OFFSET, "where the cleaner goes on" + NOT_COMPACTED),
    Key("resetBecause", NULL_TEXT, "", "why that is not what the checkpoint says"),
    Key("firstUncleanableOffset", NULL_NUMBER, OFFSET, "up to where it may go" + NOT_COMPACTED),
    Key("cleanBytes", NULL_NUMBER, BYTES, "of segments below the first dirty offset" + NOT_COMPACTED),
    Key("cleanableBytes", NULL_NUMBER, BYTES, "of segments between the two offsets" + NOT_COMPACTED),
    Key("dirtyRatio", NULL_NUMBER, "", "cleanableBytes / (cleanBytes + cleanableBytes); null: both are 0"),
    Key("wouldClean", NULL_BOOL, "", "whether the cleaner would take the log now" + NOT_COMPACTED),
    Key("overdueAt", NULL_NUMBER, TIME, "from when on max.compaction.lag.ms makes the ratio not matter"),
    Key("missingBytes", NULL_NUMBER, BYTES, "so much more has to become cleanable for the ratio; null: it is taken"),
    Key("rollsAfter", NULL_NUMBER, TIME, "the first record with a later timestamp rolls the active segment"),
    Key("tombstones", NULL_NUMBER, "", "of all segments; null: not compacted, or not looked for"),
    Key("tombstonesDue", NULL_NUMBER, "", "that the next cleaning takes away"),
    Key("tombstonesUnstamped", NULL_NUMBER, "", "that have no delete horizon: the next cleaning gives them one"),
    Key("markers", NULL_NUMBER, "", "transaction markers of all segments" + NOT_COMPACTED),
    Key("markersDue", NULL_NUMBER, "", "whose delete horizon has passed"),
    Key("nextDeleteHorizonMs", NULL_NUMBER, TIME, "the first that has not passed"),
    Key("keys", NULL_NUMBER, "", "different ones in the dirty part; null: they were not read (--keys)"),
    Key("keysFit", NULL_BOOL, "", "whether the cleaner's map takes them all, so that one cleaning is enough"),
    Key("cleanedRecords", NULL_NUMBER, "", "that the next cleaning would go through"),
    Key("droppedRecords", NULL_NUMBER, "", "of them those that it would drop"),
    Key("droppedBytes", NULL_NUMBER, BYTES, "of those, as they are unpacked; markers aside"),
    Key("damages", NUMBER, "", "damaged stretches in all segments"),
    Key("notes", "array", "", "what else is to be said"),
)
RETENTION_TYPES: dict[str, tuple[Key, ...]] = {
    "retentionSegment": SEGMENT_KEYS,
    "retentionHold": HOLD_KEYS,
    "retention": PARTITION_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
