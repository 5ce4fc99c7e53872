"""Recipes for startups: a change to a copied log directory, and the configuration of its broker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.damages import META, RECOVERY, START, second_directory
from tools.trials.node import USER, Node

SECOND_ID = b"SECONDpABlNgsHloSKd7mg"
THIRD_ID = b"THIRDDpABlNgsHloSKd7mg"
OWN_ID = b"NC0LDPpABlNgsHloSKd7mg"


class Recipe(NamedTuple):
    """Recipe. `apply`: changes a copied log directory, given its root; may return the Node to start."""

    name: str
    disk: str
    what: str
    apply: Callable[[Path], Any]

    def node(self, root: Path) -> Node:
        """Apply the recipe and return the broker to start."""
        found = self.apply(root)
        if isinstance(found, Node):
            return found
        other = second_directory(root)
        return Node((root, other) if other.exists() else (root,))


RECIPES: list[Recipe] = []


def recipe(disk: str, what: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    """Register a function as a recipe; its name, with hyphens, is the recipe's."""

    def add(apply: Callable[[Path], Any]) -> Callable[[Path], Any]:
        RECIPES.append(Recipe(apply.__name__.replace("_", "-"), disk, what, apply))
        return apply

    return add


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def second(root: Path, *partitions: str) -> Path:
    """Add a second log directory of the broker, next to the first, and move these partitions there."""
    other = second_directory(root)
    other.mkdir()
    for name in partitions:
        (root / name).rename(other / name)
    (other / META).write_bytes((root / META).read_bytes().replace(OWN_ID, SECOND_ID))
    for name in (".kafka_cleanshutdown", RECOVERY, START, "replication-offset-checkpoint"):
        if (root / name).exists():
            shutil.copy(root / name, other / name)
    return other


def metadata_directory(root: Path) -> Path:
    """Return the path where a recipe puts a separate metadata.log.dir: next to the first log directory."""
    return root.with_name(root.name + "-metadata")


def metadata_apart(root: Path) -> Path:
    """Create a metadata.log.dir and move the metadata log of the first log directory there."""
    other = metadata_directory(root)
    other.mkdir()
    (other / META).write_bytes((root / META).read_bytes().replace(OWN_ID, THIRD_ID))
    for name in ("__cluster_metadata-0", "bootstrap.checkpoint"):
        (root / name).rename(other / name)
    return other


def beside(root: Path) -> Iterator[Path]:
    """Yield every directory that a recipe may have created next to `root`."""
    yield second_directory(root)
    yield metadata_directory(root)


def owned(node: Node) -> Node:
    """Return the node with the broker running as USER, who owns all files. Without root, the files keep the user who
    runs the tests."""
    if os.geteuid() == 0:
        for path in node.paths:
            for each in (path, *path.rglob("*")):
                os.chown(each, USER, USER)
    return node._replace(user=True)
