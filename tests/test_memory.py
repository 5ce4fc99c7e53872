"""Peak memory is a few windows and the largest record, whatever the size of the file or of the batch."""

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
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
@pytest.mark.parametrize("codec", craft.CODECS)
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
