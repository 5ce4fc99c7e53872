"""The JSON objects of `kdump diff`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

_TOPIC = Key("topic", "string or null", "", "null for files whose directory names none")
_PARTITION = Key("partition", "number or null", "", "of the topic")
_LEFT = Key("left", "string", "", "path of the one copy")
_RIGHT = Key("right", "string", "", "path of the other")

DIFFERENCE_KEYS = (
    _TOPIC,
    _PARTITION,
    Key(
        "kind",
        "string",
        "",
        "records (they say something else), missing (one has none, and nothing explains it), damage; and what does "
        "not make copies divergent: cleaned (the log cleaner has been there), rewritten (the same records in other "
        "batches), leaderEpoch (the same batch but that field), damagedAlike (both, byte for byte), unread (one could "
        "not be read), unknown (both damaged, not alike)",
    ),
    Key("isDivergence", "boolean", "", "whether it makes the copies divergent: records, missing, damage"),
    _LEFT,
    _RIGHT,
    Key("lacking", "string or null", "", "path of the copy that has not got the records; null: both, or neither"),
    Key("offset", "number", "offset", "the first"),
    Key("lastOffset", "number", "offset", "the last; what lies between may be the same, but for a run of partings"),
    Key("records", "number", "", "records that differ, are lacking, or stand in other batches"),
    Key("batches", "number", "", "of leaderEpoch: how many"),
    Key("fields", "array", "", "what records say otherwise; of rewritten, in what the batches differ"),
    Key("leftFile", "string or null", "", "where the first of them stands, or the damage; null: nowhere"),
    Key("leftPosition", "number or null", "byte of the file", "where that batch, or the damage, begins"),
    Key("rightFile", "string or null", "", "the same in the other copy"),
    Key("rightPosition", "number or null", "byte of the file", "the same in the other copy"),
    Key("reason", "string", "", "what is damaged, or what shows that the cleaner was there"),
    Key(
        "samples",
        "array",
        "",
        "the first records that differ: {offset, fields, left, right}; left and right have timestamp, sequence, "
        "producerId, producerEpoch, isTransactional, isControlBatch, keySize and valueSize",
    ),
)

DIFF_KEYS = (
    _TOPIC,
    _PARTITION,
    Key(
        "relation",
        "string or null",
        "",
        "same, prefix or divergent; null: it cannot be told (nothing in common, or something could not be read)",
    ),
    Key("firstDivergentOffset", "number or null", "offset", "the first at which two copies part; null: none"),
    Key("cause", "string or null", "", "the kind of difference there: records, missing or damage"),
    Key(
        "epochs",
        "array",
        "",
        "of {path, leaderEpoch, checkpointEpoch} at that offset: what the batch's header has, and what "
        "leader-epoch-checkpoint gives; null: the copy has no such offset, or no such file",
    ),
    Key(
        "copies",
        "array",
        "",
        "of {path, logStartOffset, logEndOffset (behind the last sound batch), highWatermark, topicId, segments, "
        "epochs (of leader-epoch-checkpoint: {epoch, startOffset}; null without it), batchEpochs ({epoch, startOffset, "
        "file, position}: the first batch of each), recordsBehind and newestBehind (records, and their newest "
        "timestamp, from where histories part; null: they do not), damage ({kind, file, position, size, reason}), "
        "damagedPlaces, tail (torn or padding: how it ends), compacted (what shows that; empty: nothing), unread, "
        "notes}",
    ),
    Key(
        "pairs",
        "array",
        "",
        "of {left, right, relation, prefix (path of the shorter one, or null), firstDivergentOffset, recordsAlike, "
        "moreDifferences (that are counted and not told)}",
    ),
    Key("votes", "array", "", "paths that agree at firstDivergentOffset, the largest group first; empty: no parting"),
    Key("majority", "array", "", "paths of the group with more than half of three votes and more; empty: none"),
    Key(
        "truncations",
        "array",
        "",
        "of {leader, follower, offset, loses, by, mends}: if the one is elected and the other fetches from it, it "
        "drops what it has from `offset` on (null: not known), so many offsets; by epochs, highWatermark or logStart; "
        "mends: whether it then has what the leader has, and sound",
    ),
    Key("notes", "array", "", "what else is to be said: topic ids that differ, checkpoints that do not fit"),
)

DIFF_SUMMARY_KEYS = (
    Key("partitions", "number", "", "that two paths or more have"),
    Key("same", "number", "", "of them"),
    Key("prefix", "number", "", "of them"),
    Key("divergent", "number", "", "of them"),
    Key("unknown", "number", "", "of them, of which it cannot be told"),
    Key("lone", "number", "", "partitions that only one path has"),
    Key("unread", "array", "", "what could not be read, and why"),
    Key("seconds", "number", "s", "how long it took"),
)

DIFF_TYPES: dict[str, tuple[Key, ...]] = {
    "difference": DIFFERENCE_KEYS,
    "diff": DIFF_KEYS,
    "diffSummary": DIFF_SUMMARY_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
