"""Peak memory is a few windows, whatever the size of the file, of the batch or of a record; and one value where that is
shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import craft
from tests.conftest import segment

LIMIT = 100 * 1024
"""KiB resident."""
MIB = 1 << 20

MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as out:
    print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=out)
"""
"""Runs a command and tells its exit status and its peak. (A child of the test itself would have inherited its peak.)"""


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
"""As cat; but the holes of a file stay out of the page cache, which is what takes the time."""


def inspect(path: Path, piped: bool) -> Iterator[bytes]:
    """The lines of `kdump inspect --records --json`, given the file or a pipe from it, which stays below the limit."""
    measured = path.with_suffix(".peak")
    command = [sys.executable, "-c", MEASURE, str(measured), sys.executable, "-m", "kdump", "inspect"]
    command += ["-" if piped else str(path), "--records", "--json"]
    with ExitStack() as stack:
        stdin = None
        if piped:
            stdin = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", CAT, str(path)], stdout=subprocess.PIPE)
            ).stdout
        run = stack.enter_context(subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE))
        assert run.stdout is not None
        yield from run.stdout
    status, peak = map(int, measured.read_text().split())
    assert status == 0
    assert peak < LIMIT


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 GiB: real batches, a hole, and real batches again at the end."""
    path = tmp_path_factory.mktemp("sparse") / f"{0:020}.log"
    first = segment("clean-1/orders-zstd-0").read_bytes()
    behind = [craft.rebase(batch, 1000 + 100 * i) for i, batch in enumerate(craft.split(first))]
    with path.open("wb") as file:
        file.write(first)
        file.truncate((4 << 30) - len(first))
        file.seek(0, os.SEEK_END)
        file.write(b"".join(behind))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_a_sparse_file(sparse: Path, piped: bool) -> None:
    lines = list(inspect(sparse, piped))
    kinds = [line[:16] for line in lines]
    assert kinds == [b'{"type":"record"'] * 300 + [b'{"type":"region"'] + [b'{"type":"record"'] * 300
    size = (4 << 30) - 2 * segment("clean-1/orders-zstd-0").stat().st_size
    assert b'"padding"' in lines[300]
    assert f'"size":{size}'.encode() in lines[300]


COUNT = 200 * MIB // 4096


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    """200 MiB of them."""
    value = os.urandom(64).hex().encode() * 32
    return [craft.record(i, b"%d" % i, value[:-60]) for i in range(COUNT)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "piped"),
    [
        ("none", True),
        ("zstd", False),
        *(pytest.param(codec, False, marks=pytest.mark.every_disk) for codec in craft.CODECS if codec != "zstd"),
        *(pytest.param(codec, True, marks=pytest.mark.every_disk) for codec in craft.CODECS[1:]),
    ],
    ids=lambda value: {False: "file", True: "pipe"}.get(value, value),
)
def test_a_large_batch(codec: str, piped: bool, records: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    batch = craft.batch(records, codec)
    path.write_bytes(batch + craft.one(b"behind", COUNT))
    del batch
    count = 0
    for line in inspect(path, piped):
        last = line
        count += 1
    assert count == COUNT + 1
    assert b'"value":"behind"' in last


def header_record(count: int) -> bytes:
    """A record of that many headers with an empty key and no value."""
    body = b"\0\0\0" + craft.varint(-1) + craft.varint(-1) + craft.varint(count) + b"\0\1" * count
    return craft.varint(len(body)) + body


HOSTILE = {
    "value": lambda: craft.batch([craft.record(value=b"v" * (150 * MIB))], "zstd"),
    "plain-value": lambda: craft.batch([craft.record(value=b"\xff" * (90 * MIB)), craft.record(1)]),
    "headers": lambda: craft.batch([header_record(1_000_000)], "gzip"),
}
"""Segments of one record that takes much memory, by what it is of: some of them have a few kilobytes."""
QUICK = ["verify", "stats", "retention --keys --config cleanup.policy=compact"]
"""Commands that read every record and show no value."""
NOT_SHOWING = [
    "verify --info --jobs 1",
    "ls",
    "inspect --json",
    "inspect",
    "transactions",
    "producers",
    "reindex",
    "carve",
]
NOT_SHOWING += ["salvage --out OUT", "dump-log --files", *QUICK]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    for name, make in HOSTILE.items():
        (root / f"{name}-0").mkdir()
        (root / f"{name}-0" / f"{0:020}.log").write_bytes(make())
    return root


def run(path: Path, out: Path, *words: str, limit: int | None = None) -> tuple[int, int, str]:
    """Exit status, peak in KiB and stderr of a command, its standard output thrown away; `limit`: bytes of address
    space."""
    bound = "" if limit is None else f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit},) * 2)"
    paths = {"OUT": str(out / "written"), "PATH": str(path)}
    command = [sys.executable, "-m", "kdump", *(paths.get(word, word) for word in words)]
    with subprocess.Popen(
        [sys.executable, "-c", bound + MEASURE, str(out / "peak"), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stderr is not None
        said = started.stderr.read().decode()
    status, peak = map(int, (out / "peak").read_text().split())
    return status, peak, said


@pytest.mark.parametrize("command", QUICK)
def test_what_shows_no_value_holds_none(command: str, hostile: Path, tmp_path: Path) -> None:
    status, peak, _ = run(hostile, tmp_path, *command.split(), "PATH")
    assert status == 0
    assert peak < LIMIT


@pytest.mark.every_disk
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("command", NOT_SHOWING)
def test_no_other_holds_one(command: str, name: str, hostile: Path, tmp_path: Path) -> None:
    path = hostile / f"{name}-0" / f"{0:020}.log"
    status, peak, said = run(path, tmp_path, *command.split(), "PATH")
    assert status in (0, 1)
    assert "Traceback" not in said
    assert peak < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("value", 150), ("plain-value", 90), ("headers", 2)])
def test_a_value_is_held_once_where_it_is_shown(name: str, value: int, hostile: Path, tmp_path: Path) -> None:
    path = hostile / f"{name}-0" / f"{0:020}.log"
    status, peak, _ = run(path, tmp_path, "inspect", "--records", "--json", "PATH")
    assert status == 0
    assert peak < LIMIT + value * 1024


SHOWING = ["inspect --records", "inspect --records --json", "inspect --hex", "dump-log --print-data-log --files"]


@pytest.mark.parametrize("command", SHOWING)
def test_no_memory_is_one_line(command: str, hostile: Path, tmp_path: Path) -> None:
    path = hostile / "plain-value-0" / f"{0:020}.log"
    status, _, said = run(path, tmp_path, *command.split(), "PATH", limit=150 * MIB)
    assert status == 2
    # CPython itself reports a buffer that it could not release for want of memory.
    lines = [line for line in said.splitlines() if not line.startswith("SystemError: deallocated bytearray object")]
    assert len(lines) == 1
    assert lines[0].startswith("kdump: not enough memory")
