"""Tests of kdump.restart_plan for a node with several directories and for a broker without root permissions, and
properties that hold for all damage."""

from __future__ import annotations

import os
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import kdump
from kdump.forensics.restart.checkpoint_file import number
from kdump.forensics.restart.identity import is_reserved
from kdump.forensics.restart.log_files import padded
from kdump.forensics.restart.plan import RestartPlan
from kdump.forensics.restart.rights import ENTER, READ, WRITE, Rights
from kdump.format.messages import uuid_text
from tests import command, craft
from tests.conftest import FIXTURES, sample
from tools.trials.foretell import as_user, public_directory
from tools.trials.node import USER

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
        assert f"metadata.log.dir is {other}" in found.assumptions
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


def test_without_a_metadata_log_there_is_no_comfort(disk: Path) -> None:
    shutil.rmtree(apart(disk) / "__cluster_metadata-0")
    result = command.run("restart-plan", disk, disk.with_name("metadata"))
    head = " ".join(result.stdout.split("assumed")[0].split())
    assert result.exit_code == 1
    assert "nothing is lost" not in head
    assert "if the controllers have none either, MAKES all 1 partition STRAY" in head


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


def test_a_failed_metadata_directory(disk: Path) -> None:
    other = apart(disk)
    shutil.rmtree(other)
    other.touch()
    found = plan(disk, other)
    assert found.verdict == "stopped"
    assert "Encountered I/O error in metadata log directory" in found.allStops[0].exception


def test_a_metadata_log_in_two_directories(disk: Path) -> None:
    other = apart(disk)
    shutil.copytree(other / "__cluster_metadata-0", disk / "__cluster_metadata-0")
    found = plan(disk, other)
    assert (found.verdict, exceptions(found)) == ("stopped", ["KafkaException"])
    assert found.allStops[0].file == f"{disk}/__cluster_metadata-0"


def test_a_disk_of_zookeeper(disk: Path) -> None:
    """Its partitions become stray directories, because nothing says that they are assigned to the broker."""
    apart(disk)
    text = (disk / "meta.properties").read_text()
    (disk / "meta.properties").write_text(text.replace("node.id", "broker.id").replace("version=1", "version=0"))
    result = command.run("restart-plan", disk)
    head = result.stdout.splitlines()[0]
    assert result.exit_code == 1
    assert "MAKES 1 partition STRAY" in head
    assert "normally" not in head
    assert "ran with ZooKeeper" in result.stdout


def test_the_mark_of_a_clean_shutdown_as_a_directory(disk: Path) -> None:
    (disk / MARK).unlink()
    (disk / MARK).mkdir()
    assert (plan(disk).verdict, plan(disk).allStops) == ("clean", [])
    assert command.run("verify", disk, "--fail-on", "warning").exit_code == 0
    (disk / MARK / "file").touch()
    assert exceptions(plan(disk)) == ["DirectoryNotEmptyException"]


@pytest.mark.parametrize(
    ("change", "exception"),
    [
        (lambda data: bytes(len(data)), "CorruptRecordException"),
        (lambda data: b"", "RuntimeException"),
        (lambda data: data[:-10], None),
        (lambda data: data * 2, None),
    ],
)
def test_bootstrap_checkpoint(disk: Path, change: Callable[[bytes], bytes], exception: str | None) -> None:
    path = disk / "bootstrap.checkpoint"
    path.write_bytes(change(path.read_bytes()))
    assert exceptions(plan(disk)) == ([] if exception is None else [exception])


# --- names of files ---


@pytest.mark.parametrize("name", ["producers.snapshot", ".snapshot", "x1.log", "9223372036854775808.index"])
def test_a_name_that_is_not_a_number(disk: Path, name: str) -> None:
    (disk / "ledger-0" / name).touch()
    assert exceptions(plan(disk)) == ["NumberFormatException"]


def test_a_short_name_makes_a_segment(disk: Path) -> None:
    """The broker opens the file with the full name of that number, and does not touch the other one."""
    shutil.copy(disk / f"ledger-0/{ZERO}.log", disk / "ledger-0/5.log")
    (ledger,) = (each for each in plan(disk).partitions if each.topic == "ledger")
    made = {os.path.basename(step.file) for step in ledger.steps if step.kind in ("create", "rebuild")}
    assert made >= {f"{5:020}.log", f"{5:020}.index"}
    assert (ledger.segments, ledger.logEndOffset) == (2, 5)


def test_numbers_as_java_reads_them() -> None:
    dice = random.Random(7)
    for _ in range(2000):
        digits = "".join(dice.choices("0123456789", k=dice.randint(1, 22)))
        text = dice.choice(["", "-", "+", "0000"]) + digits
        value = int(text)
        assert number(text, 64) == (value if -(1 << 63) <= value < 1 << 63 else None)
        if -(1 << 63) <= value < 1 << 63:
            assert number(padded(value), 64) == value
            assert len(padded(value).lstrip("-")) >= 20
    assert [number(text, 64) for text in ("", "-", "+", "1 ", "²", "--1", "1_0")] == [None] * 7


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
    for seed in sample(range(90), 6):
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
            assert (plan(disk).verdict, set(exceptions(plan(disk)))) == ("stopped", {exception})
            assert "user nobody" in plan(disk).assumptions[1]
    finally:
        path.chmod(kept)


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
        assert any(
            "offsets 50..64, which consumers may have read, are lost" in (each["consequence"] or "") for each in found
        )


def test_a_disk_that_is_mounted_read_only(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root cannot write there either (tried with a real mount and a real broker)."""
    access = os.access

    class Mounted:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda path: Mounted)
    monkeypatch.setattr(os, "access", lambda path, mode, **named: not mode & os.W_OK and access(path, mode, **named))
    found = plan(disk)
    assert (found.verdict, exceptions(found)) == ("stopped", ["FileSystemException"])
    assert "mounted read-only" in found.allStops[0].message
    assert [each.logEndOffset for each in found.partitions] == [376, 65]  # a snapshot of a disk still gets its plan


@pytest.mark.parametrize(
    ("number", "reserved"),
    [(0, True), (3, True), (4, True), (99, True), (100, False), (1 << 63, True), (1 << 64, False)],
)
def test_reserved_directory_ids(number: int, reserved: bool) -> None:
    """DirectoryId.reserved: the first hundred, and, because the comparison is signed, those whose lower half is
    negative."""
    assert is_reserved(uuid_text(number.to_bytes(16, "big"))) is reserved
