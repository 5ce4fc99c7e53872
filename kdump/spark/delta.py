"""Publishes a scan's tables as Delta tables: adds a transaction log next to the existing Parquet files, so that Delta
readers see each scan as one version, never a part of it.

Source: Delta Lake's protocol (the action `add`), written through delta-rs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kdump.extras import how_to_install
from kdump.log.directory_listing import is_directory, is_url
from kdump.spark.arrow_types import arrow_schema
from kdump.spark.result_files import parquet_files
from kdump.spark.store import Store, StoreError
from kdump.spark.tables import RESULTS


def require(store: Store) -> None:
    """Raise StoreError if Delta tables cannot be written."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise StoreError(f"Delta tables need the package deltalake: {how_to_install('delta')}") from None
    if is_url(store.root):
        raise StoreError(f"{store.root}: Delta tables can only be written to a local directory")


def publish(store: Store) -> list[str]:
    """Commit one more version of each table of a result, with its current files. Returns the names of the tables.
    Raises StoreError."""
    from deltalake import DeltaTable, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import create_table_with_add_actions

    made = []
    for table in RESULTS.values():
        path = store.path(table.name)
        if not is_directory(path):
            continue
        try:
            actions = list(_actions(path))
            schema = Schema.from_arrow(arrow_schema(table))
            if DeltaTable.is_deltatable(path):
                DeltaTable(path).create_write_transaction(actions, "overwrite", schema)
            else:
                create_table_with_add_actions(path, schema, actions, "error")
        except (DeltaError, OSError, ValueError) as error:
            raise StoreError(f"{path}: cannot write the Delta table: {error}") from error
        made.append(table.name)
    return made


def _actions(root: str) -> Iterator[Any]:
    """Yield an `add` action for each Parquet file in a table's directory."""
    from deltalake.transaction import AddAction

    for file in parquet_files(root):
        rows = json.dumps({"numRecords": file.rows})
        yield AddAction(file.name, file.size, {}, file.modified, True, rows)
