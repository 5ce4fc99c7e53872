"""`kdump.space`: what may be deleted on a broker's full disk, in which order, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kdump.forensics.retention.configs import ConfigOverrides
from kdump.forensics.space.answers import (
    CONFIG,
    DUE,
    FILES,
    JUDGE,
    NOTHING,
    RECORDS,
    REPLICA,
    RUNNING,
    STOPPED,
    WAIT,
    SpaceCandidate,
    SpaceDirectory,
    SpaceKept,
    SpaceStep,
    SpaceSummary,
    SpaceTopic,
)
from kdump.forensics.space.broker_disks import BrokerDisks
from kdump.forensics.space.brokers import read_brokers, state_of
from kdump.forensics.space.build_answers import directory_answer, summary_answer, topic_answer
from kdump.forensics.space.costless_steps import costless_steps
from kdump.forensics.space.due_segments import OpenedFiles
from kdump.forensics.space.first_cleaning import first_cleanings, postponed, room_for_cleanings
from kdump.forensics.space.kept_files import kept_files
from kdump.forensics.space.lower_retention import RetainedTopic, candidates
from kdump.forensics.space.query import SpaceQuery
from kdump.forensics.space.retained_topics import retained_topics
from kdump.forensics.space.retention_steps import lower_step
from kdump.forensics.space.shortage import Shortage, largest_first, mildest
from kdump.forensics.space.startup_room import needed_to_start
from kdump.forensics.space.startup_steps import Room, may_be_removed, removable, startup_steps, uncertain_segments
from kdump.log.errors import SourceError
from kdump.log.mounts import mount_bundles, takes_bundles
from kdump.log.run import PLAIN_RUN, Run

SpaceAnswer = SpaceDirectory | SpaceTopic | SpaceCandidate | SpaceStep | SpaceKept | SpaceSummary


@takes_bundles
def space(
    paths: str | Iterable[str],
    *,
    need: int | None = None,
    others: Iterable[str] = (),
    now: int | None = None,
    topics: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    keys: bool = False,
    limit: int = 5,
    run: Run = PLAIN_RUN,
) -> Iterator[SpaceAnswer]:
    """Yield what may be deleted on the disk of a broker, whose log directories `paths` are: what fills it
    (SpaceDirectory, SpaceTopic), what lower retention would free (SpaceCandidate), the steps in the order in which to
    take them (SpaceStep), what must stay (SpaceKept), and SpaceSummary.

    `need`: bytes to free, by default enough to have 15 % of each file system free. `others`: log directories or bundles
    of other brokers, where replicas may be complete. `config` and `properties` as in `retention`. `keys`: read the keys
    of the largest compacted topics. `limit`: number of topics to examine in detail. Only names, sizes and time indexes
    are read otherwise. Raises SourceError for what cannot be read, unless `run.unreadable` is given.
    """
    selected = frozenset((topics,) if isinstance(topics, str) else topics)
    others = tuple(others)
    mount_bundles(others)
    question = SpaceQuery(
        need=need,
        now=now,
        others=others,
        limit=limit,
        keys=keys,
        given=ConfigOverrides(config or {}, properties or {}),
        topic=lambda name: not selected or name in selected,
    )
    return run_space([paths] if isinstance(paths, str) else list(paths), question, run=run)


def run_space(
    paths: Iterable[str],
    question: SpaceQuery,
    *,
    run: Run = PLAIN_RUN,
) -> Iterator[SpaceAnswer]:
    """Like `space`, with the selection as a SpaceQuery. Calls `run.begin` for each partition directory."""
    return _SpaceRun(list(paths), question, run).answers()


class _SpaceRun:
    """One run."""

    def __init__(
        self,
        paths: list[str],
        question: SpaceQuery,
        run: Run,
    ) -> None:
        self.question = question
        self.run = replace(run, unreadable=self.count_unread)
        self.unread = 0
        self._unreadable = run.unreadable
        self.now = round(time.time() * 1000) if question.now is None else question.now
        brokers, disks = read_brokers(paths, self.run)
        if len(brokers) > 1:
            names = ", ".join(f"{each.directories[0].path} (node {each.node_id})" for each in brokers)
            raise SourceError(f"these are log directories of several brokers: {names}; pass the others with --with")
        self.broker = brokers[0]
        self.state = state_of(self.broker)
        self.others, others = read_brokers(question.others, self.run)
        for each in self.others:
            if each.cluster_id != self.broker.cluster_id or each.node_id == self.broker.node_id:
                where = each.directories[0].path
                raise SourceError(f"--with {where}: not a log directory of another broker of the same cluster")
        own = [each.path for each in disks.directories]
        source, self.metadata = disks.copies.newest([*own, *(each.path for each in others.directories)])
        self.is_own_metadata = source in own
        self.opened = OpenedFiles()

    def count_unread(self, error: SourceError) -> None:
        self.unread += 1
        self._unreadable(error)

    def answers(self) -> Iterator[SpaceAnswer]:
        disks = BrokerDisks(self.broker, self.run)
        topics = self._topics(disks)
        wanted = {topic.name for topic in topics[: self.question.limit]} if self.question.keys else set()
        cleanings = first_cleanings(topics, wanted)
        if self.state != RUNNING:
            for usage in disks.usages:
                if usage.directory.is_copy_of_partitions:
                    continue  # the broker's disk may have further partitions
                cleaned = room_for_cleanings(cleanings, frozenset((usage.directory.path,)))
                needed = needed_to_start(list(usage.live()), is_clean=usage.directory.is_clean, cleaned=cleaned)
                disks.need(usage, needed)
        for usage in disks.usages:
            yield directory_answer(disks, usage, self.broker.node_id, self.state)
        short = disks.shortages(self.question.need)
        topics = largest_first(topics, short)
        examined = topics[: self.question.limit]
        due = {topic.name: topic.due() for topic in topics}
        for topic in examined:
            yield topic_answer(topic, due[topic.name])
        steps: list[SpaceStep] = []
        kept: list[SpaceKept] = []
        for found in costless_steps(
            self.broker,
            self.others,
            self.metadata,
            disks,
            topics,
            due,
            self.question,
            self.now,
            self.run,
        ):
            (steps if isinstance(found, SpaceStep) else kept).append(found)  # type: ignore[arg-type]
        for shortage in short:
            shortage.take_steps(steps, topics, due)
        lower = LowerRetention(examined, due, short)
        lower.reach_goal()
        rooms = disks.rooms(steps) if self.state == STOPPED else []
        lower.make_room(rooms, topics)
        for topic in examined:
            for each in lower.values[topic.name]:
                yield each._replace(isRecommended=each is lower.chosen.get(topic.name))
        unknown = {topic.name for topic in topics if topic.is_unknown}
        steps += [lower_step(each, self.state, is_unknown=each.topic in unknown) for each in lower.chosen.values()]
        for room in rooms:
            makes_room = list(startup_steps(room, topics, due, lower.chosen))
            steps += makes_room
            if sum(each.frees for each in makes_room) < room.missing:
                kept += uncertain_segments(room, topics, due)
        if self.state == STOPPED:
            compacted = frozenset(each.topic or "" for each in steps if each.step == "compaction")
            for sources, left in disks.left_at_start(steps):
                steps += postponed(cleanings, sources, left, compacted)
        if self.question.need is not None:
            steps = steps_for_goal(steps, self.question.need, sum(room.missing for room in rooms))
        steps = ordered(steps)
        yield from steps
        for usage in disks.usages:
            yield from kept_files(usage, self.state, is_full=disks.is_full())
        yield from disks.kept_elsewhere()
        yield from kept
        problem = self._emptied(disks)
        if problem is None and self.metadata is not None:
            problem = next(iter(self.metadata.problems), None)
        yield summary_answer(
            disks,
            self.state,
            steps,
            self.question.need,
            short,
            topics,
            now=self.now,
            metadataOffset=self.metadata.end_offset if self.metadata is not None else None,
            metadataProblem=problem,
            filesOpened=self.opened.count,
            unread=self.unread,
        )

    def _topics(self, disks: BrokerDisks) -> list[RetainedTopic]:
        """Return the live topics, the largest first."""
        problems: list[str] = []
        found = retained_topics(
            self.broker,
            disks.usages,
            self.metadata,
            self.question.given,
            self.now,
            self.opened,
            problems,
            self.question.topic,
            self.run.limits,
        )
        for text in problems:
            self.count_unread(SourceError(text))
        if self._emptied(disks) is not None:
            for topic in found:
                topic.settings.is_known = False
        return found

    def _emptied(self, disks: BrokerDisks) -> str | None:
        """Return what is missing if the metadata is only that of a snapshot, so that no config is certain."""
        return disks.emptied_metadata(self.metadata) if self.metadata is not None and self.is_own_metadata else None


COSTS = (NOTHING, DUE, JUDGE, REPLICA, RECORDS)
"""From the cheapest to the most expensive: records that consumers may still read come last."""
HOW = (CONFIG, WAIT, FILES)
FOR_STARTUP = "oldestSegments"


def steps_for_goal(steps: list[SpaceStep], goal: int, needed: int) -> list[SpaceStep]:
    """Return the cheapest steps that free `goal` bytes together; all of them if they free less. Those without which the
    broker cannot start (`needed` bytes) stay, as do those that free nothing now."""
    is_lowered = any(each.step == FOR_STARTUP and each.cost == RECORDS for each in steps)
    kept: list[SpaceStep] = []
    freed = room = 0
    for each in sorted(steps, key=lambda step: (COSTS.index(step.cost), -step.frees)):
        if each.step == FOR_STARTUP or not each.frees or (each.step == "retention" and is_lowered):
            kept.append(each)
            continue
        makes_room = each.needs != "running" and each.how == FILES
        if freed >= goal and not (makes_room and room < needed):
            continue
        kept.append(each)
        freed += each.frees
        room += each.frees if makes_room else 0
    return kept


def ordered(steps: list[SpaceStep]) -> list[SpaceStep]:
    """Return the steps numbered in the order in which to take them: configuration commands, then what the broker does
    by itself, then files; in each the cheapest first, then what frees most."""
    found = sorted(steps, key=lambda step: (HOW.index(step.how), COSTS.index(step.cost), -step.frees))
    return [each._replace(number=number) for number, each in enumerate(found, 1)]


class LowerRetention:
    """The values that could be set, of the examined topics, and those that are. `due`: number of due segments by topic
    and partition; `short`: what is missing, which becomes less with each value that is chosen."""

    def __init__(
        self, examined: Sequence[RetainedTopic], due: Mapping[str, list[int]], short: Sequence[Shortage]
    ) -> None:
        self.examined = examined
        self.due = due
        self.short = short
        self.values = {topic.name: candidates(topic) for topic in examined}
        self.chosen: dict[str, SpaceCandidate] = {}

    def reach_goal(self) -> None:
        """Choose what frees enough, beginning with the largest topic."""
        for topic in self.examined:
            self._choose(topic, self.short)

    def make_room(self, rooms: Sequence[Room], topics: Sequence[RetainedTopic]) -> None:
        """Choose what lets a stopped broker start, by segments that may then be removed by hand."""
        for room in rooms:
            for topic in self.examined:
                left = room.lacks - sum(removable(each, room, self.due[each.name], self.chosen) for each in topics)
                if left > 0 and topic.name not in self.chosen and may_be_removed(topic, "cleanup.policy"):
                    self._choose(topic, [Shortage(room.sources, left)])

    def _choose(self, topic: RetainedTopic, short: Sequence[Shortage]) -> None:
        due = self.due[topic.name]
        found = mildest(topic, due, self.values[topic.name], short)
        if found is not None:
            self.chosen[topic.name] = found
            for each in self.short:
                each.take_candidate(topic, due, found)
