"""UTF-8 as Java decodes it: java.lang.String's constructor, which turns any bytes into text.

Java and Python replace malformed bytes with the same number of U+FFFD, except for surrogates, which UTF-8 cannot encode
(CESU-8, as old JNI code writes it): Java replaces their three bytes, or the two that are present, with one U+FFFD,
Python each byte with one."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from kdump.format.varint import Bytes

REPLACEMENT = "\ufffd"
_ERRORS = "kdump.java"
MAX_CONTINUATION_BYTES = 3
"""Continuation bytes of the longest sequence in UTF-8."""


def _as_java(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] != 0xED or not 0xA0 <= int.from_bytes(data[start + 1 : start + 2], "big") <= 0xBF:
        return REPLACEMENT, error.end
    third = data[start + 2 : start + 3]
    return REPLACEMENT, start + 3 if third and third[0] & 0xC0 == 0x80 else start + 2


codecs.register_error(_ERRORS, _as_java)


def java_text(data: Bytes) -> str:
    """Return the text of `data` as Java decodes it. Never raises."""
    return str(data, "utf-8", _ERRORS)


def java_texts(data: memoryview, size: int) -> Iterator[str]:
    """Yield what java_text returns, in pieces of about `size` bytes."""
    return texts(data, size, _ERRORS)


def texts(data: memoryview, size: int, errors: str) -> Iterator[str]:
    """Yield the text of `data` in pieces of about `size` bytes, at least 4. Together they are what all of it decodes to
    at once. `errors` names a handler that sees only the bytes of one sequence."""
    start = 0
    while start < len(data):
        end = _between(data, start + size) if start + size < len(data) else len(data)
        yield str(data[start:end], "utf-8", errors)
        start = end


def _between(data: memoryview, position: int) -> int:
    """Return where a sequence ends or is cut, at most MAX_CONTINUATION_BYTES bytes before `position`."""
    for start in range(position, position - MAX_CONTINUATION_BYTES - 1, -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return position  # after so many continuation bytes, this one belongs to no sequence
