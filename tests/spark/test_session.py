"""What a command that uses Spark leaves in its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdump.spark import register, session
from kdump.spark.data_source import KdumpSource, PushingSource
from tests.craft import write_file


class Session:
    """The part of a session that is needed here: PySpark installs a handler, and leaves it when the session stops."""

    def __init__(self) -> None:
        self.stopped = False
        signal.signal(signal.SIGINT, lambda number, frame: None)

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def handler() -> Iterator[Any]:
    before = signal.getsignal(signal.SIGINT)
    yield before
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_what_it_was_before(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_active", lambda: None)
    monkeypatch.setattr(session, "session", lambda *given: Session())
    with session.running() as spark:
        assert signal.getsignal(signal.SIGINT) is not handler
    assert spark.stopped
    assert signal.getsignal(signal.SIGINT) is handler


def test_of_a_session_that_was_there_it_stays(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Session()
    theirs = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(session, "_active", lambda: before)
    monkeypatch.setattr(session, "session", lambda *given: before)
    with session.running():
        pass
    assert not before.stopped
    assert signal.getsignal(signal.SIGINT) is theirs


class Registered:
    """The part of a session that `register` uses."""

    version = "3.5.8"

    def __init__(self, python: str, pushdown: str | None = "true", master: str = "local[2]") -> None:
        self.sparkContext = SimpleNamespace(pythonExec=python, master=master)
        self.conf = SimpleNamespace(get=lambda name, default: pushdown or default)
        self.given: list[Any] = []
        self.dataSource = SimpleNamespace(register=self.given.append)


def test_the_data_source_is_registered(recwarn: pytest.WarningsRecorder) -> None:
    spark = Registered(sys.executable)
    register(spark)  # type: ignore[arg-type]
    assert spark.given == [PushingSource]
    assert not recwarn


@pytest.mark.parametrize("pushdown", [None, "false"])
def test_filters_that_do_not_reduce_what_is_read(pushdown: str | None) -> None:
    spark = Registered(sys.executable, pushdown)
    with pytest.warns(UserWarning, match="spark.sql.python.filterPushdown.enabled is not true"):
        register(spark)  # type: ignore[arg-type]
    assert spark.given == [KdumpSource]


def test_a_spark_without_python_data_sources() -> None:
    spark = Registered(sys.executable)
    del spark.dataSource
    with pytest.raises(RuntimeError, match=r"needs Spark 4\.0 or later; this session is Spark 3\.5\.8"):
        register(spark)  # type: ignore[arg-type]


def test_a_python_without_kdump(tmp_path: Path) -> None:
    """Spark would report it with the traceback of a worker."""
    other = tmp_path / "python"
    for script, problem in (
        ("#!/bin/sh\necho no kdump >&2; exit 1\n", r"cannot import kdump \(no kdump\)"),
        (None, "cannot be started"),
    ):
        other.unlink(missing_ok=True)
        if script is not None:
            other.write_text(script)
            other.chmod(0o755)
        with pytest.raises(RuntimeError, match=f"{problem}.*set PYSPARK_PYTHON"):
            register(Registered(str(other)))  # type: ignore[arg-type]
    other.unlink(missing_ok=True)
    if sys.prefix != sys.base_prefix:
        other.symlink_to(Path(sys.executable).resolve())  # without the packages of the virtual environment
        with pytest.raises(RuntimeError, match="No module named"):
            register(Registered(str(other)))  # type: ignore[arg-type]
        other.unlink()
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    spark = Registered(str(other))
    register(spark)  # type: ignore[arg-type]
    assert spark.given


def test_a_python_in_an_archive() -> None:
    """It is unpacked on the executors' machines alone (docs/spark.md)."""
    python = "./environment/bin/python"
    spark = Registered(python, master="spark://head:7077")
    register(spark)  # type: ignore[arg-type]
    assert spark.given
    with pytest.raises(RuntimeError, match="cannot be started"):
        register(Registered(python))  # type: ignore[arg-type]


@pytest.mark.parametrize(("master", "shuffles"), [(None, True), ("local[4]", True), ("spark://head:7077", False)])
def test_shuffle_partitions_are_set_in_local_sessions_only(master: str | None, shuffles: bool) -> None:
    assert ("spark.sql.shuffle.partitions" in session._settings(master)) == shuffles


def test_a_session_that_reads_little_compiles_little(tmp_path: Path) -> None:
    write_file(tmp_path / "disk" / "t-0" / f"{0:020}.log", b"x")
    large = tmp_path / "large.log"
    large.touch()
    os.truncate(large, session.SMALL_BYTES + 1)
    for paths, quick in (
        ([tmp_path / "disk"], True),
        ([f"{tmp_path}/d*", tmp_path / "nowhere"], True),
        ([tmp_path / "disk", large], False),
        ([tmp_path], False),
        (["s3://disks"], False),
        ([], False),
    ):
        settings = session._settings("local[2]", map(str, paths))
        assert ("spark.driver.extraJavaOptions" in settings) == quick, paths
    assert "spark.driver.extraJavaOptions" in session._settings(None, [str(tmp_path)], session.SMALL_DISKS)
    assert "spark.driver.extraJavaOptions" not in session._settings("spark://head:7077", [str(tmp_path / "disk")])


ENDING = """
from kdump.spark.session import reason, running

try:
    with running() as spark:
        print("of this process", flush=True)
        spark._jvm.System.out.println("of the JVM")
        frame = spark.sql("select raise_error('some cause')")
        try:
            frame.collect()
        except Exception as error:
            failed = error
        print(reason(failed))
        try:
            spark.sparkContext.parallelize([0]).map(lambda number: 1 // number).collect()
        except Exception as error:
            print(reason(error))
        spark.sparkContext._accumulatorServer.handle_error(None, ("host", 1))  # as if it were at work
        spark._jvm.Runtime.getRuntime().halt(3)
except Exception as error:
    print(reason(error))
print(reason(failed))
"""


@pytest.mark.every_disk  # it starts a session of its own
def test_what_a_session_prints_and_why_it_failed() -> None:
    """What the JVM writes is not in the output. If it ends, such as for lack of memory, one line states so."""
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert done.stderr == ""
    first, cause, of_task, *rest = done.stdout.splitlines()
    assert first == "of this process"
    assert "some cause" in cause
    assert of_task == "a task failed: ZeroDivisionError: integer division or modulo by zero"
    assert rest[0] == session.ENDED
    assert len(rest) == 2


def test_what_is_no_result_is_refused_before_anything_of_spark_is_imported(tmp_path: Path) -> None:
    code = """
import sys
from kdump.cli import cli
try:
    cli.main(["query", sys.argv[1], "select 1"])
except SystemExit as error:
    print(error.code, {"pyarrow", "pyspark", "kdump.spark.session"} & {*sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2 set()\n", f"kdump: {tmp_path}: not a result of kdump scan\n")
