"""Writes what one task of a scan reads: a file of each table, with the rows of units one after the other.

After many bytes the files are finished, and others begun, so that a scan that is interrupted loses little."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kdump.spark.arrow import PER_MS
from kdump.spark.delta_tables import TableFile, batches_of
from kdump.spark.store import Store
from kdump.spark.units import ENDING, ENTRY_MARK, LATE_MARK, OWNER, PARTIAL, WRITTEN, Entry, Files, file_schema
from kdump.tables.arrow import ArrowBatch, Rows, arrow_schema
from kdump.tables.as_pyarrow import as_pyarrow, as_schema
from kdump.tables.batch_rows import BatchColumns
from kdump.tables.declarations import BATCHES, UNITS, SparkTable

ROWS = 65_536
"""Number of rows that are held in memory until they are written as a row group."""
BYTES = 64 * 1024 * 1024
"""Their size in memory, in bytes, from which on they are written earlier."""
ENTRIES = 256
"""The same for entries, some of which have a large state."""
SPAN = 8 * 1024 * 1024 * 1024
"""Bytes of segments after which a task finishes its files for the first time; then after twice as many, and so on."""


class UnitWriter:
    """Writes files for a task. `stem`: unique start of their names; `group`: what the units are planned with. Files
    appear when they are finished, that with the entries last."""

    def __init__(self, store: Store, stem: str, group: str) -> None:
        self.store, self.group = store, group
        self.stem = f"{stem}-{secrets.token_hex(3)}"  # a task that Spark runs twice writes other files
        self.run = stem.partition("-")[0]
        self.number = 0
        self.span = self.left = SPAN
        self.owner = ""
        self.files: Files = {}
        self._begin_files()

    def _begin_files(self) -> None:
        self.stack = ExitStack()
        self.tables: dict[str, TableWriter] = {}

    @property
    def name(self) -> str:
        """Name of the current files."""
        return f"{self.stem}-{self.number:03}{ENDING}"

    def begin(self, key: str, *, late: bool) -> None:
        """The rows that are added next are those of this unit. `late`: whether they will be read again if it grows."""
        self.owner = key + (LATE_MARK if late else "")
        for table in self.tables.values():
            table.own(self.owner)

    def end(self, entry: Entry) -> None:
        """Add the entry of a unit."""
        self._table(UNITS).own(entry["key"] + ENTRY_MARK)
        self.add(UNITS, {**entry, "run": self.run, "group": self.group})

    def add(self, table: SparkTable, row: dict[str, Any]) -> None:
        """Add a row."""
        self._table(table).add(row)

    def put(self, table: SparkTable, batches: Iterable[ArrowBatch]) -> None:
        """Add record batches of the table."""
        self._table(table).put(batches)

    def batch_columns(self) -> BatchColumns:
        """Return the collector of the table batches; `put_batches` writes its contents."""
        columns = self._table(BATCHES).columns
        assert columns is not None
        return columns

    def put_batches(self) -> None:
        self._table(BATCHES).flush()

    def copy_unit(self, key: str, names: list[str], *, late: bool) -> None:
        """Copy the rows of a unit that a task has left in the files of these names; those that will be read again only
        with `late`. Raises StoreError."""
        for mark in ("", LATE_MARK) if late else ("",):
            self.begin(key, late=bool(mark))
            for table in WRITTEN.values():
                there = {*self.store.list(table.name)}
                for name in names if table is not UNITS else ():
                    for batch in batches_of(self.store, table.name, name) if name in there else ():
                        chosen = batch.filter(pc.equal(batch[OWNER.name], self.owner))
                        self._table(table).hold_owned(chosen)

    def count(self, size: int) -> None:
        """Count bytes that are about to be read."""
        self.left -= size

    @property
    def is_due(self) -> bool:
        """Whether enough has been read to finish the files."""
        return self.left <= 0

    def save(self, entry: Entry | None = None) -> None:
        """Finish the files, and begin others. `entry`: that of the current unit, as far as it has been read. Raises
        StoreError."""
        self._finish_files()
        if entry is not None:
            stem = self.name.removesuffix(ENDING)
            with table_writer(self.store, UNITS, f"{stem}{PARTIAL}{ENDING}") as writer:
                writer.own(entry["key"] + ENTRY_MARK)
                writer.add({**entry, "run": self.run, "group": self.group})
        self.number += 1
        self.span *= 2
        self.left = self.span
        self._begin_files()

    def finish(self) -> Files:
        """Finish the files. Returns all that the task has written. Raises StoreError."""
        self._finish_files()
        return self.files

    def _finish_files(self) -> None:
        self._table(UNITS)
        for name in sorted(self.tables, key=lambda name: name == UNITS.name):
            writer = self.tables[name]
            writer.finish()
            self.files.setdefault(name, []).append(TableFile(self.name, writer.size, writer.count))
        self.stack.close()

    def abandon(self, error: BaseException) -> None:
        """Discard the current files."""
        self.stack.__exit__(type(error), error, error.__traceback__)

    def _table(self, table: SparkTable) -> TableWriter:
        writer = self.tables.get(table.name)
        if writer is None:
            # The stack closes the files in reverse: that with the entries, opened first, last.
            if table is not UNITS:
                self._table(UNITS)
            writer = self.tables[table.name] = self.stack.enter_context(table_writer(self.store, table, self.name))
            writer.own(self.owner)
        return writer


@contextmanager
def table_writer(store: Store, table: SparkTable, name: str) -> Iterator[TableWriter]:
    """Write a file of a table. Raises StoreError."""
    with store.writing(f"{table.name}/{name}") as file:
        writer = TableWriter(table, file)
        try:
            yield writer
            writer.finish()
        except BaseException:
            with suppress(Exception):  # pyarrow would write to the closed file later
                writer.writer.close()
            raise


class TableWriter:
    """Writes rows of a table to one Parquet file, in the order in which they are added. `size`: bytes of the file,
    once it is finished."""

    def __init__(self, table: SparkTable, file: Any) -> None:
        self.file = file
        schema = arrow_schema(table, per_ms=PER_MS)
        self.schema, self.file_schema = as_schema(schema), file_schema(table)
        self.rows = Rows(table, schema)
        if table is UNITS:
            self.rows.BATCH_ROWS = ENTRIES
        self.columns = BatchColumns(schema) if table is BATCHES else None
        self.held: list[pa.RecordBatch] = []
        self.owners: list[tuple[int, str]] = [(0, "")]
        """Of rows that are not held yet: the number of the first one of each owner, and the owner."""
        self.done = self.waiting = self.bytes = self.size = 0
        self.writer = pq.ParquetWriter(file, self.file_schema, compression="zstd")

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return self.done + self.waiting + len(self.rows.rows) + (self.columns.count if self.columns else 0)

    def own(self, owner: str) -> None:
        """The next rows are of this unit (kdump.spark.units.OWNER)."""
        if self.owners[-1][0] == self.count:
            self.owners.pop()
        self.owners.append((self.count, owner))

    def add(self, row: dict[str, Any]) -> None:
        if self.rows.add(row):
            self.flush()

    def put(self, batches: Iterable[ArrowBatch]) -> None:
        self.flush()
        for batch in batches:
            self._hold(batch)

    def flush(self) -> None:
        """Convert the rows that were added to record batches."""
        for batch in (*self.rows.take(), *(self.columns.take() if self.columns else ())):
            self._hold(batch)

    def _hold(self, batch: ArrowBatch) -> None:
        owners = pa.array(self._owners_of(batch.length), pa.string())
        columns = as_pyarrow(batch, self.schema).columns
        self.hold_owned(pa.RecordBatch.from_arrays([*columns, owners], schema=self.file_schema))

    def _owners_of(self, count: int) -> list[str]:
        """Return the owner of each of the next rows."""
        first = self.done + self.waiting
        owners: list[str] = []
        while len(self.owners) > 1 and self.owners[1][0] <= first + count:
            _, owner = self.owners.pop(0)
            owners += [owner] * (self.owners[0][0] - first - len(owners))
        return owners + [self.owners[0][1]] * (count - len(owners))

    def hold_owned(self, batch: pa.RecordBatch) -> None:
        """Add rows that state their owners."""
        self.held.append(batch)
        self.waiting += batch.num_rows
        self.bytes += batch.nbytes
        if self.waiting >= ROWS or self.bytes >= BYTES:
            self._write()

    def _write(self) -> None:
        if self.held:
            self.writer.write_table(pa.Table.from_batches(self.held, self.file_schema))
            self.done += self.waiting
            self.held, self.waiting, self.bytes = [], 0, 0

    def finish(self) -> None:
        """Complete the file, unless that was done."""
        if self.writer.is_open:
            self.flush()
            self._write()
            self.writer.close()
            self.size = self.file.tell()
