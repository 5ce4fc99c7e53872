"""The broker whose disk is full, and the other brokers of its cluster, whose disks or bundles are given with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kdump.cluster.disks import Disks, Node
from kdump.forensics.restart.lock_holder import lock_holder
from kdump.forensics.space.answers import RUNNING, STOPPED, UNKNOWN
from kdump.forensics.space.file_systems import not_the_disk
from kdump.log.errors import SourceError
from kdump.log.run import Run


def state_of(broker: Node) -> str:
    """Return whether the broker is running, by the locks on its log directories."""
    if any(not_the_disk(each) is not None for each in broker.directories):
        return UNKNOWN
    return RUNNING if any(lock_holder(each.path) is not None for each in broker.directories) else STOPPED


def read_brokers(paths: Iterable[str], run: Run) -> tuple[list[Node], Disks]:
    """Return the brokers whose log directories are at or below the paths, without copies, and all log directories.
    Raises SourceError for a path that has no log directory."""
    named = list(dict.fromkeys(paths))
    errors: list[SourceError] = []
    disks = Disks.at(named, replace(run, unreadable=errors.append))
    for path in named:
        if not disks.below(path):
            raise SourceError(f"{path}: not a log directory; pass a broker's log directories")
    for error in errors:
        run.unreadable(error)
    return [node for node in disks.nodes if not node.is_copy], disks
