"""CSV: a header with the keys of the JSON objects, then one line per object (RFC 4180, but lines end with LF)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kdump import jsonl
from kdump.answer import Object, answer_keys
from kdump.render.escape import printable
from kdump.render.stdout import Output
from kdump.render.table import check_names

_NEEDS_QUOTES = re.compile('[",\r\n]|^[ \t]|[ \t]$')
TYPE = "type"


def csv_columns(types: Iterable[type], names: list[str] | None = None) -> list[str]:
    """Return the names of the columns for answers of these classes: their keys in declared order, after `type` if there
    are several classes; or `names`. Raises UnknownColumn."""
    classes = list(types)
    keys = dict.fromkeys(key.name for cls in classes for key in answer_keys(cls))
    every = [*([TYPE] if len(classes) > 1 else []), *keys]
    check_names([name for name in names or () if name != TYPE], every)
    return every if names is None else names


class CsvWriter:
    """Writes objects as lines; the header comes first, also if there are no lines."""

    def __init__(self, output: Output, columns: list[str]) -> None:
        self.output = output
        self.columns = columns
        self._line([csv_cell(name) for name in columns])

    def write(self, value: Object) -> None:
        """Write one object: keys without a column are left out; absent keys are empty, like null."""
        self.row(map(value.get, self.columns))

    def row(self, values: Iterable[Any]) -> None:
        """Write the values of all columns."""
        self._line([csv_cell(value) for value in values])

    def _line(self, cells: list[str]) -> None:
        line = ",".join(cells) or '""'  # a blank line would not be a row
        self.output.line(printable(line) if self.output.terminal else line)


def csv_cell(value: Any) -> str:
    """Return the text of a value: nothing for null, "" for an empty text; nested values as JSON."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else jsonl.line(value)
    return '"' + text.replace('"', '""') + '"' if not text or _NEEDS_QUOTES.search(text) else text
