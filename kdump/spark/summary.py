"""Summary of a fleet, from the tables of a scan and from the coordinators' logs on its disks."""

from __future__ import annotations

import hashlib
import heapq
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from kdump.answer import Object, answer_keys, answer_object
from kdump.check.finding import ERROR, INFO, SEVERITIES, WARNING, Finding
from kdump.check.rules.bytes import UNREADABLE_BYTES
from kdump.spark.cluster_metadata import CLUSTERS, ClusterTask, read_cluster
from kdump.spark.coordinator_logs import COORDINATORS, CoordinatorTask, coordinator_logs, divided, read_coordinators
from kdump.spark.derived_tables import VIEWS, derive_others, derive_partitions, fleet_sums
from kdump.spark.packs import COUNTS, LIST, Pack, entries, rows_of
from kdump.spark.replica_differences import MAX_COPIES, not_compared, update_differences
from kdump.spark.result import kept_views, open_result, view_clusters, view_entries
from kdump.spark.scan import CHUNKS_PER_CORE, ScanOptions, ScanResult
from kdump.spark.scan_answer import DiskCopy, FleetSummary, ScannedBroker, ScannedUnits
from kdump.spark.scan_setup import task_read_limits
from kdump.spark.session import SMALL_BYTES
from kdump.spark.store import OWN, SUMMARY, Store
from kdump.spark.tables import FINDINGS, RESULTS
from kdump.spark.task_runner import TaskRunner
from kdump.spark.unit_sums import SumTask, UnitSums, merged_sums, sum_packs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMARIZED = f"{OWN}/summarized"
"""File with a digest of the packs that summary.json is about."""
PACKS = 500
"""Number of packs whose entries one task sums."""
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
    options: ScanOptions,
    store: Store,
    done: ScanResult,
    began: float,
) -> Object:
    """Return the object of summary.json; `began` is the start by time.monotonic. Unless nothing has changed, calls
    `start`, creates views of the tables in that session, and writes the tables that are derived from others."""
    units = ScannedUnits(done.read, done.continued, done.kept, done.gone)
    seconds = round(time.monotonic() - began, 3)
    before = _before(store)
    if before is not None:
        new = {"paths": list(options.paths), "out": store.root, "units": units._asdict(), "seconds": seconds}
        return {**before, **new}
    spark = start()
    several = len(done.sources.sources) > 1
    sums = done.sums = read_for_summary(tasks, options, store, done)
    small = _is_small(done, sums)
    with _settings(spark, COMPUTING | (IN_ONE_TASK if small else {})):
        names = {"segments", "checkpoints", "transactions", "producers"}
        names |= {"batches"} if several else set()
        open_result(spark, store, names | ({"records"} if options.records else set()), one_task=small)
        view_entries(spark, store, one_task=small)
        view_clusters(spark, store, one_task=small)
        differences = update_differences(spark, store, done.run, _last_run(store), several=several, one_task=small)
        left = not_compared(spark) if len(done.sources.sources) > MAX_COPIES else []
        derive_partitions(spark, store, one_task=small)
        with kept_views(spark, VIEWS, keep=small):
            derive_others(spark, store)
            lists = fleet_sums(spark, records=options.records)
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
            **differences,
            **sums.lists(),
            **lists,
            "units": units,
            "seconds": round(time.monotonic() - began, 3),
        }
    return answer_object(FleetSummary(**values))


def _is_small(done: ScanResult, sums: UnitSums) -> bool:
    """Return True if one task computes the summary faster than Spark divides it: known before any of it is read."""
    rows = sum(rows.number for pack in done.packs for rows in pack.tables.values())
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


def read_for_summary(tasks: TaskRunner, options: ScanOptions, store: Store, done: ScanResult) -> UnitSums:
    """Read the newest copy of the metadata of each cluster, and the logs of its coordinators; return what the entries
    of the units add up to."""
    paths = done.sources.clusters()
    limits = task_read_limits(tasks.parallelism)
    stems = [f"{done.run}-{number}" for number in range(len(paths))]
    clusters = [
        ClusterTask(store, stem, cluster, source, next((path for path in own if path in done.metadata), None), limits)
        for stem, ((cluster, source), own) in zip(stems, sorted(paths.items(), key=str))
    ]
    logs = divided(coordinator_logs(done.sources.sources), CHUNKS_PER_CORE * tasks.parallelism)
    coordinators = [CoordinatorTask(store, each, options.limits, limits) for each in logs]
    inputs: list[ClusterTask | CoordinatorTask | SumTask] = [*clusters, *coordinators, *_sum_tasks(store, done)]
    found: list[list[str] | UnitSums] = tasks.run(_read, inputs)
    _keep(store, CLUSTERS, {f"{stem}.parquet" for stem in stems})
    _keep(store, COORDINATORS, {name for each in found if isinstance(each, list) for name in each})
    return merged_sums(each for each in found if isinstance(each, UnitSums))


def _read(task: ClusterTask | CoordinatorTask | SumTask) -> list[str] | UnitSums:
    if isinstance(task, ClusterTask):
        read_cluster(task)
        return []
    return read_coordinators(task) if isinstance(task, CoordinatorTask) else sum_packs(task)


def _keep(store: Store, directory: str, names: set[str]) -> None:
    """Delete all other files in a directory of the result."""
    for name in store.list(directory):
        if name not in names:
            store.remove(f"{directory}/{name}")


def info_counts(tasks: TaskRunner, store: Store, done: ScanResult, summary: Object) -> Counter[str]:
    """Return the number of informational findings by code."""
    if not summary["findings"][INFO]:
        return Counter()
    codes = (done.sums or merged_sums(tasks.run(sum_packs, _sum_tasks(store, done)))).codes
    return Counter({code: count for (code, severity), count in codes.items() if severity == INFO})


def _sum_tasks(store: Store, done: ScanResult) -> list[SumTask]:
    return [SumTask(store, packs) for packs in _divided(done.packs)]


def _divided(packs: list[Pack]) -> Iterator[tuple[Pack, ...]]:
    """Yield the packs of each task that reads their entries."""
    for number in range(0, len(packs), PACKS):
        yield tuple(packs[number : number + PACKS])


def _brokers(done: ScanResult) -> list[ScannedBroker]:
    by: dict[tuple[str | None, str | None], list[str]] = {}
    for each in done.sources.sources:
        by.setdefault((each.identity.cluster, each.identity.broker), []).append(each.path)
    return [ScannedBroker(cluster, broker, sources) for (cluster, broker), sources in sorted(by.items(), key=str)]


def units_with_findings(
    tasks: TaskRunner, store: Store, done: ScanResult, summary: Object
) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the places with errors and warnings, and these, at most MAX_FINDINGS of them in total."""
    if not summary["findings"][ERROR] + summary["findings"][WARNING]:
        return
    found = tasks.run(severe_findings, [FindingsTask(store, packs) for packs in _divided(done.packs)])
    by_place: dict[str, list[Finding]] = {}
    for row in worst(chain.from_iterable(found)):
        by_place.setdefault(row["file"].rpartition("/")[0], []).append(Finding(**row))
    for place, own in sorted(by_place.items()):
        yield place, sorted(own, key=lambda finding: (finding.file, finding.position))


Row = dict[str, Any]
MAX_FINDINGS = 2000
"""Maximum number of findings to print."""
COLUMNS = [key.name for key in answer_keys(Finding)]


class FindingsTask(NamedTuple):
    """The input of a task: packs whose findings are read."""

    store: Store
    packs: tuple[Pack, ...]


def severe_findings(task: FindingsTask) -> list[Row]:
    """Return the worst errors and warnings of some packs, without what could not be read, which is no finding of
    kdump verify. Raises StoreError."""
    return worst(chain.from_iterable(_severe(task.store, pack) for pack in task.packs if FINDINGS.name in pack.tables))


def worst(found: Iterable[Row]) -> list[Row]:
    """Return the first MAX_FINDINGS rows: errors before warnings."""
    return heapq.nsmallest(MAX_FINDINGS, found, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return SEVERITIES.index(row["severity"]), row["source"] or "", row["file"], row["position"]


def _severe(store: Store, pack: Pack) -> Iterator[Row]:
    """Yield them of a pack; nothing is read of units that have none."""
    ranges = [
        (rows["start"], rows["count"])
        for entry in entries(store, pack, ["codes", "rows"])
        if any(each["severity"] != INFO for each in entry["codes"] or ())
        for rows in entry["rows"]
        if rows["table"] == FINDINGS.name
    ]
    for batch in rows_of(store, pack, FINDINGS.name, sorted(ranges)):
        unread = pc.and_(pc.equal(batch["code"], UNREADABLE_BYTES.code), pc.equal(batch["size"], 0))
        chosen = pc.and_(pc.not_equal(batch["severity"], INFO), pc.invert(pc.fill_null(unread, False)))
        yield from batch.filter(chosen).select(COLUMNS).to_pylist()
