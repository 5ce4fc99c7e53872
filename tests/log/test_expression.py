"""Expressions: what they match against a second evaluator, where errors point, and that no text hangs the parser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdump.log.batch_records import records
from kdump.log.expression.parser import DEEPEST, ExpressionError, parse
from kdump.log.expression.terms import MAYBE, NO, YES, RecordFacts
from kdump.log.paths import Target
from kdump.log.record import Record
from tests import craft
from tests.conftest import batches, read_regions

TARGET = Target("orders-3/00000000000000000000.log", 0, "orders", 3)
BASE = 1_700_000_000_000
WORDS = ("", "a", "user-42", "42", "4.5", "true", "é'\\", "2023-11-15T00:00:00", "{}", "{not json")
SCALARS = st.sampled_from([None, True, False, 42, 4.5, -7, 10**20, *WORDS])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
CONTENTS = st.one_of(
    st.none(),
    st.sampled_from([b"\xff\x00", b"\0\0\0\0\0\0\0\x2a", *(word.encode() for word in WORDS)]),
    VALUES.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
)


class Model(NamedTuple):
    """A record, as its second evaluator sees it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]
    offset: int
    time: int
    flags: int


MODELS = st.builds(
    Model,
    CONTENTS,
    CONTENTS,
    st.lists(st.tuples(st.sampled_from([b"trace", b"x.y"]), CONTENTS), max_size=2),
    st.integers(0, 9),
    st.integers(0, 5),
    st.sampled_from([0, 0x10, 0x20, 0x30]),
)


def record_of(model: Model) -> Record:
    made = craft.record(0, model.key, model.value, model.headers, timestamp=model.time)
    fields = {"attributes": model.flags, "producerId": 5, "maxTimestamp": BASE + model.time}
    data = craft.batch([made], offset=model.offset, **fields)
    (batch,) = batches(read_regions(data))
    (record,) = records(batch)
    return record


Truth = Callable[[Model], int]


def as_number(value: Any) -> Any:
    if isinstance(value, str):
        is_number = re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", value)
        return float(value) if is_number else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def compares(op: str, value: Any, literal: Any) -> bool:
    """Compare a scalar."""
    if value is None or literal is None:
        return op == "==" and value is None and literal is None
    if isinstance(value, (dict, list)):
        return False
    text = value if isinstance(value, str) else json.dumps(value)
    if op == "~":
        return re.search(literal, text, re.DOTALL) is not None
    if op == "in":
        return literal in text
    if isinstance(value, bool) or isinstance(literal, bool):
        return op == "==" and value is literal
    if not (isinstance(value, str) and isinstance(literal, str)):
        value, literal = as_number(value), as_number(literal)
        if value is None or literal is None:
            return False
    return bool({"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}[op](value, literal))


def inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in inside(item)]
    return [leaf for item in value for leaf in inside(item)] if isinstance(value, list) else [value]


def bytes_compare(op: str, data: bytes, literal: Any) -> bool:
    text = json.dumps(literal) if not isinstance(literal, str) else literal
    if op == "==":
        return data == text.encode() or (literal == 42 and type(literal) is int and data == b"\0" * 7 + b"\x2a")
    if op in ("~", "in"):
        return bool(re.search(text.encode() if op == "~" else re.escape(text.encode()), data, re.DOTALL))
    try:
        return compares(op, data.decode(), literal)
    except UnicodeDecodeError:
        return False


def loaded(data: bytes, op: str, literal: Any) -> tuple[Any, bool]:
    """Return the JSON value (None if it is none), and whether that is all that can be known."""
    if not _is_plain(data):
        return None, len(data) in (2, 4, 8)
    text = data.decode()
    if text.lstrip()[:1] not in ("{", "[", '"') or not text:
        return None, True
    try:
        return json.loads(text), True
    except ValueError:
        return None, True  # of the words here, none has a field


def part_truth(model: Model, op: str, data: bytes | None, path: list[str], literal: Any, anywhere: bool) -> int:
    if data is None:
        return YES if literal is None and not path and not anywhere else NO
    if literal is None and not path:
        return NO
    if not path and bytes_compare(op, data, literal):
        return YES
    value, is_known = loaded(data, op, literal)
    unknown = NO if is_known or model.flags & 0x20 else MAYBE  # control records have a format of their own
    if value is None:
        return unknown
    if not path:
        found = inside(value) if anywhere or op in ("~", "in") else [value]
        return YES if any(compares(op, leaf, literal) for leaf in found) else unknown
    there = [value]
    for step in path:
        flat: list[Any] = []
        while there:
            item = there.pop(0)
            if isinstance(item, list):
                there = item + there
            elif isinstance(item, dict) and step in item:
                flat.append(item[step])
        there = flat
    for item in there:
        options = inside(item) if op == "in" else [item]
        if op != "in" and isinstance(item, list):
            options = [element for element in item if not isinstance(element, list)]
        if any(compares(op, option, literal) for option in options):
            return YES
    return unknown


def header_truth(op: str, model: Model, name: str | None, literal: Any) -> int:
    answers = [NO]
    for key, value in model.headers:
        if name is not None and key != name.encode():
            continue
        if name is None and bytes_compare(op, key, literal):
            return YES
        if value is None or literal is None:
            answers.append(YES if value is None and literal is None else NO)
        elif bytes_compare(op, value, literal):
            return YES
        else:
            answers.append(NO if _is_plain(value) or len(value) in (2, 4, 8) else MAYBE)
    return max(answers)


def _is_plain(data: bytes) -> bool:
    try:
        return not re.search("[\0-\x08]", data.decode())
    except UnicodeDecodeError:
        return False


def quoted(literal: Any) -> str:
    if not isinstance(literal, str):
        return json.dumps(literal)
    return "'" + literal.replace("\\", "\\\\").replace("'", "\\'") + "'"


LITERALS = st.sampled_from([True, 42, 4.5, *WORDS[:8]])


@st.composite
def comparisons(draw: Any) -> tuple[str, Truth]:
    kind = draw(st.sampled_from(["key", "value", "header", "any", "number", "flag", "topic"]))
    op = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "~", "in"]))
    if kind == "flag":
        bit = draw(st.sampled_from([("isTransactional", 0x10), ("isControl", 0x20)]))
        return bit[0], lambda model: YES if model.flags & bit[1] else NO
    if kind == "number":
        name, of = draw(
            st.sampled_from(
                [("offset", lambda m: m.offset), ("time", lambda m: BASE + m.time), ("partition", lambda m: 3)]
            )
        )
        op = op if op not in ("~", "in") else "=="
        limit = draw(st.integers(0, 9)) + (BASE if name == "time" else 0)
        return (
            f"{name} {op} {limit}",
            lambda m: YES if (of(m) != limit if op == "!=" else compares(op, of(m), limit)) else NO,
        )
    literal = draw(st.sampled_from(["a", "^a", "4", "user-42$"]) if op in ("~", "in") else LITERALS)
    if kind == "topic":
        op = "==" if op == "in" else op
        text = f"topic {op} {quoted(literal)}"
        return (
            text,
            lambda m: (
                (YES if not compares("==", "orders", literal) else NO)
                if op == "!="
                else YES
                if compares(op, "orders", literal)
                else NO
            ),
        )
    path: list[str] = []
    if kind in ("key", "value"):
        path = draw(st.lists(st.sampled_from("ab"), max_size=2))
    if kind == "header" and op not in ("in", "~"):
        path = ["x.y"]
    if ((kind in ("key", "value") and not path) or (kind == "header" and path)) and op in ("==", "!="):
        literal = draw(st.sampled_from([literal, None]))
    basic = "==" if op == "!=" else op

    def truth(model: Model) -> int:
        if kind == "header":
            answer = header_truth(basic, model, path[0] if path else None, literal)
        elif kind == "any":
            parts = [part_truth(model, basic, data, [], literal, True) for data in (model.key, model.value)]
            answer = max(*parts, header_truth(basic, model, None, literal))
        else:
            answer = part_truth(model, basic, model.key if kind == "key" else model.value, path, literal, False)
        return 2 - answer if op == "!=" else answer

    field = ".".join([kind, *path])
    return (f"{quoted(literal)} in {field}" if op == "in" else f"{field}{op} {quoted(literal)}"), truth


Pair = tuple[tuple[str, Truth], tuple[str, Truth]]


def both(pair: Pair) -> tuple[str, Truth]:
    (left, of_left), (right, of_right) = pair
    return f"({left}) and ({right})", lambda model: min(of_left(model), of_right(model))


def either(pair: Pair) -> tuple[str, Truth]:
    (left, of_left), (right, of_right) = pair
    return f"{left} or\n{right}", lambda model: max(of_left(model), of_right(model))


EXPRESSIONS: st.SearchStrategy[tuple[str, Truth]] = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(lambda one: (f"not ({one[0]})", lambda model: 2 - one[1](model))),
        st.tuples(inner, inner).map(both),
        st.tuples(inner, inner).map(either),
    ),
    max_leaves=5,
)


@given(expression=EXPRESSIONS, model=MODELS)
def test_truth_is_that_of_a_second_evaluator(expression: tuple[str, Truth], model: Model) -> None:
    text, truth = expression
    parsed, record = parse(text), record_of(model)
    assert parsed.truth(RecordFacts(TARGET, record)) == truth(model), text
    # What the header alone shows is never contradicted.
    assert parsed.batch(TARGET, record.batch) in (MAYBE, truth(model))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("key = 'a'", "    ^"),
        ("key == user", "       ^"),
        ("key == 'a", "       ^"),
        ("keys == 'a'", "^"),
        ("value.a == 1 and", "                ^"),
        ("(key == 'a'", "           ^"),
        ("key == 'a' key", "           ^"),
        ("value ~ '('", "        ^"),
        ("time >= '2026-13-01'", "        ^"),
        ("offset ~ '1'", "         ^"),
        ("size > 1.5", "       ^"),
        ("header == 'a'", "^"),
        ("value < null", "        ^"),
        ("key == 007", "       ^"),
        ("", "^"),
    ],
)
def test_an_error_points_at_the_character(text: str, mark: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse(text)
    assert error.value.lines.splitlines()[-1] == f"  {mark}"


def error_of(text: str) -> ExpressionError | None:
    try:
        parse(text)
    except ExpressionError as error:
        return error
    return None


@given(st.text(alphabet="()'\"ke y=.~<>!&not1-:\\Tin\0é", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    error = error_of(text)
    assert error is None or (0 <= error.position <= len(text) and error.lines.replace("\n", "").isprintable())


def test_depth_length_and_periods_are_bounded() -> None:
    begun = time.monotonic()
    for text in ("(" * 5000, "not " * 2000 + "isControl", "isControl or " * 700 + "isAborted", "'" * 9999, "a" * 10**6):
        error = error_of(text)
        assert error is None or len(error.lines) < 400
    parse("(" * DEEPEST + "isControl" + ")" * DEEPEST)
    assert time.monotonic() - begun < 2
    day = 1_763_596_800_000  # 2025-11-20
    record = record_of(Model(None, None, [], 0, 0, 0))
    for text, moment, is_met in (
        ("time <= 2025-11-20", day + 86_399_999, True),
        ("time > 2025-11-20", day + 86_399_999, False),
        ("time <= '2025-11-20T15:00'", day + 15 * 3_600_000 + 1, False),
        ("time == 2025-11-20T15:00Z", day + 15 * 3_600_000 + 59_999, True),
        (f"time < {day}", day, False),
        ("time >= -1h", day, True),
    ):
        record.timestamp = moment
        assert parse(text, now=day + 3_600_000).matches(TARGET, record) is is_met, text
