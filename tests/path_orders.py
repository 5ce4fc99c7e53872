"""Disks of several log directories, and what commands say of them in each order and spelling of the paths."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from tests.command import run
from tests.conftest import DISKS, RELEASES
from tests.craft import split
from tests.damages import META, METADATA, copy_some
from tests.questions.restart_plan.restart_recipe import OWN_ID, SECOND_ID, THIRD_ID

BROKER, KAFKA_43 = DISKS / "kafka-4.3" / "clean-1", DISKS / "kafka-4.3"
CUT = 184
"""Offset at which a metadata log ends that has become old: before the last topics were created."""
FEW = (METADATA, "__consumer_offsets-*", "__transaction_state-*", "acks0-0", "orders-none-0", "users-0")
"""Partitions of a disk that many commands read many times."""
PATHS = re.compile(r"[^\s,;'\"()`]*?\b(disk_[a-d])\b(/(?![\w.*]))?")
"""A path of a log directory, with what is before its own name and a slash at the end."""
SEVERAL = re.compile(r"disk_[a-d](?:(, |: | and | )disk_[a-d]\b(?!/))+")
"""Paths in the order in which they were given."""
LEFT_OUT = ("seconds", "mostAt", "newestAt", "oldestAt")
"""Keys of what was measured, and of places that are the first of several with the same value (docs/json.md)."""
SHOWN = 3
"""Number of differing objects that a failure shows, each shortened."""
NOW = ("--now", "2026-11-22T00:00:00Z")


class Command(NamedTuple):
    """A command with its options; `each` is the option that comes before each path."""

    name: str
    options: tuple[str, ...] = ()
    each: tuple[str, ...] = ()


COMMANDS = (
    Command("doctor", NOW),
    Command("restart-plan"),
    Command("restart-plan", ("--estimate", "--read-speed", "100MB/s")),
    Command("retention", NOW),
    Command("space", (*NOW, "--need", "1M")),
    Command("cluster"),
    Command("verify", ("--jobs", "1")),
    Command("ls"),
    Command("groups"),
    Command("transactions", NOW),
    Command("producers", NOW),
    Command("stats"),
    Command("explain", ("Truncating partition users-0 to offset 5 below high watermark 10",), ("--disk",)),
)


def cut_metadata(log_directory: Path) -> None:
    """End the metadata log at the first batch from offset CUT on, without what was made later."""
    folder = log_directory / METADATA
    for path in folder.iterdir():
        if path.suffix in (".checkpoint", ".index", ".timeindex", ".snapshot"):
            path.unlink()
    (log,) = folder.glob("*.log")
    kept = takewhile(lambda batch: int.from_bytes(batch[:8], "big") < CUT, split(log.read_bytes()))
    log.write_bytes(b"".join(kept))


def with_id(log_directory: Path, directory_id: bytes) -> None:
    meta = log_directory / META
    meta.write_bytes(meta.read_bytes().replace(OWN_ID, directory_id))


def two(root: Path) -> None:
    """One node with two log directories, of which one has the metadata log."""
    copy_some(BROKER, root / "disk_a", METADATA, "users-0", "acks0-0")
    copy_some(BROKER, root / "disk_b", *(each for each in FEW if each not in (METADATA, "users-0", "acks0-0")))
    with_id(root / "disk_b", SECOND_ID)


def old_metadata(root: Path) -> None:
    """One node with a metadata log in each of two log directories, of which one ends earlier."""
    two(root)
    shutil.copytree(root / "disk_a" / METADATA, root / "disk_b" / METADATA)
    cut_metadata(root / "disk_b")


def three(root: Path) -> None:
    """One node with two log directories, and the metadata log in a third."""
    two(root)
    copy_some(BROKER, root / "disk_c")
    with_id(root / "disk_c", THIRD_ID)
    (root / "disk_a" / METADATA).rename(root / "disk_c" / METADATA)
    for path in (root / "disk_c").glob("*-checkpoint"):
        path.unlink()
    (root / "disk_c" / ".kafka_cleanshutdown").unlink()


def nodes(root: Path) -> None:
    """A controller and two brokers of one cluster, of which one has metadata that ends earlier."""
    for name, letter in zip(("clean-1", "clean-2", "clean-0"), "abc", strict=True):
        copy_some(KAFKA_43 / name, root / f"disk_{letter}", *FEW)
    cut_metadata(root / "disk_a")


def a_copy(root: Path) -> None:
    """A log directory, and a copy of it that was made earlier."""
    copy_some(BROKER, root / "disk_a", *FEW)
    copy_some(BROKER, root / "disk_b", *FEW)
    cut_metadata(root / "disk_b")


def failed(root: Path) -> None:
    """One node with two log directories, and a third that is not there."""
    two(root)
    (root / "disk_c").symlink_to(root / "nothing")


def nameless(root: Path) -> None:
    """One node with two log directories, of which one has no meta.properties."""
    old_metadata(root)
    (root / "disk_a" / META).unlink()


def before_directory_ids(root: Path) -> None:
    """One node of Kafka 3.3 with two log directories."""
    source = RELEASES / "3.3.2-kraft" / "clean"
    copy_some(source, root / "disk_a", METADATA)
    copy_some(
        source, root / "disk_b", *(path.name for path in source.iterdir() if path.is_dir() and path.name != METADATA)
    )


DISKS_OF_SEVERAL: tuple[Callable[[Path], None], ...] = (
    *(two, old_metadata, three, nodes, a_copy, failed, nameless, before_directory_ids),
)


def spellings(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the paths of the disk in several orders and spellings; the working directory is `root`."""
    names = sorted(path.name for path in root.glob("disk_*"))
    links = root / "links"
    links.mkdir(exist_ok=True)
    for name in names:
        if not (links / name).is_symlink():
            (links / name).symlink_to(root / name)
    turned = names[1:] + names[:1]
    yield "in the order of their names", [str(root / name) for name in names]
    yield "in another order", [str(root / name) for name in turned]
    yield "in the other order, relative, with a slash", [f"{name}/" for name in names[::-1]]
    yield "linked", [str(links / name) for name in names]


def answers(command: Command, paths: list[str]) -> tuple[int, list[str]]:
    """Return the exit status, and the objects that the command prints of these paths, sorted, each with the log
    directories' own names in place of their paths."""
    given = [part for path in paths for part in (*command.each, path)]
    result = run(command.name, *command.options, *given, "--json")
    found = [_plain(json.loads(line)) for line in result.stdout.splitlines()]
    return result.exit_code, sorted(json.dumps(each, sort_keys=True) for each in found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        plain = [_plain(each) for each in value]
        return sorted(plain) if all(isinstance(each, str) and PATHS.fullmatch(each) for each in plain) else plain
    if isinstance(value, str):
        return SEVERAL.sub(lambda match: " ".join(sorted(re.findall(r"disk_[a-d]", match[0]))), PATHS.sub(r"\1", value))
    return value


def differences(command: Command, root: Path) -> list[str]:
    """Return how the answers differ from those for the absolute paths in the order of their names."""
    os.chdir(root)
    found: list[str] = []
    first: tuple[int, list[str]] | None = None
    for what, paths in spellings(root):
        here = answers(command, paths)
        first = here if first is None else first
        if here != first:
            only = [_changed(*pair) for pair in zip(first[1], here[1]) if pair[0] != pair[1]][:SHOWN]
            lengths = f"exit status {first[0]} -> {here[0]}, {len(first[1])} -> {len(here[1])} objects"
            found.append("\n".join((f"{what}: {lengths}", *only)))
    return found


def _changed(before: str, after: str) -> str:
    """Return the end of what two objects have in common, and what follows it in each."""
    different = (at for at, (one, other) in enumerate(zip(before, after)) if one != other)
    at = max(0, next(different, 0) - 60)
    return f"  {before[:60]} … {before[at : at + 200]}\n  {after[:60]} … {after[at : at + 200]}"
