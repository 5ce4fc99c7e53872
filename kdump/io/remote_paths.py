"""Names of directories with segments in remote storage (KIP-405), which contain the topic ID.

Source: org.apache.kafka.server.log.remote.storage.LocalTieredStorage (topic-partition-topicId); other plugins have
topic-topicId/partition, or only topicId/partition."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes in base64url without padding: the last character has two bits, so that it is never a digit."""
_IN_ONE = re.compile(rf"(?P<topic>[\w.-]{{1,249}})-(?P<partition>[0-9]{{1,10}})-(?P<id>{TOPIC_ID.pattern})")
_ABOVE = re.compile(rf"(?:(?P<topic>[\w.-]{{1,249}})-)?(?P<id>{TOPIC_ID.pattern})")
_NUMBER = re.compile(r"[0-9]{1,10}")
OBJECT = re.compile(rf"(?P<baseOffset>[0-9]{{20}})-(?P<segmentId>{TOPIC_ID.pattern})\.(?P<suffix>[\w-]+)")
"""The name of an object of a segment."""


class RemotePartition(NamedTuple):
    """A partition whose segments a directory in remote storage has. `topic`: its name, or the topic ID if the path does
    not contain the name."""

    topic: str
    partition: int
    topic_id: str


def remote_partition(directory: str) -> RemotePartition | None:
    """Return the partition that the path of a directory in remote storage names; None if it names none."""
    above, _, name = directory.rstrip("/").rpartition("/")
    match = _IN_ONE.fullmatch(name)
    if match:
        return RemotePartition(match["topic"], int(match["partition"]), match["id"])
    match = _ABOVE.fullmatch(os.path.basename(above)) if _NUMBER.fullmatch(name) else None
    return RemotePartition(match["topic"] or match["id"], int(name), match["id"]) if match else None


def object_suffix(path: str) -> str:
    """Return what the name of an object ends in whose directory is named as by Aiven's plugin; empty for any other."""
    directory, _, name = path.rpartition("/")
    if len(name) <= 44 or OBJECT.fullmatch(name) is None:
        return ""
    above, _, number = directory.rpartition("/")
    is_there = _NUMBER.fullmatch(number) and _ABOVE.fullmatch(above.rpartition("/")[2])
    return name.rpartition(".")[2] if is_there else ""


def looks_like_topic_id(topic: str) -> bool:
    """Return True if the name of a topic is probably a topic ID: nearly all have uppercase letters, unlike names."""
    return TOPIC_ID.fullmatch(topic) is not None and topic.lower() != topic


MAX_IDS = 3
"""Maximum number of topic IDs that are listed."""


def with_only_ids(what: str, ids: Sequence[str]) -> str:
    """Return which topic IDs `what` (2 segments) has in place of names."""
    more = " and others" if len(ids) > MAX_IDS else ""
    return f"{what} whose path has only a topic ID, {', '.join(ids[:MAX_IDS])}{more}"


def nameless_topic(directory: str) -> str | None:
    """Return the topic ID if the path of a directory in remote storage has only that, and not the topic's name."""
    partition = remote_partition(directory)
    above = os.path.basename(os.path.dirname(directory.rstrip("/")))
    return partition.topic if partition is not None and partition.topic == above else None
