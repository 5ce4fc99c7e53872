"""Decoders of the topics of Kafka Connect and MirrorMaker, and of Kafka Streams: the structure that Streams
adds in changelogs and repartition topics. What is inside is decoded by the formats that the user names, else it is text
or base64.

Which structure a key of Streams has is recognized by its timestamps, unless a decoder is named. Buffers of suppress,
and stores and topics of foreign-key joins and outer joins, are named and not taken apart.

Source: KafkaConfigBackingStore, KafkaStatusBackingStore, OffsetUtils (Connect); OffsetSync, Checkpoint, Heartbeat
(org.apache.kafka.connect.mirror)."""

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
    Decoder,
    FormatError,
    PartDecoder,
    RecordContext,
    Spans,
    context_of,
    decoder_fault,
    problem_of,
)
from kdump.decode.jsonable import to_json
from kdump.decode.kafka_topics import MIRROR, OFFSETS, STREAMS
from kdump.format.count_text import count_text
from kdump.format.errors import DecodeError
from kdump.format.layout import BYTES, Field, Span
from kdump.format.mirror_record import MIRROR_MESSAGES
from kdump.format.streams_record import KEYS, is_join_key, key_structure, read_change
from kdump.format.versioned_messages import kafka_json, try_decode
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.state.connect_records import connect_value, offset_key, text_key, without_secrets

NULL = DecodedPart(None)
WINDOWED, CHANGE = "streams", "streams-change"
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
        self.name, self.key, self.value = name, key, value

    def read(self, target: Target, record: Record) -> DecodedRecord:
        topic = target.topic or ""
        named = ("", "")
        if self.name == WINDOWED:
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
        if self.name == WINDOWED:
            return key_structure(key)
        return self.name if self.name in KEYS else ""

    def _value(self, value: bytes, topic: str, about: Context) -> DecodedPart:
        if self.name != CHANGE and not (self.name == WINDOWED and TABLE.search(topic)):
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


def ecosystem_decoder(
    name: str, key: PartDecoder | None, value: PartDecoder | None, other: Decoder | None, *, is_sure: bool
) -> Decoder:
    """Return a decoder by its name. `key` and `value`: formats of what is inside the structures of Streams. `is_sure`:
    records that do not decode have a problem; otherwise they are probably those of another topic, and left to
    `other`."""
    if name in STREAMS:
        return StreamsDecoder(name, key, value)
    decoder: Decoder = MirrorDecoder(name) if name in MIRROR else ConnectDecoder(name)
    return decoder if is_sure else LooseDecoder(decoder, other)


class LooseDecoder:
    """Decodes records with a decoder as far as they fit it, others with `other`, or not at all."""

    is_keyless = False

    def __init__(self, decoder: Decoder, other: Decoder | None) -> None:
        self.decoder, self.other = decoder, other
        self.name = decoder.name
        self.is_wide = decoder.is_wide

    def read(self, target: Target, record: Record) -> DecodedRecord:
        decoded = self.decoder.read(target, record)
        if not (decoded.key.problem or decoded.value.problem or decoded.key.note or decoded.value.note):
            return decoded
        return self.other.read(target, record) if self.other else DecodedRecord(NOTHING, NOTHING)

    def spans(self, record: Record) -> Spans:
        keys, values = self.decoder.spans(record)
        sizes = [sum(span.size for span in spans) for spans in (keys, values)]
        fits = sizes == [max(0, record.keySize), max(0, record.valueSize)]
        return (keys, values) if fits or self.other is None else self.other.spans(record)


class ConnectDecoder:
    """Decodes configs, offsets or statuses of Connect. Secrets are hidden."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, target: Target, record: Record) -> DecodedRecord:
        key, text = self._key(record.key)
        value = NULL
        if record.value is not None:
            try:
                value = _hidden(connect_value(record.value), text)
            except ValueError as error:
                value = DecodedPart(problem=str(error))
        return DecodedRecord(key, value)

    def _key(self, key: bytes | None) -> tuple[DecodedPart, str]:
        try:
            if self.name == OFFSETS:
                return _hidden(list(offset_key(key))), ""
            text_key(key, self.name)
            stated = (key or b"").decode()
            return DecodedPart(to_json(stated)), stated
        except ValueError as error:
            return DecodedPart(problem=str(error)), ""

    def spans(self, record: Record) -> Spans:
        return [], []


def _hidden(value: Any, key: str = "") -> DecodedPart:
    """Return a value of Connect without secrets. `key`: that of its record."""
    shown = without_secrets(value, key)
    return DecodedPart(to_json(shown), hides=shown != value)


class MirrorDecoder:
    """Decodes offset syncs, checkpoints or heartbeats of MirrorMaker."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.message = MIRROR[name]

    def read(self, target: Target, record: Record) -> DecodedRecord:
        return DecodedRecord(self._part("Key", record.key), self._part("Value", record.value))

    def _part(self, part: str, data: bytes | None, spans: list[Span] | None = None) -> DecodedPart:
        if data is None:
            return NULL
        schema = MIRROR_MESSAGES[self.message + part]
        decoded, error = try_decode(schema, 0, data, spans=spans)
        problem, stop = problem_of(error) if error else ("", None)
        if error and not decoded.value:
            return DecodedPart(problem=problem, stop=stop)
        notes = [f"version {decoded.value['version']}, decoded as 0"] if decoded.value.get("version") else []
        notes += [f"{count_text(len(decoded.rest), 'byte')} left over"] if decoded.rest and not error else []
        value: dict[str, Any] = {"name": schema.name, "data": kafka_json(schema, decoded)}
        title = self.message if part == "Key" else ""
        return DecodedPart(value, title, schema.name, problem, "; ".join(notes), stop)

    def spans(self, record: Record) -> Spans:
        keys: list[Span] = []
        values: list[Span] = []
        self._part("Key", record.key, keys)
        self._part("Value", record.value, values)
        return keys, values
