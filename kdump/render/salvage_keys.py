"""The JSON objects of `kdump salvage`: every key, with its unit, declared once. The ledger has the first two."""

from __future__ import annotations

from kdump.answer import Key
from kdump.forensics.salvage.fates import FATES

_TOPIC = Key("topic", "string", "", "")
_PARTITION = Key("partition", "number", "", "of the topic")

SALVAGE_SPAN_KEYS = (
    _TOPIC,
    _PARTITION,
    Key("fate", "string", "", "; ".join(f"{fate}: {meaning}" for fate, meaning in FATES.items())),
    Key(
        "file", "string", "", "of the source; its spans tile it, in order of positions unless batches are out of order"
    ),
    Key("position", "number", "byte of the file", "where the span begins"),
    Key("size", "number or null", "bytes", "its length; null: not known, for the file could not be read"),
    Key("offset", "number or null", "offset", "the first, by the headers; null where nothing can be believed"),
    Key("lastOffset", "number or null", "offset", "the last, by the headers"),
    Key("batches", "number", "", "in it; of what is lost, as far as headers say it"),
    Key("records", "number", "", "in them"),
    Key("code", "string", "", "the finding (kdump verify --list) behind it; empty: none"),
    Key("reason", "string", "", "why it has this fate"),
    Key("mended", "array", "", "names of the fields, covered by no checksum, that were put right"),
    Key("odd", "array", "", "codes of errors that stay in what was written: verify tells them there, too"),
    Key("outFile", "string or null", "", "where it was written, below the output directory"),
    Key("outPosition", "number or null", "byte of outFile", "where it begins there; null for records in JSON"),
)

SALVAGE_HOLE_KEYS = (
    _TOPIC,
    _PARTITION,
    Key("offset", "number", "offset", "the first of which nothing was written"),
    Key("lastOffset", "number or null", "offset", "the last; null: behind the last batch, and nobody knows how far"),
    Key(
        "cause",
        "string",
        "",
        "lost: something that was not written may have had them; absent: no source has them, as compaction, retention "
        "or a lost file leaves it",
    ),
)

SALVAGE_KEYS = (
    _TOPIC,
    _PARTITION,
    Key("sources", "array", "", "paths of the copies, the one that is followed first"),
    Key("files", "array", "", "segments, or the file of records, below the output directory; empty: nothing was kept"),
    Key(
        "whole",
        "boolean",
        "",
        "no record is lacking, as far as offsets show, none is a guess, and every valid batch is in the output, or "
        "another version of it is",
    ),
    Key("bytes", "object", "bytes", "of the sources' segments by fate (see salvageSpan): all of them"),
    Key("batches", "object", "", "by fate"),
    Key("records", "object", "", "by fate"),
    Key("logStartOffset", "number or null", "offset", "the first that was written"),
    Key("logEndOffset", "number or null", "offset", "behind the last"),
    Key("lostPlaces", "number", "", "spans of which nothing was written for a bad reason, as salvageSpan's fates tell"),
    Key("lostHoles", "number", "", "holes with something lost in them: none, if other copies had what is damaged"),
    Key("lostOffsets", "number", "offsets", "in holes with something lost in them, as far as they have an end"),
    Key("absentOffsets", "number", "offsets", "in holes that no source fills"),
    Key("losses", "array", "", "the first spans that are lost, as salvageSpan without topic and partition"),
    Key("guesses", "array", "", "the first batches that were made of damaged ones, likewise"),
    Key("holes", "array", "", "the first holes with something lost in them: {offset, lastOffset, cause}"),
    Key("mended", "object", "", "batches with a field put right, by its name"),
    Key("odd", "object", "", "batches with an error that stays, by its code"),
    Key("leaderEpochs", "string", "", "where leader-epoch-checkpoint is from: source, batches; empty: there is none"),
    Key("topicId", "string or null", "", "in partition.metadata"),
    Key(
        "openTransactions",
        "array",
        "",
        "of {producerId, producerEpoch, firstOffset, lastOffset, records, lost}: without a marker in what was written; "
        "lost: something lost lies behind its first batch, where the marker may have been",
    ),
    Key("lastStableOffset", "number or null", "offset", "where read_committed consumers stop; null: nowhere"),
    Key(
        "doubtfulTransactions",
        "array",
        "",
        "of {producerId, producerEpoch, firstOffset, markerOffset, marker}: something was lost between a transaction's "
        "first batch and the marker that ends it; if that was a marker, this one decides over what it had decided",
    ),
    Key("stop", "number or null", "offset", "from here on histories part, and nothing says which is right"),
    Key("notes", "array", "", "what else is to be known"),
)

SALVAGE_SUMMARY_KEYS = (
    Key("out", "string", "", "the output directory"),
    Key("ledger", "string", "", "path of the ledger"),
    Key("partitions", "number", "", "that were read"),
    Key("whole", "number", "", "of them, those that are whole"),
    Key("empty", "number", "", "of them, of which nothing was written"),
    Key("unread", "array", "", "what could not be read, and why"),
    Key("seconds", "number", "s", "how long it took"),
)

SALVAGE_TYPES: dict[str, tuple[Key, ...]] = {
    "salvageSpan": SALVAGE_SPAN_KEYS,
    "salvageHole": SALVAGE_HOLE_KEYS,
    "salvage": SALVAGE_KEYS,
    "salvageSummary": SALVAGE_SUMMARY_KEYS,
}
"""Every type of object, and its keys in order; `type` itself comes first in each."""
