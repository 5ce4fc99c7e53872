"""Small files with other names: each is parsed, and written again from what was found in it, so that nothing else
remains. Binary files are kept if they are what their names say."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from kdump.format import java_properties, text_files
from kdump.format.checksum import castagnoli
from kdump.format.meta_properties import DIRECTORY_ID
from kdump.format.producer_snapshot import CRC_START, PRODUCER_ENTRY, SNAPSHOT_HEADER, VERSIONS
from kdump.format.text_files import TextLine
from kdump.log.file_kinds import (
    CLEAN_SHUTDOWN,
    EPOCH_CHECKPOINT,
    INDEX,
    INDEXES,
    META_PROPERTIES,
    OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    QUORUM_STATE,
    TIME_INDEX,
    FileKind,
)
from kdump.log.pseudonyms import CLUSTER_IDS, IDS, NUMBER, NUMBERS, VOTER_ID, VOTERS, Pseudonyms, is_random

LETTERS = 0x2020202020202020
"""The smallest INT64 that may be eight characters: times and IDs are below."""


class NotClear(Exception):
    """Raised for a file in which there may be a name that cannot be found."""


def redacted_file(kind: FileKind, data: bytes, segment_size: int, names: Pseudonyms) -> bytes | None:
    """Return the contents of a file with other names; None if there may be others in it. `segment_size`: bytes of the
    segment next to it."""
    try:
        if kind in INDEXES:
            return _index(kind, data, segment_size)
        if kind is PRODUCER_SNAPSHOT:
            return _snapshot(data)
        return TEXTS[kind](data, names) if kind in TEXTS else None
    except NotClear:
        return None


def _offset_checkpoint(data: bytes, names: Pseudonyms) -> bytes:
    def entry(values: dict[str, Any]) -> str:
        return f"{names.topic(values['topic'])} {values['partition']} {values['offset']}"

    return _checkpoint(data, text_files.offset_checkpoint(data), entry)


def _epoch_checkpoint(data: bytes, names: Pseudonyms) -> bytes:
    return _checkpoint(
        data, text_files.epoch_checkpoint(data), lambda values: f"{values['epoch']} {values['startOffset']}"
    )


def _checkpoint(data: bytes, lines: Any, entry: Callable[[dict[str, Any]], str]) -> bytes:
    rows = []
    for line in lines:
        if line.problem:
            raise NotClear
        row = data[line.position : line.position + line.size].decode("ascii", "replace").strip()
        if line.what != "entry" and not NUMBER.fullmatch(row):
            raise NotClear
        rows.append(entry(line.values) if line.what == "entry" else row)
    return _joined(rows)


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _partition_metadata(data: bytes, names: Pseudonyms) -> bytes:
    return _joined([f"{name}: {value}" for name, value in _properties(text_files.partition_metadata(data), names)])


def _meta_properties(data: bytes, names: Pseudonyms) -> bytes:
    return _joined([f"{name}={value}" for name, value in _properties(java_properties.properties(data), names)])


def _properties(lines: Any, names: Pseudonyms) -> list[tuple[str, Any]]:
    """Return the properties that Kafka has. Comments and others are left out."""
    text_lines: list[TextLine] = list(lines)
    if any(line.problem for line in text_lines):
        raise NotClear
    pairs = [(line.values["name"], line.values["value"]) for line in text_lines if line.values]
    return [(name, _value(name, value, names)) for name, value in pairs if name in NUMBERS | IDS | CLUSTER_IDS]


def _json_object(data: bytes, names: Pseudonyms) -> bytes:
    if not data.strip():
        return b""
    try:
        values = json.loads(data)
        kept = {name: values[name] for name in values if name in NUMBERS | IDS | CLUSTER_IDS}
        redacted = {name: _value(name, value, names) for name, value in kept.items()}
        if VOTERS in values:
            redacted[VOTERS] = [{VOTER_ID: _value("node.id", voter[VOTER_ID], names)} for voter in values[VOTERS]]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise NotClear from error
    return json.dumps(redacted, separators=(",", ":")).encode()


def _value(name: str, value: Any, names: Pseudonyms) -> Any:
    """Return the value of a property, or of a member of an object, without a name in it."""
    if name in NUMBERS:
        if type(value) is int or (isinstance(value, str) and NUMBER.fullmatch(value.strip())):
            return value
    elif isinstance(value, str):
        if name in CLUSTER_IDS:
            return value if not value or is_random(value) else names.of("cluster", value)
        if DIRECTORY_ID.fullmatch(value):
            return value
    raise NotClear


def _index(kind: FileKind, data: bytes, segment_size: int) -> bytes:
    """Return an index if its numbers are those of one: text is not in ascending order, or has too large numbers."""
    entry = INDEXES[kind]
    used = data.rstrip(b"\0")
    count = -(-len(used) // entry.size)
    if len(data) % entry.size or count * entry.size > len(data):
        raise NotClear
    rows = list(entry.struct.iter_unpack(data[: count * entry.size]))
    limits: tuple[int, ...] = (1, LETTERS, LETTERS, LETTERS, LETTERS)
    if kind in (INDEX, TIME_INDEX):
        limits = (1 << 31, segment_size) if kind is INDEX else (LETTERS, 1 << 31)
    if not all(-1 <= number < limit for row in rows for number, limit in zip(row, limits)):
        raise NotClear
    ascending = range(2) if kind in (INDEX, TIME_INDEX) else range(3, 4)
    if any(one[column] > other[column] for one, other in pairwise(rows) for column in ascending):
        raise NotClear
    return data


def _snapshot(data: bytes) -> bytes:
    if len(data) < SNAPSHOT_HEADER.size:
        raise NotClear
    header = SNAPSHOT_HEADER.read(data)
    size = SNAPSHOT_HEADER.size + header.producerEntries * PRODUCER_ENTRY.size
    if header.version not in VERSIONS or size != len(data) or castagnoli(data[CRC_START:]) != header.crc:
        raise NotClear
    return data


TEXTS: dict[FileKind, Callable[[bytes, Pseudonyms], bytes]] = {
    OFFSET_CHECKPOINT: _offset_checkpoint,
    EPOCH_CHECKPOINT: _epoch_checkpoint,
    PARTITION_METADATA: _partition_metadata,
    META_PROPERTIES: _meta_properties,
    QUORUM_STATE: _json_object,
    CLEAN_SHUTDOWN: _json_object,
}
