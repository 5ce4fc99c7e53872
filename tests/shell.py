"""Runs a command line of a document as a shell does: output in a pipe, 80 columns, UTC, on the evening of 2026-11-21.

The kdump that bash finds is tests/served/kdump. It has the command run by a fork of a process that has already imported
the program, because starting Python takes longer than most commands do."""

from __future__ import annotations

import os
import pkgutil
import shlex
import shutil
import signal
import socket
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
SHELL = frozenset("|&;<>()$`*?[]{}~#!\\\n")
"""Characters of a line that only a shell understands."""
HEAVY = ("kdump.spark", "kdump.browse", "kdump.spark.scan_command", "kdump.spark.query_command", "kdump.browse.command")
"""Modules that are not imported in advance, because they need packages that take seconds to import."""
REQUEST = 1 << 17
"""Largest request in bytes: more than any documented command line."""


def run(command: str, directory: Path = ROOT / "fixtures", *, served: bool = True) -> str:
    """Return what the command prints on both streams; if not `served`, kdump is started as a user starts it. Raises
    subprocess.TimeoutExpired."""
    if served and command.startswith("kdump ") and not SHELL & {*command}:
        return _forked(shlex.split(command)[1:], directory)
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=directory,
            env={**_environment(served), "TMPDIR": temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    return done.stdout.decode()


def _forked(arguments: list[str], directory: Path) -> str:
    """Return what kdump prints on both streams, asked for without a shell."""
    request = "\0".join((str(directory), *arguments)).encode(errors="surrogateescape")
    reader, writer = os.pipe()
    with open(reader, "rb") as output, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(_server())
        with open(os.devnull) as nothing, open(writer, "wb") as written:
            socket.send_fds(server, [request], [nothing.fileno(), written.fileno(), written.fileno()])
        return output.read().decode()


def _environment(served: bool) -> dict[str, str]:
    """Return the environment of a documented command. The date is always the same, because documents show ages."""
    places = [os.path.dirname(sys.executable), os.environ["PATH"]]
    if shutil.which("jq") is None:
        places.append(str(ROOT / "tests" / "bin"))
    found = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT / "tests" / "clock")}
    found.pop("COLUMNS", None)
    if served:
        places.insert(0, str(ROOT / "tests" / "served"))
        found["KDUMP_SERVER"] = _server()
    return {**found, "PATH": os.pathsep.join(places)}


@cache
def _server() -> str:
    """Return the path of the socket of this process's server, which ends with it."""
    path = os.path.join(tempfile.mkdtemp(prefix="kdump-"), "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen()
        subprocess.Popen(
            [sys.executable, "-m", "tests.shell", str(listening.fileno())],
            cwd=ROOT,
            env=_environment(served=False),
            stdin=subprocess.PIPE,  # is closed when this process ends
            pass_fds=[listening.fileno()],
        )
    return path


def serve(listening: socket.socket) -> None:
    """Run each requested command in a fork that answers with the exit status, until standard input is closed."""
    import select

    from kdump import __path__ as places

    for module in pkgutil.walk_packages(places, "kdump."):
        if not module.name.startswith(HEAVY) and not module.name.endswith("__main__"):
            import_module(module.name)
    os.fsync = lambda fd: None  # see `quiet_disks` in conftest.py
    vars(import_module("kdump.log.output_directory"))["sync_file_system"] = os.fsync
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        with listening.accept()[0] as connection:
            if not os.fork():
                listening.close()
                _child(connection)
    path = listening.getsockname()
    os.unlink(path)
    os.rmdir(os.path.dirname(path))


def _child(connection: socket.socket) -> NoReturn:
    from kdump.cli import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.alarm(LIMIT)
    request, streams, _, _ = socket.recv_fds(connection, REQUEST, 3)
    directory, *arguments = request.decode(errors="surrogateescape").split("\0")
    os.chdir(directory)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
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
        connection.send(b"%d" % status)
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
