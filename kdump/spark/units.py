"""The units of a scan (partitions, roots of log directories, files, slices of segments), with an entry of each in the
Delta table _kdump/units: what was read, and a fingerprint of what its rows depend on.

A file of a table has the rows of many units. The column `scanUnit` says whose they are: the unit's key; of an entry,
the key and "="; of a row that will be read again if the partition grows, the key and "+" (kdump.spark.resume_point). If
a unit has changed, the files with such rows are written again without them (kdump.spark.scan).

A task of a scan writes a file for each table and then, last, the one with the entries, all under the same name. The
files of a scan that was killed are in no version of a table; the next scan copies from them what is still true."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kdump.spark.arrow import arrow_schema
from kdump.spark.delta_tables import TableFile, rows_of
from kdump.spark.store import Store
from kdump.tables.declarations import RESULTS, UNITS, SparkTable

ENDING = ".parquet"
PARTIAL = ".partial"
"""At the end of the name of a file with the entry of a unit that was not read to its end."""
OWNER = pa.field("scanUnit", pa.string())
"""Column of all files that tasks write."""
ENTRY_MARK, LATE_MARK = "=", "+"
"""At the end of OWNER: of an entry, and of a row that will be read again."""

WRITTEN = {table.name: table for table in (*RESULTS.values(), UNITS) if not table.derived}
"""Tables whose files the tasks of a scan write."""
PLANNED = ["key", "group", "fingerprint", "kept"]
"""Columns of an entry from which a scan is planned."""

Entry = dict[str, Any]
Files = dict[str, list[TableFile]]
"""Files by table."""


def file_schema(table: SparkTable) -> pa.Schema:
    """Return the schema of the files of a table."""
    own = arrow_schema(table)
    return own if table.derived else own.append(OWNER)


def new_run() -> str:
    """Return a name for a run of a scan, which sorts after those of earlier runs."""
    return f"{time.time_ns() // 1000:017d}{secrets.token_hex(3)}"


def run_of(name: str) -> str:
    """Return the scan that has written a file."""
    return name.partition("-")[0]


def entries(
    store: Store, names: Iterable[str], columns: list[str] | None = None, group: str | None = None
) -> Iterator[Entry]:
    """Yield the entries in these files, all or those of a group. Raises StoreError."""
    for name in names:
        yield from rows_of(store, UNITS.name, name, columns, None if group is None else ("group", group))


class Leftover(NamedTuple):
    """What a task that was not finished, or whose scan was not, has of a unit: the names of the files with its rows,
    and its entry."""

    names: list[str]
    entry: Entry


def leftovers(store: Store, since: str, task: str, wanted: dict[str, str]) -> dict[str, Leftover]:
    """Return what scans after `since`, which were not finished, and earlier attempts of this task, whose files begin
    with `task`, have written of the units `wanted`, given with their fingerprints: a whole unit, or else what was read
    of it last. Raises StoreError."""
    left: dict[str, Leftover] = {}
    written: dict[str, list[str]] = {}
    for name in sorted(store.list(UNITS.name)):
        is_left = since < run_of(name) < run_of(task) or name.startswith(f"{task}-")
        if name.startswith(".") or not name.endswith(ENDING) or not is_left:
            continue
        stem = name.removesuffix(ENDING).removesuffix(PARTIAL)
        files = written.setdefault(stem.rpartition("-")[0], [])
        if not name.endswith(PARTIAL + ENDING):
            files.append(name)
        for entry in entries(store, [name], ["key", "fingerprint", "firstSegment", "kept", "keptState"]):
            key = entry["key"]
            if (
                key in wanted
                and entry["fingerprint"] in ("", wanted[key])
                and not (key in left and left[key].entry["fingerprint"])
            ):
                left[key] = Leftover([*files], entry)
    return left
