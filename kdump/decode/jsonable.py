"""Converts the results of user data decoders, which may be of any type, to JSON values of bounded size and depth."""

from __future__ import annotations

import base64
import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from kdump.decode.decoder_interface import FormatError

DEEPEST = 100
MAX_VALUES = 1_000_000
LARGEST_NUMBER = 4096
"""Maximum size of an integer in bits. Python refuses to print very large ones."""
_HALF = re.compile("[\ud800-\udfff]")


def to_json(value: Any) -> Any:
    """Return a JSON value: bytes in base64, NaN and the infinities as text (as Jackson writes them), times in ISO-8601,
    decimals and UUIDs as text, a lone surrogate as U+FFFD. Raises FormatError if JSON cannot represent a type, and if
    the value is too large or nested too deeply."""
    if type(value) is datetime:  # the usual value of a schema's logical type
        return value.isoformat()
    return _Converter().convert(value, 0)


def finite(value: float) -> float | str:
    """Return a number, NaN and the infinities as text."""
    return value if math.isfinite(value) else _not_finite(value)


class _Converter:
    def __init__(self) -> None:
        self.room = MAX_VALUES

    def convert(self, value: Any, depth: int) -> Any:
        self.room -= 1
        if self.room < 0:
            raise FormatError(f"more than {MAX_VALUES} values")
        if depth > DEEPEST:
            raise FormatError(f"nested deeper than {DEEPEST} levels")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, int):
            if value.bit_length() > LARGEST_NUMBER:
                raise FormatError(f"the integer is too large ({value.bit_length()} bits)")
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else _not_finite(value)
        if isinstance(value, dict):
            return {_key(key): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return base64.b64encode(value).decode()
        if isinstance(value, (datetime, date, time)):
            return value.isoformat()
        if isinstance(value, (Decimal, UUID, timedelta)):
            return str(value)
        raise FormatError(f"cannot represent {type(value).__name__} in JSON")


def _key(key: Any) -> str:
    return base64.b64encode(key).decode() if isinstance(key, bytes) else _text(str(key))


def _text(value: str) -> str:
    """Return plain text, also for a subclass of str (such as an enum), without lone surrogates: jq stops at them."""
    value = str(value)
    return value if value.isascii() else _HALF.sub("\ufffd", value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
