"""Lists the Parquet files of a table of a result, for table formats that keep such a list: Delta Lake and Iceberg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq

from kdump.spark.store import NULL


class ParquetFile(NamedTuple):
    """A Parquet file: absolute path, path below the table's directory, size in bytes, modification time in epoch ms,
    number of rows, and the column values in its directory names."""

    path: str
    relative: str
    size: int
    modified: int
    rows: int
    values: dict[str, str | None]


def parquet_files(root: str) -> Iterator[ParquetFile]:
    """Yield every Parquet file below a table's directory, in a fixed order. Raises OSError, or what pyarrow raises."""
    for directory, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("_"))
        inside = os.path.relpath(directory, root)
        values = dict(_value(part) for part in inside.split(os.sep) if "=" in part)
        for name in sorted(files):
            if name.startswith(".") or not name.endswith(".parquet"):
                continue
            path = os.path.join(directory, name)
            status = os.stat(path)
            relative = name if inside == "." else f"{inside}/{name}"
            rows = pq.read_metadata(path).num_rows
            yield ParquetFile(path, relative, status.st_size, int(status.st_mtime * 1000), rows, values)


def _value(part: str) -> tuple[str, str | None]:
    """Return the column and its value from a directory name such as broker=1."""
    name, _, value = part.partition("=")
    return name, None if value == NULL else unquote(value)
