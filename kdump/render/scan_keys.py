"""The JSON object of `kdump scan`: every key of summary.json, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

NUMBER, TEXT, LIST = "number", "string", "array"
OF = "the first so many, the most first; `kdump query` has all"

SCAN_KEYS = (
    Key("paths", LIST, "", "that were given"),
    Key("out", TEXT, "", "where the tables are"),
    Key("tables", LIST, "", "that were written"),
    Key("brokers", LIST, "", "of {cluster, broker, sources}: whose disks were read"),
    Key("copies", LIST, "", "of {source, copyOf}: other copies of a disk, compared and not counted"),
    Key("partitions", NUMBER, "", "partition directories; this and what follows without other copies of a disk"),
    Key("files", NUMBER, "", "files that were read"),
    Key("bytes", NUMBER, "bytes", "their length"),
    Key("batches", NUMBER, "", "batches, and messages of magic 0 and 1"),
    Key("records", NUMBER, "", "records in sound batches"),
    Key("findings", "object", "", "how many of each severity: error, warning, info; those of all copies"),
    Key("codes", "object", "", "how many of each code"),
    Key("unread", LIST, "", "what could not be read, and why"),
    Key("notes", LIST, "", "what else is to be said: files that grew, went away, or kept changing"),
    Key(
        "replicas",
        LIST,
        "",
        "of {cluster, topic, partition, kind, severity, firstDivergentOffset, brokers, sources, leaderEpochs,"
        " lastOffsets, explanation}: where replicas say something else about the same offsets",
    ),
    Key("compactedReplicas", NUMBER, "", "partitions whose replicas differ by what the cleaner has done: no damage"),
    Key(
        "openTransactions",
        LIST,
        "",
        "of {cluster, topic, partition, source, producerId, producerEpoch, firstOffset, timestamp, records,"
        " transactionalId, state}: without a marker by the end of a log; the last two as __transaction_state has them",
    ),
    Key(
        "groups",
        LIST,
        "",
        f"of {{cluster, groupId, groupType, state, lag, lagUnknown, remarks}}: the farthest behind; {OF}",
    ),
    Key(
        "topics",
        LIST,
        "",
        f"of {{topic, partitions, bytes, records, largest, skew}}: the largest partition to the mean; {OF}",
    ),
    Key(
        "producers",
        LIST,
        "",
        "of {producerId, epochs, topics, partitions, batches, records, bytes, first, last, recordsPerSecond}: times in"
        f" epoch ms; {OF}",
    ),
    Key("keys", LIST, "", f"of {{topic, key, records, share}}, with --records: keys that a topic has most of; {OF}"),
    Key("formats", LIST, "", "of {magic, compression, batches, records, bytes}: formats and codecs in use"),
    Key("fill", LIST, "", f"of {{topic, batches, bytesPerBatch, recordsPerBatch}}: the smallest batches first; {OF}"),
    Key(
        "timestamps",
        "object",
        "",
        "future: findings timestamp-in-future; negative: batches; oldest, newest in epoch ms",
    ),
    Key("retention", LIST, "", f"of {{topic, segments, bytes, retentionMs}}: older than retention.ms, and there; {OF}"),
    Key(
        "compaction",
        LIST,
        "",
        f"of {{topic, partition, source, dirtyBytes, bytes, ratio}}: not yet cleaned; {OF}",
    ),
    Key(
        "units",
        "object",
        "",
        "read: partitions and files read now; continued: those of them that were read from a later segment than the"
        " first on; kept: as they were; gone: no longer there",
    ),
    Key("seconds", NUMBER, "s", "how long it took, Spark's start included"),
)
SCAN_TYPES = {"scan": SCAN_KEYS}
