"""Renders decoded keys and values as JSON, table cells and lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import cache
from typing import Any

from kdump import jsonl
from kdump.decode.decoder_interface import RAW, WITHOUT_KEY, DecodedPart, DecodedRecord
from kdump.format.enum_names import enum_names, is_timestamp
from kdump.render.escape import printable
from kdump.render.times import iso

Object = dict[str, Any]
_BARE = re.compile(r"[^\s\"'(){}\[\],=]+")


def add_decoded(out: Object, reading: DecodedRecord) -> None:
    """Add the decoder's results for a record to its JSON object."""
    for part, decoded in (("key", reading.key), ("value", reading.value)):
        if decoded.value is not RAW:
            out[f"{part}Decoded"] = decoded.value
        if decoded.problem:
            out[f"{part}Problem"] = decoded.problem
        if decoded.note:
            out[f"{part}Note"] = decoded.note
    if reading.names:
        out["names"] = reading.names


def key_cell(reading: DecodedRecord, zone: tzinfo, *, titles: bool = False) -> str | None:
    """Return the key for a table row; None if it stays raw. With `titles`, the record's type replaces the key."""
    title = reading.key.title or reading.value.title
    return title if titles and title else cell(reading.key, reading.names, zone)


def value_cell(reading: DecodedRecord, zone: tzinfo, *, titles: bool = False) -> str | None:
    """Return the value for a table row; None if it stays raw. With `titles`, the key's fields precede the value."""
    value = cell(reading.value, reading.names, zone)
    if not titles or value is None or not reading.key.message:
        return value
    return f"{cell(reading.key._replace(title=''), reading.names, zone)} → {value}"


def cell(decoded: DecodedPart, names: dict[str, str], zone: tzinfo) -> str | None:
    """Return a decoded key or value as one line; None if it stays raw."""
    value = decoded.value
    if value is RAW:
        return None
    if decoded.message:
        fields = _fields(value["data"], decoded.message, names, zone)
        return " ".join(filter(None, [*([] if not decoded.title or "version" in value else [decoded.title]), fields]))
    if isinstance(value, str):
        return printable(value)
    return printable(jsonl.line(value))


def lines(reading: DecodedRecord) -> Iterator[tuple[str, str]]:
    """Yield a line and its style for each problem or note of a record."""
    for part, decoded in (("key", reading.key), ("value", reading.value)):
        if decoded.problem and decoded.problem != WITHOUT_KEY:
            beyond = " beyond this" if decoded.value is not RAW else ""
            yield f"  ! the {part} does not decode{beyond}: {printable(decoded.problem)}", "bad"
        if decoded.note:
            yield f"  ~ {part}: {printable(decoded.note)}", "note"


def _fields(data: Object, message: str, names: dict[str, str], zone: tzinfo) -> str:
    """Format a message's fields as name=value, in Kafka's order."""
    return " ".join(f"{name}={_value(name, value, message, names, zone)}" for name, value in data.items())


def _value(field: str, value: Any, message: str, names: dict[str, str], zone: tzinfo) -> str:
    if isinstance(value, dict):
        return "{" + _fields(value, message, names, zone) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(field, item, message, names, zone) for item in value) + "]"
    if isinstance(value, str):
        shown = printable(value) if _BARE.fullmatch(value) else printable(jsonl.line(value))
        return f"{printable(names[value])}({shown})" if value in names else shown
    if value is None or isinstance(value, (bool, float)):
        return str(jsonl.line(value))
    is_time, numbers = _number(message, field)
    if is_time:
        return iso(value, zone)
    return f"{numbers[value]}({value})" if numbers and value in numbers else str(value)


@cache
def _number(message: str, field: str) -> tuple[bool, dict[int, str] | None]:
    """Return whether the field is a timestamp, and the names of its values, if it has any."""
    return is_timestamp(field), enum_names(message, field)
