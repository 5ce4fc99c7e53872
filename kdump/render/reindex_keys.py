"""The JSON objects of `kdump reindex`: every key, with its unit, declared once."""

from __future__ import annotations

from kdump.answer import Key

REINDEX_KEYS = (
    Key("topic", "string or null", "", "null where the directory names none"),
    Key("partition", "number or null", "", "of the topic"),
    Key("file", "string", "", "path of the segment"),
    Key("baseOffset", "number", "offset", "in the segment's name"),
    Key("size", "number", "bytes", "of the segment"),
    Key("validSize", "number", "bytes", "that recovery takes; less than size where it would cut the log"),
    Key("batches", "number", "", "that are indexed"),
    Key("lastOffset", "number or null", "offset", "of those; null: there are none"),
    Key("indexInterval", "number", "bytes", "index.interval.bytes that it was rebuilt with"),
    Key(
        "endings",
        "array",
        "",
        "why recovery stops before the end, and with --past-damage each damaged place: {position, reason, does "
        "(truncates, throws, splits), isUsual (a preallocated end, or one that is being written), sound (where the "
        "next sound batch begins; null: none is known)}; empty: it takes all",
    ),
    Key("segmentsBehind", "number", "", "a broker that cuts this one as it recovers the log deletes those behind it"),
    Key(
        "indexes",
        "array",
        "",
        "of .index, .timeindex and .txnindex: {kind (index, timeindex, txnindex), file (null: none), status "
        "(identical, legal, wrong, missing, notNeeded, unread), size, entries, rebuiltSize, rebuiltEntries, reasons "
        "(why it differs and is legal: a count by name), wrong ({entry, position, found, expected, reason}; entry "
        "counts from 0, and is null where one is lacking; found and expected are an entry's values, null where there "
        "is none), wrongEntries (how many; `wrong` has the first 100), written (path of the rebuilt file; null: none)}",
    ),
    Key("notes", "array", "", "what could not be taken into account"),
)

REINDEX_SUMMARY_KEYS = (
    Key("segments", "number", "", "that were rebuilt, or could not be"),
    Key("identical", "number", "", "index files that are, byte for byte, what was rebuilt"),
    Key("legal", "number", "", "index files that differ as a broker may write them"),
    Key("wrong", "number", "", "index files that say what their segment does not"),
    Key("missing", "number", "", "index files that a broker needs and that are not there"),
    Key("cut", "number", "", "segments that recovery would cut, for damage"),
    Key("refused", "number", "", "segments that a broker does not recover: nothing was rebuilt"),
    Key("written", "number", "", "files that were written"),
    Key("unread", "array", "", "what could not be read, and why"),
    Key("seconds", "number", "s", "how long it took"),
)

REINDEX_TYPES: dict[str, tuple[Key, ...]] = {"reindex": REINDEX_KEYS, "reindexSummary": REINDEX_SUMMARY_KEYS}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
