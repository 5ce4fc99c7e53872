"""A line of a document, run as a shell runs it: output in a pipe, 80 columns, UTC, on the evening of 2026-11-21.

A kdump command with nothing for a shell in it is run by a fork of a process that has imported the program already; all
else by bash.
"""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent
LIMIT = 60
"""Seconds that a line may take."""
SIMPLE = re.compile(r"kdump [^|&;<>()$`\\*?\[\]{}~#!\n]*")
"""A line in which a shell has nothing to do but to split words and take quotes off."""
HEAVY = ("kdump.spark", "kdump.browse", "kdump.commands.scan", "kdump.commands.query", "kdump.commands.browse")
"""Not imported ahead: these need packages that take seconds to import."""


def run(command: str, directory: Path = ROOT / "fixtures") -> str:
    """What it prints on both streams. Raises TimeoutError, or subprocess.TimeoutExpired."""
    if SIMPLE.fullmatch(command):
        return run_forked(shlex.split(command)[1:], directory)
    return run_in_bash(command, directory)


def run_in_bash(command: str, directory: Path) -> str:
    path = environment()["PATH"]
    if shutil.which("jq", path=path) is None:
        path += os.pathsep + str(ROOT / "tests" / "bin")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=directory,
        env=environment() | {"PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT,
        check=False,
    )
    return done.stdout.decode()


def run_forked(arguments: list[str], directory: Path, engine: str = "") -> str:
    """kdump with these arguments, under `engine` (see kdump.engine) where that is given."""
    with tempfile.NamedTemporaryFile() as out:
        server = _server(engine)
        assert server.stdin is not None and server.stdout is not None  # noqa: PT018
        server.stdin.write("\0".join([str(directory), out.name, *arguments]) + "\n")
        server.stdin.flush()
        if int(server.stdout.readline()) == -signal.SIGALRM:
            raise TimeoutError(f"kdump {shlex.join(arguments)}: more than {LIMIT} s")
        return out.read().decode()


def environment() -> dict[str, str]:
    """Of a documented command: its day is always the same, for documents show ages."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    found = {**os.environ, "PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    found["PYTHONPATH"] = str(ROOT / "tests" / "clock")
    found.pop("COLUMNS", None)
    return found


@cache
def _server(engine: str) -> subprocess.Popen[str]:
    """One an engine for this process; it ends when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.shell"],
        cwd=ROOT,
        env=environment() | ({"KDUMP_ENGINE": engine} if engine else {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def serve() -> None:
    """For each line, directory, output file and arguments, runs kdump in a fork, and prints its exit status."""
    from kdump import __path__ as places

    for module in pkgutil.walk_packages(places, "kdump."):
        if not module.name.startswith(HEAVY) and not module.name.endswith("__main__"):
            import_module(module.name)
    for line in sys.stdin:
        directory, out, *arguments = line.removesuffix("\n").split("\0")
        pid = os.fork()
        if not pid:
            _child(directory, out, arguments)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _child(directory: str, out: str, arguments: list[str]) -> NoReturn:
    from kdump.cli import main

    signal.alarm(LIMIT)
    os.chdir(directory)
    written = os.open(out, os.O_WRONLY | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.argv = ["kdump", *arguments]
    time.tzset()
    status = 70
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # as an interpreter does that ends
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
