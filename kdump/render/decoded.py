"""What decoders say, as JSON and as text for a cell or a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import cache
from typing import Any

from kdump.decode.said import RAW, WITHOUT_KEY, Reading, Said
from kdump.format.meanings import is_timestamp, meanings
from kdump.render import jsonl
from kdump.render.escape import printable
from kdump.render.times import iso

Object = dict[str, Any]
_BARE = re.compile(r"[^\s\"'(){}\[\],=]+")


def put_reading(out: Object, reading: Reading) -> None:
    """The keys of a record object that a decoder gives it."""
    for part, said in (("key", reading.key), ("value", reading.value)):
        if said.value is not RAW:
            out[f"{part}Decoded"] = said.value
        if said.problem:
            out[f"{part}Problem"] = said.problem
        if said.note:
            out[f"{part}Note"] = said.note
    if reading.names:
        out["names"] = reading.names


def key_cell(reading: Reading, zone: tzinfo, *, titles: bool = False) -> str | None:
    """The key for a row of a table; None if it stays raw. With `titles`, what record it is stands in its place."""
    title = reading.key.title or reading.value.title
    return title if titles and title else cell(reading.key, reading.names, zone)


def value_cell(reading: Reading, zone: tzinfo, *, titles: bool = False) -> str | None:
    """The value for a row of a table; None if it stays raw. With `titles`, what the key says stands in front of it."""
    value = cell(reading.value, reading.names, zone)
    if not titles or value is None or not reading.key.message:
        return value
    return f"{cell(reading.key._replace(title=''), reading.names, zone)} → {value}"


def cell(said: Said, names: dict[str, str], zone: tzinfo) -> str | None:
    """What a key or value says, in one line; None if it stays raw."""
    value = said.value
    if value is RAW:
        return None
    if said.message:
        fields = _fields(value["data"], said.message, names, zone)
        return " ".join(filter(None, [*([] if not said.title or "version" in value else [said.title]), fields]))
    if isinstance(value, str):
        return printable(value)
    return printable(jsonl.line(value))


def lines(reading: Reading) -> Iterator[tuple[str, str]]:
    """What is wrong with, or to be noted of, a record: the words, and the style for them."""
    for part, said in (("key", reading.key), ("value", reading.value)):
        if said.problem and said.problem != WITHOUT_KEY:
            beyond = " beyond this" if said.value is not RAW else ""
            yield f"  ! the {part} does not decode{beyond}: {printable(said.problem)}", "bad"
        if said.note:
            yield f"  ~ {part}: {printable(said.note)}", "note"


def _fields(data: Object, message: str, names: dict[str, str], zone: tzinfo) -> str:
    """name=value of a message's fields, in Kafka's order."""
    return " ".join(f"{name}={_value(name, value, message, names, zone)}" for name, value in data.items())


def _value(field: str, value: Any, message: str, names: dict[str, str], zone: tzinfo) -> str:
    if isinstance(value, dict):
        return "{" + _fields(value, message, names, zone) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(field, item, message, names, zone) for item in value) + "]"
    if isinstance(value, str):
        text = printable(value) if _BARE.fullmatch(value) else printable(jsonl.line(value))
        return f"{printable(names[value])}({text})" if value in names else text
    if value is None or isinstance(value, (bool, float)):
        return str(jsonl.line(value))
    is_time, numbers = _number(message, field)
    if is_time:
        return iso(value, zone)
    return f"{numbers[value]}({value})" if numbers and value in numbers else str(value)


@cache
def _number(message: str, field: str) -> tuple[bool, dict[int, str] | None]:
    """Whether a number is a time, and what it may stand for."""
    return is_timestamp(field), meanings(message, field)
