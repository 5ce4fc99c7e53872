"""Recipes for a broker without root permissions: paths that it cannot read, list or write, as after a restore as root
or a read-only remount."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.damages import META, RECOVERY, START, ZERO
from tests.questions.restart_plan.restart_damages import ID
from tests.questions.restart_plan.restart_recipe import SECOND_ID, Node, edit, metadata_apart, owned, recipe, second

SECOND = ("orders-lz4-0", "orders-zstd-0")
LAST = f"clicks-0/{11263:020}"
EARLIER = f"clicks-0/{0:020}"
PARTITION = "orders-none-0"
METADATA = "__cluster_metadata-0"


def denied(name: str, disk: str, path: str, mode: int, what: str) -> None:
    """Add a recipe that changes the mode of one path below the root (".": the root itself)."""

    def apply(root: Path) -> Node:
        node = owned(Node((root,)))
        (root / path).chmod(mode)
        return node

    apply.__name__ = name
    recipe(disk, what)(apply)


FILES = (
    ("log", f"{PARTITION}/{ZERO}.log", "the only segment"),
    ("log_earlier", f"{EARLIER}.log", "the first of several segments"),
    ("index_last", f"{LAST}.index", "the .index of the last segment"),
    ("index_earlier", f"{EARLIER}.index", "the .index of the first of several segments"),
    ("time_index_last", f"{LAST}.timeindex", "the .timeindex of the last segment"),
    ("epochs", f"{PARTITION}/leader-epoch-checkpoint", "leader-epoch-checkpoint"),
    ("topic_id", f"{PARTITION}/partition.metadata", "partition.metadata"),
    ("meta", META, "meta.properties"),
    ("mark", ".kafka_cleanshutdown", ".kafka_cleanshutdown"),
    ("recovery_point", RECOVERY, "recovery-point-offset-checkpoint"),
    ("log_start", START, "log-start-offset-checkpoint"),
    ("high_watermark", "replication-offset-checkpoint", "replication-offset-checkpoint"),
    ("bootstrap", "bootstrap.checkpoint", "bootstrap.checkpoint"),
    ("quorum_state", f"{METADATA}/quorum-state", "quorum-state"),
)

for _name, _path, _what in FILES:
    denied(f"write_{_name}", "clean-1", _path, 0o444, f"no permission to write {_what}")
    denied(f"read_{_name}", "clean-1", _path, 0, f"no permission to read {_what}")

DIRECTORIES = (
    ("root", ".", "the log directory"),
    ("partition", PARTITION, "a partition's directory"),
    ("metadata", METADATA, "the metadata log's directory"),
)

for _name, _path, _what in DIRECTORIES:
    denied(f"write_{_name}", "clean-1", _path, 0o555, f"no permission to write to {_what}")
    denied(f"write_{_name}_crash", "crash-1", _path, 0o555, f"no permission to write to {_what}, after kill -9")
    denied(f"list_{_name}", "clean-1", _path, 0o311, f"no permission to list {_what}")
    denied(f"enter_{_name}", "clean-1", _path, 0o644, f"no permission to enter {_what}")


@recipe("clean-1", "a .txnindex cannot be written")
def write_txn_index(root: Path) -> Node:
    node = owned(Node((root,)))
    next((root / "payments-0").glob("*.txnindex")).chmod(0o444)
    return node


@recipe("crash-1", "a .snapshot cannot be read, after kill -9")
def read_snapshot_crash(root: Path) -> Node:
    node = owned(Node((root,)))
    for path in (root / "payments-0").glob("*.snapshot"):
        path.chmod(0)
    return node


@recipe("crash-1", "an .index below the recovery point cannot be written, after kill -9")
def write_index_crash(root: Path) -> Node:
    node = owned(Node((root,)))
    (root / f"{EARLIER}.index").chmod(0o444)
    return node


def of_two(name: str, change: Callable[[Path], None], what: str) -> None:
    """Add a recipe that changes the second of two log directories."""

    def apply(root: Path) -> Node:
        other = second(root, *SECOND)
        node = owned(Node((root, other)))
        change(other)
        return node

    apply.__name__ = name
    recipe("clean-1", f"two log directories, {what}")(apply)


def locked(other: Path) -> None:
    (other / ".lock").touch(0o666)
    (other / ".lock").chmod(0o666)
    other.chmod(0o555)


of_two("write_root_of_two", lambda other: other.chmod(0o555), "no permission to write to the second")
of_two("write_root_of_two_locked", locked, "no permission to write to the second, whose .lock is there")
of_two("list_root_of_two", lambda other: other.chmod(0o311), "no permission to list the second")
of_two("enter_root_of_two", lambda other: other.chmod(0o644), "no permission to enter the second")
of_two("read_meta_of_two", lambda other: (other / META).chmod(0), "no permission to read meta.properties of the second")
of_two(
    "write_partition_of_two",
    lambda other: (other / "orders-lz4-0").chmod(0o555),
    "no permission to write to a partition's directory of the second",
)
of_two(
    "write_log_of_two",
    lambda other: (other / f"orders-lz4-0/{ZERO}.log").chmod(0o444),
    "no permission to write a segment of the second",
)


@recipe("clean-1", "no permission to write to a separate metadata.log.dir")
def write_metadata_dir(root: Path) -> Node:
    other = metadata_apart(root)
    node = owned(Node((root,), other))
    other.chmod(0o555)
    return node


@recipe("clean-1", "no permission to enter a separate metadata.log.dir")
def enter_metadata_dir(root: Path) -> Node:
    other = metadata_apart(root)
    node = owned(Node((root,), other))
    other.chmod(0o644)
    return node


@recipe("clean-1", "nothing: a broker that does not run as root")
def user(root: Path) -> Node:
    return owned(Node((root,)))


OFTEN = """
replica.high.watermark.checkpoint.interval.ms=1000
log.flush.offset.checkpoint.interval.ms=1000
log.flush.start.offset.checkpoint.interval.ms=1000
log.segment.delete.delay.ms=1000
"""
"""A broker that does soon after its start what it otherwise does after a minute."""


def of_root(path: Path, mode: int) -> None:
    """Give a path to root. Without root, take the rights from its owner that root would leave to others."""
    path.chmod(mode if os.geteuid() == 0 else (mode & 0o007) * 0o111)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)


def left_over(name: str, path: str, mode: int) -> None:
    """Add a recipe with a temporary file owned by root in the second of two log directories."""

    def apply(root: Path) -> Node:
        other = second(root, *SECOND)
        node = owned(Node((root, other), configs=OFTEN, wait=6))
        (other / path).touch()
        of_root(other / path, mode)
        return node

    apply.__name__ = name
    recipe("clean-1", f"two log directories, in the second {path} owned by root, mode {mode:o}")(apply)


EPOCHS = "orders-lz4-0/leader-epoch-checkpoint"

for _path in (RECOVERY, START, "replication-offset-checkpoint"):
    left_over(f"left_over_{_path.replace('-', '_')}", f"{_path}.tmp", 0o600)
left_over("left_over_epochs", f"{EPOCHS}.tmp", 0o644)
left_over("left_over_epochs_unreadable", f"{EPOCHS}.tmp", 0o600)


@recipe("clean-1", "quorum-state.tmp owned by root: the node deletes it before it writes")
def left_over_quorum_state(root: Path) -> Node:
    node = owned(Node((root,), wait=4))
    (root / METADATA / "quorum-state.tmp").touch()
    of_root(root / METADATA / "quorum-state.tmp", 0o644)
    return node


@recipe("clean-1", "quorum-state.tmp owned by root, which the node cannot read either")
def left_over_quorum_state_unreadable(root: Path) -> Node:
    node = left_over_quorum_state(root)
    (root / METADATA / "quorum-state.tmp").chmod(0o600 if os.geteuid() == 0 else 0)
    return node


@recipe(
    "clean-1", "two log directories, in the second a -delete directory owned by root, with files owned by the broker"
)
def delete_directory_of_root(root: Path) -> Node:
    other = second(root, *SECOND)
    shutil.copytree(root / PARTITION, other / f"{PARTITION}.{ID}-delete")
    node = owned(Node((root, other), configs=OFTEN, wait=6))
    of_root(other / f"{PARTITION}.{ID}-delete", 0o755)
    return node


@recipe("clean-1", "two log directories, the second without directory.id, with a meta.properties.tmp owned by root")
def left_over_meta(root: Path) -> Node:
    other = second(root, *SECOND)
    edit(other / META, lambda data: data.replace(b"directory.id=" + SECOND_ID, b""))
    node = owned(Node((root, other)))
    (other / f"{META}.tmp").touch()
    of_root(other / f"{META}.tmp", 0o600)
    return node
