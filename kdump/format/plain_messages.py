# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Fast decoder of messages in which nothing is unusual; versioned_messages decodes the others.

A version of a schema is turned once into objects that read its fields, as values or as JSON. Anything that an error or
a note may be about ends the attempt, so that errors and notes are found in one place. Compiled if there is a C
compiler; otherwise runs as plain Python."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from json.encoder import encode_basestring
from typing import Any

from kdump import jsonl
from kdump.format.kafka_uuid import uuid_text
from kdump.format.schema import FIXED, MessageSchema, SchemaField, SchemaStruct

try:
    import cython
except ImportError:
    from kdump import nocython as cython

MAX_BYTES = 16_384
"""Maximum size of a message. No count in it needs more than two bytes as a varint, and none exceeds a limit."""
SIGNED = ("int8", "int16", "int32", "int64")

Plain = Callable[[bytes, int], "tuple[dict[str, Any], int] | None"]
"""`read_plain` for one version."""
PlainText = Callable[[bytes, int], "tuple[str, str | None] | None"]
"""Returns what versioned_messages.kafka_json does, as JSON that jsonl.escaped has not seen yet, and the `topicId` of
the message, if it has one. Returns None also if the message does not end where the bytes do."""


class Unusual(Exception):
    """Raised if versioned_messages must decode the message."""


def read_plain(schema: MessageSchema, version: int, data: bytes, position: int) -> tuple[dict[str, Any], int] | None:
    """Return the value that versioned_messages.decode returns, and the position after it. Returns None if the message
    does not decode, has tagged fields that the schema does not define, or is large. The version must be valid."""
    return plain_reader(schema, version)(data, position)


@cache
def plain_reader(schema: MessageSchema, version: int) -> Plain:
    """Return `read_plain` for a version."""
    return _reader(schema, version).read


def plain_text(schema: MessageSchema, version: int) -> PlainText:
    """Return the function that reads messages of a version as JSON."""
    return _reader(schema, version).text


@cache
def _reader(schema: MessageSchema, version: int) -> _Reader:
    return _Reader(schema.struct(version))


@cython.cclass
class _Message:
    """The message that is being read, up to `at`."""

    data: bytes
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    topic_id: str | None

    def __init__(self, data: bytes, at: cython.Py_ssize_t) -> None:
        self.topic_id = None
        self.data = data
        self.at = at
        self.end = len(data)

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.Py_ssize_t)
    def skip(self, size: cython.Py_ssize_t):
        """Go on by `size` bytes, which must be there; return where they begin."""
        start: cython.Py_ssize_t = self.at
        if size > self.end - start:
            raise Unusual
        self.at = start + size
        return start

    @cython.cfunc
    @cython.exceptval(-2)
    @cython.returns(cython.longlong)
    def small(self):
        """Read a byte: a varint below 128, or part of a longer one."""
        start: cython.Py_ssize_t = self.skip(1)
        data: bytes = self.data
        return data[start]


@cython.cclass
class _Value:
    """Reads the values of a field; `text` appends the pieces of their JSON to `out`."""

    @cython.cfunc
    def read(self, message: _Message):
        raise NotImplementedError

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        out.append(jsonl.line(self.read(message)))


@cython.cclass
class _Number(_Value):
    size: cython.Py_ssize_t
    is_signed: cython.bint
    is_simple: cython.bint
    """Whether it is an integer, and the core is compiled."""
    unpack: Callable[[bytes, int], tuple[Any, ...]]

    def __init__(self, node: SchemaField) -> None:
        self.size = node.head_size
        self.is_signed = node.kind in SIGNED
        self.is_simple = node.kind != "float64" and cython.compiled
        self.unpack = node.head

    @cython.cfunc
    def read(self, message: _Message):
        start: cython.Py_ssize_t = message.skip(self.size)
        stop: cython.Py_ssize_t = start + self.size
        data: bytes = message.data
        number: cython.longlong
        if not self.is_simple:
            return self.unpack(data, start)[0]
        number = data[start]
        if self.is_signed and number > 0x7F:
            number -= 0x100
        start += 1
        while start < stop:
            number = number * 256 + data[start]
            start += 1
        return number

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        out.append(str(self.read(message)) if self.is_simple else jsonl.line(self.read(message)))


@cython.cclass
class _Bool(_Value):
    @cython.cfunc
    def read(self, message: _Message):
        return message.small() != 0

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        out.append("true" if message.small() else "false")


@cython.cclass
class _Uuid(_Value):
    is_topic_id: cython.bint

    def __init__(self, node: SchemaField) -> None:
        self.is_topic_id = node.path == "topicId"

    @cython.cfunc
    def read(self, message: _Message):
        start: cython.Py_ssize_t = message.skip(16)
        data: bytes = message.data
        return uuid_text(data[start : start + 16])

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        read: str = self.read(message)
        if self.is_topic_id:
            message.topic_id = read
        out.append(f'"{read}"')


@cython.cclass
class _Counted(_Value):
    """A value with a length or count before it."""

    size: cython.Py_ssize_t
    is_compact: cython.bint
    is_nullable: cython.bint

    def __init__(self, node: SchemaField) -> None:
        self.size = node.head_size
        self.is_compact = node.compact
        self.is_nullable = node.nullable

    @cython.cfunc
    @cython.exceptval(-2)
    @cython.returns(cython.longlong)
    def count(self, message: _Message):
        """Read the length or count; -1 for null."""
        count: cython.longlong = message.small()
        more: cython.longlong
        _: cython.Py_ssize_t
        if self.is_compact:
            if count > 0x7F:
                more = message.small()
                if more > 0x7F:
                    raise Unusual
                count += (more - 1) * 128
            count -= 1
        else:
            if count > 0x7F:
                count -= 0x100
            for _ in range(self.size - 1):
                count = count * 256 + message.small()
        if count < -1 or (count < 0 and not self.is_nullable):
            raise Unusual
        return count


@cython.cclass
class _Text(_Counted):
    """A string, or bytes."""

    is_text: cython.bint
    is_records: cython.bint

    def __init__(self, node: SchemaField) -> None:
        _Counted.__init__(self, node)
        self.is_text = node.kind == "string"
        self.is_records = node.kind == "records"

    @cython.cfunc
    def read(self, message: _Message):
        count: cython.longlong = self.count(message)
        if count < 0:
            return None
        start: cython.Py_ssize_t = message.skip(count)
        data: bytes = message.data
        return data[start : start + count].decode("utf-8") if self.is_text else data[start : start + count]

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        value: Any = self.read(message)
        if value is None:
            out.append("null")
        elif self.is_text:
            out.append(encode_basestring(value))
        else:
            out.append('""' if self.is_records else f'"{base64.b64encode(value).decode()}"')


@cython.cclass
class _Array(_Counted):
    element: _Value
    least: cython.Py_ssize_t

    def __init__(self, node: SchemaField) -> None:
        assert node.element is not None
        _Counted.__init__(self, node)
        self.element = _value(node.element)
        self.least = node.element.least

    @cython.cfunc
    def read(self, message: _Message):
        count: cython.longlong = self.count(message)
        element: _Value = self.element
        _: cython.longlong
        if count < 0:
            return None
        if count * self.least > message.end - message.at:
            raise Unusual
        values: list[Any] = []
        for _ in range(count):
            values.append(element.read(message))
        return values

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        count: cython.longlong = self.count(message)
        element: _Value = self.element
        i: cython.longlong
        if count < 0:
            out.append("null")
            return
        if count * self.least > message.end - message.at:
            raise Unusual
        out.append("[")
        for i in range(count):
            if i:
                out.append(",")
            element.text(message, out)
        out.append("]")


@cython.cclass
class _Struct(_Value):
    """`values`: a dict with all fields, in Kafka's order, which has the tagged ones among the others; they have their
    defaults, the others None."""

    values: dict[str, Any]
    names: list[str]
    readers: list[_Value]
    fresh: list[Any]
    tagged: dict[int, Any]
    labels: list[str]
    """What is before each value in JSON."""
    is_flexible: cython.bint
    is_compact: cython.bint
    is_nullable: cython.bint

    def __init__(self, fields: SchemaStruct, is_compact: bool = False, is_nullable: bool = False) -> None:
        self.values = {node.name: None for node in fields.fields}
        self.names = [node.name for node in fields.plain]
        self.readers = [_value(node) for node in fields.plain]
        self.fresh = []
        """Names and defaults of tagged fields whose default is a list or dict: each message has its own."""
        self.tagged = {}
        for tag, node in fields.tagged.items():
            default = node.default()
            self.values[node.name] = default
            self.tagged[tag] = (node.name, _value(node), _default_text(default))
            if isinstance(default, (list, dict)):
                self.fresh.append((node.name, node.default))
        self.labels = [f'{"," if i else "{"}"{name}":' for i, name in enumerate(self.names)]
        self.is_flexible = fields.flexible
        self.is_compact = is_compact
        self.is_nullable = is_nullable

    @cython.cfunc
    @cython.exceptval(-1)
    @cython.returns(cython.bint)
    def is_null(self, message: _Message):
        """Read the mark of a nullable structure."""
        mark: cython.longlong
        if not self.is_nullable:
            return False
        mark = message.small()
        if self.is_compact and mark > 0x7F:
            raise Unusual
        return mark > 0x7F or (self.is_compact and not mark)

    @cython.cfunc
    def read(self, message: _Message):
        return None if self.is_null(message) else self.fields(message)

    @cython.cfunc
    def text(self, message: _Message, out: list[str]):
        if self.is_null(message):
            out.append("null")
        else:
            self.members(message, out)

    @cython.cfunc
    def members(self, message: _Message, out: list[str]):
        """Append the JSON object. Kafka's JSON omits tagged fields with their default."""
        labels: list[str] = self.labels
        readers: list[_Value] = self.readers
        reader: _Value
        starts: list[int] = []
        i: cython.Py_ssize_t
        count: cython.longlong
        for i in range(len(labels)):
            starts.append(len(out))
            out.append(labels[i])
            reader = readers[i]
            reader.text(message, out)
        count = message.small() if self.is_flexible else 0
        if not count:
            out.append("}" if labels else "{}")
            return
        starts.append(len(out))
        texts = {name: "".join(out[starts[i] + 1 : starts[i + 1]]) for i, name in enumerate(self.names)}
        self.tagged_fields(message, count, texts, True)
        del out[starts[0] :]
        members = ",".join([f'"{name}":{texts[name]}' for name in self.values if name in texts])
        out.append("{" + members + "}")

    @cython.cfunc
    def fields(self, message: _Message):
        values: dict[str, Any] = self.values.copy()
        names: list[str] = self.names
        readers: list[_Value] = self.readers
        reader: _Value
        i: cython.Py_ssize_t
        count: cython.longlong
        for i in range(len(names)):
            reader = readers[i]
            values[names[i]] = reader.read(message)
        if self.is_flexible:
            for name, default in self.fresh:
                values[name] = default()
            count = message.small()
            if count:
                self.tagged_fields(message, count, values, False)
        return values

    @cython.cfunc
    def tagged_fields(self, message: _Message, count: cython.longlong, values: dict[str, Any], as_text: cython.bint):
        """Read `count` tagged fields into `values`, by name; `as_text`: as JSON, and without defaults."""
        pieces: list[str]
        tag: cython.longlong
        last: cython.longlong = -1
        size: cython.longlong
        stop: cython.longlong
        reader: _Value
        _: cython.longlong
        for _ in range(count):
            tag = message.small()
            size = message.small()
            tagged_field = self.tagged.get(tag)
            if tag <= last or tagged_field is None or size > 0x7F:
                raise Unusual
            last = tag
            stop = message.at + size
            reader = tagged_field[1]
            if not as_text:
                values[tagged_field[0]] = reader.read(message)
            elif tagged_field[2] is None:
                raise Unusual
            else:
                pieces = []
                reader.text(message, pieces)
                template = "".join(pieces)
                if template != tagged_field[2]:
                    values[tagged_field[0]] = template
            if message.at != stop:
                raise Unusual


@cython.cclass
class _Reader:
    """Reads messages of one version."""

    fields: _Struct

    def __init__(self, fields: SchemaStruct) -> None:
        self.fields = _Struct(fields)

    def read(self, data: bytes, position: cython.Py_ssize_t) -> tuple[dict[str, Any], int] | None:
        """As `read_plain`."""
        message: _Message
        if len(data) - position > MAX_BYTES:
            return None
        message = _Message(data, position)
        try:
            return self.fields.fields(message), message.at
        except (Unusual, UnicodeDecodeError):
            return None

    def text(self, data: bytes, position: cython.Py_ssize_t) -> tuple[str, str | None] | None:
        """As PlainText."""
        message: _Message
        out: list[str] = []
        if len(data) - position > MAX_BYTES:
            return None
        message = _Message(data, position)
        try:
            self.fields.members(message, out)
        except (Unusual, UnicodeDecodeError):
            return None
        return ("".join(out), message.topic_id) if message.at == message.end else None


def _default_text(default: Any) -> str | None:
    """Return the JSON of a tagged field's default; None if a value that is equal may have another text."""
    if isinstance(default, (dict, float)):
        return None
    return jsonl.line("" if isinstance(default, bytes) and not default else default)


def _value(node: SchemaField) -> _Value:
    if node.inner is not None:
        return _Struct(node.inner, node.compact, node.nullable)
    if node.kind in FIXED:
        return _Bool() if node.kind == "bool" else _Uuid(node) if node.kind == "uuid" else _Number(node)
    return _Text(node) if node.element is None else _Array(node)
