"""Tests of kdump.restart_plan for a node with several directories and for a broker without root permissions, and
properties that hold for all damage."""

from __future__ import annotations

import os
import random
import re
import shutil
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import kdump
from kdump.check.options import Options
from kdump.cluster.metadata_log import read_metadata
from kdump.format.numbers import parse_long
from kdump.format.versioned_messages import uuid_text
from kdump.kafka.server_properties import ServerProperties
from kdump.questions.restart_plan.answer import RestartPlan
from kdump.questions.restart_plan.log_loading.log_files import padded
from kdump.questions.restart_plan.node import access_rights
from kdump.questions.restart_plan.node.access_rights import ENTER, READ, WRITE, Rights
from kdump.questions.restart_plan.node.identity import is_reserved
from tests import command, craft
from tests.conftest import DISKS, FIXTURES, few, numbers_in, sample
from tests.each_case import each_case
from tests.format.test_java_properties import java
from tools.trials.node import USER
from tools.trials.predict import as_user, public_directory

ZERO = f"{0:020}"
MARK = ".kafka_cleanshutdown"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that any user may enter; pytest's own directories are accessible only to the user who runs it."""
    with public_directory() as path:
        yield path


@pytest.fixture
def disk(place: Path) -> Path:
    """Return a writable copy of a broker's log directory."""
    return Path(shutil.copytree(FIXTURES / "clean-2", place / "disk-2"))


def apart(disk: Path) -> Path:
    """Return a metadata.log.dir with the metadata log of a log directory."""
    other = disk.with_name("metadata")
    other.mkdir()
    text = (disk / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("oE8qcd_iUG6Hx2IlmSa0HQ", "THIRDDpABlNgsHloSKd7mg"))
    for name in ("__cluster_metadata-0", "bootstrap.checkpoint"):
        (disk / name).rename(other / name)
    return other


def plan(*paths: Path) -> RestartPlan:
    return kdump.restart_plan(map(str, paths))


def exceptions(found: RestartPlan) -> list[str]:
    return [stop.exception.partition(":")[0] for stop in found.allStops]


# --- metadata.log.dir, and directories that fail ---


def test_metadata_apart(disk: Path) -> None:
    """For a healthy node, verify and restart-plan report nothing, whatever the order of its directories."""
    other = apart(disk)
    for paths in ((disk, other), (other, disk)):
        found = plan(*paths)
        assert (found.verdict, found.status, found.unread) == ("clean", 0, [])
        roles = {each.path: (each.logDir, each.metadataLogDir, each.clean) for each in found.directories}
        assert roles == {str(disk): (True, False, True), str(other): (False, True, None)}
        assert sum(str(other) in each for each in found.assumptions) == 1
        assert command.run("verify", *paths, "--fail-on", "warning").exit_code == 0
    assert not any(each.stray for each in plan(disk, other).partitions)


def test_a_new_log_directory_is_no_error(disk: Path) -> None:
    """The cluster learns of it when the broker starts."""
    other = disk.with_name("new")
    other.mkdir()
    text = (disk / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("oE8qcd_iUG6Hx2IlmSa0HQ", "THIRDDpABlNgsHloSKd7mg"))
    (other / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    found = command.objects("verify", disk, other, status=0)
    assert [each["severity"] for each in found if each.get("code") == "meta-properties-invalid"] == ["warning"]
    assert plan(disk, other).verdict == "recovery"  # the new one has no .kafka_cleanshutdown


@pytest.mark.parametrize("name", ["lost+found", ".Trash-1000", "notes-x"])
def test_other_directories_matter_only_in_log_dirs(disk: Path, name: str) -> None:
    """LogManager lists log.dirs; a metadata.log.dir apart is not listed."""
    other = apart(disk)
    (other / name).mkdir()
    assert (plan(disk, other).verdict, plan(disk, other).status) == ("clean", 0)
    assert command.run("verify", disk, other, "--fail-on", "warning").exit_code == 0
    (disk / name).mkdir()
    assert plan(disk, other).status > 0


OPENED = [".lock", "recovery-point-offset-checkpoint", "cleaner-offset-checkpoint", "meta.properties"]
OPENED += [f"ledger-0/{name}" for name in ("leader-epoch-checkpoint", f"{ZERO}.index", f"{ZERO}.log")]


@pytest.mark.parametrize("release", ["4.3", "3.3"])
@pytest.mark.parametrize("name", OPENED)
def test_what_is_no_missing_right_is_not_called_one(disk: Path, name: str, release: str) -> None:
    """Of a link that leads to itself, and of a directory in place of a file. The exceptions are those of Java 17."""
    path = disk / name
    path.unlink(missing_ok=True)
    for make, reason in ((lambda: path.symlink_to(path.name), "symbolic link"), (path.mkdir, "s a directory")):
        make()
        found = kdump.restart_plan([str(disk)], kafka_version=release)
        stops = [stop for stop in found.allStops if stop.file == str(path)]
        assert stops
        assert not [stop for stop in stops if "permission" in stop.message.lower() or "chown" in stop.remedy]
        assert "ermission" not in "".join(stop.exception for stop in stops)
        if name != "meta.properties":  # Kafka says that there is no readable one
            assert reason in stops[0].exception
        if path.is_symlink():
            assert stops[0].code == f"startup-{'meta-properties-unreadable' if 'meta' in name else 'file-not-opened'}"
            path.unlink()


def test_a_topic_id_that_cannot_be_looked_at_is_missing(disk: Path) -> None:
    """PartitionMetadataFile.exists."""
    path = disk / "ledger-0" / "partition.metadata"
    path.unlink()
    missing = plan(disk)
    path.symlink_to(path.name)
    found = plan(disk)
    assert [each.stray for each in found.partitions] == [each.stray for each in missing.partitions]
    assert found.verdict == missing.verdict
    assert any(each.stray for each in found.partitions)


@pytest.mark.parametrize(("release", "is_deleted"), [("4.3", False), ("3.3", True)])
def test_a_directory_in_place_of_quorum_state(disk: Path, release: str, is_deleted: bool) -> None:
    """It exists for Kafka, and an older node deletes what it cannot read."""
    path = disk / "__cluster_metadata-0" / "quorum-state"
    path.unlink()
    path.mkdir()
    found = kdump.restart_plan([str(disk)], kafka_version=release)
    unreadable = "startup-quorum-state-unreadable"
    assert (unreadable in {stop.code for stop in found.allStops}) == (not is_deleted)
    (path / "file").touch()
    found = kdump.restart_plan([str(disk)], kafka_version=release)
    assert unreadable in {stop.code for stop in found.allStops}


def test_without_a_metadata_log_there_is_no_comfort(disk: Path) -> None:
    shutil.rmtree(apart(disk) / "__cluster_metadata-0")
    result = command.run("restart-plan", disk, disk.with_name("metadata"))
    head = " ".join(result.stdout.split("assumed")[0].split())
    assert result.exit_code == 1
    assert not re.search("loses nothing|nothing is lost", head)
    assert "if the controllers have none either, MAKES 1 partition STRAY" in head


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_metadata_log_without_topics(disk: Path, alone: bool, whole: bool) -> None:
    """The only controller sets its partitions aside; another broker does what the controllers' metadata says."""
    folder = disk / "__cluster_metadata-0"
    log = folder / f"{ZERO}.log"
    if not whole:
        for path in [*folder.glob("*.checkpoint"), *folder.glob("*.snapshot"), *folder.glob("*index")]:
            path.unlink()
        batches = craft.split(log.read_bytes())

        def has_topics(end: int) -> bool:
            log.write_bytes(b"".join(batches[:end]))
            metadata = read_metadata(str(disk))
            return metadata is None or bool(metadata.topics)

        before = bisect_left(range(1, len(batches) + 1), True, key=has_topics)
        assert not has_topics(before)
    if alone:
        path = folder / "quorum-state"
        path.write_text(path.read_text().replace('"voterId":0', '"voterId":2').replace('"leaderId":0', '"leaderId":2'))
    found = plan(disk)
    head = " ".join(command.run("restart-plan", disk).stdout.split("assumed")[0].split())
    assert found.status == int(not whole)
    assert sum(bool(each.stray) for each in found.partitions) == (alone and not whole)
    assert found.withoutMetadata == (not alone and not whole)
    assert bool(re.search("MAKES .* STRAY", head)) == (not whole)
    assert ("if the controllers have none either" in head) == (not alone and not whole)
    assert ("only controller" in " ".join(found.assumptions)) == alone


@pytest.mark.parametrize(
    ("name", "verdict", "exception"),
    [("missing", "stopped", "RuntimeException"), ("file", "degraded", "FileSystemException")],
)
def test_a_failed_directory_next_to_a_good_one(disk: Path, name: str, verdict: str, exception: str) -> None:
    other = disk.with_name(name)
    if name == "file":
        other.touch()
    found = plan(disk, other)
    assert (found.verdict, exceptions(found)) == (verdict, [exception])
    assert [each.failed for each in found.directories] == ["", "missing" if name == "missing" else "not a directory"]
    result = command.run("restart-plan", other)  # a mistyped path is an error
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_a_disk_of_zookeeper(disk: Path) -> None:
    """Started with KRaft, its partitions become stray directories, because nothing says that they are assigned to the
    broker."""
    apart(disk)
    text = (disk / "meta.properties").read_text()
    (disk / "meta.properties").write_text(text.replace("node.id", "broker.id").replace("version=1", "version=0"))
    own = command.run("restart-plan", disk)
    assert own.exit_code == 0
    assert "STARTS normally" in own.stdout
    assert "release: Kafka 3.9 with ZooKeeper" in own.stdout
    result = command.run("restart-plan", disk, "--kafka-version", "4.3")
    head = result.stdout.splitlines()[0]
    assert result.exit_code == 1
    assert "MAKES 1 partition STRAY" in head
    assert "normally" not in head
    assert "ran with ZooKeeper" in result.stdout


# --- meta.properties ---


def kafka_ends_with(said: str) -> str:
    """The exception of initializeLogDirs for what MetaProperties reads from the file of a node's only directory; empty
    if there is none."""
    if not re.match(r"[01] (-|-?\d+) \S+ \S+$|[01] (-|-?\d+) \S+ $", said):
        return "No readable meta.properties files found."
    _, node, directory, cluster = said.split(" ")
    if directory != "-" and is_reserved(directory):
        return "reserved directory ID"
    if node == "-" or cluster == "-":
        return f"Error: {'node' if node == '-' else 'cluster'} ID not found"
    return ""


@pytest.mark.sampled
def test_every_content_of_meta_properties(place: Path) -> None:
    """The record is of Kafka's own classes: tests/format/test_java_properties.py."""
    ends: dict[str, int] = defaultdict(int)
    (place / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for content, read, said in sample(java(), 40):
        (place / "meta.properties").write_bytes(content)
        expected = kafka_ends_with("" if read == "IllegalArgumentException" else said)
        found = [stop.exception for stop in kdump.restart_plan([str(place)], kafka_version="4.3.1").allStops]
        assert bool(found) == bool(expected), (content, said, found)
        assert all(expected in each for each in found), (content, expected, found)
        verified = command.run("verify", place / "meta.properties", "-q")
        is_newer = re.fullmatch(r"Unknown meta\.properties version number ([2-9]|\d{2,})", said)
        is_legal = "cluster" in expected or "reserved" in expected or is_newer
        assert verified.exit_code == bool(expected) or is_legal, (content, said)
        ends[expected] += 1
    assert len(ends) > 2


@pytest.mark.parametrize("version", ["Exception", "AccessDeniedException"])
def test_a_version_that_reads_like_an_exception(disk: Path, version: str) -> None:
    """Rights and Java's class are not decided by the words in the file."""
    other = second(disk)
    text = (other / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("version=1", f"version={version}"))
    (stop,) = plan(disk, other).allStops
    assert stop.code == "startup-meta-properties-unreadable"
    assert stop.exception == f"RuntimeException: Invalid meta.properties version string '{version}'"


def test_a_directory_id_in_two_spellings(disk: Path) -> None:
    """22 letters have 132 bits, of which Kafka drops the last four."""
    other = apart(disk)
    for path, last in ((disk, "Q"), (other, "R")):
        text = (path / "meta.properties").read_text()
        (path / "meta.properties").write_text(
            re.sub("directory.id=.*", f"directory.id=oE8qcd_iUG6Hx2IlmSa0H{last}", text)
        )
    assert "Duplicate directory ID" in plan(disk, other).allStops[0].exception


def test_copies_of_one_directory(place: Path) -> None:
    """Whole or of some partitions each: no broker starts with both, so that the plan is for the first alone, and says
    so. With a server.properties that names both, the broker does not start."""
    disk, copy = (Path(shutil.copytree(DISKS / "kafka-4.3/clean-1", place / name)) for name in ("disk", "copy"))
    names = sorted(path.name for path in disk.glob("[a-z]*-0"))
    for lost in ([], names[1::2]):
        for path, part in ((disk, names[::2]), (copy, names[1::2])) if lost else ():
            for name in part:
                shutil.rmtree(path / name)
        found = plan(disk, copy)
        assert ([each.path for each in found.directories], found.status, found.allStops) == ([str(copy)], 2, [])
        assert {log.name for log in found.missing} <= set(lost)
        assert bool(found.missing) == bool(lost)
        assert any(each.startswith(f"log.dirs does not contain {disk}, a copy of {copy}") for each in found.assumptions)
        text = command.run("restart-plan", disk, copy).stdout.partition("release:")[0].replace("\n", " ")
        assert f"{disk} is a copy of {copy} and was not examined" in " ".join(text.split())
    server = ServerProperties("server.properties", {"log.dirs": f"{disk},{copy}"})
    both = kdump.restart_plan([str(disk), str(copy)], Options(server=server))
    assert any("Duplicate directory ID" in stop.exception for stop in both.allStops)


# --- names of files ---


def test_numbers_as_java_reads_them() -> None:
    dice = random.Random(7)
    for _ in range(2000):
        digits = "".join(dice.choices("0123456789", k=dice.randint(1, 22)))
        text = dice.choice(["", "-", "+", "0000"]) + digits
        value = int(text)
        assert parse_long(text) == (value if -(1 << 63) <= value < 1 << 63 else None)
        if -(1 << 63) <= value < 1 << 63:
            assert parse_long(padded(value)) == value
            assert len(padded(value).lstrip("-")) >= 20
    assert [parse_long(text) for text in ("", "-", "+", "1 ", "²", "--1", "1_0")] == [None] * 7


# --- what is cut ---


def cuts_are_disjoint(found: RestartPlan, sizes: dict[str, int]) -> None:
    """Check that no byte of a file is counted twice, and none that the file does not have."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for each in found.partitions:
        for cut in each.cuts:
            assert cut.size >= 0
            spans[cut.file].append((cut.position, cut.position + cut.size))
        assert each.bytesCut == sum(cut.size for cut in each.cuts)
    for file, here in spans.items():
        here.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(here)), (file, here)
        assert here[-1][1] <= sizes[file]


@pytest.mark.sampled
def test_no_byte_is_cut_twice(disk: Path) -> None:
    """A log has segments that are damaged, lack their index, and are below the log start offset, all at once."""
    folder = disk / "ledger-0"
    batches = craft.split((folder / f"{ZERO}.log").read_bytes())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for seed in sample(range(90), 12):
        dice = random.Random(seed)
        shutil.rmtree(folder)
        folder.mkdir()
        for path, data in before.items():
            path.write_bytes(data)
        (folder / f"{ZERO}.log").write_bytes(batches[0])
        (folder / f"{50:020}.log").write_bytes(b"".join(batches[1:]))
        for path in list(folder.glob("*.log")):
            data = bytearray(path.read_bytes())
            if dice.random() < 0.6:
                data[dice.randrange(70, len(data))] ^= 0xFF
            if dice.random() < 0.3:
                del data[dice.randrange(1, len(data)) :]
            path.write_bytes(data)
            path.with_suffix(".index").write_bytes(b"")
            if dice.random() < 0.4:
                path.with_suffix(".index").unlink()
        start = dice.choice([0, 20, 50, 60, 100])
        (disk / "log-start-offset-checkpoint").write_text(f"0\n1\nledger 0 {start}\n")
        (disk / "recovery-point-offset-checkpoint").write_text(f"0\n1\nledger 0 {dice.choice([0, 50, 65])}\n")
        (disk / MARK).unlink(missing_ok=True)
        if dice.random() < 0.5:
            (disk / MARK).touch()
        sizes = {str(path): path.stat().st_size for path in folder.iterdir()}
        cuts_are_disjoint(plan(disk), sizes)


# --- rights ---


def given(root: Path) -> None:
    """Give the path to USER, if this process may."""
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, USER, USER)


def test_modes_say_what_the_system_does(place: Path) -> None:
    """The permissions that root determines for the owner of a directory equal those that the owner gets from the
    system."""
    dice = random.Random(3)
    user = USER if os.geteuid() == 0 else os.geteuid()
    paths = []
    for name in range(30):
        folder = place / f"d{name}"
        folder.mkdir()
        (folder / "file").touch()
        paths += [folder, folder / "file"]
    for path in paths:
        if os.geteuid() == 0:
            os.chown(path, dice.choice([USER, 0]), dice.choice([USER, 0]))
    for path in reversed(paths):
        path.chmod(dice.randrange(0o1000))
    wants = (READ, WRITE, ENTER, READ | WRITE, WRITE | ENTER)
    asked = as_user(lambda: [Rights(user).can(str(path), want) for path in paths for want in wants])
    judged = Rights(user, own=False)
    try:
        if os.geteuid() == 0:  # another user may not enter the directories at all
            assert [judged.can(str(path), want) for path in paths for want in wants] == asked
        assert True in asked
        assert False in asked
    finally:
        for path in paths:
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "mode", "exception"),
    [
        (".", 0o555, "AccessDeniedException"),
        ("ledger-0", 0o555, "AccessDeniedException"),
        (f"ledger-0/{ZERO}.index", 0o444, "FileNotFoundException"),
        (f"ledger-0/{ZERO}.log", 0o444, "AccessDeniedException"),
        (f"ledger-0/{ZERO}.log", 0, "IOException"),
        ("ledger-0", 0o311, "AccessDeniedException"),
        ("meta.properties", 0, "RuntimeException"),
    ],
)
def test_what_the_broker_may_not(disk: Path, name: str, mode: int, exception: str) -> None:
    """The plan is made by the broker's own user, in a process without root permissions, and by root for that user."""
    given(disk)
    assert plan(disk).verdict == "clean"
    path = disk / name
    kept = path.stat().st_mode
    path.chmod(mode)
    try:
        own = as_user(lambda: [(found.verdict, found.status, set(exceptions(found))) for found in [plan(disk)]])
        assert own == [("stopped", 3, {exception})]
        if os.geteuid() == 0:
            by_root = plan(disk)
            assert (by_root.verdict, set(exceptions(by_root))) == ("stopped", {exception})
            assert "user nobody" in by_root.assumptions[1]
    finally:
        path.chmod(kept)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_directory_above_that_the_broker_may_not_enter(place: Path, depth: int, through_a_link: bool) -> None:
    """Judged by root for the owner of the log directory, at whatever height the directory is."""
    if os.geteuid() != 0:  # then kdump itself cannot list the log directory
        return
    folders = [place / "a", place / "a/b", place / "a/b/c"]
    folders[-1].mkdir(parents=True)
    disk = Path(shutil.copytree(FIXTURES / "clean-2", folders[-1] / "disk-2"))
    given(disk)
    path = disk
    if through_a_link:
        path = place / "link"
        path.symlink_to(disk)
    assert plan(path).verdict == "clean"
    folders[-depth].chmod(0o700)
    (stop,) = plan(path).allStops
    assert (plan(path).verdict, stop.kind) == ("stopped", "exit")
    named = r"\buser (\S+) .* enter (\S+), .* (\S+)$", stop.message
    assert re.findall(*named) == [("nobody", str(folders[-depth]), str(path))]
    assert f"nobody enter {folders[-depth]}" in stop.remedy


def test_relative_paths(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan, and remedies that name a path, whatever the working directory is."""
    given(disk)
    places = ((disk.parent, disk.name), (disk.parent, f"./{disk.name}"), (disk, "."), (disk / "ledger-0", ".."))
    for denied in (False, True):
        for at, path in places:
            monkeypatch.chdir(at)
            found = kdump.restart_plan([path])
            assert found.verdict == ("stopped" if denied else "clean"), (at, path)
            assert all(re.search(r"Give \S+ to nobody", stop.remedy) for stop in found.allStops)
            assert not any(f"Give {disk.parent} " in stop.remedy for stop in found.allStops)
        if os.geteuid() == 0:
            disk.chmod(0o300)
        else:
            return


def test_files_of_root_in_a_brokers_directory(disk: Path) -> None:
    """After a restore as root, root owns the partition's files, and only root may write them."""
    if os.geteuid() != 0:  # only root can change the owner; other users only make them read-only
        for path in (disk / "ledger-0").iterdir():
            path.chmod(0o444)
    given(disk)
    if os.geteuid() == 0:
        for path in (disk / "ledger-0", *(disk / "ledger-0").iterdir()):
            os.chown(path, 0, 0)
    found = as_user(lambda: [plan(disk).verdict, exceptions(plan(disk))])
    assert found == ["stopped", ["AccessDeniedException"]]


@pytest.mark.parametrize(
    ("path", "mode", "verdict", "exception"),
    few(
        [
            ("recovery-point-offset-checkpoint.tmp", 0o600, "stopped", "FileNotFoundException"),
            ("replication-offset-checkpoint.tmp", 0o600, "stopped", "FileNotFoundException"),
            ("log-start-offset-checkpoint.tmp", 0o600, "stopped", "FileNotFoundException"),
            ("ledger-0/leader-epoch-checkpoint.tmp", 0o644, "stopped", "FileNotFoundException"),
            ("ledger-0/leader-epoch-checkpoint.tmp", 0o600, "stopped", "IOException"),
            ("cleaner-offset-checkpoint.tmp", 0o600, "clean", ""),
            ("__cluster_metadata-0/quorum-state.tmp", 0o644, "clean", ""),
            ("__cluster_metadata-0/quorum-state.tmp", 0o600, "stopped", "IOException"),
            ("ledger-0/leader-epoch-checkpoint.tmp", None, "stopped", "FileNotFoundException"),
            ("meta.properties.tmp", 0o600, "clean", ""),
        ],
        4,
    ),
)
def test_left_over_temporary_files(disk: Path, path: str, mode: int | None, verdict: str, exception: str) -> None:
    """A checkpoint is written to its .tmp, whatever is there. `mode`: of a file of root's; None: a directory."""
    if mode is None:
        (disk / path).mkdir()
        given(disk)
    else:
        given(disk)
        (disk / path).touch()
        (disk / path).chmod(mode if os.geteuid() == 0 else mode & 0o044)
    by_root = plan(disk)
    found = as_user(lambda: [(each.verdict, exceptions(each), each.status) for each in [plan(disk)]])
    for said, names, status in (*found, (by_root.verdict, exceptions(by_root), by_root.status)):
        assert (said, names) == (verdict, [exception] if exception else [])
        assert status == (3 if exception else int(path.startswith("cleaner")))
    if mode is not None:
        (disk / path).chmod(0o600)
        given(disk)
        found_later = plan(disk)
        assert (found_later.verdict, found_later.status) == ("clean", 0)


def test_a_directory_to_be_deleted_that_is_not_the_brokers(disk: Path) -> None:
    path = disk / f"ledger-0.{'0' * 32}-delete"
    (disk / "ledger-0").rename(path)
    given(disk)
    assert plan(disk).allStops == []
    path.chmod(0o555)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)
    plan(disk)
    found = as_user(lambda: [(each.verdict, exceptions(each)) for each in [plan(disk)]])
    assert found == [("stopped", ["AccessDeniedException"])]
    path.chmod(0o755)


def test_a_new_directory_id_that_cannot_be_written(disk: Path) -> None:
    text = (disk / "meta.properties").read_text()
    (disk / "meta.properties").write_text(re.sub("directory.id=.*\n", "", text))
    (disk / "meta.properties.tmp").mkdir()
    stop = plan(disk).allStops[0]
    assert (stop.kind, stop.exception.partition(":")[0]) == ("exit", "FileNotFoundException")


# --- the same bytes, by verify and by restart-plan ---


def test_a_torn_tail_below_the_high_watermark(disk: Path) -> None:
    """Both count the offsets that consumers may have read, and both report what recovery truncates."""
    path = disk / f"ledger-0/{ZERO}.log"
    path.write_bytes(path.read_bytes()[:-20])
    for clean in (True, False):
        if not clean:
            (disk / MARK).unlink()
        (ledger,) = (each for each in plan(disk).partitions if each.topic == "ledger")
        found = [each for each in command.objects("verify", disk, status=int(clean)) if each["type"] == "finding"]
        assert ledger.loses
        assert (ledger.logEndOffset, ledger.acknowledged, ledger.bytesCut) == (50, 15, 296)
        assert {each["position"] for each in found if each["code"] == "batch-truncated"} == {ledger.cuts[0].position}
        beyond = [each for each in found if each["code"] == "checkpoint-beyond-log" and each["topic"] == "ledger"]
        assert (50, 65) in [(each["expected"], each["actual"]) for each in beyond]
        assert [50, 64] in [numbers_in(each["consequence"])[:2] for each in beyond]


def test_a_disk_that_is_mounted_read_only(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root cannot write there either (tried with a real mount and a real broker)."""
    access = os.access

    class Mounted:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(access_rights, "MOUNTS", os.devnull)
    monkeypatch.setattr(access_rights, "_writable", {})
    monkeypatch.setattr(os, "statvfs", lambda path: Mounted)
    monkeypatch.setattr(os, "access", lambda path, mode, **named: not mode & os.W_OK and access(path, mode, **named))
    found = plan(disk)
    assert (found.verdict, exceptions(found)) == ("stopped", ["FileSystemException"])
    assert "mounted read-only" in found.allStops[0].message
    assert [each.logEndOffset for each in found.partitions] == [376, 65]  # a snapshot of a disk still gets its plan


def test_a_disk_that_only_this_container_has_read_only(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system can be written to, and the broker has another mount of it."""
    before = plan(disk)
    access, real = os.access, os.statvfs(disk)
    mounted = SimpleNamespace(**{name: getattr(real, name) for name in dir(real) if name.startswith("f_")})
    mounted.f_flag |= os.ST_RDONLY
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(access_rights, "MOUNTS", str(mounts))
    monkeypatch.setattr(access_rights, "_writable", {})
    monkeypatch.setattr(os, "statvfs", lambda path: mounted)
    monkeypatch.setattr(os, "access", lambda path, mode, **named: not mode & os.W_OK and access(path, mode, **named))
    root = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    place = str(disk).replace(" ", "\\040")
    for options, verdict in (("rw,discard", before.verdict), ("ro,discard", "stopped")):
        mounts.write_text(f"{root}22 21 8:2 /x {place} ro,relatime - ext4 /dev/sdb {options}\n")
        access_rights._writable.clear()
        found = plan(disk)
        assert found.verdict == verdict
        assert any("mounted read-only here alone" in text for text in found.assumptions) == (verdict != "stopped")


@each_case(
    "number, reserved", [(0, True), (3, True), (4, True), (99, True), (100, False), (1 << 63, True), (1 << 64, False)]
)
def test_reserved_directory_ids(number: int, reserved: bool) -> None:
    """DirectoryId.reserved: the first hundred, and, because the comparison is signed, those whose lower half is
    negative."""
    assert is_reserved(uuid_text(number.to_bytes(16, "big"))) is reserved


def test_several_log_directories_below_the_metadata_version_of_jbod(disk: Path) -> None:
    """The broker starts, and logs it (KAFKA-16606); the level may be raised at any time."""
    metadata = apart(disk)
    log = metadata / "__cluster_metadata-0" / f"{ZERO}.log"
    whole = log.read_bytes()
    name = b"metadata.version"
    for level, is_below in ((16, True), (17, False)):
        record = b"\x01\x0c\x00" + bytes([len(name) + 1]) + name + level.to_bytes(2, "big") + b"\x00"
        log.write_bytes(craft.with_metadata_record(whole, record))
        for paths in ([disk, metadata], [disk, second(disk), metadata]):
            found = kdump.restart_plan(list(map(str, paths)), kafka_version="4.3")
            codes = [problem.code for problem in found.directories[0].problems]
            assert ("startup-jbod-unsupported" in codes) == (is_below and len(paths) == 3)
    log.write_bytes(craft.with_metadata_record(whole, record[:-2] + b"\x10\x00"))
    below = "Multiple log directories (aka JBOD) are not supported in the current MetadataVersion 3.3-IV3. Need 3.7-IV2"
    text = f"[2026-11-24 09:00:00,000] ERROR {below} or higher (org.apache.kafka.server.fault.LoggingFaultHandler)\n"
    server = craft.write_file(disk.with_name("server.log"), text.encode())
    page = kdump.doctor([str(each) for each in (disk, second(disk), metadata)], logs=[str(server)])
    (item,) = [each for each in page.items if "jbod" in each.code]
    assert item.code == "startup-jbod-unsupported", "one cause, one item"
    assert any("server.log line 1: ERROR" in each for each in item.evidence)


def second(disk: Path) -> Path:
    """Return another log directory of the node, without partitions."""
    other = disk.with_name("second")
    other.mkdir(exist_ok=True)
    text = (disk / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("oE8qcd_iUG6Hx2IlmSa0HQ", "yOs7EGq-SHmE9VUF0LhreQ"))
    return other
