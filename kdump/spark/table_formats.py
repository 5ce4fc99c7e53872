"""Publishes a scan's tables in table formats, next to the existing Parquet files, so that readers see each scan as one
version, never a part of it.

Delta: a transaction log in the directory of each table (Delta Lake's protocol, the action `add`), written through
delta-rs. Iceberg: metadata in DIR/_iceberg, written through pyiceberg. There is no catalog: each table has the layout
of Iceberg's HadoopTables, with the newest metadata named in version-hint.text, so that readers need only the table's
path. All columns are resolved by name, because the files have no field IDs (Iceberg's table spec, column projection
and name mapping; HadoopTableOperations).
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.extras import how_to_install
from kdump.log.directory_listing import is_directory, is_url
from kdump.spark.arrow import arrow_schema
from kdump.spark.store import Store, StoreError
from kdump.spark.tables import RESULTS, SparkTable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as Iceberg

DELTA, ICEBERG = "delta", "iceberg"
MODULES = {DELTA: "deltalake", ICEBERG: "pyiceberg.catalog.memory"}
"""What each format is written with."""
PLACE = "_iceberg"
"""Spark ignores directories whose names start with an underscore."""
HINT = "version-hint.text"
NAMESPACE = "kdump"


def require(store: Store, table_format: str) -> None:
    """Raise StoreError if tables of that format cannot be written."""
    module, name = MODULES[table_format], table_format.capitalize()
    try:
        importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise StoreError(f"{name} tables need the package {package}: {how_to_install(table_format)}") from None
    if is_url(store.root):
        raise StoreError(f"{store.root}: {name} tables can only be written to a local directory")


def publish(store: Store, table_format: str) -> list[str]:
    """Commit one more version of each table of a result, with its current files. Returns the names of the tables.
    Raises StoreError."""
    tables = [table for table in RESULTS.values() if is_directory(store.path(table.name))]
    if table_format == DELTA:
        _publish_delta(store, tables)
    else:
        _publish_iceberg(store, tables)
    return [table.name for table in tables]


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


def _publish_delta(store: Store, tables: list[SparkTable]) -> None:
    from deltalake import DeltaTable, Schema
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import AddAction, create_table_with_add_actions

    for table in tables:
        path = store.path(table.name)
        try:
            actions: list[Any] = [
                AddAction(file.name, file.size, {}, file.modified, True, json.dumps({"numRecords": file.rows}))
                for file in parquet_files(path)
            ]
            schema = Schema.from_arrow(arrow_schema(table))
            if DeltaTable.is_deltatable(path):
                DeltaTable(path).create_write_transaction(actions, "overwrite", schema)
            else:
                create_table_with_add_actions(path, schema, actions, "error")
        except (DeltaError, OSError, ValueError) as error:
            raise StoreError(f"{path}: cannot write the Delta table: {error}") from error


def _publish_iceberg(store: Store, tables: list[SparkTable]) -> None:
    from pyiceberg.catalog.memory import InMemoryCatalog
    from pyiceberg.exceptions import CommitFailedException, ValidationError

    failures = (OSError, ValueError, pa.ArrowException, CommitFailedException, ValidationError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        catalog = InMemoryCatalog("kdump")  # temporary: only the metadata in the directory matters
        catalog.create_namespace(NAMESPACE)
        for table in tables:
            try:
                _publish(catalog, store, table)
            except failures as error:
                place = f"{store.path(PLACE)}/{table.name}"
                raise StoreError(f"{place}: cannot write the Iceberg table: {error}") from error


def _publish(catalog: Catalog, store: Store, table: SparkTable) -> None:
    place = f"{PLACE}/{table.name}/metadata"
    version = _version(store, place)
    files = list(parquet_files(store.path(table.name)))
    if version:
        known = catalog.register_table((NAMESPACE, table.name), f"file://{store.path(place)}/v{version}.metadata.json")
    else:
        known = _new(catalog, store, table)
    with known.transaction() as change, change.update_snapshot().overwrite() as snapshot:
        for old in _live(known):
            snapshot.delete_data_file(old)
        for each in files:
            snapshot.append_data_file(_data_file(known, each))
    _forget(known)
    name = f"{store.path(place)}/v{version + 1}.metadata.json"
    shutil.copyfile(known.metadata_location.removeprefix("file://"), name)
    store.write(f"{place}/{HINT}", str(version + 1).encode())
    _clear(known, store.path(place), version + 1)


def _version(store: Store, place: str) -> int:
    """Return the number of the newest metadata file; 0 if there is none."""
    version_text = store.read(f"{place}/{HINT}")
    text = (version_text or b"0").decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() and os.path.exists(f"{store.path(place)}/v{text}.metadata.json") else 0


def _new(catalog: Catalog, store: Store, table: SparkTable) -> Iceberg:
    location = f"file://{store.path(PLACE)}/{table.name}"
    made = catalog.create_table((NAMESPACE, table.name), arrow_schema(table), location)
    with made.transaction() as change:
        change.set_properties({"schema.name-mapping.default": made.schema().name_mapping.model_dump_json()})
    return made


def _live(known: Iceberg) -> Iterator[Any]:
    """Yield the data files of the newest snapshot."""
    snapshot = known.current_snapshot()
    for manifest in snapshot.manifests(known.io) if snapshot else ():
        for entry in manifest.fetch_manifest_entry(known.io, discard_deleted=True):
            yield entry.data_file


def _data_file(known: Iceberg, file: ParquetFile) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        spec_id=known.spec().spec_id,
        sort_order_id=None,
    )


def _forget(known: Iceberg) -> None:
    """Expire all snapshots but the newest, because they reference files that may be deleted."""
    newest = known.current_snapshot()
    old = [each.snapshot_id for each in known.snapshots() if newest is None or each.snapshot_id != newest.snapshot_id]
    if old:
        known.maintenance.expire_snapshots().by_ids(old).commit()
        known.refresh()


def _clear(known: Iceberg, directory: str, version: int) -> None:
    """Delete the files that the newest metadata does not reference."""
    snapshot = known.current_snapshot()
    paths = [snapshot.manifest_list, *(each.manifest_path for each in snapshot.manifests(known.io))] if snapshot else []
    named = {os.path.basename(path) for path in paths} | {HINT, f"v{version}.metadata.json"}
    for name in os.listdir(directory):
        if name not in named:
            os.unlink(os.path.join(directory, name))
