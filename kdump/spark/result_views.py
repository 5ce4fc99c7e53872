"""The result of a scan as tables of a Spark session, for `kdump query` and for the summary."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kdump.io.directory_listing import is_url
from kdump.spark.cluster_metadata import CLUSTERS
from kdump.spark.coordinator_logs import COORDINATORS
from kdump.spark.delta_tables import FinishedScan, files_of, finished_scans, latest
from kdump.spark.session import reason
from kdump.spark.store import Store, StoreError
from kdump.tables.declarations import RESULTS, SCANS, UNITS, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EARLIER = "earlier_"
"""Start of the names of the views of an earlier scan (--since)."""
TIMES = 1_000_000_000_000
"""From this number on, a number is a time in ms, and no number of a scan."""


def scan_at(store: Store, wanted: int | None = None) -> FinishedScan:
    """Return the last finished scan; `wanted`: the one of that number or, from TIMES on, the last one that was
    finished by then (epoch ms). Raises StoreError if there is none."""
    store.require_result()
    scans = finished_scans(store)
    if not scans:
        raise StoreError(f"{store.root}: the first scan into this directory was not finished; run it again")
    if wanted is None:
        return scans[-1]
    chosen = [scan for scan in scans if (scan.scan == wanted if wanted < TIMES else scan.finished <= wanted)]
    if not chosen:
        first, last = scans[0], scans[-1]
        since = datetime.fromtimestamp(first.finished / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise StoreError(
            f"{store.root}: no such scan; it has those from {first.scan} (finished {since}) to {last.scan}, which"
            " 'select * from scans' shows"
        )
    return chosen[-1]


def open_result(
    spark: SparkSession, store: Store, names: Container[str] = RESULTS, wanted: int | None = None, prefix: str = ""
) -> None:
    """Create a view of each of the tables `names`, whether or not it has rows, as they were after the scan `wanted`
    (scan_at). The name of a view begins with `prefix`. Raises StoreError if there is no result of a scan."""
    done = scan_at(store, wanted)
    require_readable(spark, store)
    view_tables(spark, store, done.versions, names, prefix)


def view_tables(
    spark: SparkSession,
    store: Store,
    versions: Mapping[str, Any],
    names: Container[str],
    prefix: str = "",
    *,
    one_task: bool = False,
) -> None:
    """Create a view of each of the tables `names`, in these versions, with `one_task` for reading in one task. Raises
    StoreError."""
    for table, files in table_files(store, versions, names):
        _view(spark, store, table, files, prefix, one_task=one_task)


def table_files(
    store: Store, versions: Mapping[str, Any], names: Container[str]
) -> Iterator[tuple[SparkTable, list[str]]]:
    """Yield each of the tables `names`, with the names of its files in these versions. Raises StoreError."""
    for table in (*RESULTS.values(), UNITS):
        if table.name in names:
            version = latest(store, table.name) if table is SCANS else versions.get(table.name)
            yield table, [file.name for file in files_of(store, table.name, version)]


def named_in(sql: str) -> set[str]:
    """Return the tables that a query may read: those that it names, or all if it names none, as `show tables`."""
    words = {word.removeprefix(EARLIER) for word in re.findall(r"\w+", sql.lower())}
    return words & RESULTS.keys() or {*RESULTS}


def view_clusters(spark: SparkSession, store: Store, *, one_task: bool = False) -> None:
    """Create the views of what the metadata of each cluster says of its partitions, and the coordinators of groups."""
    for table in (CLUSTERS, COORDINATORS):
        _view(spark, store, table, store.list(table.name), one_task=one_task)


def _view(
    spark: SparkSession, store: Store, table: SparkTable, files: list[str], prefix: str = "", *, one_task: bool
) -> None:
    """Create the view of these files of a table."""
    ddl, paths = table.ddl(), [store.path(f"{table.name}/{name}") for name in files]
    # Of what is `where false`, Spark knows that it is empty, and leaves out all that depends on it.
    frame = spark.read.schema(ddl).parquet(*paths) if paths else spark.createDataFrame([], ddl).where("false")
    (frame.coalesce(1) if one_task else frame).createOrReplaceTempView(prefix + table.name.rpartition("/")[2])


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
