"""The same command on executors of their own: local-cluster, and a standalone master with a worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FIXTURES, ROOT, SHARED

pytestmark = pytest.mark.cluster
DISKS = SHARED / "disks" / "kafka-4.3"
PATHS = [DISKS / name for name in ("clean-0", "clean-1", "clean-2")]
if not DISKS.is_dir():
    PATHS = [FIXTURES / name for name in ("clean-1", "clean-2")]


def scan(out: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "kdump", "scan", *map(str, PATHS), "--out", str(out), "--records", "--json", *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return {**said, "out": "", "seconds": 0}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return scan(tmp_path_factory.mktemp("alone") / "out", "--master", "local[2]")


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The URL of a master that has a worker."""
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    run = os.path.join(home, "bin", "spark-class")
    log = tmp_path / "master.log"
    started = []

    def start(name: str, *arguments: str) -> None:
        command = [run, f"org.apache.spark.deploy.{name}", *arguments]
        with open(tmp_path / f"{name.split('.')[0]}.log", "wb") as file:
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT))

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _seen(log, r"spark://127\.0\.0\.1:\d+")
        work = str(tmp_path / "work")
        start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "2", "-m", "2g", "-d", work, url)
        _seen(tmp_path / "worker.log", "Successfully registered with master")
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def _seen(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text(errors="replace")) if log.exists() else None
        if match:
            return match[0]
        time.sleep(0.2)
    raise AssertionError(log.read_text() if log.exists() else f"{log} is not there")


def test_on_executors(alone: dict[str, Any], tmp_path: Path) -> None:
    found = scan(tmp_path / "out", "--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=700m")
    assert found == alone


def test_on_a_standalone_master(alone: dict[str, Any], standalone: str, tmp_path: Path) -> None:
    found = scan(tmp_path / "out", "--master", standalone, "--conf", "spark.executor.memory=700m")
    assert found == alone
