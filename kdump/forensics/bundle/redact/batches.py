"""Batches with other names in their records. They are as long as their records then are, and never compressed, whatever
their headers say, which keep the size on the disk.

Like Kafka, it writes a tagged field only if it does not have its default. Tagged fields that the schema does not define
are not written.

Source: clients/src/main/resources/common/message/README.md, KIP-482, and org.apache.kafka.message.MessageDataGenerator.
"""

from __future__ import annotations

import base64
import struct
from typing import Any, NamedTuple

from kdump.forensics.bundle.redact.pseudonyms import Pseudonyms
from kdump.forensics.bundle.redact.rules import Values, rule_for
from kdump.forensics.bundle.redact.schema_records import Unclear, kept_schema_record
from kdump.format.batch_header import BATCH_HEADER, CRC_START
from kdump.format.checksum import castagnoli
from kdump.format.consumer_protocol import MESSAGES, PREFIX, PROTOCOL_TYPE, try_decode_nested
from kdump.format.control_record import CONTROL_TYPES, KEY, VALUE, decode_control
from kdump.format.coordinator_record import KEY as COORDINATOR_KEY
from kdump.format.coordinator_record import VALUE as COORDINATOR_VALUE
from kdump.format.coordinator_record import MessagePart, decode_key, decode_value
from kdump.format.metadata_record import decode_metadata_record, read_frame
from kdump.format.schema import FIXED, MessageSchema, SchemaField, SchemaStruct, by_api_key, load
from kdump.format.varint import unsigned_varint, varint
from kdump.log.batch_records import records
from kdump.log.bundle_index import MAX_KEPT
from kdump.log.internal_topics import COORDINATOR_TOPICS, SCHEMAS, SCHEMAS_TOPIC
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch


def redacted_batch(batch: Batch, topic: str | None, names: Pseudonyms | None) -> bytes | None:
    """Return the header of a batch, with the checksum of what follows, and its records with other names; None if there
    may be a name in it that cannot be found. `topic`: which of Kafka's own it is of, or a schema registry's; None for a
    client's, of which only control batches can be redacted. `names`: None for a registry's without its secrets."""
    if not isinstance(batch, DefaultRecordBatch) or not batch.crcValid or (batch.is_compressed and topic is None):
        return None
    payload = bytearray()
    try:
        for record in records(batch):
            payload += _encoded(record, topic, names)
            if len(payload) > MAX_KEPT - BATCH_HEADER.size:
                return None
    except Undecodable:
        return None
    if batch.problems:
        return None
    stored = BATCH_HEADER.struct.pack(*batch.header._replace(crc=0))
    crc = castagnoli(payload, castagnoli(stored[CRC_START:]))
    return BATCH_HEADER.struct.pack(*batch.header._replace(crc=crc)) + payload


def _encoded(record: Record, topic: str | None, names: Pseudonyms | None) -> bytes:
    key, value = redacted_record(record, topic, names)
    assert record.timestampDelta is not None
    assert record.offsetDelta is not None
    numbers = varint(record.timestampDelta) + varint(record.offsetDelta)
    body = (record.attributes & 0xFF).to_bytes(1, "big") + numbers + _sized(key) + _sized(value) + varint(0)
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


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
        self.name = name
        self.value = value
        self.names = names

    def structure(self, fields: SchemaStruct, value: Values) -> Values:
        return {node.name: self.field(node, value[node.name], value) for node in fields.fields}

    def field(self, node: SchemaField, value: Any, around: Values) -> Any:
        if value is None:
            return None
        if node.element is not None:
            return [self.field(node.element, each, around) for each in value]
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


MAX_STRING = 0x7FFF


def encode(schema: MessageSchema, version: int, value: dict[str, Any]) -> bytes:
    """Return the message with the fields of `value`, as versioned_messages.decode returns it, in a known version.
    Raises ValueError for a value that its field cannot have."""
    out = bytearray()
    try:
        _structure(out, schema.struct(version), value)
    except struct.error as error:
        raise ValueError(f"{schema.name}: {error}") from error
    return bytes(out)


def _structure(out: bytearray, fields: SchemaStruct, value: dict[str, Any]) -> None:
    for node in fields.plain:
        _value(out, node, value[node.name])
    if not fields.flexible:
        return
    tagged = {tag: node for tag, node in sorted(fields.tagged.items()) if value[node.name] != node.default()}
    out += unsigned_varint(len(tagged))
    for tag, node in tagged.items():
        data = bytearray()
        _value(data, node, value[node.name])
        out += unsigned_varint(tag) + unsigned_varint(len(data)) + data


def _value(out: bytearray, node: SchemaField, value: Any) -> None:
    if node.inner is not None:
        if node.nullable:
            # The same in compact form: 0 for null, 1 for the fields that follow.
            out += struct.pack(">b", (0 if node.compact else -1) if value is None else 1)
        if value is not None:
            _structure(out, node.inner, value)
    elif node.kind in FIXED:
        number = base64.urlsafe_b64decode(value + "==") if node.kind == "uuid" else value
        out += struct.pack(">" + FIXED[node.kind].code, number)
    elif value is None:
        if not node.nullable:
            raise ValueError(f"{node.path}: null")
        _length(out, node, -1)
    elif node.element is not None:
        _length(out, node, len(value))
        for element in value:
            _value(out, node.element, element)
    else:
        data = value.encode() if isinstance(value, str) else value
        if node.kind == "string" and len(data) > MAX_STRING:
            raise ValueError(f"{node.path}: {len(data)} bytes")
        _length(out, node, len(data))
        out += data


def _length(out: bytearray, node: SchemaField, count: int) -> None:
    if node.compact:
        out += unsigned_varint(count + 1)
    else:
        out += struct.pack(">h" if node.kind == "string" else ">i", count)
