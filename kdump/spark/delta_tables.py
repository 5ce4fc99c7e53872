"""The tables of a result are Delta tables, written through delta-rs: each has a log of versions, which names the files
of each. A reader keeps to a version, whose files are deleted only after some time, so that it may read while a scan
writes; Delta's readers need nothing of kdump.

A scan changes several tables. Which versions of them belong together is in the table `scans`, with a row for each scan
that was finished: that row is written last. What a killed scan has committed is undone by the next commit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kdump.spark.arrow import PER_MS, arrow_schema
from kdump.spark.store import OWN, Store, StoreError
from kdump.tables.arrow import Rows
from kdump.tables.arrow import arrow_schema as schema_of
from kdump.tables.as_pyarrow import as_pyarrow
from kdump.tables.declarations import RESULTS, SCANS, UNITS, SparkTable

if TYPE_CHECKING:
    from deltalake import DeltaTable

_COLUMNS = repr([(table.name, [column[:2] for column in table.columns]) for table in (*RESULTS.values(), UNITS)])
LAYOUT = f"8.{crc32(_COLUMNS.encode()):08x}"
"""Version of the layout of a result's files, with the columns of all tables: units written with another version are
read again."""
LAYOUT_NAME = "layout"
"""Key of the layout among the versions of the tables."""
LOG = "_delta_log"
"""Directory of a table's log of versions."""
KEEP = 7 * 24 * 3600 * 1000
"""Time in ms for which a scan can be read after the next one was finished."""
CONFIGURATION = {"delta.logRetentionDuration": "interval 366 days"}
"""Properties of the tables. Of their logs, kdump itself deletes what no scan needs that can still be read."""
OLD_COMMITS = 32
"""Number of files of a log about versions that nobody reads from which on a checkpoint, with what they add up to,
replaces them."""
OLD_LIST = f"{OWN}/packs.json"
"""File that results had up to layout 6."""


class TableFile(NamedTuple):
    """A Parquet file of a table: its name in the table's directory, its size in bytes, and its number of rows."""

    name: str
    size: int
    rows: int


class FinishedScan(NamedTuple):
    """A row of the table scans. `run`: the name of the scan; `finished`: in epoch ms; `versions`: the version of each
    table, and LAYOUT."""

    scan: int
    run: str
    finished: int
    paths: list[str]
    read: int
    kept: int
    gone: int
    versions: dict[str, Any]


@contextmanager
def _stated(store: Store, table: str) -> Iterator[None]:
    """Raise StoreError instead of what delta-rs raises."""
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        yield
    except (DeltaError, TableNotFoundError, OSError, ValueError) as error:
        (line, *_) = str(error).strip().splitlines() or [type(error).__name__]
        raise StoreError(f"{store.path(table)}: the table's log cannot be used: {line}") from None


def _opened(store: Store, table: str, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable

    return DeltaTable(store.path(table), version=version)


def _files(table: DeltaTable) -> list[TableFile]:
    actions = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes", "num_records"])
    return [TableFile(action["path"], action["size_bytes"], action["num_records"]) for action in actions.to_pylist()]


def files_of(store: Store, table: str, version: int | None) -> list[TableFile]:
    """Return the files of a version of a table; none of a table that is not there (None). Raises StoreError."""
    if version is None:
        return []
    with _stated(store, table):
        return sorted(_files(_opened(store, table, version)))


def commit(store: Store, table: str, schema: pa.Schema, files: Sequence[TableFile]) -> int:
    """Make these the files of a table, whatever it has now. Returns the version with them. Raises StoreError."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction

    with _stated(store, table):
        delta_schema = Schema.from_arrow(schema)
        delta_table = DeltaTable.create(store.path(table), delta_schema, mode="ignore", configuration=CONFIGURATION)
        present, wanted = {each.name: each for each in _files(delta_table)}, {each.name: each for each in files}
        now = int(time.time() * 1000)
        actions: list[Any] = [RemoveAction(name, True, now) for name in present if name not in wanted]
        actions += [
            AddAction(name, file.size, {}, now, True, json.dumps({"numRecords": file.rows}))
            for name, file in wanted.items()
            if name not in present
        ]
        if actions:
            delta_table.create_write_transaction(actions, "append", delta_schema)
            delta_table.update_incremental()
        return delta_table.version()


def finished_scans(store: Store) -> list[FinishedScan]:
    """Return the finished scans that can still be read, in their order. Raises StoreError, also if the result is that
    of another version of kdump."""
    if store.read(OLD_LIST) is not None:
        raise StoreError(f"{store.root}: the result of an earlier version of kdump; scan into a new directory")
    if not store.list(f"{SCANS.name}/{LOG}"):
        return []
    scans = []
    for file in files_of(store, SCANS.name, latest(store, SCANS.name)):
        for row in rows_of(store, SCANS.name, file.name):
            finished = int(row["finished"].timestamp() * 1000)
            scans.append(FinishedScan(**{**row, "finished": finished, "versions": json.loads(row["versions"])}))
    scans.sort()
    if any(scan.versions.get(LAYOUT_NAME) != LAYOUT for scan in scans):
        raise StoreError(f"{store.root}: the result of another version of kdump; scan into a new directory")
    return scans


def latest(store: Store, table: str) -> int:
    """Return the newest version of a table. Raises StoreError."""
    with _stated(store, table):
        return _opened(store, table).version()


def finish(store: Store, done: FinishedScan, keep: int) -> None:
    """Add a row to the table scans: from now on, this scan is the result. Deletes the files that only scans need that
    were followed by another one more than `keep` ms ago. Raises StoreError."""
    before = finished_scans(store)
    followed = [scan.finished for scan in (*before[1:], done)]
    scans = [scan for scan, end in zip(before, followed) if end > done.finished - keep]
    scans.append(done._replace(scan=before[-1].scan + 1 if before else 1))
    rows = []
    for scan in scans:
        finished = datetime.fromtimestamp(scan.finished / 1000, timezone.utc)
        rows.append({**scan._asdict(), "finished": finished, "versions": json.dumps(scan.versions)})
    commit(store, SCANS.name, arrow_schema(SCANS), [write_rows(store, SCANS, f"{done.run}.parquet", rows)])
    sweep(store, scans)


def sweep(store: Store, scans: Sequence[FinishedScan]) -> None:
    """Delete what none of these scans has. Raises StoreError."""
    for table in {name for scan in scans for name in scan.versions} - {LAYOUT_NAME}:
        _sweep(store, table, {scan.versions[table] for scan in scans if table in scan.versions})
    _sweep(store, SCANS.name, {latest(store, SCANS.name)})


def _sweep(store: Store, table: str, versions: set[int]) -> None:
    """Delete the files that none of these versions has, among them those that a killed scan has left, and what the log
    has about earlier versions."""
    first = min(versions)
    with _stated(store, table):
        newest = _opened(store, table)
        # It only names them, because it would add two versions.
        unused = newest.vacuum(0, enforce_retention_duration=False, full=True, keep_versions=sorted(versions))
        for name in unused:
            store.remove(f"{table}/{name}")
            above = f"{table}/{name}".rpartition("/")[0]
            if above != table and not store.list(above):
                store.remove(above)
        old = [name for name in store.list(f"{table}/{LOG}") if name[:20].isdigit() and int(name[:20]) < first]
        if len(old) >= OLD_COMMITS:
            _opened(store, table, first).create_checkpoint()
            for name in sorted(old):
                store.remove(f"{table}/{LOG}/{name}")
    for name in store.list(table):
        if name.startswith(".") and ".parquet" in name:
            store.remove(f"{table}/{name}")


def write_rows(store: Store, table: SparkTable, name: str, rows: Iterable[dict[str, Any]]) -> TableFile:
    """Write rows, by the names of their columns, to a file of a table. Raises StoreError."""
    schema = arrow_schema(table)
    held, count = Rows(table, schema_of(table, per_ms=PER_MS)), 0
    with store.writing(f"{table.name}/{name}") as file:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for row in rows:
                count += 1
                for batch in held.take() if held.add(row) else ():
                    writer.write_batch(as_pyarrow(batch, schema))
            for batch in held.take():
                writer.write_batch(as_pyarrow(batch, schema))
        return TableFile(name, file.tell(), count)


def rows_of(
    store: Store, table: str, name: str, columns: list[str] | None = None, where: tuple[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; `where`: only those with this value of this column. Raises StoreError."""
    for batch in batches_of(store, table, name, columns, where):
        yield from (batch if where is None else batch.filter(pc.equal(batch[where[0]], where[1]))).to_pylist()


def batches_of(
    store: Store, table: str, name: str, columns: list[str] | None = None, where: tuple[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of a table; `where`: without row groups that have no such value of this column. Raises
    StoreError."""
    path = f"{table}/{name}"
    try:
        with store.open(path) as opened:
            file = pq.ParquetFile(opened)
            for number in range(file.num_row_groups):
                if where is None or _may_have(file, number, *where):
                    yield from file.read_row_group(number, columns).to_batches()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{store.path(path)}: {DAMAGED}: {error}") from error


def _may_have(file: pq.ParquetFile, number: int, column: str, value: str) -> bool:
    statistics = file.metadata.row_group(number).column(file.schema_arrow.get_field_index(column)).statistics
    return statistics is None or not statistics.has_min_max or statistics.min <= value <= statistics.max


DAMAGED = "is damaged, so scan with --from-scratch"
