"""Encoder of Kafka's own versioned messages, the reverse of versioned_messages.

Like Kafka, it writes a tagged field only if it does not have its default. Tagged fields that the schema does not define
are not written.

Source: clients/src/main/resources/common/message/README.md, KIP-482, and org.apache.kafka.message.MessageDataGenerator.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

from kdump.format.schema import FIXED, MessageSchema, SchemaField, SchemaStruct
from kdump.format.varint import unsigned_varint

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
