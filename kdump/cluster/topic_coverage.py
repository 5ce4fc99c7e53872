"""How much of a topic with state is on the disks: a coordinator's keys are spread over its partitions by their hash.

Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor, ShareCoordinatorService.partitionFor
(of a SharePartitionKey), String.hashCode, Utils.abs."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from kdump.format.count_text import count_text
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.state.groups import SHARE, GroupCoordinatorState
from kdump.state.metadata_image import MetadataImage


class TopicCoverage(NamedTuple):
    """The partitions of a topic that were read. `partitions`: how many the cluster has; None if unknown."""

    topic: str
    read: frozenset[int]
    partitions: int | None

    def __or__(self, other: TopicCoverage | None) -> TopicCoverage:
        """Return what was read on the disks of both, of the same cluster."""
        if other is None:
            return self
        counts = [each for each in (self.partitions, other.partitions) if each is not None]
        return TopicCoverage(self.topic, self.read | other.read, max(counts, default=None))

    @property
    def is_complete(self) -> bool:
        """Whether every partition was read."""
        return self.partitions is not None and self.read >= set(range(self.partitions))

    @property
    def is_partial(self) -> bool:
        """Whether a partition is known not to have been read."""
        return self.partitions is not None and not self.is_complete

    @property
    def text(self) -> str:
        """What was read: 1 of 2 partitions of __consumer_offsets."""
        if not self.is_partial:
            return f"{count_text(len(self.read), 'partition')} of {self.topic}"
        return f"{len(self.read):,} of {count_text(self.partitions or 0, 'partition')} of {self.topic}"

    def note(self, what: str) -> str:
        """Return that partitions are not here, and `what` is in them; empty if none is known to be missing."""
        if not self.is_partial:
            return ""
        if not self.read:
            return f"no partition of {self.topic} is on these disks: {what} are not known"
        return f"only {self.text} on these disks: {what} of the others are not known"

    def lacks(self, key: str | None) -> str:
        """Return why a key that was not found may exist: that its partition, or another one, was not read. Empty if it
        does not. `key` is None if only a pattern is known."""
        if not self.is_partial:
            return ""
        number = None if key is None else partition_of(key, self.partitions or 0)
        if number is None:
            return f"only {self.text} on these disks"
        if number in self.read:
            return ""
        return f"it would be in {self.topic}-{number}, which is not on these disks"


HELD = {OFFSETS_TOPIC: "the groups", SHARE_TOPIC: "the offsets of share groups"}
"""What is in a partition of a topic of group coordinators."""


def coordinators_covered(groups: GroupCoordinatorState, metadata: MetadataImage | None) -> dict[str, TopicCoverage]:
    """Return how much of the topics of group coordinators was read: of __share_group_state only if a share group may
    have offsets there."""
    read: dict[str, set[int]] = {OFFSETS_TOPIC: set(), SHARE_TOPIC: set()}
    for log in groups.logs:
        read[log.topic].add(log.partition)
    every = {topic: coverage(topic, numbers, metadata) for topic, numbers in read.items()}
    share = every[SHARE_TOPIC]
    if not any(group.type == SHARE for group in groups.groups.values()) or not (share.read or share.partitions):
        del every[SHARE_TOPIC]
    return every


def coverage(topic: str, read: Iterable[int], metadata: MetadataImage | None) -> TopicCoverage:
    """Return how much of a topic was read, by the metadata on the same disks."""
    return TopicCoverage(topic, frozenset(read), None if metadata is None else metadata.partition_count(topic))


def holders(topic: str, metadata: MetadataImage | None) -> str:
    """Return which brokers have a topic that is not on the disks, by their metadata; empty if it is not known."""
    described = None if metadata is None else metadata.topics.get(topic)
    if described is None:
        return ""
    numbers = sorted({number for each in described.partitions.values() for number in each.replicas})
    brokers = f"{'brokers' if len(numbers) > 1 else 'broker'} {', '.join(map(str, numbers))}"
    return f"by the metadata on these disks, it is assigned to {brokers}"


def partition_of(key: str, count: int) -> int | None:
    """Return the partition of a group or a transactional ID; None if there are no partitions."""
    return abs(hash_code(key)) % count if count else None


def hash_code(text: str) -> int:
    """Return String.hashCode; 0 for the one number whose absolute value Java does not have."""
    code = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", data):
        code = (31 * code + unit) & 0xFFFFFFFF
    return 0 if code == 1 << 31 else code - (code >> 31 << 32)
