"""UTF-8 as Java decodes it: java.lang.String's constructor, which makes text of whatever bytes it is given.

Where bytes are malformed, Java and Python agree on how many U+FFFD stand for them, but for the surrogates that UTF-8
cannot hold (CESU-8, as old JNI code writes it): their three bytes, or the two that are there, are one U+FFFD in Java
and as many as they are bytes in Python.
"""

from __future__ import annotations

import codecs

from kdump.format.varint import Bytes

REPLACEMENT = "\ufffd"
_ERRORS = "kdump.java"


def _as_java(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] != 0xED or not 0xA0 <= int.from_bytes(data[start + 1 : start + 2], "big") <= 0xBF:
        return REPLACEMENT, error.end
    third = data[start + 2 : start + 3]
    return REPLACEMENT, start + 3 if third and third[0] & 0xC0 == 0x80 else start + 2


codecs.register_error(_ERRORS, _as_java)


def java_text(data: Bytes) -> str:
    """The text of `data`, as Java has it. Never raises."""
    return str(data, "utf-8", _ERRORS)
