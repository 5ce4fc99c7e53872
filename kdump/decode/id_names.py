"""Names of the IDs in Kafka's own records: mainly of topics, and of users in records that contain only an ID.

Names come from the records decoded so far. For other topic IDs, they come from the log directory of the file: first
from the partition.metadata files, then from __cluster_metadata if that is small enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.schema import load_folder
from kdump.io.errors import SourceError
from kdump.kafka.checkpoint_file import BadLine, topic_id
from kdump.log.internal_topics import METADATA_LOG
from kdump.log.paths import PARTITION

MAX_NAMES = 100_000
MAX_DIRECTORIES = 20_000
LARGEST_LOG = 32 * 1024 * 1024
"""Maximum total size, in bytes, of a metadata log and its snapshots that are read only for names."""


REMOVED = {"RemoveAccessControlEntryRecord": "id", "RemoveDelegationTokenRecord": "tokenId"}
"""Records that contain only the ID of what they remove, and the field with that ID."""


LEARNED = {
    "TopicRecord": ("topicId", "name"),
    "AccessControlEntryRecord": ("id", "principal"),
    "DelegationTokenRecord": ("tokenId", "owner"),
}
"""Records that contain an ID and its name, and the fields with these."""


class IdNames:
    """IDs and their names, for the files of one log directory (None: no log directory is known)."""

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self.known: dict[str, str] = {}
        self._disk: list[Callable[[str], Iterator[tuple[str, str]]]] = [_partitions, _metadata]
        """Sources that have not been read yet, cheapest first."""

    def learn(self, message: str, data: dict[str, Any]) -> None:
        """Store the name of an ID from a metadata record."""
        if message in LEARNED:
            number, name = LEARNED[message]
            self._put(data.get(number), data.get(name))

    def learn_from_commit(self, key: dict[str, Any], value: dict[str, Any]) -> None:
        """Store the name of a topic from an offset commit: the key contains the name, the value the ID."""
        self._put(value.get("topicId"), key.get("topic"))

    def _put(self, number: Any, name: Any) -> None:
        if number and name and number != ZERO_UUID and len(self.known) < MAX_NAMES:
            self.known[number] = name

    def of(self, folder: str, messages: list[dict[str, Any]]) -> dict[str, str]:
        """Return the names of the IDs in these decoded messages, whose schemas are in `folder`."""
        found: dict[str, str] = {}
        for message in messages:
            if not _has_topic_ids(folder, message["name"]):
                continue
            is_flat = _is_flat(folder, message["name"])
            for number, name in _own_topic_id(message["data"]) if is_flat else _topic_ids(message["data"]):
                if name:  # the message itself contains the name
                    self._put(number, name)
                    continue
                found_name = self.known.get(number) or self._from_disk(number)
                if found_name:
                    found[number] = found_name
        for message in messages:
            field = REMOVED.get(message["name"])
            removed = message["data"].get(field) if field else None
            if removed in self.known:
                found[str(removed)] = self.known[removed]
        return found

    def of_ids(self, ids: Iterable[str | None]) -> dict[str, str]:
        """Return the names of these topics, as far as they are known."""
        wanted = [number for number in ids if number and number != ZERO_UUID]
        names = {number: self.known.get(number) or self._from_disk(number) for number in wanted}
        return {number: name for number, name in names.items() if name}

    def _from_disk(self, number: str) -> str | None:
        while self.directory is not None and self._disk:
            for known, name in self._disk.pop(0)(self.directory):
                self._put(known, name)
            if number in self.known:
                return self.known[number]
        return None


@cache
def needs_only_topic_id(folder: str, message: str) -> bool:
    """Return True if `of_ids` of the message's topicId, if it has one, is what `of` returns, and nothing is learned."""
    if message in LEARNED or message in REMOVED:
        return False
    is_flat = _is_flat(folder, message) and "opicName" not in str(load_folder(folder)[message].fields)
    return is_flat or not _has_topic_ids(folder, message)


@cache
def _has_topic_ids(folder: str, message: str) -> bool:
    """Return True if the message may contain IDs of topics without their names."""
    schema = load_folder(folder)[message]
    return message != "TopicRecord" and any(name in str(schema.fields) for name in ("topicId", "TopicId"))


@cache
def _is_flat(folder: str, message: str) -> bool:
    """Return True if no field of the message contains other fields."""
    schema = load_folder(folder)[message]
    versions = range(schema.valid.lowest, schema.valid.highest + 1)
    nodes = [node for version in versions for node in schema.struct(version).fields]
    return not any((node.element or node).inner or (node.element and node.element.element) for node in nodes)


def _own_topic_id(fields: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Return what `_topic_ids` yields for a message that is flat."""
    number = fields.get("topicId")
    return ((number, fields.get("topicName") or None),) if isinstance(number, str) and number != ZERO_UUID else ()


def _topic_ids(fields: Any) -> Iterator[tuple[str, str | None]]:
    """Yield the topic IDs in a message, each with the topic's name if the message contains it, else None."""
    if isinstance(fields, dict):
        number = fields.get("topicId")
        if isinstance(number, str) and number != ZERO_UUID:
            yield number, fields.get("topicName") or None
        for name, item in fields.items():
            if name == "topicIdPartition" and isinstance(item, dict) and item.get("id") not in (None, ZERO_UUID):
                yield item["id"], item.get("name")
            elif isinstance(item, (dict, list)):
                yield from _topic_ids(item)
    elif isinstance(fields, list) and fields and isinstance(fields[0], dict):
        for item in fields:
            yield from _topic_ids(item)


def _partitions(directory: str) -> Iterator[tuple[str, str]]:
    """Yield topic IDs and names from the partition.metadata files in a log directory."""
    try:
        names = os.listdir(directory)
    except OSError:
        return
    seen: set[tuple[str, str | None]] = set()
    for name in names[:MAX_DIRECTORIES]:
        match = PARTITION.match(name)
        # A topic that is being deleted may exist again with another ID.
        if not match or (match["topic"], match["state"]) in seen:
            continue
        try:
            number = topic_id(os.path.join(directory, name, "partition.metadata"))
        except (BadLine, SourceError):
            continue
        if number is not None:
            seen.add((match["topic"], match["state"]))
            yield number, match["topic"]


def _metadata(directory: str) -> Iterator[tuple[str, str]]:
    """Yield topic IDs and names from the metadata log in a log directory."""
    folder = os.path.join(directory, METADATA_LOG)
    try:
        files = [entry for entry in os.scandir(folder) if entry.name.endswith((".log", ".checkpoint"))]
        if sum(entry.stat().st_size for entry in files) > LARGEST_LOG:
            return
    except OSError:
        return
    from kdump.cluster.metadata_copies import MetadataCopies

    metadata = MetadataCopies().replayed(directory)
    for number, topic in (metadata.by_id if metadata else {}).items():
        yield number, topic.name
