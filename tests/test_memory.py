"""Peak memory is a few windows, whatever the size of the file, of a batch or of a record; and one value, if it is
shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import craft, hostile
from tests.conftest import segment

LIMIT = 100 * 1024
"""Resident memory in KiB."""
MIB = 1 << 20

STEADY = {"MALLOC_TOP_PAD_": "131072"}
"""The default of glibc. Because it is set, glibc does not raise the size from which it returns memory at once, which
adds from 0 to 10 MiB to the same run, depending on the lengths of paths."""

MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as out:
    print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=out)
"""
"""Runs a command and reports its exit status and peak memory. (A child of the test itself would inherit the test's
peak.)"""


CAT = """
import os, sys
with open(sys.argv[1], "rb") as file:
    end = file.seek(0, os.SEEK_END)
    position = 0
    while position < end:
        data = min(os.lseek(file.fileno(), position, os.SEEK_DATA), end)
        while position < data:
            position += sys.stdout.buffer.write(bytes(min(1 << 20, data - position)))
        file.seek(position)
        position += sys.stdout.buffer.write(file.read(1 << 20))
"""
"""Does the same as cat, but keeps the holes of a file out of the page cache, because filling it takes most of the
time."""


def inspect(path: Path, piped: bool) -> Iterator[bytes]:
    """Yield the lines of `kdump inspect --records --json`, given the file or a pipe from it, and check the memory
    limit."""
    measured = path.with_suffix(".peak")
    command = [sys.executable, "-IS", "-c", MEASURE, str(measured), sys.executable, "-m", "kdump", "inspect"]
    command += ["-" if piped else str(path), "--records", "--json"]
    with ExitStack() as stack:
        stdin = None
        if piped:
            stdin = stack.enter_context(
                subprocess.Popen([sys.executable, "-IS", "-c", CAT, str(path)], stdout=subprocess.PIPE)
            ).stdout
        run = stack.enter_context(subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE))
        assert run.stdout is not None
        yield from run.stdout
    status, peak = map(int, measured.read_text().split())
    assert status == 0
    assert peak < LIMIT


def sparse(path: Path, size: int) -> Path:
    """Create a file: real batches, a hole up to `size`, and real batches again."""
    first = segment("clean-1/orders-zstd-0").read_bytes()
    behind = [craft.rebase(batch, 1000 + 100 * i) for i, batch in enumerate(craft.split(first))]
    with path.open("wb") as file:
        file.write(first)
        file.truncate(size - len(first))
        file.seek(0, os.SEEK_END)
        file.write(b"".join(behind))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "piped"),
    [
        pytest.param(4 << 30, False, id="file"),
        pytest.param(200 * MIB, True, id="pipe"),
        pytest.param(4 << 30, True, marks=pytest.mark.every_disk, id="long-pipe"),
    ],
)
def test_a_sparse_file(size: int, piped: bool, tmp_path: Path) -> None:
    lines = list(inspect(sparse(tmp_path / f"{0:020}.log", size), piped))
    kinds = [line[:16] for line in lines]
    assert kinds == [b'{"type":"record"'] * 300 + [b'{"type":"region"'] + [b'{"type":"record"'] * 300
    hole = size - 2 * segment("clean-1/orders-zstd-0").stat().st_size
    assert b'"padding"' in lines[300]
    assert f'"size":{hole}'.encode() in lines[300]


COUNT = 200 * MIB // 4096
QUICK_COUNT = 80 * MIB // 4096
"""Records of a batch in `make test`: with what Python takes, holding them would exceed the limit, too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "piped", "count"),
    [
        *(
            pytest.param(codec, piped, QUICK_COUNT, marks=pytest.mark.every_disk)
            for codec, piped in (("none", True), ("zstd", False))
        ),
        *(
            pytest.param(codec, piped, COUNT, marks=pytest.mark.every_disk)
            for codec in craft.CODECS
            for piped in (False, True)
        ),
    ],
    ids=lambda value: {False: "file", True: "pipe", QUICK_COUNT: "quick", COUNT: "large"}.get(value, value),
)
def test_a_large_batch(codec: str, piped: bool, count: int, tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    value = os.urandom(64).hex().encode() * 32
    batch = craft.batch([craft.record(i, b"%d" % i, value[:-60]) for i in range(count)], codec)
    path.write_bytes(batch + craft.one(b"behind", count))
    del batch
    lines = 0
    for line in inspect(path, piped):
        last = line
        lines += 1
    assert lines == count + 1
    assert b'"value":"behind"' in last


NOTHING_SHOWN = {
    "doctor": "doctor DIR",
    "ls": "ls DIR",
    "ls --segments": "ls --segments DIR",
    "inspect": "inspect LOG",
    "inspect --json": "inspect --json LOG",
    "verify": "verify --jobs 1 DIR",
    "verify --info": "verify --info --jobs 1 LOG",
    "stats": "stats --detail DIR",
    "transactions": "transactions DIR",
    "producers": "producers --history DIR",
    "retention": "retention DIR",
    "retention --keys": "retention --keys --config cleanup.policy=compact DIR",
    "restart-plan": "restart-plan DIR",
    "diff": "diff DIR TWIN",
    "carve": "carve LOG --out OUT/carved",
    "salvage": "salvage DIR --out OUT/salvaged",
    "reindex": "reindex DIR --out OUT/rebuilt",
    "groups": "groups DIR",
    "cluster": "cluster DIR",
    "dump-log": "dump-log --files LOG",
    "dump-log --deep-iteration": "dump-log --deep-iteration --files LOG",
}
"""Commands that show no key, value or header. DIR is a log directory, LOG a segment in it."""
SHOWN_ALL_THE_SAME = {("header-key", "dump-log --deep-iteration"): 90}
"""Size in MiB of a header's key that such a command does show."""
QUICK = ["verify"]
TOGETHER = ["value-none", "value-zstd", "value-snappy-block", "headers-million", "key", "control", "wrapper-0-gzip"]
"""Hostile inputs, put into one log directory, on which `make test` runs the quick commands."""
DRAWING = 170 * 1024
"""Memory in KiB that the drawing engine of `report` takes, whatever the disk."""


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("together")
    directory = root / "logs"
    directory.mkdir()
    for number, name in enumerate(TOGETHER):
        hostile.log_of(hostile.make(name, root)).parent.rename(directory / f"payments-{number}")
    return directory


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


def run(path: Path, out: Path, *words: str, limit: int | None = None) -> tuple[int, int, str]:
    """Return exit status, peak memory in KiB and stderr of a command; its standard output is discarded. `limit`: bytes
    of address space."""
    bound = "" if limit is None else f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit},) * 2)"
    paths = {"OUT": str(out), "DIR": str(path), "TWIN": str(path)}
    if "LOG" in words:
        paths["LOG"] = str(path if path.suffix == ".log" else hostile.log_of(path))
    for name, place in paths.items():
        words = tuple(re.sub(f"^{name}\\b", place, word) for word in words)
    command = [sys.executable, "-m", "kdump", *words]
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", bound + MEASURE, str(out / "peak"), *command],
        env={**os.environ, **STEADY},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stderr is not None
        said = started.stderr.read().decode()
    status, peak = map(int, (out / "peak").read_text().split())
    return status, peak, said


@pytest.mark.every_disk
@pytest.mark.parametrize("command", QUICK)
def test_what_shows_no_value_holds_none(command: str, together: Path, tmp_path: Path) -> None:
    status, peak, said = run(together, tmp_path, *NOTHING_SHOWN[command].split())
    assert status == 0, said
    assert peak < LIMIT


@pytest.mark.every_disk
@pytest.mark.parametrize("name", hostile.ALL)
def test_no_command_holds_what_it_does_not_show(name: str, disks: Path, tmp_path: Path) -> None:
    directory = hostile.make(name, disks)
    over = {}
    for command, words in NOTHING_SHOWN.items():
        status, peak, said = run(directory, tmp_path, *words.split())
        assert status in (0, 1, 2, 3), command
        assert "Traceback" not in said, command
        if peak >= LIMIT + SHOWN_ALL_THE_SAME.get((name, command), 0) * 1024:
            over[command] = peak
    assert not over


@pytest.mark.every_disk
def test_deep_iteration_holds_no_value(disks: Path, tmp_path: Path) -> None:
    words = NOTHING_SHOWN["dump-log --deep-iteration"].split()
    status, peak, said = run(hostile.make("value-none", disks), tmp_path, *words)
    assert status == 0, said
    assert peak < LIMIT


@pytest.mark.every_disk
@pytest.mark.parametrize("name", ["value-zstd", "value-snappy-chunk", "wrapper-1-lz4"])
def test_a_report_holds_no_value(name: str, disks: Path, tmp_path: Path) -> None:
    status, peak, said = run(hostile.make(name, disks), tmp_path, "report", "DIR", "--out", "OUT/page.html")
    assert status == 0, said
    assert peak < LIMIT + DRAWING


SHOWN = {"value-none": 90, "value-zstd": 250, "value-snappy-block": 200, "message-1": 90, "wrapper-0-gzip": 100}
"""Size in MiB of the value in a hostile input."""
QUICK_SHOWN = [("value-none", "dump-log"), ("value-none", "table")]
SHOWING = {
    "table": "inspect --records LOG",
    "json": "inspect --records --json LOG",
    "hexdump": "inspect --hex LOG",
    "extract": "inspect --offset 0 --extract value LOG",
    "dump-log": "dump-log --print-data-log --files LOG",
}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(name, command, marks=() if (name, command) in QUICK_SHOWN else pytest.mark.every_disk)
        for name in SHOWN
        for command in SHOWING
    ],
)
def test_a_value_is_held_once_where_it_is_shown(name: str, command: str, disks: Path, tmp_path: Path) -> None:
    status, peak, said = run(hostile.make(name, disks), tmp_path, *SHOWING[command].split())
    assert status == 0, said
    assert peak < LIMIT + SHOWN[name] * 1024


@pytest.mark.every_disk
@pytest.mark.parametrize("name", ["headers-million", "headers-8-million"])
@pytest.mark.parametrize(
    "words",
    [
        "inspect --records LOG",
        "inspect --records --columns headers,offset LOG",
        "dump-log --print-data-log --files LOG",
    ],
)
def test_no_header_is_an_object(name: str, words: str, disks: Path, tmp_path: Path) -> None:
    """Eight million headers take only 16 MB."""
    status, peak, said = run(hostile.make(name, disks), tmp_path, *words.split())
    assert status == 0, said
    assert peak < LIMIT


TERMINAL = """
import os, pty, sys
sys.stdout.flush()
def read(fd):
    return os.read(fd, 1 << 16)
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], read, lambda fd: b"")))
"""


@pytest.mark.every_disk
def test_headers_that_a_terminal_cuts_are_not_held(disks: Path, tmp_path: Path) -> None:
    """Only the record itself is."""
    path = hostile.log_of(hostile.make("headers-8-million", disks))
    command = [sys.executable, "-IS", "-c", MEASURE, str(tmp_path / "peak"), sys.executable, "-m", "kdump"]
    found = subprocess.run(
        [sys.executable, "-c", TERMINAL, *command, "inspect", "--records", str(path)],
        env=os.environ | {"COLUMNS": "200", "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert b"=null, =null" in found.stdout
    assert max(map(len, found.stdout.splitlines())) < 300
    status, peak = map(int, (tmp_path / "peak").read_text().split())
    assert status == 0
    assert peak < LIMIT


WITH_LITTLE = SHOWING | {
    "filter": "inspect --records --value-regex none LOG",
    "salvage": "salvage DIR --format jsonl --out OUT/salvaged",
}
QUICK_LITTLE = [("value-none", command) for command in ("json", "salvage")]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(name, command, marks=() if (name, command) in QUICK_LITTLE else pytest.mark.every_disk)
        for name in SHOWN
        for command in WITH_LITTLE
    ],
)
def test_no_memory_is_one_line(name: str, command: str, disks: Path, tmp_path: Path) -> None:
    words = WITH_LITTLE[command].split()
    status, _, said = run(hostile.make(name, disks), tmp_path, *words, limit=110 * MIB)
    assert status == 2
    # CPython itself reports a buffer that it could not release because memory is exhausted.
    lines = [line for line in said.splitlines() if not line.startswith("SystemError: deallocated bytearray object")]
    assert len(lines) == 1
    assert lines[0].startswith("kdump: not enough memory")
