"""Steps that make room for a stopped broker to start: segments that are due, on each file system with too little."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kdump.forensics.space.answers import DUE, RECORDS, SpaceCandidate, SpaceKept, SpaceStep
from kdump.forensics.space.leftover_steps import DueSegments, oldest_segments
from kdump.forensics.space.lower_retention import RetainedTopic
from kdump.forensics.space.shortage import segments_below
from kdump.forensics.space.usage import DirectoryUsage
from kdump.format.count_text import count_text

UNKNOWN_CONFIGS = "pass the log directory or a bundle of a controller with --with, or the topics' configs with --config"
"""What to do if configs are not in the metadata of the broker."""


def room_of(steps: Sequence[SpaceStep], sources: frozenset[str], costs: Collection[str]) -> int:
    """Return what the steps of these costs free in these log directories before the broker starts."""
    return sum(
        each.frees for each in steps if each.source in sources and each.needs != "running" and each.cost in costs
    )


class Room(NamedTuple):
    """Log directories that share a file system, their paths, and the bytes that the startup lacks: `missing` after
    the steps that cost no records, and `lacks` if those are taken, too, that you judge (0 or less: nothing)."""

    usages: list[DirectoryUsage]
    sources: frozenset[str]
    missing: int
    lacks: int


def removable(topic: RetainedTopic, room: Room, due: Sequence[int], tried: Mapping[str, SpaceCandidate]) -> int:
    """Return what `startup_steps` could free of a topic."""
    found = (each for usage in room.usages for cost in (DUE, RECORDS) for each in _logs(topic, usage, due, tried, cost))
    return sum(sum(each.usage.allocs[each.first : each.stop]) for each in found)


def startup_steps(
    room: Room,
    topics: Sequence[RetainedTopic],
    due: Mapping[str, list[int]],
    tried: Mapping[str, SpaceCandidate],
) -> Iterator[SpaceStep]:
    """Yield the steps that free what the startup lacks. `due`: number of due segments by topic and log; `tried`: the
    lower retention that other steps set. First what is due anyway."""
    freed = 0
    for cost, missing in ((DUE, room.missing), (RECORDS, room.lacks)):
        for usage in room.usages:
            if freed >= missing:
                break
            logs = [each for topic in topics for each in _logs(topic, usage, due[topic.name], tried, cost)]
            found = oldest_segments(usage, logs, missing - freed, cost)
            if found is not None:
                freed += found.frees
                yield found


def may_be_removed(topic: RetainedTopic, config: str = "retention.ms") -> bool:
    """Return whether the topic's segments may be removed by hand once they are due by `config`: not if what is in force
    is only assumed. A log directory does not contain the broker's own defaults."""
    settings = topic.settings
    return topic.is_certain("cleanup.policy", config) and not settings.compacts and not settings.is_tiered


def _logs(
    topic: RetainedTopic,
    usage: DirectoryUsage,
    due: Sequence[int],
    tried: Mapping[str, SpaceCandidate],
    cost: str,
) -> Iterator[DueSegments]:
    chosen = tried.get(topic.name)
    if cost == DUE and not may_be_removed(topic):
        return
    if cost == RECORDS and (chosen is None or not may_be_removed(topic, "cleanup.policy")):
        return
    for log, count in zip(topic.logs, due):
        if log.usage.place.source != usage.directory.path:
            continue
        if cost == DUE and count:
            yield DueSegments(log.usage, 0, count, f"{topic.name}: due for deletion now")
        elif cost == RECORDS and chosen is not None:
            stop = segments_below(log, chosen)
            first = count if may_be_removed(topic) else 0
            if stop > first:
                why = f"{topic.name}: due under the {chosen.config}={chosen.value} of an earlier step"
                yield DueSegments(log.usage, first, stop, why)


def uncertain_segments(
    room: Room, topics: Sequence[RetainedTopic], due: Mapping[str, list[int]]
) -> Iterator[SpaceKept]:
    """Yield why segments are not offered: those of topics whose configs are unknown, and those that are due only if the
    broker has Kafka's defaults."""
    path = ", ".join(sorted(room.sources))
    unknown = [topic for topic in topics if topic.is_unknown and not topic.settings.compacts]
    allocated = sum(_allocated(topic, room, [len(log.segments) - 1 for log in topic.logs]) for topic in unknown)
    if allocated:
        yield SpaceKept(
            path,
            allocated,
            False,
            f"segments of {count_text(len(unknown), 'topic')} whose configs are not in the metadata here, so that it "
            f"is unknown which are due: {UNKNOWN_CONFIGS}",
        )
    allocated = sum(
        _allocated(topic, room, due[topic.name])
        for topic in topics
        if topic.settings.is_known and not may_be_removed(topic) and not topic.settings.compacts
    )
    if allocated:
        yield SpaceKept(
            path,
            allocated,
            False,
            "segments that are due if the broker has Kafka's default retention: pass its server.properties with "
            "--properties, and they are offered to make room for the startup",
        )


def _allocated(topic: RetainedTopic, room: Room, counts: Sequence[int]) -> int:
    """Return what the first segments of a topic's partitions occupy there."""
    return sum(
        log.allocated(0, count) for log, count in zip(topic.logs, counts) if log.usage.place.source in room.sources
    )
