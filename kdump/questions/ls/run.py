"""Log directories, their partitions and segments, as `kdump ls` lists them: the answers of `kdump.ls`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kdump.cluster.directory_summary import (
    LogDirectoryStates,
    LogDirectorySummary,
    log_directory_summary,
    single_partition_summary,
)
from kdump.cluster.disks import Disks
from kdump.cluster.partition_summary import PartitionSummary
from kdump.cluster.segment_answer import ListedSegment, segment_answer
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.directory_listing import is_url, items, parent
from kdump.io.errors import SourceError, listing_error
from kdump.io.run import Run
from kdump.log import file_kinds
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import Target
from kdump.query import Query, flag, internal_option, offered, option, topic_option
from kdump.questions.ls.answer import (
    ListedDirectory,
    ListedPartition,
    ListedTopic,
    directory_answer,
    partition_answer,
    topic_answer,
)
from kdump.questions.ls.rows import SORTS, LsRow, LsRows, chosen
from kdump.text import path_text

if TYPE_CHECKING:
    from kdump.kafka.server_properties import ServerProperties

__all__ = ["ls"]

Listed = ListedPartition | ListedTopic | ListedSegment
LsAnswer = ListedDirectory | Listed


@dataclass(frozen=True, kw_only=True)
class LsQuery(Query):
    """What to list, and in which order."""

    by: str | None = option(
        "--by",
        choices=("partition", "topic", "segment"),
        help="Show one row for each of these.  [partition; segment for a partition directory]",
    )
    segments: bool = flag("--segments", help="Show one row per segment; same as --by segment.")
    topics: Iterable[str] = topic_option("Show only these topics")
    internal: bool | None = internal_option()
    sort: str = option(
        "--sort",
        choices=SORTS,
        default="name",
        help="Sort rows: size, segments, offsets and newest descending; name and oldest ascending.  [name]",
    )
    reverse: bool = flag("--reverse", help="Reverse the sort order.")
    limit: int | None = option("-n", "--limit", type="count", help="Show at most N rows per directory.")
    quick: bool = flag("--quick", help="Read only the first and last batches of each segment.")

    @property
    def rows(self) -> str | None:
        return "segment" if self.segments else self.by

    def wants(self, topic: str) -> bool:
        return is_of_kind(topic, self.internal) and self.of_topic(topic)


NONE_OF_KIND = {
    True: "no partition of Kafka's internal topics found",
    False: "no partition found, except of Kafka's internal topics",
}
"""Messages for --internal (True) and --no-internal (False) if no partition is selected."""


def is_of_kind(topic: str, internal: bool | None) -> bool:
    """Return True if --internal or --no-internal, whichever was given, selects the topic."""
    return internal is None or (topic in INTERNAL_TOPICS) == internal


def row_answer(row: LsRow) -> Listed:
    """Return the answer of a row."""
    if row.segment is not None:
        return segment_answer(row.segment, row.parts[0].clean)
    return topic_answer(row.parts) if row.by_topic else partition_answer(row.parts[0])


class DirectoryStart(NamedTuple):
    """A log directory, before its rows."""

    facts: LogDirectorySummary
    rows: LsRows


class PartitionStart(NamedTuple):
    """A partition, before the rows of its segments."""

    facts: PartitionSummary


class RowsEnd(NamedTuple):
    """The end of the rows of a directory or partition: so many of them are `shown`. `partition`: whose segments they
    are, if they are a partition's."""

    shown: int
    of: int
    partition: PartitionSummary | None


LsPart = DirectoryStart | PartitionStart | LsRow | RowsEnd


def ls_answers(answer: LsPart) -> Iterator[LsAnswer]:
    """Yield the answer of a part. A partition whose segments are listed follows them, because its end offset is
    known only then."""
    if isinstance(answer, DirectoryStart):
        yield directory_answer(answer.facts)
    elif isinstance(answer, LsRow):
        yield row_answer(answer)
    elif isinstance(answer, RowsEnd) and answer.partition is not None and answer.shown == answer.of:
        answer.partition.sum_up()
        yield partition_answer(answer.partition)


def ls_row_answers(answer: LsPart) -> Iterator[Listed]:
    """Yield the answers that are rows: not the partition that follows its segments."""
    if isinstance(answer, LsRow):
        yield row_answer(answer)


@dataclass
class Listing:
    """One run of a query."""

    query: LsQuery
    disks: Disks
    states: LogDirectoryStates = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def parts(self) -> Iterator[LsPart]:
        """Yield what is listed, and call `run.found` with each log directory and `run.expect` with the bytes of each
        table."""
        files: dict[str, list[Target]] = {}
        for path in self.query.paths:
            try:
                for place in find_directories(path, Run(unreadable=self._unread)):
                    if isinstance(place, LogDirectory):
                        yield from self._directory(place)
                    elif isinstance(place, PartitionDirectory):
                        yield from self._partition(place)
                    elif (
                        place.kind is file_kinds.SEGMENT and "://" not in place.path and file_system.isfile(place.path)
                    ):
                        files.setdefault(os.path.dirname(os.path.abspath(place.path)), []).append(place)
                    else:
                        self._unread(SourceError(_why_unlistable(place.path)))
            except SourceError as error:
                self._unread(error)
        for targets in files.values():
            yield from self._files(parent(targets[0].path), targets)

    def _directory(self, place: LogDirectory) -> Iterator[LsPart]:
        facts = log_directory_summary(place, self.disks)
        facts.absent = [key for key in facts.absent if self.query.wants(key[0])]
        created = {key: why for key, why in facts.created.items() if self.query.wants(key[0])}
        self.query.run.found(facts)
        parts = [part for part in facts.partitions if self.query.wants(part.topic)]
        rows = LsRows(parts, self.query.rows or "partition")
        if not (len(rows) or facts.absent or created) and self.query.topics:  # --topic matches nothing here
            return
        yield DirectoryStart(facts, rows)
        yield from self._rows(rows, len(rows), rows.size)
        if self.query.topics and created:
            node = self.disks.cluster_at(place.path), self.disks.node_id(place)
            own = (
                each
                for each in self.disks.directories
                if (self.disks.cluster_at(each.path), self.disks.node_id(each)) == node
            )
            names = {each.name for directory in own for each in directory.candidates}
            for why in (why for key, why in created.items() if f"{key[0]}-{key[1]}" not in names):
                self._unread(SourceError(why))

    def _partition(self, place: PartitionDirectory) -> Iterator[LsPart]:
        facts = single_partition_summary(place, self.states)
        if not self.query.wants(facts.topic):
            return
        by = self.query.rows or "segment"
        if by == "segment":
            yield PartitionStart(facts)
        rows = LsRows([facts], by, is_alone=True)
        yield from self._rows(rows, len(rows), rows.size, facts if by == "segment" else None)
        if by == "segment":
            self._report(facts.partition.listing_errors)

    def _files(self, directory: str, targets: list[Target]) -> Iterator[LsPart]:
        """Yield segments that were given as paths, with what is known from their directory."""
        facts = single_partition_summary(partition(directory), self.states)
        if not self.query.wants(facts.topic):
            return
        names = {os.path.basename(target.path): target for target in targets}
        rows = []
        for row in LsRows([facts], "segment"):
            assert row.segment is not None
            assert row.segment.segment.log is not None
            target = names.pop(os.path.basename(row.segment.segment.log.path), None)
            if target is not None:
                row.segment.segment = row.segment.segment.with_log(target)
                rows.append(row)
        for target in names.values():  # not live segments
            self._unread(SourceError(_why_unlistable(target.path)))
        yield from self._rows(rows, len(rows), sum(row.size for row in rows))

    def _rows(
        self, rows: Iterable[LsRow], count: int, size: int, of: PartitionSummary | None = None
    ) -> Iterator[LsPart]:
        """Yield rows: `count` of them, with `size` bytes of segments."""
        query = self.query
        query.run.expect(size)
        shown = deleted = 0
        more = Run(more=query.run.more)
        for row in chosen(rows, sort=query.sort, reverse=query.reverse, limit=query.limit, quick=query.quick, run=more):
            if row.is_deleted:
                deleted += 1
                continue
            shown += 1
            self._report(row.errors)
            yield row
        yield RowsEnd(shown, count - deleted, of)

    def _report(self, errors: list[str]) -> None:
        for error in errors:
            self._unread(SourceError(error))

    def _unread(self, error: SourceError) -> None:
        if str(error) not in self.reported:  # reported both by the search and by the directory
            self.query.run.unreadable(error)
        self.reported.add(str(error))


def answers(query: LsQuery, *, server: ServerProperties | None = None) -> Iterator[LsAnswer]:
    """Yield each ListedDirectory and its rows: each ListedPartition, ListedTopic or ListedSegment, as `by` says; after
    all segments of a partition directory the ListedPartition. Raises SourceError for what is not there."""
    for part in Listing(query, Disks.at(tuple(query.paths), server=server)).parts():
        yield from ls_answers(part)


ls = offered("ls", LsQuery, answers)


def _why_unlistable(path: str) -> str:
    if "://" not in path and path != "-" and not file_system.lexists(path):
        return str(missing(path))
    try:
        if is_url(path):
            items(path)
    except OSError as error:
        return listing_error(error, path)
    return f"{path_text(path)}: neither a directory nor a live segment; use kdump inspect to show a file"
