"""Committed offsets and groups that were removed: expired, or deleted by a client or with their topic. Their tombstones
state no reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.state.committed_offsets import OffsetAndMetadata, PartitionName

MAX_REMOVED = 10_000
"""Maximum number of removed offsets, and of removed groups, that are remembered: the newest."""


class Removal(NamedTuple):
    """The last removal of a group's offset in a partition: what it was, with its topic ID, and the offset and timestamp
    (epoch ms) of the tombstone. `after`: what the group has committed since; None if it has not."""

    topic: str
    partition: int
    before: int
    topicId: str | None
    record: int
    time: int | None
    after: int | None = None

    @property
    def text(self) -> str:
        since = "" if self.after is None else f" (committed again since: {self.after})"
        return f"{self.topic}-{self.partition}: offset {self.before}{since}"


class RemovedGroup(NamedTuple):
    """The last removal of a group: the partition of __consumer_offsets, and the offset and timestamp (epoch ms) of the
    tombstone of its own record or of its last offset."""

    partition: int
    record: int
    time: int | None


@dataclass
class RemovedOffsets:
    """The last removal of each group and partition, and of each group, which may exist again. `count`: how many offsets
    were removed."""

    offsets: dict[str, dict[PartitionName, Removal]] = field(default_factory=dict)
    groups: dict[str, RemovedGroup] = field(default_factory=dict)
    count: int = 0
    _kept: int = 0

    def add(self, group: str, at: PartitionName, before: OffsetAndMetadata, record: int, time: int | None) -> None:
        """Remember that an offset was removed."""
        self.count += 1
        mine = self.offsets.setdefault(group, {})
        self._kept += at not in mine
        mine[at] = Removal(*at, before.offset, before.topicId, record, time)
        if self._kept > MAX_REMOVED:
            oldest = next(iter(self.offsets))
            self._kept -= len(self.offsets.pop(oldest))

    def add_group(self, group: str, partition: int, record: int, time: int | None) -> None:
        """Remember that a group was removed, or may have been with the last of its offsets."""
        self.groups.pop(group, None)
        self.groups[group] = RemovedGroup(partition, record, time)
        if len(self.groups) > MAX_REMOVED:
            del self.groups[next(iter(self.groups))]

    def of(self, group: str, offsets: Mapping[PartitionName, OffsetAndMetadata]) -> Iterator[Removal]:
        """Yield those of a group, with what it has committed since by its committed `offsets`."""
        for at, removal in self.offsets.get(group, {}).items():
            yield removal._replace(after=offsets[at].offset) if at in offsets else removal
