"""What happens in the first minutes after a startup, once the node has registered: which leaders are elected, what the
coordinators do with open transactions, and which committed offsets expire.

Source: TransactionCoordinator.abortTimedOutTransactions; GroupCoordinatorService and OffsetMetadataManager
(cleanupExpiredOffsets after offsets.retention.check.interval.ms), ClassicGroup.offsetExpirationCondition,
ConsumerGroup.offsetExpirationCondition, OffsetExpirationConditionImpl (4.3.1)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.read_groups import merged, read_groups, size_of
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState, read_coordinator
from kdump.format.count_text import count_text, first_of
from kdump.format.numbers import parse_int
from kdump.io.directory_listing import length
from kdump.io.run import Limits, Run
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.served_files import current_segments
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan
from kdump.questions.restart_plan.course import (
    CERTAIN,
    FIRST_MINUTES,
    HORIZON,
    MAY,
    OFFSETS,
    Loss,
    Part,
    StartupEvent,
    UnansweredStep,
)
from kdump.state.groups import CLASSIC, Group, GroupCoordinatorState
from kdump.state.metadata_image import MetadataImage

RETENTION, RETENTION_NAME = 10_080, "offsets.retention.minutes"
CHECK, CHECK_NAME = 600_000, "offsets.retention.check.interval.ms"
MAX_BYTES = 64 << 20
"""Maximum size of the logs of __consumer_offsets that are read to find what expires."""
NAMED = 3


def leaders(plan: RestartPlan) -> Part:
    """Return what the election of leaders does, which other brokers decide if they have replicas."""
    live = [log for log in plan.partitions if log.topic != METADATA_TOPIC and not log.state and not log.stray]
    unknown = [log for log in live if log.replicas is None]
    others = [log for log in live if log.replicas is not None and log.replicas.brokers]
    steps = []
    if others:
        what = count_text(len(others), "partition has a replica", "partitions have replicas")
        steps.append(UnansweredStep("leaders", f"{what} on brokers whose disks were not given"))
    if unknown:
        what = count_text(len(unknown), "partition", "partitions")
        steps.append(UnansweredStep("leaders", f"the metadata here does not state the replicas of {what}"))
    quorum = plan.quorum
    if quorum is not None and len(quorum.voters) > 1 and quorum.isVoter:
        steps.append(UnansweredStep("quorum", "the other voters decide which metadata log the node follows"))
    return Part(unanswered=tuple(steps))


def find_hanging(plan: RestartPlan, metadata: MetadataImage, limits: Limits) -> None:
    """Note which open transactions no coordinator will end: those that it does not know once it has loaded its logs.
    One whose directory is missing, and that no other broker has, is empty."""
    logs = [log for log in plan.partitions if log.openTransactions and not (log.state or log.stray)]
    own = [log for log in plan.partitions if log.topic == TRANSACTION_TOPIC and not (log.state or log.stray)]
    if not logs:
        return
    paths = [log.path for log in own if not log.missing]
    if sum(length(os.path.join(path, name)) or 0 for path in paths for name in current_segments(path)) > MAX_BYTES:
        return
    count = metadata.partition_count(TRANSACTION_TOPIC) if TRANSACTION_TOPIC in metadata.topics else 0
    state = read_coordinator(paths, count, limits) or TransactionCoordinatorState(partition_count=count)
    state.partitions |= {log.partition for log in own if log.missing and log.otherReplicas == ()}
    for log in logs:
        hanging = (each for each in log.openTransactions if state.ongoing(each, -1, log.topic, log.partition) is False)
        log.hanging = tuple(hanging)


def transactions(logs: Iterable[PartitionPlan], node: int | None) -> Part:
    """Return which open transactions the coordinator aborts, and which none will."""
    reason = "the transaction.timeout.ms of its producer, at most transaction.max.timeout.ms (15 min) of the broker"
    events = []
    for log in logs:
        if log.state or log.stray:
            continue
        event = StartupEvent(FIRST_MINUTES, Problem(""), None, reason, node, log.topic, log.partition, log.path)
        if number := len(log.openTransactions) - len(log.hanging):
            values = {"open": count_text(number, "open transaction")}
            events.append(event._replace(problem=Problem("startup-transactions-aborted", values)))
        for producer in log.hanging:
            values = {"transaction": f"producer {producer}", "offset": str(log.openTransactions[producer])}
            events.append(event._replace(problem=Problem("transaction-hanging", values), dueReason=""))
    return Part(tuple(events))


def groups_on(directories: Iterable[LogDirectory], limits: Limits) -> GroupCoordinatorState | None:
    """Return the groups of the partitions of __consumer_offsets that are here; None if these are too large to read."""
    logs = merged([log for directory in directories for log in logs_in(directory) if log.topic == OFFSETS_TOPIC])
    return read_groups(logs, run=Run(limits)) if size_of(logs) <= MAX_BYTES else None


def committed_offsets(
    directories: Iterable[LogDirectory],
    server: ServerProperties | None,
    node: int | None,
    now: int,
    stopped: int,
    limits: Limits,
) -> Part:
    """Return which committed offsets of groups without members expire. Those that were due up to an hour after the
    broker had `stopped` (epoch ms) are not lost by the start."""
    if now - stopped <= HORIZON:
        return Part()
    groups = groups_on(directories, limits)
    if groups is None:
        reason = f"{OFFSETS_TOPIC} is too large to be read here: see kdump groups"
        return Part(unanswered=(UnansweredStep("committedOffsets", reason),))
    if not groups.logs:
        return Part()
    values = {} if server is None else server.values
    minutes = parse_int(values.get(RETENTION_NAME, "")) or RETENTION
    due = parse_int(values.get(CHECK_NAME, "")) or CHECK
    times = {name: [*_expiries(group, groups, minutes * 60_000)] for name, group in groups.groups.items()}
    unanswered = (UnansweredStep("committedOffsets", str(groups.problems[0])),) if groups.problems else ()
    events = []
    for case, first, last in (("", stopped + HORIZON, now + HORIZON), ("routine", 0, stopped + HORIZON)):
        expired = {name: count for name, each in times.items() if (count := sum(first < at <= last for at in each))}
        if not expired:
            continue
        number = sum(expired.values())
        facts = {
            "count": count_text(number, "committed offset"),
            "DIR": groups.logs[0].path,
            "groups": f"{'group' if len(expired) == 1 else 'groups'} {first_of([*expired], NAMED)}",
            "config": f"{RETENTION_NAME}={minutes}",
        }
        loss = None if case else Loss(OFFSETS, MAY if server is None else CERTAIN, offsets=number)
        problem = Problem("startup-offsets-expire", facts, case=case)
        events.append(StartupEvent(FIRST_MINUTES, problem, due, "", node, OFFSETS_TOPIC, None, None, loss))
    return Part(tuple(events), unanswered)


def _expiries(group: Group, groups: GroupCoordinatorState, retention: int) -> Iterator[int]:
    """Yield when each offset of a group expires, in epoch ms; nothing of a group with members, which have to leave
    first."""
    if group.members:
        return
    is_by_state = group.type == CLASSIC and not group.isSimple and group.stateTimestamp is not None
    for commit in groups.offsets.get(group.groupId, {}).values():
        if commit.expireTimestamp is not None:
            yield commit.expireTimestamp
        else:
            yield ((group.stateTimestamp or 0) if is_by_state else commit.commitTimestamp) + retention
