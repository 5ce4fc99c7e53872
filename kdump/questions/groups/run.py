"""Groups as the logs of their coordinators on disks have them: the answers of `kdump groups` and `kdump.groups`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from kdump.answer import Note
from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import OLDER, find_logs
from kdump.cluster.lag import CommittedPosition, LagContext, SharePosition
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, merged, newest, read_groups, size_of
from kdump.cluster.topic_coverage import HELD, coordinators_covered
from kdump.io.errors import SourceError
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.query import Query, as_of_option, flag, history_option, many, offered, selects, topic_option
from kdump.questions.groups.answer import DescribedGroup, GroupDescription, GroupMember, describe_groups
from kdump.state.as_of import AskedAsOf, AsOf, Change
from kdump.state.groups import SHARE
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.recorded_change import RecordedChange, change_answer
from kdump.text import path_text

__all__ = ["groups"]

GroupsAnswer = DescribedGroup | GroupMember | CommittedPosition | SharePosition | RecordedChange | Note


@dataclass(frozen=True, kw_only=True)
class GroupsQuery(Query, AskedAsOf):
    """Which groups to yield, and as of when."""

    groups: Iterable[str] = many(
        "--group", type="globs", help="Show these groups in detail (a glob or a /regex/); repeatable."
    )
    topics: Iterable[str] = topic_option("Show only offsets of these topics")
    offsets: bool = flag("--offsets", help="Show all offsets in one table.")
    members: bool = flag("--members", help="Show all members in one table.")
    as_of: int | AsOf | None = as_of_option()
    history: bool = history_option()

    @cached_property
    def of_group(self) -> Callable[[str | None], bool]:
        return selects(self.groups)

    def parts(self, description: GroupDescription) -> Iterator[GroupsAnswer]:
        """Yield the answers about a group: itself, its members and offsets, or as asked for."""
        both = self.offsets == self.members
        yield description.group
        if both or self.members:
            yield from description.members
        if both or self.offsets:
            yield from description.offsets
            yield from description.shares


class SeveralLogs(ValueError):
    """An offset is asked for, and there are several logs."""


class GroupsRead:
    """What was read for a query. `tell` is called with what is not read because it is older, `changed` with each change
    that is asked for."""

    def __init__(
        self, query: GroupsQuery, tell: Callable[[Note], object], changed: Callable[[RecordedChange], object]
    ) -> None:
        self.query, self.tell = query, tell
        self.changes = 0
        """Number of changes, also of those that are not asked for."""
        self.logs, disks = self._find()
        _, metadata = disks.newest_metadata()
        ends = LogOffsetsByPartition(disks.directories, metadata, disks.node_id, partial(disks.remote_log, metadata))
        self.context, self.ends = LagContext(ends, metadata, is_now=query.moment == AsOf()), ends
        query.run.expect(size_of(self.logs))
        history = self._history(changed) if query.history else None
        self.groups = read_groups(self.logs, query.moment, on_change=history, room=ROOM_ALONE, run=query.run)
        self.coverages = coordinators_covered(self.groups, metadata)

    def _find(self) -> tuple[list[CoordinatorLog], Disks]:
        query, moment = self.query, self.query.moment
        logs, disks, _ = find_logs(tuple(query.paths), (OFFSETS_TOPIC, SHARE_TOPIC), query.run, lone=OFFSETS_TOPIC)
        disks.refuse_other_clusters()
        logs = merged([log for log in logs if moment.offset is None or log.topic == OFFSETS_TOPIC])
        chosen = newest(logs)
        for log in logs:
            if log not in chosen:
                self.tell(Note(log.path, OLDER))
        offsets = [log for log in chosen if log.topic == OFFSETS_TOPIC]
        if moment.offset is not None and len(offsets) > 1:
            raise SeveralLogs(
                f"an offset applies to a single partition, but {len(offsets)} of {OFFSETS_TOPIC} were found; pass the "
                "directory of one, or use a time"
            )
        return chosen, disks

    def _history(self, changed: Callable[[RecordedChange], object]) -> Callable[[Change], None]:
        sources = {(log.topic, log.partition): path_text(log.path) for log in self.logs}
        of_group, of_topic = self.query.of_group, self.query.of_topic

        def on_change(change: Change) -> None:
            name = change.name
            topic, _, number = name.rpartition("-")
            if change.entity == "shareState":
                topic = self.context.topic_name(topic)
                name = f"{topic}-{number}"
            self.changes += 1
            if not of_group(change.group or ""):
                return
            if self.query.topics and not (change.entity in ("offset", "shareState") and of_topic(topic)):
                return
            log = SHARE_TOPIC if change.entity == "shareState" else OFFSETS_TOPIC
            source = sources[log, change.partition or 0]
            changed(change_answer(source, change._replace(name=name), topic_name=self.context.topic_name))

        return on_change

    def not_read(self) -> Iterator[Note]:
        """Yield notes on partitions of the coordinators that are not here."""
        is_share = any(each.type == SHARE and self.query.of_group(name) for name, each in self.groups.groups.items())
        for topic, each in self.coverages.items():
            if each.is_partial and (is_share or topic == OFFSETS_TOPIC):
                yield Note("", each.note(HELD[topic]))

    def descriptions(self) -> Iterator[GroupDescription]:
        for each in describe_groups(self.groups, self.context, self.query.of_group, self.query.of_topic):
            if not self.query.topics or each.offsets or each.shares:
                yield each

    def problems(self) -> Iterator[Note]:
        for problem in (*self.groups.problems, *self.ends.problems):
            yield Note("", problem)

    def ends_before(self) -> Iterator[Note]:
        """Yield notes on the logs that end before the offset of the query."""
        for log in self.groups.logs:
            if self.query.moment.offset is not None and log.endOffset <= self.query.moment.offset:
                yield Note(log.path, f"ends at offset {log.endOffset}; this is the state at its end")


def answers(query: GroupsQuery) -> Iterator[GroupsAnswer]:
    """Yield each DescribedGroup, then its GroupMembers, CommittedPositions and SharePositions, or those that are asked
    for; with `history`, a RecordedChange for each change, all at once; and a Note for what could not be read. Raises
    SourceError for paths without groups."""
    notes, changes = list[Note](), list[RecordedChange]()
    read = GroupsRead(query, notes.append, changes.append)
    if not read.logs:
        query.run.unreadable(SourceError.at(", ".join(query.paths), f"no {OFFSETS_TOPIC} found"))
        return
    yield from notes
    yield from read.not_read()
    yield from changes
    for description in () if query.history else read.descriptions():
        yield from query.parts(description)
    yield from read.problems()
    yield from read.ends_before()


groups = offered("groups", GroupsQuery, answers)
