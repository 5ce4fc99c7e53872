"""Partitions whose directories are gone: ls, verify and restart-plan name exactly these, the latter two in the first
line."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdump.check.engine.units import units
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.summary import CheckSummary
from kdump.check.totals import CheckTotals
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_log import read_metadata
from kdump.cluster.missing_partitions import Expected, checkpointed_partitions, missing_partitions
from kdump.kafka.small_files import properties
from kdump.log import file_kinds
from kdump.log.log_directory import LogDirectory, directory_at
from kdump.questions.restart_plan.run import restart_plan
from kdump.questions.verify.run import verify
from tests.command import objects, run, unmatched
from tests.conftest import DISKS, FIXTURES, SEED, numbers_in
from tests.questions.restart_plan.restart_recipe import metadata_apart, second

META = "__cluster_metadata-0"
CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
SKELETON = {file_kinds.META_PROPERTIES, file_kinds.OFFSET_CHECKPOINT, file_kinds.CLEAN_SHUTDOWN}


def skeleton(source: Path, target: Path) -> list[str]:
    """Copy a log directory with the metadata log, but with empty partitions. Returns the names of the partitions."""
    place = directory_at(str(source))
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
    found = units(tuple(map(str, paths)), Options(only=frozenset({"checkpoints"}), unreadable=pytest.fail))
    roots = [unit for unit in found if unit.directory is not None]
    every = [finding for unit in roots for finding in unit.run(CheckTotals())]
    return [finding for finding in every if finding.code == "partition-missing"]


def names(*paths: Path) -> list[str]:
    return sorted(f"{each.topic}-{each.partition}" for each in reported(*paths) if each.severity == "warning")


def planned(*paths: Path) -> list[str]:
    return sorted(each.name for each in restart_plan(map(str, paths)).partitions if each.missing)


def listed(*paths: Path, options: tuple[str, ...] = ()) -> list[str]:
    """Return what ls has in its heads of log directories."""
    answer = run("ls", "--json", "--quick", *paths, *options)
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    return sorted(name for line in lines for name in line.get("absent", ()))


def agreed(*paths: Path) -> list[str]:
    """Return what all commands name."""
    found = names(*paths)
    assert found == planned(*paths) == listed(*paths)
    return found


def agree_on(topic: str, expected: list[str], *paths: Path) -> None:
    """Each command names, of one topic, what it names of it without --topic, also if nothing of the topic is left."""
    option = ("--topic", topic)
    check = run("verify", "--json", "--only", "checkpoints", *paths, *option)
    plan = run("restart-plan", "--json", *paths, *option)
    found = [json.loads(line) for line in (check.stdout + plan.stdout).splitlines()]
    missing = [each for each in found if each.get("code") == "partition-missing"]
    created = [each for each in found if each.get("missing")]
    for each in (missing, created):
        assert sorted(f"{one['topic']}-{one['partition']}" for one in each) == expected
    assert listed(*paths, options=option) == expected
    for answer in (check, plan, run("ls", *paths, *option)):
        assert unmatched(answer.stderr) == []


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.sampled
@settings(max_examples=100 if SEED else 5)
@given(st.data(), st.sampled_from(["kafka-4.3/clean-1", "kafka-4.3/crash-1", "kafka-4.3-tiered/disk"]), st.booleans())
def test_exactly_what_is_gone_is_named(data: st.DataObject, disk: str, apart: bool) -> None:
    """Any set of partitions is removed; those that never had a record are not lost. With `apart`, the metadata log is
    in a directory of its own."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "disk"
        live = skeleton(DISKS / disk, root)
        removed = sorted(data.draw(st.sets(st.sampled_from(live))))
        for each in removed:
            (root / each).rmdir()
        gone = [each for each in removed if any(log.stat().st_size for log in (DISKS / disk / each).glob("*.log"))]
        paths = (root, metadata_of(root, root.parent)) if apart else (root,)
        already = ["large-0"] if "crash" in disk else []
        assert agreed(*paths) == sorted(gone + already)
        created = [each.message for each in reported(*paths) if each.severity == "info"]
        empty = [each for each in removed if each not in gone]
        assert [each.partition(" no records: ")[2] for each in created] == [", ".join(empty)] * bool(empty)
        if removed:
            topic = data.draw(st.sampled_from(empty or gone)).rpartition("-")[0]
            agree_on(topic, sorted(each for each in gone if each.rpartition("-")[0] == topic), *paths)


def test_a_topic_of_which_only_a_partition_without_records_is_gone(root: Path) -> None:
    """It is a topic of the disk: --topic matches it, and nothing is lost, but nothing of it was read, unless another
    disk has it."""
    skeleton(DISKS / "kafka-4.3/clean-1", root / "disk")
    (root / "disk/kafkajs-lz4-0").rmdir()
    agree_on("kafkajs-lz4", [], root / "disk")
    told = f"{root}/disk/kafkajs-lz4-0: it has no directory here, nor any record by the checkpoints; by the metadata on"
    listing = run("ls", root / "disk", "--topic", "kafkajs-lz4")
    assert (listing.exit_code, listing.stderr.startswith(f"kdump: {told}")) == (2, True)
    assert run("ls", root / "disk").exit_code == 0
    for selection in (("kafkajs-lz4",), ("kafkajs-lz4", "users")):
        summary = list(verify([str(root / "disk")], topics=selection))[-1]
        assert isinstance(summary, CheckSummary)
        assert [each.startswith(told) for each in summary.unread] == [True]
        check = run("verify", root / "disk", *(f"--topic={topic}" for topic in selection))
        first = check.stdout.splitlines()[0]
        assert (check.exit_code, first.endswith("; 1 path not read")) == (2, True)
        assert first.startswith("NOTHING WAS READ") is (len(selection) == 1)
    skeleton(DISKS / "kafka-4.3/clean-1", root / "other")
    for command in ("verify", "ls"):
        both = run(command, root / "disk", root / "other", "--topic", "kafkajs-lz4")
        assert both.exit_code == 0, both
    meta = root / "other/meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2").replace("directory.id=N", "directory.id=O"))
    for command in ("verify", "ls"):
        both = run(command, root / "disk", root / "other", "--topic", "kafkajs-lz4")
        assert (both.exit_code, told[:60] in " ".join((both.stdout + both.stderr).split())) == (2, True), both
    [plan] = restart_plan([str(root / "disk")], topics=("users",)).directories
    assert plan.newPartitions == 0


def test_what_a_selection_misses_is_of_the_selection(root: Path) -> None:
    """A partition that is gone is found with its number, and neither hidden by --ignore nor --only."""
    skeleton(DISKS / "kafka-4.3/clean-1", root / "disk")
    (root / "disk/users-0").rmdir()
    for options in ((), ("--partition", "0"), ("--ignore", "partition-missing"), ("--only", "bytes")):
        check = run("verify", root / "disk", "--topic", "users", *options)
        told = (check.stdout + check.stderr).replace("\n  ", " ")
        assert f"{root}/disk/users-0: it has no directory here; by the metadata on the disk no other broker" in told, (
            told
        )
        assert (check.exit_code, unmatched(check.stderr)) == (2, []), options
    other = run("verify", root / "disk", "--topic", "users", "--partition", "7")
    assert (other.exit_code, other.stdout, other.stderr[:27]) == (2, "", "kdump: --partition 7: no ma")


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
    assert plan.exit_code == 1
    lost = {
        each.topic: (each.missing, each.highWatermark) for each in restart_plan([str(disk)]).partitions if each.loses
    }
    assert lost["orders-none"] == (True, 300)


def test_a_directory_of_which_only_meta_properties_is_left(root: Path) -> None:
    """The checkpoints are gone, too: only the metadata names the partitions."""
    disk = root / "disk"
    live = skeleton(DISKS / "kafka-4.3/clean-1", disk)
    other = metadata_of(disk, root)
    for each in live:
        (disk / each).rmdir()
    for each in CHECKPOINTS:
        (disk / each).unlink()
    assert agreed(disk, other) == sorted(live)


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
    assert agreed(disk, other) == []
    (other / "users-0").rmdir()
    assert agreed(disk, other) == ["users-0"]


@pytest.mark.parametrize("state", ["delete", "stray", "future"])
def test_a_checkpoint_alone(root: Path, state: str) -> None:
    """Without the cluster's metadata, a directory with a suffix explains why a checkpoint names the partition."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    shutil.rmtree(disk / META)
    (disk / "users-0").rmdir()
    assert agreed(disk) == ["users-0"]
    (disk / f"users-0.{'0' * 32}-{state}").mkdir()
    assert agreed(disk) == []


def test_a_deleted_topic_is_not_missing(root: Path) -> None:
    """A high watermark that was checkpointed before the topic was deleted: the metadata does not have the topic."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/crash-1", disk)
    path = disk / CHECKPOINTS[0]
    lines = [*path.read_text().splitlines()[2:], "gone 0 20"]
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    assert agreed(disk) == ["large-0"]


def test_a_directory_that_cannot_be_listed_may_have_it(root: Path) -> None:
    """A given one, one below a given one, and one that does not exist, such as one on a disk that is not mounted."""
    disk = root / "above" / "disk"
    disk.parent.mkdir()
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    shutil.rmtree(disk / META)
    other = second(disk, "users-0")
    with hidden(other):
        for paths in ((disk, other), (disk.parent,), (disk, root / "none")):
            answers = [run("verify", "--only", "checkpoints", *paths), run("restart-plan", *paths)]
            for answer in answers:
                assert "MISSING PARTITION" not in answer.stdout, paths
                assert "partition missing" not in answer.stdout, paths
            assert " path not read" in answers[0].stdout.splitlines()[0], paths
    (other / "users-0").rmdir()
    assert set(names(disk, other)) == set(planned(disk, other)) == {"users-0"}


@contextmanager
def hidden(*directories: Path) -> Iterator[None]:
    """Make directories fail as if the user may not list them: root may list any."""
    scandir, paths = os.scandir, {str(path) for path in directories}

    def failing(path: Any = ".") -> Any:
        if os.fspath(path) in paths:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return scandir(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", failing)
        yield


def write(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


@pytest.mark.parametrize("metadata", [True, False])
def test_recovery_points_outweigh_high_watermarks(root: Path, metadata: bool) -> None:
    """High watermarks stay in their checkpoint after the last partition has left the log directory."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    if not metadata:
        shutil.rmtree(disk / META)
    (disk / "users-0").rmdir()
    path = disk / CHECKPOINTS[1]
    write(path, *(line for line in path.read_text().splitlines()[2:] if not line.startswith("users ")))
    assert agreed(disk) == []
    path.unlink()
    assert agreed(disk) == ["users-0"]


BLANK = {
    "empty": b"",
    "only a version": b"0\n",
    "wrong count": b"0\n2\nledger 0 65\n",
    "not a number": b"0\n1\nledger x 65\n",
    "not UTF-8": b"0\n1\n\xff 0 65\n",
}


@pytest.mark.parametrize("content", BLANK.values(), ids=BLANK)
def test_checkpoints_that_are_lost(root: Path, content: bytes) -> None:
    """One that is empty or damaged is as if it were deleted: the other counts, and without it, the metadata alone."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    for name in CHECKPOINTS:
        (disk / name).write_bytes(content)
        os.utime(disk / name, (0, 0))
        assert agreed(disk) == ["users-0"]


HAS, LACKS = b"0\n1\nusers 0 300\n", b"0\n1\nledger 0 65\n"
TORN = {
    "a line too many": b"0\n1\nusers 0 300\nledger 0 65\n",
    "a line lost": b"0\n2\nusers 0 300\n",
    "a malformed line": b"0\n2\nusers 0 300\nledger 0\n",
    "a line with a bad number": b"0\n2\nusers 0 300\nledger x 65\n",
    "another version": b"1\n1\nusers 0 300\n",
}
EVIDENCE: list[tuple[bytes | None, bytes | None, bool, bool]] = [
    # recovery points, high watermarks, whether users-0 is missing: with the metadata, and without
    (HAS, HAS, True, True),
    (HAS, LACKS, True, True),
    (LACKS, HAS, False, False),
    (b"0\n0\n", HAS, False, False),  # written, for no log
    (b"", HAS, True, True),  # a short first run, whose high watermarks name the logs
    (b"", LACKS, False, False),
    (b"", b"", True, False),
    (None, None, True, False),
    (None, LACKS, False, False),
    *((torn, None, True, True) for torn in TORN.values()),
    *((torn, b"", True, True) for torn in TORN.values()),
    *((torn, LACKS, False, False) for torn in TORN.values()),
    *((b"", torn, True, True) for torn in TORN.values()),
    (LACKS[:4] + b"\xff", TORN["a line lost"], True, True),
    (b"0\n2\nledger 0 65\n", b"0\n2\nledger 0 65\n", True, False),  # lines were lost: perhaps that of users-0
]


def put(disk: Path, contents: tuple[bytes | None, ...]) -> None:
    """Replace recovery points and high watermarks; None deletes the file."""
    for name, content in zip(CHECKPOINTS[::-1], contents, strict=True):
        (disk / name).unlink(missing_ok=True)
        if content is not None:
            (disk / name).write_bytes(content)
            os.utime(disk / name, (0, 0))


def test_what_checkpoints_show(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    place = directory_at(str(disk))
    assert isinstance(place, LogDirectory)
    ids, metadata = properties(place.files["meta.properties"]), read_metadata(str(disk))
    for *contents, with_metadata, without in EVIDENCE:
        put(disk, tuple(contents))
        present = {name: at for name, at in place.files.items() if (disk / name).exists()}
        for known, expected in ((metadata, with_metadata), (None, without)):
            found = missing_partitions(Expected.of(str(disk), (), ids, checkpointed_partitions(present), known))
            assert found.lost == [("users", 0)] * expected, (contents, known is not None)


@pytest.mark.every_disk
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("metadata", [True, False])
def test_what_checkpoints_show_the_commands(root: Path, clean: bool, metadata: bool) -> None:
    """How the broker was shut down does not change what they show."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    if not clean:
        (disk / ".kafka_cleanshutdown").unlink()
    if not metadata:
        shutil.rmtree(disk / META)
    for points, marks, *expected in EVIDENCE:
        put(disk, (points, marks))
        assert agreed(disk) == ["users-0"] * expected[not metadata], (points, marks)


def test_what_no_checkpoint_shows(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    (disk / "cleaner-offset-checkpoint").unlink()
    for content, shown in ((b"", []), (HAS, [300])):  # the offsets that checkpoints have
        put(disk, (content, None))
        assert numbers_in(reported(disk)[0].message) == shown


@pytest.mark.parametrize("what", ["file", "link"])
@pytest.mark.parametrize("metadata", [True, False])
def test_something_else_in_its_place(root: Path, what: str, metadata: bool) -> None:
    """LogManager.createLogDirectory fails, and the log directory goes offline."""
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    if not metadata:
        shutil.rmtree(disk / META)
    (disk / "users-0").rmdir()
    if what == "file":
        (disk / "users-0").touch()
    else:
        (disk / "users-0").symlink_to("/mnt/gone/users-0")
    plan = restart_plan([str(disk)])
    (stop,) = plan.allStops
    assert (plan.verdict, stop.kind, stop.file) == ("stopped", "offline", str(disk / "users-0"))
    assert stop.exception == f"FileAlreadyExistsException: {disk / 'users-0'}"
    assert ("/mnt/gone/users-0" in stop.message) == (what == "link")
    (finding,) = reported(disk)
    assert (finding.severity, finding.topic) == ("warning", "users")
    assert "offline" in finding.consequence
    assert ("/mnt/gone/users-0" in finding.message) == (what == "link")


IMPOSSIBLE = [
    "../etc/foo 0 65",
    "a/b 0 65",
    ". 0 65",
    ".. 0 65",
    f"{'a' * 250} 0 65",
    "\x1b[31m\x07 0 65",
    "\u00e9 0 65",
]


def test_impossible_names_are_no_partitions(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    shutil.rmtree(disk / META)
    for name in CHECKPOINTS:
        write(disk / name, "ledger 0 65", f"{'a' * 249} 0 65", "top.ic_x-1 2147483647 65", *IMPOSSIBLE)
    assert agreed(disk) == [f"{'a' * 249}-0", "top.ic_x-1-2147483647"]
    for name in CHECKPOINTS:  # BadLine for a broker
        write(disk / name, "top.ic_x 10000000000 65")
        os.utime(disk / name, (0, 0))
    assert agreed(disk) == []


def test_only_what_exists_can_become_stray(root: Path) -> None:
    disk = root / "disk"
    live = skeleton(DISKS / "kafka-4.3/clean-1", disk)
    shutil.rmtree(disk / META)
    for each in live[1:]:
        (disk / each).rmdir()
    said = " ".join(run("restart-plan", disk).stdout.split())
    assert f"MAY CREATE {len(live) - 1} MISSING PARTITIONS EMPTY" in said  # the cluster may not have them any more
    assert "creates an empty log, if the cluster still has the partition" in said
    assert "MAKES 1 partition STRAY" in said
    (disk / live[0]).rmdir()
    assert "STRAY" not in run("restart-plan", disk).stdout


def test_a_topic_of_which_nothing_is_left(root: Path) -> None:
    disk = root / "disk"
    skeleton(DISKS / "kafka-4.3/clean-1", disk)
    (disk / "users-0").rmdir()
    for command in ("verify", "restart-plan"):
        found = run(command, disk, "--topic", "users")
        assert "users-0" in found.stdout.splitlines()[0], found.stdout
    agree_on("users", ["users-0"], disk)
    assert "directory missing: users-0" in run("ls", disk, "--topic", "users").stdout
    for command in ("ls", "verify", "restart-plan"):
        assert unmatched(run(command, disk, "--topic", "nobody").stderr) == ["--topic nobody"]


def test_two_copies_without_a_partition(root: Path) -> None:
    for name in ("one", "two"):
        skeleton(DISKS / "kafka-4.3/clean-1", root / name)
        (root / name / "users-0").rmdir()
    first = run("verify", "--only", "checkpoints", root / "one", root / "two").stdout.splitlines()[0]
    assert "; 1 partition missing (users-0)" in first


@pytest.mark.parametrize(("offset", "brokers", "expected"), [(0, "", []), (0, "2,", ["ghost-0"]), (5, "", ["ghost-0"])])
def test_what_never_had_a_record_is_not_lost(
    offset: int, brokers: str, expected: list[str], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless another broker has a replica, which may have records: this one may lead."""
    source = DISKS / "kafka-4.3/clean-1"
    [*_] = skeleton(source, root / "disk")
    image = read_metadata(str(source))
    assert image is not None
    topic = next(topic for topic in image.topics.values() if topic.name == "orders-none")
    (root / "disk/orders-none-0").rmdir()
    replicas = [int(each) for each in (brokers + "1").split(",")]
    topic.partitions[0] = topic.partitions[0]._replace(replicas=tuple(replicas))
    for name in CHECKPOINTS:
        path = root / "disk" / name
        path.write_text(re.sub("orders-none 0 .*", f"orders-none 0 {offset}", path.read_text()))
    place = directory_at(str(root / "disk"))
    assert isinstance(place, LogDirectory)
    noted = checkpointed_partitions(place.files)
    made = missing_partitions(Expected.of(place.path, (), properties(place.files["meta.properties"]), noted, image))
    assert ("orders-none", 0) in (made.lost if expected else made.never)


@pytest.mark.parametrize(("written", "is_older"), [(-1, True), (1, False)])
def test_a_high_watermark_of_an_earlier_topic_of_the_name(tmp_path: Path, written: int, *, is_older: bool) -> None:
    """A broker is killed within seconds of creating a topic again: its high watermark is that of the topic before, and
    nothing is lost. A checkpoint that was written after the topic was created is its own."""
    disk = Path(shutil.copytree(FIXTURES / "clean-2", tmp_path / "disk"))
    source, metadata = Disks([directory_at(str(disk))]).newest_metadata()
    created = Disks([]).copies.topic_times(source, metadata.topics["ledger"].id)[0]
    checkpoint = disk / "replication-offset-checkpoint"
    checkpoint.write_text(re.sub("ledger 0 .*", "ledger 0 999", checkpoint.read_text()))
    os.utime(checkpoint, (0, created / 1000 + written))
    findings = [each for each in objects("verify", disk) if each["type"] == "finding"]
    beyond = [each["topic"] for each in findings if each["code"] == "checkpoint-beyond-log"]
    assert beyond == ([] if is_older else ["ledger"])
    plan = next(each for each in restart_plan([str(disk)]).partitions if each.topic == "ledger")
    assert (plan.highWatermark, plan.loses) == ((None, False) if is_older else (999, True))
    of_ledger = next(each for each in objects("retention", disk) if each["type"] == "retention")
    codes = [each["code"] for each in of_ledger["unknown"] if each["key"] == "highWatermark"]
    assert (of_ledger["highWatermark"], codes) == ((None, ["earlierTopic"]) if is_older else (999, []))


@pytest.mark.parametrize("checkpointed", [True, False])
def test_what_alone_names_offsets_in_remote_storage_was_there(tmp_path: Path, checkpointed: bool) -> None:
    """Whether a checkpoint names __remote_log_metadata or not: without it, the broker raises the log start offset over
    what remote storage has (docs/start-trials.json: 4.3.1-remote-metadata-lost)."""
    disk = Path(shutil.copytree(DISKS / "kafka-4.3-tiered" / "disk", tmp_path / "disk"))
    assert not reported(disk)
    shutil.rmtree(disk / "__remote_log_metadata-0")
    for name in CHECKPOINTS if not checkpointed else ():
        (disk / name).write_text("0\n1\ntiered 0 260000\n")
    (finding,) = reported(disk)
    assert finding.severity == "error"
    assert finding.message.endswith("only it names what remote storage has of tiered-0 110377..215208")
    assert run("verify", str(disk)).stdout.startswith("DAMAGED: 1 error")
    (disk / "log-start-offset-checkpoint").write_text("0\n1\ntiered 0 215209\n")  # which makes it needless
    assert [each.severity for each in reported(disk)] == ["warning" if checkpointed else "info"]
