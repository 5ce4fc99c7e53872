"""The process from which Spark forks its Python workers: it imports what they run, which each would import itself."""

from __future__ import annotations

from pyspark.daemon import manager

import kdump.spark.data_source
import kdump.spark.summary  # noqa: F401

if __name__ == "__main__":
    manager()
