"""UTF-8 as Java decodes it: java.lang.String's constructor, which turns any bytes into text.

Java and Python replace malformed bytes with the same number of U+FFFD, except for surrogates, which UTF-8 cannot encode
(CESU-8, as old JNI code writes it): Java replaces their three bytes, or the two that are present, with one U+FFFD,
Python each byte with one.
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
    """Return the text of `data` as Java decodes it. Never raises."""
    return str(data, "utf-8", _ERRORS)
