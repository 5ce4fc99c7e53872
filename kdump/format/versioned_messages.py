"""Decoder of Kafka's own versioned messages: one interpreter for all schemas.

It reads what Kafka reads, and raises an error where Kafka throws. It is stricter than Kafka in three cases: a length
below -1 (null in Kafka), tags that are not in ascending order, and a tagged field of the wrong size (Kafka checks
neither). Invalid UTF-8 is replaced by replacement characters, as in Kafka.

Source: clients/src/main/resources/common/message/README.md, KIP-482 (flexible versions and tagged fields), and
org.apache.kafka.message.MessageDataGenerator and JsonConverterGenerator."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, NamedTuple

from kdump.format.errors import DecodeError, ElementsError, LengthError, NullError, OurLimitError
from kdump.format.kafka_release import newer_text
from kdump.format.kafka_uuid import uuid_text
from kdump.format.layout import BYTES, Field, Span
from kdump.format.plain_messages import read_plain
from kdump.format.schema import FIXED, UNSIGNED_VARINT, MessageSchema, SchemaField, SchemaStruct
from kdump.format.utf8 import java_text
from kdump.format.varint import Bytes, read_unsigned

UNKNOWN_TAGS = "_unknownTaggedFields"
"""Key of the tagged fields that the schema does not define, a list of {"tag": int, "data": bytes}; absent if there are
none. No Kafka field name starts with an underscore."""

TAG_COUNT = Field(UNSIGNED_VARINT, "number of tagged fields that follow", name="_taggedFields")
TAG = Field(UNSIGNED_VARINT, "tag of a tagged field", name="_tag")
TAG_SIZE = Field(UNSIGNED_VARINT, "size of the tagged field", "bytes", name="_tagSize")
TAG_DATA = Field(BYTES, "a tagged field that is not in the schema", name=UNKNOWN_TAGS)
MAX_STRING = 0x7FFF
MAX_VALUES = 500_000
"""Maximum numbers, texts and structures in the arrays of one message: decoding may expand bytes a hundredfold."""


class Decoded(NamedTuple):
    """A decoded message. `version` is the version whose layout was used; `position` is where reading stopped.

    `note` is empty, or states that the message has a newer version than the schema. `rest` contains the buffer from
    `position` on, which in a newer version may be more of the message. `unknown_tags` are the numbers of the tagged
    fields, at any depth, that the schema does not define."""

    value: dict[str, Any]
    version: int
    position: int
    note: str
    rest: bytes
    unknown_tags: frozenset[int] = frozenset()


def decode(schema: MessageSchema, version: int, data: Bytes, position: int = 0, end: int | None = None) -> Decoded:
    """Decode the message at `position` as `version` of `schema`, reading at most up to `end` (default: all of `data`).

    The value has Kafka's names in Kafka's order, with every field of the version: an absent tagged field has its
    default. Bytes stay bytes; a Uuid is text, as Kafka prints it. A version newer than the schema's newest is decoded
    as the newest. Raises DecodeError with a position in `data`."""
    decoded, error = try_decode(schema, version, data, position, end)
    if error is not None:
        raise error
    return decoded


def try_decode(
    schema: MessageSchema,
    version: int,
    data: Bytes,
    position: int = 0,
    end: int | None = None,
    spans: list[Span] | None = None,
) -> tuple[Decoded, DecodeError | None]:
    """Like `decode`, but return the fields before an error together with the error.

    Appends to `spans` a Span for each primitive field, count and tag: they tile the bytes read, in order. The Span of a
    string includes its length. An array has a Span for its count; its elements are one level deeper."""
    end = len(data) if end is None else min(end, len(data))
    readable, note = version, ""
    if version > schema.valid.highest:
        readable = schema.valid.highest
        note = f"{newer_text('version', version, readable)}; decoded as the latter"
    value: dict[str, Any] = {}
    if not schema.valid.hold(readable):
        reason = f"version {version} is unknown, expected {schema.valid.lowest} to {schema.valid.highest}"
        rest = bytes(data[position:end])
        return Decoded(value, readable, position, note, rest), DecodeError(schema.name, "version", position, reason)
    if spans is None and isinstance(data, bytes) and end == len(data):
        plain = read_plain(schema, readable, data, position)
        if plain is not None:
            return Decoded(plain[0], readable, plain[1], note, data[plain[1] :]), None
    reader = _MessageReader(schema.name, data, position, end, spans)
    problem: DecodeError | None = None
    try:
        reader.fill(value, schema.struct(readable), 0)
    except DecodeError as error:
        problem = error
        if note:
            problem = error.changed(reason=f"{error.reason} ({note})")
    stop = reader.position if problem is None else problem.position
    return Decoded(value, readable, stop, note, bytes(data[stop:end]), frozenset(reader.unknown_tags)), problem


def decode_problem(decoded: Decoded) -> str:
    """Return a note on what is unusual but legal about a message, empty if nothing is."""
    if not decoded.unknown_tags:
        return decoded.note
    tags = f"tagged fields that are not in the schema: {', '.join(map(str, sorted(decoded.unknown_tags)[:20]))}"
    return f"{decoded.note}; {tags}" if decoded.note else tags


def kafka_json(schema: MessageSchema, decoded: Decoded) -> dict[str, Any]:
    """Return the value of a message in the form of Kafka's JsonConverters: bytes in base64, records as an empty string,
    without unknown tagged fields and tagged fields that have their default. If decoding failed, returns the fields
    before the error."""
    if not decoded.unknown_tags and is_json(schema, decoded.version):
        return decoded.value
    fields = schema.struct(decoded.version)
    if decoded.unknown_tags or not _changes_only_tags(schema, decoded.version):
        return _json(fields, decoded.value)
    value = {node.name: decoded.value[node.name] for node in fields.fields if node.name in decoded.value}
    for node in fields.tagged.values():
        if node.name in value and value[node.name] == node.default():
            del value[node.name]
    return value


@cache
def _changes_only_tags(schema: MessageSchema, version: int) -> bool:
    """Return True if the values of the fields are those of Kafka's JSON."""
    return _is_json(schema.struct(version)._replace(tagged={}))


@cache
def is_json(schema: MessageSchema, version: int) -> bool:
    """Return True if the values of this version need no change to be Kafka's JSON, unless tags are unknown."""
    return _is_json(schema.struct(version))


def _is_json(struct: SchemaStruct) -> bool:
    for node in struct.fields:
        while node.element is not None:
            node = node.element
        if node.kind in ("bytes", "records") or (node.inner is not None and not _is_json(node.inner)):
            return False
    return not struct.tagged


def _json(struct: SchemaStruct, value: dict[str, Any]) -> dict[str, Any]:
    return {
        node.name: _json_value(node, value[node.name])
        for node in struct.fields
        if node.name in value and (node.tag is None or value[node.name] != node.default())
    }


def _json_value(node: SchemaField, value: Any) -> Any:
    if value is None:
        return None
    if node.element is not None:
        return [_json_value(node.element, element) for element in value]
    if node.inner is not None:
        return _json(node.inner, value)
    if node.kind == "records":
        return ""
    return base64.b64encode(value).decode() if node.kind == "bytes" else value


class _MessageReader:
    """Reads one message from `position` on, and appends its fields to `spans` if that is not None."""

    def __init__(self, name: str, data: Bytes, position: int, end: int, spans: list[Span] | None) -> None:
        self.name, self.data, self.position, self.end, self.spans = name, data, position, end, spans
        self.room = MAX_VALUES
        self.unknown_tags: set[int] = set()

    def fill(self, value: dict[str, Any], struct: SchemaStruct, depth: int) -> None:
        """Read the fields of `struct` into `value`."""
        for node in struct.plain:
            value[node.name] = self.read(node, depth)
        if not struct.flexible:
            return
        unknown = self.tagged_fields(value, struct, depth)
        if struct.tagged:
            # Kafka's order has the tagged fields among the others.
            for node in struct.fields:
                value[node.name] = value.pop(node.name) if node.name in value else node.default()
        if unknown:
            value[UNKNOWN_TAGS] = unknown

    def tagged_fields(self, value: dict[str, Any], struct: SchemaStruct, depth: int) -> list[dict[str, Any]]:
        """Read the tagged fields that the schema defines into `value`; return the others undecoded."""
        unknown: list[dict[str, Any]] = []
        start, last, end = self.position, -1, self.end
        count = self.unsigned(TAG_COUNT, TAG_COUNT.name, depth)
        # A tag and its size take at least one byte each.
        if count * 2 > end - self.position:
            raise self.error(TAG_COUNT.name, start, f"{count} tagged fields, {end - self.position} bytes left")
        for _ in range(count):
            start = self.position
            tag = self.unsigned(TAG, TAG.name, depth)
            if tag <= last:
                raise self.error(TAG.name, start, f"tag {tag} follows tag {last}")
            if tag in struct.foreign_tags:
                raise self.error(TAG.name, start, f"tag {tag}, which does not exist in this version")
            last, start = tag, self.position
            size = self.unsigned(TAG_SIZE, TAG_SIZE.name, depth)
            stop = self.position + size
            if stop > end and tag not in struct.tagged:  # MessageUtil reads it as a byte array
                raise LengthError(self.name, TAG_SIZE.name, start, size, end - self.position)
            if stop > end:
                raise self.error(TAG_SIZE.name, start, f"tag {tag} has {size} bytes, {end - self.position} bytes left")
            node = struct.tagged.get(tag)
            if node is None:
                start, self.position = self.position, stop
                data = bytes(self.data[start:stop])
                unknown.append({"tag": tag, "data": data})
                self.unknown_tags.add(tag)
                self.span(TAG_DATA, start, data, depth + 1)
                continue
            self.end = stop
            value[node.name] = self.read(node, depth + 1)
            self.end = end
            if self.position != stop:
                raise self.error(node.path, self.position, f"{stop - self.position} bytes left over in tag {tag}")
        return unknown

    def read(self, node: SchemaField, depth: int) -> Any:
        """Read the value of `node` at the current position."""
        if node.inner is not None:
            return self.structure(node, node.inner, depth)
        start = self.position
        value: Any
        if node.kind in FIXED:
            value = self.head(node)
            if node.kind == "uuid":
                value = uuid_text(value)
        else:
            value = count = self.length(node)
            if node.element is not None:
                self.span(node.field, start, count, depth)
                return None if count is None else self.array(node, node.element, start, count, depth)
            if count is not None:
                stop = self.position + count
                if stop > self.end or (node.kind == "string" and count > MAX_STRING):
                    raise LengthError(self.name, node.path, start, count, self.end - self.position)
                value = bytes(self.data[self.position : stop])
                self.position = stop
                if node.kind == "string":
                    value = java_text(value)
        self.span(node.field, start, value, depth)
        return value

    def array(self, node: SchemaField, element: SchemaField, start: int, count: int, depth: int) -> list[Any]:
        left = self.end - self.position
        if count * element.least > left:
            raise ElementsError(self.name, node.path, start, count, element.least, left)
        self.room -= count * (1 if element.inner is None else 2 + len(element.inner.fields))
        if self.room < 0:
            reason = f"{count} elements: more than {MAX_VALUES} values in one message"
            raise OurLimitError(self.name, node.path, start, reason)
        if element.inner is None:
            return [self.read(element, depth + 1) for _ in range(count)]
        return [self.structure(element, element.inner, depth) for _ in range(count)]

    def structure(self, node: SchemaField, inner: SchemaStruct, depth: int) -> dict[str, Any] | None:
        if node.nullable:
            start = self.position
            if node.compact:
                null = self.unsigned(node.field, node.path, depth) == 0
            else:
                mark = self.head(node)
                null = mark < 0
                self.span(node.field, start, mark, depth)
            if null:
                return None
        value: dict[str, Any] = {}
        self.fill(value, inner, depth + 1)
        return value

    def length(self, node: SchemaField) -> int | None:
        """Read a length or count: the bytes or elements that follow, None for null."""
        start = self.position
        if node.compact:
            count, self.position = read_unsigned(self.data, start, self.end, 32, self.name, node.path)
            count -= 1
        else:
            count = self.head(node)
        if count >= 0:
            return count
        if count < -1:
            raise NullError(self.name, node.path, start, f"length {count} is negative")
        if not node.nullable:
            raise NullError(self.name, node.path, start, "null, but the field is not nullable")
        return None

    def head(self, node: SchemaField) -> Any:
        """Read the number of fixed size, or the 16 bytes of a Uuid, at the current position."""
        start, self.position = self.position, self.position + node.head_size
        if self.position > self.end:
            raise self.error(node.path, start, f"{node.head_size} bytes needed, {self.end - start} left")
        return node.head(self.data, start)[0]

    def unsigned(self, field: Field, path: str, depth: int) -> int:
        start = self.position
        value, self.position = read_unsigned(self.data, start, self.end, 32, self.name, path)
        self.span(field, start, value, depth)
        return value

    def span(self, field: Field, start: int, value: Any, depth: int) -> None:
        if self.spans is not None:
            self.spans.append(Span(start, self.position - start, field, value, depth))

    def error(self, field: str, position: int, reason: str) -> DecodeError:
        return DecodeError(self.name, field, position, reason)
