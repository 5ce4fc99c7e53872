"""Summary of a fleet, from the tables of a scan and from the coordinators' logs on its disks."""

from __future__ import annotations

import hashlib
import heapq
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from kdump import jsonl
from kdump.answer import answer_from, answer_keys, answer_object
from kdump.check.finding import ERROR, INFO, SEVERITIES, WARNING, Finding
from kdump.check.options import Options
from kdump.check.rules.bytes import UNREADABLE_BYTES
from kdump.io.fault_tolerant import careful_source
from kdump.questions.diff.run import LITTLE
from kdump.spark.cluster_metadata import CLUSTERS, read_cluster
from kdump.spark.coordinator_logs import COORDINATORS, coordinator_logs, divided, read_coordinators
from kdump.spark.delta_tables import batches_of
from kdump.spark.derived_tables import VIEWS, derive_others, derive_partitions, fleet_sums
from kdump.spark.replica_differences import MAX_COPIES, not_compared, update_differences
from kdump.spark.result_views import kept_views, view_clusters, view_tables
from kdump.spark.scan import CHUNKS_PER_CORE, ScanResult
from kdump.spark.scan_answer import (
    DiskCopy,
    FleetSummary,
    ReplicaDifference,
    ScannedBroker,
    ScannedUnits,
    ScanQuery,
)
from kdump.spark.session import SMALL_BYTES
from kdump.spark.store import OWN, SUMMARY, Store
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_sums import UnitSums, merged_sums, sum_entries
from kdump.tables.declarations import COUNTS, FINDINGS, RESULTS, SCANS, UNITS
from kdump.tables.small_tables import finding_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMARIZED = f"{OWN}/summarized"
"""File that says which scan summary.json is about."""
FILES = 8
"""Number of files that one task sums, or reads findings of."""
COMPUTING = {"spark.sql.ansi.enabled": "false"}
"""Settings with which SQL computes as Java and Kafka do: with ANSI rules, one damaged number that overflows would end
the scan."""
SMALL_ROWS = 100_000
"""Rows of a result up to which, with SMALL_BYTES of segments, each query of the summary is computed in one task."""
IN_ONE_TASK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings with which Spark runs one job for each query of tables in one partition: nothing is sent to other tasks, and
nothing is compiled, which takes longer than a few rows."""


def summarize(
    start: Callable[[], SparkSession],
    tasks: TaskRunner,
    query: ScanQuery,
    store: Store,
    done: ScanResult,
    began: float,
) -> FleetSummary:
    """Return what summary.json has; `began` is the start by time.monotonic. Unless nothing has changed, calls
    `start`, creates views of the tables in that session, and writes the tables that are derived from others: their
    versions are added to `done`."""
    units = ScannedUnits(done.read, done.continued, done.kept, done.gone)
    seconds = round(time.monotonic() - began, 3)
    before = _before(store, done)
    if before is not None:
        return before._replace(paths=list(done.paths), out=store.root, units=units, seconds=seconds)
    spark = start()
    several = len(done.sources.sources) > 1
    sums = done.sums = read_for_summary(tasks, query, store, done)
    small = _is_small(done, sums)
    with _settings(spark, COMPUTING | (IN_ONE_TASK if small else {})):
        names = {"segments", "checkpoints", "transactions", "producers"}
        names |= {"batches"} if several else set()
        names |= {UNITS.name} | ({"records"} if query.has_records else set())
        view_tables(spark, store, done.versions, names, one_task=small)
        view_clusters(spark, store, one_task=small)
        differences = update_differences(
            spark, store, done, partial(_with_lost_records, tasks, query, done), several=several, one_task=small
        )
        left = not_compared(spark) if len(done.sources.sources) > MAX_COPIES else []
        derive_partitions(spark, store, done, one_task=small)
        with kept_views(spark, VIEWS, keep=small):
            derive_others(spark, store, done)
            lists = fleet_sums(spark, records=query.has_records)
        chosen = {*query.of_disks, *(["records"] if query.has_records else [])}
        values: dict[str, Any] = {
            "paths": list(done.paths),
            "out": store.root,
            "tables": [name for name, of in RESULTS.items() if (of.derived and of is not SCANS) or name in chosen],
            "brokers": _brokers(done),
            "copies": [
                DiskCopy(source.path, source.identity.copyOf)
                for source in done.sources.sources
                if source.identity.copyOf is not None
            ],
            **{name: sums.counts[name] for name in COUNTS},
            "findings": {severity: sums.severities()[severity] for severity in SEVERITIES},
            "codes": _codes(sums),
            "unread": [*(why for _, why in done.sources.unreadable), *left, *sums.unread],
            "notes": sums.notes,
            "notInBundle": dict(sums.withheld) or None,
            **differences,
            **sums.lists(),
            **lists,
            "units": units,
            "seconds": round(time.monotonic() - began, 3),
        }
    return FleetSummary(**values)


def _with_lost_records(
    tasks: TaskRunner, query: ScanQuery, done: ScanResult, differences: Iterator[ReplicaDifference]
) -> Iterator[ReplicaDifference]:
    from kdump.spark.missing_records import with_lost_records  # few scans find any

    check = Options(limits=query.run.limits, now=int(time.time() * 1000), only=LITTLE, open_source=careful_source)
    return with_lost_records(differences, {source.path: source for source in done.sources.sources}, tasks, check)


def _is_small(done: ScanResult, sums: UnitSums) -> bool:
    """Return True if one task computes the summary faster than Spark divides it: known before any of it is read."""
    rows = sum(file.rows for files in done.files.values() for file in files)
    return rows + sums.counts["files"] <= SMALL_ROWS and sums.counts["bytes"] <= SMALL_BYTES


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of the session for some time."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is not None:
                spark.conf.set(name, earlier)


def put_summary(store: Store, summary: FleetSummary, scan: str) -> None:
    """Write the summary of a scan, and which scan that was. Raises StoreError."""
    data = (jsonl.line(answer_object(summary)) + "\n").encode("utf-8", "backslashreplace")
    store.write(SUMMARY, data)
    store.write(SUMMARIZED, _summarized(scan, data))


def _summarized(scan: str, data: bytes) -> bytes:
    return f"{scan} {hashlib.sha256(data).hexdigest()}\n".encode()


def _before(store: Store, done: ScanResult) -> FleetSummary | None:
    """Return the summary of the scan before if it is still true."""
    data = store.read(SUMMARY)
    if data is None or done.has_changed or store.read(SUMMARIZED) != _summarized(done.result_run, data):
        return None
    try:
        summary = json.loads(data)
    except ValueError:
        return None
    required = {key.name for key in answer_keys(FleetSummary) if not key.optional}
    is_complete = isinstance(summary, dict) and {*summary} >= required
    return answer_from(FleetSummary, summary) if is_complete else None


def _codes(sums: UnitSums) -> dict[str, int]:
    """Return the number of findings by code."""
    counts = Counter[str]()
    for (code, _), count in sums.codes.items():
        counts[code] += count
    return dict(sorted(counts.items()))


def read_for_summary(tasks: TaskRunner, query: ScanQuery, store: Store, done: ScanResult) -> UnitSums:
    """Read the newest copy of the metadata of each cluster, and the logs of its coordinators; return what the entries
    of the units add up to."""
    paths = done.sources.clusters()
    files = [f"{done.run}-{number}.parquet" for number in range(len(paths))]
    work: list[Callable[[], list[str] | UnitSums | None]] = [
        partial(read_cluster, store, file, *owner, next((path for path in own if path in done.metadata), None))
        for file, (owner, own) in zip(files, sorted(paths.items(), key=str))
    ]
    for logs in divided(coordinator_logs(done.sources.sources), CHUNKS_PER_CORE * tasks.parallelism):
        work.append(partial(read_coordinators, store, logs, query.run.limits))
    results = tasks.run([*work, *_sum_tasks(store, done)])
    _keep(store, CLUSTERS.name, {*files})
    _keep(store, COORDINATORS.name, {name for result in results if isinstance(result, list) for name in result})
    return merged_sums(result for result in results if isinstance(result, UnitSums))


def _keep(store: Store, directory: str, names: set[str]) -> None:
    """Delete all other files in a directory of the result."""
    for name in store.list(directory):
        if name not in names:
            store.remove(f"{directory}/{name}")


def info_counts(tasks: TaskRunner, store: Store, done: ScanResult, summary: FleetSummary) -> Counter[str]:
    """Return the number of informational findings by code."""
    if not summary.findings[INFO]:
        return Counter()
    codes = (done.sums or merged_sums(tasks.run(_sum_tasks(store, done)))).codes
    return Counter({code: count for (code, severity), count in codes.items() if severity == INFO})


def _sum_tasks(store: Store, done: ScanResult) -> list[Callable[[], UnitSums]]:
    return [partial(sum_entries, store, names) for names in _divided(done.names(UNITS.name))]


def _divided(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the names of the files of each task."""
    for number in range(0, len(names), FILES):
        yield tuple(names[number : number + FILES])


def _brokers(done: ScanResult) -> list[ScannedBroker]:
    by: dict[tuple[str | None, str | None], list[str]] = {}
    for source in done.sources.sources:
        by.setdefault((source.identity.cluster, source.identity.broker), []).append(source.path)
    return [ScannedBroker(cluster, broker, sources) for (cluster, broker), sources in sorted(by.items(), key=str)]


def units_with_findings(
    tasks: TaskRunner, store: Store, done: ScanResult, summary: FleetSummary
) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the places with errors and warnings, and these, at most MAX_FINDINGS of them in total."""
    if not summary.findings[ERROR] + summary.findings[WARNING]:
        return
    rows = tasks.run([partial(severe_findings, store, names) for names in _divided(done.names(FINDINGS.name))])
    by_place: dict[str, list[Finding]] = {}
    for row in worst(chain.from_iterable(rows)):
        by_place.setdefault(row["file"].rpartition("/")[0], []).append(finding_of(row))
    for place, own in sorted(by_place.items()):
        yield place, sorted(own, key=lambda finding: (finding.file, finding.position))


Row = dict[str, Any]
MAX_FINDINGS = 2000
"""Maximum number of findings to print."""
COLUMNS = [key.name for key in answer_keys(Finding)]


def severe_findings(store: Store, names: Iterable[str]) -> list[Row]:
    """Return the worst errors and warnings in some files, without what could not be read, which is no finding of
    kdump verify. Raises StoreError."""
    return worst(chain.from_iterable(_severe(store, name) for name in names))


def worst(rows: Iterable[Row]) -> list[Row]:
    """Return the first MAX_FINDINGS rows: errors before warnings."""
    return heapq.nsmallest(MAX_FINDINGS, rows, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return SEVERITIES.index(row["severity"]), row["source"] or "", row["file"], row["position"]


def _severe(store: Store, name: str) -> Iterator[Row]:
    for batch in batches_of(store, FINDINGS.name, name, COLUMNS):
        unread = pc.and_(pc.equal(batch["code"], UNREADABLE_BYTES.code), pc.equal(batch["size"], 0))
        chosen = pc.and_(pc.not_equal(batch["severity"], INFO), pc.invert(pc.fill_null(unread, False)))
        yield from batch.filter(chosen).select(COLUMNS).to_pylist()
