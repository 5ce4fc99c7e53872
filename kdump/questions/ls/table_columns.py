"""Table columns of `kdump ls`, as ls/answer.py declares them. Their rows are the JSON objects, with
the `name` of the row added."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from kdump.answer import ANSWERS, BYTES, EPOCH_MS, Key, Object, Shown, answer_keys, shown_keys
from kdump.format.count_text import count_text, offsets_text
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
    keys = answer_keys(ANSWERS[type_name])
    columns = {key.name: _column(key, zone) for key in keys}
    # Names are known before the rows are read: the first rows do not have to guess how wide that column will be.
    columns["name"] = Column("name", ROWS[type_name].ljust(widest), lambda row: printable(str(row["name"])))
    if widest > WIDE:
        columns["name"] = columns["name"]._replace(least=20, cuts=NAME)
    columns["notes"] = Column("notes", "notes", _notes, rank=8, least=30, cuts=TEXT)
    if names is None:
        shown = shown_keys(ANSWERS[type_name], "size" if by_size else "")
        return [columns[name] for name in ("name", *(key.name for key in shown), "notes")]
    check_names(names, columns)
    return [columns[name] for name in names]


ROWS = {"logDirectory": "directory", "partitionLog": "partition", "topicLogs": "topic", "logSegment": "segment"}


def _column(key: Key, zone: tzinfo) -> Column:
    show: Callable[[Any], str] = _text
    if key.unit == BYTES:
        show = size_text
    elif key.unit == EPOCH_MS:
        show = lambda value: iso(value, zone)  # noqa: E731
    more = MORE if key.name in ("formats", "compressions") else ""

    def cell(fields: Object) -> str:
        value = fields.get(key.name)
        shown_value = "-" if value is None else show(value)
        return shown_value + more if fields["partial"] else shown_value

    shown = key.shown or Shown()
    right = key.type.startswith("number") and key.unit != EPOCH_MS
    return Column(key.name, shown.label or key.name, cell, right, shown.rank)


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
    if fields.get("swapSegments") or fields.get("file", "").endswith(".swap"):
        words.append(f"{count_text(fields.get('swapSegments', 1), '.swap file')}: a startup completes the compaction")
    return printable("; ".join(words))


_LEFT = (("deletedSize", ".deleted"), ("unfinishedSize", "that a startup deletes"))
