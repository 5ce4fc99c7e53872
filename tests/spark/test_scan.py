"""kdump scan: its results for real fleets, that it reads nothing twice, and what it rejects."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from crc32c import crc32c

from kdump.cli import cli
from kdump.spark import session
from kdump.spark.delta_tables import _COLUMNS, LAYOUT_NAME, OLD_LIST, finish
from kdump.spark.replica_differences import POSSIBLE_RECORDS
from kdump.spark.result_views import open_result, scan_at
from kdump.spark.scan_answer import ALL, ScanQuery
from kdump.spark.store import Store, StoreError
from kdump.spark.summary import SMALL_ROWS
from kdump.spark.task_runner import LateTasks, SparkTasks, TaskRunner
from kdump.spark.units import WRITTEN
from kdump.tables.declarations import OF_TOPICS, RESULTS, SCANS, TABLES
from tests.cleaner_model import Log, Stored, StoredBatch
from tests.conftest import DISKS, FIXTURES, few
from tests.craft import one, overwrite, patch, split
from tests.spark import same
from tests.spark.test_incremental import Here

KAFKA = DISKS / "kafka-4.3"
OF_FILES = [*(name for name in ALL if name in TABLES and name not in OF_TOPICS), "records"]


def kdump(*arguments: Any) -> Result:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def tables(out: Path) -> dict[str, list[str]]:
    """Return all rows of all tables of a result, sorted."""
    found = {}
    for name in OF_FILES:
        columns = [column.name for column in TABLES[name].columns if not column.of]
        files = same.files_in(out, name)
        found[name] = sorted(str(row) for file in files for row in pq.read_table(file, columns=columns).to_pylist())
    return found


def by_spark(spark: Any, out: Path) -> dict[str, list[str]]:
    """Return the same, as Spark reads them."""
    found = {}
    open_result(spark, Store(str(out)), OF_FILES)
    for name in OF_FILES:
        frame = spark.table(name).select(*(column.name for column in TABLES[name].columns if not column.of))
        found[name] = sorted(str(row.asDict(recursive=True)) for row in frame.collect())
    return found


def expected(paths: list[Path]) -> dict[str, list[str]]:
    """Return the same, as the data source reads the disks."""
    found = {}
    for name in OF_FILES:
        columns = [column.name for column in TABLES[name].columns if not column.of]
        found[name] = sorted(str(row) for row in same.rows(name, paths, columns))
    return found


def run(tasks: TaskRunner, paths: list[Path], out: Path, **options: Any) -> Any:
    with closing(Store(str(out))) as store:
        return same.scanned(tasks, ScanQuery(tuple(map(str, paths)), records=True, **options), store)


def test_a_fleet_of_three(spark: Any, tmp_path: Path) -> None:
    paths = [KAFKA / name for name in ("clean-0", "clean-1", "clean-2")]
    result = kdump("scan", *paths, "--out", tmp_path / "fleet", "--records", "--json")
    assert not result.stderr, result.stderr
    said = json.loads(result.stdout)
    verified = same.cli_objects("verify", "--json", *map(str, paths))[-1]
    assert result.exit_code == 1  # of the ledger, a follower will truncate 20 records
    assert json.loads((tmp_path / "fleet" / "summary.json").read_text()) == said
    for name in ("partitions", "batches", "records", "damagedBatches", "damagedRecords", "findings"):
        assert said[name] == verified[name], name
    (ledger,) = said["replicas"]
    assert (ledger["topic"], ledger["partition"], ledger["kind"]) == ("ledger", 0, "diverged")
    assert (ledger["firstOffset"], ledger["brokers"], ledger["leaderEpochs"]) == (50, ["1", "2"], [0, 2])
    assert ledger["severity"] == "error"
    (left,) = said["openTransactions"]
    assert (left["topic"], left["firstOffset"], left["transactionalId"], left["state"]) == (
        "payments",
        114,
        "tx-hang",
        "Ongoing",
    )
    assert {group["groupId"]: group["lag"] for group in said["groups"]}["group-classic"] == 258
    assert said["keys"][0]["topic"] == "clicks"
    assert by_spark(spark, tmp_path / "fleet") == expected(paths)

    with pytest.MonkeyPatch.context() as patch:  # nothing has changed: it does not need Spark
        patch.setattr(session, "running", lambda *arguments: pytest.fail("Spark was started"))
        again = json.loads(kdump("scan", *paths, "--out", tmp_path / "fleet", "--records", "--json").stdout)
    assert again["units"] == {"read": 0, "continued": 0, "kept": 52, "gone": 0}
    assert {**again, "units": 0, "seconds": 0} == {**said, "units": 0, "seconds": 0}

    _derived(spark, paths, tmp_path / "fleet", said)
    # Earlier answers are also in a table.
    rows = kdump("query", tmp_path / "fleet", "select topic, kind, brokers from replica_differences")
    assert rows.exit_code == 0
    assert rows.stdout.splitlines()[0].split() == ["topic", "kind", "brokers"]
    assert rows.stdout.splitlines()[1].split(maxsplit=2) == ["ledger", "diverged", '["1", "2"]']
    every = "select * from replica_differences"
    (row,) = map(json.loads, kdump("query", tmp_path / "fleet", every, "--json").stdout.splitlines())
    assert row == ledger
    text = kdump("query", tmp_path / "fleet", every, "--format", "csv").stdout
    (cells,) = csv.DictReader(io.StringIO(text))
    assert {name: json.loads(cells[name]) for name, value in row.items() if isinstance(value, (int, list))} == {
        name: value for name, value in row.items() if isinstance(value, (int, list))
    }
    assert [cells[name] for name in row if isinstance(row[name], str)] == [
        v for v in row.values() if isinstance(v, str)
    ]
    failed = kdump("query", tmp_path / "fleet", "select nothing from replica_differences")
    assert failed.exit_code == 2
    assert "nothing" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def _derived(spark: Any, paths: list[Path], out: Path, said: dict[str, Any]) -> None:
    """Check the tables that are not read from one file each."""
    open_result(spark, Store(str(out)))

    def query(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(sql).collect()]

    # Each partition of Kafka's own topics is decoded once, where it reaches furthest.
    for name, topic in (("metadata_records", "__cluster_metadata"), ("group_offsets", "__consumer_offsets")):
        logs = [path / f"{topic}-0" for path in paths if (path / f"{topic}-0").is_dir()]
        longest = max(logs, key=lambda log: sum(path.stat().st_size for path in log.glob("*.log")))
        columns = [column.name for column in TABLES[name].columns if not column.of]
        rows = [str(row) for row in same.rows(name, [longest.parent], columns)]
        found = spark.table(name).select(*columns).collect()
        assert sorted(str(row.asDict(recursive=True)) for row in found) == sorted(rows)
    cluster = {(each["topic"], each["partition"]): each for each in _partitions(paths[0])}
    replicas = query("select topic, partition, leader, isr, behind, logEndOffset, records from partitions")
    assert len(replicas) == said["partitions"]
    assert {(topic, partition) for topic, partition, *_ in replicas} >= {*cluster}
    known = [each for each in replicas if (each[0], each[1]) in cluster]
    assert known
    for topic, partition, leader, isr, *_ in known:
        assert (leader, isr) == (cluster[topic, partition]["leader"], cluster[topic, partition]["isr"])
    sums = "cast(sum({}) as bigint), cast(sum({}) as bigint), cast(sum(size) as bigint), min({}), max({})"
    by_producer = query(
        f"select source, topic, producerId, producerEpoch,"
        f" {sums.format('batches', 'records', 'firstTimestamp', 'lastTimestamp')} from producers group by 1, 2, 3, 4"
    )
    assert sorted(by_producer) == sorted(
        query(
            f"select source, topic, producerId, producerEpoch,"
            f" {sums.format('1', POSSIBLE_RECORDS, 'maxTimestamp', 'maxTimestamp')} from batches"
            " where producerId >= 0 and not isControlBatch and crcValid group by 1, 2, 3, 4"
        )
    )
    assert len(by_producer) > 5
    ledger = query("select broker, behind, logEndOffset from partitions where topic = 'ledger' order by broker")
    assert ledger == [("1", 0, 70), ("2", 5, 65)]
    stable = query(
        "select topic, lastStableOffset, highWatermark from partitions where lastStableOffset < logEndOffset"
    )
    assert stable == [("payments", 114, 120)]
    checkpointed = query("select topic, partition, highWatermark, recoveryPoint from partitions where state = 'live'")
    listed = [each for path in paths for each in same.cli_objects("ls", "--json", str(path))]
    names = ("topic", "partition", "highWatermark", "recoveryPoint")
    live = [tuple(each[name] for name in names) for each in listed if each.get("state") == "live"]
    assert sorted(map(str, checkpointed)) == sorted(map(str, live))
    opened = query("select topic, firstOffset, transactionalId, coordinatorState, records from open_transactions")
    assert opened == [("payments", 114, "tx-hang", "Ongoing", 1)]
    lag = query("select groupId, sum(lag) from group_lag group by 1 having sum(lag) > 0 order by 1")
    assert lag == [(group["groupId"], group["lag"]) for group in said["groups"] if group["lag"]]


@pytest.mark.every_disk
@pytest.mark.parametrize(
    ("paths", "gone"),
    [
        (["ids", "one", "two"], {("ids", "ledger"), ("ids", "users"), (None, "ledger")}),
        (["one"], {(None, "ledger"), (None, "users")}),
    ],
)
def test_partitions_that_no_disk_has(
    paths: list[str], gone: set[tuple[str | None, str]], spark: Any, tmp_path: Path
) -> None:
    """They are known from the metadata alone: of a disk with a cluster.id, and of two that may be of one cluster."""
    for name, source in (("ids", "clean-1"), ("one", "clean-1"), ("two", "clean-2")):
        disk = shutil.copytree(KAFKA / source, tmp_path / name)
        shutil.rmtree(disk / "ledger-0")
        for log in (*disk.glob("large-0/*.log"), *disk.glob("clicks-0/*.log")):
            log.write_bytes(b"")
        if name == "ids":
            (disk / "meta.properties").write_text("cluster.id=ids\nnode.id=1\nversion=1\n")
        else:
            (disk / "meta.properties").unlink()
    (tmp_path / "one" / "users-0").rename(tmp_path / "two" / "users-0")
    shutil.rmtree(tmp_path / "ids" / "users-0")
    of_log = ("state", "behind", "logStartOffset", "logEndOffset", "size", "segments", "records", "newestTime")
    out = tmp_path / "out"
    assert kdump("scan", *(tmp_path / path for path in paths), "--out", out, "--json").exit_code < 2
    open_result(spark, Store(str(out)))
    found = [row.asDict() for row in spark.sql("select * from partitions where source is null").collect()]
    assert {(row["cluster"], row["topic"]) for row in found} == gone
    assert len(found) == len(gone)
    for row in found:
        newest = KAFKA / ("clean-2" if "two" in paths and row["cluster"] is None else "clean-1")
        known = {each["topic"]: each for each in _partitions(newest)}
        assert all(row[name] is None for name in of_log)
        assert row["replicas"] == known[row["topic"]]["replicas"]
        assert row["partitionLeaderEpoch"] == known[row["topic"]]["leaderEpoch"]


def _partitions(disk: Path) -> list[dict[str, Any]]:
    found = same.cli_objects("cluster", "--show", "partitions", "--json", str(disk))
    return [each for each in found if each["type"] == "clusterPartition"]


@pytest.mark.every_disk
def test_replicas_that_do_not_say_whose_they_are(spark: Any, tmp_path: Path) -> None:
    paths = [FIXTURES / "diverged-1", FIXTURES / "diverged-2"]
    there = f"file://{tmp_path}/out"  # Spark can read from there
    result = kdump("scan", *paths, "--out", there, "--broker", f"{paths[0]}=7")
    assert result.exit_code == 1
    rows = kdump("query", there, "select count(*) as n from batches", "--json").stdout
    assert json.loads(rows) == {"n": len(same.cli_batches(*paths))}
    text = result.stdout
    assert "error ledger-0: diverged at offsets 50 to 69" in text
    assert f"broker 7, {paths[0]}: 20 records there; its log is up to offset 69" in text
    assert f"    {paths[1]}: 15 records there; its log is up to offset 64" in text
    assert text.startswith("INCOMPLETE: 2 warnings in 2 of 4 places; REPLICAS DIFFER")


@pytest.mark.every_disk
def test_replicas_that_nothing_mends_fail_the_scan(spark: Any, tmp_path: Path) -> None:
    """Valid batches of one leader epoch differ: there were two leaders, or a disk changed bytes."""
    for name in "ab":
        shutil.copytree(FIXTURES / "clean-2" / "ledger-0", tmp_path / name / "ledger-0")
    log = tmp_path / "b" / "ledger-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[10 + int.from_bytes(data[8:12], "big")] ^= 1  # last byte of the last value in the first batch
    data[17:21] = crc32c(data[21 : 12 + int.from_bytes(data[8:12], "big")]).to_bytes(4, "big")
    log.write_bytes(data)
    out = f"file://{tmp_path.parent}/{tmp_path.name}-out"  # a URL that Spark can read from, too
    with counted(spark) as first:
        result = kdump("scan", tmp_path, "--out", out, "--json")
    assert not result.stderr, result.stderr
    said = json.loads(result.stdout)
    assert said["findings"]["error"] == 0
    (ledger,) = said["replicas"]
    assert (ledger["kind"], ledger["severity"], ledger["firstOffset"]) == ("diverged", "error", 0)
    assert result.exit_code == 1
    with counted(spark) as second:
        assert kdump("scan", tmp_path, "--out", out, "--json").exit_code == 1
    with counted(spark) as query:
        assert kdump("query", out, "select * from replica_differences", "--json").exit_code == 0
    # Starting a job takes longer than reading such disks.
    assert first.jobs <= 12
    assert second.jobs <= 2  # finds the disks, and finds that nothing has changed
    assert (second.queries, query.jobs, query.queries) == (0, 1, 2)  # a view of the table, and the query


@pytest.mark.every_disk
def test_a_large_fleet_is_summed_up_as_a_small_one(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark divides the tables of a large one among tasks, with the settings of the session."""
    paths = [KAFKA / name for name in ("clean-0", "clean-1", "clean-2")]
    found = []
    for rows in (SMALL_ROWS, -1):
        monkeypatch.setattr("kdump.spark.summary.SMALL_ROWS", rows)
        out = tmp_path / str(rows)
        summary = json.loads(kdump("scan", *paths, "--out", out, "--records", "--json").stdout)
        open_result(spark, Store(str(out)))
        derived = [name for name, table in RESULTS.items() if table.derived and table is not SCANS]
        tables = {name: sorted(map(str, spark.table(name).collect())) for name in derived}
        assert all(tables.values())
        found.append(({**summary, "out": "", "seconds": 0}, tables))
    assert found[0] == found[1]


class Counted:
    """How many jobs Spark has run, and how many queries."""

    jobs = queries = 0


@contextmanager
def counted(spark: Any) -> Iterator[Counted]:
    def now() -> tuple[int, int]:
        context = spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        return context.dagScheduler().numTotalJobs(), spark._jsparkSession.sharedState().statusStore().executionsCount()

    found = Counted()
    before = now()
    yield found
    found.jobs, found.queries = (after - earlier for after, earlier in zip(now(), before))


def test_only_what_has_changed_is_read_again(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(FIXTURES / "clean-2", disk)
    for name in ("payments-0", "users-0", "trimmed-0"):
        shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    first = run(Here(), [disk], out)
    assert (first.read, first.kept, first.gone) == (6, 0, 0)
    assert tables(out) == expected([disk])

    log = disk / "payments-0" / "00000000000000000000.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-3])
    (disk / "users-0").rename(tmp_path / "kept")
    second = run(Here(), [disk], out)
    assert (second.read, second.kept, second.gone) == (2, 3, 1)  # the partition, and the root, which lacks another
    assert tables(out) == expected([disk])

    log.write_bytes(whole)
    (tmp_path / "kept").rename(disk / "users-0")
    (disk / "replication-offset-checkpoint").write_text("0\n1\nledger 0 999\n")
    run(Here(), [disk], out)
    run(Here(), [disk], tmp_path / "scratch")
    assert tables(out) == tables(tmp_path / "scratch")
    assert any("checkpoint-beyond-log" in row for row in tables(out)["findings"])


def test_where_nothing_changed_no_spark_starts(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is that of a scan on Spark. If anything has changed, Spark starts, also if planning takes long."""
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(FIXTURES / "clean-2" / "ledger-0", disk / "ledger-0")
    split_up(disk, "ledger-0", 2, damage=1)
    (disk / "ledger-0" / f"{9:020}.index").mkdir()
    age(disk, days=2)
    monkeypatch.setattr(session, "are_small", lambda *given: False)
    started: list[bool] = []
    starts = [session.running]

    def running(*given: Any) -> Any:
        started.append(True)
        return starts[0](*given)

    def not_here(*given: Any) -> Any:
        raise session.NoSpark("not here")

    monkeypatch.setattr(session, "running", running)

    def scans(*options: str) -> tuple[bool, int, dict[str, Any]]:
        started.clear()
        result = kdump("scan", disk, "--out", out, "--json", *options)
        summary = json.loads(result.stdout or '{"seconds": 0}')
        del summary["seconds"]
        return bool(started), result.exit_code, summary

    is_started, status, first = scans()
    assert (is_started, status) == (True, 1)
    here = scans()
    unchanged = {"read": 0, "continued": 0, "kept": first["units"]["read"], "gone": 0}
    assert here == (False, 1, {**first, "units": unchanged})
    with monkeypatch.context() as patched:
        patched.setattr(LateTasks, "PATIENCE", -1.0)
        assert scans() == (True, *here[1:])
    assert len(kdump("query", out, "select * from scans", "--json").stdout.splitlines()) == 1

    starts[0] = not_here
    refused = (True, 2, {})
    assert scans("--transaction-timeout", "1h") == refused
    assert scans("--records") == refused
    assert scans("--from-scratch") == refused
    log = max((disk / "ledger-0").glob("*.log"))
    data, times = log.read_bytes(), log.stat()
    log.write_bytes(data[:-1] + b"!")
    assert scans() == refused
    log.unlink()
    assert scans() == refused
    log.write_bytes(data)
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert scans()[0] == (log.stat().st_ino != times.st_ino)
    (out / "summary.json").write_text("{}")
    assert scans() == refused


def age(*paths: Path, days: int) -> None:
    """Make files and directories old: a scan keeps nothing of files with doubtful findings that were written just
    now."""
    moment = time.time() - 86400 * days
    for path in paths:
        for each in (path, *path.rglob("*")):
            os.utime(each, (moment, moment))


@pytest.mark.every_disk
def test_a_scan_that_goes_on_says_what_one_from_scratch_says(spark: Any, tmp_path: Path) -> None:
    """Logs with damage in an old segment have grown: tables, findings and summary are compared."""
    disks = [tmp_path / "left", tmp_path / "right"]
    for disk in disks:
        for name in ("payments-0", "users-0"):
            shutil.copytree(FIXTURES / "clean-1" / name, disk / name)
    split_up(disks[0], "payments-0", 4, damage=2)
    split_up(disks[1], "payments-0", 3)
    later = {}
    for disk in disks:
        last = sorted((disk / "payments-0").glob("*.log"))[-1]
        later[last] = last.read_bytes()
        last.write_bytes(later[last][: len(later[last]) // 2])
    age(*disks, days=2)
    out = tmp_path / "out"
    run(SparkTasks(spark), disks, out)
    for path, data in later.items():
        path.write_bytes(data)
    age(*later, days=1)
    on, scratch = (
        json.loads(kdump("scan", *disks, "--out", where, "--records", "--json").stdout)
        for where in (out, tmp_path / "scratch")
    )
    assert on["units"]["continued"] == 2
    assert scratch["units"]["continued"] == 0
    found = tables(out)
    assert any("crc-mismatch" in row for row in found["findings"])
    assert found == tables(tmp_path / "scratch")
    same_for_all = {"out": "", "units": 0, "seconds": 0}
    assert {**on, **same_for_all} == {**scratch, **same_for_all}
    assert [each["kind"] for each in on["replicas"]] == ["damaged"]


def split_up(disk: Path, name: str, count: int, damage: int = 0) -> None:
    """Split a log into several segments, and flip a bit in the checksum of one segment's first batch."""
    log = disk / name / f"{0:020}.log"
    data, rows = log.read_bytes(), same.cli_batches(disk / name)
    starts = [rows[len(rows) * number // count] for number in range(count)]
    for number, row in enumerate(starts):
        end = starts[number + 1]["position"] if number + 1 < count else len(data)
        piece = bytearray(data[row["position"] : end])
        piece[18] ^= number == damage and damage > 0
        (disk / name / f"{row['baseOffset']:020}.log").write_bytes(piece)


def test_a_scan_that_was_interrupted_goes_on(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(FIXTURES / "clean-2", disk)
    shutil.copytree(FIXTURES / "clean-1" / "payments-0", disk / "payments-0")
    (out / "_kdump").mkdir(parents=True)
    (out / "batches").write_text("no directory")  # no file with batches can be written
    with pytest.raises(Exception, match="cannot be written"):
        run(SparkTasks(spark), [disk], out)
    assert kdump("query", out, "select 1").stderr.endswith("was not finished; run it again\n")
    (out / "batches").unlink()
    second = run(SparkTasks(spark), [disk], out)
    assert second.read + second.kept == 4
    assert tables(out) == expected([disk])
    assert not list(out.rglob(".*"))


def test_a_result_that_this_version_cannot_read_is_not_an_empty_one(tmp_path: Path) -> None:
    old, other = Store(str(tmp_path / "old")), Store(str(tmp_path / "other"))
    old.write(OLD_LIST, b'{"layout": "6", "packs": []}')
    refused = kdump("query", old.root, "select 1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.endswith("the result of an earlier version of kdump; scan into a new directory\n")
    run(Here(), [FIXTURES / "clean-2"], tmp_path / "other")
    last = scan_at(other)
    finish(other, last._replace(run="9", versions={**last.versions, LAYOUT_NAME: "1"}), 0)
    refused = kdump("scan", FIXTURES / "clean-2", "--out", other.root)
    assert refused.stderr.endswith("the result of another version of kdump; scan into a new directory\n")


def test_the_layout_has_the_columns_of_every_table_that_is_written() -> None:
    """Otherwise a result with other columns would be continued."""
    columns = dict(literal_eval(_COLUMNS))
    for table in WRITTEN.values():
        assert columns[table.name] == [column[:2] for column in table.columns]


def test_where_a_result_is_not_put(tmp_path: Path) -> None:
    disk = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk")
    below = tmp_path / "files"
    below.mkdir()
    for out, source, reason in (
        (disk, disk, "a Kafka log directory"),
        (disk / "out", disk, "a Kafka log directory"),
        (disk / "out", below, "a Kafka log directory"),
        (below / "out", below, "which is read"),
        (tmp_path, disk, "not the result of a scan"),
    ):
        with pytest.raises(StoreError, match=reason):
            Store(str(out)).begin([str(source)])
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not a directory"):
        Store(str(tmp_path / "file")).begin([str(disk)])
    assert not any(name.startswith("_kdump") for _, names, _ in os.walk(disk) for name in names)


def test_a_result_at_a_url_that_spark_cannot_read(spark: Any) -> None:
    """The error comes before anything is read."""
    for url in ("memory://fleet/out", "s3a://bucket/out"):
        refused = kdump("scan", FIXTURES / "clean-2", "--out", url)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"kdump: {url}: Spark cannot read from there (")
        assert "spark.jars.packages" in refused.stderr


def test_a_store_elsewhere(tmp_path: Path) -> None:
    store = Store("memory://fleet")
    store.begin([str(tmp_path)])
    store.write("batches/x", b"1")
    assert store.list("batches") == ["x"]
    assert store.read("batches/x") == b"1"
    store.remove("batches/x")
    assert store.read("batches/x") is None


@pytest.mark.every_disk
def test_damage_is_told_as_verify_tells_it(spark: Any, tmp_path: Path) -> None:
    disk = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk")
    log = disk / "ledger-0" / "00000000000000000000.log"
    first, second, *others = split(log.read_bytes())
    second = patch(second, recordCount=1_000_000_007)
    log.write_bytes(b"".join((overwrite(first, 200, bytes([first[200] ^ 1])), second, *others)))
    result = kdump("scan", disk, tmp_path / "nowhere", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stdout.startswith("DAMAGED")
    assert "crc-mismatch  00000000000000000000.log" in result.stdout
    assert f"not read: {tmp_path / 'nowhere'}: No such file or directory" in result.stdout
    assert "unreadable-bytes" not in result.stdout
    assert "00000" not in str(json.loads((tmp_path / "out" / "summary.json").read_text())["producers"])
    assert "1,000,000" not in result.stdout
    lost = kdump("scan", FIXTURES / "clean-2" / "ledger-0", tmp_path / "nowhere", "--out", tmp_path / "lost", "--quiet")
    assert (lost.exit_code, lost.stdout) == (2, "")
    assert lost.stderr == f"kdump: {tmp_path / 'nowhere'}: No such file or directory\n"
    quiet = kdump("scan", disk, tmp_path / "nowhere", "--out", tmp_path / "out", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (1, "")
    assert kdump("query", tmp_path / "nowhere", "select 1").exit_code == 2


@pytest.mark.every_disk
def test_no_number_ends_a_scan(spark: Any, tmp_path: Path) -> None:
    """Damaged offsets, and timestamps that a producer may send, are too large for sums, which end a query in Spark."""
    largest = (1 << 63) - 1
    for broker in range(2):
        disk = tmp_path / f"disk-{broker}"
        for name, *fields in (
            ("offsets", {"offset": -largest - 1}, {"offset": largest}),
            ("counts", {"lastOffsetDelta": (1 << 31) - 1, "recordCount": (1 << 31) - 1 - broker}),
            ("times", {"maxTimestamp": -1, "baseTimestamp": -1}, {"maxTimestamp": largest, "baseTimestamp": largest}),
        ):
            (disk / f"{name}-0").mkdir(parents=True)
            every = [one(b"x", **{"producerId": 5, "producerEpoch": 0, "baseSequence": 0} | each) for each in fields]
            (disk / f"{name}-0" / f"{0:020}.log").write_bytes(b"".join(every))
            (disk / "meta.properties").write_text(f"cluster.id=c\nnode.id={broker}\nversion=1\n")
        (disk / "log-start-offset-checkpoint").write_text(f"0\n1\noffsets 0 {largest}\n")
    rules = spark.conf.get("spark.sql.ansi.enabled")
    result = kdump("scan", tmp_path / "disk-0", tmp_path / "disk-1", "--out", tmp_path / "fleet", "--json")
    summary = json.loads(result.stdout)
    assert (result.exit_code, summary["batches"]) == (1, 10)
    assert [each["recordsPerSecond"] for each in summary["producers"]] == [None]
    assert spark.conf.get("spark.sql.ansi.enabled") == rules


def test_what_the_command_line_refuses(tmp_path: Path) -> None:
    for more in (["--json", "--quiet"], ["--tables", "rows"], ["--broker", "7"], ["--conf", "x"]):
        assert kdump("scan", FIXTURES / "clean-2", "--out", tmp_path / "out", *more).exit_code == 2
    assert kdump("query", tmp_path, "select 1", "--conf", "x").exit_code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_without_spark_it_says_what_to_install(missing: str, tmp_path: Path) -> None:
    """In a process of its own, which has imported neither."""
    (tmp_path / "_kdump").mkdir()
    commands = [["scan", str(FIXTURES / "clean-2"), "--out", str(tmp_path / "out")], ["query", str(tmp_path), "select"]]
    code = f"""
import sys
sys.modules[{missing!r}] = None
from kdump.cli import cli
for arguments in {commands!r}:
    try:
        cli.main(arguments)
    except SystemExit as error:
        print(error.code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n2\n")
    assert len(done.stderr.splitlines()) == 2
    assert done.stderr.count("pip install pyspark pyarrow fsspec deltalake duckdb sqlglot\n") == 2


def test_without_java_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name in ("PATH", "JAVA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
        done = kdump("scan", FIXTURES / "clean-2", "--out", tmp_path / "out")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "Java 17" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lost", few([pytest.param((2,)), pytest.param(())], 1))
def test_records_that_a_cleaned_replica_lost(lost: tuple[int, ...], spark: Any, tmp_path: Path) -> None:
    """Only their keys show that the log cleaner did not remove them."""
    records = [Stored(0, b"k", b"1"), Stored(1, b"l", b"1"), Stored(2, b"m", b"1"), Stored(3, b"k", b"2")]
    for node, removed in ((1, {0, *lost}), (2, set[int]())):
        disk = tmp_path / str(node)
        kept = [StoredBatch(each.offset, each.offset, () if each.offset in removed else (each,)) for each in records]
        Log([(0, kept)]).write(disk / "c-0")
        (disk / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node}\n")
    result = kdump("scan", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "fleet", "--json")
    summary = json.loads(result.stdout)
    assert summary["compactedReplicas"] == 1
    assert result.exit_code == bool(lost), result.stderr
    found = [(row["kind"], row["severity"], row["firstOffset"], row["lastOffset"]) for row in summary["replicas"]]
    assert found == [("missing", "error", offset, offset) for offset in lost]
    for row in summary["replicas"]:
        assert (row["brokers"], row["leaderEpochs"], row["records"], row["lost"]) == (["1", "2"], [None, 0], [0, 1], 1)
