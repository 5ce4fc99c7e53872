"""The committed offsets of all groups."""

from __future__ import annotations

from typing import NamedTuple

PartitionName = tuple[str, int]
"""Topic and partition."""


class OffsetAndMetadata(NamedTuple):
    """A committed offset. None if unset; times are epoch ms. `recordOffset` is the offset of its record."""

    offset: int
    leaderEpoch: int | None
    metadata: str
    commitTimestamp: int
    expireTimestamp: int | None
    topicId: str | None
    recordOffset: int


class CommittedOffsets(dict[str, dict[PartitionName, OffsetAndMetadata]]):
    """Committed offsets by group and partition. A group without any is left out."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[PartitionName, PartitionName] = {}
        """Each partition once: most groups have the same ones."""

    def find(self, group: str, at: PartitionName) -> OffsetAndMetadata | None:
        """Return the offset of a group in a partition."""
        return self.get(group, {}).get(at)

    def put(self, group: str, at: PartitionName, commit: OffsetAndMetadata) -> None:
        """Store the offset of a group in a partition, in place of an earlier one."""
        self.setdefault(group, {})[self._places.setdefault(at, at)] = commit

    def remove(self, group: str, at: PartitionName) -> OffsetAndMetadata | None:
        """Remove and return the offset of a group in a partition; None if there is none."""
        commits = self.get(group, {})
        found = commits.pop(at, None)
        if found is not None and not commits:
            del self[group]
        return found
