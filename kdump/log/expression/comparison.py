"""Compares a value, decoded or raw, with a literal. A number equals its text: schemas have strings with numbers in
them, JSON has 64-bit integers of Protobuf as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import ge, gt, le, lt
from typing import Any

Number = int | Decimal
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
INTEGERS = (2, 4, 8)
"""Sizes in bytes of the integers that Kafka's serializers write, big-endian."""


def number_of(text: str) -> Number | None:
    """Return the number that a text is; None if it is none, or has leading zeros."""
    if len(text) > 100 or not NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("-").isdigit() else Decimal(text)


def at_path(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield what is at a path in a decoded value: of each element of a list on the way."""
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from at_path(item, path)
    elif isinstance(value, dict) and path[0] in value:
        yield from at_path(value[path[0]], path[1:])


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values without parts of their own in a decoded value."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        else:
            yield value


def _text(value: Any) -> str | None:
    """Return the text of a decoded value as JSON writes it; None for null, lists and objects."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else None


@dataclass(frozen=True)
class Comparison:
    """`operator`: ==, <, <=, >, >=, ~ (the literal is a regular expression that matches somewhere), or in (the literal
    is part of the text). `is_raw`: of the bytes alone, as --key of inspect compares them."""

    operator: str
    literal: bool | int | Decimal | str | bytes | None
    is_raw: bool = False

    @cached_property
    def data(self) -> bytes:
        """The bytes of the literal's text."""
        if isinstance(self.literal, bytes):
            return self.literal
        return (_text(self.literal) or str(self.literal)).encode("utf-8", "surrogateescape")

    @cached_property
    def encodings(self) -> frozenset[bytes]:
        """The bytes that are equal to the literal: its text, or an integer as Kafka's serializers write it."""
        number, found = self.literal, {self.data}
        if type(number) is int:
            fitting = (size for size in INTEGERS if number.bit_length() < 8 * size)
            found |= {number.to_bytes(size, "big", signed=True) for size in fitting}
        return frozenset(found)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(str(self.literal), re.DOTALL)

    @cached_property
    def bytes_pattern(self) -> re.Pattern[bytes]:
        return re.compile(self.data, re.DOTALL)

    def of_bytes(self, data: bytes) -> bool:
        """Compare the bytes of a key, a value, or a header's value."""
        if self.operator == "==":
            return data in self.encodings
        if self.operator == "~":
            return self.bytes_pattern.search(data) is not None
        if self.operator == "in":
            return self.data in data
        try:
            return self.of_scalar(data.decode())
        except UnicodeDecodeError:
            return False

    def of_value(self, value: Any) -> bool:
        """Compare what is at a path; of a list, one of its elements is enough. The text of `in` may be anywhere below
        it."""
        if self.operator == "in":
            return any(map(self.of_scalar, leaves(value)))
        if isinstance(value, list):
            return any(self.of_value(item) for item in value if not isinstance(item, list))
        return self.of_scalar(value)

    def of_scalar(self, value: Any) -> bool:
        """Compare a decoded value; lists and objects compare as false."""
        literal = self.literal
        if literal is None or value is None:
            return literal is value and self.operator == "=="
        text = _text(value)
        if text is None:
            return False
        if self.operator == "~":
            return self.pattern.search(text) is not None
        if self.operator == "in":
            return self.data.decode("utf-8", "surrogateescape") in text
        if isinstance(literal, bool) or isinstance(value, bool):
            return self.operator == "==" and literal is value
        if isinstance(literal, str) and isinstance(value, str):
            return ordered(self.operator, value, literal)
        # Text is no number in scientific notation, unless it is that of a decimal (1E+2).
        left: Any = number_of("" if "e" in value else value) if isinstance(value, str) else value
        right: Any = number_of(literal) if isinstance(literal, str) else literal
        if left is None or right is None:
            return False
        right = float(right) if isinstance(left, float) and isinstance(right, Decimal) else right
        return ordered(self.operator, left, right)


def ordered(operator: str, left: Any, right: Any) -> bool:
    """Compare two values of types that can be."""
    if operator == "==":
        return bool(left == right)
    if operator[0] == "<":
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))


def plain_number(literal: Any) -> str | None:
    """Return the shortest text that all texts of a number contain; None if the literal is no number."""
    number = number_of(literal) if isinstance(literal, str) else literal
    if isinstance(number, bool) or not isinstance(number, (int, Decimal)):
        return None
    text = "0" if not number else f"{number:f}" if isinstance(number, Decimal) else str(number)
    return text.rstrip("0").rstrip(".") if "." in text else text


SCALAR = rb'\s*:\s*(?:(-?[0-9][0-9.eE+-]*)|"([^"\\]*)"|(?:null|true|false)|(.))'
"""What follows the name of a field in JSON: a number, text without escapes, a word, or something else."""
ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}
EXACT_DIGITS = 15
"""Digits up to which a float has exactly the value of the text."""


class FieldsOfText:
    """The fields with a name in the bytes of JSON, wherever they are, also if all of it is no JSON."""

    def __init__(self, name: str, test: Comparison) -> None:
        self.test = test
        quoted = json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogateescape")
        self.pattern = re.compile(re.escape(quoted) + SCALAR, re.DOTALL)
        self._is_met_by_word = any(map(test.of_scalar, (True, False, None)))
        number = plain_number(test.literal)
        self._limit = None if number is None or test.operator not in ORDERS else float(number)
        self._compare = ORDERS.get(test.operator)

    def positions(self, data: bytes) -> Iterator[int]:
        """Yield the positions of fields whose value meets the comparison, or is a list or an object."""
        of_scalar, limit, compare = self.test.of_scalar, self._limit, self._compare
        for match in self.pattern.finditer(data):
            kind = match.lastindex
            if kind == 1:
                if limit is not None and compare is not None and match.end() - match.start(1) < EXACT_DIGITS:
                    is_met = _ordered_as_float(compare, match[1], limit)
                else:
                    is_met = of_scalar(_json_number(match[1]))
            elif kind == 2:
                is_met = of_scalar(match[2].decode("utf-8", "replace"))
            else:
                is_met = kind == 3 or self._is_met_by_word
            if is_met:
                yield match.start()


def _ordered_as_float(compare: Callable[[float, float], bool], text: bytes, limit: float) -> bool:
    try:
        return compare(float(text), limit)
    except ValueError:
        return False


def _json_number(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
