"""Batches with other names in their records. They are as long as their records then are, and never compressed, whatever
their headers say, which keep the size on the disk."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.decode.redaction.rules import Values, rule_for
from kdump.decode.redaction.schema_records import Unclear, kept_schema_record
from kdump.format.batch_writer import record_bytes, with_checksum
from kdump.format.consumer_protocol import MESSAGES, PREFIX, PROTOCOL_TYPE, try_decode_nested
from kdump.format.control_record import CONTROL_TYPES, KEY, VALUE, decode_control
from kdump.format.coordinator_record import KEY as COORDINATOR_KEY
from kdump.format.coordinator_record import VALUE as COORDINATOR_VALUE
from kdump.format.coordinator_record import MessagePart, decode_key, decode_value
from kdump.format.message_writer import encode
from kdump.format.metadata_record import decode_metadata_record, read_frame
from kdump.format.schema import MessageSchema, SchemaField, SchemaStruct, by_api_key, load
from kdump.io.withheld import MAX_KEPT
from kdump.log.batch_records import records
from kdump.log.internal_topics import COORDINATOR_TOPICS, SCHEMAS, SCHEMAS_TOPIC
from kdump.log.pseudonyms import Pseudonyms
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch


def redacted_batch(batch: Batch, topic: str | None, names: Pseudonyms | None) -> bytes | None:
    """Return the header of a batch, with the checksum of what follows, and its records with other names; None if there
    may be a name in it that cannot be found. `topic`: which of Kafka's own it is of, or a schema registry's; None for a
    client's, of which only control batches can be redacted. `names`: None for a registry's without its secrets."""
    if not isinstance(batch, DefaultRecordBatch) or not batch.crcValid or (batch.is_compressed and topic is None):
        return None
    payload, reading = bytearray(), Reading(batch)
    try:
        for record in records(reading):
            payload += _encoded(record, topic, names)
            if len(payload) > MAX_KEPT - batch.headerSize:
                return None
    except Undecodable:
        return None
    if reading.problems:
        return None
    return with_checksum(batch.header, payload)


def _encoded(record: Record, topic: str | None, names: Pseudonyms | None) -> bytes:
    key, value = redacted_record(record, topic, names)
    assert record.timestampDelta is not None
    assert record.offsetDelta is not None
    return record_bytes(record.offsetDelta, key, value, record.timestampDelta, record.attributes)


MEMBERS = "members[]."
SUBSCRIPTION = "subscription"
OF_CONSUMERS = "classicMemberMetadata.supportedProtocols[].metadata"
"""A subscription that the new protocol keeps for members of the classic one."""


class Undecodable(Exception):
    """Raised for a record in which there may be a name that cannot be found."""


class Redacted(NamedTuple):
    """The key and the value of a record, with other names."""

    key: bytes | None
    value: bytes | None


def redacted_record(record: Record, topic: str | None, names: Pseudonyms | None) -> Redacted:
    """Return a record of one of Kafka's own topics or of a schema registry's, or a control record of any, with other
    names; without `names`, one of a registry without its secrets. Raises Undecodable."""
    try:
        if topic == SCHEMAS_TOPIC and not record.is_control:
            return Redacted(*kept_schema_record(record, names))
        if record.header_count or names is None:
            raise Undecodable
        if record.is_control:
            return _control(record, names)
        if topic in COORDINATOR_TOPICS:
            return _coordinator(record, SCHEMAS[topic], names)
        if topic in SCHEMAS:
            return _metadata(record, SCHEMAS[topic], names)
    except (ValueError, Unclear) as error:  # what was decoded does not fit into its field
        raise Undecodable from error
    raise Undecodable


def _control(record: Record, names: Pseudonyms) -> Redacted:
    key, value = record.key, record.value
    control = decode_control(key, value)
    unclear = control.problem or control.note or control.rest
    if key is None or value is None or len(key) != KEY.size or unclear or control.value is None:
        raise Undecodable
    assert control.typeId is not None
    assert control.version is not None
    kind = CONTROL_TYPES[control.typeId]
    prefix = value[: VALUE.size] if kind.marker else b""
    return Redacted(key, prefix + _message(load(kind.message), control.version, control.value, names))


def _coordinator(record: Record, folder: str, names: Pseudonyms) -> Redacted:
    key, value = record.key, record.value
    if key is None:
        raise Undecodable
    decoded = decode_key(folder, key)
    new_key = key[: COORDINATOR_KEY.size] + _part(decoded, names)
    if value is None:
        return Redacted(new_key, None)
    part = decode_value(folder, decoded, value)
    if part is None:
        raise Undecodable
    return Redacted(new_key, value[: COORDINATOR_VALUE.size] + _part(part, names))


def _part(part: MessagePart, names: Pseudonyms) -> bytes:
    decoded = part.decoded
    if part.schema is None or decoded is None or part.problem or part.note or decoded.rest or decoded.unknown_tags:
        raise Undecodable
    return _message(part.schema, decoded.version, decoded.value, names)


def _metadata(record: Record, folder: str, names: Pseudonyms) -> Redacted:
    value = record.value
    if record.key is not None or value is None:
        raise Undecodable
    decoded = decode_metadata_record(value, folder)
    if decoded.newer and decoded.values is None and decoded.apiKey is not None:
        start = read_frame(value).position  # a type that only a newer release has
        return Redacted(None, value[:start] + bytes(len(value) - start))
    if decoded.values is None or decoded.problem or decoded.note:
        raise Undecodable
    frame = read_frame(value)
    message = _message(by_api_key(folder)[frame.apiKey], frame.version, decoded.values, names)
    return Redacted(None, value[: frame.position] + message)


def _message(schema: MessageSchema, version: int, value: Values, names: Pseudonyms) -> bytes:
    return encode(schema, version, _Message(schema.name, value, names).structure(schema.struct(version), value))


class _Message:
    def __init__(self, name: str, value: Values, names: Pseudonyms) -> None:
        self.name, self.value, self.names = name, value, names

    def structure(self, fields: SchemaStruct, value: Values) -> Values:
        return {node.name: self.field(node, value[node.name], value) for node in fields.fields}

    def field(self, node: SchemaField, value: Any, around: Values) -> Any:
        if value is None:
            return None
        if node.element is not None:
            return [self.field(node.element, element, around) for element in value]
        if node.inner is not None:
            return self.structure(node.inner, value)
        if node.kind not in ("string", "bytes", "records"):
            return value
        if (node.path.startswith(MEMBERS) and node.name in MESSAGES) or node.path == OF_CONSUMERS:
            is_consumer = self.value.get("protocolType", PROTOCOL_TYPE) == PROTOCOL_TYPE
            return self.nested(SUBSCRIPTION if node.path == OF_CONSUMERS else node.name, value) if is_consumer else b""
        rule = rule_for(self.name, node.path)
        if rule is None:
            raise Undecodable
        return rule(self.names, value, around)

    def nested(self, field: str, data: bytes) -> bytes:
        """Return a subscription or assignment with other names; nothing if it cannot be decoded."""
        decoded, error = try_decode_nested(field, data)
        if decoded is None or error is not None or decoded.note or decoded.rest or decoded.unknown_tags:
            return b""
        return data[: PREFIX.size] + _message(load(MESSAGES[field]), decoded.version, decoded.value, self.names)
