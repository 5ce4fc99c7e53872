"""Recipes for a broker with tiered storage: local segments that are gone, and the log start offset without its
checkpoint. The broker has a remote storage without anything in it: what it loads from its disk is the same."""

from __future__ import annotations

from pathlib import Path

from tests.damages import START
from tests.questions.restart_plan.restart_damages import MARK
from tests.questions.restart_plan.restart_nodes import combined
from tests.questions.restart_plan.restart_recipe import Node, gone, recipe, written
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
    return combined(root)._replace(configs=ENABLED)


# fmt: off
recipe("tiered-clean", "tiered", "tiered storage, no damage", tiered)
recipe("tiered-crash", "tiered", "tiered storage, after an unclean shutdown", gone(MARK), tiered)
recipe("tiered-disabled", "tiered", "a topic is tiered, and remote.log.storage.system.enable is false", combined)
recipe("tiered-local-lost", "tiered", "the local segments of a tiered partition are gone", gone(f"{TIERED}/0*"), tiered)
recipe("tiered-directory-lost", "tiered", "the directory of a tiered partition is gone", gone(TIERED), tiered)
recipe("tiered-start-lost", "tiered", "the checkpoint with the log start offset of a tiered partition is empty",
       written(START, b"0\n0\n"), tiered)
recipe("tiered-epochs-lost", "tiered", "the leader epochs of a tiered partition are gone",
       gone(f"{TIERED}/leader-epoch-checkpoint"), tiered)
# fmt: on
