"""`kdump scan` and `kdump query` on a real Spark Connect server. Needs the packages of `pyspark[connect]`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS = 600


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server, whose Python has kdump."""
    for package in ("grpc", "pandas"):
        pytest.importorskip(package)
    pyspark = pytest.importorskip("pyspark")
    home = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse"),
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [home / "bin" / "spark-submit", "--master", "local[2]", "--driver-memory", "700m", *conf]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT),  # Spark lists directories to find data sources: an editable install is in none
    }
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--class", SERVER, "spark-internal"], env=environment, stdout=file, stderr=file
        )
    try:
        until = time.monotonic() + SECONDS
        while "started at" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def kdump(*words: str | Path) -> str:
    command = [sys.executable, "-m", "kdump", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_scan_on_a_server(server: str, tmp_path: Path) -> None:
    """It says what a scan in this process says, and so does a second one, which reads nothing again."""
    disk = FIXTURES / "clean-1"
    count = "select topic, count(*) as batches, sum(recordCount) as records from batches group by topic order by topic"
    found = []
    for options in (("--master", server), ("--master", server), ("--master", "local[1]", "--out", tmp_path / "here")):
        summary = json.loads(kdump("scan", disk, "--out", tmp_path / "there", *options, "--json"))
        found.append({name: summary[name] for name in ("partitions", "batches", "records", "findings", "producers")})
    assert found[0] == found[1] == found[2]
    assert found[0]["batches"] > 100
    rows = kdump("query", tmp_path / "there", count, "--json", "--master", server)
    assert rows == kdump("query", tmp_path / "here", count, "--json", "--master", "local[1]")
    assert rows.count("\n") > 10


READ = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
batches = spark.read.format("kdump").option("table", "batches").load(sys.argv[2])
rows = batches.where("topic = 'payments'").orderBy("baseOffset").select("baseOffset", "lastOffset", "crc").collect()
print([list(row) for row in rows])
spark.sql(f"create temporary view b using kdump options (path '{sys.argv[2]}', table 'batches')")
print(spark.table("b").where("topic = 'payments'").count())
"""


@pytest.mark.slow
def test_the_data_source_on_a_server(server: str) -> None:
    """The server finds it in its own Python, without a word of kdump in the client."""
    disk = FIXTURES / "clean-1"
    command = [sys.executable, "-c", READ, server, str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    rows, count = map(json.loads, done.stdout.splitlines())
    here = [json.loads(line) for line in kdump("inspect", disk / "payments-0", "--json").splitlines()]
    batches = [each for each in here if each["type"] == "batch"]
    assert rows == [[each[name] for name in ("baseOffset", "lastOffset", "crc")] for each in batches]
    assert count == len(rows) > 50
