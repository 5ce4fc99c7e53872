"""Runs `kdump` many times in one call, each in its own process with chosen standard streams and signals.

A Python process takes longer to start than most runs take, so only one is started, which forks for each run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.conftest import ROOT
from tests.forks import exit_status, signal_arrives

OPEN, CLOSED, FULL, GONE = "open", "closed", "full", "gone"
"""Kinds of streams: a file, closed, on a full disk, or a pipe without a reader."""
OBSERVED = ("kdump/questions", "kdump/incident", "kdump/log/output_directory", "contextlib.py")
"""Parts of the paths of modules that write files."""


@dataclass(frozen=True)
class Run:
    """A run. `terminated_at`: SIGTERM arrives when this many lines of OBSERVED modules have run; `jumps`:
    the clock advances by an hour each time that it is read; `now`: what time.time says, in epoch seconds."""

    arguments: tuple[str, ...]
    stdout: str = OPEN
    stderr: str = OPEN
    terminated_at: int | None = None
    jumps: bool = False
    now: float | None = None

    def writing_to(self, out: str) -> Run:
        """Return the same run with that path for OUT in its arguments."""
        return replace(self, arguments=tuple(text.replace("OUT", out) for text in self.arguments))


@dataclass(frozen=True)
class Ended:
    """Result of a run. `status`: negative if a signal ended the run; `stderr`: since `terminated_at`; `lines`: number
    of lines run, as counted for it."""

    status: int
    stdout: bytes
    stderr: bytes
    lines: int


def ended(runs: Sequence[Run], directory: Path) -> list[Ended]:
    """Run them all and return their results. Their output is stored in `directory`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.streams", str(directory)],
        input=json.dumps([asdict(run) for run in runs]).encode(),
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    statuses = json.loads(done.stdout)
    read = [[(directory / f"{number}.{name}").read_bytes() for name in ("out", "err")] for number in range(len(runs))]
    return [Ended(status, out, err, lines) for (status, lines), (out, err) in zip(statuses, read)]


def _child(run: Run, number: int, directory: str) -> None:
    for fd, kind, name in ((1, run.stdout, "out"), (2, run.stderr, "err")):
        stream = "stdout" if fd == 1 else "stderr"
        target = os.open(f"{directory}/{number}.{name}", os.O_WRONLY | os.O_CREAT)
        if kind == FULL:
            target = os.open("/dev/full", os.O_WRONLY)
        elif kind == GONE:
            reader, target = os.pipe()
            os.close(reader)
        os.dup2(target, fd)
        if kind == CLOSED:  # Python then has no such stream
            os.close(fd)
            setattr(sys, stream, None)
            setattr(sys, f"__{stream}__", None)
        else:
            setattr(sys, stream, open(fd, "w", closefd=False))  # noqa: SIM115
    sys.argv = ["kdump", *run.arguments]
    if (now := run.now) is not None:
        time.time = lambda: now
    if run.jumps:
        clock = iter(range(0, 1 << 40, 3600))
        time.monotonic = lambda: float(next(clock))
    if run.terminated_at is not None:
        sys.settrace(_Lines(run.terminated_at, number, directory).call)
    from kdump.cli import main

    main()


class _Lines:
    """Counts the lines that run in modules that write files, and sends SIGTERM at one of them."""

    def __init__(self, last: int, number: int, directory: str) -> None:
        self.last = last
        self.count = 0
        self.file = os.open(f"{directory}/{number}.lines", os.O_WRONLY | os.O_CREAT)

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        return self.line if any(part in name for part in OBSERVED) else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            os.pwrite(self.file, str(self.count).encode(), 0)
            if self.count == self.last:
                signal_arrives(signal.SIGTERM)
        return self.line


def _main(directory: str) -> None:
    from kdump.cli import COMMANDS, command_of

    for name in COMMANDS:
        command_of(name)
    answers = []
    for number, values in enumerate(json.load(sys.stdin)):
        run = Run(**values)
        status = exit_status(partial(_child, run, number, directory))
        lines = Path(directory, f"{number}.lines")
        answers.append((status, int(lines.read_text()) if lines.exists() else 0))
    print(json.dumps(answers))


if __name__ == "__main__":
    _main(sys.argv[1])
