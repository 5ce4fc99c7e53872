"""Text of values, for both answers and output. Imports nothing from kdump."""

from __future__ import annotations

import os
import unicodedata


def path_text(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    if path.isascii():
        return path
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # text of a log: other halves of characters
        return path.encode("utf-8", "backslashreplace").decode()


# Characters that may change how a terminal shows other text: C0 and C1 controls, line and paragraph separators,
# direction and other format characters, and surrogates (from file names that are not UTF-8).
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def is_hidden(character: str) -> bool:
    """Return True for a character that a terminal obeys, or does not show."""
    return unicodedata.category(character) in _HIDDEN
