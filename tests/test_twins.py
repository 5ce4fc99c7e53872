"""The compiled core and the same files as plain Python give the same answers, on disks whose numbers lie at the edge of
64 bits, through every command that reads a log; and none ends with a traceback."""

from __future__ import annotations

import json
import os
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
from tests.conftest import ROOT
from tests.edges import KNOWN, Disk, disks, lay_out

INSTALLED = Path(kdump.__file__).parents[1]
"""Where the kdump under test is imported from."""
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
    """A command line with the paths of the disk below `root`."""
    paths = {"t-0": str(root / "t-0"), "other": str(root / "other"), ".": str(root), "OUT": "out"}
    return [paths.get(word, word) for word in words]


def check(twins: tuple[Worker, ...], disk: Disk) -> None:
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / "disk"
        lay_out(disk, root)
        lines = [command_line(words, root) for words in COMMANDS]
        for worker in twins:
            worker.ask(lines)
        for words, *said in zip(COMMANDS, *(worker.answers() for worker in twins)):
            for status, _output, _files, crash in said:
                assert not crash, f"kdump {' '.join(words)}\n{crash}"
                assert status in (0, 1, 2, 3), words
            assert said[0] == said[1], words


@pytest.mark.parametrize("disk", KNOWN, ids=range(len(KNOWN)))
def test_known_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)


@settings(max_examples=12)
@given(disks())
def test_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)


@pytest.mark.every_disk
@settings(max_examples=1500)
@given(disks())
def test_many_numbers_at_the_edge(twins: tuple[Worker, ...], disk: Disk) -> None:
    check(twins, disk)
