"""The result of a scan as tables of a Spark session, for `kdump query` and for the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.log.directory_listing import is_directory, is_url
from kdump.spark.arrow_types import arrow_schema, spark_type
from kdump.spark.compare_replicas import ComparedBatch, partitions
from kdump.spark.packs import ENTRY, LIST, committed, finish_commit
from kdump.spark.session import reason
from kdump.spark.store import OWN, Store, StoreError
from kdump.spark.tables import REPLICAS, RESULTS, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

OF_REPLICAS = """
  select cluster, topic, partition, source, broker, coalesce(baseOffset, lastOffset) as baseOffset, lastOffset, crc,
         crcValid, partitionLeaderEpoch, recordCount,
         coalesce(hasDeleteHorizonMs, false) or coalesce(recordCount < lastOffsetDelta + 1, false) as compacted
  from batches left semi join (
    select cluster as c, topic as t, partition as p from segments where state = 'live' and topic is not null
    group by cluster, topic, partition having count(distinct source) > 1)
  on cluster <=> c and topic = t and partition = p
  where state = 'live'
"""
"""Selects the batches of the partitions that have more than one replica or copy."""


UNIT_VIEW = "units"
"""View of the entries of all units (kdump.spark.packs.ENTRY)."""


def open_result(spark: SparkSession, store: Store) -> None:
    """Create a view of each table, whether or not it has rows. Raises StoreError if there is no result of a scan."""
    if not is_directory(store.path(OWN)):
        raise StoreError(f"{store.root}: not a result of kdump scan")
    if store.read(LIST) is None:
        raise StoreError(f"{store.root}: the first scan into this directory was not finished; run it again")
    require_readable(spark, store)
    packs = committed(store)
    finish_commit(store, packs)
    for table in RESULTS.values():
        if table.derived:
            view(spark, store, table)
        else:
            _view(
                spark,
                table.name,
                table.ddl(),
                [store.path(each.file(table.name)) for each in packs if table.name in each.tables],
            )


def view_entries(spark: SparkSession, store: Store) -> None:
    """Create the view of the units' entries."""
    ddl = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in ENTRY)
    _view(spark, UNIT_VIEW, ddl, [store.path(each.entries) for each in committed(store)])


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


def compare_replicas(spark: SparkSession) -> list[dict[str, Any]]:
    """Return the rows of the table replicas, computed from the views: each partition in one task, its batches ordered
    by offset, in memory that does not grow with the partition."""
    rows = spark.sql(OF_REPLICAS).repartition("cluster", "topic", "partition")
    ordered = rows.sortWithinPartitions("cluster", "topic", "partition", "baseOffset", "source")
    # Rows instead of Arrow, for which Spark requires pandas, otherwise unused.
    found = ordered.rdd.mapPartitions(_compared).collect()
    named = [dict(zip(arrow_schema(REPLICAS).names, each)) for each in found]
    return sorted(named, key=lambda each: (str(each["cluster"]), each["topic"], each["partition"]))


def put_replicas(store: Store, differences: list[dict[str, Any]]) -> None:
    """Write the table replicas. Raises StoreError."""
    with store.writing(f"{REPLICAS.name}/all.parquet") as file:
        pq.write_table(pa.Table.from_pylist(differences, arrow_schema(REPLICAS)), file)


def _compared(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table replicas for the partitions of one task."""
    brokers: dict[str, str | None] = {}
    for (cluster, topic, partition), differences in partitions(_facts(rows, brokers)):
        for each in differences:
            names = {source: brokers.get(source) for source in each.replicas}
            yield (
                cluster,
                topic,
                partition,
                each.kind,
                each.severity,
                each.offset,
                list(names.values()),
                list(names),
                [each.epochs[source] for source in names],
                [each.ends.get(source) for source in names],
                each.explained(names),
            )


def _facts(rows: Iterable[Row], brokers: dict[str, str | None]) -> Iterator[tuple[Any, ComparedBatch]]:
    for cluster, topic, partition, source, broker, *fields in rows:
        brokers[source] = broker
        base, last, crc, valid, epoch, count, compacted = fields
        yield (cluster, topic, partition), ComparedBatch(source, base, last, crc, bool(valid), epoch, count, compacted)
