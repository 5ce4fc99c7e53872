"""Runs SQL on the tables of a scan, and prints the rows as a table or as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone, tzinfo
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

from kdump import jsonl
from kdump.render.escape import printable
from kdump.render.sink import CsvWriter
from kdump.render.stdout import Output
from kdump.render.table import Column, Table
from kdump.spark.result_views import EARLIER, named_in, open_result, scan_at, table_files
from kdump.spark.session import is_embedded, reason, running
from kdump.spark.store import Store


class QueryError(Exception):
    """Raised if Spark rejects the query; the message is Spark's."""


class QueryResult(NamedTuple):
    """The names of the columns of a query, of which two may be the same; which of them have numbers; and the rows."""

    columns: list[str]
    numbers: set[str]
    rows: Iterator[tuple[Any, ...]]


def query(
    directory: str,
    sql: str,
    write: Callable[[QueryResult], None],
    *,
    limit: int | None,
    master: str | None,
    conf: dict[str, str],
    as_of: int | None = None,
    since: int | None = None,
) -> None:
    """Run `sql` and `write` its rows, in Spark unless the embedded engine answers the same. `as_of`: which scan to
    query, by its number or the time (epoch ms), if not the last one; `since`: another one, whose tables are there, too,
    with names that begin with EARLIER. Raises NoSpark, StoreError and QueryError."""
    store = Store(directory)
    scans = [("", as_of), *([(EARLIER, since)] if since is not None else [])]
    versions = {prefix: scan_at(store, scan).versions for prefix, scan in scans}  # before Spark starts
    result = _embedded(store, sql, versions, limit) if is_embedded(master, conf) and not store.is_remote else None
    if result is not None:
        write(result)
        return
    try:
        with running(master, conf, [directory]) as spark:
            for prefix, scan in scans:
                open_result(spark, store, named_in(sql), scan, prefix)
            frame = spark.sql(sql)
            numbers = {name for name, kind in frame.dtypes if kind in NUMBERS or kind.startswith("decimal")}
            write(QueryResult(frame.columns, numbers, map(tuple, islice(frame.toLocalIterator(), limit))))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        message = reason(error)
        if message is None:
            raise
        raise QueryError(message) from None


def _embedded(store: Store, sql: str, versions: dict[str, dict[str, Any]], limit: int | None) -> QueryResult | None:
    """Return what the embedded engine answers; None if Spark has to. `versions`: of the tables, by the prefix of their
    names. Raises StoreError."""
    try:
        from kdump.spark.embedded_engine import TableFiles, Unlike, answer
    except ImportError:
        return None
    tables = {
        prefix + table.name: TableFiles(
            [column[:2] for column in table.columns], [store.path(f"{table.name}/{name}") for name in files]
        )
        for prefix, own in versions.items()
        for table, files in table_files(store, own, named_in(sql))
    }
    try:
        columns, rows = answer(sql, tables, limit)
    except Unlike:
        return None
    return QueryResult([name for name, _ in columns], {name for name, kind in columns if kind in NUMBERS}, iter(rows))


NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


def write_json(result: QueryResult, output: Output) -> None:
    """Write JSON Lines: an object per row."""
    for row in result.rows:
        output.line(jsonl.line({name: plain(value) for name, value in zip(result.columns, row)}))


def write_csv(result: QueryResult, output: Output) -> None:
    """Write CSV with the columns of the query."""
    writer = CsvWriter(output, result.columns)
    for row in result.rows:
        writer.row(map(plain, row))


def write_table(result: QueryResult, output: Output, *, full: bool, zone: tzinfo) -> None:
    """Write a table with the columns of the query."""

    def cell(index: int) -> Callable[[Any], str]:
        return lambda row: text(row[index], zone)

    columns = [
        Column(name, printable(name), cell(index), right=is_number, least=None if is_number else 8)
        for index, name in enumerate(result.columns)
        for is_number in (name in result.numbers,)
    ]
    table = Table(columns, output, full=full, chosen=True)
    for row in result.rows:
        table.add(row)
    table.flush()


def plain(value: Any, zone: tzinfo = timezone.utc) -> Any:
    """Return a value for JSON: bytes as text if they are UTF-8, otherwise as base64; times in `zone`."""
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        shown = value.astimezone(zone).isoformat(timespec="milliseconds")
        return shown.replace("+00:00", "Z") if zone is timezone.utc else shown
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, "asDict"):
        return {name: plain(item, zone) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): plain(item, zone) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, zone) for item in value]
    return value


def text(value: Any, zone: tzinfo) -> str:
    """Return a value as the text of a table cell."""
    if value is None:
        return "null"
    made = plain(value, zone)
    if isinstance(made, str):
        return printable(made)
    if isinstance(made, bool):
        return "true" if made else "false"
    return printable(json.dumps(made, ensure_ascii=False)) if isinstance(made, (list, dict)) else str(made)
