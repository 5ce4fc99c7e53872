"""The disks of brokers of every release from 2.8 on, with ZooKeeper and with KRaft, are healthy: nothing says
otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

import kdump
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.release_evidence import disk_release
from tests import command
from tests.conftest import RELEASES, few, sample
from tools.trials.release import RELEASES as TRIED
from tools.trials.release import ReleaseCluster, named
from tools.trials.working import commands

DISKS = [RELEASES / name / disk for name in TRIED for disk in ("clean", "crash")]
CONTROLLERS = sorted(RELEASES.glob("*/controller"))
SLOW = ("report", "scan", "verify --jobs 2")


def quick(disk: Path, out: Path) -> dict[str, list[str]]:
    """Return the command lines by name, without those that start other processes or draw charts."""
    return {name: arguments for name, arguments in commands([disk], out) if name not in SLOW}


def test_all_are_there() -> None:
    assert {path.name for path in RELEASES.iterdir()} == set(TRIED)
    assert all(path.is_dir() for path in DISKS)
    assert len(CONTROLLERS) == sum(release.mode == "kraft" for release in TRIED.values())


@pytest.mark.parametrize("name", few(TRIED, 3))
def test_no_finding(name: str) -> None:
    """A deleted topic is all that there is to report."""
    disks = [disk for disk in (*DISKS, *CONTROLLERS) if disk.parent.name == name]
    *findings, summary = command.objects("verify", *disks)
    assert {(each["code"], each["topic"]) for each in findings if each["severity"] != "info"} == {
        ("directory-stray", "gone")
    }
    assert not summary["unread"]
    assert summary["batches"] > 200


@pytest.mark.sampled
@pytest.mark.parametrize("name", quick(Path("disk"), Path(__file__).parent))
def test_every_command(name: str, tmp_path: Path) -> None:
    """No command fails on any of the disks, or says that something could not be read. (A ZooKeeper cluster has no
    metadata log.)"""
    disks = [disk for disk in DISKS if name != "cluster" or disk.parent.name.endswith("-kraft")]
    for disk in sample(disks, len(disks), name):
        result = command.run(*quick(disk, tmp_path / f"{disk.parent.name}-{disk.name}")[name])
        assert result.exit_code in ((0, 1, 3) if name == "restart-plan" else (0, 1)), (disk, result.stderr)
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize("disk", DISKS, ids=lambda disk: f"{disk.parent.name}-{disk.name}")
def test_the_disk_states_a_release_that_starts(disk: Path) -> None:
    """The true release is among those that the disk leaves possible, and nothing is lost, even though none is named."""
    truth = TRIED[disk.parent.name]
    plan = kdump.restart_plan([str(disk)])
    assert plan.verdict == ("clean" if disk.name == "clean" else "recovery")
    assert not any(partition.loses for partition in plan.partitions)
    assert plan.status == int(bool(plan.course.losses))
    assert {event.code for event in plan.course.losses} <= {"startup-retention"}, "records of years ago"
    assert plan.release.mode == {"zk": "zookeeper", "kraft": "kraft"}[truth.mode]
    found = disk_release([str(disk)], read_metadata(str(disk)))
    assert found.since <= truth.numbers[:2] <= found.until
    assert plan.release.version in (truth.version, ".".join(truth.version.split(".")[:2])) or plan.release.doubt


def test_a_controller_of_4_4_keeps_preallocated_indexes() -> None:
    """Since 4.4, closing a log does not truncate its indexes: after a clean stop, those of the metadata log still have
    their 10 MiB, and no command calls that unclean, wrong or damage."""
    disk = RELEASES / "4.4.0-kraft" / "controller"
    index = disk / "__cluster_metadata-0" / f"{0:020}.index"
    assert index.stat().st_size == 10 << 20
    verified = command.run("verify", disk, "--info")
    assert (verified.exit_code, verified.stdout.splitlines()[0]) == (0, "OK")
    assert "preallocated" in verified.stdout
    assert "what to do" not in verified.stdout
    assert command.run("restart-plan", disk).stdout.splitlines()[0].startswith(f"{disk}: STARTS normally")
    summary = command.objects("reindex", disk)[-1]
    assert (summary["legal"], summary["wrong"]) == (2, 0)


def test_a_release_without_jars_is_not_started(tmp_path: Path) -> None:
    """Otherwise a trial would record that its broker does not start."""
    cluster = ReleaseCluster(named("3.6.2-kraft"), tmp_path, tmp_path, tmp_path / "controller", [tmp_path / "broker"])
    with pytest.raises(FileNotFoundError):
        cluster.java("kafka.Kafka")
