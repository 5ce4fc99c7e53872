"""What kdump.restart_plan says of a recipe's broker, seen with that broker's rights."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import kdump
from tools.trials.disk import Files, files
from tools.trials.node import USER, Node
from tools.trials.restart import Facts, foretold

T = TypeVar("T")


def as_user(act: Callable[[], T]) -> T:
    """Calls `act` in a child process that has no rights of root; where this process has none, in this process. What
    `act` imports has to be imported before: the user may not be allowed to read it."""
    if os.geteuid() != 0:
        return act()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(act(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the child process ended with {status}")
    return pickle.loads(data)  # type: ignore[no-any-return]  # what the child has written


@contextmanager
def public_directory() -> Iterator[Path]:
    """A temporary directory that any user may enter."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield Path(name)


def plan_of(node: Node) -> tuple[Facts, dict[str, Files]]:
    """The facts that are predicted, with verdict and status; and the files of each log directory before the start."""
    before = {path.name: files(path) for path in node.dirs}

    def act() -> Facts:
        plan = kdump.restart_plan(map(str, node.paths))
        return foretold(plan, before) | {"verdict": plan.verdict, "status": plan.status}

    if node.user:
        act()  # imports everything
    return (as_user(act) if node.user else act()), before
