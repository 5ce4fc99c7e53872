"""Predicts which partitions a broker creates with an empty log because their directories are missing: once it has the
cluster's metadata, it creates every log that is assigned to it and that it did not find.

Source: ReplicaManager.getOrCreatePartition, Partition.createLogInAssignedDirectoryId, LogManager.getOrCreateLog
(4.3.1). The log directory is online, so that it does not matter whether another one is offline.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from kdump.forensics.restart.plan import DirectoryPlan, PartitionPlan, Step
from kdump.forensics.restart.root_files import OFFSETS
from kdump.state.image import Metadata
from kdump.state.missing_partitions import EVIDENCE, Expected, Key, missing_partitions, name_of

REMEDY = (
    "before startup, look for the directory on file systems that are not mounted, in other directories and in backups, "
    "and put it back. If it is lost, and this broker is the leader, or in the ISR or the ELR, save the partition from "
    "another replica first: the replicas may truncate to this broker's empty log"
)


def missing_logs(
    directory: DirectoryPlan,
    others: Sequence[str],
    noted: Mapping[str, Mapping[Key, int]],
    metadata: Metadata | None,
    *,
    is_created: bool,
) -> Iterator[PartitionPlan]:
    """Yield the plans of the partitions that the log directory had and that are gone. `others`: the paths of the node's
    other log directories; `noted`: the offsets in the checkpoints, by file name; `is_created`: whether the cluster may
    have the partitions, so that the broker creates them."""
    here = [name for name in noted if os.path.lexists(os.path.join(directory.path, name))]
    every = {key for each in noted.values() for key in each}
    known = every if any(name.removesuffix("-checkpoint") in EVIDENCE for name in here) else None
    expected = Expected(directory.path, tuple(others), directory.nodeId, directory.directoryId, known, metadata)
    for key in missing_partitions(expected).lost:
        path = os.path.join(directory.path, name_of(key))
        plan = PartitionPlan(*key, path, directory.path, "", bool(directory.clean), noted[OFFSETS[0]].get(key))
        plan.highWatermark = noted[OFFSETS[2]].get(key)
        plan.missing, plan.remedy = True, REMEDY
        if is_created:
            plan.logStartOffset = plan.logEndOffset = 0
            plan.segments = 1
            reason = "an empty log" if expected.is_known else "an empty log, if the cluster still has the partition"
            plan.steps.append(Step("create", path, None, 0, 0, reason))
        yield plan
