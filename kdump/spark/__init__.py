"""Kafka's files as DataFrames: the data source "kdump" for Spark 4. Requires the packages of the extra `spark`.

    spark.read.format("kdump").option("table", "batches").load("/mnt/*/kafka-logs")

Spark finds the data source by itself through the top-level module pyspark_kdump. `register` registers it explicitly,
and chooses the reader that accepts filters if the session allows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register format("kdump") in a session. If `spark.sql.python.filterPushdown.enabled` is true, filters on topic,
    partition, broker, offset, timestamp and producer ID reduce what is read; otherwise warns that they do not. Raises
    RuntimeError if the session cannot run the data source."""
    if not hasattr(spark, "dataSource"):
        raise RuntimeError(f"kdump's data source needs Spark 4.0 or later; this session is Spark {spark.version}")
    _require_importable(spark)
    from kdump.spark.data_source import KdumpSource, PushingSource

    enabled = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    if not enabled:
        warnings.warn(
            f"kdump reads everything, whatever a query filters: {PUSHDOWN} is not true in this session", stacklevel=2
        )
    spark.dataSource.register(PushingSource if enabled else KdumpSource)


def _require_importable(spark: SparkSession) -> None:
    """Raise RuntimeError if the Python that Spark starts on this machine, also to plan a read, has no kdump. The
    executors' machines are not examined, nor what is in an archive that they unpack."""
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    program = getattr(context, "pythonExec", None)
    if program is not None and program.startswith("./") and not getattr(context, "master", "").startswith("local"):
        return
    executable = shutil.which(program) if program else None
    if program is None or (executable is not None and os.path.abspath(executable) == os.path.abspath(sys.executable)):
        return  # not compared as files: that of a virtual environment is a link to the system's
    try:
        done = subprocess.run([program, "-c", "import kdump.spark.data_source"], capture_output=True, check=False)
    except OSError as error:
        problem = f"cannot be started ({error.strerror})"
    else:
        if done.returncode == 0:
            return
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        problem = f"cannot import kdump ({[line for line in lines if line.strip()][-1].strip()})"
    raise RuntimeError(
        f"Spark runs {program}, which {problem}: set PYSPARK_PYTHON to a Python that has kdump before the session "
        f"starts, here {sys.executable}"
    )
