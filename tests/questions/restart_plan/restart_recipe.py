"""Recipes for startups: steps that change a copied log directory, and the configuration of its broker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.craft import write_file
from tests.damages import META, RECOVERY, START, Log, second_directory
from tools.trials.node import USER, Node

SECOND_ID = b"SECONDpABlNgsHloSKd7mg"
THIRD_ID = b"THIRDDpABlNgsHloSKd7mg"
OWN_ID = b"NC0LDPpABlNgsHloSKd7mg"


Step = Callable[[Path], Any]
"""A change of a copied log directory, given its root; may return the Node to start."""


class Recipe(NamedTuple):
    """Recipe. `needs`: a file that a disk must have."""

    name: str
    disk: str
    what: str
    steps: tuple[Step, ...]
    needs: str = ""

    def apply(self, root: Path) -> Node | None:
        """Change a copied log directory. Return the Node to start, if it is not one with this directory alone."""
        node = None
        for step in self.steps:
            found = step(root)
            node = found if isinstance(found, Node) else node
        return node

    def node(self, root: Path) -> Node:
        """Apply the recipe and return the broker to start."""
        found = self.apply(root)
        if found is not None:
            return found
        other = second_directory(root)
        return Node((root, other) if other.exists() else (root,))

    def fits(self, root: Path) -> bool:
        """Return True if the disk has what the recipe changes."""
        return not self.needs or (root / self.needs).exists()


RECIPES: list[Recipe] = []


def recipe(name: str, disk: str, what: str, *steps: Step) -> None:
    """Add a recipe for a startup of a broker of 4.3."""
    RECIPES.append(Recipe(name, disk, what, steps))


# --- Steps ------------------------------------------------------------------------------------------------------------


def files(root: Path, name: str) -> list[Path]:
    """Return the paths that a step names, relative to the root. A name may have wildcards; "second/" is the second log
    directory, "apart/" metadata.log.dir, and "@" with a number a segment of its directory, of which -1 is the last."""
    for prefix, place in (("second/", second_directory), ("apart/", metadata_directory)):
        if name.startswith(prefix):
            return files(place(root), name.removeprefix(prefix))
    partition, at, file = name.partition("@")
    if at:
        number, _, suffix = file.partition(".")
        bases = sorted(int(path.stem) for path in (root / partition).glob("*.log"))
        return [root / partition / f"{bases[int(number)]:020}.{suffix}"]
    return sorted(root.glob(name)) if "*" in name else [root / name]


def each(change: Callable[[Path], object], *names: str) -> Step:
    """Return a step that does something with each of the files."""

    def step(root: Path) -> None:
        for name in names:
            for path in files(root, name):
                change(path)

    return step


def gone(*names: str) -> Step:
    """Return a step that removes files, and directories with what is in them."""
    return each(lambda path: shutil.rmtree(path) if path.is_dir() else path.unlink(), *names)


def written(name: str, data: bytes = b"") -> Step:
    return each(lambda path: path.write_bytes(data), name)


def changed(name: str, change: Callable[[bytes], bytes]) -> Step:
    return each(lambda path: edit(path, change), name)


def replaced(name: str, old: bytes, new: bytes) -> Step:
    return changed(name, lambda data: data.replace(old, new))


def renamed(name: str, to: str) -> Step:
    """Return a step that renames files. `to`: relative to the root, or what is added to each name."""
    return lambda root: [path.rename(_named(root, path, to)) for path in files(root, name)]


def copied(name: str, to: str) -> Step:
    """Return a step that copies files or a directory. `to`: relative to the root, or what is added to each name."""
    return lambda root: [
        (shutil.copytree if path.is_dir() else shutil.copy)(path, _named(root, path, to)) for path in files(root, name)
    ]


def _named(root: Path, path: Path, to: str) -> Path:
    return path.with_name(path.name + to) if to.startswith(".") else files(root, to)[0]


def directory(*names: str) -> Step:
    """Return a step that puts directories in the place of files, if these exist."""
    return each(lambda path: (path.unlink(missing_ok=True), path.mkdir()), *names)


def link(name: str, to: str) -> Step:
    return each(lambda path: path.symlink_to(to), name)


def mode(name: str, bits: int) -> Step:
    return each(lambda path: path.chmod(bits), name)


def in_log(name: str, change: Callable[[Log], bytes | None]) -> Step:
    """Return a step that changes the batches of a segment, and appends what `change` returns."""

    def step(root: Path) -> None:
        (path,) = files(root, name)
        log = Log(root, path.parent.name, int(path.stem))
        log.write(change(log) or b"")

    return step


def batch(name: str, number: int, change: Callable[[bytes], bytes]) -> Step:
    """Return a step that changes a batch of a segment."""

    def replace(log: Log) -> None:
        log.batches[number] = change(log.batches[number])

    return in_log(name, replace)


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
    write_file(other / META, (root / META).read_bytes().replace(OWN_ID, THIRD_ID))
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
            for file in (path, *path.rglob("*")):
                os.chown(file, USER, USER)
    return node._replace(user=True)
