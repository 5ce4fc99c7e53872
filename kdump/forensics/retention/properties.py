"""A broker's server.properties, parsed as far as its values matter here.

Source: java.util.Properties.load (comments, separators, continued lines); of duplicate names, the last one wins.
"""

from __future__ import annotations

import re

from kdump.log.errors import SourceError

MOST = 1 << 20
"""Maximum size of such a file in bytes."""
LINE = re.compile(r"((?:\\.|[^=:\s\\])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_properties(path: str) -> dict[str, str]:
    """Return the file's names and values. Raises SourceError if it cannot be read, is too large or binary."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST + 1)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    if len(data) > MOST or b"\0" in data:
        raise SourceError(f"{path}: not a properties file: {'too large' if len(data) > MOST else 'binary'}")
    found = {}
    for line in _lines(data.decode("latin-1")):
        match = LINE.fullmatch(line)
        if match:
            found[_plain(match[1])] = _plain(match[2])
    return found


def _lines(text: str) -> list[str]:
    """Return the logical lines: one that ends in an odd number of backslashes continues in the next."""
    found: list[str] = []
    goes_on = False
    for line in re.split(r"\r\n|\n|\r", text):
        line = line.lstrip(" \t\f")
        if not goes_on and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        part = line[:-1] if slashes % 2 else line
        if goes_on:
            found[-1] += part
        else:
            found.append(part)
        goes_on = bool(slashes % 2)
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).strip()
