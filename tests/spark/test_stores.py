"""Paths: object stores (moto's S3 server), memory://, file://, wildcards; copies of a disk; unreadable files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdump.io.run import Limits
from kdump.spark.cluster_metadata import CLUSTERS, read_cluster
from kdump.spark.coordinator_logs import COORDINATORS, GROUP, coordinator_logs, divided, read_coordinators
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store
from kdump.tables.read_options import OptionError
from tests.conftest import DISKS, FIXTURES
from tests.s3_server import s3_server
from tests.spark import same
from tests.spark.test_incremental import Here


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """clean-2 with changed bytes in a segment, an index and a checkpoint."""
    copy = shutil.copytree(FIXTURES / "clean-2", tmp_path_factory.mktemp("disks") / "clean-2")
    for name, at in (
        ("ledger-0/00000000000000000000.log", 200),
        ("__cluster_metadata-0/00000000000000000000.index", 3),
        ("replication-offset-checkpoint", 0),
        ("__cluster_metadata-0/00000000000000000376.snapshot", 5),
    ):
        data = bytearray((copy / name).read_bytes())
        data[at] ^= 0x10
        (copy / name).write_bytes(data)
    return copy


@pytest.fixture(scope="module")
def s3(disk: Path) -> Iterator[str]:
    """A server that implements S3, with clean-2 in a bucket; yields its storageOptions."""
    import s3fs

    with s3_server() as options:
        store = s3fs.S3FileSystem(**options)
        store.mkdir("disks")
        for each in (disk, FIXTURES / "diverged-1"):
            store.put(str(each), f"disks/fleet/{each.name}", recursive=True)
        yield json.dumps(options)


def elsewhere(rows: list[dict[str, Any]], here: str, there: str) -> list[dict[str, Any]]:
    """Return the rows with paths below `there`."""
    made = []
    for row in rows:
        said = {}
        for name, value in row.items():
            if name == "damage":  # only headers are read of a local file, but an object completely, with checksums
                continue
            said[name] = value.replace(here, there) if isinstance(value, str) else value
        made.append(said)
    return sorted(made, key=str)


EVERY = ("segments", "batches", "records", "findings", "index_entries", "checkpoints")


@pytest.mark.every_disk
@pytest.mark.parametrize("table", EVERY)
@pytest.mark.parametrize("split", [None, 512])
def test_s3_is_as_the_disk(s3: str, disk: Path, table: str, split: int | None) -> None:
    options = {"splitBytes": split} if split else {}
    local = same.rows(table, [disk], **options)
    remote = same.rows(table, ["s3://disks/fleet/clean-2"], storageOptions=s3, **options)
    assert local
    assert elsewhere(remote, "", "") == elsewhere(local, str(disk.parent), "s3://disks/fleet")


@pytest.mark.every_disk
def test_s3_in_a_session(spark: Any, s3: str, disk: Path) -> None:
    reader = spark.read.format("kdump").option("table", "records").option("storageOptions", s3)
    rows = reader.load("s3://disks/*/*").select("broker", "offset", "value").collect()
    expected = same.rows("records", [disk, FIXTURES / "diverged-1"], ["broker", "offset", "value"])
    assert sorted(map(str, (row.asDict() for row in rows))) == sorted(map(str, expected))


@pytest.mark.every_disk
def test_a_single_object_of_s3(s3: str) -> None:
    of_a_segment("s3://disks/fleet/clean-2", storageOptions=s3)


def of_a_segment(disk: str, **options: Any) -> None:
    """Check that a URL of a segment alone is read, and that its broker is known."""
    path = "ledger-0/00000000000000000000.log"
    rows = same.rows("batches", [f"{disk}/{path}"], **options)
    expected = same.cli_batches(FIXTURES / "clean-2" / path)
    assert [row["position"] for row in rows] == [row["position"] for row in expected]
    assert {row["broker"] for row in rows} == {"2"}


@pytest.mark.every_disk
def test_a_store_that_is_not_there_is_a_finding() -> None:
    gone = json.dumps(
        {
            "endpoint_url": "http://127.0.0.1:9",
            "key": "a",
            "secret": "b",
            "config_kwargs": {"retries": {"max_attempts": 0}},
        }
    )
    with pytest.raises(OptionError, match="or the store cannot be reached"):
        same.rows("batches", ["s3://disks/x-0/00000000000000000000.log"], storageOptions=gone)
    (finding,) = same.rows("findings", ["s3://disks/x-0/00000000000000000000.log"], storageOptions=gone)
    assert (finding["code"], finding["severity"]) == ("unreadable-bytes", "error")
    assert "127.0.0.1:9" in finding["message"]


def test_memory_and_file_urls(disk: Path) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for path in disk.rglob("*"):
        if path.is_file():
            store.pipe(f"/clean-2/{path.relative_to(disk)}", path.read_bytes())
    for table in EVERY:
        local = same.rows(table, [disk])
        assert local
        for options in ({}, {"splitBytes": 512}):
            memory = same.rows(table, ["memory://clean-2"], **options)
            assert elsewhere(memory, "", "") == elsewhere(local, str(disk), "memory://clean-2")
        assert same.rows(table, [f"file://{disk}"]) == local
    of_a_segment("memory://clean-2")


def test_groups_and_assignments_at_urls(tmp_path: Path) -> None:
    """What the coordinators' logs and the metadata say is that of the disk at a local path."""
    import fsspec

    disk = FIXTURES / "clean-1"
    store = fsspec.filesystem("memory")
    for path in disk.rglob("*"):
        if path.is_file():
            store.pipe(f"/groups/{path.relative_to(disk)}", path.read_bytes())
    found = []
    for number, path in enumerate((str(disk), "memory://groups", f"file://{disk}")):
        out = Store(str(tmp_path / str(number)))
        sources = same.scanned(Here(), ScanQuery((path,)), out).sources.sources
        read_cluster(out, "x.parquet", "c", None, sources[0].path)
        (logs,) = divided(coordinator_logs(sources), 1)
        names = read_coordinators(out, logs, Limits())
        tables = [*(f"{COORDINATORS.name}/{name}" for name in sorted(names)), f"{CLUSTERS.name}/x.parquet"]
        found.append([pq.read_table(out.path(name)).drop_columns(["source"]).to_pylist() for name in tables])
    offsets, shares, assigned = found[0]
    groups = [row["groupId"] for row in offsets if row["kind"] == GROUP]
    assert {"group-classic", "group-consumer", "tx-group"} <= {*groups}
    assert len(assigned) > 20
    assert shares
    assert found[1:] == [found[0]] * 2


def test_a_place_comes_once(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    (fleet / "a").symlink_to(FIXTURES / "clean-2")
    alone = same.rows("batches", [FIXTURES / "clean-2"], ["position"])
    every = [FIXTURES / "clean-2", f"{FIXTURES}/clean-[2]", fleet, FIXTURES / "clean-2" / "ledger-0"]
    every.append(FIXTURES / "clean-2" / "ledger-0" / "00000000000000000000.log")
    assert same.rows("batches", every, ["position"]) == alone


def test_copies_of_one_disk_are_told_apart(tmp_path: Path) -> None:
    copy = shutil.copytree(FIXTURES / "clean-2", tmp_path / "copy")
    rows = same.rows("segments", [FIXTURES / "clean-2", copy, FIXTURES / "clean-1"])
    assert {(row["source"], row["copyOf"]) for row in rows} == {
        (str(FIXTURES / "clean-2"), None),
        (str(copy), str(FIXTURES / "clean-2")),
        (str(FIXTURES / "clean-1"), None),
    }
    # They are different directories of a broker: a partition in both is not a duplicate.
    codes = {row["code"] for row in same.rows("findings", [FIXTURES / "clean-2", copy])}
    assert "partition-duplicate" not in codes


def test_copies_from_before_there_were_ids(tmp_path: Path) -> None:
    disk = DISKS / "kafka-2.8-legacy"
    copy, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(disk, copy)
    other.mkdir()
    shutil.copy(disk / "meta.properties", other)
    shutil.copytree(FIXTURES / "clean-1" / "users-0", other / "users-0")
    rows = same.rows("segments", [disk, copy, other], ["source", "copyOf", "broker"])
    found = {row["source"]: (row["copyOf"], row["broker"]) for row in rows}
    assert found == {str(disk): (None, "1"), str(copy): (str(disk), "1"), str(other): (None, "1")}


def test_a_broker_by_option() -> None:
    paths = [FIXTURES / "diverged-1", FIXTURES / "diverged-2", FIXTURES / "clean-2"]
    brokers = json.dumps({str(FIXTURES / "diverged-1"): "7", str(FIXTURES / "clean-2"): "9"})
    rows = same.rows("batches", paths, ["source", "broker"], brokers=brokers, broker="8")
    found = {(os.path.basename(row["source"]), row["broker"]) for row in rows}
    assert found == {("diverged-1", "7"), ("diverged-2", "8"), ("clean-2", "2")}


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    disk = shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk")
    log = disk / "ledger-0" / "00000000000000000000.log"
    log.rename(tmp_path / "kept.log")
    os.mkfifo(log)  # a reader would wait for these forever
    (tmp_path / "empty").mkdir()
    paths = [disk, tmp_path / "empty", tmp_path / "nowhere", f"{tmp_path}/no*thing"]
    assert {row["topic"] for row in same.rows("records", paths[:2], ["topic"])} == {"__cluster_metadata"}
    unread = [row for row in same.rows("findings", paths) if row["code"] == "unreadable-bytes"]
    assert sorted((row["file"], row["topic"]) for row in unread) == [
        (str(tmp_path / "disk" / "ledger-0" / log.name), "ledger"),
        (str(tmp_path / "empty"), None),
        (f"{tmp_path}/no*thing", None),
        (str(tmp_path / "nowhere"), None),
    ]
