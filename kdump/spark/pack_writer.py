"""Writes packs (kdump.spark.packs): rows of units one after the other, copies of rows of other packs, and entries.

What one task of a scan reads becomes a pack. After many bytes it is finished, and its rows are copied to another, so
that a scan that is interrupted loses little: the amount doubles each time, so that little is copied.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.spark.arrow import Rows, arrow_schema, plain
from kdump.spark.batch_rows import BatchColumns
from kdump.spark.packs import ENTRY, Pack, TableRows, description, entries, hidden, rows_of, table_file
from kdump.spark.store import Store
from kdump.spark.tables import BATCHES, RESULTS, SparkTable

ROWS = 65_536
"""Number of rows that are held in memory until they are written as a row group."""
BYTES = 64 * 1024 * 1024
"""Their size in memory, in bytes, from which on they are written earlier."""
ENTRIES = 256
"""The same for entries, some of which have a large state."""

Ranges = dict[str, tuple[int, int]]
"""First row and number of rows by table."""


class PackWriter:
    """Writes one pack. Its files appear when it is finished, the file with the entries last."""

    def __init__(self, store: Store, stem: str, group: str) -> None:
        self.store, self.stem, self.group = store, stem, group
        self.stack = ExitStack()
        self.tables: dict[str, TableWriter] = {}
        self.held: list[dict[str, Any]] = []
        self.entries = ExitStack()
        self.entry_writer: pq.ParquetWriter | None = None
        self.unit_start: dict[str, int] = {}

    def begin(self) -> None:
        """Begin with a unit: the rows added next are its own."""
        self.unit_start = {name: table.count for name, table in self.tables.items()}

    def own_rows(self) -> dict[str, int]:
        """Return the number of rows of the unit by table."""
        counts = {name: table.count - self.unit_start.get(name, 0) for name, table in self.tables.items()}
        return {name: count for name, count in counts.items() if count}

    def end(self, entry: dict[str, Any], kept: dict[str, int] | None = None) -> None:
        """Add the entry of the unit. `kept`: how many of its first rows need not be read again, by table."""
        rows = [
            {"table": name, "start": self.unit_start.get(name, 0), "count": count, "kept": (kept or {}).get(name, 0)}
            for name, count in sorted(self.own_rows().items())
        ]
        self._entry({**entry, "run": self.stem.partition("-")[0], "rows": rows})

    def add(self, table: str, row: dict[str, Any]) -> None:
        """Add a row."""
        self._table(table).add(row)

    def put(self, table: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches of the table."""
        self._table(table).put(batches)

    def batch_columns(self) -> BatchColumns:
        """Return the collector of the table batches; `put_batches` writes its contents."""
        columns = self._table("batches").columns
        assert columns is not None
        return columns

    def put_batches(self) -> None:
        self._table("batches").flush()

    def copy_rows(self, pack: Pack, ranges: Ranges) -> None:
        """Copy rows of a unit from another pack. Raises StoreError."""
        for name, (start, count) in ranges.items():
            if count:
                self._table(name).put(rows_of(self.store, pack, name, [(start, count)]))

    def copy_units(self, pack: Pack, keys: Iterable[str]) -> None:
        """Copy the rows and entries of these units from another pack. Raises StoreError."""
        wanted = set(keys)
        chosen = [entry for entry in entries(self.store, pack) if entry["key"] in wanted]
        ranges: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for entry in chosen:
            for each in entry["rows"]:
                ranges[each["table"]].append(each)
        for name, every in ranges.items():
            every.sort(key=lambda each: each["start"])
            old = [(each["start"], each["count"]) for each in every]
            table = self._table(name)
            start = table.count
            for each in every:
                each["start"] = start
                start += each["count"]
            table.put(rows_of(self.store, pack, name, old))
        for entry in chosen:
            self._entry(entry)

    def finish(self) -> Pack:
        """Complete the files. Raises StoreError."""
        self.stack.close()
        tables = {name: TableRows(table.count, table.size, self.stem) for name, table in sorted(self.tables.items())}
        pack = Pack(self.stem, self.group, tables)
        with self.entries:
            self._write_entries()
            assert self.entry_writer is not None
            self.entry_writer.add_key_value_metadata(description(pack))
            self.entry_writer.close()
        return pack

    def abandon(self, error: BaseException) -> None:
        """Discard the files."""
        if self.entry_writer is not None:
            with suppress(Exception):  # pyarrow would write to the closed file later
                self.entry_writer.close()
        for stack in (self.entries, self.stack):
            stack.__exit__(type(error), error, error.__traceback__)

    def _entry(self, entry: dict[str, Any]) -> None:
        self.held.append(entry)
        if len(self.held) >= ENTRIES:
            self._write_entries()

    def _write_entries(self) -> None:
        if self.entry_writer is None:
            file = self.entries.enter_context(self.store.writing(Pack(self.stem, self.group, {}).entries))
            self.entry_writer = pq.ParquetWriter(file, ENTRY, compression="zstd")
        columns = [plain([entry.get(field.name) for entry in self.held], field.type) for field in ENTRY]
        self.entry_writer.write_table(pa.Table.from_arrays(columns, schema=ENTRY))
        self.held = []

    def _table(self, name: str) -> TableWriter:
        table = self.tables.get(name)
        if table is None:
            writing = table_writer(self.store, RESULTS[name], self.stem)
            table = self.tables[name] = self.stack.enter_context(writing)
        return table


@contextmanager
def table_writer(store: Store, table: SparkTable, stem: str) -> Iterator[TableWriter]:
    """Write a file of a table. Locally, its name is hidden until the scan is finished. Raises StoreError."""
    name = table_file(table.name, stem)
    with store.writing(name if store.is_remote else hidden(name)) as file:
        writer = TableWriter(table, file)
        try:
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # pyarrow would write to the closed file later
                writer.writer.close()
            raise


class TableWriter:
    """Writes rows of a table to one Parquet file, in the order in which they are added. `count`: rows so far."""

    def __init__(self, table: SparkTable, file: Any) -> None:
        self.file = file
        self.schema = arrow_schema(table)
        self.rows = Rows(table, self.schema)
        self.columns = BatchColumns(self.schema) if table is BATCHES else None
        self.held: list[pa.RecordBatch] = []
        self.done = 0
        self.waiting = 0
        self.bytes = 0
        self.size = 0
        self.writer = pq.ParquetWriter(file, self.schema, compression="zstd")

    @property
    def count(self) -> int:
        return self.done + self.waiting + len(self.rows.rows) + (self.columns.count if self.columns else 0)

    def add(self, row: dict[str, Any]) -> None:
        if self.rows.add(row):
            self.flush()

    def put(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.flush()
        for batch in batches:
            self._hold(batch)

    def flush(self) -> None:
        """Convert the rows that were added to record batches."""
        for batch in (*self.rows.take(), *(self.columns.take() if self.columns else ())):
            self._hold(batch)

    def _hold(self, batch: pa.RecordBatch) -> None:
        self.held.append(batch)
        self.waiting += batch.num_rows
        self.bytes += batch.nbytes
        if self.waiting >= ROWS or self.bytes >= BYTES:
            self._write()

    def _write(self) -> None:
        if self.held:
            self.writer.write_table(pa.Table.from_batches(self.held, self.schema))
            self.done += self.waiting
            self.held, self.waiting, self.bytes = [], 0, 0

    def close(self) -> None:
        self.flush()
        self._write()
        self.writer.close()
        self.size = self.file.tell()


SPAN = 8 * 1024 * 1024 * 1024
"""Bytes of segments after which a task saves what it has for the first time."""


class KeptRows(NamedTuple):
    """What an earlier scan has kept of a unit: rows of its pack, and the state of the check."""

    pack: Pack
    ranges: Ranges
    state: bytes | None


class ChunkWriter:
    """Writes one chunk of a scan to `pack`. `stem`: unique start of the names of its packs."""

    def __init__(self, store: Store, stem: str, group: str) -> None:
        self.store, self.group = store, group
        self.stem = f"{stem}-{secrets.token_hex(3)}"  # a task that Spark runs twice writes other files
        self.number = 0
        self.span = self.left = SPAN
        self.pack = self._new()

    def _new(self) -> PackWriter:
        return PackWriter(self.store, f"{self.stem}-{self.number}", self.group)

    def count(self, size: int) -> None:
        """Count bytes that are about to be read."""
        self.left -= size

    @property
    def is_due(self) -> bool:
        """Whether enough has been read to save it."""
        return self.left <= 0

    def save(self, entry: dict[str, Any] | None = None, prefix: dict[str, int] | None = None) -> None:
        """Finish the pack, and continue in another one that also has its rows. `entry`, `prefix`: the entry of the
        current unit, which has been read up to a segment, and the numbers of its rows. Raises StoreError."""
        own = {name: (self.pack.unit_start.get(name, 0), count) for name, count in self.pack.own_rows().items()}
        if entry is not None:
            self.pack.end(entry, prefix)
        done = self.pack.finish()
        self.number += 1
        self.span *= 2
        self.left = self.span
        self.pack = self._new()
        partial = entry["key"] if entry is not None else None
        keys = [each["key"] for each in entries(self.store, done, ["key"]) if each["key"] != partial]
        self.pack.copy_units(done, keys)
        self.pack.begin()
        if entry is not None:
            self.pack.copy_rows(done, own)
