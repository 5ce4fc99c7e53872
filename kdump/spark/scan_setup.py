"""What all tasks of a scan need to know."""

from __future__ import annotations

from dataclasses import dataclass

from kdump.check.options import Options
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.store import Store
from kdump.spark.task_read_limits import TaskReadLimits


@dataclass(frozen=True)
class ScanSetup:
    """The result, how to check and to read, and what to write. `run`: the name of the scan; `limits`: how each task
    reads."""

    store: Store
    check: Options
    reading: ReadOptions
    tables: tuple[str, ...]
    records: bool
    run: str
    from_scratch: bool
    compact: bool
    limits: TaskReadLimits
