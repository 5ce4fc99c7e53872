"""The same commands on separate executors: local-cluster, and a standalone master with a worker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.conftest import DISKS, ROOT
from tests.s3_server import s3_server
from tools.manual import DISTRIBUTION

pytestmark = pytest.mark.cluster
KAFKA = DISKS / "kafka-4.3"
PATHS = [KAFKA / name for name in ("clean-0", "clean-1", "clean-2")]


def scan(out: Path | str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "kdump", "scan", *map(str, PATHS), "--out", str(out), "--records", "--json", *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr  # the replicas of ledger differ
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return {**said, "out": "", "seconds": 0}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    said = scan(tmp_path_factory.mktemp("alone") / "out", "--master", "local[2]")
    assert [(each["topic"], each["firstOffset"]) for each in said["replicas"]] == [("ledger", 50)]
    assert [(each["topic"], each["firstOffset"]) for each in said["openTransactions"]] == [("payments", 114)]
    return said


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The URL of a master with two workers."""
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
        for number in "12":
            work = str(tmp_path / f"work-{number}")
            start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", work, url)
            (tmp_path / "worker.log").rename(tmp_path / f"worker-{number}.log")
            _seen(tmp_path / f"worker-{number}.log", "Successfully registered with master")
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


def closure(*names: str) -> set[str]:
    """Return these distributions and everything that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            needed = [Requirement(text) for text in requires(name) or ()]
            left += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """An archive of an environment with kdump and what it needs, except for PySpark, which a worker has."""
    home = tmp_path / "packed"
    subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(home)], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in closure(DISTRIBUTION, "pyarrow", "fsspec") - {DISTRIBUTION}:
        for file in distribution(name).files or ():
            if not {"..", "__pycache__", "tests", "include"} & {*file.parts}:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), site / file)
    for package in ("kdump", "pyspark_kdump"):
        shutil.copytree(ROOT / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    archive = tmp_path / "kdump.tar.gz"  # Spark drops the executable bits of a plain .tar
    with tarfile.open(archive, "w:gz", compresslevel=1) as made:
        made.add(home, ".")
    shutil.rmtree(home)
    return archive


def test_what_executors_lack_travels_with_the_command(
    alone: dict[str, Any], standalone: str, packed: Path, tmp_path: Path
) -> None:
    """As in docs/spark.md: `PYSPARK_PYTHON` is a path that exists only in the archive."""
    import pyspark

    app = tmp_path / "kdump_app.py"
    app.write_text("from kdump.cli import main\n\nmain()\n")
    submit = [os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-submit"), "--master", standalone]
    submit += ["--conf", "spark.executor.memory=700m", "--archives", f"{packed}#environment", str(app)]
    out = tmp_path / "out"
    command = [*submit, "scan", *map(str, PATHS), "--out", str(out), "--records", "--json"]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": "./environment/bin/python",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert {**said, "out": "", "seconds": 0} == alone
    assert (out / "records").is_dir()


@pytest.mark.skipif("KDUMP_HADOOP_AWS" not in os.environ, reason="a directory with hadoop-aws and what it needs")
def test_a_result_in_an_object_store(alone: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's s3a reads what fsspec writes there; a second scan keeps it, and a query reads it."""
    import s3fs

    with s3_server() as options:
        s3fs.S3FileSystem(**options).mkdir("results")
        url = options["endpoint_url"]
        for name, value in (("ACCESS_KEY_ID", "any"), ("SECRET_ACCESS_KEY", "any"), ("ENDPOINT_URL", url)):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        jars = ",".join(map(str, Path(os.environ["KDUMP_HADOOP_AWS"]).glob("*.jar")))
        settings = [f"spark.jars={jars}", f"spark.hadoop.fs.s3a.endpoint={url}"]
        settings.append("spark.hadoop.fs.s3a.path.style.access=true")
        confs = [word for setting in settings for word in ("--conf", setting)]
        there = "s3a://results/fleet"
        assert scan(there, *confs) == alone
        again = scan(there, *confs)
        assert again["units"]["kept"] == alone["units"]["read"] - len(PATHS)
        assert {**again, "units": 0} == {**alone, "units": 0}
        command = [sys.executable, "-m", "kdump", "query", there, "select * from replica_differences", "--json", *confs]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert [json.loads(line) for line in done.stdout.splitlines()] == alone["replicas"]


def test_on_executors(alone: dict[str, Any], tmp_path: Path) -> None:
    found = scan(tmp_path / "out", "--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=700m")
    assert found == alone


def test_bundles_alone(alone: dict[str, Any], standalone: str, tmp_path: Path) -> None:
    """Each broker's bundle is copied to one place. There, SQL finds where replicas diverge, the hanging transaction
    and the groups that are behind."""
    bundles = tmp_path / "bundles"
    bundles.mkdir()
    for path in PATHS:
        run("bundle", str(path), "--out", str(tmp_path / path.name), "--tar", str(bundles / f"{path.name}.tar"))
    out = str(tmp_path / "out")
    master = ("--master", standalone, "--conf", "spark.executor.memory=700m")
    found = json.loads(run("scan", str(bundles), "--out", out, "--json", *master))
    for name in ("partitions", "batches", "findings", "codes", "groups", "topics", "formats"):
        assert found[name] == alone[name], name
    assert found["notInBundle"]

    def query(sql: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run("query", out, sql, "--json").splitlines()]

    (ledger,) = query("select topic, firstOffset, lost, brokers from replica_differences")
    assert ledger == {"topic": "ledger", "firstOffset": 50, "lost": 20, "brokers": ["1", "2"]}
    (hanging,) = query("select topic, firstOffset, transactionalId, coordinatorState from open_transactions")
    assert list(hanging.values()) == ["payments", 114, "tx-hang", "Ongoing"]
    lag = query("select groupId, sum(lag) as lag from group_lag group by 1 having lag > 0 order by lag desc, groupId")
    assert lag == [{"groupId": each["groupId"], "lag": each["lag"]} for each in alone["groups"] if each["lag"]]


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "kdump", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_on_a_standalone_master(alone: dict[str, Any], standalone: str, tmp_path: Path) -> None:
    found = scan(tmp_path / "out", "--master", standalone, "--conf", "spark.executor.memory=700m")
    assert found == alone
