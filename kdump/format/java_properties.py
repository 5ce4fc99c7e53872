"""Parser of java.util.Properties' format: meta.properties, and a broker's server.properties.

Source: java.util.Properties (LineReader.readLine, load0, loadConvert), which reads the bytes as ISO-8859-1. A logical
line may span several lines of the file; white space is skipped only before a key and before a value, never after it.
`tests/format/JavaProperties.java` records what Java itself reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdump.format.text_files import TextLine

BLANK = " \t\f"
LINES = re.compile(rb"([^\r\n]*)(\r\n|\r|\n)|([^\r\n]+)")
KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
SEPARATOR = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
LETTERS = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
MALFORMED = "Malformed \\uxxxx encoding."
"""Message of the IllegalArgumentException with which Java rejects the whole file."""


def properties(data: bytes) -> Iterator[TextLine]:
    """Yield a property, with `name` and `value`, for each logical line, and a comment for each comment or blank line.
    For a bad escape the line has a `problem`; Java then reads nothing from the file."""
    start, logical = 0, ""
    for match in LINES.finditer(data):
        raw = match[1] if match[2] is not None else match[3]
        line = raw.decode("latin-1").lstrip(BLANK)
        if not logical and (not line or line[0] in "#!"):
            yield TextLine(start, match.end() - start, "comment", {})
            start = match.end()
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        logical += line[:-1] if is_continued else line
        if not is_continued or match.end() == len(data):
            yield _property(start, match.end() - start, logical)
            start, logical = match.end(), ""


def _property(position: int, size: int, logical: str) -> TextLine:
    key = KEY.match(logical)
    assert key is not None
    separator = SEPARATOR.match(logical, key.end())
    assert separator is not None
    try:
        values = {"name": _plain(key[0]), "value": _plain(logical[separator.end() :])}
    except ValueError:
        return TextLine(position, size, "property", {}, f"a bad escape: {MALFORMED}")
    return TextLine(position, size, "property", values)


def _plain(escaped: str) -> str:
    """Resolve the escapes; half of a surrogate pair becomes U+FFFD. Raises ValueError for a bad \\u escape."""
    if "\\" not in escaped:
        return escaped

    def resolved(match: re.Match[str]) -> str:
        if match[1][0] != "u":
            return LETTERS.get(match[1], match[1])
        if len(match[1]) == 1:
            raise ValueError(MALFORMED)
        return chr(int(match[1][1:], 16))

    return ESCAPE.sub(resolved, escaped).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
