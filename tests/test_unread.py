"""An answer over partly unread files says so in its first line, names the files, and has the exit status of the help.

Each test makes one file or directory of a healthy disk unreadable. Either the command does not need it, and its answer
is the same to the byte, or it reports what it could not read."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import shutil
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import click
import pytest

import kdump
from kdump.cli import COMMANDS
from kdump.command_line.command_run import report_unreadable, unreadable
from kdump.io import unreadable_paths
from kdump.io.errors import Located, SourceNotFound, went_away
from tests.command import run
from tests.conftest import FIXTURES, few
from tests.test_typos import of_paths
from tests.unread import NOBODY, Answer, answers

DISK = FIXTURES / "disk-1"
NAMES = sorted(str(path.relative_to(DISK)) for path in DISK.rglob("*"))
"""Every file and directory of the disk."""
NOW = "2026-11-22T09:00"
OTHERS = {"browse", "schema", "scan", "query", "dump-log", "completion", "explain", "registry", "connect", "rescue"} | {
    "export",
    "restore",
}
"""The commands without an answer over a disk in text: an interface, tables, what kafka-dump-log prints about a file, an
answer about a log (tests/incident/explain/test_command.py), about some topics
(tests/questions/registry/test_command.py, tests/questions/connect/test_command.py), or none if a file cannot be read
(tests/questions/rescue/test_command.py)."""
FORMS = {name: [name] for name in of_paths() if name not in OTHERS} | {
    "doctor": ["doctor", "--now", NOW],
    "ls segments": ["ls", "--by", "segment"],
    "find": ["find", "isControl"],
    "transactions": ["transactions", "--now", NOW],
    "coordinator": ["transactions", "--coordinator", "--now", NOW],
    "producers": ["producers", "--now", NOW],
    "retention": ["retention", "--now", NOW],
    "retention keys": ["retention", "--keys", "--now", NOW],
    "space": ["space", "--now", NOW],
}
"""The commands that read disks, in the forms that read different files."""
DENIED = "Permission denied, because it is owned by nobody with mode ----------; run kdump as nobody"
"""The reason: `tests.unread` runs the command as root, without the capability to read everything."""
LEDGER = "ledger-0/00000000000000000000.log"
USUAL = {
    "doctor": LEDGER,
    "ls": "meta.properties",
    "ls segments": "replication-offset-checkpoint",
    "verify": "payments-0/00000000000000000000.txnindex",
    "stats": LEDGER,
    "diff": "payments-0/partition.metadata",
    "groups": "__consumer_offsets-0/00000000000000000000.log",
    "cluster": "__cluster_metadata-0/quorum-state",
    "transactions": "__transaction_state-0/00000000000000000000.log",
    "coordinator": "__cluster_metadata-0",
    "producers": "payments-0/00000000000000000120.snapshot",
    "retention": "payments-0/00000000000000000000.timeindex",
    "space": "replication-offset-checkpoint",
    "salvage": "payments-0/leader-epoch-checkpoint",
    "reindex": "meta.properties",
    "bundle": LEDGER,
}
"""The file for which `make test` runs a command, other than the slower commands."""


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A copy of the disk that every user can read, and its broker's user owns. It is not in pytest's directory, to
    which another session removes access when it starts."""
    with tempfile.TemporaryDirectory(prefix="kdump-") as place:
        Path(place).chmod(0o777)
        copies = [Path(place) / name for name in ("disk", "other")]
        for copy in copies:
            shutil.copytree(DISK, copy)
            if os.geteuid() == 0:  # the user who runs restart-plan stands for the broker's user
                for path in (copy, *copy.rglob("*")):
                    os.chown(path, NOBODY, -1)
        yield copies[0]


def swept(form: str, disk: Path, names: list[str], *options: str, mode: int = 0) -> tuple[Answer, list[Answer]]:
    """Return the answer for the healthy disk, and that for each of the names."""
    arguments = [*FORMS[form], str(disk), *options]
    out = disk.parent / "out" if form in ("salvage", "report", "bundle") else None
    if out is not None:
        arguments += ["--out", str(out)]
    if form == "diff":
        arguments.append(str(disk.parent / "other"))
    healthy, *found = answers(arguments, disk, names, out, mode)
    assert healthy.status == (1 if form.startswith(("retention", "doctor")) else 0), healthy
    assert "not read" not in healthy.first.lower()
    assert "NOT ALL WAS READ" not in healthy.stdout
    return healthy, found


def complaints(form: str, disk: Path, healthy: Answer, answer: Answer, is_text: bool = True) -> Iterator[str]:
    """Yield what is wrong with an answer."""
    path = disk / answer.name
    said = answer.stdout + answer.stderr
    if (answer.stdout, answer.status) == (healthy.stdout, healthy.status):
        # .kafka_cleanshutdown only decides the release if nothing else does.
        if answer.was_tried and (form, answer.name) != ("restart-plan", ".kafka_cleanshutdown"):
            yield "the command tried to read it, and the answer does not show it"
        return
    if not re.search(re.escape(str(path)) + r"(?![\w./-])", " ".join(said.split())):
        yield f"its path is not reported: {answer.stderr}"
    if "//" in said.replace("://", ""):
        yield f"a path is wrong: {answer.stderr}"
    if form == "restart-plan":  # what the broker's own user cannot read is the answer: see restart_permissions.py
        if is_text and answer.first == healthy.first:
            yield f"first line: {answer.first}"
        if answer.status not in (1, 2, 3):
            yield f"exit status {answer.status}"
        return
    if form == "doctor":  # its first lines are those of the disks; the page says it first
        if is_text and "NOT ALL WAS READ\n  not read: " not in answer.stdout:
            yield f"the page: {answer.stdout}"
        if answer.status not in (2, 3):
            yield f"exit status {answer.status}"
        return
    if not answer.was_tried:
        yield "the command did not try to read it, and the answer differs"
    if is_text and form != "find" and not answer.first.startswith(("NOT ALL WAS READ", "INCOMPLETE")):
        yield f"first line: {answer.first}"
    if form == "verify" and is_text and path.is_file() and not answer.first.endswith("; 1 path not read"):
        yield f"first line: {answer.first}"
    if answer.status != (1 if form == "salvage" else 2):
        yield f"exit status {answer.status}"
    if "checked everything:" in answer.stdout:
        yield f"last line: {answer.stdout}"
    if "damage found" in answer.stderr and "damage found" not in healthy.stderr:
        yield f"damage: {answer.stderr}"


@pytest.mark.parametrize("form", few(USUAL, 4))
def test_one_file(form: str, disk: Path) -> None:
    healthy, (answer,) = swept(form, disk, [USUAL[form]])
    assert answer.was_tried
    assert list(complaints(form, disk, healthy, answer)) == []
    if form not in ("verify", "doctor"):
        denied = DENIED.replace("-" * 10, "d---------") if (disk / answer.name).is_dir() else DENIED
        assert answer.first == f"NOT ALL WAS READ: {disk / answer.name}: {denied}"


@pytest.mark.every_disk
@pytest.mark.parametrize("form", FORMS)
def test_each_file(form: str, disk: Path) -> None:
    """`report` takes seconds, and reads what `verify` reads: only one partition, and the files at the root."""
    names = [name for name in NAMES if form != "report" or name.startswith("payments-0") or "/" not in name]
    healthy, found = swept(form, disk, names)
    assert {each.name: list(complaints(form, disk, healthy, each)) for each in found} == {name: [] for name in names}


@pytest.mark.every_disk
@pytest.mark.parametrize("form", FORMS)
def test_files_in_a_directory_that_may_only_be_listed(form: str, disk: Path) -> None:
    """Such files have not been deleted during the run."""
    names = ["payments-0", "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0"]
    healthy, found = swept(form, disk, names, mode=0o444)
    for answer in found:
        assert went_away("") not in answer.stdout + answer.stderr
        if answer.stdout != healthy.stdout and form not in ("restart-plan", "doctor"):
            complains = answer.stderr if form == "find" else answer.first  # its rows are matches alone
            assert re.search("^(kdump: NOT SEARCHED|NOT ALL WAS READ|INCOMPLETE|DAMAGED)", complains, re.M)
            assert answer.status == (1 if form == "salvage" else 2)


def test_find_names_a_directory_that_may_only_be_listed_once(disk: Path) -> None:
    """And not each file in it; it is not said that the directory has none of Kafka's."""
    [answer] = swept("find", disk, ["ledger-0"], mode=0o444)[1]
    assert answer.stderr.count("Permission denied") == 1
    assert re.search(rf"^kdump: {disk}/ledger-0: Perm.*\n(.*\n)+.*IN FULL:\n.*  1 path in the lines", answer.stderr)
    [healthy, alone] = answers(["find", "isControl", str(disk / "ledger-0")], disk, ["ledger-0"], mode=0o444)
    assert (healthy.status, alone.status, alone.stderr.count("\n")) == (1, 2, 1)


@pytest.mark.every_disk
@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("report", "verify")])
def test_each_file_in_json(form: str, disk: Path) -> None:
    """stderr names it, and every line of the answer is an object. (`verify` names it in its summary.)"""
    seconds = re.compile(r'"seconds":[0-9.]+')
    healthy, found = swept(form, disk, NAMES, "--json")
    healthy = healthy._replace(stdout=seconds.sub("", healthy.stdout))
    for each in found:
        assert all(isinstance(json.loads(line), dict) for line in each.stdout.splitlines())
        each = each._replace(stdout=seconds.sub("", each.stdout))
        assert list(complaints(form, disk, healthy, each, is_text=False)) == [], each.name


SEVERAL = [
    *("inspect files", "verify"),
    *(pytest.param(form, marks=pytest.mark.every_disk) for form in ("ls", "stats", "producers", "retention", "carve")),
]


@pytest.mark.parametrize("form", SEVERAL)
def test_a_file_that_is_named_several_times_is_counted_once(form: str, disk: Path, tmp_path: Path) -> None:
    """By itself, in a directory, and as a path that is written in another way; `inspect` shows these paths as files.
    What ends a path in a message may be part of it."""
    (named := tmp_path / "of: kafka").symlink_to(disk)
    disk = named
    words = FORMS.get(form, ["inspect"])
    paths = [disk / "payments-0", disk / LEDGER, disk / "ledger-0", f"{disk}/./{LEDGER}", disk / LEDGER]
    healthy, answer = answers([*words, *map(str, paths)], disk, [LEDGER])
    assert (healthy.status, answer.status) == (0, 2)
    assert "not read" not in healthy.first.lower()
    if form == "verify":
        assert answer.first.startswith("NOT ALL WAS READ")
        assert answer.first.endswith("; 1 path not read")
        assert answer.stdout.count("Permission denied") == 1
    else:
        assert answer.first == f"NOT ALL WAS READ: {disk / LEDGER}: {DENIED}"
        assert answer.stderr.count("Permission denied") == 1


def test_quiet(disk: Path) -> None:
    _, (answer,) = swept("diff", disk, ["payments-0/leader-epoch-checkpoint"], "-q")
    assert (answer.stdout, answer.status) == ("", 2)


EIO = os.strerror(errno.EIO)


def fail_to_read(monkeypatch: pytest.MonkeyPatch, paths: list[Path]) -> None:
    """Make the device fail to read these files."""
    failing = [path.stat() for path in paths]
    pread = os.pread

    def read(fd: int, count: int, position: int) -> bytes:
        status = os.fstat(fd)
        if any(os.path.samestat(status, each) for each in failing):
            raise OSError(errno.EIO, EIO)
        return pread(fd, count, position)

    monkeypatch.setattr(os, "pread", read)


def test_a_device_that_cannot_read_a_small_file(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_read(monkeypatch, [disk / "replication-offset-checkpoint"])
    done = run("producers", disk)
    assert done.stdout.startswith(f"NOT ALL WAS READ: {disk / 'replication-offset-checkpoint'}: cannot read ")
    assert done.exit_code == 2


SMALL: tuple[str, ...] = (
    "payments-0/00000000000000000000.index",
    "payments-0/partition.metadata",
    "bootstrap.checkpoint",
)
SMALL += "payments-0/leader-epoch-checkpoint", "payments-0/00000000000000000120.snapshot", ".kafka_cleanshutdown"


@pytest.mark.parametrize(
    "command", few(["verify --json", "verify --topic payments --json", "find isControl --json", "report"], 2)
)
def test_workers_tell_what_they_could_not_read(
    command: str, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one process does; and no zeros are findings that a device returns in place of bytes of a small file."""
    monkeypatch.setattr("threading.active_count", lambda: 1)  # workers are forked, and have the device that fails

    def done(jobs: int) -> tuple[int, str, str]:
        page = tmp_path / "page.html"
        page.unlink(missing_ok=True)
        out = ["--out", page] if command == "report" else []
        found = run(*command.split(), disk, "--jobs", str(jobs), *out)
        return found.exit_code, re.sub(r'"seconds":[0-9.]+', "", found.stdout), found.stderr

    _, healthy, _ = done(1)
    fail_to_read(monkeypatch, [disk / name for name in SMALL])
    status, stdout, stderr = done(1)
    assert done(2) == (status, stdout, stderr)
    assert status == 2, stdout
    named = {"find isControl --json": SMALL[2:3], "verify --topic payments --json": SMALL[:2]}
    for name in named.get(command, SMALL):
        assert stderr.count(f"{name}: cannot read ") == 1
    if command.startswith("verify"):
        assert stdout.splitlines()[:-1] == healthy.splitlines()[:-1]


def test_the_summary_of_the_api_tells_what_no_rule_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the disk of its own call alone, although calls are read by turns."""
    disks = [Path(shutil.copytree(DISK, tmp_path / name)) for name in ("one", "two", "three")]
    fail_to_read(monkeypatch, [disk / ".kafka_cleanshutdown" for disk in disks[:2]])
    (*_, last) = zip_longest(*(kdump.verify(disk, topics=["users"]) for disk in disks))
    expected = [[f"{disk}/.kafka_cleanshutdown: cannot read 30 bytes, the first at byte 0: {EIO}"] for disk in disks]
    assert [answer.unread for answer in last] == [*expected[:2], []]


def test_what_is_reported_is_compared_by_path(tmp_path: Path) -> None:
    """Whatever the texts say, and a path may contain what ends it in them."""
    first, second = f"{tmp_path}/a: b", f"{tmp_path}/c"
    error = pickle.loads(pickle.dumps(SourceNotFound.at(f"{tmp_path}/./a: b", f"see: {second}: damaged")))
    assert error.path == f"{tmp_path}/./a: b"
    unreadable_paths.begin()
    for path in (first, second):
        unreadable_paths.note(Located(f"the device has lost {path}", path))
    with click.Context(click.Command("ls")):
        report_unreadable(error)
        report_unreadable(SourceNotFound.at(first, f"see: {second}: damaged"))
        assert unreadable() == [str(error), f"the device has lost {second}"]


def test_doctor_takes_nothing_unread_for_read(disk: Path) -> None:
    _, found = swept("doctor", disk, ["payments-0", "payments-0/00000000000000000000.log"])
    for answer in found:
        assert "everything was read" not in answer.stdout, answer.name
        assert " in what was read: " in answer.stdout, answer.name
        assert "no read_committed consumer waits" not in answer.stdout, answer.name


def test_doctor_says_when_groups_could_not_be_read(disk: Path) -> None:
    names = ["__consumer_offsets-0", "__consumer_offsets-0/00000000000000000000.log"]
    for answer in swept("doctor", disk, names)[1]:
        (line,) = [line for line in answer.stdout.splitlines() if line.startswith("  groups       ")]
        assert line.endswith("; as far as the files could be read"), answer.name


def test_every_command_is_considered() -> None:
    assert {words[0] for words in FORMS.values()} | OTHERS == set(COMMANDS)


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs commands as another user")
@pytest.mark.parametrize("command", ["ls", "verify", "restart-plan", "stats", "space", "inspect"])
def test_lost_and_found_of_a_mount_point(command: str, disk: Path) -> None:
    """Every ext4 file system has it, root's alone, and no broker reads it: it is noted, and all else was read."""
    with tempfile.TemporaryDirectory(prefix="kdump-mount-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        shutil.copytree(disk, Path(place) / "kafka")
        lost = Path(place) / "lost+found"
        lost.mkdir(mode=0o700)
        (lost / "#12").mkdir()
        for path in (Path(place) / "kafka", *(Path(place) / "kafka").rglob("*")):
            os.chown(path, NOBODY, -1)
        run(command, f"{place}/kafka")  # imports what NOBODY may not read, where Python is root's alone
        os.seteuid(NOBODY)
        try:
            healthy, done = run(command, f"{place}/kafka"), run(command, place)
            named = run(command, lost)
        finally:
            os.seteuid(0)
    assert done.exit_code == healthy.exit_code
    assert "NOT ALL" not in done.stdout
    note = f"{lost}: fsck's directory, which no broker reads, may not be read by this user\n"
    if command != "restart-plan":  # which answers for the one log directory below
        assert note in done.stdout + done.stderr
    assert named.exit_code == (3 if command == "restart-plan" else 2)  # log.dirs that may not be read stop a broker


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs commands as another user")
@pytest.mark.parametrize("command", ["ls", "verify", "doctor", "restart-plan", "inspect"])
def test_what_may_not_be_looked_for_is_not_said_to_be_missing(command: str, tmp_path: Path) -> None:
    """As in /proc/PID/root of a broker of another user."""
    closed = Path(tempfile.mkdtemp(prefix="kdump-closed-", dir="/var/tmp"))
    try:
        (closed / "root" / "data").mkdir(parents=True)
        closed.chmod(0o700)
        run(command, DISK)  # imports what NOBODY may not read, where Python is root's alone
        os.seteuid(NOBODY)
        try:
            done = run(command, closed / "root/data")
        finally:
            os.seteuid(0)
    finally:
        shutil.rmtree(closed)
    assert done.exit_code == 2
    why = f"Permission denied, because {closed} is owned by root with mode drwx------; run kdump as root"
    assert f"kdump: {closed / 'root/data'}: {why}\n" in done.stderr
