"""What is ruled out by its bytes does not match: of random records, of random values of Avro and Protobuf schemas, and
of bytes that a schema does not fit."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from hypothesis import given
from hypothesis import strategies as st

from kdump.core.record_columns import RecordColumns, decode
from kdump.core.record_search import fits
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.proto_compiler import compiled
from kdump.decode.record_decoder import KeyValueDecoder
from kdump.decode.registry_decoder import RegistryDecoder, SchemaSource
from kdump.log.batch_records import rows_of
from kdump.log.expression.parser import parse
from kdump.log.expression.terms import NO, NO_DECODERS, RecordFacts
from kdump.log.region import DefaultRecordBatch
from kdump.questions.find.prefilter import Prefilter
from kdump.questions.find.schema_programs import AvroProgram, Programs, ProtobufProgram
from kdump.state.schema_registry import SchemaRegistry
from kdump.state.schema_registry_replay import RegistryReplay
from tests import craft
from tests.conftest import batches, examples, read_regions
from tests.log.test_expression import EXPRESSIONS, MODELS, TARGET, Model, Truth

PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "a", "type": ["null", "long", "string", PAIR]},
        {"name": "b", "type": {"type": "array", "items": {"type": "map", "values": ["int", "Pair"]}}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
        {"name": "price", "type": "double"},
        {"name": "flag", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "code", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
PLAIN = SCHEMA | {"fields": SCHEMA["fields"][:-1]}  # type: ignore[index]
INTEGERS = (0, 1, 42, -7, 4711, 1 << 40, (1 << 31) - 1, -(1 << 31), -(1 << 63), (1 << 63) - 1, (1 << 64) - 1, 1081)
TEXTS = ("", "42", "user-42", "NEW", "é", "true", "1E+2", "4.2e1", "42.0", "abcdefgh", "2026-11-29T10:00:00Z")
FLOATS = (0.0, -0.0, 4.5, 42.0, 0.1, 1e300, 1e-7, float("nan"), float("inf"))
LONGS, WORDS = st.sampled_from([n for n in INTEGERS if n < 1 << 63]), st.sampled_from(TEXTS)
BYTES = st.sampled_from([b"", b"user-42", b"\xff", bytes(9), b"i\xb7\x1dy\xf8!i\xb7\x1d"])
PAIRS = st.fixed_dictionaries({"a": LONGS, "b": WORDS})
ORDERS = st.fixed_dictionaries(
    {
        "a": st.none() | LONGS | WORDS | PAIRS,
        "b": st.lists(st.dictionaries(WORDS, st.sampled_from([1, 42]) | PAIRS, max_size=2), max_size=2),
        "status": st.sampled_from(["NEW", "PAID"]),
        "price": st.sampled_from(FLOATS),
        "flag": st.booleans(),
        "raw": BYTES,
        "day": st.sampled_from([0, 42]),
        "at": st.sampled_from([0, 1764410400815, 253402300799999]),
        "code": st.sampled_from([Decimal("42"), Decimal("8.15")]),
    }
)
PATHS = ["a", "a.a", "a.b", "b", "b.42", "b.user-42.b", "status", "price", "flag", "raw", "day", "c"]
LITERALS = st.sampled_from(
    [
        *(*INTEGERS, *FLOATS[2:6], *TEXTS, "4711", "47", "081", "0", "00", "e", "AA", "AAAAAAAA", "abcdefghabcd", "-7"),
        *(
            "Na",
            "NaN",
            "Infinity",
            "1970-02-12",
            "100",
            100,
            -0.0,
            "-0",
            "rue",
            True,
            False,
            None,
            "PAID",
            "AI",
            "29T",
            "15000",
            "81500",
            "00000",
        ),
    ]
)


def columns_of(data: bytes) -> tuple[DefaultRecordBatch, RecordColumns]:
    (batch,) = batches(read_regions(data))
    assert isinstance(batch, DefaultRecordBatch)
    columns = RecordColumns(data[craft.HEADER :])
    decode(columns, 0, len(columns.data), batch.recordCount, True)
    return batch, columns


def check(text: str, data: bytes, decoder: Any = None) -> tuple[int, int]:
    """Assert that no record that may match is ruled out; return how many there are, and how many are kept."""
    expression = parse(text)
    batch, columns = columns_of(data)
    rows, decoders = rows_of(batch, columns, 0, 0), decoder or NO_DECODERS
    truths = {record.offset: expression.truth(RecordFacts(TARGET, record, decoders)) for record in rows}
    Prefilter(expression, decoder, "").keep(columns)
    kept = {record.offset for record in rows_of(batch, columns, 0, 0)}
    assert {offset for offset, truth in truths.items() if truth != NO} <= kept, text
    return len(truths), len(kept)


@st.composite
def questions(draw: st.DrawFn, paths: list[str]) -> str:
    """Return an expression about a decoded value."""
    literal, path = draw(LITERALS), draw(st.sampled_from(paths))
    text, operator = json.dumps(literal, ensure_ascii=False), draw(st.sampled_from(["==", "==", "in", "<", "~", "any"]))
    if (operator in ("in", "~") and not isinstance(literal, str)) or literal is None:
        operator = "=="
    if operator == "in":
        return f"{text} in {draw(st.sampled_from(['any', 'value', f'value.{path}']))}"
    if operator == "any":
        return f"any == {text}" if literal is not None else "value == null"
    other = draw(st.sampled_from(["", "", f" or value.{draw(st.sampled_from(paths))} == 42"]))
    return f"value.{path} {operator} {text}{other}"


@given(expression=EXPRESSIONS, models=st.lists(MODELS, min_size=1, max_size=4))
def test_records_without_a_decoder(expression: tuple[str, Truth], models: list[Model]) -> None:
    rows = [craft.record(n, each.key, each.value, each.headers, timestamp=each.time) for n, each in enumerate(models)]
    check(expression[0], craft.batch(rows))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("value.a == 100", '{"a":"1E+2"}'),
        ("value.a == 42", '{"a":4.2e1}'),
        ("value.a == 0.3", '{"a":0.29999999999999999}'),
        ("value.a == -0.0", '{"a":0}'),
        ("value.a == 9007199254740993", '{"a":9007199254740992.0}'),
        ("value.a == '4.2e1'", '{"a":42}'),
    ],
)
def test_numbers_that_are_written_differently(expression: str, value: str) -> None:
    check(expression, craft.batch([craft.record(0, b"k", value.encode())]))


def decoder_of(schema: str, kind: str) -> KeyValueDecoder:
    registry = SchemaRegistry()
    replay = RegistryReplay(registry)
    replay.register({"subject": "orders-value", "version": 1, "id": 7, "schemaType": kind, "schema": schema})
    source = SchemaSource("", lambda: KnownSchemas(registry), is_named=False)
    decoder = RegistryDecoder(source)
    made = KeyValueDecoder("registry", decoder, decoder, None)
    made.schemas = source
    return made


AVRO = {json.dumps(schema): decoder_of(json.dumps(schema), "AVRO") for schema in (SCHEMA, PLAIN)}
DOUBLES = decoder_of(json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "double"}]}), "AVRO")
DECODER = AVRO[json.dumps(SCHEMA)]


def encoded(value: dict[str, Any], schema: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def framed(values: list[bytes]) -> bytes:
    return craft.batch([craft.record(n, b"k", b"\0\0\0\0\7" + each) for n, each in enumerate(values)])


@given(values=st.lists(ORDERS, min_size=1, max_size=4), text=questions(PATHS), schema=st.sampled_from([SCHEMA, PLAIN]))
def test_values_of_an_avro_schema(values: list[dict[str, Any]], text: str, schema: Any) -> None:
    check(text, framed([encoded(value, schema) for value in values]), AVRO[json.dumps(schema)])


DECIMALS = st.builds(lambda number, places: number / 10**places, st.integers(-(10**12), 10**12), st.integers(0, 8))


@pytest.mark.sampled
@examples(200)
@given(
    values=st.lists(DECIMALS | st.floats(), min_size=20, max_size=20),
    digits=st.integers(0, 9999),
    zeros=st.integers(0, 2),
)
def test_the_digits_of_a_double(values: list[float], digits: int, zeros: int) -> None:
    schema = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "double"}]}
    check(f"'{'0' * zeros}{digits}' in any", framed([encoded({"a": value}, schema) for value in values]), DOUBLES)


@given(payload=st.binary(min_size=12, max_size=40))
def test_what_no_schema_fits_is_not_ruled_out(payload: bytes) -> None:
    program = AvroProgram(SCHEMA, ("none",))
    if not fits(program.numbers, payload, 0):
        check("value.a == 42", framed([payload]), DECODER)
    try:
        fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(SCHEMA))
    except Exception:  # fastavro raises many types
        return
    check("value.a == 42", framed([payload]), DECODER)


@given(value=ORDERS, cut=st.integers(-3, 2))
def test_only_whole_values_fit(value: dict[str, Any], cut: int) -> None:
    program = AvroProgram(SCHEMA, ("none",))
    data = encoded(value, SCHEMA)
    assert fits(program.numbers, data[:cut] if cut < 0 else data + bytes(cut), 0) is (cut == 0)


def test_types_with_one_name_in_two_namespaces() -> None:
    """A name without a namespace is of the one around it: `c` has two numbers, and fits a text."""
    numbers = {"type": "record", "name": "A", "fields": [{"name": name, "type": "long"} for name in ("n", "m")]}
    text = {"type": "record", "name": "A", "fields": [{"name": "s", "type": "string"}]}
    other = {"type": "record", "name": "B", "namespace": "y", "fields": [{"name": "i", "type": text}]}
    fields = [{"name": "a", "type": numbers}, {"name": "b", "type": other}, {"name": "c", "type": "A"}]
    schema = {"type": "record", "name": "Order", "namespace": "x", "fields": fields}
    value = {"a": {"n": 0, "m": 0}, "b": {"i": {"s": "z"}}, "c": {"n": 1, "m": -25}}
    assert check("'25' in any", framed([encoded(value, schema)]), decoder_of(json.dumps(schema), "AVRO")) == (1, 1)


def test_ids_without_a_schema_take_no_memory() -> None:
    programs = Programs(KnownSchemas(SchemaRegistry()), [], [])
    assert programs.of(1) is programs.of(1 << 31)


def test_a_longer_varint_is_not_ruled_out() -> None:
    schema = json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]})
    decoder = decoder_of(schema, "AVRO")
    assert check("value.a == 42", framed([b"\xd4\x00", b"\x54", b"\x56"]), decoder) == (3, 2)


SCALARS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"]
SCALARS += ["sfixed32", "sfixed64", "bool", "string", "bytes"]
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Status { NEW = 0; PAID = 1; LOST = 7; }
message Order { %s }
message Pair { int64 a = 1; string b = 2; Pair more = 3; }
message Other { string a = 1; }
"""
KINDS = [*SCALARS, *SCALARS, "Status", "Pair", "Other", "google.protobuf.Timestamp", "google.protobuf.Int64Value"]


@st.composite
def protos(draw: st.DrawFn) -> str:
    """Return a schema with fields of random types."""
    fields = []
    for number, name in enumerate(draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True)), 1):
        kind = draw(st.sampled_from(KINDS))
        form = draw(st.sampled_from(["%s", "%s", "optional %s", "repeated %s", "map<string, %s>", "map<int32, %s>"]))
        packed = (
            " [packed = false]" if form.startswith("repeated") and kind in SCALARS[:13] and draw(st.booleans()) else ""
        )
        fields.append(f"{form % kind} {name} = {number * draw(st.sampled_from([1, 30]))}{packed};")
    if draw(st.booleans()):
        fields.append("oneof choice { string one = 100; int64 two = 101; }")
    return PROTO % " ".join(fields)


def classes(schema: str) -> dict[str, Any]:
    pool = DescriptorPool()
    for file in compiled(schema, {}).file:
        pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}")) for name in ("Order", "Other")
    }


Field = descriptor_pb2.FieldDescriptorProto
LIMITS = {Field.TYPE_INT32: 32, Field.TYPE_SINT32: 32, Field.TYPE_SFIXED32: 32, Field.TYPE_UINT32: -32}
LIMITS |= {Field.TYPE_FIXED32: -32, Field.TYPE_UINT64: -64, Field.TYPE_FIXED64: -64}


def fill(draw: st.DrawFn, message: Any, depth: int = 0) -> None:
    """Set fields of a message to random values."""
    for field in message.DESCRIPTOR.fields:
        if depth > 2 or not draw(st.booleans()):
            continue
        many = getattr(message, field.name) if field.is_repeated else None
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key = draw(WORDS) if field.message_type.fields_by_name["key"].type == Field.TYPE_STRING else 42
            if field.message_type.fields_by_name["value"].message_type is not None:
                fill(draw, many[key], depth + 1)
            else:
                many[key] = scalar(draw, field.message_type.fields_by_name["value"])
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            stamp = many.add() if many is not None else getattr(message, field.name)
            stamp.seconds = draw(st.sampled_from([0, 42, 1764410400, -1]))
        elif field.message_type is not None:
            fill(draw, many.add() if many is not None else getattr(message, field.name), depth + 1)
            getattr(message, field.name) if many is not None else getattr(message, field.name).SetInParent()
        elif many is not None:
            many.extend(scalar(draw, field) for _ in range(draw(st.integers(0, 3))))
        else:
            setattr(message, field.name, scalar(draw, field))


def scalar(draw: st.DrawFn, field: Any) -> Any:
    if field.type in (Field.TYPE_DOUBLE, Field.TYPE_FLOAT):
        return draw(st.sampled_from([value for value in FLOATS if field.type == Field.TYPE_DOUBLE or value != 1e300]))
    if field.type == Field.TYPE_BOOL:
        return draw(st.booleans())
    if field.type == Field.TYPE_STRING:
        return draw(WORDS)
    if field.type == Field.TYPE_BYTES:
        return draw(BYTES)
    if field.type == Field.TYPE_ENUM:
        return draw(st.sampled_from([0, 1, 7, 42]))
    bits = LIMITS.get(field.type, 64)
    low, high = (0, 1 << -bits) if bits < 0 else (-(1 << bits - 1), 1 << bits - 1)
    return draw(st.sampled_from([number for number in INTEGERS if low <= number < high]))


PROTO_PATHS = ["a", "a.a", "a.b", "a.more.b", "b", "b.42", "c", "c.42.a", "d", "e", "f", "g", "h", "one", "two"]


@pytest.mark.sampled
@examples(75)
@given(schema=protos(), data=st.data())
def test_values_of_random_protobuf_schemas(schema: str, data: st.DataObject) -> None:
    decoder, made = decoder_of(schema, "PROTOBUF"), classes(schema)
    for _ in range(10):
        values = []
        for _ in range(data.draw(st.integers(1, 4))):
            name = data.draw(st.sampled_from(["Order", "Order", "Other"]))
            message = made[name]()
            fill(data.draw, message)
            head = data.draw(st.sampled_from([b"\0", b"\2\0", b"\1\0"])) if name == "Order" else b"\2\4"
            values.append(head + changed(data.draw, message.SerializeToString()))
        check(data.draw(questions(PROTO_PATHS)), framed(values), decoder)


def changed(draw: st.DrawFn, payload: bytes) -> bytes:
    """Return the payload, sometimes with bytes that no producer writes."""
    how, at = draw(st.integers(0, 9)), draw(st.integers(0, max(0, len(payload) - 1)))
    if how == 0:
        return payload[:at]
    if how == 1:
        return payload[:at] + draw(st.binary(min_size=1, max_size=3)) + payload[at + 1 :]
    more = [
        b"\x08\xaa\x80\x00",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x0a\x01*",
        b"\xf8\x07\x2a",
        payload,
    ]
    return payload + more[how - 2] if how < 7 else payload


def test_protobuf_is_ruled_out() -> None:
    """And most of it: a test that nothing is lost holds if nothing is ruled out."""
    schema = PROTO % "int64 id = 1; string sku = 2; repeated sint32 n = 3; Pair p = 5; double q = 6;"
    decoder, order = decoder_of(schema, "PROTOBUF"), classes(schema)["Order"]
    messages = [order(id=n, sku=f"sku-{n}", n=[n, -n], p={"a": n, "b": "x"}, q=n / 8) for n in range(1000, 1200)]
    data = framed([b"\0" + message.SerializeToString() for message in messages])
    for text, most in (
        ("value.id == 1042", 3),
        ("value.id == '1042'", 3),
        ("value.sku == 'sku-1042'", 1),
        ("value.n == -1042", 3),
        ("value.p.a == 1042", 3),
        ("'sku-1042' in any", 1),
        ("'1042' in value.p", 1),
        ("'1042' in any", 1),
        ("'125' in any", 108),
        ("value.id == 1007 or value.sku == 'sku-1042'", 5),
    ):
        count, kept = check(text, data, decoder)
        assert 1 <= kept <= most, (text, kept)
        assert count == 200


@pytest.mark.parametrize("message", ["google.protobuf.Any", "google.protobuf.Struct"])
def test_messages_that_are_shown_as_something_else_are_decoded(message: str) -> None:
    file = message.rpartition(".")[2].lower()
    schema = f'syntax = "proto3"; import "google/protobuf/{file}.proto"; message A {{ {message} a = 1; }}'
    with pytest.raises(ValueError, match=message):
        ProtobufProgram(compiled(schema, {}), ("a",))
