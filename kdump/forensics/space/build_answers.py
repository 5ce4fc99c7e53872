"""Builds the answers about a log directory and a topic, and the summary."""

from __future__ import annotations

from collections.abc import Sequence

from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.forensics.space.answers import FILES, RUNNING, SpaceDirectory, SpaceStep, SpaceSummary, SpaceTopic
from kdump.forensics.space.broker_disks import BrokerDisks
from kdump.forensics.space.file_systems import not_the_disk
from kdump.forensics.space.lower_retention import DAY, RetainedTopic
from kdump.forensics.space.shortage import Shortage
from kdump.forensics.space.usage import DirectoryUsage


def directory_answer(disks: BrokerDisks, usage: DirectoryUsage, node_id: int | None, state: str) -> SpaceDirectory:
    """Return what is on a log directory."""

    def of(state: str) -> int:
        return sum(each.allocated for each in usage.in_state(state))

    system = disks.system(usage)
    live, every = list(usage.live()), list(usage.in_state(""))
    deleted = sum(each.deleted + each.cleaned for each in live)
    metadata = sum(each.allocated for each in every) - sum(each.allocated for each in live)
    return SpaceDirectory(
        path=usage.directory.path,
        nodeId=node_id,
        broker=state,
        unknownBecause=not_the_disk(usage.directory),
        isClean=None if state == RUNNING else had_clean_shutdown(usage.directory),
        mount=system.mount if system else None,
        fileSystem=system.type if system else None,
        device=system.source if system else None,
        total=system.total if system else None,
        free=system.free if system else None,
        reserved=system.reserved if system else None,
        inodesFree=system.inodes_free if system else None,
        allocated=usage.allocated,
        elsewhere=disks.elsewhere(usage),
        liveBytes=sum(each.allocated for each in live) - deleted,
        deletedBytes=deleted + of("delete"),
        strayBytes=of("stray"),
        futureBytes=of("future"),
        metadataBytes=metadata,
        otherBytes=sum(each[2] for each in usage.others),
        linkedBytes=usage.all_linked,
        partitions=len(every),
        neededToStart=disks.needed(usage),
    )


def topic_answer(topic: RetainedTopic, due: Sequence[int]) -> SpaceTopic:
    """Return what a topic occupies. `due`: number of due segments of each partition."""
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


def summary_answer(
    disks: BrokerDisks,
    state: str,
    steps: Sequence[SpaceStep],
    need: int | None,
    short: Sequence[Shortage],
    topics: Sequence[RetainedTopic],
    **known: int | str | None,
) -> SpaceSummary:
    """Return the summary. `need`: the goal in bytes, None for the default; `short`: what is missing after all steps;
    `known`: the fields that only the run knows."""
    free = sum(each.free for each in disks.systems.values()) if disks.systems else None
    goals = [each.missing for each in disks.shortages(need)]
    goal = None if None in goals else sum(each or 0 for each in goals)
    missing = disks.missing_to_start(steps, state)
    is_enough = None if goal is None else all(each.is_over for each in short)
    if missing or disks.inodes_missing(steps, state):
        is_enough = False
    verdict = "unknown" if goal is None else "full" if disks.is_full() else "low" if goal else "enough"
    return SpaceSummary(
        verdict=verdict,
        broker=state,
        free=free,
        goal=goal,
        neededToStart=disks.needed_to_start,
        missingToStart=missing,
        frees=sum(each.frees for each in steps if each.step != "oldestSegments"),
        freesStopped=sum(each.frees for each in steps if each.how == FILES),
        steps=len(steps),
        isEnough=is_enough,
        unknownTopics=sum(each.is_unknown for each in topics),
        **known,  # type: ignore[arg-type]
    )
