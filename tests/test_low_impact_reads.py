"""How every command that reads segments reads them: it leaves the page cache as it was, honors --max-rate and --idle,
and shows progress."""

from __future__ import annotations

import ctypes
import gzip
import os
import platform
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import pytest

from kdump import idle, parallel_jobs
from kdump.cli import COMMANDS, cli
from kdump.command_line import reading_options
from kdump.io import low_impact_reads
from kdump.io.source import FileSource
from kdump.io.token_bucket import BURST, TokenBucket
from kdump.render import progress
from kdump.status_line import StatusLine
from tests import craft
from tests.command import run
from tests.conftest import FIXTURES, SEED, few
from tests.io.test_page_cache import forget, on_a_disk, settled
from tests.io.test_token_bucket import Clock
from tests.test_streams import children, start, wait_for

SIZE = 4 << 20
LOG = f"{0:020}.log"
READS_NONE = {"schema", "completion", "query"}
"""Commands that read no segments; a query reads the tables of a scan."""
ELSEWHERE = {"browse", "export", "restore", "scan"}
"""Commands that need a terminal, pyarrow, a cluster, or Spark."""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ls": ("{disk}",),
    "inspect": ("{log}",),
    "inspect --records": ("{log}", "--records", "--json"),
    "inspect --key": ("{log}", "--key", "no such key"),
    "inspect --last": ("{log}", "--last", "3"),
    "inspect --offset": ("{log}", "--offset", "20"),
    "inspect --read-committed": ("{log}", "--read-committed"),
    "inspect gzip": ("{gzip}",),
    "inspect --extract": ("{log}", "--key", "no such key", "--extract", "value"),
    "verify": ("{disk}",),
    "verify --crc": ("{disk}", "--crc"),
    "stats": ("{disk}",),
    "find": ("'nothing' in any", "{disk}"),
    "diff": ("{disk}/orders-0", "{copy}/orders-0"),
    "groups": ("{disk}",),
    "registry": ("{disk}", "--usage"),
    "connect": ("{disk}",),
    "cluster": ("{disk}",),
    "transactions": ("{disk}",),
    "producers": ("{disk}",),
    "retention": ("{disk}",),
    "space": ("{disk}",),
    "restart-plan": ("{disk}",),
    "doctor": ("{disk}",),
    "explain": ("crc-mismatch", "--disk", "{disk}"),
    "rescue": ("{disk}", "--dry-run"),
    "salvage": ("{disk}/orders-0", "--out", "{out}"),
    "reindex": ("{disk}/orders-0", "--out", "{out}"),
    "carve": ("{log}",),
    "report": ("{disk}/orders-0", "--out", "{out}"),
    "bundle": ("{disk}/orders-0", "--out", "{out}"),
    "dump-log": ("--files", "{log}"),
    "dump-log --print-data-log": ("--files", "{log}"),
    "dump-log index": ("--files", "{index}"),
}
"""Arguments of commands; the words after a command's name only tell its lines apart."""
SMALL = {"ls", "groups", "cluster", "connect", "rescue", "space", "restart-plan", "inspect --last", "inspect --offset"}
"""Those that need only a part of the large log, or none."""


def some(start: int) -> list[str]:
    """Return every other name in ARGUMENTS; with KDUMP_SEED, all."""
    return [*ARGUMENTS] if SEED else [*ARGUMENTS][start::2]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log directory with a large log, and a copy of that log next to it."""
    with tempfile.TemporaryDirectory(prefix="kdump-", dir=on_a_disk(tmp_path_factory)) as directory:
        found = shutil.copytree(FIXTURES / "state-1", Path(directory) / "disk")
        (found / "orders-0").mkdir()
        batch = craft.one(random.Random(3).randbytes(100_000))
        entries = b""
        with (found / "orders-0" / LOG).open("wb") as file:
            for offset in range(SIZE // len(batch)):
                entries += offset.to_bytes(4, "big") + file.tell().to_bytes(4, "big") if offset else b""
                file.write(craft.rebase(batch, offset))
        (found / "orders-0" / LOG.replace("log", "index")).write_bytes(entries)
        shutil.copytree(found / "orders-0", Path(directory) / "copy" / "orders-0")
        with gzip.open(Path(directory) / f"{LOG}.gz", "wb", compresslevel=1) as packed:
            packed.write((found / "orders-0" / LOG).read_bytes())
        yield found


def arguments(name: str, disk: Path, out: Path) -> list[str]:
    places = {"disk": disk, "copy": disk.parent / "copy", "log": disk / "orders-0" / LOG, "out": out / "out"}
    places["gzip"] = disk.parent / f"{LOG}.gz"
    places["index"] = places["log"].with_suffix(".index")
    return [name.partition(" ")[0], *(each.format(**places) for each in ARGUMENTS[name])]


@pytest.fixture(autouse=True)
def unlimited() -> Iterator[None]:
    yield
    low_impact_reads.limit_rate(None)


def test_every_command_that_reads_segments() -> None:
    assert {name.partition(" ")[0] for name in ARGUMENTS} == {*COMMANDS} - READS_NONE - ELSEWHERE
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        options = {option for param in command.params for option in param.opts}
        assert ({"--max-rate", "--idle"} <= options) == (name not in READS_NONE), name


@pytest.mark.sampled
@pytest.mark.parametrize("name", few(some(0), 3))
def test_the_page_cache_stays_as_it_was(name: str, disk: Path, tmp_path: Path) -> None:
    files = [path for path in disk.parent.rglob("*") if path.suffix in (".log", ".index", ".checkpoint", ".gz")]
    left: dict[str, list[int]] = {}
    for attempt in range(4):
        before = {path: cached_of(path, forget) for path in files}
        assert not any(before.values())
        run(*arguments(name, disk, tmp_path / str(attempt)))
        left = {path.name: sorted(pages) for path in files if (pages := cached_of(path))}
        if not left:  # the kernel may still read ahead: one run that leaves nothing is enough
            break
    assert left == {}


def cached_of(path: Path, prepare: Callable[[int], None] = lambda fd: None) -> set[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        prepare(fd)
        return settled(fd, path.stat().st_size)
    finally:
        os.close(fd)


@pytest.mark.sampled
@pytest.mark.parametrize("name", few(some(1), 3))
def test_options_of_reading(name: str, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--idle takes effect before anything is read, and every byte is waited for."""
    clock = Clock()
    began = clock.now
    idle_from: list[int] = []
    monkeypatch.setattr(reading_options, "be_idle", lambda: idle_from.append(low_impact_reads.bytes_read()))
    monkeypatch.setattr(reading_options, "TokenBucket", partial(TokenBucket, clock=clock, sleep=clock.sleep))
    before = low_impact_reads.bytes_read()
    command, *others = arguments(name, disk, tmp_path)
    run(command, "--max-rate", "10k/s", "--idle", *others)
    count = low_impact_reads.bytes_read() - before
    assert idle_from == [before]
    assert count > SIZE * 0.9 or name in SMALL
    assert clock.now - began == pytest.approx(max(0, count / 10240 - BURST))
    run(command, *arguments(name, disk, tmp_path / "again")[1:])
    assert idle_from == [before]
    assert low_impact_reads.max_rate() is None


IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


def io_class(pid: int) -> int:
    number = IOPRIO_GET.get(platform.machine())
    if sys.platform != "linux" or number is None:
        pytest.skip("no ioprio_get")
    priority: int = ctypes.CDLL(None).syscall(number, idle.WHO_PROCESS, pid)
    return priority >> idle.CLASS_SHIFT


@pytest.mark.every_disk
def test_idle_in_every_process(disk: Path) -> None:
    """The process and its workers have the lowest priorities, while they wait for --max-rate."""
    with start("verify", str(disk.parent), "--jobs", "2", "--max-rate", "200k", "--idle") as process:
        try:
            wait_for(lambda: len(children(process.pid)) == 2)
            for pid in (process.pid, *children(process.pid)):
                assert os.getpriority(os.PRIO_PROCESS, pid) == idle.NICENESS
                assert io_class(pid) == idle.IDLE_CLASS
        finally:
            process.terminate()


def test_one_job_while_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    assert parallel_jobs.usual_jobs() == 2
    monkeypatch.setattr(idle, "_is_idle", True)
    assert parallel_jobs.usual_jobs() == 1


class Terminal(StatusLine):
    """A status line that keeps what it shows."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.texts: list[str] = []

    def show(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.sampled
@pytest.mark.parametrize("name", some(0))
def test_progress(name: str, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown while the last bytes are read, if every command takes long, and no thread shows it."""
    terminal = Terminal()
    monkeypatch.setattr(progress, "STATUS", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 3600.0)
    monkeypatch.setattr(progress, "is_enabled", lambda: True)
    pread = FileSource._pread

    def reads(self: FileSource, count: int, position: int) -> bytes:
        progress.tick()
        return pread(self, count, position)

    monkeypatch.setattr(FileSource, "_pread", reads)
    run(*arguments(name, disk, tmp_path))
    command = name.partition(" ")[0]
    assert terminal.texts
    assert all(len(text) < 80 for text in terminal.texts)
    assert any(text.startswith(command) or LOG in text for text in terminal.texts)
    shares = [int(found[1]) for text in terminal.texts if (found := re.search(r" ([0-9]+)%  .* MiB of ", text))]
    assert bool(shares) == (name not in UNKNOWN), terminal.texts
    assert max(shares, default=100) >= 70, terminal.texts


UNKNOWN = SMALL - {"ls", "restart-plan"} | {"inspect --extract", "inspect gzip"}
"""Those that do not know how much they will read, or read less than a MiB of this disk."""
