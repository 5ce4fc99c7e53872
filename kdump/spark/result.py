"""The result of a scan as tables of a Spark session, for `kdump query` and for the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kdump.log.directory_listing import is_directory, is_url
from kdump.spark.arrow_types import spark_type
from kdump.spark.cluster_metadata import ASSIGNMENT, CLUSTERS
from kdump.spark.coordinator_logs import COORDINATORS, STATE
from kdump.spark.packs import ENTRY, LIST, committed, finish_commit, listed
from kdump.spark.session import reason
from kdump.spark.store import OWN, Store, StoreError
from kdump.spark.tables import RESULTS, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER_VIEW, COORDINATOR_VIEW = "clusters", "coordinators"
UNIT_VIEW = "units"
"""View of the entries of all units (kdump.spark.packs.ENTRY)."""


def open_result(spark: SparkSession, store: Store) -> None:
    """Create a view of each table, whether or not it has rows. Raises StoreError if there is no result of a scan."""
    if not is_directory(store.path(OWN)):
        raise StoreError(f"{store.root}: not a result of kdump scan")
    if store.read(LIST) is None:
        raise StoreError(f"{store.root}: the first scan into this directory was not finished; run it again")
    require_readable(spark, store)
    packs = listed(store)
    if packs is None:
        raise StoreError(f"{store.root}: the result of another version of kdump, or damaged; scan again")
    finish_commit(store, packs)
    for table in RESULTS.values():
        if table.derived:
            view(spark, store, table)
        else:
            _view(
                spark,
                table.name,
                table.ddl(),
                sorted({store.path(each.file(table.name)) for each in packs if table.name in each.tables}),
            )


def view_entries(spark: SparkSession, store: Store) -> None:
    """Create the view of the units' entries."""
    _view(spark, UNIT_VIEW, _ddl(ENTRY), [store.path(each.entries) for each in committed(store)])


def view_clusters(spark: SparkSession, store: Store) -> None:
    """Create the views of what the metadata of each cluster says of its partitions, and the coordinators of groups."""
    for name, schema, directory in ((CLUSTER_VIEW, ASSIGNMENT, CLUSTERS), (COORDINATOR_VIEW, STATE, COORDINATORS)):
        _view(spark, name, _ddl(schema), [store.path(f"{directory}/{file}") for file in store.list(directory)])


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)


def _view(spark: SparkSession, name: str, ddl: str, files: list[str]) -> None:
    frame = spark.read.schema(ddl).parquet(*files) if files else spark.createDataFrame([], ddl)
    frame.createOrReplaceTempView(name)


def require_readable(spark: SparkSession, store: Store) -> None:
    """Raise StoreError if Spark has no file system for the URL of the result, which is written through fsspec but read
    through Hadoop."""
    if not is_url(store.root):
        return
    context: Any = getattr(spark, "sparkContext", None)
    if context is None:
        return
    try:
        context._jvm.org.apache.hadoop.fs.Path(store.root).getFileSystem(context._jsc.hadoopConfiguration())
    except Exception as error:
        cause = reason(error)
        if cause is None:
            raise
        version = context._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        raise StoreError(
            f"{store.root}: Spark cannot read from there ({cause}); use a local directory and copy it, or for S3 an"
            f" s3a://… URL with --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
        ) from None


def view(spark: SparkSession, store: Store, table: SparkTable) -> None:
    """Create a view of a table that a scan has derived from the others."""
    _view(spark, table.name, table.ddl(), [store.path(table.name)] if is_directory(store.path(table.name)) else [])
