"""Predictions of kdump.restart_plan for the broker of a recipe, with the permissions of that broker."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import kdump
from tools.trials.cluster import KAFKA
from tools.trials.disk import Files, files
from tools.trials.node import USER, Node
from tools.trials.restart import Facts, predicted_facts

T = TypeVar("T")


def as_user(act: Callable[[], T]) -> T:
    """Call `act` in a child process without root permissions, or in this process if it has none itself. Everything that
    `act` imports must have been imported before: the user may not be allowed to read it."""
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
    """Yield a temporary directory that any user may enter."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield Path(name)


def plan_of(node: Node) -> tuple[Facts, dict[str, Files]]:
    """Return the predicted facts, with verdict and status, and the files of each log directory before startup."""
    before = {path.name: files(path) for path in node.dirs}

    def act() -> Facts:
        plan = kdump.restart_plan(map(str, node.paths), kafka_version=KAFKA)
        return predicted_facts(plan, before) | {"verdict": plan.verdict, "status": plan.status}

    if node.user:
        act()  # to import everything before the user changes
    return (as_user(act) if node.user else act()), before
