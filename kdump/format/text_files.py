"""Parsers of the small text files in a log directory: checkpoints, partition.metadata, quorum-state.
meta.properties is parsed by kdump.format.java_properties.

Source: org.apache.kafka.server.common.CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile,
PartitionMetadataFile, FileQuorumStateStore, CleanShutdownFileHandler.

Each parser yields Lines that tile the text. An invalid line has a `problem` and no values; parsing continues after it.
"""

from __future__ import annotations

__lazy_modules__ = {"kdump.format.known_releases"}

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdump.format.known_releases import newer_version
from kdump.format.numbers import parse_int, parse_long

LARGEST_TEXT = 16 * 1024 * 1024
"""Maximum size in bytes of a text file that is read: a checkpoint of 100,000 partitions has half as many."""
CHECKPOINT = "OffsetCheckpointFile"
"""The class whose versions a checkpoint has. Those of leader epochs are the same, which CheckpointFile compares."""
SPACES = re.compile(r"[ \t\n\x0b\f\r]+")
"""What Java's regular expressions call white space."""


class TextLine(NamedTuple):
    """A part of the text, usually a line with its line end: bytes position..position+size-1 of the file. `values` are
    by JSON name, empty for a line without any; `what` is the kind of line. `newer`: the problem is a version above
    those that are known; `bad`: the problem is this word, perhaps an empty one, which is not a number."""

    position: int
    size: int
    what: str
    values: dict[str, Any]
    problem: str = ""
    newer: bool = False
    bad: str | None = None


def lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the position and bytes of each line, with its line end (BufferedReader.readLine)."""
    for match in re.finditer(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", data):
        yield match.start(), match.group()


def words(line: bytes) -> list[str]:
    """Split a line as Java does: an empty first word remains, empty last ones are removed."""
    words_of_line = SPACES.split(line.rstrip(b"\r\n").decode("utf-8", "replace"))
    while words_of_line and not words_of_line[-1]:
        words_of_line.pop()
    return words_of_line


def offset_checkpoint(data: bytes) -> Iterator[TextLine]:
    """Parse version 0, count, and "topic partition offset" lines (OffsetCheckpointFile)."""
    return _checkpoint(data, {"topic": str, "partition": parse_int, "offset": parse_long})


def epoch_checkpoint(data: bytes) -> Iterator[TextLine]:
    """Parse version 0, count, and "epoch startOffset" lines (LeaderEpochCheckpointFile). A line with a negative number
    has values and a problem: it is read, but a broker that loads it exits (LeaderEpochFileCache.assign)."""
    for line in _checkpoint(data, {"epoch": parse_int, "startOffset": parse_long}):
        is_negative = min(line.values.values(), default=0) < 0
        yield line._replace(problem="a number is negative") if is_negative else line


def _checkpoint(data: bytes, columns: dict[str, Callable[[str], Any]]) -> Iterator[TextLine]:
    count = None
    found = 0
    for number, (position, line) in enumerate(lines(data)):
        problem, values = "" if line.isascii() else _not_utf8(line), {}
        if number < 2:
            text = line.rstrip(b"\r\n").decode("utf-8", "replace")
            what = ("version", "count")[number]
            value = parse_int(text)
            newer = newer_version(CHECKPOINT, value) if number == 0 else ""
            if value is None:
                problem = f"{what} is not a number"
            elif number == 0 and value != 0:
                problem = newer or f"version is {value}, not 0"
            elif number == 1:
                count = value
            yield TextLine(position, len(line), what, {}, problem, bool(newer))
            continue
        parts, bad = words(line), None
        if not problem:
            values = {name: parse(part) for (name, parse), part in zip(columns.items(), parts)}
            bad = next((part for part, value in zip(parts, values.values()) if value is None), None)
            if len(parts) != len(columns) or bad is not None:
                values, problem = {}, f"not of the form {' '.join(columns)!r}"
        found += bool(values)
        yield TextLine(position, len(line), "entry", values, problem, bad=bad if len(parts) == len(columns) else None)
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


def partition_metadata(data: bytes) -> Iterator[TextLine]:
    """Parse the name: value lines of partition.metadata, of which Kafka reads the first two, whatever their names."""
    for number, (position, line) in enumerate(lines(data)):
        parts = words(line)
        if number > 1:
            yield TextLine(position, len(line), "comment", {})
            continue
        values = {"name": parts[0].removesuffix(":"), "value": parts[1]} if len(parts) == 2 else {}
        yield TextLine(position, len(line), "property", values, "" if values else "not of the form 'name: value'")


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
