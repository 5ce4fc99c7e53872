"""A signal that arrives while a command is still being imported ends it as one that arrives later."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from kdump.cli import COMMANDS
from tests.conftest import FIXTURES, ROOT, few, sample, seeded
from tests.interrupted import Interrupted, ended

PAYMENTS = str(FIXTURES / "disk-1" / "payments-0")
ARGUMENTS = {
    "browse": ("--help",),
    "schema": (),
    "completion": ("bash",),
    "dump-log": ("--files", f"{PAYMENTS}/{0:020}.log"),
    "diff": (PAYMENTS, PAYMENTS),
    "doctor": (str(FIXTURES / "clean-2"),),
    "cluster": (str(FIXTURES / "state-1"),),
    "groups": (str(FIXTURES / "state-1"),),
    "restart-plan": (str(FIXTURES / "disk-1"),),
    "space": (str(FIXTURES / "disk-1"),),
    "scan": ("--help",),
    "query": ("--help",),
    "rescue": (str(FIXTURES / "disk-1"), "--out", "OUT"),
    "salvage": (PAYMENTS, "--out", "OUT"),
    "report": (PAYMENTS, "--out", "OUT"),
    "bundle": (PAYMENTS, "--quiet", "--out", "OUT"),
    "export": (PAYMENTS, "--quiet", "--out", "OUT"),
    "find": ("offset == 1", PAYMENTS),
    "explain": (str(ROOT / "docs" / "explain-server.log.gz"),),
    "registry": (str(FIXTURES / "registry-1"),),
    "connect": (str(FIXTURES / "connect-1"),),
    "restore": ("--help",),
}
STATUS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM, signal.SIGHUP: -signal.SIGHUP}
COUNT, APART = 3, 6


def points() -> list[object]:
    """Parameters: of a sampled command so many of its imports, and in the deep sweep one in APART of all commands, from
    another one on by each seed, with SIGTERM and SIGHUP, which have one handler, in turn."""
    return [
        *(pytest.param(command, COUNT, id=command) for command in sample([*COMMANDS], 48, "interrupted")),
        *(pytest.param(command, 0, id=f"{command}-all", marks=pytest.mark.every_disk) for command in COMMANDS),
    ]


@pytest.mark.sampled
@pytest.mark.parametrize(("command", "count"), points())
def test_a_signal_at_an_import(command: str, count: int, tmp_path: Path) -> None:
    arguments = [text.replace("OUT", str(tmp_path / "out")) for text in ARGUMENTS.get(command, (PAYMENTS,))]
    asked = Interrupted((command, *arguments))
    (plain,) = ended([asked], tmp_path)
    assert (plain.status in (0, 1), plain.imports > 5) == (True, True), plain
    last = plain.imports
    every = range(1 + seeded(command).randrange(APART), last + 1, APART)
    at = sorted({1 + number * (last - 1) // (count - 1) for number in range(count)}) if count else every
    runs = [
        replace(
            asked,
            at=each,
            number=number,
            arguments=(*asked.arguments[:-1], asked.arguments[-1].replace("/out", f"/{number}-{each}")),
        )
        for each in at
        for number in STATUS
        if count or number == signal.SIGINT or each % 2 == (number == signal.SIGHUP)
    ]
    for run, result in zip(runs, ended(runs, tmp_path)):
        assert (result.status, result.stderr.strip()) == (STATUS[signal.Signals(run.number)], ""), (run, result)


@pytest.mark.skipif(os.environ.get("KDUMP_ENGINE") == "plain", reason="the plain engine has too few imports for this")
@pytest.mark.parametrize("number", few(STATUS, 1))
def test_a_signal_where_its_exception_is_discarded(number: signal.Signals, tmp_path: Path) -> None:
    """As in the callback that the import system has for the lock of a module. Compiled code that is being imported may
    discard the exception once more, silently, so that one attempt is not enough."""
    asked = Interrupted(("verify", PAYMENTS), number, swallowed=True)
    runs = [replace(asked, at=each) for each in (30, 90)]
    for run in runs:
        results = ended([run] * 2, tmp_path)
        assert any((each.status, each.stderr.strip()) == (STATUS[number], "") for each in results), (run, results)
