"""The committed offsets of all groups, in arrays: a cluster has hundreds of thousands. Those that went back: by a
reset, or by a commit of a lower offset; and those that were removed: expired, or deleted by a client or with their
topic, of which their tombstones state no reason."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.core.id_rows import IdRows

MAX_REMOVED = 10_000
"""Maximum number of removed offsets, and of removed groups, that are remembered: the newest."""


MAX_REWINDS = 10_000
"""Maximum number of partitions of groups that are remembered."""


class Names:
    """Texts by number, from 0 on."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, name: str) -> int:
        """Return the number of a text, the next one if it has none."""
        number = self._numbers.setdefault(name, len(self.texts))
        if number == len(self.texts):
            self.texts.append(name)
        return number

    def find(self, name: str) -> int:
        """Return the number of a text, -1 if it has none."""
        return self._numbers.get(name, -1)


NONE = -1
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


class CommittedOffsets(Mapping[str, dict[PartitionName, OffsetAndMetadata]]):
    """Committed offsets by group and partition. Takes some 60 bytes for each, and its metadata if it has any; those of
    a group are made when they are asked for."""

    def __init__(self) -> None:
        self._groups, self._topics, self._topic_ids = Names(), Names(), Names()
        self._first = array("q")
        """By number of the group: its row that was added last, and how many of its rows have an offset."""
        self._count = array("q")
        self._pairs = IdRows()
        """Rows of a group and a topic, whose numbers are the halves of the ID."""
        self._rows = IdRows()
        """Rows of a pair and a partition, whose numbers are the halves of the ID."""
        self._next = array("q")
        """By row: the row of the same group that was added before it."""
        self._offset, self._commit, self._record = array("q"), array("q"), array("q")
        self._epoch, self._topic_id = array("i"), array("i")
        self._is_kept = bytearray()
        self._metadata: dict[int, str] = {}
        self._expire: dict[int, int] = {}

    def find(self, group: str, at: PartitionName) -> OffsetAndMetadata | None:
        """Return the offset of a group in a partition."""
        row = self._row(group, at)
        return None if row < 0 else self._at(row)

    def put(self, group: str, at: PartitionName, commit: OffsetAndMetadata) -> None:
        """Store the offset of a group in a partition, in place of an earlier one."""
        number = self._groups.add(group)
        if number == len(self._first):
            self._first.append(NONE)
            self._count.append(0)
        pair = self._pairs.add(number << 32 | self._topics.add(at[0]))
        row = self._rows.add(pair << 32 | at[1] & 0xFFFFFFFF)
        if row == len(self._next):
            self._next.append(self._first[number])
            self._first[number] = row
            self._is_kept.append(False)
            for column in (self._offset, self._commit, self._record, self._epoch, self._topic_id):
                column.append(0)
        self._count[number] += not self._is_kept[row]
        self._is_kept[row] = True
        self._offset[row], self._commit[row], self._record[row] = (
            commit.offset,
            commit.commitTimestamp,
            commit.recordOffset,
        )
        self._epoch[row] = NONE if commit.leaderEpoch is None else commit.leaderEpoch
        self._topic_id[row] = NONE if commit.topicId is None else self._topic_ids.add(commit.topicId)
        self._forget(row)
        if commit.metadata:
            self._metadata[row] = commit.metadata
        if commit.expireTimestamp is not None:
            self._expire[row] = commit.expireTimestamp

    def pop(self, group: str, at: PartitionName) -> OffsetAndMetadata | None:
        """Remove and return the offset of a group in a partition; None if there is none."""
        row = self._row(group, at)
        if row < 0:
            return None
        offset = self._at(row)
        self._is_kept[row] = False
        self._count[self._groups.find(group)] -= 1
        self._forget(row)
        return offset

    def _forget(self, row: int) -> None:
        self._metadata.pop(row, None)
        self._expire.pop(row, None)

    def _row(self, group: str, at: PartitionName) -> int:
        """Return the row with the offset of a group in a partition, -1 if there is none."""
        number, topic = self._groups.find(group), self._topics.find(at[0])
        pair = self._pairs.find(number << 32 | topic) if number >= 0 and topic >= 0 else NONE
        row = self._rows.find(pair << 32 | at[1] & 0xFFFFFFFF) if pair >= 0 else NONE
        return row if row >= 0 and self._is_kept[row] else NONE

    def _at(self, row: int) -> OffsetAndMetadata:
        epoch, topic_id = self._epoch[row], self._topic_id[row]
        return OffsetAndMetadata(
            self._offset[row],
            None if epoch < 0 else epoch,
            self._metadata.get(row, ""),
            self._commit[row],
            self._expire.get(row),
            None if topic_id < 0 else self._topic_ids.texts[topic_id],
            self._record[row],
        )

    def __getitem__(self, group: str) -> dict[PartitionName, OffsetAndMetadata]:
        """Return the offsets of a group, the one whose partition came last first."""
        number, offsets = self._groups.find(group), {}
        if number < 0 or not self._count[number]:
            raise KeyError(group)
        row = self._first[number]
        while row >= 0:
            if self._is_kept[row]:
                place = self._rows.id_of(row)
                topic = self._pairs.id_of(place >> 32) & 0xFFFFFFFF
                partition = place & 0xFFFFFFFF
                partition -= (partition & 0x80000000) << 1
                offsets[self._topics.texts[topic], partition] = self._at(row)
            row = self._next[row]
        return offsets

    def __contains__(self, group: object) -> bool:
        number = self._groups.find(group) if isinstance(group, str) else NONE
        return number >= 0 and self._count[number] > 0

    def __iter__(self) -> Iterator[str]:
        return (group for number, group in enumerate(self._groups.texts) if self._count[number])

    def __len__(self) -> int:
        return sum(map(bool, self._count))


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
