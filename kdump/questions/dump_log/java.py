"""Formats values as Java prints them: numbers, Optional, File, and JSON as Jackson writes it."""

from __future__ import annotations

import json
import re
from typing import Any

# json writes escapes in lower case, Jackson in upper case; the pattern consumes an escaped backslash as a unit.
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)", re.DOTALL)
_SLASHES = re.compile("/+")


def boolean(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def file_text(path: str) -> str:
    """Normalize a path like java.io.File: no repeated slashes, and no trailing slash."""
    normalized = _SLASHES.sub("/", path)
    return normalized[:-1] if len(normalized) > 1 and normalized.endswith("/") else normalized


def double(value: float) -> str:
    """Format a float like Double.toString of Java 19 or later: the fewest digits that distinguish it from its
    neighbors."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _decimal(value)
    if -3 <= exponent < 7:
        digits = "0" * -exponent + digits if exponent < 0 else digits.ljust(exponent + 2, "0")
        point = max(exponent, 0) + 1
        return f"{sign}{digits[:point]}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(value: float) -> tuple[str, str, int]:
    """Return the sign, the digits, and the power of ten of the first digit."""
    mantissa, _, power = f"{value!r}".partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    exponent = len(whole) - 1 + int(power or 0)
    digits = whole + fraction
    significant = digits.lstrip("0")
    if not significant:
        return sign, "0", 0
    return sign, significant.rstrip("0") or "0", exponent - (len(digits) - len(significant))


def jackson(value: Any) -> str:
    """Return the JSON that Jackson's JsonNode.toString returns for this value."""
    written = json.dumps(_doubles(value), ensure_ascii=False, separators=(",", ":"))
    if "\\u" in written:
        written = _ESCAPE.sub(lambda match: "\\u" + match[0][2:].upper() if match[0][1] == "u" else match[0], written)
    return written if _DOUBLE not in written else _MARKED.sub(r"\1", written)


# json.dumps formats floats as Python does. Therefore they are passed as marked strings, and the marks are removed
# afterwards. The mark is a lone surrogate, which decoded text never contains.
_DOUBLE = "\ud800"
_MARKED = re.compile(f'"{_DOUBLE}([^"]*)"')


def _doubles(value: Any) -> Any:
    if isinstance(value, float):
        digits = double(value)
        return digits if digits[-1] in "Ny" else _DOUBLE + digits  # Jackson writes NaN and the infinities as strings
    if isinstance(value, dict):
        return {key: _doubles(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_doubles(inner) for inner in value]
    return value
