"""Reads packs (kdump.spark.packs): their entries, and rows of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.spark.packs import Pack, hidden
from kdump.spark.store import Store, StoreError

DAMAGED = "is damaged, so scan with --from-scratch"


def entries(store: Store, pack: Pack, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the entries of a pack. Raises StoreError."""
    try:
        with store.open(pack.entries) as file:
            found: list[dict[str, Any]] = pq.read_table(file, columns=columns).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{store.path(pack.entries)}: {DAMAGED}: {error}") from error
    return found


def rows_of(store: Store, pack: Pack, table: str, ranges: Iterable[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of a pack's table, given the first of each range and their number, in ascending order. Raises
    StoreError."""
    own = pack.tables[table].start
    return rows_in(store, pack.file(table), [(own + start, count) for start, count in ranges])


def rows_in(store: Store, name: str, ranges: Iterable[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table's file, whether or not its scan was finished, as `rows_of` does. Raises StoreError."""
    try:
        with _opened(store, name) as opened:
            file = pq.ParquetFile(opened)
            left = [(start, start + count) for start, count in ranges if count]
            begin = 0
            for number in range(file.num_row_groups):
                end = begin + file.metadata.row_group(number).num_rows
                if left and left[0][0] < end:
                    group = file.read_row_group(number)
                    while left and left[0][0] < end:
                        start, stop = left[0]
                        first = max(start, begin)
                        yield from group.slice(first - begin, min(stop, end) - first).to_batches()
                        if stop > end:
                            break
                        left.pop(0)
                begin = end
            if left:
                raise StoreError(f"{store.path(name)}: {DAMAGED}: it has {begin} rows, not {left[-1][1]}")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{store.path(name)}: {DAMAGED}: {error}") from error


def _opened(store: Store, name: str) -> Any:
    if not store.is_remote:
        try:
            return store.open(hidden(name))
        except StoreError:
            pass
    return store.open(name)
