"""The fast decoder of messages gives what the interpreter gives, or nothing."""

import random
import struct
from typing import Any

import pytest

from kdump import jsonl
from kdump.format.layout import Span
from kdump.format.plain_messages import MAX_BYTES, plain_text, read_plain
from kdump.format.schema import FIXED, FOLDERS, MessageSchema, SchemaField, SchemaStruct, load_folder
from kdump.format.versioned_messages import MAX_VALUES, _json, kafka_json, try_decode
from tests.conftest import SEED, sample
from tests.each_case import each_case
from tests.format.test_versioned_messages import VERSION_0, VERSION_1, VERSION_2, everything, tool

__all__ = ["everything", "tool"]  # fixtures

TAGGED = VERSION_2.replace(bytes.fromhex("04 00 04 00000007"), bytes.fromhex("02 00 04 00000007"))[:-6]
"""Version 2 without its unknown tags."""
CASES = [(0, VERSION_0), (1, VERSION_1), (2, TAGGED), (3, TAGGED)]
SCHEMAS = [schema for folder in FOLDERS for schema in load_folder(folder).values()]


def _same(schema: MessageSchema, version: int, data: bytes, position: int = 0) -> bool:
    """Assert that both decoders agree. Returns whether the fast one decoded the message."""
    spans: list[Span] = []  # with spans, the interpreter reads
    expected = try_decode(schema, version, data, position, spans=spans)
    decoded, problem = try_decode(schema, version, data, position)
    # A float64 may be NaN, and a dict of the same fields in another order is equal to it.
    assert repr((decoded, problem)) == repr(expected)
    if schema.valid.hold(decoded.version):
        assert repr(kafka_json(schema, decoded)) == repr(_json(schema.struct(decoded.version), decoded.value))
    read = read_plain(schema, decoded.version, data, position)
    text = plain_text(schema, decoded.version)(data, position)
    if text is not None:
        printed = kafka_json(schema, decoded)
        assert jsonl.escaped(text[0]) == jsonl.line(printed)
        assert text[1] == printed.get("topicId", text[1])
    else:
        assert read is None or read[1] < len(data) or _has_tagged_struct(schema.struct(decoded.version))
    return read is not None


def _has_tagged_struct(fields: SchemaStruct) -> bool:
    """Return whether the default of a tagged field is a structure, which only kafka_json compares with what is read."""
    return any(isinstance(node.default(), dict) for node in fields.tagged.values())


@pytest.mark.sampled
@pytest.mark.parametrize(("version", "data"), CASES, ids=["0", "1", "2", "3"])
def test_every_kind_of_field(everything: MessageSchema, version: int, data: bytes) -> None:
    assert _same(everything, version, data)
    assert _same(everything, version, b"frame" + data, 5)
    assert _same(everything, version, data + b"\0rest")
    for size in range(len(data)):
        assert not _same(everything, version, data[:size])
    for bit in sample(range(8 * len(data)), 7, version):  # the odd step reaches every bit of a byte
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        _same(everything, version, bytes(flipped))


@pytest.mark.sampled
@each_case("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_messages_of_every_schema(schema: MessageSchema) -> None:
    dice = random.Random(f"{SEED} {schema.name}")
    for version in range(schema.valid.lowest, schema.valid.highest + 1):
        for _ in range(10 if SEED else 2):
            data = written(schema.struct(version), dice)
            assert _same(schema, version, data) == (len(data) <= MAX_BYTES)
            for _ in range(20):
                changed = bytearray(data or b"\0")
                changed[dice.randrange(len(changed))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
                _same(schema, version, bytes(changed[: dice.choice((len(changed), dice.randrange(len(changed) + 1)))]))


def test_no_message_that_is_read_has_more_values_than_allowed() -> None:
    for schema in SCHEMAS:
        for version in range(schema.valid.lowest, schema.valid.highest + 1):
            for inner in _structs(schema.struct(version)):
                assert MAX_BYTES // inner.least * (2 + len(inner.fields)) < MAX_VALUES, schema.name


def test_a_large_message_is_left_to_the_interpreter(everything: MessageSchema) -> None:
    version, data = CASES[-1]
    assert _same(everything, version, data + bytes(MAX_BYTES - len(data)))
    assert not _same(everything, version, data + bytes(MAX_BYTES - len(data) + 1))


def _structs(fields: SchemaStruct) -> list[SchemaStruct]:
    found = []
    for node in fields.fields:
        inner = node
        while inner.element is not None:
            inner = inner.element
        if inner.inner is not None:
            found += [inner.inner, *_structs(inner.inner)]
    return found


def written(fields: SchemaStruct, dice: random.Random) -> bytes:
    """Return a valid message with random values."""
    out = b"".join(_value(node, dice) for node in fields.plain)
    if not fields.flexible:
        return out
    tagged = [(tag, _value(node, dice)) for tag, node in sorted(fields.tagged.items()) if dice.random() < 0.5]
    tagged = [(tag, data) for tag, data in tagged if len(data) < 0x80]
    return out + bytes([len(tagged)]) + b"".join(bytes([tag, len(data)]) + data for tag, data in tagged)


def _value(node: SchemaField, dice: random.Random) -> bytes:
    if node.kind in FIXED:
        return dice.randbytes(node.head_size)
    null = node.nullable and dice.random() < 0.3
    if node.inner is not None:
        present = b"\1" if node.nullable else b""
        return (b"\0" if node.compact else b"\xff") if null else present + written(node.inner, dice)
    size = dice.choice((0, 1, 2, 3))
    if node.element is not None:
        content = b"".join(_value(node.element, dice) for _ in range(size))
    else:
        size = dice.choice((size, 62, 63, 64, 130))
        content = "".join(dice.choice("abc\u00e9\u20ac") for _ in range(size)).encode()
        size = len(content)
    return _head(node, None if null else size) + (b"" if null else content)


def _head(node: SchemaField, size: int | None) -> bytes:
    if not node.compact:
        return struct.pack(">h" if node.kind == "string" else ">i", -1 if size is None else size)
    number: Any = 0 if size is None else size + 1
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])
