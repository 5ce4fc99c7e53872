"""The result of a scan as tables of a Spark session, for `kdump query` and for the summary."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kdump.log.directory_listing import is_directory, is_url
from kdump.spark.arrow import spark_type
from kdump.spark.cluster_metadata import ASSIGNMENT, CLUSTERS
from kdump.spark.coordinator_logs import COORDINATORS, STATE
from kdump.spark.packs import ENTRY, LIST, committed, finish_commit, listed
from kdump.spark.session import reason
from kdump.spark.store import Store, StoreError
from kdump.spark.tables import RESULTS, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLUSTER_VIEW, COORDINATOR_VIEW = "clusters", "coordinators"
UNIT_VIEW = "units"
"""View of the entries of all units (kdump.spark.packs.ENTRY)."""


def open_result(spark: SparkSession, store: Store, names: Container[str] = RESULTS, *, one_task: bool = False) -> None:
    """Create a view of each of the tables `names`, whether or not it has rows, with `one_task` for reading in one task.
    Raises StoreError if there is no result of a scan."""
    require_result(store)
    require_readable(spark, store)
    packs = listed(store)
    if packs is None:
        raise StoreError(f"{store.root}: the result of another version of kdump, or damaged; scan again")
    finish_commit(store, packs)
    for table in RESULTS.values():
        if table.name not in names:
            continue
        if table.derived:
            view(spark, store, table, one_task=one_task)
        else:
            _view(
                spark,
                table.name,
                table.ddl(),
                sorted({store.path(each.file(table.name)) for each in packs if table.name in each.tables}),
                one_task=one_task,
            )


def require_result(store: Store) -> None:
    """Raise StoreError if there is no result of a scan."""
    store.require_result()
    if store.read(LIST) is None:
        raise StoreError(f"{store.root}: the first scan into this directory was not finished; run it again")


def named_in(sql: str) -> Container[str]:
    """Return the tables that a query may read: those that it names, or all if it names none, as `show tables`."""
    return {*re.findall(r"\w+", sql.lower())} & RESULTS.keys() or RESULTS


def view_entries(spark: SparkSession, store: Store, *, one_task: bool = False) -> None:
    """Create the view of the units' entries."""
    _view(spark, UNIT_VIEW, _ddl(ENTRY), [store.path(each.entries) for each in committed(store)], one_task=one_task)


def view_clusters(spark: SparkSession, store: Store, *, one_task: bool = False) -> None:
    """Create the views of what the metadata of each cluster says of its partitions, and the coordinators of groups."""
    for name, schema, directory in ((CLUSTER_VIEW, ASSIGNMENT, CLUSTERS), (COORDINATOR_VIEW, STATE, COORDINATORS)):
        files = [store.path(f"{directory}/{file}") for file in store.list(directory)]
        _view(spark, name, _ddl(schema), files, one_task=one_task)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)


def _view(spark: SparkSession, name: str, ddl: str, files: list[str], *, one_task: bool) -> None:
    # Of what is `where false`, Spark knows that it is empty, and leaves out all that depends on it.
    frame = spark.read.schema(ddl).parquet(*files) if files else spark.createDataFrame([], ddl).where("false")
    (frame.coalesce(1) if one_task else frame).createOrReplaceTempView(name)


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


def view(spark: SparkSession, store: Store, table: SparkTable, *, one_task: bool = False) -> None:
    """Create a view of a table that a scan has derived from the others."""
    files = [store.path(table.name)] if is_directory(store.path(table.name)) else []
    _view(spark, table.name, table.ddl(), files, one_task=one_task)


@contextmanager
def kept_views(spark: SparkSession, queries: Mapping[str, str], *, keep: bool = True) -> Iterator[None]:
    """Create a view of each query, which may read those before it. Their rows are kept as long as this context, so that
    queries that read them several times have small plans: for small tables, planning takes longer than computing. With
    `keep` False, a query that reads a view computes it."""
    frames = []
    try:
        for name, sql in queries.items():
            frame = spark.sql(sql)
            if keep:
                frames.append(frame.cache())
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for frame in reversed(frames):
            frame.unpersist()
