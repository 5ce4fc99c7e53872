"""The JSON objects of `kdump stats`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

NUMBER, NULL_NUMBER, LIST, OBJECT = "number", "number or null", "array", "object"
AT = "{file, position (of its batch), offset}"
SPREAD = "histogram is of {from, to (null: no bound), count}, both ends included"

STATS_KEYS = (
    Key("scope", "string", "", "partition, or total: the sum of all before it"),
    Key("source", "string", "", "the directory or file; empty in the total"),
    Key("topic", "string or null", "", "null in the total, and where no directory names it"),
    Key("partition", NULL_NUMBER, "", "of the topic"),
    Key("partitions", NUMBER, "", "how many are in it"),
    Key("files", NUMBER, "", "segments that were read"),
    Key("bytes", NUMBER, "bytes", "their length"),
    Key("batches", NUMBER, "", "batches, and messages of magic 0 and 1, as verify counts them"),
    Key("records", NUMBER, "", "records in sound batches, as verify counts them"),
    Key("dataRecords", NUMBER, "", "of them those that are no control records, and decode: all below is of these"),
    Key("controlRecords", NUMBER, "", "markers of transactions, and what KRaft writes"),
    Key("undecodedRecords", NUMBER, "", "that sound batches count, and that do not decode"),
    Key("firstOffset", NULL_NUMBER, "offset", "the first of sound batches; null in the total"),
    Key("lastOffset", NULL_NUMBER, "offset", "the last of sound batches; null in the total"),
    Key("oldest", NULL_NUMBER, "epoch ms", "smallest timestamp of a record that has one"),
    Key("oldestAt", "object or null", "", AT),
    Key("newest", NULL_NUMBER, "epoch ms", "largest timestamp of a record"),
    Key("newestAt", "object or null", "", AT),
    Key("untimedRecords", NUMBER, "", "without a timestamp (magic 0, -1), or with one that cannot be"),
    Key("recordsPerSecond", NULL_NUMBER, "records/s", "data records from oldest to newest; null: no time between them"),
    Key("bytesPerSecond", NULL_NUMBER, "bytes/s", "bytes of sound batches over the same time"),
    Key("peak", "object or null", "", "{timestamp, milliseconds, records}: the fullest bucket of `times`"),
    Key("times", OBJECT, "", "{milliseconds, buckets}: buckets so wide, of {timestamp, count}; without empty ones"),
    Key("late", OBJECT, "", "{records, most (ms), mostAt, histogram}: records that are older than one before them in "
        "their partition, and by how many ms; " + SPREAD),
    Key("batchRecords", OBJECT, "", "{mean, most, mostAt, ones, empty, histogram}: records of a batch; " + SPREAD),
    Key("batchSizes", OBJECT, "", "{mean, most, mostAt, histogram}: bytes of a batch with its header; " + SPREAD),
    Key("transactionalBatches", NUMBER, "", "control batches included"),
    Key("transactionalRecords", NUMBER, "", "control records included"),
    Key("controlBatches", NUMBER, "", ""),
    Key("idempotentBatches", NUMBER, "", "with a producerId"),
    Key("formats", LIST, "", "of {magic, batches}"),
    Key("timestampTypes", LIST, "", "of {timestampType, records}"),
    Key("codecs", LIST, "", "of {compression, batches, records, storedBytes, unpackedBytes, ratio}: bytes of records "
        "without batch headers (messages of magic 0 and 1 with theirs); of control batches only their number"),
    Key("ratio", NULL_NUMBER, "", "unpackedBytes / storedBytes of all that is compressed; null: nothing is"),
    Key("recordBytes", NUMBER, "bytes", "of data records, unpacked"),
    Key("headers", OBJECT, "", "{count, bytes}: record headers"),
    Key("keys", OBJECT, "", "{nulls, bytes, mean, most, mostAt, histogram}: sizes of keys; " + SPREAD),
    Key("values", OBJECT, "", "{nulls (tombstones), bytes, mean, most, mostAt, histogram}: sizes of values; " + SPREAD),
    Key("topKeys", OBJECT, "", "{error, keys}: keys is of {topic, key, keySize, records, recordsAtMost, bytes}, by "
        "records; `records` may be too low by `error`, 0 if exact; bytes are of records, and a least; key is text, or "
        "base64 with keyEncoding; of one above 128 bytes only the first 64, with isCut"),
    Key("topProducers", OBJECT, "", "{error, producers}: of {producerId, records, recordsAtMost, bytes (of batches)}"),
    Key("damage", LIST, "", "of {file, position, size, reason}: bytes that are in none of these numbers; at most 100"),
    Key("damagedPlaces", NUMBER, "", "how many there are"),
    Key("damagedBytes", NUMBER, "bytes", "of them"),
    Key("paddingBytes", NUMBER, "bytes", "zeros, and a torn end of the last segment"),
    Key("unread", LIST, "", "what could not be read, and why"),
    Key("notes", LIST, "", "what else is not counted"),
)  # fmt: skip

STATS_TYPES: dict[str, tuple[Key, ...]] = {"stats": STATS_KEYS}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
