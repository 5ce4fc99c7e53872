"""Decoders of the topics that Kafka itself writes.

A decoded message is {"name": Kafka's name of the message, "type": its number in the record (keys and metadata records),
"version": its version in the record (values and metadata records), "data": its fields as in Kafka's own JSON}.
"""

from __future__ import annotations

from typing import Any

from kdump.decode.decoder_interface import NOTHING, WITHOUT_KEY, DecodedPart, DecodedRecord, Spans, problem_of
from kdump.decode.id_names import IdNames
from kdump.decode.kafka_topics import KAFKA
from kdump.format.consumer_protocol import MESSAGES, PROTOCOL_TYPE, nested_spans, with_members
from kdump.format.coordinator_record import (
    MessagePart,
    coordinator_spans,
    decode_coordinator_record,
    decode_key,
    decode_value,
)
from kdump.format.layout import BYTES, Field, Span
from kdump.format.metadata_record import MetadataRecord, decode_metadata_record, metadata_json
from kdump.format.versioned_messages import kafka_json
from kdump.log.paths import Target
from kdump.log.record import Record

NULL = DecodedPart(None)
REST = Field(BYTES, "bytes that belong to no known field", name="rest")
MAX_CACHED_KEYS, MAX_CACHED_KEY_BYTES = 4096, 512
"""Maximum number of cached keys, and maximum size of one in bytes."""
GROUP_METADATA = "GroupMetadataValue"


class CoordinatorDecoder:
    """Decodes the records of a coordinator, with the schemas in `folder`."""

    is_keyless = False
    is_wide = True

    def __init__(self, name: str, folder: str, names: IdNames) -> None:
        self.name = name
        self.folder = folder
        self.names = names
        self._keys: dict[bytes | None, tuple[MessagePart, DecodedPart]] = {}

    def read(self, target: Target, record: Record) -> DecodedRecord:
        key, decoded_key = self._key(record.key)
        value = decode_value(self.folder, key, record.value)
        if value is not None:
            decoded_value = _part(value, "version")
        elif record.valueSize < 0:
            decoded_value = NULL
        else:
            decoded_value = DecodedPart(problem=WITHOUT_KEY)
        messages = [part.value for part in (decoded_key, decoded_value) if isinstance(part.value, dict)]
        if decoded_value.message == "OffsetCommitValue" and len(messages) == 2:
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
        self.name = name
        self.folder = folder
        self.names = names

    def read(self, target: Target, record: Record) -> DecodedRecord:
        decoded = decode_metadata_record(record.value, self.folder)
        value = self._value(decoded)
        key = NULL if record.keySize < 0 else NOTHING
        if value.message and isinstance(value.value, dict):
            self.names.learn(value.message, value.value["data"])
            return DecodedRecord(key, value, self.names.of(self.folder, [value.value]))
        return DecodedRecord(key, value)

    def _value(self, decoded: MetadataRecord) -> DecodedPart:
        problem, stop = problem_of(decoded.problem) if decoded.problem else ("", None)
        if decoded.values is None or (decoded.problem and not decoded.values):
            return DecodedPart(title=decoded.name, problem=problem, stop=stop)
        value = {
            "name": decoded.name,
            "type": decoded.apiKey,
            "version": decoded.version,
            "data": metadata_json(decoded, self.folder),
        }
        return DecodedPart(value, decoded.name, decoded.name, problem, decoded.note, stop)

    def spans(self, record: Record) -> Spans:
        values: list[Span] = []
        decode_metadata_record(record.value, self.folder, values)
        return [], _tiled(values, record.value)


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


def kafka_decoder(name: str, names: IdNames) -> CoordinatorDecoder | MetadataDecoder:
    """Return the decoder of one of Kafka's own topics. `names`: the known names of IDs on the same disk."""
    decoder = CoordinatorDecoder if KAFKA[name].is_coordinators else MetadataDecoder
    return decoder(name, KAFKA[name].folder, names)
