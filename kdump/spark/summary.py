"""Summary of a fleet, from the tables of a scan and from the coordinators' logs on its disks."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kdump.answer import Object, answer_keys, answer_object
from kdump.check.finding import INFO, SEVERITIES, Finding
from kdump.forensics.scan_answer import (
    DiskCopy,
    FleetSummary,
    ScannedBroker,
    ScannedUnits,
)
from kdump.spark.cluster_metadata import CLUSTERS, ClusterTask, read_cluster
from kdump.spark.coordinator_logs import COORDINATORS, CoordinatorTask, coordinator_logs, divided, read_coordinators
from kdump.spark.derived_tables import derive_tables
from kdump.spark.difference_table import update_differences
from kdump.spark.fleet_sums import difference_sums, fleet_sums
from kdump.spark.packs import COUNTS, LIST
from kdump.spark.replica_differences import MAX_COPIES, not_compared
from kdump.spark.result import open_result, view_clusters, view_entries
from kdump.spark.scan import CHUNKS_PER_CORE, ScanOptions, ScanResult
from kdump.spark.store import OWN, SUMMARY, Store
from kdump.spark.tables import RESULTS
from kdump.spark.task_read_limits import task_read_limits
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_sums import SumTask, UnitSums, merged_sums, sum_packs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_FINDINGS = 2000
"""Maximum number of findings to print, and of remarks on what could not be read."""
SUMMARIZED = f"{OWN}/summarized"
"""File with a digest of the packs that summary.json is about."""
PACKS = 500
"""Number of packs whose entries one task sums."""
ANSI = "spark.sql.ansi.enabled"
UNREAD = "code = 'unreadable-bytes' and size = 0"
"""Rows of the table findings for what could not be read: not a finding of kdump verify."""


def summarize(
    spark: SparkSession, tasks: TaskRunner, options: ScanOptions, store: Store, done: ScanResult, began: float
) -> Object:
    """Return the object of summary.json; `began` is the start by time.monotonic. Creates views of the tables in the
    session, and writes the table replica_differences."""
    units = ScannedUnits(done.read, done.continued, done.kept, done.gone)
    seconds = round(time.monotonic() - began, 3)
    before = _before(store)
    if before is not None:
        new = {"paths": list(options.paths), "out": store.root, "units": units._asdict(), "seconds": seconds}
        return {**before, **new}
    with _wrapping(spark):
        open_result(spark, store)
        update_differences(spark, store, done.run, _last_run(store), several=len(done.sources.sources) > 1)
        sums = _sums(tasks, store, done)
        left = not_compared(spark) if len(done.sources.sources) > MAX_COPIES else []
        _read_clusters(tasks, options, store, done)
        view_entries(spark, store)
        view_clusters(spark, store)
        derive_tables(spark, store)
        chosen = {*options.tables, *(["records"] if options.records else [])}
        values: dict[str, Any] = {
            "paths": list(options.paths),
            "out": store.root,
            "tables": [name for name, table in RESULTS.items() if table.derived or name in chosen],
            "brokers": _brokers(done),
            "copies": [
                DiskCopy(each.path, each.identity.copyOf)
                for each in done.sources.sources
                if each.identity.copyOf is not None
            ],
            **{name: sums.counts[name] for name in COUNTS},
            "findings": {severity: sums.severities()[severity] for severity in SEVERITIES},
            "codes": _codes(sums),
            "unread": [*(text for _, text in done.sources.unreadable), *left, *sums.unread],
            "notes": sums.notes,
            "notInBundle": dict(sums.not_in_bundle) or None,
            **difference_sums(spark),
            **sums.lists(),
            **fleet_sums(spark, records=options.records),
            "units": units,
            "seconds": round(time.monotonic() - began, 3),
        }
    return answer_object(FleetSummary(**values))


@contextmanager
def _wrapping(spark: SparkSession) -> Iterator[None]:
    """Let SQL compute as Java and Kafka do: with ANSI rules, one damaged number that overflows would end the scan."""
    before = spark.conf.get(ANSI)
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        if before is not None:
            spark.conf.set(ANSI, before)


def put_summary(store: Store, text: bytes, run: str) -> None:
    """Write the summary of a scan, and which packs it is the summary of. Raises StoreError."""
    store.write(SUMMARY, text)
    store.write(SUMMARIZED, json.dumps({"digest": _digest(store, text), "run": run}).encode())


def _digest(store: Store, text: bytes) -> str:
    return hashlib.sha256(hashlib.sha256(store.read(LIST) or b"").digest() + text).hexdigest()


def _summarized(store: Store) -> dict[str, Any]:
    """Return what put_summary has written for the last scan; nothing if that is missing or invalid."""
    try:
        found = json.loads(store.read(SUMMARIZED) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _last_run(store: Store) -> str | None:
    """Return the last scan that has brought the table replica_differences up to date."""
    run = _summarized(store).get("run")
    return run if isinstance(run, str) and run.isalnum() else None


def _before(store: Store) -> Object | None:
    """Return the summary of an earlier scan if it is still true: the packs are the same."""
    data = store.read(SUMMARY)
    if data is None or _summarized(store).get("digest") != _digest(store, data):
        return None
    try:
        found = json.loads(data)
    except ValueError:
        return None
    required = {key.name for key in answer_keys(FleetSummary) if not key.optional}
    is_complete = isinstance(found, dict) and {*found} >= required
    return found if is_complete else None


def _codes(sums: UnitSums) -> dict[str, int]:
    """Return the number of findings by code."""
    found = Counter[str]()
    for (code, _), count in sums.codes.items():
        found[code] += count
    return dict(sorted(found.items()))


def _read_clusters(tasks: TaskRunner, options: ScanOptions, store: Store, done: ScanResult) -> None:
    """Read the newest copy of the metadata of each cluster, and the logs of its coordinators."""
    paths = done.sources.clusters()
    limits = task_read_limits(tasks.parallelism)
    stems = [f"{done.run}-{number}" for number in range(len(paths))]
    clusters = [
        ClusterTask(store, stem, cluster, source, next((path for path in own if path in done.metadata), None), limits)
        for stem, ((cluster, source), own) in zip(stems, sorted(paths.items(), key=str))
    ]
    tasks.run(read_cluster, clusters)
    logs = divided(coordinator_logs(done.sources.sources), CHUNKS_PER_CORE * tasks.parallelism)
    read = tasks.run(read_coordinators, [CoordinatorTask(store, each, options.limits, limits) for each in logs])
    _keep(store, CLUSTERS, {f"{stem}.parquet" for stem in stems})
    _keep(store, COORDINATORS, {name for names in read for name in names})


def _keep(store: Store, directory: str, names: set[str]) -> None:
    """Delete all other files in a directory of the result."""
    for name in store.list(directory):
        if name not in names:
            store.remove(f"{directory}/{name}")


def info_counts(tasks: TaskRunner, store: Store, done: ScanResult) -> Counter[str]:
    """Return the number of informational findings by code."""
    codes = _sums(tasks, store, done).codes
    return Counter({code: count for (code, severity), count in codes.items() if severity == INFO})


def _sums(tasks: TaskRunner, store: Store, done: ScanResult) -> UnitSums:
    packs = [done.packs[number : number + PACKS] for number in range(0, len(done.packs), PACKS)]
    return merged_sums(tasks.run(sum_packs, [SumTask(store, tuple(each)) for each in packs]))


def _brokers(done: ScanResult) -> list[ScannedBroker]:
    by: dict[tuple[str | None, str | None], list[str]] = {}
    for each in done.sources.sources:
        by.setdefault((each.identity.cluster, each.identity.broker), []).append(each.path)
    return [ScannedBroker(cluster, broker, sources) for (cluster, broker), sources in sorted(by.items(), key=str)]


def units_with_findings(spark: SparkSession, store: Store) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the places with errors and warnings, and these, at most MAX_FINDINGS of them in total."""
    open_result(spark, store)
    names = [key.name for key in answer_keys(Finding)]
    columns = ", ".join(f"`{name}`" for name in names)
    found = spark.sql(
        f"select {columns} from findings where severity <> 'info' and not ({UNREAD})"
        f" order by case severity when 'error' then 0 else 1 end, source, file, position limit {MAX_FINDINGS}"
    ).collect()
    by_place: dict[str, list[Finding]] = {}
    for row in found:
        by_place.setdefault(row["file"].rpartition("/")[0], []).append(Finding(**row.asDict()))
    for place, own in sorted(by_place.items()):
        yield place, sorted(own, key=lambda finding: (finding.file, finding.position))
