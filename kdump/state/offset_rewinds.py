"""Committed offsets that went back: by a reset, or by a commit of a lower offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.state.committed_offsets import OffsetAndMetadata, PartitionName

MAX_REWINDS = 10_000
"""Maximum number of partitions of groups that are remembered."""


class Rewind(NamedTuple):
    """An offset that went back: from and to, and the offset and commit time (epoch ms) of the record that did it."""

    topic: str
    partition: int
    before: int
    after: int
    record: int
    time: int

    @property
    def text(self) -> str:
        return f"{self.topic}-{self.partition}: from {self.before} to {self.after}"


@dataclass
class OffsetRewinds:
    """The largest of each group and partition."""

    found: dict[str, dict[PartitionName, Rewind]] = field(default_factory=dict)
    count: int = 0

    def add(self, group: str, at: PartitionName, before: int, commit: OffsetAndMetadata) -> None:
        """Remember it, if there is room and it is the largest of this partition."""
        known = self.found.get(group, {}).get(at)
        if known is None and self.count >= MAX_REWINDS:
            return
        if known is None or before - commit.offset > known.before - known.after:
            self.count += known is None
            rewind = Rewind(*at, before, commit.offset, commit.recordOffset, commit.commitTimestamp)
            self.found.setdefault(group, {})[at] = rewind

    def of(self, group: str, offsets: Mapping[PartitionName, OffsetAndMetadata]) -> list[Rewind]:
        """Return those of a group, in the order of their records, unless it has caught up since by its committed
        `offsets`."""
        rewinds = self.found.get(group, {}).items()
        left = [rewind for at, rewind in rewinds if at not in offsets or offsets[at].offset < rewind.before]
        return sorted(left, key=lambda rewind: (rewind.record, rewind.topic, rewind.partition))
