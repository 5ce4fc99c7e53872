"""The live topics of a broker's log directories, with their configs, for retention."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdump.cluster.disks import Node
from kdump.cluster.node_ids import node_ids
from kdump.cluster.remote_log import RemoteLog
from kdump.forensics.retention.configs import ConfigOverrides, settings
from kdump.forensics.space.answers import RUNNING
from kdump.forensics.space.brokers import state_of
from kdump.forensics.space.due_segments import OpenedFiles, RetainedLog
from kdump.forensics.space.lower_retention import RetainedTopic
from kdump.forensics.space.usage import DirectoryUsage
from kdump.kafka.checkpoint_file import Offsets
from kdump.kafka.small_files import offsets
from kdump.log.log_directory import LogDirectory
from kdump.log.run import Limits
from kdump.state.metadata_image import MetadataImage
from kdump.state.unknown_offsets import UNREADABLE

CHECKPOINTS = ("log-start-offset", "replication-offset", "cleaner-offset", "recovery-point-offset")


def checkpointed(directory: LogDirectory, name: str, problems: list[str]) -> Offsets:
    """Return the offsets in a checkpoint of the log directory."""
    found, unknown = offsets(directory.files.get(f"{name}-checkpoint"))
    problems += [unknown.reason] if unknown and unknown.code == UNREADABLE else []
    return found


def retained_topics(
    broker: Node,
    usages: Iterable[DirectoryUsage],
    metadata: MetadataImage | None,
    given: ConfigOverrides,
    now: int,
    opened: OpenedFiles,
    problems: list[str],
    is_selected: Callable[[str], bool],
    limits: Limits,
) -> list[RetainedTopic]:
    """Return the topics, the largest first. `problems` gets what could not be read."""
    found: dict[str, RetainedTopic] = {}
    remote: RemoteLog | None = None
    usages = list(usages)
    # A running broker has recovered its logs, and has written their indexes.
    is_running = state_of(broker) == RUNNING
    moving = {each.key for usage in usages for each in usage.in_state("future")}
    for usage in usages:
        starts, marks, cleaned, points = (checkpointed(usage.directory, name, problems) for name in CHECKPOINTS)
        directory_id = node_ids(usage.directory).get("directory.id")
        is_offline = metadata is not None and metadata.is_offline(broker.node_id, directory_id)
        for each in usage.live():
            if each.place.topic is None or each.place.partition is None or not each.bases:
                continue
            topic, number = each.key
            if not is_selected(topic):
                continue
            if topic not in found:
                own = settings(topic, metadata, broker.node_id, given, was_cleaned=each.key in cleaned)
                found[topic] = RetainedTopic(topic, own, [], are_defaults_known=bool(given.properties))
            end = None
            if found[topic].settings.is_tiered and metadata is not None:
                remote = remote or broker.remote_log(metadata, limits)
                described = metadata.topics.get(topic)
                end = remote.end_of(described.id if described else None, number)
            mark = None if _is_alone(metadata, topic, number) else marks.get(each.key)
            point = None if is_running or usage.directory.is_clean else points.get(each.key, 0)
            log = RetainedLog(each, starts.get(each.key), mark, end, now, opened, point, cleaned.get(each.key))
            log.moves, log.is_offline = each.key in moving, is_offline
            found[topic].logs.append(log)
    return sorted(found.values(), key=lambda topic: (-topic.allocated, topic.name))


def _is_alone(metadata: MetadataImage | None, topic: str, number: int) -> bool:
    """Return True if the partition has one replica, so that its high watermark is its log end offset."""
    described = metadata.topics.get(topic) if metadata is not None else None
    info = described.partitions.get(number) if described is not None else None
    return info is not None and len(info.replicas) == 1
