"""Runs the tasks of a scan on Spark: as an RDD, or with Spark Connect, which has none, as a data source with a
partition for each task. (DataFrame.mapInArrow, which both have, needs pandas; the data source starts more Python
processes.) Tasks read as the process that started them does (kdump.io.low_impact_reads, kdump.idle)."""

from __future__ import annotations

import base64
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from pyspark.sql import is_remote
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kdump.idle import be_idle, is_idle
from kdump.io.aiven import key_files, use_keys
from kdump.io.file_system import AddedFiles, add_files, added_files
from kdump.io.low_impact_reads import limit_rate, max_rate
from kdump.io.token_bucket import TokenBucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ResultT = TypeVar("ResultT")
NAME = "kdump_tasks"
POLL = 0.2
"""Seconds between two reports of progress."""


class TaskReading(NamedTuple):
    """How a task reads. `per_second`: bytes, None without a limit. Spark starts the processes of tasks, perhaps on
    other machines, so that they cannot share one limit: each gets an equal part. `added`: what remote storage adds to
    directories; `keys`: files that decrypt it."""

    per_second: int | None
    idle: bool
    added: tuple[dict[str, AddedFiles], str]
    keys: tuple[str, ...]

    def apply(self) -> None:
        """Make this process read like this."""
        add_files(*self.added)
        use_keys(self.keys)
        if self.idle and not is_idle():
            be_idle()
        if self.per_second != max_rate():  # a process runs several tasks, one after the other
            limit_rate(TokenBucket(self.per_second) if self.per_second else None)


def task_reading(parallelism: int) -> TaskReading:
    """Return how each of `parallelism` tasks reads, so that together they read as this process does."""
    rate = max_rate()
    return TaskReading(max(1, rate // max(1, parallelism)) if rate else None, is_idle(), added_files(), key_files())


def run_task(reading: TaskReading, task: Callable[[], ResultT]) -> ResultT:
    """Run a task in the process that Spark has started for it."""
    reading.apply()
    try:
        return task()
    finally:
        add_files({})  # the process may read something else next


class TaskRunner(Protocol):
    """Runs tasks, somewhere, and returns their results in any order."""

    parallelism: int

    def run(
        self, tasks: Sequence[Callable[[], ResultT]], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]: ...


class LocalTasks:
    """Runs tasks in this process: for little data, that takes less time than it takes Spark to start."""

    parallelism = 1

    def run(
        self, tasks: Sequence[Callable[[], ResultT]], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]:
        """Run the tasks, one after the other. Calls `on_wait` after each."""
        results = []
        for task in tasks:
            results.append(task())
            on_wait()
        return results


class LateTasks:
    """Runs tasks in this process, one after the other, until that has taken PATIENCE, or one has a result that shows
    that Spark `is_needed`; from then on in Spark, which `start` starts. A scan that finds nothing changed ends before
    that."""

    PATIENCE = 3.0
    """Seconds: about what it takes Spark to start."""

    def __init__(self, start: Callable[[], TaskRunner], is_needed: Callable[[object], bool]) -> None:
        self.start, self.is_needed = start, is_needed
        self.tasks: TaskRunner | None = None
        self.seconds = 0.0
        self.parallelism = 1 if is_idle() else os.cpu_count() or 1

    def run(
        self, tasks: Sequence[Callable[[], ResultT]], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]:
        """Run the tasks. Calls `on_wait` after each, in Spark again and again. Raises what Spark raises."""
        results: list[ResultT] = []
        while self.tasks is None and len(results) < len(tasks):
            began = time.monotonic()
            results += LocalTasks().run(tasks[len(results) : len(results) + 1], on_wait)
            self.seconds += time.monotonic() - began
            if self.seconds > self.PATIENCE or self.is_needed(results[-1]):
                self.tasks = self.start()
        return results if self.tasks is None else results + self.tasks.run(tasks[len(results) :], on_wait)


class SparkTasks:
    """Runs tasks in a Spark session: functions of modules with their arguments (partial). These have to be picklable,
    and so have the results."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.context: Any = getattr(spark, "sparkContext", None) if not is_remote() else None
        if self.context is None:
            spark.dataSource.register(TaskSource)
        self.parallelism = _parallelism(spark) if self.context is None else self.context.defaultParallelism

    def run(
        self, tasks: Sequence[Callable[[], ResultT]], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]:
        """Run the tasks. Calls `on_wait` in this thread again and again until they are done. Raises what Spark
        raises."""
        if not tasks:
            return []
        results: list[ResultT] = []
        failed: list[BaseException] = []

        def collect() -> None:
            try:
                results.extend(self._run(tasks))
            except BaseException as error:
                failed.append(error)

        thread = _thread(self.spark, collect)
        try:
            while thread.is_alive():
                thread.join(POLL)
                on_wait()
        except KeyboardInterrupt:
            self.spark.interruptAll()
            thread.join()
            raise
        if failed:
            raise failed[0]
        return results

    def _run(self, tasks: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
        work = partial(run_task, task_reading(self.parallelism))
        if self.context is not None:
            results: list[ResultT] = self.context.parallelize(tasks, len(tasks)).map(work).collect()
            return results
        reader = self.spark.read.format(NAME).option("tasks", _packed([_packed(partial(work, task)) for task in tasks]))
        return [pickle.loads(row[0]) for row in reader.load().collect()]


class TaskSource(DataSource):
    """A source with a partition for each task, and a row for each result."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "result binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TaskReader(_unpacked(self.options["tasks"]))


class TaskReader(DataSourceReader):
    """Runs each of the tasks."""

    def __init__(self, tasks: list[str]) -> None:
        self.tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        partitions = [InputPartition(task) for task in self.tasks]
        self.tasks = []  # the reader is sent along with each partition
        return partitions

    def read(self, partition: InputPartition) -> Iterator[tuple[bytes]]:
        yield (pickle.dumps(_unpacked(partition.value)()),)


def _packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def _unpacked(packed: str) -> Any:
    return pickle.loads(base64.b64decode(packed))


def _parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that the session runs at the same time, as far as it knows."""
    from pyspark.sql.functions import spark_partition_id

    return spark.range(1 << 16).select(spark_partition_id().alias("part")).distinct().count()


def _thread(spark: SparkSession, work: Callable[[], None]) -> threading.Thread:
    """Start a thread that runs Spark's jobs."""
    from pyspark import InheritableThread

    thread: threading.Thread = InheritableThread(target=work, session=spark)
    thread.start()
    return thread
