"""Runs SQL on the tables of a scan, and prints the rows as a table or as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import islice
from typing import Any

from kdump.render import jsonl
from kdump.render.escape import printable
from kdump.render.output import Output
from kdump.render.table import Column, Table
from kdump.spark.result import open_result
from kdump.spark.session import reason, running
from kdump.spark.store import Store


class QueryError(Exception):
    """Raised if Spark rejects the query; the message is Spark's."""


def query(
    directory: str,
    sql: str,
    output: Output,
    *,
    as_json: bool,
    limit: int | None,
    full: bool,
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Run `sql` and print its rows. Raises NoSpark, StoreError and QueryError."""
    try:
        with running(master, conf) as spark:
            open_result(spark, Store(directory))
            frame = spark.sql(sql)
            columns = frame.columns
            numbers = {name for name, kind in frame.dtypes if kind in NUMBERS or kind.startswith("decimal")}
            found: Iterator[Any] = islice(frame.toLocalIterator(), limit)
            write = _json(output, columns) if as_json else _table(output, columns, numbers, full)
            for row in found:
                write(tuple(row))
            write(None)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        text = reason(error)
        if text is None:
            raise
        raise QueryError(text) from None


NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
Write = Callable[[tuple[Any, ...] | None], None]


def _json(output: Output, columns: list[str]) -> Write:
    def write(row: tuple[Any, ...] | None) -> None:
        if row is None:
            output.flush()
        else:
            output.line(jsonl.line({name: plain(value) for name, value in zip(columns, row)}))

    return write


def _table(output: Output, columns: list[str], numbers: set[str], full: bool) -> Write:
    def cell(index: int) -> Callable[[Any], str]:
        return lambda row: text(row[index])

    wide = [
        Column(name, printable(name), cell(index), right=name in numbers, least=None if name in numbers else 8)
        for index, name in enumerate(columns)
    ]
    table = Table(wide, output, full=full, chosen=True)

    def write(row: tuple[Any, ...] | None) -> None:
        if row is None:
            table.flush()
            output.flush()
        else:
            table.add(row)

    return write


def plain(value: Any) -> Any:
    """Return a value for JSON: bytes as text if they are UTF-8, otherwise as base64; times in UTC."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, "asDict"):
        return {name: plain(item) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def text(value: Any) -> str:
    """Return a value as the text of a table cell."""
    if value is None:
        return "null"
    made = plain(value)
    if isinstance(made, str):
        return printable(made)
    if isinstance(made, bool):
        return "true" if made else "false"
    return printable(json.dumps(made, ensure_ascii=False)) if isinstance(made, (list, dict)) else str(made)
