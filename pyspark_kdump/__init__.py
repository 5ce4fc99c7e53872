"""Entry point for Spark, which imports top-level modules named pyspark_* and registers their DefaultSource."""

from kdump.spark.data_source import KdumpSource as DefaultSource

__all__ = ["DefaultSource"]
