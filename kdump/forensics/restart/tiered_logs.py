"""Topics with remote storage (KIP-405): what the plan of a log that is shorter after startup, or missing, must add.
Remote storage still has the offsets that were copied, as long as no replica without them leads.

Source: RemoteLogManager (findHighestRemoteOffset, deleteLogSegmentsDueToLeaderEpochCacheTruncation), UnifiedLog.
"""

from __future__ import annotations

from kdump.cluster.remote_log import RemoteLog, read_remote_log
from kdump.forensics.restart.plan_values import PartitionPlan, RestartPlan
from kdump.format.count_text import offsets_text
from kdump.log import file_system
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.paths import segments_in
from kdump.log.run import Limits
from kdump.state.metadata_image import MetadataImage
from kdump.state.topic_config import NOWHERE, is_tiered

ASSUMPTION = (
    "remote.log.storage.system.enable is true: otherwise the logs of tiered topics start at their first local offset"
)


def add_tiered(plan: RestartPlan, metadata: MetadataImage, limits: Limits) -> None:
    """Add a note to each live log of a tiered topic that loses records or is missing, and the assumption that tiered
    storage is enabled."""
    tiered = {name for name in metadata.topics if is_tiered(metadata, name)}
    found = [each for each in plan.partitions if each.topic in tiered and not each.state]
    if found:
        plan.assumptions.append(ASSUMPTION)
    losing = [each for each in found if each.loses or each.missing]
    below = [
        (each, first)
        for each in found
        if (first := _first_here(each)) is not None and (each.logStartOffset or 0) < first
    ]
    if not losing and not below:
        return
    remote = _remote_log(plan, metadata, limits)
    for each, first in below:
        lacks = remote.lacks(metadata.topics[each.topic].id, each.partition, each.logStartOffset or 0, first)
        if lacks:
            each.notes.append(f"tiered: {NOWHERE.format(offsets=offsets_text(lacks))}")
    for each in losing:
        each.notes.append(_note(each, remote.end_of(metadata.topics[each.topic].id, each.partition)))


def _first_here(each: PartitionPlan) -> int | None:
    """Return the base offset of the first segment on the disk; None if there is none, or the log does not load."""
    names = [] if each.missing or each.logStartOffset is None else segments_in(each.path)
    return int(names[0][:20]) if names else None


def _remote_log(plan: RestartPlan, metadata: MetadataImage, limits: Limits) -> RemoteLog:
    topic = metadata.topics.get(REMOTE_METADATA_TOPIC)
    count = None if topic is None else len(topic.partitions)
    here = [each.path for each in plan.partitions if each.topic == REMOTE_METADATA_TOPIC and not each.state]
    return read_remote_log([path for path in here if file_system.isdir(path)], count, limits)


def _note(each: PartitionPlan, last: int | None) -> str:
    """Return what remote storage has. `last`: the last offset that was ever copied, -1 for none, None if unknown."""
    if last == -1:
        return "tiered, but nothing of it is in remote storage"
    end = each.logEndOffset or 0
    text = "tiered: what remote storage has of it is unknown (__remote_log_metadata is not whole here)"
    if last is not None:
        text = f"tiered: remote storage has it up to offset {last}"
        if last < end:
            return text
    text += f"; while another replica leads, nothing of that is lost, but if this one leads, it goes on at offset {end}"
    if each.missing or not each.epochsAfter:
        text += ", and as its leader epochs are gone, it deletes the segments in remote storage"
    return text
