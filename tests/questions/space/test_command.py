"""`kdump space`: what may be deleted on a full disk."""

from __future__ import annotations

import glob
import json
import os
import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kdump
from kdump.check.options import Options
from kdump.format.index import TIME_INDEX_ENTRY
from kdump.io.run import PLAIN_RUN, Run
from kdump.kafka.startup_space import needed_to_start
from kdump.log import indexed_timestamp
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.questions.space import disks
from kdump.questions.space.disks import FileSystem
from kdump.questions.space.replica_copies import ReplicaCopies
from kdump.questions.space.run import read_brokers
from kdump.questions.space.usage import PartitionUsage, partition_usage, root_usage
from tests import command
from tests.conftest import DISKS, FIXTURES, sample, seeded
from tests.damages import copy_disk
from tests.questions.retention.retention_cases import CASES, DAY, Case, Made, keyed, write
from tools.retention_trials import checkpoint

NOW = ("--now", "2026-11-21T08:00")
CLOCK = 1795248000000
DEFAULTS = ("--properties", Path(__file__).parent / "space-server.properties")
"""A broker with Kafka's own defaults: no log directory shows that."""
CLEAN = FIXTURES / "clean-1"
CLUSTER = DISKS / "kafka-4.3"
TRIALS = Path(__file__).parents[3] / "docs" / "space-trials.json"
run = partial(command.run, "space")
refused = partial(command.refused, "space")


def rows(*args: str | Path, status: int | None = 0) -> dict[str, list[dict[str, Any]]]:
    result = run(*args, "--json", *NOW, *DEFAULTS)
    assert status is None or result.exit_code == status, (result.exit_code, result.stderr)
    found: dict[str, list[dict[str, Any]]] = {}
    for line in result.stdout.splitlines():
        value = json.loads(line)
        found.setdefault(value["type"], []).append(value)
    return found


def full_at(monkeypatch: pytest.MonkeyPatch, *, total: int = 10 << 20, free: int = 0, reserved: int = 0) -> None:
    """Make every directory one of a file system with so many bytes free."""
    made = FileSystem(1, "/disk", "ext4", "/dev/sdb1", total, total - free - reserved, free, reserved)
    monkeypatch.setattr(disks, "file_system_of", lambda directory: made)


def steps_of(found: dict[str, list[dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [each for each in found.get("spaceStep", []) if each["step"] == name]


def by_hand(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the steps that remove segments, so that a stopped broker has room to start."""
    return [each for each in found.get("spaceStep", []) if each["paths"] and each["cost"] in ("due", "records")]


def segments(ages: list[int], now: int) -> Made:
    """Return a partition with a segment of each age, in days."""
    return Made([keyed(n * 4, now - age * DAY, value=b"v" * 3000) for n, age in enumerate(ages)])


HOSTS = ("orders-none", "orders-lz4", "orders-zstd")


def disk_of(source: Path, root: Path) -> Path:
    """Return a copy of partitions with a checkpoint, as only a broker's own disk has it."""
    copy_disk(source, root)
    (root / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return root


def random_disk(root: Path, dice: random.Random) -> Path:
    """Return a copy of a broker's disk with logs of several segments, and with what a broker and people leave there."""
    disk_of(CLEAN, root)
    ends, marks, starts = {}, {}, {}
    for topic in HOSTS:
        ages = sorted((dice.randrange(20) for _ in range(dice.randrange(1, 7))), reverse=True)
        ends[topic] = write(root / f"{topic}-0", segments(ages, CLOCK))
        marks[topic] = ends[topic] if dice.random() < 0.7 else dice.randrange(ends[topic] + 1)
        if dice.random() < 0.3:
            starts[topic] = dice.randrange(ends[topic])
    checkpoint(root / "recovery-point-offset-checkpoint", ends)
    checkpoint(root / "replication-offset-checkpoint", marks)
    checkpoint(root / "log-start-offset-checkpoint", starts)
    if dice.random() < 0.5:
        (root / ".kafka_cleanshutdown").unlink(missing_ok=True)
    here = root / f"{dice.choice(HOSTS)}-0"
    for number in range(dice.randrange(3)):
        (here / f"{number:020}.log.deleted").write_bytes(bytes(9000))
    if dice.random() < 0.5:
        shutil.copytree(here, root / f"gone-0.{'a' * 32}-delete")
    if dice.random() < 0.5:
        stray = shutil.copytree(here, root / f"lost-0.{'b' * 32}-stray")
        if dice.random() < 0.5:
            (stray / "partition.metadata").write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    if dice.random() < 0.5:
        (root / "core.4711").write_bytes(b"c" * 100_000)
    return root


@pytest.mark.sampled
@pytest.mark.parametrize("number", sample(range(25), 12, "offered"))
def test_what_is_offered_can_go(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model: after all file steps, a startup loses nothing, and each log begins where retention would let it begin."""
    root = random_disk(tmp_path / "disk", seeded(f"space {number}"))
    full_at(monkeypatch)
    before = kdump.restart_plan([str(root)])
    first_kept: dict[str, int] = {}
    for answer in kdump.retention(str(root), now=CLOCK):
        if type(answer).__name__ == "SegmentRetention" and answer.topic in HOSTS and answer.deletion != "now":
            first_kept.setdefault(answer.topic, answer.baseOffset)
    found = rows(root, status=None)
    take(found.get("spaceStep", []))
    after = kdump.restart_plan([str(root)])
    assert not any(each.stops for each in after.partitions), after
    for old, new in zip(live(before), live(after), strict=True):
        assert (old.name, old.logEndOffset, new.loses) == (new.name, new.logEndOffset, False)
        assert not new.missing
        if old.topic in HOSTS:
            limit = max([first_kept.get(old.topic, 0), *stated(found, old.topic)])
            active = max(int(path.stem) for path in (root / f"{old.topic}-0").glob("*.log"))
            first = min(int(path.stem) for path in (root / f"{old.topic}-0").glob("*.log"))
            assert first <= max(limit, 0) or first == active


def live(plan: Any) -> list[Any]:
    return sorted((each for each in plan.partitions if not each.state), key=lambda each: each.name)


def stated(found: dict[str, list[dict[str, Any]]], topic: str) -> list[int]:
    steps = [each for each in by_hand(found) if each["topic"] == topic]
    return [start["logStartOffset"] for each in steps for start in each["logStartOffsets"]]


def take(steps: list[dict[str, Any]]) -> None:
    """Remove what the steps name."""
    for step in steps:
        for pattern in step["paths"]:
            for path in glob.glob(pattern):
                shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()


def occupied(root: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in root.rglob("*"))


def without_metadata(root: Path) -> None:
    """Empty the metadata log, as a startup of 4.x does whose recovery of it fails with an IOException."""
    for path in (root / "__cluster_metadata-0").glob("0*"):
        path.write_bytes(b"") if path.suffix == ".log" else path.unlink()


@pytest.mark.sampled
@pytest.mark.parametrize("number", sample(range(16), 4, "enough"))
def test_enough_is_said_only_if_the_broker_can_start(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model: what is free after the file steps is compared with what the broker needs."""
    dice = seeded(f"space room {number}")
    root = random_disk(tmp_path / "disk", dice)
    free = dice.choice((0, 100_000, 900_000, 1_000_000, 1_100_000))
    if dice.random() < 0.4:
        without_metadata(root)
    if dice.random() < 0.4:
        (root / "heap.hprof").write_bytes(bytes(1 << 20))
    full_at(monkeypatch, total=dice.choice((1000, 1 << 20, 10 << 20)) + free, free=free)
    need = dice.choice(((), ("--need", "1"), ("--need", "60k")))
    before = occupied(root)
    found = rows(root, *need, status=None)
    (summary,) = found["space"]
    text = run(root, *need, *NOW, *DEFAULTS).stdout
    assert ("ENOUGH TO START" in text) == (summary["missingToStart"] > 0)
    assert ("MAY NOT BE ENOUGH TO START" in text) == (summary["missingToStart"] > 0 and free > 0)
    take([each for each in found.get("spaceStep", []) if each["needs"] != "running"])
    missing = summary["neededToStart"] - free - (before - occupied(root))
    assert abs(summary["missingToStart"] - max(0, missing)) <= 64 << 10, "directories that are gone have a size, too"
    if missing > 64 << 10:
        assert summary["isEnough"] is False
        assert summary["missingToStart"] > 0


def test_what_is_due_under_unknown_configs_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata log of a broker may be empty, after it was started on a full disk: another disk has it."""
    root = copy_disk(CLUSTER / "clean-1", tmp_path / "disk")
    end = write(root / "ledger-0", segments([20, 19, 18, 1], CLOCK))
    for name in ("recovery-point-offset", "replication-offset"):
        checkpoint(root / f"{name}-checkpoint", {"ledger": end})
    full_at(monkeypatch, total=1 << 20)
    assert by_hand(rows(root, status=None))
    without_metadata(root)
    own = tmp_path / "server.properties"
    own.write_text("log.retention.ms=86400000\nlog.cleanup.policy=delete\n")
    for properties in (DEFAULTS, ("--properties", own)):
        values = [json.loads(line) for line in run(root, "--json", *NOW, *properties).stdout.splitlines()]
        assert not by_hand({"spaceStep": [each for each in values if each["type"] == "spaceStep"]}), (
            "it may have its own"
        )
        (summary,) = (each for each in values if each["type"] == "space")
        assert summary["isEnough"] is False
        assert summary["unknownTopics"] > 0
        assert any(each["type"] == "spaceKept" and "--with" in each["text"] for each in values)
    text = run(root, *NOW, *DEFAULTS).stdout
    assert "UNKNOWN CONFIGS of" in text
    assert "NOT ENOUGH TO START" in text
    found = rows(root, "--with", CLUSTER / "clean-2", status=None)
    assert by_hand(found)
    assert not found["space"][0]["unknownTopics"]


def test_damaged_metadata_is_stated(tmp_path: Path) -> None:
    root = copy_disk(CLUSTER / "clean-1", tmp_path / "disk")
    assert rows(root)["space"][0]["metadataProblem"] is None
    (log,) = (root / "__cluster_metadata-0").glob("*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[:-5])
    assert "torn" in rows(root)["space"][0]["metadataProblem"]
    assert "configs may be outdated: " in run(root, *NOW).stdout.splitlines()[0]
    # A start on a full disk empties the log, but no snapshot: configs may have been changed after that.
    log.write_bytes(b"")
    found = rows(root)
    assert "is empty" in found["space"][0]["metadataProblem"]
    assert found["space"][0]["unknownTopics"] > 0
    assert not by_hand(found)


TIMES = (b"", bytes(12), bytes(36), None, "padded", "cut", "unsorted")


def damaged_time_index(path: Path, dice: random.Random) -> None:
    kind = dice.choice(TIMES)
    data = path.read_bytes()
    if kind is None:
        path.unlink()
    elif isinstance(kind, bytes):
        path.write_bytes(kind)
    elif kind == "unsorted":
        path.write_bytes(data + TIME_INDEX_ENTRY.struct.pack(5, 7))
    else:
        path.write_bytes(data + bytes(24) if kind == "padded" else data + b"\1\2\3")


@pytest.mark.parametrize("number", range(30))
def test_damaged_time_indexes_count_as_they_do_for_retention(number: int, tmp_path: Path) -> None:
    """Twins: `retention` reads every batch. Each knows which segments the broker recovers."""
    dice = seeded(f"space times {number}")
    folder = tmp_path / "t-0"
    ages = sorted((dice.randrange(20) for _ in range(6)), reverse=True)
    end = write(folder, segments(ages, CLOCK))
    for path in folder.glob("*.log"):
        os.utime(path, ((CLOCK - dice.randrange(20) * DAY) / 1000,) * 2)
        if dice.random() < 0.6:
            damaged_time_index(path.with_suffix(".timeindex"), dice)
        if dice.random() < 0.1:
            path.with_suffix(".index").unlink()
    checkpoint(tmp_path / "replication-offset-checkpoint", {"t": end})
    if dice.random() < 0.8:
        checkpoint(tmp_path / "recovery-point-offset-checkpoint", {"t": dice.randrange(end + 1)})
    if dice.random() < 0.5:
        (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    lines = command.run("retention", tmp_path, "--json", *NOW).stdout.splitlines()
    told = [value for value in map(json.loads, lines) if value["type"] == "retentionSegment"]
    due = [each for each in told if each["deletion"] == "now" and not each["isActive"]]
    found = steps_of(rows(tmp_path, status=None), "retentionDue")
    assert sum(each["files"] for each in found) == len(due)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_retention_and_space_agree_on_what_is_due(case: Case, tmp_path: Path) -> None:
    """Twins: `retention` reads every header, `space` time indexes. Only the active segment is never counted here."""
    made = case.make(CLOCK)
    write(tmp_path / "t-0", made)
    for name, offset in (("log-start-offset", made.log_start), ("replication-offset", 1 << 40)):
        if offset is not None:
            checkpoint(tmp_path / f"{name}-checkpoint", {"t": offset})
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    configs = [each for name, value in case.configs.items() for each in ("--config", f"{name}={value}")]
    lines = command.run("retention", tmp_path, "--json", *NOW, *configs).stdout.splitlines()
    told = [value for value in map(json.loads, lines) if value["type"] == "retentionSegment"]
    due = [each for each in told if each["deletion"] == "now" and not each["isActive"]]
    held = [each for each in told if each["deletion"] == "held" and each["blockedBy"] == "damage"]
    found = steps_of(rows(tmp_path, *configs, status=None), "retentionDue")
    assert sum(each["files"] for each in found) == len(due) or held


def test_lower_retention_frees_what_retention_then_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value states what it frees in addition to the one above it, and the log start offset that results."""
    root = disk_of(CLEAN, tmp_path / "disk")
    end = write(root / "orders-none-0", segments([6, 5, 4, 3, 2, 1], CLOCK))
    for name in ("recovery-point-offset", "replication-offset"):
        checkpoint(root / f"{name}-checkpoint", {"orders-none": end})
    full_at(monkeypatch)
    found = [row for row in steps_of(rows(root, status=1), "retention") if row["topic"] == "orders-none"]
    assert {row["config"] for row in found} == {"retention.ms"}
    assert len(found) >= 3
    total = 0
    for row in found:
        kept = [
            each.baseOffset
            for each in kdump.retention(
                str(root / "orders-none-0"), now=CLOCK, config={row["config"]: str(row["value"])}
            )
            if type(each).__name__ == "SegmentRetention" and (each.deletion != "now" or each.isActive)
        ]
        assert row["logStartOffsets"] == [{"partition": 0, "logStartOffset": kept[0]}]
        total += row["frees"]
        gone = [path for path in (root / "orders-none-0").iterdir() if path.suffix and int(path.stem) < kept[0]]
        assert total == sum(path.stat().st_blocks * 512 for path in gone)
        assert f"--entity-name orders-none --add-config retention.ms={row['value']}" in row["command"]
        assert row["undo"].endswith("--delete-config retention.ms")


def test_nothing_above_the_high_watermark_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ledger has two replicas; with one, the high watermark would be the log end offset."""
    root = copy_disk(CLUSTER / "clean-1", tmp_path / "disk")
    end = write(root / "ledger-0", segments([20, 19, 18, 17], CLOCK))
    checkpoint(root / "recovery-point-offset-checkpoint", {"ledger": end})
    full_at(monkeypatch)
    for mark, due in ((end, 3), (8, 2), (7, 1), (0, 0)):
        checkpoint(root / "replication-offset-checkpoint", {"ledger": mark})
        found = rows(root, "--topic", "ledger", status=1)
        assert sum(each["files"] for each in steps_of(found, "retentionDue")) == due
        assert sum(len(each["paths"]) for each in by_hand(found)) == 3 * due


def test_a_stopped_broker_first_needs_room_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    write(root / "orders-none-0", segments([20, 19, 18, 1], CLOCK))
    full_at(monkeypatch)
    found = rows(root, status=1)
    (step,) = by_hand(found)
    assert step["how"] == "files"
    assert step["needs"] == "stopped"
    assert step["cost"] == "due"
    assert [Path(path).name for path in step["paths"][::3]] == [f"{n * 4:020}.log" for n in range(3)]
    assert found["space"][0]["verdict"] == "full"
    assert any("do not start" in each["text"] for each in found["spaceKept"])
    text = run(root, *NOW, *DEFAULTS).stdout
    assert text.startswith(f"{root}: DISK FULL: 0 bytes free")
    assert "rm -f" in text
    full_at(monkeypatch, free=9 << 20)
    found = rows(root)
    assert not by_hand(found)
    assert not any("do not start" in each["text"] for each in found["spaceKept"])


def test_what_is_due_only_by_assumed_defaults_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """server.properties may have another log.retention.hours, or log.cleanup.policy."""
    root = disk_of(CLEAN, tmp_path / "disk")
    write(root / "orders-none-0", segments([20, 19, 18, 1], CLOCK))
    full_at(monkeypatch)
    values = [json.loads(line) for line in run(root, "--json", *NOW).stdout.splitlines()]
    (due,) = (each for each in values if each.get("step") == "retentionDue")
    assert due["isEstimate"]
    assert not due["paths"]
    assert any(each["type"] == "spaceKept" and "--properties" in each["text"] for each in values)
    assert by_hand(rows(root, status=1))
    own = ("--config", "retention.ms=86400000", "--config", "cleanup.policy=delete")
    values = [json.loads(line) for line in run(root, "--json", *NOW, *own).stdout.splitlines()]
    assert by_hand({"spaceStep": [each for each in values if each["type"] == "spaceStep"]})


def needed(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [each["step"] for each in found["spaceStep"] if each["isNeeded"]]


def test_what_is_needed_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    write(root / "orders-none-0", segments([20, 6, 3, 1], CLOCK))
    (root / "core.4711").write_bytes(b"c" * 900_000)
    full_at(monkeypatch, free=9 << 20)
    assert needed(rows(root, "--need", "1k")) == ["retentionDue"]
    more = rows(root, "--need", "500k")
    assert needed(more) == ["retentionDue", "otherFiles"]
    assert len(more["spaceStep"]) > 2
    text = run(root, "--need", "500k", *NOW, *DEFAULTS).stdout
    assert "not needed" in text
    assert "retention.ms=" not in text, "how to do what is not needed takes --full"
    found = rows(root, "--need", "1G", status=1)
    assert found["space"][0]["isEnough"] is False
    assert needed(found) == [each["step"] for each in found["spaceStep"]]


def test_the_cheapest_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_at(monkeypatch, total=20 << 30, reserved=1 << 30)
    root = random_disk(tmp_path / "disk", seeded("order"))
    (root / "core.4711").write_bytes(b"c" * 100_000)
    found = rows(root, status=1)
    steps = found["spaceStep"]
    costs = [each["cost"] for each in steps]
    assert costs == sorted(costs, key=("nothing", "due", "judge", "replica", "records").index)
    assert [each["number"] for each in steps] == list(range(1, len(steps) + 1))
    assert "tune2fs -m 0 /dev/sdb1" in [each["command"] for each in steps]
    free = found["spaceDirectory"][0]["free"]
    for each in steps:
        free += each["frees"]
        assert each["freeThen"] == free


def brokers(other: Path) -> tuple[ReplicaCopies, PartitionUsage]:
    """Return broker 2's copies, of which it leads ledger-0, and broker 1's replica."""
    (one,), disks = read_brokers([str(CLUSTER / "clean-1")], PLAIN_RUN)
    (two,), _ = read_brokers([str(other)], PLAIN_RUN)
    copies = ReplicaCopies([two], disks.newest_metadata()[1], Options(), {})
    place = next(each for each in one.directories[0].partitions if each.name == "ledger-0")
    return copies, partition_usage(place, PLAIN_RUN)


def follower(root: Path) -> Path:
    """Return a copy of broker 2's disk with the same ledger-0 as broker 1 has."""
    copy_disk(CLUSTER / "clean-2", root)
    shutil.rmtree(root / "ledger-0")
    copy_disk(CLUSTER / "clean-1" / "ledger-0", root / "ledger-0")
    return root


def registered(copies: ReplicaCopies, **changes: Any) -> None:
    assert copies.metadata is not None
    copies.metadata.topics["ledger"].configs["unclean.leader.election.enable"] = "false"
    partitions = copies.metadata.topics["ledger"].partitions
    partitions[0] = partitions[0]._replace(**{"leader": 2, "isr": (2,), "eligibleLeaderReplicas": (), **changes})


def missing_records() -> str:
    """Return why the replica that ends later may not go."""
    copies, usage = brokers(CLUSTER / "clean-2")
    registered(copies)
    return copies.verdict(usage, 1, None).why


def test_a_replica_is_offered_only_if_the_cluster_can_do_without_it(tmp_path: Path) -> None:
    assert "ends at 70, the leader's copy at 65" in missing_records()
    copies, usage = brokers(follower(tmp_path / "disk"))
    registered(copies)
    found = copies.verdict(usage, 1, None)
    assert (found.may_go, found.stays_on) == (True, (2,))
    for changes, why in (
        ({"leader": 1}, "leads"),
        ({"isr": (1, 2)}, "in its ISR"),
        ({"eligibleLeaderReplicas": (1,)}, "in its ELR"),
        ({"leader": -1, "isr": ()}, "no leader"),
    ):
        registered(copies, **changes)
        found = copies.verdict(usage, 1, None)
        assert not found.may_go
        assert why in found.why
    registered(copies)
    assert copies.metadata is not None
    copies.metadata.topics["ledger"].configs["unclean.leader.election.enable"] = "true"
    assert "unclean" in copies.verdict(usage, 1, None).why


def test_a_replica_that_the_leader_lacks_is_not_offered(tmp_path: Path) -> None:
    root = follower(tmp_path / "disk")
    epochs = root / "ledger-0" / "leader-epoch-checkpoint"
    before = epochs.read_text()
    version, count, *entries = before.splitlines()
    epochs.write_text("\n".join([version, str(int(count) + 1), *entries, "9 30", ""]))
    copies, usage = brokers(root)
    registered(copies)
    assert "diverge" in copies.verdict(usage, 1, None).why
    epochs.write_text(before)
    copies, usage = brokers(root)
    registered(copies)
    assert copies.verdict(usage, 1, None).may_go
    assert "ends at" in copies.verdict(usage, 1, 1 << 40).why
    shutil.rmtree(root / "ledger-0")
    copies, usage = brokers(root)
    registered(copies)
    assert "not among the paths" in copies.verdict(usage, 1, None).why


def test_brokers_are_told_apart() -> None:
    found = rows(CLUSTER / "clean-1", "--with", CLUSTER / "clean-2")
    assert any("replica not offered" in each["text"] for each in found["spaceKept"])
    assert run(CLUSTER / "clean-1", "--with", CLUSTER / "clean-1").exit_code == 2
    assert "--with" in refused(CLUSTER / "clean-1", CLUSTER / "clean-2")


def test_a_stray_directory_whose_fate_is_unknown_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    stray = shutil.copytree(root / "orders-none-0", root / f"lost-0.{'b' * 32}-stray")
    full_at(monkeypatch)
    (stray / "partition.metadata").unlink(missing_ok=True)
    found = rows(root, status=1)
    assert not steps_of(found, "stray")
    assert any(each["path"] == str(stray) and not each["isForbidden"] for each in found["spaceKept"])
    (stray / "partition.metadata").write_text("version: 0\ntopic_id: pP1dXJ1nQGmUFh2wsbRm4Q")
    assert [each["paths"] for each in steps_of(rows(root, status=1), "stray")] == [[str(stray)]]


def test_a_file_with_several_names_occupies_its_space_once(tmp_path: Path) -> None:
    """As du counts, in each command that states what a log directory occupies."""
    disk = copy_disk(FIXTURES / "clean-2", tmp_path / "disk")
    shutil.copytree(disk / "ledger-0", disk / "ledger-1", copy_function=os.link)
    shutil.copytree(disk / "ledger-0", disk / "backup", copy_function=os.link)
    files = [path.stat() for path in disk.rglob("*") if path.is_file()]
    below = [path.stat() for path in disk.glob("*-*/*") if path.is_file()]

    def occupied(found: list[os.stat_result]) -> int:
        return sum({state.st_ino: state.st_blocks * 512 for state in found}.values())

    (stated,) = [row for row in command.objects("space", disk) if row["type"] == "spaceDirectory"]
    assert stated["allocated"] == occupied([*files, (disk / "backup").stat()])
    assert stated["linkedBytes"] == occupied([state for state in files if state.st_nlink > 1]) > 0
    (stated,) = [row for row in command.objects("ls", disk) if row["type"] == "logDirectory"]
    assert stated["onDisk"] == occupied(below)
    lines = command.run("doctor", disk, "--json").stdout.splitlines()
    largest = [row for row in map(json.loads, lines) if row["type"] == "doctorLargest"]
    assert sum(row["onDisk"] for row in largest) == stated["onDisk"]


def test_a_bundle_answers_as_its_disk(tmp_path: Path) -> None:
    root = random_disk(tmp_path / "disk", seeded("bundle"))
    assert command.run("bundle", root, "--out", tmp_path / "b").exit_code == 0
    disk, bundle = rows(root, status=None), rows(tmp_path / "b", status=None)
    assert disk["spaceTopic"] == bundle["spaceTopic"]
    of_disk, of_bundle = disk["spaceDirectory"][0], bundle["spaceDirectory"][0]
    unknown = {
        *("path", "broker", "mount", "fileSystem", "device", "total", "free", "reserved", "inodesFree"),
        *("elsewhere", "unknownBecause"),
    }
    assert {key for key in of_disk if of_disk[key] != of_bundle[key]} <= {"path", *unknown}
    assert of_bundle["free"] is None
    assert bundle["space"][0]["broker"] == bundle["space"][0]["verdict"] == "unknown"
    assert of_bundle["unknownBecause"] == "a bundle"
    assert of_disk["unknownBecause"] is None


def test_the_host_of_a_copy_is_not_judged(tmp_path: Path) -> None:
    """A copy of partitions lies on any host: neither its free space nor its locks are those of the broker's disk."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("orders-none-0", "payments-0"):
        shutil.copytree(CLEAN / name, copy / name)
    found = rows(copy, status=2)
    (summary,), (directory,) = found["space"], found["spaceDirectory"]
    assert (summary["verdict"], summary["broker"], summary["isEnough"]) == ("unknown", "unknown", None)
    assert [directory[key] for key in ("total", "free", "elsewhere", "isClean", "neededToStart")] == [None] * 5
    assert directory["allocated"] > 0
    assert {each["topic"] for each in found["spaceTopic"]} == {"orders-none", "payments"}
    result = run(copy, *NOW, *DEFAULTS)
    assert result.exit_code == 2
    assert "UNKNOWN: a copy of partitions, without a broker's own files" in result.stdout
    assert "ENOUGH" not in result.stdout
    assert "--need" in result.stdout
    found = rows(copy, "--need", "1", status=None)
    assert found["space"][0]["isEnough"] is not None, "what to free is stated"
    (copy / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert rows(copy, status=None)["space"][0]["verdict"] != "unknown"


def test_few_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One time index for each partition, and more only where segments are due."""
    root = disk_of(CLEAN, tmp_path / "disk")
    write(root / "orders-none-0", segments([1] * 50, CLOCK))
    opened = []
    before = indexed_timestamp.open_index
    monkeypatch.setattr(indexed_timestamp, "open_index", lambda path: opened.append(path) or before(path))
    rows(root, "--need", "1")
    assert 0 < len(opened) <= len(list(root.glob("*-0"))) + 60


def two_file_systems(monkeypatch: pytest.MonkeyPatch, free: dict[str, int], total: int = 40 << 20) -> None:
    """Put each log directory on a file system of its own, with so many bytes free."""
    made = {
        name: FileSystem(number, f"/{name}", "ext4", f"/dev/{name}", total, total - room, room, 0)
        for number, (name, room) in enumerate(free.items())
    }
    monkeypatch.setattr(disks, "file_system_of", lambda directory: made[Path(directory.path).name])


def two_directories(tmp_path: Path, ages: dict[str, list[int]]) -> tuple[Path, Path]:
    """Return the log directories of one broker, each with segments of these ages in a topic of its own."""
    one, two = disk_of(CLEAN, tmp_path / "one"), tmp_path / "two"
    two.mkdir()
    for root, letter in ((one, "E"), (two, "F")):
        text = f"version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAA{letter}Q\n"
        (root / "meta.properties").write_text(text)
    shutil.move(one / "orders-lz4-0", two / "orders-lz4-0")
    for root, topic in ((one, "orders-none"), (two, "orders-lz4")):
        end = write(root / f"{topic}-0", segments(ages[root.name], CLOCK))
        for name in ("recovery-point-offset", "replication-offset"):
            checkpoint(root / f"{name}-checkpoint", {topic: end})
    return one, two


def test_space_on_one_file_system_is_no_help_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = two_directories(tmp_path, {"one": [20, 19, 1], "two": [6, 5, 4, 1]})
    two_file_systems(monkeypatch, {"one": 39 << 20, "two": 0})
    found = rows(one, two, status=1)
    assert found["space"][0]["verdict"] == "full"
    assert found["space"][0]["isEnough"] is False
    assert {each["topic"] for each in steps_of(found, "retention") if each["isNeeded"]} == {"orders-lz4"}
    steps = by_hand(found)
    assert all(path.startswith(f"{two}/") for each in steps for path in each["paths"])
    assert {each["cost"] for each in steps} == {"records"}, "due only under the value of that step"
    two_file_systems(monkeypatch, {"one": 39 << 20, "two": 39 << 20})
    assert rows(one, two)["space"][0]["verdict"] == "enough"


def test_each_full_file_system_needs_room_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = two_directories(tmp_path, {"one": [20, 19, 1], "two": [20, 19, 1]})
    two_file_systems(monkeypatch, {"one": 0, "two": 0})
    steps = [each for each in by_hand(rows(one, two, status=1)) if each["cost"] == "due"]
    assert {each["mount"] for each in steps} == {"/one", "/two"}
    assert len(steps) == 2


def test_no_records_are_given_up_where_other_files_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due makes room all the same: whether the other files are needed is for you to say."""
    root = disk_of(CLEAN, tmp_path / "disk")
    write(root / "orders-none-0", segments([6, 5, 4, 1], CLOCK))
    (root / "core.4711").write_bytes(b"c" * 9_000_000)
    full_at(monkeypatch)
    found = rows(root)
    assert needed(found) == ["otherFiles"]
    assert not by_hand(found)
    write(root / "orders-none-0", segments([9, 5, 4, 1], CLOCK))
    found = rows(root)
    assert needed(found) == ["retentionDue", "otherFiles"]
    assert [each["step"] for each in by_hand(found)] == ["retentionDue"]


def test_a_file_with_further_hard_links_frees_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    end = write(root / "orders-none-0", segments([20, 19, 18, 1], CLOCK))
    checkpoint(root / "replication-offset-checkpoint", {"orders-none": end})
    full_at(monkeypatch, free=9 << 20)
    (before,) = steps_of(rows(root), "retentionDue")
    backup = tmp_path / "backup"
    backup.mkdir()
    for path in (root / "orders-none-0").iterdir():
        (backup / path.name).hardlink_to(path)
    found = rows(root)
    (after,) = steps_of(found, "retentionDue")
    assert after["files"] == before["files"] == 3
    assert before["frees"] > after["frees"] == 0
    linked = found["spaceDirectory"][0]["linkedBytes"]
    assert linked >= before["frees"]
    assert any(each["allocated"] == linked and "hard links" in each["text"] for each in found["spaceKept"])


def test_cleaned_files_go_only_without_swap_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    here = root / "orders-none-0"
    (here / f"{0:020}.log.cleaned").write_bytes(bytes(9000))
    full_at(monkeypatch)
    (step,) = steps_of(rows(root, status=1), "deleted")
    assert step["paths"] == [f"{here}/*.cleaned"]
    assert ".cleaned" in step["text"]
    (here / f"{0:020}.log.swap").write_bytes((here / f"{0:020}.log").read_bytes())
    found = rows(root, status=1)
    assert not steps_of(found, "deleted")
    assert any(each["path"].endswith(".swap") and each["isForbidden"] for each in found["spaceKept"])


def test_a_disk_without_inodes_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "disk")
    size = 100 << 20
    made = FileSystem(1, "/disk", "ext4", "/dev/sdb1", size, size // 10, size - size // 10, 0, 3)
    monkeypatch.setattr(disks, "file_system_of", lambda directory: made)
    assert rows(root, status=1)["space"][0]["verdict"] == "full"
    assert "DISK FULL: 90.0 MiB free of 100.0 MiB at /disk (ext4)" in run(root, *NOW).stdout
    assert "3 inodes free at /disk" in run(root, *NOW).stdout


def test_every_path_of_a_command_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk_of(CLEAN, tmp_path / "a disk; touch x")
    (root / "$(reboot)").write_bytes(b"c" * 100_000)
    (root / "orders-none-0" / f"{0:020}.log.deleted").write_bytes(bytes(5000))
    full_at(monkeypatch)
    found = rows(root, status=1)
    commands = [each["command"] for each in found["spaceStep"] if each["how"] == "files"]
    assert commands
    for text in commands:
        assert "'" in text
        assert "; touch" not in text.replace(f"'{root}", "").replace("a disk; touch x", "")


def compacted_disk(root: Path, sizes: list[tuple[int, int]], lone: int = 0) -> Path:
    """Return a disk with a topic of a segment for each number and size of records with the same key, with `lone` bytes
    under a key of its own in each, and an active one."""
    disk_of(CLEAN, root)
    made, offset = [], 0
    for index, (count, size) in enumerate(sizes):
        data = b""
        if lone:
            data += keyed(offset, CLOCK - DAY, 1, key=b"lone%d" % index, value=b"l" * lone)
            offset += 1
        made.append(data + keyed(offset, CLOCK - DAY, count, value=b"v" * size))
        offset += count
    end = write(root / "orders-none-0", Made([*made, keyed(offset, CLOCK, 1)]))
    checkpoint(root / "replication-offset-checkpoint", {"orders-none": end})
    checkpoint(root / "recovery-point-offset-checkpoint", {"orders-none": end})
    return root


def test_the_trials_brought_the_disks_back() -> None:
    """What real brokers did (tools/space_trials.py)."""
    trials = json.loads(TRIALS.read_text())
    assert len(trials) >= 6
    for each in trials:
        assert each["isBack"], each
        assert not each["lost"]
        assert not each["takesRecordsAsItIs"], "the disk was not full enough to matter"
        assert each["freed"] >= 0.9 * each["said"], each


def test_the_page_has_the_number_of_trials() -> None:
    trials = json.loads(TRIALS.read_text())
    assert f"On {len(trials)} file systems of real brokers" in TRIALS.with_name("space.md").read_text()
    for each in trials:
        assert each["freed"] >= each["said"] * 0.99, each["what"]
        assert each["served"] == each["acknowledged"] or each["belowSaidLogStart"], each["what"]


def test_room_to_start_covers_what_brokers_needed() -> None:
    """Measured with 4.3.1: 180 logs needed between 64 and 256 KiB, after either kind of shutdown."""
    for is_clean in (True, False):
        assert needed_to_start(180, is_clean=is_clean) > 4 * 256 << 10


def test_room_for_the_log_cleaner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model: a broker has cleaned all of a log before it deletes the first old segment."""
    root = compacted_disk(tmp_path / "disk", [(4, 100_000)] * 5)
    policy = ("--topic", "orders-none", "--config", "cleanup.policy=compact")
    full_at(monkeypatch, free=1_100_000, total=1_100_000)
    found = rows(root, *policy, "--config", "min.cleanable.dirty.ratio=1", status=None)
    assert not steps_of(found, "postponeCleaning")
    needed = found["space"][0]["neededToStart"]
    found = rows(root, *policy, status=1)
    sizes = [path.stat().st_blocks * 512 for path in sorted((root / "orders-none-0").glob("*.log"))]
    assert 0 <= found["space"][0]["neededToStart"] - needed - max(sizes) <= 64 << 10, "a segment, and its indexes"
    (step,) = steps_of(found, "postponeCleaning")
    assert step["command"].endswith("--entity-name orders-none --add-config min.cleanable.dirty.ratio=1")
    assert step["undo"].endswith("--delete-config min.cleanable.dirty.ratio")
    assert 0 <= step["size"] - sum(sizes[:-1]) <= 64 << 10
    assert "postpone the log cleaner's work of orders-none" in run(root, *policy, *NOW, *DEFAULTS).stdout
    # As soon as everything fits, nothing is postponed.
    full_at(monkeypatch, free=8 << 20, total=8 << 20)
    assert not steps_of(rows(root, *policy), "postponeCleaning")
    # What max.compaction.lag.ms asks for cannot be postponed: it has to fit.
    full_at(monkeypatch, free=1_100_000, total=1_100_000)
    found = rows(root, *policy, "--config", "max.compaction.lag.ms=1000", status=1)
    assert not steps_of(found, "postponeCleaning")
    assert 0 <= found["space"][0]["neededToStart"] - needed - sum(sizes[:-1]) <= 64 << 10
    # What a checkpoint has as clean is not cleaned.
    checkpoint(root / "cleaner-offset-checkpoint", {"orders-none": 16})
    assert rows(root, *policy, status=None)["space"][0]["neededToStart"] == needed


def test_a_directory_that_was_renamed_since_is_not_foreign(tmp_path: Path) -> None:
    """A topic's deletion renames its directories while the log directory is listed."""
    disk = copy_disk(FIXTURES / "clean-1", tmp_path / "disk")
    here = directory_at(str(disk))
    assert isinstance(here, LogDirectory)
    assert here.partitions
    before = len(root_usage(here, PLAIN_RUN).others)
    (disk / "users-0").rename(disk / f"users-0.{'a' * 32}-delete")
    assert len(root_usage(here, PLAIN_RUN).others) == before


def test_a_file_that_cannot_be_looked_at_hides_no_other(tmp_path: Path) -> None:
    """Links that lead to themselves, as an inode that a device does not read: each is named, and all else counts."""
    root = copy_disk(FIXTURES / "clean-1", tmp_path / "disk")
    (root / "lost" / "below").mkdir(parents=True)
    for number in range(9):
        (root / "lost" / "below" / str(number)).write_bytes(bytes(5000))
    unread: list[str] = []

    def used() -> tuple[Any, ...]:
        here = directory_at(str(root))
        assert isinstance(here, LogDirectory)
        run = Run(unreadable=lambda error: unread.append(error.path))
        partitions = sorted((place.path, partition_usage(place, run).all) for place in here.partitions)
        return root_usage(here, run).root, [each.files.size for each in root_usage(here, run).others], partitions

    before = used()
    assert not unread
    links = [place / name for place in (root, root / "payments-0") for name in "amz"]
    for link in links:
        link.symlink_to(link.name)
    assert used() == before
    assert {*unread} == {*map(str, links)}
