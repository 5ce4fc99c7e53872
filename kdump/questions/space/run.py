"""`kdump.space`: what may be deleted on a broker's full disk, in which order, and what it costs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kdump.answer import of_fact
from kdump.check.options import Options
from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.cluster.disks import Disks, Node
from kdump.cluster.remote_mount import missing_segments
from kdump.io.errors import SourceError, is_gone
from kdump.io.mounted_paths import mount_paths
from kdump.io.run import Run
from kdump.kafka.startup_space import needed_to_start
from kdump.log.file_kinds import CLEAN_MARK
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.remote_objects import RemoteStorage
from kdump.problems.problem import title_of
from kdump.query import Query, many, now_option, offered, option, topic_option
from kdump.questions.retention.configs import Asked, ConfigOverrides, config_option
from kdump.questions.space.answer import (
    RUNNING,
    STOPPED,
    SpaceDirectory,
    SpaceKept,
    SpaceStep,
    SpaceSummary,
    SpaceTopic,
)
from kdump.questions.space.disks import Disk, disks_of, not_the_disk, state_of
from kdump.questions.space.replica_copies import ReplicaCopies
from kdump.questions.space.retained_topics import (
    DAY,
    Cleaning,
    RetainedTopic,
    first_cleanings,
    retained_topics,
    room_for_cleanings,
)
from kdump.questions.space.steps import Given, steps
from kdump.questions.space.usage import DirectoryUsage, SeenFiles, read_usage
from kdump.state.metadata_image import MetadataImage

__all__ = ["space"]

WITH_LOGS = {"*/": "segments", "*/*.index": "indexes", "*/*.snapshot": "snapshots"}
"""What must stay of each log, and the end of its code."""
TOPICS = {"__consumer_offsets": "", "__transaction_state": "transactions"}


SpaceAnswer = SpaceDirectory | SpaceTopic | SpaceStep | SpaceKept | SpaceSummary


@dataclass(frozen=True, kw_only=True)
class SpaceQuery(Query):
    """What is to be freed, and what is known of the broker."""

    paths_option = {**Query.paths_option, "metavar": "LOGDIR…"}
    topics: Iterable[str] | Callable[[str], bool] = topic_option("Consider only these topics")
    need: int | None = option(
        "--need", type="size", help="Bytes to free on each file system, such as 50G.  [until 15 % of it is free]"
    )
    others: Iterable[str] = many(
        "--with",
        metavar="PATH",
        help="Log directory or bundle of another broker, to find replicas that are complete there, or of a controller, "
        "whose metadata is newer; repeatable.",
    )
    limit: int = option(
        "-n",
        "--limit",
        type="count",
        default=5,
        help="Examine at most N of the largest topics, and of the largest replicas.  [5]",
    )
    now: int | None = now_option("Apply retention as of this time")
    config: Asked | None = config_option()
    properties: Mapping[str, str] | None = None
    remote: RemoteStorage | None = None


def answers(query: SpaceQuery) -> Iterator[SpaceAnswer]:
    """Yield what may be deleted on the disk of a broker, whose log directories `paths` are: what fills it
    (SpaceDirectory, SpaceTopic), what may be done on each file system, in the order in which to do it (SpaceStep), what
    must stay (SpaceKept), and SpaceSummary.

    `topics`: also what returns True for a topic to include. `config` and `properties` as in `retention`. `remote`: the
    bucket whose objects are compared with what tiered topics should have there. Only names, sizes and time indexes are
    read. Calls `run.begin` for each partition directory. Raises SourceError for what cannot be read, unless
    `run.unreadable` is given."""
    paths, need, limit, remote = query.paths, query.need, query.limit, query.remote
    mount_paths(others := tuple(query.others))
    run, unread = _collecting(query.run)
    broker, own = _own_broker(paths, run)
    other_brokers, other_disks = _other_brokers(others, broker, run)
    _, metadata = own.copies.newest([place.path for place in (*own.directories, *other_disks.directories)])
    given = ConfigOverrides.asked(query.config, query.properties)
    now = round(time.time() * 1000) if query.now is None else query.now
    state = state_of(broker)
    seen: SeenFiles = set()
    usages = [read_usage(place, run, seen) for place in broker.directories]
    disks = disks_of(usages, state, need)
    is_running = state == RUNNING
    missing = None if remote is None else missing_segments(own, remote, run)
    retained = retained_topics(
        broker, usages, metadata, given, now, query.of_topic, run, is_running=is_running, missing=missing
    )
    cleanings = list(first_cleanings(retained))
    for disk in disks:
        if not is_running:
            disk.needs = _needs(disk, cleanings)
        yield from (_directory(disk, usage, broker.node_id, state) for usage in disk.usages)
    yield from map(_topic, retained[:limit])
    copies = ReplicaCopies(other_brokers, metadata, Options(run.limits, now=now), given.properties)
    of_all = Given(retained, cleanings, copies, broker.node_id, limit, query.of_topic)
    kept = [row for disk in disks for row in _take_steps(disk, of_all)]
    rows = (row for disk in disks for row in disk.steps)
    yield from (row._replace(number=number) for number, row in enumerate(rows, 1))
    yield from _kept(disks, usages, state)
    yield from kept
    yield _summary(disks, state, retained, metadata, now=now, unread=len(unread))


space = offered("space", SpaceQuery, answers)


def _collecting(run: Run) -> tuple[Run, list[SourceError]]:
    """Return a run that also collects what cannot be read, except for what is gone, and where it does."""
    unread: list[SourceError] = []

    def unreadable(error: SourceError) -> None:
        unread.extend([] if is_gone(error) else [error])
        run.unreadable(error)

    return replace(run, unreadable=unreadable), unread


def _take_steps(disk: Disk, given: Given) -> Iterator[SpaceKept]:
    """Take the steps on a disk; yield what is kept. `given`: with the topics of all disks."""
    here = (topic.on(disk.sources) for topic in given.topics)
    largest = sorted((topic for topic in here if topic.logs), key=lambda topic: -topic.allocated)
    for row in steps(disk, given._replace(topics=largest)):
        if isinstance(row, SpaceStep):
            disk.take(row)
        else:
            yield row


def _own_broker(paths: Iterable[str], run: Run) -> tuple[Node, Disks]:
    brokers, own = read_brokers(paths, run)
    if len(brokers) > 1:
        several = ", ".join(f"{node.directories[0].path} (node {node.node_id})" for node in brokers)
        raise SourceError(f"these are log directories of several brokers: {several}; pass the others with --with")
    return brokers[0], own


def _other_brokers(paths: Iterable[str], broker: Node, run: Run) -> tuple[list[Node], Disks]:
    brokers, disks = read_brokers(paths, run)
    for node in brokers:
        if node.cluster_id != broker.cluster_id or node.node_id == broker.node_id:
            where = node.directories[0].path
            raise SourceError(f"--with {where}: not a log directory of another broker of the same cluster")
    return brokers, disks


def _needs(disk: Disk, cleanings: Sequence[Cleaning]) -> dict[str, int]:
    """Return what must be free for a stopped broker to start, because of each log directory. A copy of partitions shows
    none of this: the broker's disk may have further ones."""
    return {
        usage.directory.path: needed_to_start(
            len(usage.live()),
            is_clean=usage.directory.is_clean,
            cleaned=room_for_cleanings(cleanings, usage.directory.path),
        )
        for usage in disk.usages
        if not usage.directory.is_copy_of_partitions
    }


def _kept(disks: Sequence[Disk], usages: Sequence[DirectoryUsage], state: str) -> Iterator[SpaceKept]:
    is_full = any(disk.is_full for disk in disks)
    for usage in usages:
        yield from kept_files(usage, state, is_full=is_full)
    for disk in disks:
        yield from disk.kept_elsewhere()


def _summary(
    disks: Sequence[Disk], state: str, retained: Sequence[RetainedTopic], metadata: MetadataImage | None, **more: Any
) -> SpaceSummary:
    """Return what the file systems have and lack, and what their steps amount to. `more`: the other fields."""
    problem = None if metadata is None or metadata.doubt is None else metadata.doubt.text
    systems = [disk.system for disk in disks if disk.system is not None]
    goals = [disk.goal for disk in disks if disk.goal is not None]
    goal = sum(goals) if len(goals) == len(disks) else None
    steps_taken = [step for disk in disks for step in disk.steps]
    return SpaceSummary(
        verdict="unknown" if goal is None else "full" if any(d.is_full for d in disks) else "low" if goal else "enough",
        unknownTopics=sum(topic.is_unknown for topic in retained),
        metadataProblem=problem,
        metadataOffset=None if metadata is None else metadata.replayed_offset,
        broker=state,
        free=sum(system.free for system in systems) if systems else None,
        goal=goal,
        neededToStart=sum(disk.needed for disk in disks) if any(disk.needs for disk in disks) else None,
        missingToStart=sum(disk.lacks for disk in disks) if state == STOPPED and systems else None,
        frees=sum(step.frees for step in steps_taken),
        steps=len(steps_taken),
        isEnough=None if goal is None else all(disk.is_enough for disk in disks),
        **more,
    )


def read_brokers(paths: Iterable[str], run: Run) -> tuple[list[Node], Disks]:
    """Return the brokers whose log directories are at or below the paths, without copies, and all log directories.
    Raises SourceError for a path that has no log directory."""
    named = list(dict.fromkeys(paths))
    errors: list[SourceError] = []
    disks = Disks.at(named, replace(run, unreadable=errors.append))
    for path in named:
        if not disks.below(path):
            raise SourceError.at(path, "not a log directory; pass a broker's log directories")
    for error in errors:
        run.unreadable(error)
    return [node for node in disks.nodes if not node.is_copy], disks


def _directory(disk: Disk, usage: DirectoryUsage, node_id: int | None, state: str) -> SpaceDirectory:
    def of(state: str) -> int:
        return sum(part.allocated for part in usage.in_state(state))

    sums, live = usage.total(), usage.live()
    deleted = sum(part.with_suffix(suffix).allocated for part in live for suffix in (".deleted", ".cleaned"))
    of_live = sum(part.allocated for part in live)
    return of_fact(
        SpaceDirectory,
        disk.system,
        path=usage.directory.path,
        nodeId=node_id,
        broker=state,
        unknownBecause=not_the_disk(usage.directory),
        isClean=None if state == RUNNING else had_clean_shutdown(usage.directory),
        allocated=sums.allocated + sums.linked,
        elsewhere=disk.elsewhere if disk.system else None,
        liveBytes=of_live - deleted,
        deletedBytes=deleted + of("delete"),
        strayBytes=of("stray"),
        futureBytes=of("future"),
        metadataBytes=of("") - of_live,
        otherBytes=sum(other.files.allocated for other in usage.others),
        linkedBytes=sums.linked,
        partitions=len(usage.in_state("")),
        neededToStart=disk.needs.get(usage.directory.path),
    )


def _topic(topic: RetainedTopic) -> SpaceTopic:
    logs, settings = topic.logs, topic.settings
    due = [log.due(settings) for log in logs]
    later = [max(count, log.due(settings, DAY)) for log, count in zip(logs, due)]
    (milliseconds, ms_config), (size, size_config) = settings.retention("ms"), settings.retention("bytes")
    return SpaceTopic(
        topic=topic.name,
        partitions=len(logs),
        segments=sum(len(log.segments) for log in logs),
        size=sum(log.all.size for log in logs),
        allocated=topic.allocated,
        cleanupPolicy=",".join(settings["cleanup.policy"]),
        retentionMs=milliseconds,
        retentionMsConfig=ms_config,
        retentionBytes=size,
        retentionBytesConfig=size_config,
        isConfigKnown=settings.is_known,
        dueNow=sum(log.occupied(0, count) for log, count in zip(logs, due)),
        dueIn24h=sum(log.occupied(*pair) for log, pair in zip(logs, zip(due, later))),
        remote=topic.remote,
    )


def kept_files(usage: DirectoryUsage, broker: str, *, is_full: bool) -> Iterator[SpaceKept]:
    """Yield what must stay in a log directory. `is_full`: whether a stopped broker lacks space to start."""
    path = usage.directory.path
    live = usage.live()
    if is_full and broker != RUNNING:
        yield SpaceKept(path, None, True, title_of("space-kept-start"))
    if any(log.segments for log in live):
        for pattern, what in WITH_LOGS.items():
            yield SpaceKept(f"{path}/{pattern}", None, True, title_of(f"space-kept-{what}"))
    for topic, case in TOPICS.items():
        size = sum(log.allocated for log in live if log.place.topic == topic)
        if size:
            yield SpaceKept(f"{path}/{topic}-*", size, True, title_of("space-kept-topic", case))
    for log in usage.in_state(""):
        if log.place.topic == METADATA_TOPIC:
            yield SpaceKept(log.place.path, log.allocated, True, title_of("space-kept-metadata"))
    names = [name for name in usage.directory.files if name.endswith("-checkpoint")]
    if names:
        yield SpaceKept(f"{path}/*-checkpoint", None, True, title_of("space-kept-checkpoints"))
    has_mark = CLEAN_MARK in usage.directory.files
    if has_mark or (broker != RUNNING and names):
        why = title_of("space-kept-clean-mark", "" if has_mark else "missing")
        yield SpaceKept(os.path.join(path, CLEAN_MARK), None, True, why)
    for log in live:
        if ".swap" in log.left or (".cleaned" in log.left and broker != STOPPED):
            yield SpaceKept(f"{log.place.path}/*.swap", None, True, title_of("space-kept-swap"))
            break
    linked = usage.total().linked
    if linked:
        yield SpaceKept(path, linked, False, title_of("space-kept-linked"))
    future = sum(log.allocated for log in usage.in_state("future"))
    if future:
        yield SpaceKept(f"{path}/*-future", future, False, title_of("space-kept-future"))
