"""JSON Lines: one object a line, UTF-8, with every control character escaped."""

from __future__ import annotations

import json
import re

from kdump.render.objects import Object

# json escapes below U+0020 itself; DEL and the C1 controls reach a terminal as well as those, and so do the marks that
# turn the direction of text. Lone surrogates (a path
# that is not UTF-8) cannot be written as UTF-8.
_MORE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def line(value: Object | str) -> str:
    """The object, or a text, as one line, without its end."""
    text = _encode(value)
    return text if text.isascii() and "\x7f" not in text else _MORE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
