"""Text of values, for both answers and output. Imports nothing from kdump."""

from __future__ import annotations

import os


def path_text(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    if path.isascii():
        return path
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # text of a log: other halves of characters
        return path.encode("utf-8", "backslashreplace").decode()
