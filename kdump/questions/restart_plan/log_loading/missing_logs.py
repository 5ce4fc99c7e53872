"""Predicts which partitions a broker creates with an empty log because their directories are missing: once it has the
cluster's metadata, it creates every log that is assigned to it and that it did not find.

Source: ReplicaManager.getOrCreatePartition, Partition.createLogInAssignedDirectoryId, LogManager.getOrCreateLog and
createLogDirectory (4.3.1). The log directory is online, so that it does not matter whether another one is offline.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from kdump.cluster.missing_partitions import (
    Expected,
    PartitionKey,
    checkpointed_partitions,
    missing_partitions,
    name_of,
    what_is_at,
)
from kdump.log import file_system
from kdump.log.paths import target
from kdump.questions.restart_plan.answer import OFFLINE, DirectoryPlan, PartitionPlan, StartupFailure, Step
from kdump.questions.restart_plan.node.root_files import OFFSETS
from kdump.state.metadata_image import MetadataImage

REMEDY = (
    "before startup, look for the directory on file systems that are not mounted, in other directories and in backups, "
    "and put it back. If it is lost, and this broker is the leader, or in the ISR or the ELR, save the partition from "
    "another replica first: the replicas may truncate to this broker's empty log"
)


def missing_logs(
    directory: DirectoryPlan,
    others: Sequence[str],
    checkpoints: Mapping[str, Mapping[PartitionKey, int]],
    metadata: MetadataImage | None,
    *,
    is_created: bool,
) -> Iterator[PartitionPlan]:
    """Yield the plans of the partitions that the log directory had and that are gone; count those that are new.
    `others`: the paths of the node's other log directories; `checkpoints`: the offsets in the checkpoints, by file
    name; `is_created`: whether the cluster may have the partitions, so that the broker creates them."""
    paths = {name: os.path.join(directory.path, name) for name in checkpoints}
    known = checkpointed_partitions(
        {name: target(path, source=directory.path) for name, path in paths.items() if file_system.lexists(path)}
    )
    expected = Expected(directory.path, tuple(others), directory.nodeId, directory.directoryId, known, metadata)
    missing = missing_partitions(expected)
    directory.newPartitions = len(missing.never) if is_created else 0
    for key in missing.lost:
        path = os.path.join(directory.path, name_of(key))
        plan = PartitionPlan(*key, path, directory.path, "", bool(directory.clean), checkpoints[OFFSETS[0]].get(key))
        plan.highWatermark = checkpoints[OFFSETS[2]].get(key)
        plan.missing, plan.remedy = True, REMEDY
        if is_created:
            plan.logStartOffset = plan.logEndOffset = 0
            plan.segments = 1
            reason = "an empty log" if expected.is_known else "an empty log, if the cluster still has the partition"
            plan.steps.append(Step("create", path, None, 0, 0, reason))
            if key in missing.blocked:
                plan.stops.append(
                    _blocked(path, "" if expected.is_known else ", if the cluster still has the partition")
                )
        yield plan


def _blocked(path: str, condition: str) -> StartupFailure:
    """Return the stop for something else in place of a partition's directory (LogManager.createLogDirectory)."""
    message = f"there is {what_is_at(path)} in place of a partition's directory, which the broker creates{condition}"
    exception = f"FileAlreadyExistsException: {path}"
    remedy = f"make the link's target available again (is its file system mounted?), or move {path} away"
    if not file_system.islink(path):
        remedy = f"move {path} out of the directory, and put the partition's directory back if you have it"
    return StartupFailure(OFFLINE, path, None, None, message, exception, remedy)
