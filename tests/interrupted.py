"""Runs `kdump` many times in one call, each in its own process, in which a signal arrives at one of its imports.

This imports nothing of kdump, nor what kdump imports: each forked process imports everything itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.forks import exit_status, signal_arrives

BEFORE = ("kdump.engine", "kdump.version", "kdump.__main__")
"""Imported before the first line of `main`."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Interrupted:
    """A run. `at`: the signal `number` arrives at the import with this number, 0 for none; `swallowed`: it arrives in a
    callback of a weak reference, where Python discards the exception that it raises."""

    arguments: tuple[str, ...]
    number: int = signal.SIGINT
    at: int = 0
    swallowed: bool = False


class Ended(NamedTuple):
    """Result of a run. `status`: negative if a signal ended it; `stderr`: since the signal; `imports`: how many there
    were."""

    status: int
    stderr: str
    imports: int


def ended(runs: Sequence[Interrupted], directory: Path) -> list[Ended]:
    """Run them all and return their results."""
    done = subprocess.run(
        ["env", "--default-signal", sys.executable, "-m", "tests.interrupted", str(directory)],
        input=json.dumps([asdict(run) for run in runs]).encode(),
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    found = []
    for number, status in enumerate(json.loads(done.stdout)):
        counted = directory / f"{number}.imports"
        imports = int(counted.read_text()) if counted.exists() else 0
        found.append(Ended(status, (directory / f"{number}.err").read_text(), imports))
    return found


class Target:
    """Something to refer to weakly."""


class AtImport:
    """Import finder that finds nothing, counts the imports and sends a signal at one of them."""

    def __init__(self, run: Interrupted, counted: str) -> None:
        self.run = run
        self.count = 0
        self.file = os.open(counted, os.O_WRONLY | os.O_CREAT)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if not name.startswith(("kdump.", "click")) or name in BEFORE:
            return
        self.count += 1
        os.pwrite(self.file, str(self.count).encode(), 0)
        if self.count == self.run.at and self.run.swallowed:
            at = Target()
            kept = weakref.ref(at, lambda _: signal_arrives(self.run.number))
            del at
            assert kept() is None
        elif self.count == self.run.at:
            signal_arrives(self.run.number)


def _child(run: Interrupted, number: int, directory: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(f"{directory}/{number}.err", os.O_WRONLY | os.O_CREAT), 2)
    sys.meta_path.insert(0, AtImport(run, f"{directory}/{number}.imports"))
    sys.argv = ["kdump", *run.arguments]
    from kdump.__main__ import main

    main()


def _main(directory: str) -> None:
    statuses = []
    for number, values in enumerate(json.load(sys.stdin)):
        run = Interrupted(**values)
        statuses.append(exit_status(partial(_child, run, number, directory)))
    print(json.dumps(statuses))


if __name__ == "__main__":
    _main(sys.argv[1])
