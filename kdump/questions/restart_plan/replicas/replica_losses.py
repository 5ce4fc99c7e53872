"""The replicas of a partition on the disks of several brokers, before and after each broker's startup, and what they
lose when they follow a leader: where each truncates, and which of its offsets no replica has then.

Two replicas have the same records up to the first offset at which their leader epochs differ (KIP-101): in one epoch
only one broker appends.

A replica that the metadata assigns to a broker and that its log directories do not have is an empty log: the broker
creates it, and truncates the others to it if it is elected.

Source: AbstractFetcherThread (getOffsetTruncationState, fetchOffsetAndTruncate), ReplicaManager.initialFetchOffset,
Partition.createLogInAssignedDirectoryId."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from kdump.kafka.follower_truncation import EpochLineage, Truncation, truncation
from kdump.questions.restart_plan.answer import STOPPED, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.replicas.leader_candidates import UNCLEAN, ElectionRules, candidates
from kdump.questions.restart_plan.replicas.replica_answer import (
    GivenReplica,
    LeaderOutcome,
    PartitionReplicas,
    ReplicaLoss,
)
from kdump.state.metadata_image import PartitionRegistration


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

    def given(self, *, in_sync: bool, without_epochs: int | None = None) -> GivenReplica:
        """Return the replica as it is reported. `without_epochs`: the epoch of a log that is loaded and has none."""
        path, mark, after, missing = self.plan.path, self.plan.highWatermark, self.after, self.plan.missing
        if after is None:
            return GivenReplica(self.broker, path, in_sync, self.starts, None, None, None, mark, missing)
        epoch = after.epochs[-1].epoch if after.epochs else without_epochs
        return GivenReplica(self.broker, path, in_sync, self.starts, after.start, after.end, epoch, mark, missing)


def replica_of(broker: int, plan: PartitionPlan, *, starts: bool, clean: bool | None = None) -> Replica:
    """Return the replica that `plan` describes. `clean`: whether the whole broker was shut down cleanly."""
    clean = plan.clean if clean is None else clean
    if plan.missing:
        nothing = EpochLineage((), 0, 0, plan.highWatermark)
        return Replica(broker, plan, nothing, nothing, starts, clean)
    start, end = plan.logStartOffset or 0, plan.logEndOffset
    after = None
    if end is not None and not plan.unread and not plan.stops:
        after = EpochLineage(plan.epochsAfter or (), start, end, plan.highWatermark)
    reached = [cut.lastOffset + 1 for cut in plan.cuts if cut.lastOffset is not None]
    before_end = max([end or 0, *reached])
    epochs = plan.epochsBefore if plan.epochsBefore else plan.epochsAfter
    before = EpochLineage(epochs or (), start, before_end, plan.highWatermark)
    return Replica(broker, plan, before, after, starts, clean)


def empty_replica(
    broker: int, plan: RestartPlan, topic: str, number: int, directory: str | None, *, clean: bool
) -> Replica | None:
    """Return a replica of which the broker has nothing, and which it creates; None if a log directory with the replica
    may be offline, or was not listed. `directory`: the ID of the log directory to which it is assigned, None if it is
    assigned to none."""
    own = [each for each in plan.directories if each.logDir]
    listed = [each for each in own if not (each.failed or each.is_offline or each.unread or each.unlisted)]
    place = next((each for each in listed if directory is not None and each.directoryId == directory), None)
    if place is None and (len(listed) < len(own) or not listed):
        return None
    place = place or listed[0]
    nothing = PartitionPlan(topic, number, os.path.join(place.path, f"{topic}-{number}"), place.path, "", clean)
    nothing.missing = True
    return replica_of(broker, nothing, starts=plan.verdict != STOPPED, clean=clean)


def committed_end(replica: Replica, replicas: list[Replica]) -> int:
    """Return the offset below which the log on this disk was committed, according to the high watermarks of all: a
    lower bound, because a broker writes them every 5 s (replica.high.watermark.checkpoint.interval.ms)."""
    ends = [0]
    for other in replicas:
        if other.plan.highWatermark is not None:
            ends.append(min(other.plan.highWatermark, other.before.common_end(replica.before)))
    return max(ends)


def held_end(replica: Replica, replicas: list[Replica], count: int) -> int:
    """Return the offset up to which at least `count` of the replicas have the log of this disk. If `count` is 0 or
    less, because disks of other replicas were not given, its end."""
    if count < 1:
        return replica.before.end
    ends = sorted((other.before.common_end(replica.before) for other in replicas), reverse=True)
    return ends[count - 1] if count <= len(ends) else 0


class Counted(NamedTuple):
    """How many records and bytes there are between two offsets; None if they were not counted."""

    records: int | None = None
    size: int | None = None


CountRecords = Callable[[str, int, int], Counted]
"""Counts the records of a partition directory between two offsets."""


def partition_replicas(
    topic: str,
    number: int,
    partition: PartitionRegistration,
    rules: ElectionRules,
    replicas: list[Replica],
    count: CountRecords,
) -> PartitionReplicas:
    """Return what the replicas of a partition lose, for each leader. `replicas`: those on the given disks."""
    here = {replica.broker: replica for replica in replicas}
    absent = [broker for broker in partition.replicas if broker not in here]
    unclean = {replica.broker for replica in replicas if not replica.clean}
    elected, by_order = candidates(partition, rules, set(here), unclean)
    order = [*elected, *(broker for broker in partition.replicas if broker not in elected)]
    outcomes = []

    def held(replica: Replica) -> int:
        return held_end(replica, replicas, rules.minInSyncReplicas - len(absent))

    for broker in order:
        leader = here.get(broker)
        if leader is None or leader.after is None:
            continue
        losses, totals = replica_losses(leader, leader.after, replicas, held, count)
        outcomes.append(LeaderOutcome(broker, elected.get(broker, UNCLEAN), broker in elected, *totals, losses))
    saved = [replica.broker for replica in replicas if replica.plan.loses and _is_everywhere(replica, outcomes)]
    return PartitionReplicas(
        topic=topic,
        partition=number,
        leader=partition.leader if partition.leader >= 0 else None,
        leaderEpoch=partition.leaderEpoch,
        brokers=list(partition.replicas),
        isr=list(partition.isr),
        eligibleLeaderReplicas=list(partition.eligibleLeaderReplicas),
        minInSyncReplicas=rules.minInSyncReplicas,
        uncleanLeaderElection=rules.unclean,
        firstLeads=by_order,
        given=[replica.given(in_sync=replica.broker in partition.isr) for replica in replicas],
        outcomes=outcomes,
        saved=saved,
        notes=list(_notes(partition, replicas, elected, absent)),
    )


def replica_losses(
    leader: Replica, led: EpochLineage, replicas: list[Replica], held_to: Callable[[Replica], int], count: CountRecords
) -> tuple[list[ReplicaLoss], tuple[int, int, int]]:
    """Return what each replica loses if `leader` leads, and how much is lost altogether. `held_to` returns the offset
    below which the records of a replica may have been acknowledged."""
    losses = []
    counted: list[Replica] = []
    lost = acknowledged = possible = 0
    for replica in sorted(replicas, key=lambda replica: -replica.before.end):
        does = Truncation(None, None, "startup")
        if replica is not leader and replica.after is not None:
            does = truncation(led, replica.after)
        first = max(led.common_end(replica.before), led.start)
        if replica.before.end <= first and not (does.loses or 0):
            continue
        committed = committed_end(replica, replicas)
        held = max(committed, held_to(replica))
        first = min(first, replica.before.end)
        if replica.before.end > first:
            here = count(replica.plan.path, first, replica.before.end)
            losses.append(
                ReplicaLoss(
                    replica.broker,
                    does.offset,
                    does.by,
                    first,
                    replica.before.end - first,
                    here.records,
                    max(0, min(committed, replica.before.end) - first),
                    max(0, min(held, replica.before.end) - max(committed, first)),
                    here.size,
                )
            )
        elif does.offset is not None:
            # It has nothing that the leader lacks, but truncates and fetches the same records again.
            losses.append(ReplicaLoss(replica.broker, does.offset, does.by, None, 0, 0, 0, 0, 0))
        start = max([first, *(replica.before.common_end(other.before) for other in counted)])
        lost += max(0, replica.before.end - start)
        acknowledged += max(0, min(committed, replica.before.end) - start)
        possible += max(0, min(held, replica.before.end) - max(committed, start))
        counted.append(replica)
    return sorted(losses, key=lambda loss: loss.broker), (lost, acknowledged, possible)


def _is_everywhere(replica: Replica, outcomes: list[LeaderOutcome]) -> bool:
    """Return True if what the replica loses at startup is on every replica that may lead."""
    allowed = [outcome for outcome in outcomes if outcome.allowed]
    return bool(allowed) and not any(
        loss.lost for outcome in allowed for loss in outcome.replicas if loss.broker == replica.broker
    )


def _notes(
    partition: PartitionRegistration, replicas: list[Replica], elected: dict[int, str], absent: list[int]
) -> list[str]:
    notes = []
    for replica in replicas:
        if replica.broker not in partition.replicas:
            notes.append(f"broker {replica.broker} has {replica.plan.path}, but no replica in the metadata")
        if replica.after is None:
            notes.append(f"broker {replica.broker}: how its log is loaded is unknown; see its plan")
        elif replica.after.end > replica.after.start and not replica.after.epochs:
            notes.append(
                f"broker {replica.broker} has no leader epochs: whether its records are those of the others is unknown "
                "(kdump diff)"
            )
    if partition.leader in absent:
        notes.append(
            f"broker {partition.leader} leads, and its disk was not given: what the others truncate is unknown"
        )
    elif not any(replica.broker in elected for replica in replicas):
        names = ", ".join(map(str, elected)) or "none of the replicas"
        notes.append(f"the controllers elect only {names}, whose disks were not given: the partition stays offline")
    return notes
