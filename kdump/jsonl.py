"""JSON Lines: one object per line, UTF-8, with every control character escaped."""

from __future__ import annotations

import json
import re
from json.scanner import make_scanner
from typing import Any

# json escapes only the characters below U+0020. DEL, the C1 controls, directional marks, line separators and the byte
# order mark can also affect a terminal. Lone surrogates (from a path that is not UTF-8) cannot be encoded as UTF-8.
_MORE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_scan = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def line(value: Any) -> str:
    """Return the value as one line of JSON, without a line terminator."""
    return escaped(_encode(value))


def escaped(text: str) -> str:
    """Return JSON as `line` writes it: with every control character escaped."""
    return text if text.isascii() and "\x7f" not in text else _MORE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def parsed(data: bytes) -> Any:
    """Return what json.loads does, in half of the time for a small value in UTF-8 without white space around it."""
    if not data[:2].isascii() or 0 in data[:2]:  # json.loads finds out which encoding it is
        return json.loads(data)
    line = data.decode(errors="surrogatepass")
    try:
        value, end = _scan(line, 0)
    except StopIteration:
        end = -1
    return value if end == len(line) else json.loads(line)
