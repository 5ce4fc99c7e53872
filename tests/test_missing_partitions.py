"""Partitions whose directories are gone: verify and restart-plan name exactly these, in the first line."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.run import units
from kdump.check.totals import CheckTotals
from kdump.forensics.restart.restart_plan import restart_plan
from kdump.log import kinds
from kdump.log.disk import LogDirectory, place_of
from tests.command import run
from tests.conftest import DISKS, SEED
from tests.restart_recipe import metadata_apart, second

META = "__cluster_metadata-0"
CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
SKELETON = {kinds.META_PROPERTIES, kinds.OFFSET_CHECKPOINT, kinds.CLEAN_SHUTDOWN}


def skeleton(source: Path, target: Path) -> list[str]:
    """Copy a log directory with the metadata log, but with empty partitions. Returns the names of the partitions."""
    place = place_of(str(source))
    assert isinstance(place, LogDirectory)
    target.mkdir()
    for at in place.files.values():
        if at.kind in SKELETON:
            shutil.copy(at.path, target)
    for each in place.partitions:
        (target / each.name).mkdir()
    shutil.copytree(source / META, target / META, dirs_exist_ok=True)
    return [each.name for each in place.partitions if not each.state and each.name != META]


def reported(*paths: Path) -> list[Finding]:
    """Return what verify finds of missing partitions in the log directories."""
    found = units(tuple(map(str, paths)), Options(only=frozenset({"checkpoints"})), pytest.fail)
    roots = [unit for unit in found if unit.directory is not None]
    every = [finding for unit in roots for finding in unit.run(CheckTotals(), lambda count: None)]
    return [finding for finding in every if finding.code == "partition-missing"]


def names(*paths: Path) -> list[str]:
    return sorted(f"{each.topic}-{each.partition}" for each in reported(*paths) if each.severity == "warning")


def planned(*paths: Path) -> list[str]:
    return sorted(each.name for each in restart_plan(map(str, paths)).partitions if each.missing)


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.sampled
@settings(max_examples=100 if SEED else 5)
@given(st.data(), st.sampled_from(["kafka-4.3/clean-1", "kafka-4.3/crash-1", "kafka-4.3-tiered/disk"]), st.booleans())
def test_exactly_what_is_gone_is_named(data: st.DataObject, disk: str, apart: bool) -> None:
    """Any set of partitions is removed. With `apart`, the metadata log is in a directory of its own."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "disk"
        live = skeleton(DISKS / disk, root)
        gone = sorted(data.draw(st.sets(st.sampled_from(live))))
        for each in gone:
            (root / each).rmdir()
        paths = (root, metadata_of(root, root.parent)) if apart else (root,)
        already = ["large-0"] if "crash" in disk else []
        assert names(*paths) == planned(*paths) == sorted(gone + already)


def test_the_first_line_names_them(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    for each in ("orders-none-0", "users-0"):
        (disk / each).rmdir()
    check = run("verify", "--only", "checkpoints", disk).stdout.splitlines()[0]
    assert check.startswith("INCOMPLETE: ")
    assert "; 2 partitions missing (orders-none-0, users-0), " in check
    plan = run("restart-plan", disk, "--topic", "orders-none", "--topic", "users")
    assert "CREATES 2 MISSING PARTITIONS EMPTY (orders-none-0, users-0)" in " ".join(plan.stdout.split())
    assert "below the high watermark 300 are no longer on this disk" in " ".join(plan.stdout.split())
    assert plan.exit_code == 1


def test_a_directory_of_which_only_meta_properties_is_left(root: Path) -> None:
    """The checkpoints are gone, too: only the metadata names the partitions."""
    disk = root / "disk"
    live = skeleton(DISKS / "kafka-4.3/clean-1", disk)
    other = metadata_of(disk, root)
    for each in live:
        (disk / each).rmdir()
    for each in CHECKPOINTS:
        (disk / each).unlink()
    assert names(disk, other) == planned(disk, other) == sorted(live)


def metadata_of(disk: Path, root: Path) -> Path:
    """Move the metadata log to a directory of its own."""
    (disk / "bootstrap.checkpoint").touch()
    other = metadata_apart(disk)
    assert other.parent == root
    return other


def test_what_the_broker_did_not_create_yet_is_not_lost(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    for each in disk.glob("*-checkpoint"):
        lines = [line for line in each.read_text().splitlines()[2:] if not line.startswith("users ")]
        each.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (finding,) = reported(disk)
    assert (finding.severity, "users-0" in finding.message) == ("info", True)
    assert planned(disk) == []


def test_a_partition_in_another_log_directory(root: Path) -> None:
    """Its old directory's checkpoint may still name it. If that other directory is not given, the metadata decides."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    other = second(disk, "users-0")
    assert names(disk, other) == planned(disk, other) == []
    (other / "users-0").rmdir()
    assert names(disk, other) == planned(disk, other) == ["users-0"]


@pytest.mark.parametrize("state", ["delete", "stray", "future"])
def test_a_checkpoint_alone(root: Path, state: str) -> None:
    """Without the cluster's metadata, a directory with a suffix explains why a checkpoint names the partition."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    shutil.rmtree(disk / META)
    (disk / "users-0").rmdir()
    assert names(disk) == planned(disk) == ["users-0"]
    (disk / f"users-0.{'0' * 32}-{state}").mkdir()
    assert names(disk) == planned(disk) == []


def test_a_deleted_topic_is_not_missing(root: Path) -> None:
    """A high watermark that was checkpointed before the topic was deleted: the metadata does not have the topic."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/crash-1", disk)
    path = disk / CHECKPOINTS[0]
    lines = [*path.read_text().splitlines()[2:], "gone 0 20"]
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    assert names(disk) == planned(disk) == ["large-0"]
