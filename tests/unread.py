"""Runs a command over a disk again and again, each time with another file or directory that it may not read."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.command import run
from tests.conftest import ROOT

NOBODY = 65534
"""A user who does not own the files."""
OVERRIDES = 1 << 1 | 1 << 2
"""Capabilities by which root reads a file whatever its mode: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
CAPABILITIES = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""
LOOKS = ("open", "os.listdir", "os.scandir")
"""Audit events of reading a file, or the names in a directory."""


class Answer(NamedTuple):
    """The answer of a command. `name`: what was unreadable, relative to the disk, empty for none; `was_tried`: whether
    the command tried to read it."""

    name: str
    status: int
    stdout: str
    stderr: str
    was_tried: bool

    @property
    def first(self) -> str:
        """The first line of the answer; empty if there is none."""
        return self.stdout.partition("\n")[0]


def answers(
    arguments: list[str], disk: Path, names: Iterable[str], out: Path | None = None, mode: int = 0
) -> list[Answer]:
    """Return the answer of the command over the readable disk, and then with each of the names in the given mode.

    Another process runs all of them, and drops its permissions for each. `out`: what the command writes, removed after
    each run."""
    if arguments[0] == "report":  # the engine that draws charts does not survive a fork
        command = [sys.executable, "-m", "tests.unread"]
        asked = pickle.dumps((arguments, disk, list(names), out, mode))
        done = subprocess.run(command, cwd=ROOT, input=asked, stdout=subprocess.PIPE, check=True)
        found: list[Answer] = pickle.loads(done.stdout)
        return found
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            gc.freeze()  # objects of engines with threads, such as DuckDB, must not be freed here
            os.close(reading)
            with open(writing, "wb") as file:
                pickle.dump(list(_each(arguments, disk, names, out, mode)), file)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as file:
        data = file.read()
    assert os.waitpid(child, 0)[1] == 0
    found = pickle.loads(data)
    return found


def may_override(allowed: bool) -> None:
    """Let this process, if it is root's, read files whatever their modes, or not."""
    if os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES, 0)
    sets = (ctypes.c_uint32 * 6)()  # the lower halves of effective, permitted and inheritable, and the upper ones
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    sets[0] = sets[0] | (OVERRIDES & sets[1]) if allowed else sets[0] & ~OVERRIDES
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())


def _each(arguments: list[str], disk: Path, names: Iterable[str], out: Path | None, mode: int) -> Iterator[Answer]:
    tried: set[str] = set()

    def look(event: str, details: tuple[object, ...]) -> None:
        if event in LOOKS and isinstance(details[0], (str, bytes)):
            tried.add(os.path.abspath(os.fsdecode(details[0])))

    sys.addaudithook(look)
    for name in ("", *names):
        path = disk / name
        before = path.stat().st_mode
        if name:
            path.chmod(mode)
        tried.clear()
        may_override(not name)
        try:
            done = run(*arguments)
        finally:
            may_override(True)
            path.chmod(before)
            for made in [] if out is None else [out]:
                shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
        yield Answer(name, done.exit_code, done.stdout, done.stderr, os.path.abspath(path) in tried)


if __name__ == "__main__":
    from tests import unread  # so that the answers are of a class that the other process knows

    sys.stdout.buffer.write(pickle.dumps(list(unread._each(*pickle.load(sys.stdin.buffer)))))
