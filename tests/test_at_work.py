"""Every command that takes a log directory, while a broker changes it (tests/broker_at_work.py): no error is found on a
healthy disk, no command ends with status 2, and notes list what disappeared."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kdump.check.engine.units import CheckUnit
from kdump.cluster.read_groups import CoordinatorLog
from kdump.io.errors import SourceError, is_gone
from kdump.io.run import Run
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.follow import newer
from kdump.log.live_files import open_target
from kdump.log.paths import reject_pipe, target
from kdump.log.region import Batch
from kdump.questions.registry.usage import _last_records as last_records
from kdump.questions.reindex.run import _Partition as Partition
from tests import craft
from tests.broker_at_work import Broker, disk
from tests.command import run
from tests.conftest import FIXTURES, SEED, few, read_regions, sample, seeded
from tools.trials.working import commands

pytestmark = pytest.mark.sampled

SLOW = ("scan", "verify --jobs 2", "report", "doctor")
"""Left to tools/at_work.py: they need Spark, separate processes or charts, or the cluster's metadata, in which the
model does not write what it deletes."""
NAMES = [name for name, _ in commands([Path("d1")], Path("out")) if name not in SLOW]
DRAWS = 12
"""Runs of each command."""
CALLS = 400
"""Calls that about the shortest command makes: the broker takes its first steps among these."""


def arguments(name: str, root: Path, out: Path) -> list[str]:
    """Return the arguments of a command for the log directory."""
    return dict(commands([root], out))[name]


@pytest.mark.parametrize(
    ("name", "draw"), sample([(name, draw) for name in NAMES for draw in range(DRAWS)], 48, "at work")
)
def test_a_broker_at_work(name: str, draw: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk(tmp_path)
    dice = seeded(f"{name} {draw}")
    broker = Broker(root, dice)
    broker.work(dice.randint(1, 6))
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**9)
    broker.at = set(dice.sample(range(1, CALLS), 60))
    with monkeypatch.context() as patched:
        broker.come_in(patched)
        command, *rest = arguments(name, root, tmp_path / "out")
        result = run(command, *rest)
    told = f"{broker.did}\n{result.stderr}\n{result.stdout}"
    assert result.exit_code in ((0,) if command == "verify" else (0, 1)), told
    for line in result.stdout.splitlines():
        if line.startswith("{"):
            assert json.loads(line).get("severity") != "error", told


@pytest.mark.parametrize("draw", sample(range(24), 16, "at work, damaged"))
def test_damage_is_found_all_the_same(draw: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The damage is in a segment to which a broker appends, and in one that it does not touch."""
    root = disk(tmp_path)
    for name, byte in (("orders-none-0", 5000), ("users-0", 100)):
        path = root / name / f"{0:020}.log"
        with open(path, "r+b") as file:
            file.seek(byte)
            value = file.read(1)[0]
            file.seek(byte)
            file.write(bytes([value ^ 1]))
    dice = seeded(f"damaged {draw}")
    broker = Broker(root, dice)
    broker.changes = [broker.append, broker.rewrite_at_root, broker.replace_at_root]
    broker.work(4)
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**9)
    broker.at = set(dice.sample(range(1, CALLS), 40))
    with monkeypatch.context() as patched:
        broker.come_in(patched)
        result = run("verify", "--json", root)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    damaged = {row["topic"] for row in found if row["type"] == "finding" and row["severity"] == "error"}
    assert damaged == {"orders-none", "users"}, f"{broker.did}\n{result.stdout}"
    assert result.exit_code == 1


def test_what_keeps_changing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = disk(tmp_path)
    path = root / "trimmed-0" / "partition.metadata"
    data, moment = path.read_bytes(), path.stat().st_mtime_ns

    def rewritten(seconds: float) -> None:
        nonlocal moment
        moment += 10**9
        path.write_bytes(data[: moment // 10**9 % 7])
        os.utime(path, ns=(moment, moment))

    rewritten(0)
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**18)
    monkeypatch.setattr("time.sleep", rewritten)
    result = run("verify", "--json", "--only", "files", root)
    *findings, summary = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 0
    assert not [row for row in findings if row["severity"] == "error"]
    assert [note.partition(": ")[0] for note in summary["notes"]] == [str(path)]


def test_what_grows_with_its_log_is_the_same_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks, a producer whose clock is wrong has written one more batch: size, message and values of the
    finding about its batches differ."""
    root = disk(tmp_path)
    path = root / "orders-none-0" / f"{0:020}.log"
    offsets = count(max(batch.lastOffset for batch in read_regions(path) if isinstance(batch, Batch)) + 1)

    def write(seconds: float = 0) -> None:
        offset = next(offsets)
        time = 4_000_000_000_000 + 1000 * offset
        with open(path, "ab") as file:
            file.write(craft.one(b"", offset, baseTimestamp=time, maxTimestamp=time))

    write()
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**18)
    monkeypatch.setattr("time.sleep", write)
    *findings, summary = map(json.loads, run("verify", "--json", root).stdout.splitlines())
    warnings = [row["code"] for row in findings if row["file"] == str(path) and row["severity"] == "warning"]
    assert (warnings, summary["notes"]) == (["timestamp-in-future"], [])


@pytest.mark.parametrize("command", ["verify", "transactions", "producers", "retention", "restart-plan", "diff"])
def test_a_quiet_disk_is_looked_at_once(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may also be damaged."""
    root = disk(tmp_path)
    for path in (*root.glob("*/*.log"), *root.glob("*/*.txnindex"), *root.glob("*/leader-epoch-checkpoint")):
        path.write_bytes(path.read_bytes()[:-3] + b"xyz")

    def waited(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():  # not one of a Spark session in the same process
            raise AssertionError(f"a second look after {seconds} s")

    monkeypatch.setattr("time.sleep", waited)
    paths = [root, root] if command == "diff" else [root]
    result = run(command, *paths)
    assert command not in ("verify", "restart-plan") or result.exit_code != 0, result.stdout


@pytest.mark.parametrize(
    ("command", "how"),
    [
        (command, how)
        for number, command in enumerate(
            ("verify", "transactions", "producers", "retention", "restart-plan", "diff", "stats")
        )
        for turn, how in enumerate(((), ("--json",)))
        if SEED or number % 2 == turn
    ],
    ids=lambda value: value if isinstance(value, str) else "json" if value else "table",
)
def test_a_disk_that_was_copied_just_now(
    command: str, how: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are new, so their state is doubtful, but nothing changes: the answer is that for an old disk."""
    root = disk(tmp_path)
    for name in ("payments-0", "users-0"):
        path = root / name / f"{0:020}.log"
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
    (root / "orders-none-0" / "leader-epoch-checkpoint").write_text("0\n1\n5 x\n")
    paths = [root, root / "orders-none-0"] if command == "diff" else [root]
    now = ("--now", "2026-11-21T08:00") if command in ("transactions", "producers", "retention") else ()

    def answer() -> tuple[int, list[str]]:
        result = run(command, *paths, *how, *now)
        lines = [re.sub(r'"seconds":[0-9.]+', "", line) for line in result.stdout.splitlines()]
        return result.exit_code, sorted(lines) if how else lines

    old = answer()
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**18)
    assert answer() == old


@pytest.mark.parametrize("draw", sample(range(40), 16, "at work, quiet again"))
def test_what_the_model_leaves_is_healthy(draw: int, tmp_path: Path) -> None:
    """Otherwise the errors would be those of the model."""
    root = disk(tmp_path)
    broker = Broker(root, seeded(f"quiet {draw}"))
    broker.work(6)
    broker.finish()
    result = run("verify", root)
    assert result.exit_code == 0, f"{broker.did}\n{result.stdout}"


SEGMENTS = (
    "verify", "verify --jobs 2", "stats", "ls --by segment", "inspect", "inspect --records", "inspect --hex",
    "transactions", "producers", "retention", "reindex", "salvage --out OUT", "carve",
)  # fmt: skip
"""Commands over named segments."""
DIRECTORIES = (
    "verify", "stats", "ls --by segment", "ls", "inspect", "transactions", "producers", "retention", "reindex", "carve",
    "salvage --out OUT", "diff",
)  # fmt: skip
"""Commands over named partition directories."""
AWAY = [
    (command, pattern, at)
    for commands_, pattern in ((SEGMENTS, "*/*.log"), (DIRECTORIES, "*-0"))
    for command in commands_
    for at in range(0, 40, 3)
    if command != "verify --jobs 2" or at < 6
]


class Calls:
    """Counts the calls of the system for paths that begin with `prefix`; before that with the number `at`, `change` is
    called with its path."""

    def __init__(self, prefix: str, at: int, change: Callable[[Path], object]) -> None:
        self.prefix, self.at, self.change = prefix, at, change
        self.made = 0

    def come_in(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        """Count the calls of these functions of os from now on."""
        for name in names:
            monkeypatch.setattr(os, name, self._hooked(getattr(os, name)))

    def _hooked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **more: Any) -> Any:
            if str(path).startswith(self.prefix):
                self.made += 1
                if self.made == self.at:
                    self.change(Path(path))
            return call(path, *arguments, **more)

        return counted


@pytest.mark.parametrize(("words", "pattern", "at"), sample(AWAY, 96, "named"))
def test_what_was_named_goes_away(words: str, pattern: str, at: int, tmp_path: Path) -> None:
    """A file or directory on the command line, as a shell expands it, goes away before one of the calls of the system:
    a note, and no error. It was missing from the beginning: a typo, however many others there are."""
    root = disk(tmp_path)
    names = ("orders-none-0", "payments-0", "users-0")
    paths = sorted(path for path in root.glob(pattern) if {path.name, path.parent.name} & {*names})
    gone = next(path for path in paths if "orders-none" in str(path))
    if words == "diff":
        paths = [path for path in paths if path in (gone, root / "payments-0")]
    command, *options = words.replace("OUT", str(tmp_path / "out")).split()
    with pytest.MonkeyPatch.context() as patched:
        Calls(str(root), at + 1, lambda path: take_away(gone)).come_in(patched, "open", "scandir", "listdir")
        result = run(command, *options, *paths)
    assert "such file" not in result.stderr
    assert "NOT ALL WAS READ" not in result.stdout
    assert result.exit_code in (0, 1), f"{words} {pattern} {at}\n{result.stderr}\n{result.stdout}"
    take_away(gone)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    result = run(command, *options, *paths)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize(("later", "status"), [("gone", 0), ("filled", 0), ("empty", 2), ("old", 2)])
def test_a_partition_without_a_segment_is_compared_again(
    later: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may just be creating or deleting it. There is no wait for a directory that has not changed for long."""
    root = disk(tmp_path)
    place, kept = root / "orders-none-0", tmp_path / "kept"
    place.rename(kept)
    place.mkdir()
    if later == "old":
        os.utime(place, (0, 0))
    monkeypatch.setattr("kdump.log.live_files.YOUNG", 10**9)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if later == "empty":
            os.utime(place)  # a file was created and deleted in it
        if later in ("gone", "filled") and kept.exists():
            place.rmdir()
            kept.rename(place if later == "filled" else tmp_path / "away")

    monkeypatch.setattr(time, "sleep", sleep)
    result = run("diff", root, root)
    assert result.exit_code == status, result.output
    assert ("deleted during this run" in result.output) == (later == "gone")
    assert (sum(slept) > 0) == (later == "empty")


def take_away(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def test_a_file_that_goes_away_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone, not something other than a file."""
    path = tmp_path / "00000000000000000000.log"
    path.touch()
    at = target(str(path), source=str(tmp_path))
    looks = 0
    status = os.stat

    def gone(*arguments: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += 1
        found = status(*arguments, **options)
        path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr("os.stat", gone)
    reject_pipe(at)
    assert looks == 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "about", "what"),
    few(
        [
            ("verify", "users-0/", "file"),
            ("groups", "__consumer_offsets-0/", "file"),
            ("verify", "users-0/", "directory"),
            ("restart-plan", CLEAN_MARK, "file"),
        ],
        2,
    ),
)
def test_what_goes_away_before_any_call(
    command: str, about: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, or its partition's directory, goes away before each call of the system that is about it, in turn: of a
    broker that was shut down cleanly, so that a command also reads what a start would."""
    root = disk(tmp_path)
    for path in [path for path in root.iterdir() if path.is_dir() and path.name not in about]:
        shutil.rmtree(path)
    (root / CLEAN_MARK).touch()
    for path in (root, *root.rglob("*")):
        os.utime(path, (1_795_250_000, 1_795_250_000))
    kept = tmp_path / "kept"
    shutil.copytree(root, kept)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    number, is_over = 1, False
    while not is_over:
        calls = Calls(f"{root}/{about}", number, lambda path: take_away(path if what == "file" else root / about))
        with pytest.MonkeyPatch.context() as patched:
            calls.come_in(patched, "open", "stat", "lstat", "scandir")
            result = run(command, root, "--json")
        assert result.exit_code in (0, 1), f"{what} {number}\n{result.stderr}\n{result.stdout}"
        is_over = calls.made < number
        number += 1 if SEED or number < 8 else 5
        shutil.rmtree(root)
        shutil.copytree(kept, root)
    assert number > 3


def test_a_segment_that_goes_away_before_it_is_opened(tmp_path: Path) -> None:
    """It was listed, so it is gone, and nobody mistyped its path: the one in which --follow goes on, and the newest,
    of which doctor reads the end."""
    root = disk(tmp_path) / "users-0"
    first, last = (root / f"{offset:020}.log" for offset in (0, 254))
    following = newer(target(str(first)))
    log = CoordinatorLog("users", 0, str(root), (str(first), str(last)))
    errors: list[SourceError] = []
    last.unlink()
    assert not [*last_records(log, 100, Run(unreadable=errors.append))]
    assert following is not None
    with pytest.raises(SourceError) as raised:
        open_target(following)
    assert [*map(is_gone, (*errors, raised.value))] == [True, True]


STARTED_AT = {"verify": (CheckUnit, "look"), "doctor": (CheckUnit, "look"), "reindex": (Partition, "_segment")}
"""What a command calls after it has looked at .kafka_cleanshutdown, and before it reads the files of a partition."""


@pytest.mark.parametrize("command", STARTED_AT)
@pytest.mark.parametrize("number", few(range(0, 12, 3), 1))
def test_a_broker_that_starts(command: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It deletes .kafka_cleanshutdown and preallocates indexes after a command has looked at the one, and before it
    looks at the others (LogManager.loadLogs, LogSegment.resizeIndexes)."""
    root = tmp_path / "disk"
    shutil.copytree(FIXTURES / "clean-1", root)
    mark = root / CLEAN_MARK
    mark.touch()
    for path in (mark, *root.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    before = run(command, root, "--json")
    looks, (kind, name) = count(), STARTED_AT[command]
    look = getattr(kind, name)

    def started(self: object, *given: Any) -> Any:
        if next(looks) == number:
            mark.unlink()
            for place in [place for place in root.iterdir() if place.is_dir()]:
                newest = max(place.glob("*.log"), default=None)
                for index in place.glob(f"{newest.stem}.*index") if newest else ():
                    if index.suffix != ".txnindex":
                        os.truncate(index, 10 << 20)
        return look(self, *given)

    monkeypatch.setattr(kind, name, started)
    result = run(command, root, "--json")
    assert next(looks) > number
    assert not mark.exists()
    assert result.exit_code <= before.exit_code, result.stdout
    if command == "reindex":
        assert '"status":"wrong"' not in before.stdout + result.stdout
    padded = [line for line in result.stdout.splitlines() if "index-padding" in line]
    assert not [line for line in padded if '"severity":"info"' not in line], "preallocation"
