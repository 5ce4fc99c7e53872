"""Decoders of the topics that Kafka itself writes.

A decoded message is {"name": Kafka's name of the message, "type": its number in the record (keys and metadata records),
"version": its version in the record (values and metadata records), "data": its fields as in Kafka's own JSON}."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from kdump import jsonl
from kdump.decode.decoder_interface import NOTHING, WITHOUT_KEY, DecodedPart, DecodedRecord, Spans, problem_of
from kdump.decode.id_names import IdNames, needs_only_topic_id
from kdump.decode.kafka_topics import KAFKA
from kdump.format.consumer_protocol import MESSAGES, PROTOCOL_TYPE, nested_spans, with_members
from kdump.format.coordinator_record import (
    KEY,
    VALUE,
    MessagePart,
    coordinator_spans,
    decode_coordinator_record,
    decode_key,
    decode_value,
    key_text,
    value_text,
)
from kdump.format.layout import BYTES, Field, Span
from kdump.format.metadata_record import (
    FRAME_SIZE,
    MetadataRecord,
    decode_metadata_record,
    metadata_json,
    metadata_text,
)
from kdump.format.plain_messages import PlainText
from kdump.format.schema import MessageSchema
from kdump.format.versioned_messages import kafka_json
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.state.secrets import CONFIG, HIDDEN, SCRAM, secrets_of

NULL = DecodedPart(None)
REST = Field(BYTES, "bytes that belong to no known field", name="rest")
MAX_CACHED_KEYS, MAX_CACHED_KEY_BYTES = 4096, 512
"""Maximum number of cached keys, and maximum size of one in bytes."""
GROUP_METADATA = "GroupMetadataValue"
COMMIT, COMMIT_KEY = "OffsetCommitValue", "OffsetCommitKey"


Text = TypeVar("Text")


class PartText(NamedTuple):
    """How a key or value becomes JSON: what is before its fields, and what reads these."""

    start: str
    read: PlainText


class KeyText(NamedTuple):
    """The same for the keys of one type, and for their values by the version at their start; None: only `decode`
    decodes them."""

    key: PartText
    schema: MessageSchema
    values: dict[bytes, PartText | None]


def _text_start(part: str, message: str, **numbers: int) -> str:
    """Return what is before the fields of a decoded key or value in JSON."""
    return f'"{part}Decoded":{jsonl.line({"name": message, **numbers, "data": None})[:-5]}'


class CoordinatorDecoder:
    """Decodes the records of a coordinator, with the schemas in `folder`."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str, folder: str, names: IdNames) -> None:
        self.name, self.folder, self.names = name, folder, names
        self._keys: dict[bytes | None, tuple[MessagePart, DecodedPart]] = {}
        self._texts: dict[bytes, KeyText | None] = {}
        """By the type at the start of a key."""

    def read(self, target: Target, record: Record) -> DecodedRecord:
        return self.decode(record.key, record.value)

    def decode(self, key_bytes: bytes | None, value_bytes: bytes | None) -> DecodedRecord:
        key, decoded_key = self._key(key_bytes)
        value = decode_value(self.folder, key, value_bytes)
        if value is not None:
            decoded_value = _part(value, "version")
        elif value_bytes is None:
            decoded_value = NULL
        else:
            decoded_value = DecodedPart(problem=WITHOUT_KEY)
        messages = [part.value for part in (decoded_key, decoded_value) if isinstance(part.value, dict)]
        if decoded_value.message == COMMIT and len(messages) == 2:
            self.names.learn_from_commit(*(message["data"] for message in messages))
        return DecodedRecord(decoded_key, decoded_value, self.names.of(self.folder, messages))

    def _key(self, data: bytes | None) -> tuple[MessagePart, DecodedPart]:
        """Return the decoded key. Keys are cached, because they are repeated often in a compacted topic."""
        known = self._keys.get(data)
        if known is None:
            part = decode_key(self.folder, data)
            known = part, _part(part, "type")
            if len(self._keys) >= MAX_CACHED_KEYS:
                self._keys.clear()
            if len(data or b"") <= MAX_CACHED_KEY_BYTES:
                self._keys[data] = known
        return known

    def text(self, key: bytes | None, value: bytes | None) -> str | None:
        """Return the members of the JSON object of what `decode` returns, without escapes of jsonl; None for a record
        that only `decode` decodes."""
        if key is None:
            return None
        prefix = key[: KEY.size]
        known = self._texts[prefix] if prefix in self._texts else self._key_text(prefix)
        key_fields = known.key.read(key, KEY.size) if known is not None else None
        if known is None or key_fields is None:
            return None
        text, topic_id = f"{known.key.start}{key_fields[0]}}}", None
        if value is None:
            text += ',"valueDecoded":null'
        else:
            prefix = value[: VALUE.size]
            found = known.values[prefix] if prefix in known.values else self._value_text(known, prefix)
            fields = found.read(value, VALUE.size) if found is not None else None
            if found is None or fields is None:
                return None
            text, topic_id = f"{text},{found.start}{fields[0]}}}", fields[1]
            if topic_id is not None and known.schema.name == COMMIT_KEY:
                decoded = decode_key(self.folder, key).decoded
                self.names.learn_from_commit(decoded.value if decoded is not None else {}, {"topicId": topic_id})
        return text if topic_id is key_fields[1] is None else _with_names(text, self.names, key_fields[1], topic_id)

    def _key_text(self, prefix: bytes) -> KeyText | None:
        """Return how keys that start with `prefix` become JSON, and remember it."""
        found = key_text(self.folder, prefix)
        known = None
        if found is not None and needs_only_topic_id(self.folder, found[0].name):
            schema, number, read = found
            known = KeyText(PartText(_text_start("key", schema.name, type=number), read), schema, {})
        return _remembered(self._texts, prefix, known)

    def _value_text(self, key: KeyText, prefix: bytes) -> PartText | None:
        """Return how values of such keys that start with `prefix` become JSON, and remember it."""
        plain = value_text(self.folder, key.schema, prefix)
        found = None
        if plain is not None:
            schema, version, read = plain
            if schema.name != GROUP_METADATA and needs_only_topic_id(self.folder, schema.name):
                found = PartText(_text_start("value", schema.name, version=version), read)
        return _remembered(key.values, prefix, found)

    def spans(self, record: Record) -> Spans:
        keys, values = coordinator_spans(self.folder, record.key, record.value)
        value = decode_coordinator_record(self.folder, record.key, record.value).value
        if value and value.schema and value.decoded and _is_consumer(value.schema.name, value.decoded.value):
            values = [
                tile
                for span in values
                for tile in (nested_spans(span) if span.field.name in MESSAGES and span.value else [span])
            ]
        return _tiled(keys, record.key), _tiled(values, record.value)


class MetadataDecoder:
    """Decodes the records of the metadata log, and others with the same framing, with the schemas in `folder`."""

    is_keyless = True
    is_wide = True

    def __init__(self, name: str, folder: str, names: IdNames) -> None:
        self.name, self.folder, self.names = name, folder, names
        self._texts: dict[bytes, PartText | None] = {}
        """By the frame of a value; None: only `decode` decodes it."""

    def read(self, target: Target, record: Record) -> DecodedRecord:
        return self.decode(record.key, record.value)

    def decode(self, key_bytes: bytes | None, value_bytes: bytes | None) -> DecodedRecord:
        decoded = decode_metadata_record(value_bytes, self.folder)
        value = self._value(decoded)
        key = NULL if key_bytes is None else NOTHING
        if value.message and isinstance(value.value, dict):
            self.names.learn(value.message, value.value["data"])
            return DecodedRecord(key, value, self.names.of(self.folder, [value.value]))
        return DecodedRecord(key, value)

    def text(self, key: bytes | None, value: bytes | None) -> str | None:
        """As CoordinatorDecoder.text."""
        if key is not None or value is None:
            return None
        frame = value[:FRAME_SIZE]
        found = self._texts[frame] if frame in self._texts else self._frame_text(frame)
        fields = found.read(value, FRAME_SIZE) if found is not None else None
        if found is None or fields is None:
            return None
        text = f"{found.start}{fields[0]}}}"
        return text if fields[1] is None else _with_names(text, self.names, fields[1])

    def _frame_text(self, frame: bytes) -> PartText | None:
        """Return how values with this frame become JSON, and remember it."""
        plain = metadata_text(self.folder, frame)
        found = None
        if plain is not None and plain[0] not in (CONFIG, SCRAM) and needs_only_topic_id(self.folder, plain[0]):
            name, number, version, read = plain
            found = PartText('"keyDecoded":null,' + _text_start("value", name, type=number, version=version), read)
        return _remembered(self._texts, frame, found)

    def _value(self, decoded: MetadataRecord) -> DecodedPart:
        problem, stop = problem_of(decoded.problem) if decoded.problem else ("", None)
        if decoded.values is None or (decoded.problem and not decoded.values):
            hides = bool(secrets_of(decoded.name, {}))
            return DecodedPart(title=decoded.name, problem=problem, stop=stop, hides=hides)
        data = metadata_json(decoded, self.folder)
        secrets = secrets_of(decoded.name, data)
        value = {
            "name": decoded.name,
            "type": decoded.apiKey,
            "version": decoded.version,
            "data": data | {name: HIDDEN for name in secrets if name in data},
        }
        return DecodedPart(value, decoded.name, decoded.name, problem, decoded.note, stop, bool(secrets))

    def spans(self, record: Record) -> Spans:
        values: list[Span] = []
        decode_metadata_record(record.value, self.folder, values)
        return [], _tiled(values, record.value)


def _remembered(remembered: dict[bytes, Text], prefix: bytes, text: Text) -> Text:
    if len(remembered) < MAX_CACHED_KEYS:
        remembered[prefix] = text
    return text


def _with_names(text: str, names: IdNames, *ids: str | None) -> str:
    """Return the members of a record, with the names of these topics."""
    found = names.of_ids(ids)
    return f'{text},"names":{_names_text(tuple(found.items()))}' if found else text


@lru_cache(4096)
def _names_text(names: tuple[tuple[str, str], ...]) -> str:
    return jsonl.line(dict(names))


def _part(part: MessagePart, number: str) -> DecodedPart:
    """Return a key or value as DecodedPart. `number` is the JSON key of its number: "type" for a key, "version" for a
    value."""
    problem, stop = problem_of(part.problem) if part.problem else ("", None)
    if part.schema is None or part.decoded is None or (part.problem and not part.decoded.value):
        return DecodedPart(problem=problem, stop=stop)
    fields = part.decoded.value
    data = kafka_json(part.schema, part.decoded)
    notes = [part.note]
    if _is_consumer(part.schema.name, fields) and "members" in fields:
        notes += with_members(data, fields["members"])
    name = part.schema.name
    value = {"name": name, number: part.number, "data": data}
    title = name[:-3] if name.endswith("Key") else ""
    return DecodedPart(value, title, name, problem, "; ".join(filter(None, notes)), stop)


def _is_consumer(message: str, fields: dict[str, Any]) -> bool:
    """Return True if the message is that of a group whose members use the consumer protocol."""
    return message == GROUP_METADATA and fields.get("protocolType") == PROTOCOL_TYPE


def _tiled(spans: list[Span], data: bytes | None) -> list[Span]:
    """Return the spans, with one more for the bytes after them."""
    position = spans[-1].position + spans[-1].size if spans else 0
    if data is not None and spans and position < len(data):
        spans.append(Span(position, len(data) - position, REST, data[position:], 0))
    return spans


KafkaDecoder = CoordinatorDecoder | MetadataDecoder


def kafka_decoder(name: str, names: IdNames) -> KafkaDecoder:
    """Return the decoder of one of Kafka's own topics. `names`: the known names of IDs on the same disk."""
    decoder = CoordinatorDecoder if KAFKA[name].is_coordinators else MetadataDecoder
    return decoder(name, KAFKA[name].folder, names)
