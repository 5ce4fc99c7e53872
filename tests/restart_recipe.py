"""What a recipe of a start is: a change to a copied log directory, and how the broker of it is configured."""

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
    """`apply` gets the root of a copied log directory; what it returns counts if it is a Node."""

    name: str
    disk: str
    what: str
    apply: Callable[[Path], Any]

    def node(self, root: Path) -> Node:
        """Applies the recipe; the broker that is to be started."""
        found = self.apply(root)
        if isinstance(found, Node):
            return found
        other = second_directory(root)
        return Node((root, other) if other.exists() else (root,))


RECIPES: list[Recipe] = []


def recipe(disk: str, what: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    """Adds a function as a recipe; its name is the recipe's."""

    def add(apply: Callable[[Path], Any]) -> Callable[[Path], Any]:
        RECIPES.append(Recipe(apply.__name__.replace("_", "-"), disk, what, apply))
        return apply

    return add


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def second(root: Path, *partitions: str) -> Path:
    """A second log directory of the broker, next to the first, with these partitions of it."""
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
    """Where a recipe puts a metadata.log.dir of its own: next to the first log directory."""
    return root.with_name(root.name + "-metadata")


def metadata_apart(root: Path) -> Path:
    """A metadata.log.dir with the metadata log of the first log directory."""
    other = metadata_directory(root)
    other.mkdir()
    (other / META).write_bytes((root / META).read_bytes().replace(OWN_ID, THIRD_ID))
    for name in ("__cluster_metadata-0", "bootstrap.checkpoint"):
        (root / name).rename(other / name)
    return other


def beside(root: Path) -> Iterator[Path]:
    """Every directory that a recipe may have made next to `root`."""
    yield second_directory(root)
    yield metadata_directory(root)


def owned(node: Node) -> Node:
    """With the broker as USER, who owns all files; where the tests do not run as root, their own user does."""
    if os.geteuid() == 0:
        for path in node.paths:
            for each in (path, *path.rglob("*")):
                os.chown(each, USER, USER)
    return node._replace(user=True)
