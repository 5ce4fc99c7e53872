"""One Spark session for all tests of a process. They run in one process, because a session takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# Sessions live for seconds, so compiling with the JVM's second compiler (C2) is not worth its time, nor is verifying
# Spark's classes. With a large young generation, little is copied when garbage is collected.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m -Xms500m -Xmn300m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Compiling a query, and dividing a few rows among tasks, takes longer than computing it.
SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from kdump.spark.session import session

    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
    started = session("local[2]", SETTINGS)
    yield started
    started.stop()
