"""The JSON objects of `kdump carve`: every key, with its unit, declared once. Batches are `batch` objects."""

from __future__ import annotations

from kdump.answer import Key

RUN_KEYS = (
    Key("run", "number", "", "counts from 1, in the order in which they are found"),
    Key("file", "string", "", "path of the file that was searched"),
    Key("position", "number", "byte of the file", "where its first batch begins"),
    Key("size", "number", "bytes", "up to where its last batch ends; there is nothing else in it"),
    Key("batches", "number", "", "that stand one behind the other"),
    Key("records", "number", "", "as their headers count them; those of compressed messages of v0 and v1 when known"),
    Key("firstOffset", "number", "offset", "of its first batch"),
    Key("lastOffset", "number", "offset", "of its last batch"),
    Key("magics", "array", "", "formats of its batches"),
    Key("codecs", "array", "", "of its batches: none, gzip, snappy, lz4, zstd"),
    Key("firstLeaderEpoch", "number or null", "", "of its first batch with one"),
    Key("lastLeaderEpoch", "number or null", "", "of its last batch with one"),
    Key("producerIds", "array", "", "of its batches: the first 10"),
    Key("firstTimestamp", "number or null", "epoch ms", "the smallest maxTimestamp"),
    Key("lastTimestamp", "number or null", "epoch ms", "the largest maxTimestamp"),
    Key("mayFollow", "array", "", "numbers of earlier runs that end with the offset before firstOffset: the first 10"),
    Key("written", "string or null", "", "path of the segment that was made of it; null: none was"),
    Key("note", "string", "", "why no indexes were made for it"),
)

NESTED_KEYS = (
    Key("file", "string", "", "path of the file that was searched"),
    Key("position", "number", "byte of the file", "where the batch begins, whose `batch` comes right before"),
    Key("size", "number", "bytes", "its length"),
    Key("within", "number", "byte of the file", "where the batch begins that holds it in a value: it is in no run"),
)

CARVE_SUMMARY_KEYS = (
    Key("files", "number", "", "that were searched to their ends"),
    Key("bytes", "number", "bytes", "of those files"),
    Key("holes", "number", "bytes", "of holes in sparse files, which were not read"),
    Key("batches", "number", "", "that were found"),
    Key("nested", "number", "", "of them, that lie within others"),
    Key("batchBytes", "number", "bytes", "of those that do not"),
    Key("runs", "number", "", "that they form"),
    Key("written", "number", "", "segments that were written"),
    Key("unchecked", "number", "", "headers that were passed over: there were too many that only look like headers"),
    Key("unreadable", "number", "bytes", "that the device did not give, and that were taken for zeros"),
    Key("unread", "array", "", "what could not be read, and why"),
    Key("seconds", "number", "s", "how long it took"),
)

CARVE_TYPES: dict[str, tuple[Key, ...]] = {
    "run": RUN_KEYS,
    "nested": NESTED_KEYS,
    "carveSummary": CARVE_SUMMARY_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
