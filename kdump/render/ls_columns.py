"""Table columns of `kdump ls`. Their rows are the JSON objects, with the `name` of the row added."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from kdump.answer import ANSWERS, Object, answer_keys
from kdump.format.count_text import offsets_text
from kdump.render.amounts import size_text
from kdump.render.escape import printable
from kdump.render.table import NAME, TEXT, Column, check_names
from kdump.render.times import iso

MORE = "+?"
"""Suffix of formats and codecs if the list may be incomplete."""
WIDE = 40
"""Width from which names are truncated on a narrow terminal."""


def ls_columns(
    type_name: str, zone: tzinfo, names: list[str] | None, widest: int = 0, *, by_size: bool = False
) -> list[Column]:
    """Return the columns for objects of this type: the default ones, with all sizes if `by_size`, or those named.
    Raises UnknownColumn."""
    known = {key.name: _column(key.name, key.unit, zone) for key in answer_keys(ANSWERS[type_name])}
    # Names are known before the rows are read: the first rows do not have to guess how wide that column will be.
    known["name"] = Column("name", ROWS[type_name].ljust(widest), lambda row: printable(str(row["name"])))
    if widest > WIDE:
        known["name"] = known["name"]._replace(least=20, cuts=NAME)
    for name, label, rank in RANKED:
        if name in known:
            known[name] = known[name]._replace(label=label, rank=rank)
    known["notes"] = Column("notes", "notes", _notes, rank=8, least=30, cuts=TEXT)
    if names is None:
        sizes = ("size", *(name for name in SIZES if by_size and name in known))
        return [known[each] for name in DEFAULT[type_name] for each in (sizes if name == "size" else (name,))]
    check_names(names, known)
    return [known[name] for name in names]


ROWS = {"logDirectory": "directory", "partitionLog": "partition", "topicLogs": "topic", "logSegment": "segment"}
RANKED = (
    ("segments", "segments", 5),
    ("partitions", "partitions", 8),
    ("size", "size", 9),
    ("logStartOffset", "logStart", 4),
    ("highWatermark", "highWatermark", 3),
    ("logEndOffset", "logEnd", 8),
    ("offsets", "offsets", 7),
    ("records", "records", 2),
    ("batches", "batches", 1),
    ("oldestTimestamp", "oldest", 3),
    ("newestTimestamp", "newest", 7),
    ("formats", "magic", 2),
    ("compressions", "codecs", 6),
    ("beside", "beside", 2),
    ("besideSize", "others", 8),
    ("onDisk", "onDisk", 9),
    ("lastOffset", "lastOffset", 8),
    ("firstOffset", "firstOffset", 4),
)
"""Label and rank of columns that have another label, or that are omitted sooner than others on a narrow terminal."""
SIZES = ("besideSize", "onDisk")
"""Columns next to `size` in rows sorted by size: the length of the other files, and the disk space of all files, which
is less if they are sparse or preallocated."""
DEFAULT = {
    "partitionLog": (
        *("name", "segments", "size", "logStartOffset", "highWatermark", "logEndOffset", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "notes"),
    ),
    "topicLogs": (
        *("name", "partitions", "segments", "size", "offsets", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "notes"),
    ),
    "logSegment": (
        *("name", "size", "firstOffset", "lastOffset", "batches", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "beside", "notes"),
    ),
}


def _column(name: str, unit: str, zone: tzinfo) -> Column:
    show: Callable[[Any], str]
    if unit == "bytes":
        show = size_text
    elif unit == "epoch ms":
        show = lambda value: iso(value, zone)  # noqa: E731
    else:
        show = _text
    more = MORE if name in ("formats", "compressions") else ""

    def cell(fields: Object) -> str:
        value = fields.get(name)
        text = "-" if value is None else show(value)
        return text + more if fields["partial"] else text

    right = unit in ("bytes", "offset") or name in ("segments", "partitions", "offsets", "records", "batches")
    return Column(name, name, cell, right=right)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(printable(str(item)) for item in value)
    return printable(str(value))


def _range(value: Any) -> tuple[int, int]:
    return (value["first"], value["last"])


def _notes(fields: Object) -> str:
    """Return what is unusual about a row."""
    start, local = fields.get("logStartOffset"), fields.get("localLogStartOffset")
    words = [f"on this disk from {local} on"] if local is not None and local != start else []
    lacks = fields.get("unreadableOffsets")
    if lacks:
        words.append(f"NOT READABLE, neither here nor in remote storage: {offsets_text(map(_range, lacks))}")
    if None not in (fields.get("highWatermark"), fields.get("logEndOffset")):
        words += ["high watermark above the log end"] if fields["highWatermark"] > fields["logEndOffset"] else []
    words += [f"UNREADABLE: {error}" for error in fields["errors"][:1]]
    if fields["damage"]:
        words.append(f"DAMAGED: {fields['damage']}")
    else:
        words += [f"{size_text(fields[name])} {name}" for name in ("torn", "padding") if fields[name]]
    words += [f"{size_text(fields[name])} {label}" for name, label in _LEFT if fields.get(name)]
    return printable("; ".join(words))


_LEFT = (("deletedSize", ".deleted"), ("unfinishedSize", ".swap, .cleaned"))
