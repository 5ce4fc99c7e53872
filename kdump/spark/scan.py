"""The scan pipeline: reads a fleet once, unit by unit, into Parquet files. kdump.spark.summary then derives from those
tables what no single file shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kdump.check.options import Options
from kdump.log.fault_tolerant import careful_source
from kdump.log.region import Limits
from kdump.spark.data_source_options import SPLIT, ReadOptions
from kdump.spark.fleet import find
from kdump.spark.read_task import OPENING
from kdump.spark.result import require_readable
from kdump.spark.resume_point import STATES, state_of
from kdump.spark.scan_plan import RecordJob, jobs_of, record_jobs, resumed_job
from kdump.spark.scan_result import ScanResult
from kdump.spark.scan_task import UnitJob, run_job
from kdump.spark.store import Store
from kdump.spark.tables import RECORDS
from kdump.spark.task_read_limits import task_read_limits

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import SparkSession

ALL = ("segments", "batches", "findings", "index_entries", "producer_states", "checkpoints")
"""Tables that a scan writes by default; records have to be requested."""
POLL = 0.2

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class ScanOptions:
    """What a scan reads and writes. Sizes in bytes, times in ms."""

    paths: tuple[str, ...]
    tables: tuple[str, ...] = ALL
    records: bool = False
    broker: str | None = None
    brokers: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    transaction_timeout: int = 900_000
    max_message_bytes: int | None = None
    split_bytes: int = SPLIT
    from_scratch: bool = False
    """Read everything again, regardless of earlier scans."""


def scan(
    spark: SparkSession, options: ScanOptions, store: Store, on_progress: OnProgress = lambda done, total: None
) -> ScanResult:
    """Read what has changed, and write its rows. `on_progress` is called with the bytes read so far and the total.
    Raises StoreError, or what Spark raises."""
    check = Options(
        limits=options.limits,
        transaction_timeout=options.transaction_timeout,
        max_message_bytes=options.max_message_bytes,
        now=int(time.time() * 1000),
        open_source=careful_source,
    )
    require_readable(spark, store)
    fleet = find(options.paths, check, options.broker, options.brokers)
    store.begin([found.place.path for found in fleet.found])
    known = dict(store.units())
    jobs = jobs_of(fleet, check, options.tables)
    reading = ReadOptions(RECORDS, options.paths, limits=options.limits, split_bytes=options.split_bytes)
    slices = list(record_jobs(fleet, reading, check)) if options.records else []
    done = ScanResult(fleet, check, jobs, [])
    current = {job.key for job in jobs} | {job.key for job in slices}
    for key in known.keys() - current:
        entry = known.pop(key)
        store.forget(key, entry)
        done.gone += "totals" in entry
    store.sweep(STATES, {name for entry in known.values() for name in state_of(entry)})
    as_it_was = {} if options.from_scratch else known
    left = [job for job in jobs if not _is_known(job.key, job.fingerprint, as_it_was)]
    todo = [resumed_job(job, as_it_was.get(job.key), check) for job in left]
    todo_records = [job for job in slices if not _is_known(job.key, job.fingerprint, as_it_was)]
    total = sum(job.size for job in todo) + sum(job.size for job in todo_records)
    context = spark.sparkContext
    fresh = _run(context, todo, _unit_task(store), options, on_progress, 0, total)
    before = sum(job.size for job in todo)
    if todo_records:
        _run(context, todo_records, _records_task(store, reading, check), options, on_progress, before, total)
    again = {job.key for job in todo}
    entries = [known[job.key] for job in jobs if job.key not in again] + fresh
    done.entries = sorted(entries, key=lambda entry: entry["unit"])  # regardless of which finished first
    done.read, done.kept = len(fresh), len(jobs) - len(fresh)
    done.continued = sum(entry["first"] > 0 for entry in fresh)
    return done


def _is_known(key: str, fingerprint: str, known: dict[str, dict[str, Any]]) -> bool:
    return bool(fingerprint) and known.get(key, {}).get("fingerprint") == fingerprint


def _unit_task(store: Store) -> Callable[[UnitJob], dict[str, Any]]:
    return lambda job: run_job(job, store)


def _records_task(store: Store, reading: ReadOptions, check: Options) -> Callable[[RecordJob], dict[str, Any]]:
    def task(job: RecordJob) -> dict[str, Any]:
        from kdump.spark.scan_records import write_records

        return write_records(job, store, reading, check)

    return task


def _run(
    context: SparkContext,
    jobs: list[Any],
    task: Callable[[Any], dict[str, Any]],
    options: ScanOptions,
    on_progress: OnProgress,
    before: int,
    total: int,
) -> list[dict[str, Any]]:
    """Run every job in a task, the largest first, and return their entries. Reports progress to `on_progress`
    meanwhile."""
    if not jobs:
        return []
    groups = list(_grouped(jobs, options.split_bytes, context.defaultParallelism))
    done: Accumulator[int] = context.accumulator(0)
    read_limits = task_read_limits(context.defaultParallelism)

    def run_group(group: list[Any]) -> list[dict[str, Any]]:
        read_limits.apply()
        found = []
        for job in group:
            found.append(task(job))
            done.add(job.size)
        return found

    rows: list[dict[str, Any]] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for part in context.parallelize(groups, len(groups)).map(run_group).collect():
                rows.extend(part)
        except BaseException as error:
            failed.append(error)

    thread = _thread(work)
    try:
        while thread.is_alive():
            thread.join(POLL)
            on_progress(before + done.value, total)
    except KeyboardInterrupt:
        context.cancelAllJobs()
        thread.join()
        raise
    if failed:
        raise failed[0]
    return rows


def _thread(work: Callable[[], None]) -> threading.Thread:
    from pyspark import InheritableThread

    thread: threading.Thread = InheritableThread(target=work)
    thread.start()
    return thread


def _grouped(jobs: Iterable[Any], max_bytes: int, parallelism: int) -> Iterator[list[Any]]:
    """Group jobs into tasks: the largest first and by themselves, small ones together."""
    ordered = sorted(jobs, key=lambda job: -job.size)
    share = sum(max(job.size, OPENING) for job in ordered) // (4 * parallelism) + 1
    limit = max(1, min(max_bytes, share))
    group: list[Any] = []
    size = 0
    for job in ordered:
        counts = max(job.size, OPENING)
        if group and size + counts > limit:
            yield group
            group, size = [], 0
        group.append(job)
        size += counts
    if group:
        yield group
