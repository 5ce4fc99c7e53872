"""Runs a command line of a document as a shell does: output in a pipe, 80 columns, UTC, on the evening of 2026-11-21.

A kdump command without shell syntax is run by a fork of a process that has already imported the program; everything
else is run by bash.
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
"""Timeout of a line in seconds."""
SIMPLE = re.compile(r"kdump [^|&;<>()$`\\*?\[\]{}~#!\n]*")
"""Matches a line in which a shell would only split words and remove quotes."""
HEAVY = ("kdump.spark", "kdump.browse", "kdump.commands.scan", "kdump.commands.query", "kdump.commands.browse")
"""Modules that are not imported in advance, because they need packages that take seconds to import."""


def run(command: str, directory: Path = ROOT / "fixtures") -> str:
    """Return what the command prints on both streams. Raises TimeoutError or subprocess.TimeoutExpired."""
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


def run_forked(arguments: list[str], directory: Path) -> str:
    """Run kdump with these arguments."""
    with tempfile.NamedTemporaryFile() as out:
        server = _server()
        assert server.stdin is not None and server.stdout is not None  # noqa: PT018
        server.stdin.write("\0".join([str(directory), out.name, *arguments]) + "\n")
        server.stdin.flush()
        if int(server.stdout.readline()) == -signal.SIGALRM:
            raise TimeoutError(f"kdump {shlex.join(arguments)}: more than {LIMIT} s")
        return out.read().decode()


def environment() -> dict[str, str]:
    """Return the environment of a documented command. The date is always the same, because documents show ages."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    found = {**os.environ, "PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    found["PYTHONPATH"] = str(ROOT / "tests" / "clock")
    found.pop("COLUMNS", None)
    return found


@cache
def _server() -> subprocess.Popen[str]:
    """Return the server of this process, which exits when its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.shell"],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def serve() -> None:
    """Read lines with directory, output file and arguments; for each, run kdump in a fork and print its exit status."""
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
        sys.excepthook(*sys.exc_info())  # as an interpreter does when it exits
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
