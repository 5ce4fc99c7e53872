"""Text of values that both answers and output need. Imports nothing of kdump."""

from __future__ import annotations

import os


def path_text(path: str) -> str:
    """A path as text, whatever bytes it has."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
