"""Recipes for a broker with tiered storage: local segments that are gone, and the log start offset without its
checkpoint. The broker has a remote storage without anything in it: what it loads from its disk is the same."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.damages import START
from tests.questions.restart_plan.restart_recipe import Node, edit, recipe
from tools.trials.storage import NO_STORAGE

TIERED = "tiered-0"
ENABLED = f"""
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=NoStorage
remote.log.storage.manager.class.path={NO_STORAGE}/
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.topic.num.partitions=1
"""


def tiered(root: Path) -> Node:
    return Node((root,), combined=True, configs=ENABLED)


@recipe("tiered", "tiered storage, no damage")
def tiered_clean(root: Path) -> Node:
    return tiered(root)


@recipe("tiered", "tiered storage, after an unclean shutdown")
def tiered_crash(root: Path) -> Node:
    (root / ".kafka_cleanshutdown").unlink()
    return tiered(root)


@recipe("tiered", "a topic is tiered, and remote.log.storage.system.enable is false")
def tiered_disabled(root: Path) -> Node:
    return Node((root,), combined=True)


@recipe("tiered", "the local segments of a tiered partition are gone")
def tiered_local_lost(root: Path) -> Node:
    for path in (root / TIERED).glob("0*"):
        path.unlink()
    return tiered(root)


@recipe("tiered", "the directory of a tiered partition is gone")
def tiered_directory_lost(root: Path) -> Node:
    shutil.rmtree(root / TIERED)
    return tiered(root)


@recipe("tiered", "the checkpoint with the log start offset of a tiered partition is empty")
def tiered_start_lost(root: Path) -> Node:
    edit(root / START, lambda data: b"0\n0\n")
    return tiered(root)


@recipe("tiered", "the leader epochs of a tiered partition are gone")
def tiered_epochs_lost(root: Path) -> Node:
    (root / TIERED / "leader-epoch-checkpoint").unlink()
    return tiered(root)
