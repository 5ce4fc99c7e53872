"""Decodes keys and values in the changelogs and repartition topics of Kafka Streams: the structure that Streams adds.
What is inside is decoded by the formats that the user names, else it is text or base64.

Which structure a key has is recognized by its timestamps, unless a decoder is named. Buffers of suppress, and stores
and topics of foreign-key joins and outer joins, are named and not taken apart."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kdump.decode.decoder_interface import (
    NOTHING,
    RAW,
    DecodedPart,
    DecodedRecord,
    FormatError,
    PartDecoder,
    RecordContext,
    Spans,
    context_of,
    decoder_fault,
    problem_of,
)
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, Field, Span
from kdump.format.streams_record import KEYS, is_join_key, key_structure, read_change
from kdump.log.paths import Target
from kdump.log.record import Record

STREAMS, CHANGE = "streams", "streams-change"
NULL = DecodedPart(None)
INNER = Field(BYTES, "key without its window", name="key")
VERSION_HEADER = b"v"
"""Header of each record in the changelog of suppress that is not a tombstone."""
TABLE = re.compile(r"-KTABLE-[\w.-]*repartition$")
"""Repartition topics of tables, by the names that Streams gives them."""
NAMED = (
    (re.compile(r"subscription-registration-(\d+-)?topic$", re.IGNORECASE), ("", "SubscriptionWrapper")),
    (re.compile(r"subscription-response-(\d+-)?topic$", re.IGNORECASE), ("", "SubscriptionResponseWrapper")),
    (
        re.compile(r"subscription-(state-)?store-(\d+-)?changelog$", re.IGNORECASE),
        ("CombinedKey", "SubscriptionWrapper"),
    ),
)
"""Topics of foreign-key joins, and Kafka's classes of their keys and values."""
Context = Callable[[], RecordContext]


class StreamsDecoder:
    """Decodes records; `key` and `value` decode what is inside the structures. Under the name `streams`, structures are
    recognized by their bytes."""

    is_keyless = False
    is_wide = False

    def __init__(self, name: str, key: PartDecoder | None, value: PartDecoder | None) -> None:
        self.name = name
        self.key = key
        self.value = value

    def read(self, target: Target, record: Record) -> DecodedRecord:
        topic = target.topic or ""
        named = ("", "")
        if self.name == STREAMS:
            named = next((names for pattern, names in NAMED if pattern.search(topic)), None) or _classes(record)
        return DecodedRecord(
            self._part("key", record.key, named[0], target, record),
            self._part("value", record.value, named[1], target, record),
        )

    def _part(self, part: str, data: bytes | None, name: str, target: Target, record: Record) -> DecodedPart:
        if data is None:
            return NULL
        if name:
            return DecodedPart({"name": name, "payload": base64.b64encode(data).decode()})
        about = partial(context_of, part, target, record)
        return self._key(data, about) if part == "key" else self._value(data, target.topic or "", about)

    def _key(self, key: bytes, about: Context) -> DecodedPart:
        kind = self._structure(key)
        structure = KEYS.get(kind)
        if structure is None:
            return _inside(self.key, key, about)
        start = len(key) - structure.size
        if start < 0:
            return DecodedPart(problem=f"{len(key)} bytes, at least {structure.size} needed for its window", stop=0)
        inner = _inside(self.key, key[:start], about)
        return _with({"key": _shown(inner, key[:start])} | structure.read(key, start)._asdict(), inner)

    def _structure(self, key: bytes) -> str:
        if self.name == STREAMS:
            return key_structure(key)
        return self.name if self.name in KEYS else ""

    def _value(self, value: bytes, topic: str, about: Context) -> DecodedPart:
        if self.name != CHANGE and not (self.name == STREAMS and TABLE.search(topic)):
            return _inside(self.value, value, about)
        try:
            change = read_change(value)
        except DecodeError as error:
            problem, stop = problem_of(error)
            return DecodedPart(problem=problem, stop=stop)
        shown: dict[str, Any] = {}
        last = NOTHING
        for name, data in (("newValue", change.newValue), ("oldValue", change.oldValue)):
            inner = NULL if data is None else _inside(self.value, data, about)
            shown[name] = None if data is None else _shown(inner, data)
            last = inner if inner.problem or inner.note else last
        return _with(shown | {"isLatest": change.isLatest}, last)

    def spans(self, record: Record) -> Spans:
        key = record.key or b""
        structure = KEYS.get(self._structure(key))
        if structure is None or len(key) < structure.size:
            return [], []
        start = len(key) - structure.size
        return [Span(0, start, INNER, key[:start], 0), *structure.walk(key, start, len(key))], []


def _classes(record: Record) -> tuple[str, str]:
    """Return Kafka's classes of a key and value whose structure is not taken apart; empty for others."""
    if any(name == VERSION_HEADER for name, _ in record.headers) and record.value is not None:
        return "", "BufferValue"
    if record.key is not None and is_join_key(record.key):
        return "TimestampedKeyAndJoinSide", "LeftOrRightValue"
    return "", ""


def _inside(decode: PartDecoder | None, data: bytes, about: Context) -> DecodedPart:
    if decode is None:
        return NOTHING
    try:
        return decode(data, about)
    except FormatError as error:
        return decoder_fault(error)


def _shown(decoded: DecodedPart, data: bytes) -> Any:
    """Return what is inside a structure: decoded, else text, else base64."""
    if decoded.value is not RAW:
        return decoded.value
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _with(value: Any, inner: DecodedPart) -> DecodedPart:
    """Return a structure with the problem and the note of what is inside."""
    return DecodedPart(value, problem=inner.problem, note=inner.note)
