"""Format strings as in kcat: `-f '%o %k %s\\n'`."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.render.escape import shown

Part = Callable[[Target, Record], bytes]


def _headers(record: Record, show: Callable[[bytes], bytes] = bytes) -> bytes:
    return b",".join(show(key) + b"=" + (b"NULL" if value is None else show(value)) for key, value in record.headers)


def _escaped(data: bytes) -> bytes:
    return shown(data).encode()


TOKENS: dict[str, tuple[str, Part]] = {
    "s": ("value", lambda t, r: r.value or b""),
    "S": ("bytes of the value, -1 for null", lambda t, r: b"%d" % r.valueSize),
    "R": ("bytes of the value as a 4-byte big-endian number", lambda t, r: struct.pack(">i", r.valueSize)),
    "k": ("key", lambda t, r: r.key or b""),
    "K": ("bytes of the key, -1 for null", lambda t, r: b"%d" % r.keySize),
    "t": ("topic", lambda t, r: (t.topic or "").encode()),
    "p": ("partition, -1 if unknown", lambda t, r: b"%d" % (-1 if t.partition is None else t.partition)),
    "o": ("offset", lambda t, r: b"%d" % (-1 if r.offset is None else r.offset)),
    "T": ("timestamp in epoch ms, -1 for none", lambda t, r: b"%d" % (-1 if r.timestamp is None else r.timestamp)),
    "h": ("headers, name=value with commas between", lambda t, r: _headers(r)),
    "%": ("a percent sign", lambda t, r: b"%"),
}
HEADERS = TOKENS["h"][1]
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(?P<token>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)", re.DOTALL)


class TemplateError(ValueError):
    """A format string with a token that is not known."""


def compile_template(text: str) -> list[bytes | Part]:
    """The parts of a format string: its own text, and what gives a record's. Raises TemplateError."""
    parts: list[bytes | Part] = []
    for match in _PIECE.finditer(text):
        if match["token"] is not None:
            if match["token"] not in TOKENS:
                known = " ".join(f"%{token}" for token in TOKENS)
                raise TemplateError(f"unknown token %{match['token']} in the format string; known are {known}")
            parts.append(TOKENS[match["token"]][1])
        elif match["hex"] is not None:
            parts.append(bytes.fromhex(match["hex"]))
        elif match["escape"] is not None:
            if match["escape"] not in ESCAPES:
                known = "\\n \\t \\r \\0 \\\\ \\xNN"
                raise TemplateError(f"unknown escape \\{match['escape']} in the format string; known are {known}")
            parts.append(ESCAPES[match["escape"]])
        else:
            parts.append(match["text"].encode("utf-8", "surrogateescape"))
    return parts


def render(parts: list[bytes | Part], target: Target, record: Record, *, terminal: bool) -> bytes:
    """The record by the format string: exact bytes, except on a terminal, where what a terminal would obey is
    escaped in what comes from the log (the format string's own text is the user's)."""
    out = []
    for part in parts:
        if isinstance(part, bytes):
            out.append(part)
        else:
            # Each header is escaped by itself: one that is binary does not hide the text of the others.
            plain = part is not HEADERS
            data = part(target, record) if plain or not terminal else _headers(record, _escaped)
            out.append(_escaped(data) if plain and terminal else data)
    return b"".join(out)
