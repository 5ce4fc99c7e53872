"""Lists the Parquet files of a table of a result, for table formats that keep such a list: Delta Lake and Iceberg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.parquet as pq


class ParquetFile(NamedTuple):
    """A Parquet file: absolute path, name, size in bytes, modification time in epoch ms, and number of rows."""

    path: str
    name: str
    size: int
    modified: int
    rows: int


def parquet_files(root: str) -> Iterator[ParquetFile]:
    """Yield every Parquet file in a table's directory, in a fixed order. Raises OSError, or what pyarrow raises."""
    for name in sorted(os.listdir(root)):
        if name.startswith((".", "_")) or not name.endswith(".parquet"):
            continue
        path = os.path.join(root, name)
        status = os.stat(path)
        yield ParquetFile(path, name, status.st_size, int(status.st_mtime * 1000), pq.read_metadata(path).num_rows)
