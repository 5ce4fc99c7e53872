"""Where Spark looks for the data source "kdump": it imports the top-level modules named pyspark_*."""

from kdump.spark.source import KdumpSource as DefaultSource

__all__ = ["DefaultSource"]
