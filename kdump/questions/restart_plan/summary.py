"""Summary of a broker's plan: totals over its directories and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, NESTED, Doc, PathText, answer
from kdump.cluster.release_evidence import ChosenRelease
from kdump.questions.restart_plan.answer import PartitionPlan, Quorum, RestartPlan, Stops, UnreadTexts


class RestartTotals(NamedTuple):
    """Totals over partitions."""

    partitions: int
    recoveredPartitions: int
    recovered: int
    bytesRead: int
    bytesCut: int
    losing: int
    strays: int


@answer("restartPlan")
class PlanSummary(NamedTuple):
    """The plan of the whole broker."""

    nodeId: Annotated[int | None, Doc("node.id in meta.properties; null if no log directory states it")]
    release: Annotated[
        ChosenRelease | None,
        Doc(
            "the release of Kafka that is started, {version, mode, source, reason, doubt, diskVersion, newer, tried}; "
            "source: option, disk or default; tried: whether its rules have been compared with real brokers"
        ),
    ]
    rewrites: Annotated[
        list[PathText],
        Doc("what a start of another release than the disk's own writes that the disk's own did not; empty otherwise"),
    ]
    wayBack: Annotated[
        list[PathText],
        Doc("what a return to the older one of the two releases loses, or makes impossible; empty otherwise"),
    ]
    quorum: Annotated[
        Quorum | None,
        Doc(
            f"the controller quorum as the files of this node state it, {NESTED}; null with ZooKeeper, or if unreadable"
        ),
    ]
    verdict: Annotated[
        str,
        Doc(
            "clean (starts without recovery), recovery (starts and recovers logs), degraded (starts without a log "
            "directory), stopped (does not start), unknown (see release.newer, or what was lowered before)"
        ),
    ]
    loses: Annotated[bool, Doc("whether records are lost or hidden, or directories become stray or are missing")]
    partitions: Annotated[int, Doc("number of partitions examined")]
    recoveredPartitions: Annotated[int, Doc("number of partitions with segments that are re-read")]
    recovered: Annotated[int, Doc("number of segments that are re-read")]
    bytesRead: Annotated[int, Doc("bytes of segments that startup reads", BYTES)]
    bytesCut: Annotated[int, Doc("bytes that are no longer part of a log after startup", BYTES)]
    losing: Annotated[int, Doc("number of partitions that lose records")]
    strays: Annotated[int, Doc("number of partitions whose directories are renamed to -stray and not served")]
    stops: Stops
    offline: Annotated[list[PathText], Doc("log directories that go offline")]
    withoutMetadata: Annotated[
        bool,
        Doc(
            "whether no directory has a metadata log, or it has no topics: if the controllers have none either, all "
            "partitions become stray"
        ),
    ]
    copyFirst: Annotated[list[PathText], Doc("paths to copy elsewhere before startup")]
    assumptions: Annotated[list[PathText], Doc("what the plan assumes because no disk states it")]
    unread: UnreadTexts
    seconds: Annotated[float, Doc("elapsed time", "s")]


def summary(plan: RestartPlan, seconds: float) -> PlanSummary:
    """Return the summary of a plan; `seconds` is the time that it took."""
    return PlanSummary(
        next((each.nodeId for each in plan.directories if each.nodeId is not None), None),
        plan.release,
        plan.change.rewrites if plan.change else [],
        plan.change.wayBack if plan.change else [],
        plan.quorum,
        plan.verdict,
        plan.loses,
        *totals(plan.partitions),
        stops=plan.allStops,
        offline=plan.offline,
        withoutMetadata=plan.withoutMetadata,
        copyFirst=plan.copyFirst,
        assumptions=plan.assumptions,
        unread=plan.unread,
        seconds=round(seconds, 3),
    )


def totals(partitions: Sequence[PartitionPlan]) -> RestartTotals:
    """Return the totals over these partitions."""
    return RestartTotals(
        len(partitions),
        sum(1 for each in partitions if each.recovered),
        sum(each.recovered for each in partitions),
        sum(each.bytesRead for each in partitions),
        sum(each.bytesCut for each in partitions),
        sum(1 for each in partitions if each.loses),
        sum(1 for each in partitions if each.stray),
    )
