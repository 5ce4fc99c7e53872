"""Spark session for the command line: embedded, quiet, with the current Python interpreter."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from kdump.extras import how_to_install
from kdump.idle import is_idle
from kdump.io.directory_listing import is_url
from kdump.spark import PUSHDOWN, register
from kdump.tables.fleet import expanded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
LOCAL_IDLE = "local[1]"
CONNECT = "sc://"
SQL_SETTINGS = {
    PUSHDOWN: "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}
LOG = "KDUMP_SPARK_LOG"
"""Environment variable with the file for Spark's log output, which is not shown anywhere."""
MEMORY = "1g"
"""Memory of the driver, which does all the work in embedded mode: rows are streamed, and none are kept."""


QUICK = "-XX:TieredStopAtLevel=1"
"""Option of a JVM that reads little: it ends before its second compiler would save the time that compiling takes."""
SMALL_BYTES = 64 * 1024 * 1024
SMALL = (SMALL_BYTES, 1000)
"""Bytes and files that are little."""
SMALL_DISKS = (4 * SMALL_BYTES, 10_000)
"""The same of disks that a scan reads: the JVM gets only the rows of their tables."""


ENDED = (
    "Spark's JVM has ended, probably because it ran out of memory: give it more with SPARK_DRIVER_MEMORY=4g, and keep"
    f" its log with {LOG}=FILE"
)


_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)(: |$)")
"""The last line of a traceback."""


class NoSpark(Exception):
    """Raised if Spark cannot be started; the message states what is missing and how to get it."""


def java() -> str | None:
    """Return the path of the Java that Spark would run on; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = os.path.join(home, "bin", "java")
        return inside if os.access(inside, os.X_OK) else None
    return shutil.which("java")


def require() -> None:
    """Raise NoSpark if the packages that kdump.spark imports are missing."""
    try:
        import deltalake  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise NoSpark(f"this command needs Spark ({error}): {how_to_install('spark')}") from None


def require_java() -> None:
    """Raise NoSpark if there is no Java that Spark would run on."""
    if java() is None:
        home = os.environ.get("JAVA_HOME")
        problem = f"JAVA_HOME ({home}) contains no bin/java" if home else "there is no java on the PATH"
        raise NoSpark(f"Spark needs Java 17 or later, but {problem}; install it, or set JAVA_HOME")


def session(
    master: str | None = None,
    conf: dict[str, str] | None = None,
    reads: Iterable[str] = (),
    little: tuple[int, int] = SMALL,
) -> SparkSession:
    """Return a session on `master` (None: as set by spark-submit, else local[*]), with the data source registered. A
    master that begins with sc:// is a Spark Connect server. `reads`: what it will read, if that is known, and how
    many bytes and files of it are `little`. Raises NoSpark."""
    require()
    from pyspark.sql import SparkSession

    if master is not None and master.startswith(CONNECT):
        return _connected(master, conf or {})
    require_java()
    # PySpark logs a failed query with the same text that it raises.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_worth_logging)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("kdump")
    for name, value in (_settings(master, reads, little) | (conf or {})).items():
        builder = builder.config(name, value)
    with _quiet() as log:
        try:
            spark: SparkSession = builder.getOrCreate()
            spark.sparkContext.setLogLevel("ERROR")
            _silence(spark.sparkContext)
            register(spark)
        except Exception as error:
            raise NoSpark(f"Spark failed to start: {_reason(error, log)}") from None
    return spark


def _connected(url: str, conf: dict[str, str]) -> SparkSession:
    """Return a session with a Spark Connect server. Raises NoSpark."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    with _quiet():
        try:
            spark: SparkSession = SparkSession.builder.remote(url).getOrCreate()
            for name, value in (SQL_SETTINGS | conf).items():
                spark.conf.set(name, value)
            register(spark)
        except ImportError as error:
            raise NoSpark(f"Spark Connect needs more packages ({error}): pip install 'pyspark[connect]'") from None
        except (PySparkException, RuntimeError) as error:
            raise NoSpark(f"{url}: {reason(error) or error}") from None
        except Exception as error:  # grpc's
            raise NoSpark(f"{url}: {type(error).__name__}") from None
    return spark


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return False for the traceback that py4j logs if the JVM ends before it answers: `reason` states why."""
    return not str(record.msg).startswith("Exception while sending command")


@contextmanager
def running(
    master: str | None = None,
    conf: dict[str, str] | None = None,
    reads: Iterable[str] = (),
    little: tuple[int, int] = SMALL,
) -> Iterator[SparkSession]:
    """Provide a session for the duration of a command that reads these paths; a session that already exists stays open.
    Raises NoSpark.

    PySpark's SIGINT handler is removed together with the session: it cancels jobs, which fails without a session."""
    before = _active()
    handler = signal.getsignal(signal.SIGINT)
    try:
        spark = session(master, conf, reads, little)
        try:
            yield spark
        finally:
            if before is None:
                _stop(spark)
    finally:
        is_main = threading.current_thread() is threading.main_thread()
        if before is None and handler is not None and is_main:  # None: not installed by Python
            signal.signal(signal.SIGINT, handler)


def _silence(context: Any) -> None:
    """Let PySpark's thread that receives accumulators print no traceback if the JVM ends."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


def _stop(spark: SparkSession) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, ConnectionError):  # if the JVM has ended already
        spark.stop()


def _active() -> object:
    """Return the existing session, if any."""
    sql = sys.modules.get("pyspark.sql")
    return sql.SparkSession.getActiveSession() if sql is not None else None


@contextmanager
def _quiet() -> Iterator[BinaryIO]:
    """Redirect stdout and stderr to a file while the JVM starts: it and its workers keep writing there for as long as
    they run. Errors that matter are raised as exceptions."""
    kept_log = os.environ.get(LOG)
    # The JVM keeps this file open.
    log: BinaryIO = open(kept_log, "w+b") if kept_log else tempfile.TemporaryFile(prefix="kdump-spark-")  # noqa: SIM115
    streams = ((1, sys.stdout), (2, sys.stderr))
    kept = [os.dup(number) for number, _ in streams]
    for number, stream in streams:
        stream.flush()
        os.dup2(log.fileno(), number)
    try:
        yield log
    finally:
        for (number, stream), before in zip(streams, kept):
            stream.flush()
            os.dup2(before, number)
            os.close(before)


def reason(error: Exception) -> str | None:
    """Return one line that states why Spark failed; None if the error is not Spark's, but a bug."""
    if isinstance(error, ConnectionRefusedError) or type(error).__name__ == "Py4JNetworkError":
        return ENDED
    kind = type(error).__module__
    if not kind.startswith(("pyspark.", "py4j.")):
        return None
    try:
        message = str(error)
        java = getattr(error, "java_exception", None)
        if java is not None:
            message = str(java.toString())
    except Exception:  # py4j asks the JVM
        return ENDED
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if "StoreError:" in line]
    if errors:
        return errors[-1].partition("StoreError:")[2].strip()
    raised = [line for line in lines if _RAISED.match(line)]
    if raised and "Python worker" in message:
        return f"a task failed: {raised[-1]}"
    return lines[0] if lines else type(error).__name__


def _reason(error: Exception, log: BinaryIO) -> str:
    """Return the line of Java's log that states the reason, or else Python's message."""
    log.seek(0)
    lines = log.read(1 << 20).decode("utf-8", "replace").splitlines()
    causes = [line.strip() for line in lines if "Exception" in line or "Error" in line]
    return causes[-1] if causes else (str(error).strip().splitlines() or [type(error).__name__])[0]


def _settings(master: str | None, reads: Iterable[str] = (), little: tuple[int, int] = SMALL) -> dict[str, str]:
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # configured by spark-submit
    settings = {**SQL_SETTINGS, "spark.ui.showConsoleProgress": "false"}
    if master is not None or not submitted:
        settings["spark.master"] = master or (LOCAL_IDLE if is_idle() else LOCAL)
    if not submitted:
        settings |= {"spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", MEMORY), "spark.ui.enabled": "false"}
        if settings["spark.master"].startswith("local"):
            settings["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
            if os.environ.get("PYSPARK_PYTHON") == sys.executable:
                settings["spark.python.daemon.module"] = "kdump.spark.worker_daemon"
            if are_small([*reads], little):
                settings["spark.driver.extraJavaOptions"] = QUICK
    return settings


def is_embedded(master: str | None, conf: dict[str, str]) -> bool:
    """Return True if Spark would run in this process's JVM alone, as kdump sets it up."""
    return master is None and not conf and "PYSPARK_GATEWAY_PORT" not in os.environ


def are_small(paths: list[str], little: tuple[int, int] = SMALL) -> bool:
    """Return True if there are at most this many bytes and files at and below the paths; False if that takes longer to
    find out, as at URLs."""
    if not paths or any(map(is_url, paths)):
        return False
    files = size = 0
    for path in (match for given in paths for match in expanded(given)):
        for place in chain([path], (os.path.join(above, name) for above, _, names in os.walk(path) for name in names)):
            with suppress(OSError):
                size += os.lstat(place).st_size
            files += 1
            if size > little[0] or files > little[1]:
                return False
    return True
