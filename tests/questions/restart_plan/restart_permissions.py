"""Recipes for a broker without root permissions: paths that it cannot read, list or write, as after a restore as root
or a read-only remount."""

from __future__ import annotations

import os
from pathlib import Path

from tests.damages import META, METADATA, RECOVERY, REPLICATION, START, ZERO
from tests.questions.restart_plan.restart_damages import CLICKS, EARLY, ID, MARK, ORDERS, QUORUM
from tests.questions.restart_plan.restart_nodes import SECOND
from tests.questions.restart_plan.restart_recipe import (
    SECOND_ID,
    Node,
    Step,
    copied,
    each,
    metadata_apart,
    mode,
    owned,
    recipe,
    replaced,
    second,
    written,
)

PARTITION = "orders-none-0"
LOCK = "second/.lock"


def alone(root: Path) -> Node:
    return owned(Node((root,)))


def two(root: Path) -> Node:
    return owned(Node((root, second(root, *SECOND))))


def apart(root: Path) -> Node:
    return owned(Node((root,), metadata_apart(root)))


# fmt: off
for _name, _path, _what in (
    ("log", f"{ORDERS}.log", "the only segment"),
    ("log-earlier", f"{CLICKS}.log", "the first of several segments"),
    ("index-last", f"{EARLY}.index", "the .index of the last segment"),
    ("index-earlier", f"{CLICKS}.index", "the .index of the first of several segments"),
    ("time-index-last", f"{EARLY}.timeindex", "the .timeindex of the last segment"),
    ("epochs", f"{PARTITION}/leader-epoch-checkpoint", "leader-epoch-checkpoint"),
    ("topic-id", f"{PARTITION}/partition.metadata", "partition.metadata"),
    ("meta", META, "meta.properties"),
    ("mark", MARK, MARK),
    ("recovery-point", RECOVERY, RECOVERY),
    ("log-start", START, START),
    ("high-watermark", REPLICATION, REPLICATION),
    ("bootstrap", "bootstrap.checkpoint", "bootstrap.checkpoint"),
    ("quorum-state", QUORUM, "quorum-state"),
):
    recipe(f"write-{_name}", "clean-1", f"no permission to write {_what}", alone, mode(_path, 0o444))
    recipe(f"read-{_name}", "clean-1", f"no permission to read {_what}", alone, mode(_path, 0))
for _name, _path, _what in (
    ("root", ".", "the log directory"),
    ("partition", PARTITION, "a partition's directory"),
    ("metadata", METADATA, "the metadata log's directory"),
):
    recipe(f"write-{_name}", "clean-1", f"no permission to write to {_what}", alone, mode(_path, 0o555))
    recipe(f"write-{_name}-crash", "crash-1", f"no permission to write to {_what}, after kill -9",
           alone, mode(_path, 0o555))
    recipe(f"list-{_name}", "clean-1", f"no permission to list {_what}", alone, mode(_path, 0o311))
    recipe(f"enter-{_name}", "clean-1", f"no permission to enter {_what}", alone, mode(_path, 0o644))

recipe("write-txn-index", "clean-1", "a .txnindex cannot be written", alone, mode("payments-0/*.txnindex", 0o444))
recipe("read-snapshot-crash", "crash-1", "a .snapshot cannot be read, after kill -9", alone,
       mode("payments-0/*.snapshot", 0))
recipe("write-index-crash", "crash-1", "an .index below the recovery point cannot be written, after kill -9",
       alone, mode(f"{CLICKS}.index", 0o444))

for _name, _what, _steps in (
    ("write-root-of-two", "no permission to write to the second", [mode("second/", 0o555)]),
    ("write-root-of-two-locked", "no permission to write to the second, whose .lock is there",
     [written(LOCK), mode(LOCK, 0o666), mode("second/", 0o555)]),
    ("list-root-of-two", "no permission to list the second", [mode("second/", 0o311)]),
    ("enter-root-of-two", "no permission to enter the second", [mode("second/", 0o644)]),
    ("read-meta-of-two", "no permission to read meta.properties of the second", [mode(f"second/{META}", 0)]),
    ("write-partition-of-two", "no permission to write to a partition's directory of the second",
     [mode("second/orders-lz4-0", 0o555)]),
    ("write-log-of-two", "no permission to write a segment of the second",
     [mode(f"second/orders-lz4-0/{ZERO}.log", 0o444)]),
):
    recipe(_name, "clean-1", f"two log directories, {_what}", two, *_steps)

recipe("write-metadata-dir", "clean-1", "no permission to write to a separate metadata.log.dir", apart,
       mode("apart/", 0o555))
recipe("enter-metadata-dir", "clean-1", "no permission to enter a separate metadata.log.dir", apart,
       mode("apart/", 0o644))
recipe("user", "clean-1", "nothing: a broker that does not run as root", alone)
# fmt: on

OFTEN = """
replica.high.watermark.checkpoint.interval.ms=1000
log.flush.offset.checkpoint.interval.ms=1000
log.flush.start.offset.checkpoint.interval.ms=1000
log.segment.delete.delay.ms=1000
"""
"""A broker that does soon after its start what it otherwise does after a minute."""


def two_often(root: Path) -> Node:
    return two(root)._replace(configs=OFTEN, wait=6)


def of_root(name: str, bits: int) -> Step:
    """Return a step that gives a path to root. Without root, it takes the rights from its owner that root would leave
    to others."""

    def give(path: Path) -> None:
        path.chmod(bits if os.geteuid() == 0 else (bits & 0o007) * 0o111)
        if os.geteuid() == 0:
            os.chown(path, 0, 0)

    return each(give, name)


DELETED = f"second/{PARTITION}.{ID}-delete"
EPOCHS = "orders-lz4-0/leader-epoch-checkpoint"
# fmt: off
for _name, _path, _mode in (
    *((_file, _file, 0o600) for _file in (RECOVERY, START, REPLICATION)),
    ("epochs", EPOCHS, 0o644),
    ("epochs-unreadable", EPOCHS, 0o600),
):
    recipe(f"left-over-{_name}", "clean-1",
           f"two log directories, in the second {_path}.tmp owned by root, mode {_mode:o}",
           two_often, written(f"second/{_path}.tmp"), of_root(f"second/{_path}.tmp", _mode))
for _name, _what, _mode in (
    ("left-over-quorum-state", "quorum-state.tmp owned by root: the node deletes it before it writes", 0o644),
    ("left-over-quorum-state-unreadable", "quorum-state.tmp owned by root, which the node cannot read either", 0o600),
):
    recipe(_name, "clean-1", _what, lambda root: alone(root)._replace(wait=4), written(f"{QUORUM}.tmp"),
           of_root(f"{QUORUM}.tmp", _mode))
recipe("delete-directory-of-root", "clean-1", "two log directories, in the second a -delete directory owned by root, "
       "with files owned by the broker", lambda root: second(root, *SECOND), copied(PARTITION, DELETED),
       lambda root: owned(Node((root, root.with_name(f"{root.name}-second")), configs=OFTEN, wait=6)),
       of_root(DELETED, 0o755))
recipe("left-over-meta", "clean-1", "two log directories, the second without directory.id, with a meta.properties.tmp "
       "owned by root", two, replaced(f"second/{META}", b"directory.id=" + SECOND_ID, b""),
       written(f"second/{META}.tmp"), of_root(f"second/{META}.tmp", 0o600))
# fmt: on
