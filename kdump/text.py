"""Text of values, for both answers and output. Imports nothing from kdump."""

from __future__ import annotations

import os


def path_text(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
