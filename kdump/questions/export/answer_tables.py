"""JSON Lines that a command has written, as tables: one for each type of object, with its declared keys as columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from kdump.answer import Key
from kdump.io.errors import SourceError
from kdump.tables.declarations import BIGINT, BOOLEAN, STRING, SparkTable, columns_of

MAX_LINE = 64 << 20
"""Maximum number of bytes of a line."""
DOUBLE = "double"


@cache
def table_of(type_name: str) -> SparkTable | None:
    """Return the table for objects of this type; None if no command writes such objects. A nested object or array is a
    column with its JSON."""
    keys: tuple[Key, ...] | None = import_module("kdump.all_answers").TYPES.get(type_name)
    if keys is None:
        return None
    kinds = {key.name: _kind(key) for key in keys}
    return SparkTable(type_name, "", tuple(columns_of(keys, types=kinds)))


def _kind(key: Key) -> str:
    kind = key.type.removesuffix(" or null")
    if kind == "number":
        return DOUBLE if key.is_float else BIGINT
    return BOOLEAN if kind == "boolean" else STRING


def answer_rows(lines: Iterable[bytes], source: str) -> Iterator[tuple[SparkTable, dict[str, Any]]]:
    """Yield the objects in the lines as rows, each with its table. Raises SourceError for a line that no command has
    written."""
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            table = table_of(row["type"])
        except (ValueError, KeyError, TypeError, RecursionError):
            table = None
        if table is None:
            raise SourceError(f"{source}: line {number} is not a line that kdump --json writes")
        yield table, {column.name: _value(row.get(column.name), column.type) for column in table.columns}


def _value(value: Any, kind: str) -> Any:
    if kind == STRING:
        return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if kind == BOOLEAN:
        return value if isinstance(value, bool) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if not is_number else float(value) if kind == DOUBLE else int(value)
