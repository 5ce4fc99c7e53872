"""`kdump.space`: what may be deleted on a broker's full disk, in which order, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kdump.check.options import Options
from kdump.forensics.retention.configs import ConfigOverrides
from kdump.forensics.retention.partition import RetentionQuery
from kdump.forensics.space.answers import (
    FILES,
    JUDGE,
    NOTHING,
    REPLICA,
    RUNNING,
    STOPPED,
    SpaceCandidate,
    SpaceDirectory,
    SpaceKept,
    SpaceStep,
    SpaceSummary,
    SpaceTopic,
)
from kdump.forensics.space.brokers import newest_metadata, read_brokers
from kdump.forensics.space.choose_steps import ordered, steps_for_goal
from kdump.forensics.space.compaction_estimate import compaction_steps
from kdump.forensics.space.due_segments import OpenedFiles
from kdump.forensics.space.file_systems import FileSystem, file_system_of
from kdump.forensics.space.kept_files import kept_elsewhere, kept_files
from kdump.forensics.space.leftover_steps import deleted_steps, other_steps, stray_steps
from kdump.forensics.space.lower_retention import DAY, RetainedTopic, candidates
from kdump.forensics.space.replica_copies import ReplicaCopies
from kdump.forensics.space.replica_steps import replica_steps
from kdump.forensics.space.retained_topics import retained_topics
from kdump.forensics.space.retention_steps import due_step, lower_step, reserved_step
from kdump.forensics.space.shortage import Shortage, largest_first, mildest
from kdump.forensics.space.startup_room import LEAST, needed_inodes, needed_to_start
from kdump.forensics.space.startup_steps import (
    Room,
    may_be_removed,
    removable,
    room_of,
    startup_steps,
    uncertain_segments,
)
from kdump.forensics.space.usage import DirectoryUsage, read_usage
from kdump.log.errors import OnUnreadable, SourceError, raise_error
from kdump.log.mounts import mount_bundles, takes_bundles
from kdump.log.region import Limits
from kdump.state.metadata_image import MetadataImage

SpaceAnswer = SpaceDirectory | SpaceTopic | SpaceCandidate | SpaceStep | SpaceKept | SpaceSummary
GOAL = 0.15
"""Share of the file system that is free once the goal is reached, unless --need states another."""


@dataclass
class SpaceQuery:
    """The query. `need`: bytes to free, None for GOAL; `now`: epoch ms, None for the current time; `others`: paths of
    other brokers; `limit`: how many topics and replicas are examined in detail; `keys`: read the keys of compacted
    topics; `topic`: returns True for the topics to include."""

    need: int | None = None
    now: int | None = None
    others: tuple[str, ...] = ()
    limit: int = 5
    keys: bool = False
    given: ConfigOverrides = field(default_factory=ConfigOverrides)
    topic: Callable[[str], bool] = lambda name: True
    limits: Limits = field(default_factory=Limits)


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
    on_unreadable: OnUnreadable = raise_error,
) -> Iterator[SpaceAnswer]:
    """Yield what may be deleted on the disk of a broker, whose log directories `paths` are: what fills it
    (SpaceDirectory, SpaceTopic), what lower retention would free (SpaceCandidate), the steps in the order in which to
    take them (SpaceStep), what must stay (SpaceKept), and SpaceSummary.

    `need`: bytes to free, by default enough to have 15 % of each file system free. `others`: log directories or bundles
    of other brokers, where replicas may be complete. `config` and `properties` as in `retention`. `keys`: read the keys
    of the largest compacted topics. `limit`: number of topics to examine in detail. Only names, sizes and time indexes
    are read otherwise. Raises SourceError for what cannot be read, unless `on_unreadable` is given.
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
    return run_space([paths] if isinstance(paths, str) else list(paths), question, on_unreadable=on_unreadable)


def run_space(
    paths: Iterable[str],
    question: SpaceQuery,
    *,
    on_unreadable: OnUnreadable = raise_error,
    on_partition: Callable[[], None] = lambda: None,
) -> Iterator[SpaceAnswer]:
    """Like `space`, with the selection as a SpaceQuery. Calls `on_partition` for each partition directory."""
    return _SpaceRun(list(paths), question, on_unreadable, on_partition).answers()


class _SpaceRun:
    """One run."""

    def __init__(
        self,
        paths: list[str],
        question: SpaceQuery,
        on_unreadable: OnUnreadable,
        on_partition: Callable[[], None],
    ) -> None:
        self.question = question
        self.on_partition = on_partition
        self.unread = 0
        self._on_unreadable = on_unreadable
        self.now = round(time.time() * 1000) if question.now is None else question.now
        self.options = Options(limits=question.limits, now=self.now)
        brokers = read_brokers(paths, question.limits, self.count_unread)
        if len(brokers) > 1:
            names = ", ".join(f"{each.directories[0].path} (node {each.node_id})" for each in brokers)
            raise SourceError(f"these are log directories of several brokers: {names}; pass the others with --with")
        self.broker = brokers[0]
        others = read_brokers(question.others, question.limits, self.count_unread) if question.others else []
        for each in others:
            if each.cluster_id != self.broker.cluster_id or each.node_id == self.broker.node_id:
                where = each.directories[0].path
                raise SourceError(f"--with {where}: not a log directory of another broker of the same cluster")
        self.metadata: MetadataImage | None = newest_metadata(each.metadata for each in (self.broker, *others))
        self.state = self.broker.state
        self.copies = ReplicaCopies(others, self.metadata, self.options, question.given.properties)
        self.has_others = bool(others)
        self.opened = OpenedFiles()
        self.problems: list[str] = []
        self.systems: dict[int, FileSystem] = {}
        self.sources: dict[int, frozenset[str]] = {}
        self.needs: dict[int, int] = {}
        self.short: list[Shortage] = []
        self.usages: list[DirectoryUsage] = []

    def count_unread(self, error: SourceError) -> None:
        self.unread += 1
        self._on_unreadable(error)

    def answers(self) -> Iterator[SpaceAnswer]:
        needed = yield from self._directories()
        topics = retained_topics(
            self.broker,
            self.usages,
            self.metadata,
            self.question.given,
            self.now,
            self.opened,
            self.problems,
            self.question.topic,
            self.question.limits,
        )
        for text in self.problems:
            self.count_unread(SourceError(text))
        self.short = self._short()
        topics = largest_first(topics, self.short)
        examined = topics[: self.question.limit]
        due = {topic.name: topic.due() for topic in topics}
        for topic in examined:
            yield self._topic(topic, due[topic.name])
        steps: list[SpaceStep] = []
        kept: list[SpaceKept] = []
        self._costless(topics, due, steps, kept)
        for shortage in self.short:
            shortage.take_steps(steps, topics, due)
        tries = {topic.name: candidates(topic) for topic in examined}
        tried: dict[str, SpaceCandidate] = {}
        for topic in examined:
            self._lower(topic, due[topic.name], tries[topic.name], self.short, tried)
        rooms = self._rooms(steps) if self.state == STOPPED else []
        for room in rooms:
            for topic in examined:
                left = room.lacks - sum(removable(each, room, due[each.name], tried) for each in topics)
                if left > 0 and topic.name not in tried and may_be_removed(topic, "cleanup.policy"):
                    lacks = [Shortage(room.sources, left)]
                    self._lower(topic, due[topic.name], tries[topic.name], lacks, tried)
        for topic in examined:
            for each in tries[topic.name]:
                yield each._replace(isRecommended=each is tried.get(topic.name))
        steps += [lower_step(each, self.state) for each in tried.values()]
        for room in rooms:
            found = list(startup_steps(room, topics, due, tried))
            steps += found
            if sum(each.frees for each in found) < room.missing:
                kept += uncertain_segments(room, topics, due)
        if self.question.need is not None:
            steps = steps_for_goal(steps, self.question.need, sum(room.missing for room in rooms))
        steps = ordered(steps)
        yield from steps
        for usage in self.usages:
            yield from kept_files(usage, self.state)
        for device, system in self.systems.items():
            here = (each.allocated for each in self.usages if each.directory.path in self.sources[device])
            yield from kept_elsewhere(system, sum(here))
        yield from kept
        yield self._summary(steps, needed)

    def _directories(self) -> Generator[SpaceDirectory, None, int | None]:
        """Yield the log directories. Returns the bytes needed to start, None if the broker is running."""
        for directory in self.broker.directories:
            self.usages.append(read_usage(directory, self.count_unread, self.on_partition))
        needed = 0
        own: dict[int, int] = {}
        systems = []
        for usage in self.usages:
            system = file_system_of(usage.directory.path)
            systems.append(system)
            if system is not None:
                device = system.device
                self.systems[device] = system
                self.sources[device] = self.sources.get(device, frozenset()) | {usage.directory.path}
                own[device] = own.get(device, 0) + usage.allocated
        for usage, system in zip(self.usages, systems):
            here = None
            if self.state != RUNNING:
                here = needed_to_start(list(usage.live()), is_clean=usage.directory.is_clean)
                needed += here
                if system is not None:
                    self.needs[system.device] = self.needs.get(system.device, 0) + here
            yield self._directory(usage, system, None if system is None else own[system.device], here)
        return needed if self.state != RUNNING else None

    def _directory(
        self, usage: DirectoryUsage, system: FileSystem | None, own: int | None, needed: int | None
    ) -> SpaceDirectory:
        def of(state: str) -> int:
            return sum(each.allocated for each in usage.in_state(state))

        live = list(usage.live())
        deleted = sum(each.deleted + each.cleaned for each in live)
        metadata = sum(each.allocated for each in usage.in_state("")) - sum(each.allocated for each in live)
        return SpaceDirectory(
            path=usage.directory.path,
            nodeId=self.broker.node_id,
            broker=self.state,
            isClean=None if self.state == RUNNING else usage.directory.is_clean,
            mount=system.mount if system else None,
            fileSystem=system.type if system else None,
            device=system.source if system else None,
            total=system.total if system else None,
            free=system.free if system else None,
            reserved=system.reserved if system else None,
            inodesFree=system.inodes_free if system else None,
            allocated=usage.allocated,
            elsewhere=None if system is None or own is None else max(0, system.used - own),
            liveBytes=sum(each.allocated for each in live) - deleted,
            deletedBytes=deleted + of("delete"),
            strayBytes=of("stray"),
            futureBytes=of("future"),
            metadataBytes=metadata,
            otherBytes=sum(each[2] for each in usage.others),
            linkedBytes=usage.all_linked,
            partitions=len(live),
            neededToStart=needed,
        )

    def _topic(self, topic: RetainedTopic, due: list[int]) -> SpaceTopic:
        return SpaceTopic(
            topic=topic.name,
            partitions=len(topic.logs),
            segments=sum(len(log.segments) for log in topic.logs),
            size=sum(log.usage.size for log in topic.logs),
            allocated=topic.allocated,
            cleanupPolicy=",".join(topic.settings["cleanup.policy"]),
            retentionMs=topic.settings.retention("ms")[0],
            retentionBytes=topic.settings.retention("bytes")[0],
            isConfigKnown=topic.settings.is_known,
            dueNow=sum(log.allocated(0, count) for log, count in zip(topic.logs, due)),
            dueIn24h=sum(
                log.allocated(count, max(count, log.due(topic.settings, DAY))) for log, count in zip(topic.logs, due)
            ),
        )

    def _short(self) -> list[Shortage]:
        """Return what each file system lacks to reach the goal."""
        if self.question.need is not None or not self.systems:
            return [Shortage(frozenset(each.directory.path for each in self.usages), self.question.need)]
        return [
            Shortage(self.sources[device], max(0, int(each.total * GOAL) - each.free))
            for device, each in self.systems.items()
        ]

    def _rooms(self, steps: list[SpaceStep]) -> list[Room]:
        """Return the file systems on which a startup lacks space, even after the steps that cost nothing."""
        found = []
        for device, system in self.systems.items():
            sources = self.sources[device]
            missing = self.needs.get(device, 0) - system.free - room_of(steps, sources, (NOTHING, REPLICA))
            if missing > 0:
                usages = [each for each in self.usages if each.directory.path in sources]
                found.append(Room(usages, sources, missing, missing - room_of(steps, sources, (JUDGE,))))
        return found

    def _lower(
        self,
        topic: RetainedTopic,
        due: list[int],
        tries: list[SpaceCandidate],
        short: list[Shortage],
        tried: dict[str, SpaceCandidate],
    ) -> None:
        """Add the lower retention of a topic that is needed to `tried`, if there is one."""
        chosen = mildest(topic, due, tries, short)
        if chosen is not None:
            tried[topic.name] = chosen
            for each in self.short:
                each.take_candidate(topic, due, chosen)

    def _costless(
        self,
        topics: list[RetainedTopic],
        due: dict[str, list[int]],
        steps: list[SpaceStep],
        kept: list[SpaceKept],
    ) -> None:
        """Add the steps that cost no record that retention keeps, and what is not offered."""
        is_selected = self.question.topic
        for device, system in self.systems.items():
            here = [each.directory.path for each in self.usages if each.directory.path in self.sources[device]]
            steps += reserved_step(system, here[0])
        for usage in self.usages:
            steps += deleted_steps(usage, self.state, is_selected)
            steps += other_steps(usage)
            for found in stray_steps(usage, self.copies, self.broker.node_id, is_selected):
                (steps if isinstance(found, SpaceStep) else kept).append(found)  # type: ignore[arg-type]
        step = due_step(topics, due, self.state)
        steps += [] if step is None else [step]
        query = RetentionQuery(
            now=self.now, given=self.question.given, deep=False, keys=True, limits=self.question.limits
        )
        for topic in topics[: self.question.limit]:
            for found in compaction_steps(
                topic, query, self.count_unread, reads_keys=self.question.keys, broker=self.state
            ):
                (steps if isinstance(found, SpaceStep) else kept).append(found)  # type: ignore[arg-type]
        if self.has_others:
            for found in replica_steps(topics, self.copies, self.broker.node_id, self.question.limit, self.state):
                (steps if isinstance(found, SpaceStep) else kept).append(found)  # type: ignore[arg-type]

    def _is_full(self, device: int, system: FileSystem) -> bool:
        """Return whether the broker cannot start with what is free, or cannot go on."""
        logs = sum(len(list(each.live())) for each in self.usages if each.directory.path in self.sources[device])
        if system.inodes_free is not None and system.inodes_free < needed_inodes(logs):
            return True
        return system.free < self.needs.get(device, LEAST)

    def _summary(self, steps: list[SpaceStep], needed: int | None) -> SpaceSummary:
        frees = sum(each.frees for each in steps if each.step != "oldestSegments")
        free = sum(each.free for each in self.systems.values()) if self.systems else None
        goals = [each.missing for each in self._short()]
        goal = None if None in goals else sum(each or 0 for each in goals)
        verdict = "low" if goal else "enough"
        if any(self._is_full(device, each) for device, each in self.systems.items()):
            verdict = "full"
        return SpaceSummary(
            verdict=verdict,
            broker=self.state,
            free=free,
            goal=goal,
            neededToStart=needed,
            frees=frees,
            freesStopped=sum(each.frees for each in steps if each.how == FILES),
            steps=len(steps),
            isEnough=None if goal is None else all(each.is_over for each in self.short),
            now=self.now,
            metadataOffset=self.metadata.end_offset if self.metadata is not None else None,
            filesOpened=self.opened.count,
            unread=self.unread,
        )
