"""Fast decoder of messages in which nothing is unusual; versioned_messages decodes the others.

A version of a schema is turned once into one function per field, and consecutive numbers into one. Anything that an
error or a note may be about ends the attempt, so that errors and notes are found in one place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any

from kdump.format.kafka_uuid import uuid_text
from kdump.format.schema import FIXED, MessageSchema, SchemaField, SchemaStruct

MAX_BYTES = 16_384
"""Maximum size of a message. No count in it needs more than two bytes as a varint, and none exceeds a limit."""
SHORT = 8
"""Arrays with fewer numbers are read in one call."""

Read = Callable[[bytes, int], "tuple[Any, int]"]
"""Returns the value at a position, and the position after it, which may be past the end."""
Plain = Callable[[bytes, int], "tuple[dict[str, Any], int] | None"]
"""`read_plain` for one version."""
Step = Callable[[bytes, int, "dict[str, Any]"], int]
"""Reads fields into a dict. Returns the position after them."""


class Unusual(Exception):
    """Raised by a Read or Step if versioned_messages must decode the message."""


def read_plain(schema: MessageSchema, version: int, data: bytes, position: int) -> tuple[dict[str, Any], int] | None:
    """Return the value that versioned_messages.decode returns, and the position after it. Returns None if the message
    does not decode, has tagged fields that the schema does not define, or is large. The version must be valid."""
    return plain_reader(schema, version)(data, position)


@cache
def plain_reader(schema: MessageSchema, version: int) -> Plain:
    """Return `read_plain` for a version."""
    read_message = _struct(schema.struct(version))

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int] | None:
        size = len(data)
        if size - position > MAX_BYTES:
            return None
        try:
            message = read_message(data, position)
        except (Unusual, IndexError, UnicodeDecodeError, struct.error):
            return None
        return None if message[1] > size else message

    return read


def _struct(fields: SchemaStruct) -> Read:
    steps = _steps(fields.plain)
    names = dict.fromkeys(node.name for node in fields.fields)
    tagged = {tag: (node.name, _value(node)) for tag, node in fields.tagged.items()}
    defaults = [(node.name, node.default) for node in fields.tagged.values()]
    flexible = fields.flexible

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        value = names.copy()  # Kafka's order has the tagged fields among the others
        for step in steps:
            position = step(data, position, value)
        if flexible:
            for name, default in defaults:
                value[name] = default()
            count = data[position]
            position += 1
            if count:
                position = _tagged_fields(data, position, count, tagged, value)
        return value, position

    return read


def _steps(nodes: tuple[SchemaField, ...]) -> list[Step]:
    steps: list[Step] = []
    for is_fixed, group in groupby(nodes, lambda node: node.kind in FIXED):
        together = list(group)
        steps += [_fixed(together)] if is_fixed else [_step(node) for node in together]
    return steps


def _is_number(node: SchemaField) -> bool:
    return node.kind in FIXED and node.kind != "uuid"


def _fixed(nodes: list[SchemaField]) -> Step:
    """Return the step for consecutive fields of fixed size."""
    code = struct.Struct(">" + "".join(FIXED[node.kind].code for node in nodes))
    unpack, size, names = code.unpack_from, code.size, [node.name for node in nodes]
    uuids = [node.name for node in nodes if node.kind == "uuid"]

    def step(data: bytes, position: int, value: dict[str, Any]) -> int:
        value.update(zip(names, unpack(data, position)))
        for name in uuids:
            value[name] = uuid_text(value[name])
        return position + size

    return step


def _step(node: SchemaField) -> Step:
    name, read = node.name, _value(node)
    if node.compact and node.element is not None and _is_number(node.element):
        return _short_array(name, node.element, read)

    def step(data: bytes, position: int, value: dict[str, Any]) -> int:
        value[name], position = read(data, position)
        return position

    return step


def _short_array(name: str, element: SchemaField, read: Read) -> Step:
    """Return the step for a compact array of numbers; `read` reads those that are null, or not short."""
    unpack = [struct.Struct(f">{count}{FIXED[element.kind].code}").unpack_from for count in range(SHORT)]
    size = element.least

    def step(data: bytes, position: int, value: dict[str, Any]) -> int:
        count = data[position] - 1
        if 0 <= count < SHORT:
            value[name] = list(unpack[count](data, position + 1))
            return position + 1 + count * size
        value[name], position = read(data, position)
        return position

    return step


def _tagged_fields(
    data: bytes, position: int, count: int, known: dict[int, tuple[str, Read]], value: dict[str, Any]
) -> int:
    last = -1
    for _ in range(count):
        tag, size = data[position], data[position + 1]
        if tag <= last or tag not in known or size > 0x7F:
            raise Unusual
        last, stop = tag, position + 2 + size
        name, read = known[tag]
        value[name], position = read(data, position + 2)
        if position != stop:
            raise Unusual
    return position


def _value(node: SchemaField) -> Read:
    if node.kind == "uuid":
        return _uuid
    if _is_number(node):
        return _number(node)
    if node.inner is not None:
        return _nullable(node, _struct(node.inner)) if node.nullable else _struct(node.inner)
    return _counted(node, _text if node.kind == "string" else _bytes if node.element is None else _array(node.element))


def _uuid(data: bytes, position: int) -> tuple[str, int]:
    stop = position + 16
    if stop > len(data):
        raise Unusual
    return uuid_text(data[position:stop]), stop


def _number(node: SchemaField) -> Read:
    unpack, size = node.head, node.head_size
    return lambda data, position: (unpack(data, position)[0], position + size)


def _nullable(node: SchemaField, read_inner: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        mark = data[position]
        if node.compact:
            if mark > 0x7F:
                raise Unusual
            return read_inner(data, position + 1) if mark else (None, position + 1)
        return read_inner(data, position + 1) if mark <= 0x7F else (None, position + 1)

    return read


Content = Callable[[bytes, int, int], "tuple[Any, int]"]
"""Returns the value of so many bytes or elements at a position, and the position after it."""


def _counted(node: SchemaField, content: Content) -> Read:
    """Return the reader of a value with a length or count before it."""
    unpack, size = node.head, node.head_size

    def read(data: bytes, position: int) -> tuple[Any, int]:
        if node.compact:
            count = data[position]
            position += 1
            if count > 0x7F:
                more = data[position]
                position += 1
                if more > 0x7F:
                    raise Unusual
                count += (more - 1) << 7
            count -= 1
        else:
            count = unpack(data, position)[0]
            position += size
        if count >= 0:
            return content(data, position, count)
        if count != -1 or not node.nullable:
            raise Unusual
        return None, position

    return read


def _text(data: bytes, position: int, count: int) -> tuple[str, int]:
    stop = position + count
    return str(data[position:stop], "utf-8"), stop


def _bytes(data: bytes, position: int, count: int) -> tuple[bytes, int]:
    stop = position + count
    return data[position:stop], stop


def _array(element: SchemaField) -> Content:
    read_element, least = _value(element), element.least
    code = FIXED[element.kind].code if _is_number(element) else ""

    def content(data: bytes, position: int, count: int) -> tuple[list[Any], int]:
        if count * least > len(data) - position:
            raise Unusual
        if code:
            return list(struct.unpack_from(f">{count}{code}", data, position)), position + count * least
        values = []
        for _ in range(count):
            value, position = read_element(data, position)
            values.append(value)
        return values, position

    return content
