"""A standalone Spark cluster on 127.0.0.1: a master, and workers with one core each."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 240
SETTINGS = ("--conf", "spark.executor.memory=700m")
"""Options of kdump for a cluster whose workers have 1 GiB."""


@contextmanager
def spark_cluster(work: Path, workers: int = 2) -> Iterator[str]:
    """Run the cluster inside the `with` block; yields the URL of its master. `work`: an existing directory for its
    files and logs. Raises RuntimeError if one of them does not start."""
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    started: list[subprocess.Popen[bytes]] = []

    def start(log: Path, name: str, *arguments: str) -> None:
        command = [os.path.join(home, "bin", "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with log.open("wb") as file:
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT))

    try:
        log = work / "master.log"
        start(log, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _logged(log, r"spark://127\.0\.0\.1:\d+")
        for number in range(1, workers + 1):
            log = work / f"worker-{number}.log"
            options = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g")
            start(log, "worker.Worker", *options, "-d", str(work / f"work-{number}"), url)
            _logged(log, "Successfully registered with master")
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def _logged(log: Path, pattern: str) -> str:
    """Wait until a log contains the pattern, and return the match."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match:
            return match[0]
        time.sleep(0.2)
    raise RuntimeError(f"Spark does not start:\n{log.read_text(errors='replace')}")
