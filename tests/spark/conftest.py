"""One Spark session for all tests of a process. They run in one process, because a session takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# Sessions live for seconds, so compiling with the JVM's second compiler (C2) is not worth its time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m")
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from kdump.spark.session import session

    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
    started = session("local[2]", {"spark.driver.memory": "600m", "spark.sql.shuffle.partitions": "2"})
    yield started
    started.stop()
