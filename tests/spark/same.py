"""Output of the command line and rows of the data source for the same paths, in the same form."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kdump.all_answers import TYPES as OBJECTS
from kdump.cli import cli
from kdump.format.numbers import int64
from kdump.spark.arrow import PER_MS
from kdump.spark.data_source import parse
from kdump.spark.delta_tables import KEEP, files_of
from kdump.spark.result_views import scan_at
from kdump.spark.scan import ScanResult, finish_scan, scan
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store
from kdump.spark.task_runner import TaskRunner
from kdump.tables.arrow import arrow_schema
from kdump.tables.as_pyarrow import as_pyarrow, as_schema
from kdump.tables.declarations import TABLES
from kdump.tables.filters import PushedFilters
from kdump.tables.table_read import TableRead

Row = dict[str, Any]


def scanned(tasks: TaskRunner, options: ScanQuery, store: Store, keep: int = KEEP) -> ScanResult:
    """Run a scan without a summary, so that its tables are the result."""
    done = scan(tasks, options, store)
    finish_scan(store, done, keep)
    return done


def files_in(out: Path, table: str) -> list[Path]:
    """Return the files of a table, after the last finished scan."""
    store = Store(str(out))
    return [out / table / file.name for file in files_of(store, table, scan_at(store).versions.get(table))]


def rows(table: str, paths: Iterable[Any], names: list[str] | None = None, **options: Any) -> list[Row]:
    """Return the rows that the data source yields, task by task, in this process."""
    return [row for part in parts(table, paths, names, **options) for row in part]


def parts(
    table: str,
    paths: Iterable[Any],
    names: list[str] | None = None,
    filters: PushedFilters | None = None,
    **options: Any,
) -> list[list[Row]]:
    """Return the rows of each task."""
    given = {"table": table, "paths": json.dumps([str(path) for path in paths])}
    reading = TableRead(parse(given | {name: str(value) for name, value in options.items()}), filters)
    known = TABLES[table].columns if names is None else (*TABLES[table].columns, *TABLES[table].on_request)
    chosen = [column for column in known if names is None or column.name in names]
    own = arrow_schema(TABLES[table], [column.name for column in chosen], PER_MS)
    schema = as_schema(own)
    found = []
    for part in reading.parts():
        held: list[Row] = []
        for batch in (as_pyarrow(batch, schema) for batch in reading.read(part, own)):
            assert batch.schema.equals(schema)
            batch.validate(full=True)
            held.extend(batch.to_pylist())
        found.append(held)
    return found


def cli_objects(*arguments: str) -> list[Row]:
    """Return the JSON objects that a command writes."""
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return [json.loads(line) for line in result.stdout.splitlines()]


def cli_batches(*paths: Any) -> list[Row]:
    found = cli_objects("inspect", "--json", "--no-index", *map(str, paths))
    return _sorted(_numbers(row) for row in found if row["type"] == "batch")


def cli_records(*paths: Any) -> list[Row]:
    found = cli_objects("inspect", "--json", "--records", "--no-decode", "--no-index", *map(str, paths))
    return _sorted(_bytes(_numbers(row)) for row in found if row["type"] == "record")


def cli_findings(*paths: Any, now: int | None = None) -> list[Row]:
    return _findings(row for row in cli_objects("verify", "--json", *map(str, paths)) if row["type"] == "finding")


def batch_rows(found: Iterable[Row]) -> list[Row]:
    """Return rows of the table batches in the form of the command line."""
    return _sorted(_only(row, "batch") for row in found)


def record_rows(found: Iterable[Row]) -> list[Row]:
    made = []
    for row in found:
        said = _only(row, "record")
        said["headers"] = [(each["key"], each["value"]) for each in row["headers"]]
        made.append(said)
    return _sorted(made)


def finding_rows(found: Iterable[Row]) -> list[Row]:
    return _findings(_only(row, "finding") for row in found)


def _only(row: Row, kind: str) -> Row:
    return {key.name: row[key.name] for key in OBJECTS[kind] if key.name in row}


def _sorted(found: Iterable[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row["file"], row["position"], row.get("offset") or 0))


def _findings(found: Iterable[Row]) -> list[Row]:
    texts = []
    for row in found:
        row.pop("type", None)
        for name in ("expected", "actual"):
            if row[name] is not None and not isinstance(row[name], str):
                row[name] = json.dumps(row[name], ensure_ascii=False)
        texts.append(json.dumps(row, sort_keys=True))
    return [json.loads(text) for text in sorted(texts)]


def _numbers(row: Row) -> Row:
    """Wrap sums of damaged numbers to 64 bits, as Java does."""
    row.pop("type")
    return {name: int64(value) if type(value) is int else value for name, value in row.items()}


def _bytes(row: Row) -> Row:
    row["key"], row["value"] = _decoded(row, "key"), _decoded(row, "value")
    row["headers"] = [(_decoded(each, "key"), _decoded(each, "value")) for each in row["headers"]]
    row.setdefault("crc", None)
    row.setdefault("crcValid", None)
    row.setdefault("damaged", False)
    control = row.setdefault("control", None)
    if control is not None:
        control.setdefault("coordinatorEpoch", None)
        value = control.get("value")
        control["value"] = json.dumps(value, ensure_ascii=False) if "value" in control else None
    return row


def _decoded(row: Row, name: str) -> bytes | None:
    value, encoding = row[name], row.pop(name + "Encoding", "")
    if value is None:
        return None
    return base64.b64decode(value) if encoding else value.encode()
