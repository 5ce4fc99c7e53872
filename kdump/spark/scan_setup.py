"""What all tasks of a scan need to know, among it how they read: as the process that started them
(kdump.io.low_impact_reads, kdump.idle)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kdump.check.options import Options
from kdump.idle import be_idle, is_idle
from kdump.io.low_impact_reads import limit_rate, max_rate
from kdump.io.token_bucket import TokenBucket
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.store import Store


class TaskReadLimits(NamedTuple):
    """How a task reads. `per_second`: bytes, None without a limit. Spark starts the processes of tasks, perhaps on
    other machines, so that they cannot share one limit: each gets an equal part."""

    per_second: int | None
    idle: bool

    def apply(self) -> None:
        """Make this process read like this. Call it first in each task."""
        if self.idle and not is_idle():
            be_idle()
        if self.per_second != max_rate():  # a process runs several tasks, one after the other
            limit_rate(TokenBucket(self.per_second) if self.per_second else None)


def task_read_limits(parallelism: int) -> TaskReadLimits:
    """Return how each of `parallelism` tasks reads, so that together they read as this process does."""
    rate = max_rate()
    return TaskReadLimits(max(1, rate // max(1, parallelism)) if rate else None, is_idle())


@dataclass(frozen=True)
class ScanSetup:
    """The result, how to check and to read, and what to write. `run`: the name of the scan; `since`: that of the last
    one that was finished; `limits`: how each task reads."""

    store: Store
    check: Options
    reading: ReadOptions
    tables: tuple[str, ...]
    records: bool
    run: str
    since: str
    limits: TaskReadLimits
