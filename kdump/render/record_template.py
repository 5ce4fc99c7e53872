"""Format strings like those of kcat: `-f '%o %k %s\\n'`."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from kdump import jsonl
from kdump.answer import put_bytes
from kdump.decode.decoder_interface import RAW, DecodedPart
from kdump.decode.record_decoder import RecordDecoder
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.render.escape import bytes_text

Part = Callable[[Target, Record], bytes]


def _headers(record: Record, show: Callable[[bytes], bytes] = bytes) -> bytes:
    return b",".join(show(key) + b"=" + (b"NULL" if value is None else show(value)) for key, value in record.headers)


def _escaped(data: bytes) -> bytes:
    return bytes_text(data).encode()


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
    "h": ("headers, name=value separated by commas", lambda t, r: _headers(r)),
    "%": ("a percent sign", lambda t, r: b"%"),
}
HEADERS = TOKENS["h"][1]
DECODED = {
    "d": ("decoded key as JSON, or the key itself if nothing is decoded", "key"),
    "D": ("decoded value as JSON, or the value itself if nothing is decoded", "value"),
}
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(?P<token>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)", re.DOTALL)


class TemplateError(ValueError):
    """Raised for a format string with an unknown token or escape."""


def compile_template(template: str, decoding: RecordDecoder | None = None) -> list[bytes | Part]:
    """Return the parts of a format string: literal text, and functions that return a field of a record. Raises
    TemplateError."""
    parts: list[bytes | Part] = []
    for match in _PIECE.finditer(template):
        if match["token"] is not None:
            if match["token"] in DECODED:
                parts.append(_decoded(DECODED[match["token"]][1], decoding))
                continue
            if match["token"] not in TOKENS:
                possible = " ".join(f"%{token}" for token in (*TOKENS, *DECODED))
                raise TemplateError(f"unknown token %{match['token']} in the format string; known are {possible}")
            parts.append(TOKENS[match["token"]][1])
        elif match["hex"] is not None:
            parts.append(bytes.fromhex(match["hex"]))
        elif match["escape"] is not None:
            if match["escape"] not in ESCAPES:
                possible = "\\n \\t \\r \\0 \\\\ \\xNN"
                raise TemplateError(f"unknown escape \\{match['escape']} in the format string; known are {possible}")
            parts.append(ESCAPES[match["escape"]])
        else:
            parts.append(match["text"].encode("utf-8", "surrogateescape"))
    return parts


def shows_decoded(template: str) -> bool:
    """Return True if a format string contains tokens for decoded keys or values."""
    return any(match["token"] in DECODED for match in _PIECE.finditer(template))


def _decoded(name: str, decoding: RecordDecoder | None) -> Part:
    """Return a function that formats the decoded key or value as one line of JSON."""

    def part(target: Target, record: Record) -> bytes:
        reading = decoding.read(target, record) if decoding else None
        decoded: DecodedPart | None = getattr(reading, name) if reading else None
        if decoded is not None and decoded.value is not RAW:
            return jsonl.line(decoded.value).encode()
        out: dict[str, object] = {}
        put_bytes(out, name, getattr(record, name))
        return jsonl.line(out[name]).encode()

    return part


def render(parts: list[bytes | Part], target: Target, record: Record, *, terminal: bool) -> bytes:
    """Format a record with a format string: exact bytes, except on a terminal, where control characters in data from
    the log are escaped. The literal text of the format string comes from the user and is not escaped."""
    out = []
    for part in parts:
        if isinstance(part, bytes):
            out.append(part)
        else:
            # Headers are escaped one by one, so that a binary one does not hide the text of the others.
            plain = part is not HEADERS
            data = part(target, record) if plain or not terminal else _headers(record, _escaped)
            out.append(_escaped(data) if plain and terminal else data)
    return b"".join(out)
