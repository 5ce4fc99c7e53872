"""Rows of `kdump ls` (partitions, topics or segments) in a selectable order. Each row is read only when it is its
turn; whatever names and sizes can decide is decided before any header is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kdump.cluster.partition_summary import PartitionSummary, SegmentSummary, read_segment, segment_damage
from kdump.io.run import Run
from kdump.log.header_totals import HeaderTotals
from kdump.log.paths import natural

SORTS = ("name", "size", "segments", "offsets", "oldest", "newest")
BY_READING = ("offsets", "oldest", "newest")
"""Sort orders for which all headers must be read first."""
LARGEST_FIRST = ("size", "segments", "offsets", "newest")


@dataclass
class LsRow:
    """One or more partitions of a log directory; with `segment`, that segment of the only partition in `parts`."""

    parts: list[PartitionSummary]
    segment: SegmentSummary | None = None
    by_topic: bool = False
    is_alone: bool = False
    """The path of the partition is shown already, so `name` omits it."""

    @property
    def name(self) -> str:
        """topic-partition, the topic, or topic-partition/segment."""
        if self.segment is not None:
            name = self.segment.segment.name
            return name if self.is_alone else f"{self.parts[0].short_name}/{name}"
        return self.parts[0].topic if self.by_topic else self.parts[0].short_name

    @property
    def size(self) -> int:
        """Total size of the segments, in bytes."""
        return self.segment.size if self.segment else sum(part.size for part in self.parts)

    @property
    def segments(self) -> int:
        return 1 if self.segment else sum(len(part.segment_sizes) for part in self.parts)

    @property
    def is_deleted(self) -> bool:
        """Whether the segment was deleted before it could be read."""
        return self.segment is not None and self.segment.is_deleted

    def read(self, *, quick: bool, run: Run) -> None:
        """Read the headers of this row's segments. Never raises SourceError."""
        if self.segment is not None:
            read_segment(self.segment, quick=quick, run=run)
        else:
            for part in self.parts:
                part.read(quick=quick, run=run)
                part.forget_segments()

    def headers(self) -> HeaderTotals:
        """Return the combined headers of everything that was read."""
        if self.segment is not None:
            return self.segment.headers
        together = HeaderTotals()
        for part in self.parts:
            together.merge(part.headers)
        return together

    @property
    def offsets(self) -> int:
        if self.segment is not None:
            return self.segment.end(self.parts[0].clean, self.parts[0].release) - self.segment.segment.offset
        return sum(part.offsets or 0 for part in self.parts)

    @property
    def is_damaged(self) -> bool:
        """Whether the headers show damage."""
        if self.segment is not None:
            return bool(segment_damage(self.segment, self.parts[0].clean))
        return any(part.damage for part in self.parts)

    @property
    def errors(self) -> list[str]:
        if self.segment is not None:
            return [self.segment.error] if self.segment.error else []
        return [error for part in self.parts for error in part.errors]


class LsRows:
    """The rows for these partitions, sorted by name: one per partition, topic (live partitions only) or segment. Those
    of segments are created when it is their turn. `is_alone`: the path of the only partition is shown already."""

    def __init__(self, parts: list[PartitionSummary], by: str, *, is_alone: bool = False) -> None:
        self.by, self.is_alone = by, is_alone
        self.parts = sorted(parts, key=lambda part: (*natural(part.name), part.partition.state))
        if by == "topic":
            self.parts = [part for part in self.parts if not part.partition.state]

    def __len__(self) -> int:
        if self.by == "segment":
            return sum(len(part.segment_sizes) for part in self.parts)
        return len(self.parts) if self.by == "partition" else len({part.topic for part in self.parts})

    def __iter__(self) -> Iterator[LsRow]:
        if self.by == "topic":
            for _, group in groupby(self.parts, key=lambda part: part.topic):
                yield LsRow(list(group), by_topic=True)
            return
        for part in self.parts:
            if self.by == "partition":
                yield LsRow([part], is_alone=self.is_alone)
                continue
            for segment in part.segments:
                yield LsRow([part], segment, is_alone=self.is_alone)
            if len(self.parts) > 1:
                part.forget_segments()

    @property
    def size(self) -> int:
        """Total size of the segments, in bytes."""
        return sum(part.size for part in self.parts)


def chosen(
    rows: Iterable[LsRow], *, sort: str, reverse: bool, limit: int | None, quick: bool, run: Run
) -> Iterator[LsRow]:
    """Yield at most `limit` rows in the order `sort`, with their headers read; reads no more rows than necessary. The
    segments among them may be deleted by the time that they are read."""
    if sort != "name":
        rows = list(rows)
    if sort in BY_READING:
        for row in rows:
            row.read(quick=quick, run=run)
    if sort != "name":
        rows = sorted(rows, key=_KEYS[sort], reverse=sort in LARGEST_FIRST)
    if reverse:
        rows = reversed(list(rows))
    count = 0
    for row in rows:
        if limit is not None and count >= limit:
            return
        if sort not in BY_READING:
            row.read(quick=quick, run=run)
        count += not row.is_deleted
        yield row


def _oldest(row: LsRow) -> tuple[bool, int]:
    oldest = row.headers().oldest
    return oldest is None, oldest or 0


_KEYS: dict[str, Callable[[LsRow], Any]] = {
    "size": lambda row: row.size,
    "segments": lambda row: row.segments,
    "offsets": lambda row: row.offsets,
    "oldest": _oldest,
    "newest": lambda row: -1 if row.headers().newest is None else row.headers().newest,
}
