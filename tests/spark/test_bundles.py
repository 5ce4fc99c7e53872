"""The data source and `kdump scan` read bundles as they read the disks that these were made of."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdump.io.mounted_paths import unmount_paths
from kdump.problems import catalogue
from kdump.spark.scan_answer import ScanQuery
from kdump.spark.store import Store, StoreError
from kdump.spark.unit_sums import sum_entries
from kdump.tables.declarations import TABLES, UNITS
from kdump.tables.read_options import OptionError
from tests.conftest import DISKS, FIXTURES, sample
from tests.damages import DAMAGES, DISK_PATHS, Damage, aged, copy_disk
from tests.questions.bundle.test_command import LEFT_OUT, TIERED, bundled, healthy, healthy_disks, unknown_keys
from tests.spark import same
from tests.spark.test_incremental import Here, run

NOW = 1_800_000_000_000
OF_DISK = [name for name in TABLES if name != "records"]
KAFKA = DISKS / "kafka-4.3"
UNKNOWN = unknown_keys()["logSegment"]


def read(table: str, path: Path, here: Path) -> list[str]:
    """Return the rows of a table, with paths relative to the disk. Left out is what a bundle does not have, findings
    inside batches, and that only a bundle knows the host of a disk without IDs."""
    found = []
    for row in same.rows(table, [path], now=NOW):
        if table == "segments":
            row = {name: value for name, value in row.items() if name not in UNKNOWN}
        if table == "findings" and catalogue.findings()[row["code"]].family == "records":
            continue
        if table == "findings" and "of the inner message" in row["message"]:
            continue
        if row.get("identifiedBy") == "host and path":
            row["identifiedBy"] = "path"
        found.append(str({name: _inside(value, path, here) for name, value in row.items()}))
    return sorted(found)


def _inside(value: Any, path: Path, here: Path) -> Any:
    return value.replace(str(path), str(here)) if isinstance(value, str) else value


def assert_same_tables(disk: Path, bundle: Path) -> None:
    for table in OF_DISK:
        assert read(table, bundle, disk) == read(table, disk, disk), table


@pytest.fixture(autouse=True)
def _unmounted() -> Any:
    yield
    unmount_paths()


@pytest.mark.parametrize("name", healthy_disks(TIERED))
def test_the_tables_of_a_healthy_disk(name: str, tmp_path: Path) -> None:
    disk = healthy(name, tmp_path)
    bundled(disk, tmp_path / "b", "--tar", str(tmp_path / "b.tar"))
    assert_same_tables(disk, tmp_path / "b.tar")


@pytest.mark.sampled
@pytest.mark.parametrize("damage", sample(DAMAGES, 500, "bundle tables"), ids=lambda damage: damage.name)
def test_the_tables_of_a_damaged_disk(damage: Damage, tmp_path: Path) -> None:
    disk = copy_disk(DISKS / DISK_PATHS[damage.disk], tmp_path / "disk")
    damage.apply(disk)
    aged(disk)
    if damage.name not in LEFT_OUT:
        assert_same_tables(disk, bundled(disk, tmp_path / "b"))


def test_records_are_those_that_are_in_the_bundle(tmp_path: Path) -> None:
    disk = FIXTURES / "clean-1"
    bundle = bundled(disk, tmp_path / "b", "--records", "orders-*")
    here = [row for row in same.rows("records", [bundle]) if row["topic"].startswith("orders-")]
    there = [row for row in same.rows("records", [disk]) if row["topic"].startswith("orders-")]
    assert len(here) == len(there) > 0
    assert [row["value"] for row in here] == [row["value"] for row in there]
    assert not any(row["topic"] == "payments" for row in same.rows("records", [bundle]))


@pytest.mark.every_disk
def test_a_fleet_of_bundles(tmp_path: Path) -> None:
    """Bundles in one directory, and the disk of one of them: the copy is recognized by its IDs."""
    (tmp_path / "bundles").mkdir()
    for name in ("clean-1", "clean-2"):
        bundled(KAFKA / name, tmp_path / name, "--tar", str(tmp_path / "bundles" / f"{name}.tar"))
    paths = (str(tmp_path / "bundles"), str(KAFKA / "clean-1"))
    found = same.scanned(Here(), ScanQuery(paths), Store(str(tmp_path / "out")))
    assert [(each.path, each.identity.broker, each.identity.copyOf) for each in found.sources.sources] == [
        (f"{tmp_path}/bundles/clean-1.tar", "1", None),
        (f"{tmp_path}/bundles/clean-2.tar", "2", None),
        (str(KAFKA / "clean-1"), "1", f"{tmp_path}/bundles/clean-1.tar"),
    ]
    again = same.scanned(Here(), ScanQuery(paths), Store(str(tmp_path / "out")))
    assert (again.read, again.kept) == (0, found.read)
    # The same files, with more in the bundle: they are read again.
    bundled(KAFKA / "clean-2", tmp_path / "more", "--records", "*", "--tar", str(tmp_path / "more.tar"))
    shutil.move(tmp_path / "more.tar", tmp_path / "bundles" / "clean-2.tar")
    more = same.scanned(Here(), ScanQuery(paths), Store(str(tmp_path / "out")))
    assert more.read == 2  # its partitions


@pytest.mark.every_disk
def test_a_directory_with_bundles_and_more(tmp_path: Path) -> None:
    """What is next to the bundles is read, too, and what is left of a bundle is named."""
    here = tmp_path / "incident"
    bundled(KAFKA / "clean-1", here / "broker-1")
    shutil.copytree(KAFKA / "clean-2", here / "broker-2")
    (here / "notes").mkdir()
    (here / "notes" / "read.me").write_text("")
    found = same.scanned(Here(), ScanQuery((str(here),)), Store(str(tmp_path / "out")))
    assert {each.path for each in found.sources.sources} == {f"{here}/broker-1", f"{here}/broker-2"}
    assert found.sources.unreadable == []
    assert {row["source"] for row in same.rows("segments", [here], now=NOW)} == {f"{here}/broker-1", f"{here}/broker-2"}

    bundled(KAFKA / "clean-0", here / "broker-0", "--tar", str(here / "broker-3.tar"))
    (here / "broker-0" / "kdump-bundle.json").unlink()
    os.truncate(here / "broker-3.tar", 300)
    (here / "broker-4.tar").touch()
    found = same.scanned(Here(), ScanQuery((str(here),)), Store(str(tmp_path / "out")))
    assert {path for path, _ in found.sources.unreadable} == {f"{here}/broker-0", f"{here}/broker-3.tar"}
    assert f"{here}/broker-4.tar" in {each.path for each in found.sources.sources}  # an empty file, reported as one


def test_a_log_directory_with_a_bundle_in_it(tmp_path: Path) -> None:
    """The log directory is read; for a broker, the bundle is an unknown directory."""
    disk = shutil.copytree(KAFKA / "clean-2", tmp_path / "disk")
    shutil.move(bundled(KAFKA / "clean-1", tmp_path / "one.bundle"), disk)
    found = same.scanned(Here(), ScanQuery((str(disk),)), Store(str(tmp_path / "out")))
    assert {each.path for each in found.sources.sources} == {str(disk)}
    codes = sum_entries(Store(str(tmp_path / "out")), found.names(UNITS.name)).codes
    assert codes["directory-unknown", "error"] == 1


def test_what_is_not_in_the_bundle_is_counted(tmp_path: Path) -> None:
    bundle = bundled(FIXTURES / "clean-1", tmp_path / "b")
    verified = same.cli_objects("verify", "--json", str(bundle))[-1]
    unmount_paths()
    found = run(bundle, tmp_path / "out", records=False)
    sums = sum_entries(Store(str(tmp_path / "out")), found.names(UNITS.name))
    assert dict(sums.withheld) == verified["notInBundle"] != {}


def test_disks_without_ids(tmp_path: Path) -> None:
    """A bundle's host and path stand in for the IDs; two that remain the same are refused by name."""
    disk = tmp_path / "disk" / "kafka-logs"
    shutil.copytree(FIXTURES / "clean-2" / "ledger-0", disk / "ledger-0")
    (disk / "replication-offset-checkpoint").write_text("0\n0\n")
    one = bundled(disk, tmp_path / "one")
    two = bundled(disk, tmp_path / "two")
    store = Store(str(tmp_path / "out"))
    with pytest.raises(StoreError, match=r"/one and \S*/two are both bundles of \S+:\S*/kafka-logs, without meta"):
        same.scanned(Here(), ScanQuery((str(one), str(two))), store)
    with pytest.raises(OptionError, match=r"/one and \S*/two are both bundles of \S+, without .* the option brokers"):
        same.rows("segments", [one, two], now=NOW)
    assert same.rows("segments", [one, two], now=NOW, brokers=json.dumps({str(one): "1", str(two): "2"}))
    options = ScanQuery((str(one), str(two)), brokers=[(str(one), "1"), (str(two), "2")])
    found = same.scanned(Here(), options, store).sources.sources
    assert [(each.identity.broker, each.identity.identifiedBy) for each in found] == [
        ("1", "host and path"),
        ("2", "host and path"),
    ]
    manifest = two / "kdump-bundle.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "host": "another"}))
    found = same.scanned(Here(), ScanQuery((str(one), str(two), str(disk))), store).sources.sources
    assert [each.identity.identifiedBy for each in found] == ["host and path", "host and path", "path"]


@pytest.mark.every_disk
def test_a_disk_without_ids_and_its_bundle(tmp_path: Path) -> None:
    """They are copies of each other if the bundle was made on this host, of this path or one that leads to it."""
    disk = tmp_path / "disk" / "kafka-logs"
    shutil.copytree(FIXTURES / "clean-2" / "ledger-0", disk / "ledger-0")
    (disk / "replication-offset-checkpoint").write_text("0\n0\n")
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    other = shutil.copytree(disk, tmp_path / "other")

    def copies(*paths: Path, brokers: dict[str, str] | None = None) -> dict[str, str | None]:
        """Return what each path is a copy of: in a scan, and the same in the data source."""
        given = tuple(map(str, paths))
        options = ScanQuery(given, brokers=[*(brokers or {}).items()])
        found = same.scanned(Here(), options, Store(str(tmp_path / "out"))).sources.sources
        rows = same.rows("segments", paths, now=NOW, brokers=json.dumps(brokers or {}))
        scanned = {each.path: each.identity.copyOf for each in found}
        assert scanned == {row["source"]: row["copyOf"] for row in rows}
        return scanned

    for number, made_of in enumerate((disk, tmp_path / "link" / "kafka-logs")):
        bundle = bundled(made_of, tmp_path / f"bundle-{number}")
        assert copies(disk, bundle) == {str(disk): None, str(bundle): str(disk)}
        assert copies(bundle, other, disk) == {str(bundle): None, str(other): None, str(disk): str(bundle)}
        assert copies(disk, bundle, brokers={str(bundle): "2"}) == {str(disk): None, str(bundle): None}
    manifest = bundle / "kdump-bundle.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "host": "another"}))
    assert copies(disk, bundle) == {str(disk): None, str(bundle): None}


def test_bundles_of_a_partition(tmp_path: Path) -> None:
    """Of a partition, as of a log directory: the same place is refused, and the disk is known."""
    made_of = shutil.copytree(FIXTURES / "clean-2" / "ledger-0", tmp_path / "kafka-logs" / "ledger-0")
    one, two = (bundled(made_of, tmp_path / name) for name in ("one", "two"))
    with pytest.raises(StoreError, match=r"/one and \S*/two are both bundles of \S+:\S*/ledger-0, without meta"):
        same.scanned(Here(), ScanQuery((str(one), str(two))), Store(str(tmp_path / "out")))
    with pytest.raises(OptionError, match=r"/one and \S*/two are both bundles of \S+, without .* the option brokers"):
        same.rows("segments", [one, two], now=NOW)
    found = same.scanned(Here(), ScanQuery((str(one), str(made_of))), Store(str(tmp_path / "out"))).sources.sources
    assert {each.path: each.identity.copyOf for each in found} == {str(one): None, str(made_of): str(one)}


def test_copies_of_a_partition(tmp_path: Path) -> None:
    """The same partition of the same disk, twice: known by the IDs of the log directory."""
    for name in ("a", "b"):
        shutil.copytree(KAFKA / "clean-1", tmp_path / name)
    paths = [str(tmp_path / disk / name) for name in ("payments-0", "ledger-0") for disk in "ab"]
    found = same.scanned(Here(), ScanQuery(tuple(paths)), Store(str(tmp_path / "out"))).sources.sources
    copies = {paths[0]: None, paths[1]: paths[0], paths[2]: None, paths[3]: paths[2]}
    assert {each.path: each.identity.copyOf for each in found} == copies


def test_a_damaged_mount_is_not_read(tmp_path: Path) -> None:
    bundle = bundled(FIXTURES / "clean-2", tmp_path / "b")
    (bundle / "kdump-bundle.json").write_text("{}")
    found = same.scanned(Here(), ScanQuery((str(bundle),)), Store(str(tmp_path / "out")))
    ((path, text),) = found.sources.unreadable
    assert path == str(bundle)
    assert "kdump-bundle.json is not that of a bundle" in text
