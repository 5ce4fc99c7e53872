"""What is ruled out by its bytes does not match: of random records, and of random values of an Avro schema."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from hypothesis import given
from hypothesis import strategies as st

from kdump.core.record_columns import RecordColumns, decode
from kdump.core.record_search import fits
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.record_decoder import KeyValueDecoder
from kdump.decode.registry_decoder import RegistryDecoder, SchemaSource
from kdump.log.batch_records import rows_of
from kdump.log.expression.parser import parse
from kdump.log.expression.terms import NO, NO_DECODERS, RecordFacts
from kdump.log.region import DefaultRecordBatch
from kdump.questions.find.prefilter import Prefilter, _Program
from kdump.state.schema_registry import SchemaRegistry
from kdump.state.schema_registry_replay import RegistryReplay
from tests import craft
from tests.conftest import batches, read_regions
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
    ],
}
LONGS, WORDS = st.sampled_from([0, 42, -7, 4711, 1 << 40]), st.sampled_from(["", "42", "user-42", "NEW", "é", "true"])
PAIRS = st.fixed_dictionaries({"a": LONGS, "b": WORDS})
ORDERS = st.fixed_dictionaries(
    {
        "a": st.none() | LONGS | WORDS | PAIRS,
        "b": st.lists(st.dictionaries(WORDS, st.sampled_from([1, 42]) | PAIRS, max_size=2), max_size=2),
        "status": st.sampled_from(["NEW", "PAID"]),
        "price": st.sampled_from([0.0, 4.5, 42.0]),
        "flag": st.booleans(),
        "raw": st.sampled_from([b"", b"user-42", b"\xff"]),
        "day": st.sampled_from([0, 42]),
    }
)
PATHS = st.sampled_from(["a", "a.a", "a.b", "b", "b.42", "b.user-42.b", "status", "price", "flag", "raw", "day", "c"])
LITERALS = st.sampled_from(
    [*range(3), 42, -7, 4711, 4.5, "42", "4711", "user-42", "NEW", "é", "1970-02-12", True, None]
)


def columns_of(data: bytes) -> tuple[DefaultRecordBatch, RecordColumns]:
    (batch,) = batches(read_regions(data))
    assert isinstance(batch, DefaultRecordBatch)
    columns = RecordColumns(data[craft.HEADER :])
    decode(columns, 0, len(columns.data), batch.recordCount, True)
    return batch, columns


def check(text: str, data: bytes, decoder: Any = None) -> None:
    """Assert that no record that may match is ruled out."""
    expression = parse(text)
    batch, columns = columns_of(data)
    rows, decoders = rows_of(batch, columns, 0, 0), decoder or NO_DECODERS
    truths = {record.offset: expression.truth(RecordFacts(TARGET, record, decoders)) for record in rows}
    Prefilter(expression, decoder, "").keep(columns)
    kept = {record.offset for record in rows_of(batch, columns, 0, 0)}
    assert {offset for offset, truth in truths.items() if truth != NO} <= kept, text


@given(expression=EXPRESSIONS, models=st.lists(MODELS, min_size=1, max_size=4))
def test_records_without_a_decoder(expression: tuple[str, Truth], models: list[Model]) -> None:
    rows = [craft.record(n, each.key, each.value, each.headers, timestamp=each.time) for n, each in enumerate(models)]
    check(expression[0], craft.batch(rows))


PARSED = fastavro.parse_schema(SCHEMA)


def decoder_of() -> KeyValueDecoder:
    registry = SchemaRegistry()
    replay = RegistryReplay(registry)
    replay.register({"subject": "orders-value", "version": 1, "id": 7, "schema": json.dumps(SCHEMA)})
    source = SchemaSource("", lambda: KnownSchemas(registry), is_named=False)
    decoder = RegistryDecoder(source)
    made = KeyValueDecoder("registry", decoder, decoder, None)
    made.schemas = source
    return made


DECODER = decoder_of()


def encoded(value: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, PARSED, value)
    return stream.getvalue()


@given(
    values=st.lists(ORDERS, min_size=1, max_size=4),
    path=PATHS,
    literal=LITERALS,
    operator=st.sampled_from(["==", "in", "any"]),
)
def test_values_of_an_avro_schema(values: list[dict[str, Any]], path: str, literal: Any, operator: str) -> None:
    text = json.dumps(literal, ensure_ascii=False)
    expression = f"value.{path} == {text}"
    if operator != "==" and not isinstance(literal, (bool, type(None))):
        expression = f"'{literal}' in {'any' if operator == 'any' else f'value.{path}'}"
    data = [b"\0\0\0\0\7" + encoded(value) for value in values]
    check(expression, craft.batch([craft.record(n, b"k", each) for n, each in enumerate(data)]), DECODER)


@given(payload=st.binary(min_size=12, max_size=40))
def test_what_no_schema_fits_is_not_ruled_out(payload: bytes) -> None:
    program = _Program(("a",))
    program.add(SCHEMA, ("none",))
    if not fits(program.numbers, payload, 0):
        check("value.a == 42", craft.batch([craft.record(0, b"k", b"\0\0\0\0\7" + payload)]), DECODER)
    try:
        fastavro.schemaless_reader(io.BytesIO(payload), PARSED)
    except Exception:  # fastavro raises many types
        return
    check("value.a == 42", craft.batch([craft.record(0, b"k", b"\0\0\0\0\7" + payload)]), DECODER)


@given(value=ORDERS, cut=st.integers(-3, 2))
def test_only_whole_values_fit(value: dict[str, Any], cut: int) -> None:
    program = _Program(("a",))
    program.add(SCHEMA, ("none",))
    data = encoded(value)
    assert fits(program.numbers, data[:cut] if cut < 0 else data + bytes(cut), 0) is (cut == 0)
