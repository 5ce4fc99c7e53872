"""Builds the JSON line of a large record in pieces: the same line as render.inspect_objects.record_object and
jsonl.line, without a second copy of its value and without an object for each of its headers."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from kdump import jsonl
from kdump.core.record_columns import each_header
from kdump.decode.decoder_interface import DecodedRecord
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.render.inspect_objects import Object, after_headers, before_key, put_bytes
from kdump.render.long_value import LARGE, PIECE, is_text, texts


def record_line(target: Target, record: Record, reading: DecodedRecord | None = None) -> Iterator[bytes]:
    """Yield the line in pieces, including the newline."""
    yield _encoded(before_key(target, record))[:-1]
    with memoryview(record.data) as data:
        for name, start, size in (
            ("key", record.key_start, record.keySize),
            ("value", record.value_start, record.valueSize),
        ):
            yield b","
            yield from _member(name, data[start : start + size] if size >= 0 else None)
        yield b',"headers":['
        yield from _headers(record, data)
    rest = _encoded(after_headers(record, reading))
    yield (b"]," if len(rest) > 2 else b"]") + rest[1:] + b"\n"


def _encoded(value: Object) -> bytes:
    return jsonl.line(value).encode("utf-8", "backslashreplace")


def _headers(record: Record, data: memoryview) -> Iterator[bytes]:
    """Yield the headers with commas between them, many small ones at once."""
    gathered: list[bytes] = []
    size = 0
    comma = b""
    if not record.header_count:
        return
    for key, value in each_header(data, record.header_start, record.header_count, record.end):
        if len(key) + len(value or b"") < LARGE:
            small: Object = {}
            put_bytes(small, "key", bytes(key))
            put_bytes(small, "value", None if value is None else bytes(value))
            gathered.append(comma + _encoded(small))
            size += len(gathered[-1])
            if size > PIECE:
                yield b"".join(gathered)
                gathered, size = [], 0
        else:
            yield b"".join(gathered) + comma + b"{"
            gathered, size = [], 0
            yield from _member("key", key)
            yield b","
            yield from _member("value", value)
            yield b"}"
        comma = b","
    yield b"".join(gathered)


def _member(name: str, data: memoryview | None) -> Iterator[bytes]:
    """Yield a key or value with its name, and its encoding if it is not UTF-8."""
    if data is None or len(data) < LARGE:
        small: Object = {}
        put_bytes(small, name, None if data is None else bytes(data))
        yield _encoded(small)[1:-1]
        return
    yield b'"%s":"' % name.encode()
    if is_text(data):
        for text in texts(data):
            yield jsonl.line(text).encode()[1:-1]
        yield b'"'
        return
    for start in range(0, len(data), PIECE):
        yield base64.b64encode(data[start : start + PIECE])
    yield b'","%sEncoding":"base64"' % name.encode()
