"""Kafka's files as DataFrames: the data source "kdump" for Spark 4. Requires the packages of the extra `spark`.

    spark.read.format("kdump").option("table", "batches").load("/mnt/*/kafka-logs")

Spark finds the data source by itself through the top-level module pyspark_kdump. `register` registers it explicitly,
and chooses the reader that accepts filters if the session allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register format("kdump") in a session. If `spark.sql.python.filterPushdown.enabled` is true, filters on topic,
    partition, offset, timestamp and producer ID reduce what is read."""
    from kdump.spark.data_source import KdumpSource, PushingSource

    enabled = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    spark.dataSource.register(PushingSource if enabled else KdumpSource)
