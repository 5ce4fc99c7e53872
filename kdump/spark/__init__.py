"""Kafka's files as DataFrames: the data source "kdump" for Spark 4. Needs the packages of the extra `spark`.

    spark.read.format("kdump").option("table", "batches").load("/mnt/*/kafka-logs")

Spark finds it by itself, through the top-level module pyspark_kdump; `register` does the same in plain sight, and
chooses the reader that takes filters where the session lets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make format("kdump") known to a session. With `spark.sql.python.filterPushdown.enabled` set to true, filters on
    topic, partition, offset, timestamp and producer id are used to read less."""
    from kdump.spark.source import KdumpSource, PushingSource

    enabled = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    spark.dataSource.register(PushingSource if enabled else KdumpSource)
