"""Lower bounds for any tool: the CPU time that reading, checksums, codecs and writing take by themselves, without
kdump, on the segment that a row measures, with its codec and its batches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from crc32c import crc32c

from bench.segments import batches
from kdump.format.codec.decompress_small import decompress_small

BLOCK = 1 << 20
HEADER = 61
CODECS = ("gzip", "snappy", "lz4", "zstd")
LIMIT = 256 << 20
RUNS = 3


def bound(path: Path, codec: str, needs: tuple[str, ...], command: list[str]) -> float:
    """Return the seconds for starting Python, for what the command `needs` of the file, and for writing its output."""
    return _startup() + sum(_limit(what, path, codec) for what in needs) + _writing(_written(command))


def _least(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest of RUNS calls in this process: a lower bound, not an average."""
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


@cache
def _limit(what: str, path: Path, codec: str) -> float:
    """Return the seconds that a file takes: to `read`; for the checksums of its batches (`crc`) and for decompressing
    them with the library that kdump uses, as kdump calls it (`codec`), both one by one, in memory."""
    if what == "read":
        return _least(lambda: _read(path))
    bodies = [memoryview(batch) for batch in batches(path.read_bytes())]
    if what == "crc":
        return _least(lambda: deque((crc32c(body[21:]) for body in bodies), 0))
    if codec not in CODECS:
        return 0.0
    payloads = [body[HEADER:] for body in bodies]
    assert decompress_small(codec, payloads[0], LIMIT) is not None
    return _least(lambda: deque((decompress_small(codec, payload, LIMIT) for payload in payloads), 0))


@cache
def _startup() -> float:
    """Return the CPU seconds in which Python starts and imports click, which reads the command line."""
    before = os.times()
    for _ in range(RUNS):
        subprocess.run([sys.executable, "-c", "import click"], check=True)
    after = os.times()
    return (after.children_user - before.children_user + after.children_system - before.children_system) / RUNS


def _written(command: list[str]) -> int:
    """Return the number of bytes that a command writes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        return sum(map(len, _blocks(process.stdout.fileno())))


def _writing(size: int) -> float:
    """Return the seconds for writing that many bytes into a pipe that `cat` empties."""
    block = bytes(BLOCK)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as cat:
        assert cat.stdin is not None
        began = time.process_time()
        for start in range(0, size, BLOCK):
            cat.stdin.write(block[: size - start])
        return time.process_time() - began


def _blocks(file: int) -> Iterator[bytes]:
    while block := os.read(file, BLOCK):
        yield block


def _read(path: Path) -> None:
    buffer = bytearray(BLOCK)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
