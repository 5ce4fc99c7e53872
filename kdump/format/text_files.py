"""Parsers of the small text files in a log directory: checkpoints, partition.metadata, quorum-state.
meta.properties is parsed by kdump.format.java_properties.

Source: org.apache.kafka.server.common.CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataFile, FileQuorumStateStore, CleanShutdownFileHandler.

Each parser yields Lines that tile the text. An invalid line has a `problem` and no values; parsing continues after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdump.format.known_releases import newer_version
from kdump.format.numbers import LONG_MIN, parse_int, parse_long

CHECKPOINT = "OffsetCheckpointFile"
"""The class whose versions a checkpoint has. Those of leader epochs are the same, which CheckpointFile compares."""


class TextLine(NamedTuple):
    """A part of the text, usually a line with its line end: bytes position..position+size-1 of the file. `values` are
    by JSON name, empty for a line without any; `what` is the kind of line. `newer`: the problem is a version above
    those that are known."""

    position: int
    size: int
    what: str
    values: dict[str, Any]
    problem: str = ""
    newer: bool = False


def lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the position and bytes of each line, with its line end."""
    for match in re.finditer(rb"[^\n]*\n|[^\n]+", data):
        yield match.start(), match.group()


def _number(text: bytes, lowest: int, parse: Callable[[str], int | None] = parse_int) -> int | None:
    """Parse a decimal number of at least `lowest` that fits into a Java int (or long, with parse_long), else None."""
    value = parse(text.decode("ascii", "replace"))
    return None if value is None or value < lowest else value


def offset_checkpoint(data: bytes) -> Iterator[TextLine]:
    """Parse version 0, count, and "topic partition offset" lines (OffsetCheckpointFile)."""

    def entry(words: list[bytes]) -> dict[str, Any] | None:
        if len(words) != 3:
            return None
        partition, offset = _number(words[1], 0), _number(words[2], LONG_MIN, parse_long)
        if partition is None or offset is None:
            return None
        return {"topic": words[0].decode("utf-8", "replace"), "partition": partition, "offset": offset}

    yield from _checkpoint(data, entry, "topic partition offset")


def epoch_checkpoint(data: bytes) -> Iterator[TextLine]:
    """Parse version 0, count, and "epoch startOffset" lines (LeaderEpochCheckpointFile)."""

    def entry(words: list[bytes]) -> dict[str, Any] | None:
        # A broker that loads a negative number exits (LeaderEpochFileCache.assign).
        if len(words) != 2:
            return None
        epoch, start = _number(words[0], 0), _number(words[1], 0, parse_long)
        return None if epoch is None or start is None else {"epoch": epoch, "startOffset": start}

    yield from _checkpoint(data, entry, "epoch startOffset")


def _checkpoint(data: bytes, entry: Any, form: str) -> Iterator[TextLine]:
    count = None
    found = 0
    for number, (position, line) in enumerate(lines(data)):
        words = line.split()
        if number < 2:
            what = ("version", "count")[number]
            value = _number(words[0], 0) if len(words) == 1 else None
            problem = "" if value is not None else f"{what} is not a number"
            newer = newer_version(CHECKPOINT, value) if what == "version" else ""
            if what == "count":
                count = value
            yield TextLine(position, len(line), what, {}, newer or problem, bool(newer))
            continue
        values, problem = entry(words), _not_utf8(line)
        if problem:
            values = None
        elif values is None:
            problem = f"not of the form {form!r}"
        found += values is not None
        yield TextLine(position, len(line), "entry", values or {}, problem)
    # An empty file, or one that ends after its version, is valid and has no entries.
    if count is not None and count != found:
        yield TextLine(len(data), 0, "count", {}, f"the count is {count}, but the number of entries is {found}")


def _not_utf8(line: bytes) -> str:
    """Return why a line is not UTF-8, empty if it is. Java's reader rejects other bytes (MalformedInputException)."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{line[error.start]:02x} is not UTF-8"
    return ""


def properties(data: bytes) -> Iterator[TextLine]:
    """Parse the name: value lines of partition.metadata."""
    for position, line in lines(data):
        text = line.strip().decode("utf-8", "replace")
        if not text or text[0] in "#!":
            yield TextLine(position, len(line), "comment", {})
            continue
        match = re.match(r"^([^=:\s]+)\s*[=:]\s*(.*)$", text)
        values = {"name": match[1], "value": match[2]} if match else {}
        yield TextLine(position, len(line), "property", values, "" if match else "not of the form 'name=value'")


def json_object(data: bytes) -> Iterator[TextLine]:
    """Parse one JSON object (quorum-state, .kafka_cleanshutdown): a TextLine for the file, then an empty one per
    member."""
    if not data.strip():
        return
    try:
        value = json.loads(data)
        problem = "" if isinstance(value, dict) else "not a JSON object"
    except (ValueError, RecursionError) as error:
        value, problem = None, f"not JSON: {error}"
    yield TextLine(0, len(data), "object", {}, problem)
    if isinstance(value, dict):
        for name, member in value.items():
            text = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)
            yield TextLine(0, 0, "property", {"name": name, "value": text})
