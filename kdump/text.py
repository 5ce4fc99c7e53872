"""Text of values and commands, for answers and output. Imports nothing from kdump."""

from __future__ import annotations

import os
import shlex
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any


def path_text(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return path if path.isascii() else _path_bytes(path).decode("utf-8", "backslashreplace")


def _path_bytes(path: str) -> bytes:
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:  # text of a log: other halves of characters
        return path.encode("utf-8", "backslashreplace")


def plain_text(value: Any) -> str:
    """Return a JSON value in a line, without quotes and brackets; empty for None."""
    if isinstance(value, list):
        return (",".join if all(isinstance(item, int) for item in value) else ", ".join)(map(plain_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={plain_text(item)}" for name, item in value.items())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


# Characters that may change how a terminal shows other text: C0 and C1 controls, line and paragraph separators,
# direction and other format characters, and surrogates (from file names that are not UTF-8).
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def is_hidden(character: str) -> bool:
    """Return True for a character that a terminal obeys, or does not show."""
    return unicodedata.category(character) in _HIDDEN


def shell_word(word: str) -> str:
    """Return a path or name as a word of a shell command: as $'…', for bash and zsh, if some of it is not shown."""
    if not any(map(is_hidden, word)):
        return shlex.quote(word)
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}" for byte in _path_bytes(word)
    )
    return f"$'{''.join(shown)}'"


on_host: Callable[[str], str] = str
"""Where a path in a bundle is on the host of its disk: io.mounted_paths sets it."""


def host_word(path: str) -> str:
    """Return a path as a word of a command that needs the disk: one in a bundle, as the disk's own path."""
    return shell_word(on_host(path))


def shell_words(words: Iterable[str]) -> str:
    """Return paths or names as words of a shell command."""
    return " ".join(map(shell_word, words))
