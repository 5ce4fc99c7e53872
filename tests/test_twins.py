"""Checks that the compiled core and the same files as plain Python give the same answers, in every command that reads a
log.

The inputs are damaged segments of real brokers, and disks with numbers near the limits of 64 bits. No command ends with
a traceback."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings

import kdump
from kdump.engine import COMPILED, PLAIN, running
from tests.check.test_batch_runs import CHANGES
from tests.conftest import ROOT, SEED, seeded, segment
from tests.craft import write_file
from tests.edges import KNOWN, Disk, disks, lay_out
from tests.test_damaged_disks import DAMAGES

INSTALLED = Path(kdump.__file__).parents[1]
"""Directory from which the kdump under test is imported."""
BEGIN = """
import sys
sys.path[:1] = [sys.argv[1]]
import kdump
sys.path.insert(0, sys.argv[2])
from tests.twin_worker import main
main()
"""
NOW = "2024-01-01T00:00:00Z"
COMMANDS = [
    ["inspect", "t-0"],
    ["inspect", "t-0", "--records"],
    ["inspect", "t-0", "--records", "--offset", "9223372036854775806.."],
    ["inspect", "t-0", "--records", "--json", "--time", "..1700000000000", "--jobs", "1"],
    ["inspect", "t-0", "--json"],
    ["inspect", "t-0", "--records", "--json", "--jobs", "1"],
    ["inspect", "t-0", "--records", "--json", "--key", "k", "--jobs", "1"],
    ["inspect", "t-0", "--records", "--json", "--control", "--offset", "0..2"],
    ["inspect", "t-0", "--read-committed", "--json"],
    ["inspect", "t-0", "-f", "%o %T %k\\n"],
    ["inspect", "t-0", "--hex"],
    ["inspect", "other", "--records", "--columns", "offset,timestamp,sequence,key"],
    ["inspect", "other", "--json"],
    ["inspect", "other", "--records", "--json", "--jobs", "1"],
    ["verify", "other", "--json", "--info"],
    ["ls", ".", "--json", "--by", "segment"],
    ["ls", "."],
    ["verify", ".", "--json", "--info", "--jobs", "1"],
    ["verify", ".", "--crc", "--json", "--jobs", "1"],
    ["stats", ".", "--json"],
    ["stats", "."],
    ["transactions", ".", "--json", "--now", NOW],
    ["producers", ".", "--json", "--now", NOW],
    ["retention", ".", "--json", "--now", NOW],
    ["restart-plan", ".", "--json"],
    ["reindex", ".", "--json", "--out", "OUT"],
    ["salvage", ".", "--json", "--out", "OUT"],
    ["carve", "t-0", "--json"],
    ["find", "value.a == 1 or 'b' in any", ".", "--json"],
    ["diff", ".", ".", "--json"],
]


class Worker:
    """A process that runs commands in one engine."""

    def __init__(self, engine: str, kdump: Path = INSTALLED) -> None:
        environment = os.environ | {"KDUMP_ENGINE": engine if engine == PLAIN else ""}
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(kdump), str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == engine

    def ask(self, lines: list[list[str]]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(lines) + "\n")
        self.process.stdin.flush()

    def answers(self) -> list[list[object]]:
        assert self.process.stdout is not None
        found: list[list[object]] = json.loads(self.process.stdout.readline())
        return found

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_error: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def twins() -> Iterator[tuple[Worker, ...]]:
    if running() != COMPILED:
        pytest.skip("nothing is compiled")
    with ExitStack() as stack:
        yield tuple(stack.enter_context(Worker(engine)) for engine in (COMPILED, PLAIN))


def command_line(words: list[str], root: Path) -> list[str]:
    """Return a command line with the paths of the disk below `root`."""
    paths = {"t-0": str(root / "t-0"), "other": str(root / "other"), ".": str(root), "OUT": "out"}
    return [paths.get(word, word) for word in words]


def agree(twins: tuple[Worker, ...], lines: list[list[str]]) -> None:
    """Run the command lines in both engines, and compare."""
    for worker in twins:
        worker.ask(lines)
    for words, *said in zip(lines, *(worker.answers() for worker in twins)):
        for status, _output, _files, crash in said:
            assert not crash, f"kdump {' '.join(words)}\n{crash}"
            assert status in (0, 1, 2, 3), words
        assert said[0] == said[1], words


def check(twins: tuple[Worker, ...], disk: Disk) -> None:
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / "disk"
        lay_out(disk, root)
        agree(twins, [command_line(words, root) for words in COMMANDS])


@pytest.mark.every_disk
@pytest.mark.parametrize("disk", KNOWN, ids=range(len(KNOWN)))
def test_known_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)


@pytest.mark.every_disk
@settings(max_examples=4)
@given(disks())
def test_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)


@pytest.mark.every_disk
@settings(max_examples=1500)
@given(disks())
def test_many_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)


# --- Damaged segments -------------------------------------------------------------------------------------------------

SEGMENTS = ("orders-none-0", "orders-zstd-0", "payments-0", "users-0", "v1-client010-gzip-0", "v0-client09-none-0")
OF_A_SEGMENT = [
    ["inspect", "PATH"],
    ["inspect", "PATH", "--records"],
    ["inspect", "PATH", "--json"],
    ["inspect", "PATH", "--json", "--records"],
    ["inspect", "PATH", "--hex"],
    ["inspect", "PATH", "--json", "--records", "--key-format", "int64", "--value-format", "json"],
    ["inspect", "PATH", "--records", "--time", "2026-11-21T07:58:23.."],
    ["inspect", "PATH", "--json", "--records", "--producer-id", "10"],
    ["verify", "PATH", "--json", "--info"],
    ["verify", "PATH", "--crc", "--json"],
    ["stats", "PATH", "--json"],
    ["carve", "--runs", "PATH"],
    ["find", "value.order > 7 or 'k3' in any", "PATH", "--json"],
    ["dump-log", "--files", "PATH", "--print-data-log"],
    ["dump-log", "--files", "PATH", "--deep-iteration"],
    ["transactions", "PATH", "--json", "--now", NOW],
    ["producers", "PATH", "--json", "--now", NOW],
]


def damaged(dice: random.Random, place: Path) -> Path:
    """Return a copy of a segment with one or two kinds of damage."""
    source = segment(dice.choice(SEGMENTS))
    data = bytearray(source.read_bytes())
    dice.choice(CHANGES)(data, dice)
    if data and dice.random() < 0.5:
        dice.choice(DAMAGES)(data, dice)
    path = write_file(place / source.parent.name / source.name, data)
    for written in (path, path.parent):  # a command looks at new files twice
        os.utime(written, (1_700_000_000, 1_700_000_000))
    return path


@pytest.mark.every_disk
@pytest.mark.sampled
def test_damaged_segments(twins: tuple[Worker, ...], tmp_path: Path) -> None:
    """Run one command on each; KDUMP_SEED runs sixty times as many."""
    dice, lines = seeded("twins"), []
    for number in range((60 if SEED else 1) * len(OF_A_SEGMENT)):
        path = str(damaged(dice, tmp_path / str(number)))
        lines.append([path if word == "PATH" else word for word in OF_A_SEGMENT[number % len(OF_A_SEGMENT)]])
    agree(twins, lines)
