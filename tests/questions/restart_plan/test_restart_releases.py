"""What differs between releases at a startup: each declared difference changes a plan, on damaged copies of a disk of
4.3, and nothing else does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kdump
from kdump.format.kafka_release import LINES, NEWEST, KafkaRelease, parse_release
from kdump.questions.restart_plan.answer import RestartPlan
from kdump.state.releases import DIFFERENCES
from tests import command
from tests.conftest import FIXTURES

FUTURE = "ledger-0.0123456789abcdef0123456789abcdef-future"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))


def zookeeper(disk: Path) -> None:
    """Make the disk one of a broker with ZooKeeper."""
    shutil.rmtree(disk / "__cluster_metadata-0")
    (disk / "bootstrap.checkpoint").unlink(missing_ok=True)
    (disk / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=FN96DRb6S3GeSIQS03itlw\n")


def plan(disk: Path, version: str | None = None, **options: object) -> RestartPlan:
    return kdump.restart_plan([str(disk)], kafka_version=version, **options)  # type: ignore[no-any-return]


def exceptions(found: RestartPlan) -> list[str]:
    return [f"{stop.kind} {stop.exception.partition(':')[0]}" for stop in found.allStops]


Change = Callable[[Path], object]


def _bad_number(disk: Path) -> None:
    (disk / "ledger-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 zero\n")


def _entry_of_version_1(disk: Path) -> None:
    """An INT16 of which earlier releases read the first byte alone."""
    (disk / "ledger-0" / "00000000000000000000.txnindex").write_bytes(b"\0\1" + bytes(32))


def _metadata_without_snapshot(disk: Path) -> None:
    """A metadata log that starts above offset 0, and no snapshot from which to load what came before."""
    log = disk / "__cluster_metadata-0"
    for path in [*log.glob("*.checkpoint"), *log.glob("00000000000000000000.*")]:
        path.unlink()
    (log / "00000000000000000376.log").touch()


CASES: list[tuple[str, Change, str, str, str, str]] = [
    # difference, damage, release with it, effect, release without it, effect
    (
        "META_CREATED",
        lambda disk: (disk / "meta.properties").unlink(),
        "3.6-zk",
        "",
        "3.6-kraft",
        "exit KafkaException",
    ),
    ("META_VERSION_0", lambda disk: None, "3.9-zk", "exit RuntimeException", "4.3", ""),
    ("META_VERSION_1", zookeeper, "3.3-kraft", "exit RuntimeException", "3.4-kraft", ""),
    ("CHECKPOINT_NUMBERS", _bad_number, "3.1-zk", "exit NumberFormatException", "3.0-zk", "exit IOException"),
    ("STORAGE_EXCEPTION", _bad_number, "3.0-zk", "exit IOException", "3.2-zk", "exit NumberFormatException"),
    (
        "REMOTE_CACHE_KNOWN",
        lambda disk: (disk / "remote-log-index-cache").mkdir(),
        "3.5-zk",
        "",
        "3.4-zk",
        "exit KafkaException",
    ),
    (
        "STRAY_NAMES",
        lambda disk: shutil.copytree(disk / "ledger-0", disk / FUTURE.replace("future", "stray")),
        "3.6.1-zk",
        "",
        "3.6.0-zk",
        "exit KafkaException",
    ),
    (
        "FUTURE_BESIDE",
        lambda disk: shutil.copytree(disk / "ledger-0", disk / FUTURE),
        "3.6-zk",
        "offline KafkaStorageException",
        "3.9-zk",
        "",
    ),
    ("SNAPSHOTS_REQUIRED", _metadata_without_snapshot, "4.3", "exit IllegalStateException", "3.2-kraft", ""),
    ("TXN_INDEX_VERSION", _entry_of_version_1, "4.4", "exit KafkaException", "4.3", ""),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_difference_changes_the_plan(disk: Path, case: tuple[str, Change, str, str, str, str]) -> None:
    name, change, with_it, effect, without, other = case
    change(disk)
    if "zk" in with_it and name not in ("META_CREATED", "META_VERSION_0"):
        zookeeper(disk)
    difference = DIFFERENCES[name]
    for version, expected, applies in ((with_it, effect, True), (without, other, False)):
        found = plan(disk, version)
        assert found.release is not None
        release = parse_release(version)._replace(mode=found.release.mode)
        assert difference.applies(release) is applies
        refused = [stop for stop in exceptions(found) if stop != "exit IllegalArgumentException"]
        assert refused[:1] == ([expected] if expected else []), (version, found.allStops)


def test_strays_are_deleted_up_to_3_6(disk: Path) -> None:
    """A partition of which the metadata knows nothing is deleted, or renamed from 3.7 on; and no release deletes one
    while another has no topic ID."""
    at = shutil.copytree(disk / "ledger-0", disk / "unknown-0")
    (at / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n")
    for version, deleted in (("3.6-kraft", True), ("3.7-kraft", False), ("4.3", False)):
        (found,) = [each for each in plan(disk, version).partitions if each.stray]
        assert (found.topic, found.strayDeleted) == ("unknown", deleted)
        assert found.copyFirst == ([str(at)] if deleted else [])
    assert not any(each.stray for each in plan(disk, "3.9-zk").partitions)
    (disk / "ledger-0" / "partition.metadata").unlink()
    found_without = plan(disk, "3.6-kraft")
    assert not any(each.stray for each in found_without.partitions)
    assert "no partition.metadata" in found_without.directories[0].warnings[0]


def test_quorum_state(disk: Path) -> None:
    """3.7 and earlier clear one that is not JSON; data_version 1 is read since 3.8, and only from 3.7 on is a version
    looked at."""
    path = disk / "__cluster_metadata-0" / "quorum-state"
    path.write_text("garbage\n")
    assert any(step.file == str(path) for each in plan(disk, "3.7-kraft").partitions for step in each.steps)
    assert "exit UncheckedIOException" in exceptions(plan(disk, "3.8-kraft"))
    path.write_text('{"leaderId":0,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"","data_version":1}\n')
    assert "exit RuntimeException" in exceptions(plan(disk, "3.6-kraft"))
    assert "exit UnsupportedVersionException" in exceptions(plan(disk, "3.7-kraft"))
    assert not any("quorum-state" in str(each.file) for each in plan(disk, "3.8-kraft").allStops)
    voters = '"clusterId":"","appliedOffset":0,"currentVoters":[{"voterId":0}]'
    path.write_text(f'{{"leaderId":0,"leaderEpoch":1,"votedId":-1,{voters},"data_version":7}}\n')
    assert not any("quorum-state" in str(each.file) for each in plan(disk, "3.6-kraft").allStops)
    assert "exit IllegalStateException" in exceptions(plan(disk, "3.8-kraft"))


def test_an_older_release_does_not_read_newer_metadata(disk: Path) -> None:
    found = plan(disk, "4.2")
    assert found.verdict == "stopped"
    assert "metadata.version is 4.3-IV0, which Kafka 4.2 does not support" in found.stops[0].message
    assert exceptions(plan(disk, "4.3.0")) == []


def test_swap_files_in_2_8(disk: Path) -> None:
    """2.8 recovers a .log.swap and deletes the indexes; 3.0 renames all .swap files."""
    zookeeper(disk)
    log = disk / "ledger-0" / "00000000000000000000.log"
    shutil.copy(log, f"{log}.swap")
    steps = {
        version: [(step.kind, Path(step.file).name) for step in _ledger(plan(disk, version)).steps]
        for version in ("2.8", "3.0-zk")
    }
    assert ("recover", f"{log.name}.swap") in steps["2.8"]
    assert ("recover", f"{log.name}.swap") not in steps["3.0-zk"]
    for found in steps.values():
        assert ("delete", log.name) in found
        assert ("rename", f"{log.name}.swap") in found
    for version in steps:
        assert _ledger(plan(disk, version)).logEndOffset == 65


def _ledger(found: RestartPlan):  # type: ignore[no-untyped-def]
    return next(each for each in found.partitions if each.topic == "ledger")


@pytest.mark.parametrize(
    ("change", "version", "source", "doubt"),
    [
        (lambda disk: None, "4.3", "disk", ""),
        (zookeeper, "3.9", "disk", "it may be any from 3.7 to 3.9"),
        (lambda disk: (zookeeper(disk), (disk / ".kafka_cleanshutdown").unlink()), "3.9", "disk", "from 2.8 to 3.9"),
        (lambda disk: (zookeeper(disk), (disk / ".kafka_cleanshutdown").write_text("")), "3.6", "disk", "2.8 to 3.6"),
        (
            lambda disk: (
                zookeeper(disk),
                (disk / ".kafka_cleanshutdown").unlink(),
                (disk / "ledger-0" / "partition.metadata").unlink(),
            ),
            "2.8",
            "disk",
            "",
        ),
        (
            lambda disk: shutil.rmtree(disk / "__cluster_metadata-0"),
            NEWEST.number,
            "disk",
            f"it may be any from 3.7 to {NEWEST.major}.{NEWEST.minor}",
        ),
    ],
)
def test_the_release_that_the_disk_states(
    disk: Path, change: Callable[[Path], object], version: str, source: str, doubt: str
) -> None:
    change(disk)
    found = plan(disk).release
    assert found is not None
    assert (found.version, found.source) == (version, source)
    assert doubt in found.doubt
    assert bool(doubt) == bool(found.doubt)


def test_an_old_disk_is_of_2_8_or_older(disk: Path) -> None:
    """Without partition.metadata, which 2.8 writes first; before 0.11 without log-start-offset-checkpoint, too."""
    zookeeper(disk)
    for path in disk.rglob("partition.metadata"):
        path.unlink()
    (disk / ".kafka_cleanshutdown").unlink()
    for older in ("2.8", "0.10"):
        found = plan(disk).release
        assert found is not None
        assert (found.version, found.diskVersion, found.mode) == ("2.8", f"{older} or older", "zookeeper")
        line = command.run("restart-plan", disk).stdout.splitlines()[1]
        assert line.startswith(f"release: Kafka {older} or older with ZooKeeper, because ")
        assert "rules as of 2.8" in line
        (disk / "log-start-offset-checkpoint").unlink(missing_ok=True)


def test_every_release_loads_a_healthy_log(disk: Path) -> None:
    """With ZooKeeper no release truncates, deletes or sets aside anything."""
    zookeeper(disk)
    for version in _with_zookeeper():
        found = plan(disk, version)
        assert (found.verdict, found.loses, found.allStops) == ("clean", False, []), version


def _with_zookeeper() -> Iterator[str]:
    for major, minor in LINES:
        if major < 4:
            yield f"{major}.{minor}-zk"


def test_the_second_line(disk: Path) -> None:
    lines = command.run("restart-plan", disk).stdout.splitlines()
    assert lines[1].startswith("release: Kafka 4.3, because broker 2 registered with metadata.version up to 4.3-IV0")
    lines = command.run("restart-plan", disk, "--kafka-version", "cp-8.2").stdout.splitlines()
    assert lines[1] == "release: Kafka 4.2 (--kafka-version); the disk is that of 4.3; rules as of 4.2, untried"
    result = command.run("restart-plan", disk, "--kafka-version", "1.1")
    assert result.exit_code == 2
    assert "does not know Kafka 1.1" in result.stderr
    assert "cp-7.0" in result.stderr


def test_every_difference_is_consulted() -> None:
    sources = "\n".join(
        path.read_text() for path in Path(kdump.__file__).parent.rglob("*.py") if path.name != "releases.py"
    )
    unused = {name for name in DIFFERENCES if name not in sources}
    assert not unused
    assert all(isinstance(each.releases, str) and each.does and each.where for each in DIFFERENCES.values())
    assert not DIFFERENCES["META_CREATED"].applies(KafkaRelease(4, 3, 1, "kraft"))
