"""The replicas of a partition on the disks of several brokers, before and after each broker's startup.

Two replicas have the same records up to the first offset at which their leader epochs differ (KIP-101): in one epoch
only one broker appends.
"""

from __future__ import annotations

from typing import NamedTuple

from kdump.kafka.follower_truncation import EpochLineage
from kdump.questions.restart_plan.answer import PartitionPlan


class Replica(NamedTuple):
    """A replica on a disk that was given. `before`, `after`: its log before and after startup; `after` is None if it is
    unknown how it is loaded. `starts`: whether its broker starts as it is; `clean`: whether its last shutdown was
    clean."""

    broker: int
    plan: PartitionPlan
    before: EpochLineage
    after: EpochLineage | None
    starts: bool
    clean: bool


def replica_of(broker: int, plan: PartitionPlan, *, starts: bool) -> Replica:
    """Return the replica that `plan` describes."""
    if plan.missing:
        nothing = EpochLineage((), 0, 0, plan.highWatermark)
        return Replica(broker, plan, nothing, nothing, starts, plan.clean)
    start, end = plan.logStartOffset or 0, plan.logEndOffset
    after = None
    if end is not None and not plan.unread and not plan.stops:
        after = EpochLineage(plan.epochsAfter or (), start, end, plan.highWatermark)
    reached = [cut.lastOffset + 1 for cut in plan.cuts if cut.lastOffset is not None]
    before_end = max([end or 0, *reached])
    epochs = plan.epochsBefore if plan.epochsBefore else plan.epochsAfter
    before = EpochLineage(epochs or (), start, before_end, plan.highWatermark)
    return Replica(broker, plan, before, after, starts, plan.clean)


def committed_end(replica: Replica, replicas: list[Replica]) -> int:
    """Return the offset below which the log on this disk was committed, according to the high watermarks of all: a
    lower bound, because a broker writes them every 5 s (replica.high.watermark.checkpoint.interval.ms)."""
    ends = [0]
    for each in replicas:
        if each.plan.highWatermark is not None:
            ends.append(min(each.plan.highWatermark, each.before.common_end(replica.before)))
    return max(ends)


def held_end(replica: Replica, replicas: list[Replica], count: int) -> int:
    """Return the offset up to which at least `count` of the replicas have the log of this disk. If `count` is 0 or
    less, because disks of other replicas were not given, its end."""
    if count < 1:
        return replica.before.end
    ends = sorted((each.before.common_end(replica.before) for each in replicas), reverse=True)
    return ends[count - 1] if count <= len(ends) else 0
