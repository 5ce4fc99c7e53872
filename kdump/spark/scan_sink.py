"""Writes the rows of a unit to Parquet files, one per table. A file appears only when it is complete."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.spark.arrow import Rows
from kdump.spark.arrow_types import arrow_schema
from kdump.spark.batch_rows import BatchColumns
from kdump.spark.store import Store, folder
from kdump.spark.tables import BATCHES, REPLICAS, TABLES, SparkTable

ROWS = 65_536
"""Number of rows that are held in memory until they are written as a row group."""
BY_TOPIC = ("segments", "batches", "records", "index_entries", "producer_states")
"""Tables with directories by broker and topic; the others have directories by broker."""


def partition_columns(table: str) -> tuple[str, ...]:
    """Return the columns whose values are in the directory names. The files have them, too, so that each file is
    complete for readers that ignore directory names."""
    return () if table == REPLICAS.name else ("broker", "topic") if table in BY_TOPIC else ("broker",)


class UnitSink:
    """The Parquet files of a unit, or of some of its segments; each is created with its first row. `common`: columns
    that all rows share; `stem`: file name without extension."""

    def __init__(self, store: Store, common: dict[str, Any], stem: str) -> None:
        self.store = store
        self.common = common
        self.stem = stem
        self.stack = ExitStack()
        self.names: list[str] = []
        self.batches: BatchColumns | None = None
        self.writers: dict[str, TableWriter] = {}

    def name(self, table: str) -> str:
        """Return the file name for a table, whether or not the file exists."""
        return f"{folder(table, self._partition_values(table))}/{self.stem}.parquet"

    def _partition_values(self, table: str) -> dict[str, str | None]:
        return {name: self.common.get(name) for name in partition_columns(table)}

    def add(self, table: str, row: dict[str, Any]) -> None:
        writer = self.writers.get(table)
        if writer is None:
            writer = self.writers[table] = self._writer(TABLES[table])
        writer.add(self.common | {name: value for name, value in row.items() if value is not None})

    def batch_columns(self) -> BatchColumns:
        """Return the collector of batches; `put_batches` writes its contents."""
        if self.batches is None:
            writer = self.writers["batches"] = self._writer(BATCHES)
            self.batches = BatchColumns(writer.schema)
            self.stack.callback(self.put_batches)
        return self.batches

    def put_batches(self) -> None:
        assert self.batches is not None
        self.writers["batches"].put(self.batches.take())

    def _writer(self, table: SparkTable) -> TableWriter:
        name = self.name(table.name)
        self.names.append(name)
        file = self.stack.enter_context(self.store.writing(name))
        writer = TableWriter(table, file)
        self.stack.callback(writer.close)
        return writer

    def close(self) -> None:
        """Complete the files. Raises StoreError."""
        self.stack.close()

    def abandon(self, error: BaseException) -> None:
        """Discard the files."""
        self.stack.__exit__(type(error), error, error.__traceback__)


class TableWriter:
    """Writes rows of a table to one Parquet file."""

    def __init__(self, table: SparkTable, file: Any) -> None:
        self.schema = arrow_schema(table)
        self.rows = Rows(table, self.schema)
        self.held: list[pa.RecordBatch] = []
        self.count = 0
        self.writer = pq.ParquetWriter(file, self.schema, compression="zstd")

    def add(self, row: dict[str, Any]) -> None:
        if self.rows.add(row):
            self.put(self.rows.take())

    def put(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches of the table."""
        for batch in batches:
            self.held.append(batch)
            self.count += batch.num_rows
        if self.count >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if self.held:
            self.writer.write_table(pa.Table.from_batches(self.held, self.schema))
            self.held, self.count = [], 0

    def close(self) -> None:
        self.put(self.rows.take())
        self._flush()
        self.writer.close()
