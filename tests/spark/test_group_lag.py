"""Groups, lag and open transactions of a scan, which reads the coordinators' logs in several tasks and joins them in
SQL, are those of the code of `kdump groups` and `kdump transactions` over all disks at once."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdump.answer import answer_object
from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.lag import LagContext
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.read_groups import newest, read_groups
from kdump.cluster.transaction_coordinator import read_coordinator
from kdump.io.run import Limits, Run
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.questions.groups.answer import GroupDescription, describe_groups
from kdump.spark.coordinator_logs import COORDINATORS, LogReplicas, divided
from kdump.spark.result_views import open_result
from kdump.spark.scan import finish_scan, scan
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store
from kdump.spark.summary import read_for_summary, summarize
from kdump.spark.task_runner import SparkTasks, TaskRunner
from kdump.spark.unit_sums import MAX_ROWS
from kdump.tables.declarations import GROUP_LAG
from tests.conftest import DISKS
from tests.spark import same
from tests.spark.test_incremental import Here

KAFKA = DISKS / "kafka-4.3"
COLUMNS = [column.name for column in GROUP_LAG.columns if not column.of and column.name != "cluster"]


def at_once(paths: Iterable[Path]) -> list[GroupDescription]:
    """Return the groups of log directories of one cluster, all read in this process."""
    limits = Limits()
    directories = [each for each in (directory_at(str(path)) for path in paths) if isinstance(each, LogDirectory)]
    images = [image for image in (read_metadata(each.path) for each in directories) if image is not None]
    metadata = max((image for image in images if image.topics), key=lambda image: image.end_offset, default=None)
    logs = newest([log for each in directories for log in logs_in(each)])
    context = LagContext(LogOffsetsByPartition(directories), metadata)
    read = read_groups(logs, run=Run(limits))
    return list(describe_groups(read, context, lambda name: True, lambda name: True))


def of_scan(
    spark: Any, paths: Iterable[Path | str], out: Path, tasks: TaskRunner | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the summary of a scan, and the rows of its table group_lag."""
    options = ScanQuery(tuple(map(str, paths)))
    tasks, store = tasks or SparkTasks(spark), Store(str(out))
    done = scan(tasks, options, store)
    summary = answer_object(summarize(lambda: spark, tasks, options, store, done, 0.0))
    finish_scan(store, done)
    open_result(spark, store, {"group_lag"})
    rows = [row.asDict() for row in spark.table("group_lag").collect()]
    return summary, rows


def without_ids(disks: list[Path]) -> None:
    for disk in disks:
        (disk / "meta.properties").unlink()


def deleted(disks: list[Path]) -> None:
    """The topic orders-zstd is being deleted; one partition is gone; the metadata does not know either topic."""
    for disk in disks:
        for log in disk.glob("__cluster_metadata-0"):
            shutil.rmtree(log)
        for log in disk.glob("orders-zstd-0"):
            log.rename(disk / f"orders-zstd-0.{'0' * 32}-delete")
        for log in disk.glob("orders-none-0"):
            shutil.rmtree(log)


def truncated(disks: list[Path]) -> None:
    """Committed offsets are above the ends of logs, and below the starts of others."""
    for disk in disks:
        for log in disk.glob("orders-zstd-0/*.log"):
            log.write_bytes(b"")
        for log in disk.glob("orders-none-0/*.log"):
            data = log.read_bytes()
            log.write_bytes(data[: struct.unpack(">i", data[8:12])[0] + 12])
        checkpoint = disk / "log-start-offset-checkpoint"
        checkpoint.write_text("0\n2\norders-lz4 0 299\npayments 0 100\n")


def as_it_is(disks: list[Path]) -> None:
    pass


Change = Callable[[list[Path]], None]


@pytest.mark.every_disk
@pytest.mark.parametrize("changes", [[without_ids, deleted, truncated], [as_it_is]])
def test_groups_are_those_of_all_disks_at_once(spark: Any, changes: list[Change], tmp_path: Path) -> None:
    """Of one cluster, or of several that are scanned together; without IDs, each disk stands for itself."""
    owners: list[list[Path]] = []
    for change in changes:
        disks = [tmp_path / change.__name__ / name for name in ("clean-0", "clean-1", "clean-2")]
        for disk in disks:
            shutil.copytree(KAFKA / disk.name, disk)
            for log in (*disk.glob("large-0/*.log"), *disk.glob("clicks-0/*.log")):
                log.write_bytes(b"")
            if len(changes) > 1:
                properties = disk / "meta.properties"
                properties.write_text(re.sub("cluster.id=.*", f"cluster.id={change.__name__}", properties.read_text()))
        change(disks)
        owners += [[disk] for disk in disks] if change is without_ids else [disks]
    every = [disk for disks in owners for disk in disks]
    summary, rows = of_scan(spark, every, tmp_path / "out")
    groups = [group for each in owners for group in at_once(each)]
    expected = [{name: answer_object(each)[name] for name in COLUMNS} for group in groups for each in group.offsets]
    assert _sorted({name: row[name] for name in COLUMNS} for row in rows) == _sorted(expected)
    assert rows
    names = [name for name in summary["groups"][0] if name != "cluster"]
    totals = [{name: answer_object(group.group)[name] for name in names} for group in groups]
    assert len(totals) <= MAX_ROWS
    assert _sorted({name: row[name] for name in names} for row in summary["groups"]) == _sorted(totals)
    if len(changes) > 1:
        assert {row["cluster"] for row in rows if row["remark"]} >= {"deleted", "truncated"}
    coordinator = read_coordinator([str(disk / "__transaction_state-0") for disk in every])
    assert coordinator is not None
    for each in summary["openTransactions"]:
        known = coordinator.of_producer(each["producerId"])
        assert known is not None
        assert (each["transactionalId"], each["state"]) == (known.transactionalId, known.state)
    assert summary["openTransactions"]


@pytest.mark.every_disk
def test_the_lag_of_groups_at_urls(spark: Any, tmp_path: Path) -> None:
    """It is that of the disk at a local path. The store is in the memory of this process, and so are the tasks here."""
    import fsspec

    disk = KAFKA / "clean-1"
    store = fsspec.filesystem("memory")
    for path in disk.rglob("*"):
        if path.is_file():
            store.pipe(f"/lag/{path.relative_to(disk)}", path.read_bytes())
    summary, rows = of_scan(spark, ["memory://lag"], tmp_path / "out", Here())
    local = at_once([disk])
    lags = {group.group.groupId: group.group.lag for group in local}
    assert {name for name, lag in lags.items() if lag} == {"group-classic", "group-consumer", "tx-group"}
    assert {group["groupId"]: group["lag"] for group in summary["groups"]} == lags
    expected = [{name: answer_object(each)[name] for name in COLUMNS} for group in local for each in group.offsets]
    assert _sorted({name: row[name] for name in COLUMNS} for row in rows) == _sorted(expected)


def test_the_newest_metadata_of_a_cluster_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy once by the plan of its broker, and only the newest again: here that of clean-2, the others are cut."""
    disks = [tmp_path / name for name in ("clean-0", "clean-1", "clean-2")]
    ends = []
    for disk in disks:
        shutil.copytree(KAFKA / disk.name, disk)
        for log in disk.glob("__cluster_metadata-0/*.log"):
            if disk != disks[2]:
                log.write_bytes(log.read_bytes()[:-2000])
        image = read_metadata(str(disk))
        assert image is not None
        ends.append(image.end_offset)
    assert ends[2] > max(ends[:2])
    read: list[str] = []

    def counted(path: str, *words: Any, **named: Any) -> Any:
        read.append(path)
        return read_metadata(path, *words, **named)

    monkeypatch.setattr("kdump.cluster.metadata_log.read_metadata", counted)
    tasks, store = Here(), Store(str(tmp_path / "out"))
    options = ScanQuery(tuple(map(str, disks)))
    read_for_summary(tasks, options, store, same.scanned(tasks, options, store))
    assert sorted(read) == [*map(str, disks), str(disks[2])]


def _sorted(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_a_log_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    disks = [tmp_path / "disks" / name for name in ("clean-1", "clean-2")]
    for disk in disks:
        shutil.copytree(KAFKA / disk.name, disk)
    out = tmp_path / "out"

    def read() -> tuple[dict[str, int], list[str]]:
        """Return the files with what the logs say, with their times, and their rows."""
        tasks, options, store = Here(), ScanQuery(tuple(map(str, disks))), Store(str(out))
        read_for_summary(tasks, options, store, same.scanned(tasks, options, store))
        store.close()
        files = [*(out / COORDINATORS.name).iterdir()]
        rows = [row for path in files for row in pq.read_table(path).to_pylist()]
        return {path.name: path.stat().st_mtime_ns for path in files}, _sorted(rows)

    files, before = read()
    assert len(files) == len({name.rpartition("-")[0] for name in files}) >= 2
    (log,) = (disks[0] / "__consumer_offsets-0").glob("*.log")
    log.write_bytes(log.read_bytes() + b"\0" * 7)
    again, rows = read()
    assert before
    assert rows == before
    (changed,) = again.keys() - files.keys()
    assert changed.startswith("consumer_offsets-0-")
    assert again == {**{name: time for name, time in files.items() if name in again}, changed: again[changed]}
    assert len(again) == len(files)


def test_the_logs_of_a_fleet_are_divided_by_size() -> None:
    logs = [
        LogReplicas("c", None, f"__consumer_offsets-{n}", ("p",), size) for n, size in enumerate([90, 5, 50, 40, 0])
    ]
    tasks = divided(logs, 2)
    assert [sum(each.size for each in task) for task in tasks] == [95, 90]
    assert sorted(each for task in tasks for each in task) == logs
    assert divided(logs[:1], 8) == [(logs[0],)]
    assert divided([], 8) == []
