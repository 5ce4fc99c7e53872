"""Names of topics for segments in remote storage whose paths have only the topic ID: from the metadata of a cluster on
one of the disks. Without it, the column topic has the ID."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from kdump.cluster.metadata import MetadataCopies
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory, Place, directory_at
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.remote_paths import TOPIC_ID
from kdump.spark.bundles import mount_for_task
from kdump.spark.task_read_limits import TaskReadLimits


class NamesTask(NamedTuple):
    """The input of a task: log directories that may have the metadata of a cluster, and the IDs to look up."""

    paths: tuple[str, ...]
    ids: frozenset[str]
    reading: TaskReadLimits


def read_names(task: NamesTask) -> dict[str, str]:
    """Return the name of each topic of which the ID is known."""
    task.reading.apply()
    mount_for_task(task.paths)
    places = (directory_at(path) for path in task.paths)
    return topic_names((place for place in places if isinstance(place, LogDirectory)), task.ids)


def topic_names(directories: Iterable[LogDirectory], ids: Iterable[str]) -> dict[str, str]:
    """Return the name of each of the topics of which a log directory has the ID in its metadata."""
    found: dict[str, str] = {}
    left = {*ids}
    for each in directories:
        if left and any(place.topic == METADATA_TOPIC and not place.state for place in each.partitions):
            image = MetadataCopies().replayed(each.path)
            known = {topic: image.by_id[topic].name for topic in left & image.by_id.keys()} if image is not None else {}
            found |= known
            left -= known.keys()
    return found


def id_of(topic: str | None) -> str | None:
    """Return the topic if it may be an ID in place of a name."""
    return topic if topic is not None and TOPIC_ID.fullmatch(topic) else None


def with_name(place: Place, names: Mapping[str, str]) -> Place:
    """Return a partition or file with the name of its topic, if only its ID was known."""
    if isinstance(place, LogDirectory) or place.topic is None or place.topic not in names:
        return place
    if isinstance(place, PartitionDirectory):
        return replace(place, topic=names[place.topic])
    return place._replace(topic=names[place.topic])
