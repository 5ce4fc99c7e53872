"""Runs the tasks of a scan on Spark: as an RDD, or with Spark Connect, which has none, as a data source with a
partition for each task. (DataFrame.mapInArrow, which both have, needs pandas; the data source starts more Python
processes.)"""

from __future__ import annotations

import base64
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyspark.sql import is_remote
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

InputT = TypeVar("InputT")
ResultT = TypeVar("ResultT")
NAME = "kdump_tasks"
POLL = 0.2
"""Seconds between two reports of progress."""


class TaskRunner(Protocol):
    """Runs a function once for each input, somewhere, and returns the results in any order."""

    parallelism: int

    def run(
        self, work: Callable[[InputT], ResultT], inputs: Sequence[InputT], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]: ...


class LocalTasks:
    """Runs tasks in this process: for little data, that takes less time than it takes Spark to start."""

    parallelism = 1

    def run(
        self, work: Callable[[InputT], ResultT], inputs: Sequence[InputT], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]:
        """Run the tasks, one after the other. Calls `on_wait` after each."""
        results = []
        for each in inputs:
            results.append(work(each))
            on_wait()
        return results


class SparkTasks:
    """Runs tasks in a Spark session. `work` has to be a function of a module, and the inputs and results picklable."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.context: Any = getattr(spark, "sparkContext", None) if not is_remote() else None
        if self.context is None:
            spark.dataSource.register(TaskSource)
        self.parallelism = _parallelism(spark) if self.context is None else self.context.defaultParallelism

    def run(
        self, work: Callable[[InputT], ResultT], inputs: Sequence[InputT], on_wait: Callable[[], object] = lambda: None
    ) -> list[ResultT]:
        """Run the tasks. Calls `on_wait` in this thread again and again until they are done. Raises what Spark
        raises."""
        if not inputs:
            return []
        results: list[ResultT] = []
        failed: list[BaseException] = []

        def collect() -> None:
            try:
                results.extend(self._run(work, inputs))
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

    def _run(self, work: Callable[[InputT], ResultT], inputs: Sequence[InputT]) -> list[ResultT]:
        if self.context is not None:
            found: list[ResultT] = self.context.parallelize(inputs, len(inputs)).map(work).collect()
            return found
        reader = self.spark.read.format(NAME).option("work", _packed(work))
        frame = reader.option("inputs", _packed([_packed(each) for each in inputs])).load()
        return [pickle.loads(row[0]) for row in frame.collect()]


class TaskSource(DataSource):
    """A source with a partition for each task, and a row for each result."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "result binary"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TaskReader(_unpacked(self.options["work"]), _unpacked(self.options["inputs"]))


class TaskReader(DataSourceReader):
    """Runs `work` for each of the inputs."""

    def __init__(self, work: Callable[[Any], Any], inputs: list[str]) -> None:
        self.work = work
        self.inputs: list[str] = inputs

    def partitions(self) -> Sequence[InputPartition]:
        found = [InputPartition(each) for each in self.inputs]
        self.inputs = []  # the reader is sent along with each partition
        return found

    def read(self, partition: InputPartition) -> Iterator[tuple[bytes]]:
        yield (pickle.dumps(self.work(_unpacked(partition.value))),)


def _packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def _unpacked(text: str) -> Any:
    return pickle.loads(base64.b64decode(text))


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
