"""Files that pyarrow writes: Parquet, and Arrow's IPC streams. Nothing else here needs pyarrow."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from kdump.extras import how_to_install
from kdump.tables.arrow import BINARY, ArrowBatch, ArrowSchema

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS, GROUP_BYTES = 1 << 17, 32 << 20
"""Rows and bytes in memory from which on a row group of a Parquet file is written."""
FORMAT: Any = {"compression": "zstd", "compression_level": 1, "write_batch_size": 1 << 13}
"""Of JSON and the like, zstd's first level makes half of what snappy does, in the same time. A page is complete after a
multiple of this many rows, so that most columns have one."""


class NoPyarrow(Exception):
    """Raised if pyarrow is not installed; the message states how to install it."""


def require_pyarrow() -> None:
    """Raise NoPyarrow if it is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise NoPyarrow(f"Parquet and Arrow files need pyarrow: {how_to_install('arrow')}") from None


class TableFile(Protocol):
    """A file to which record batches are written. `rows`: their number so far."""

    rows: int

    def put(self, batch: ArrowBatch) -> None: ...
    def end(self) -> None: ...


RISING = ("offset", "timestamp", "time", "position", "sequence")
"""Columns whose values hardly repeat, like keys and values: a dictionary of them would be built and thrown away."""


class ParquetTable:
    """A Parquet file. A row group is written while the next one is read."""

    def __init__(self, file: BinaryIO, schema: ArrowSchema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from kdump.tables.as_pyarrow import as_schema

        self.rows, self.schema = 0, as_schema(schema)
        self.held: list[pa.RecordBatch] = []
        self.held_rows = self.held_bytes = 0
        repeated = [
            field.name
            for field in schema
            if field.type != BINARY and not field.type.children and field.name not in RISING
        ]
        # Not Python's file, for whose lock the thread would wait at each page.
        self.file = pa.OSFile(f"/dev/fd/{file.fileno()}", "wb")
        self.writer: Any = pq.ParquetWriter(self.file, self.schema, use_dictionary=repeated, **FORMAT)
        self.thread = ThreadPoolExecutor(1)
        self.writing: Future[None] | None = None

    def put(self, batch: ArrowBatch) -> None:
        from kdump.tables.as_pyarrow import as_pyarrow

        self.rows += batch.length
        self.held_rows += batch.length
        self.held_bytes += batch.size
        self.held.append(as_pyarrow(batch, self.schema))
        if self.held_rows >= GROUP_ROWS or self.held_bytes >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        self._wait()
        if self.held:
            table = pa.Table.from_batches(self.held, self.schema)
            self.writing = self.thread.submit(self.writer.write_table, table, row_group_size=self.held_rows)
        self.held, self.held_rows, self.held_bytes = [], 0, 0

    def _wait(self) -> None:
        """Wait for the row group that is being written. Raises what writing it has raised."""
        if self.writing is not None:
            writing, self.writing = self.writing, None
            writing.result()

    def end(self) -> None:
        try:
            self._write()
            self._wait()
        finally:
            self.thread.shutdown()
            self.writer.close()
            self.file.close()


class StreamTable:
    """A file, or a pipe, with an Arrow IPC stream."""

    def __init__(self, file: BinaryIO, schema: ArrowSchema) -> None:
        import pyarrow as pa

        from kdump.tables.as_pyarrow import as_schema

        self.rows, self.schema = 0, as_schema(schema)
        self.writer: Any = pa.ipc.new_stream(file, self.schema)

    def put(self, batch: ArrowBatch) -> None:
        from kdump.tables.as_pyarrow import as_pyarrow

        self.rows += batch.length
        self.writer.write_batch(as_pyarrow(batch, self.schema))

    def end(self) -> None:
        self.writer.close()
