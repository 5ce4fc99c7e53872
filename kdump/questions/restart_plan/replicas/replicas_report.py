"""Output of `kdump restart-plan` for several brokers: who may lead, and what the other replicas lose then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdump.format.count_text import count_text, size_text
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.questions.restart_plan.answer import STOPPED, UNKNOWN, RestartPlan
from kdump.questions.restart_plan.course import CERTAIN, MAY
from kdump.questions.restart_plan.replicas.leader_candidates import CURRENT, ELR, ISR, LAST_KNOWN, UNCLEAN
from kdump.questions.restart_plan.replicas.quorum_replicas import QUORUM
from kdump.questions.restart_plan.replicas.replica_answer import (
    ClusterSummary,
    GivenReplica,
    LeaderOutcome,
    PartitionReplicas,
    ReplicaLoss,
    WorstLoss,
)

MAX_PARTITIONS = 20
"""Maximum number of partitions that are shown; --full and JSON show all."""
MAX_STRAYS = 8
"""Maximum number of directories that are named."""
ELECTED = {
    CURRENT: "leads, and runs",
    ISR: "in sync",
    ELR: "eligible leader replica",
    LAST_KNOWN: "last known leader",
    UNCLEAN: "unclean election",
    QUORUM: "a majority can vote for it",
}


def replicas_verdict(summary: ClusterSummary) -> tuple[str, str]:
    """Return the verdict on the replicas of several brokers, and the rest of its sentence."""
    head, rest = _replicas_verdict(summary)
    if summary.hasQuorum is False and not summary.halting:
        left = f"{len(summary.ableVoters)} of {count_text(len(summary.voters), 'voter')} can take part"
        then = f"; once one is: {head}{rest}" if summary.partitions else ""
        return "NO CONTROLLER IS ELECTED", f": {left}, and {summary.majority} are needed{then}"
    if summary.hasQuorum is False:
        return "NO CONTROLLER STAYS UP", f"; once one does: {head}{rest}"
    if summary.halting:
        names = " or ".join(map(str, summary.halting))
        return "ALL CONTROLLERS HALT IF THE WRONG ONE IS ELECTED", f" ({names}); {head}{rest}"
    if summary.quorumLoses:
        lost = count_text(summary.quorumLoses, "record")
        lost += f", and makes {count_text(summary.strays, 'directory', 'directories')} STRAY" if summary.strays else ""
        order = "" if summary.quorumLosesLeast else " IN THE WRONG ORDER"
        loses = "LOSES" if summary.strays else "MAY LOSE"
        if not summary.worstLost:
            replicas = count_text(summary.partitions, "partition")
            return f"{loses} METADATA{order}", f": up to {lost}" + (
                f"; the replicas of {replicas} lose nothing" if summary.partitions else ""
            )
        return f"{loses} METADATA{order}", f": up to {lost}; {head}{rest}"
    return head, rest


def _replicas_verdict(summary: ClusterSummary) -> tuple[str, str]:
    several = count_text(summary.partitions, "partition")
    if summary.metadataOffset is None:
        return "REPLICAS NOT COMPARED", ": there is no cluster metadata on these disks; pass a controller's disk, too"
    if not summary.worstLost:
        elected = ""
        if len(summary.voters) > 1 and summary.electable:
            elected = f"; controller {' or '.join(map(str, summary.electable))} is elected"
            absent = [voter for voter in summary.voters if voter not in summary.nodes]
            elected += f" (voter {_brokers(absent)} was not given, and may have had more)" if absent else ""
        if not summary.partitions and elected:
            return "LOSES NOTHING", f" that may have been committed{elected}"
        rest = f" by the brokers' joining: {several} with replicas on at least two of these brokers{elected}"
        return "LOSES NOTHING", rest
    worst = "" if summary.worst is None else f": {worst_text(summary.worst)}"
    if not summary.lost:
        amount = _amount(summary.worstLost, summary.worstAcknowledged)
        return "LOSES RECORDS IN THE WRONG ORDER", f"{worst}; up to {amount} of {several}"
    rest = f"{worst}; {count_text(summary.losing, 'partition')} {'loses' if summary.losing == 1 else 'lose'} "
    rest += f"{_amount(*_best(summary))} once the brokers have joined"
    if summary.order_decides:
        rest += f", in the worst order {_amount(summary.worstLost, summary.worstAcknowledged)}"
    return "LOSES RECORDS", rest


OWN = {
    STOPPED: ("DOES NOT START", "DO NOT START"),
    UNKNOWN: ("MAY NOT START", "MAY NOT START"),
    CERTAIN: ("LOSES DATA by itself", "LOSE DATA by themselves"),
    MAY: ("MAY LOSE DATA by itself", "MAY LOSE DATA by themselves"),
}
"""What nodes do whatever the others do, of one and of several."""


def own_text(plans: Iterable[RestartPlan]) -> str:
    """Return which nodes do not start, and which lose something by themselves, for the end of a verdict."""
    nodes: dict[str, list[str]] = {does: [] for does in OWN}
    for plan in plans:
        loses = next((event.loss.certainty for event in plan.course.losses if event.loss is not None), "")
        does = plan.verdict if plan.verdict in OWN else loses
        if does:
            nodes[does].append(str(plan.nodeId))
    texts = ((OWN[does], named) for does, named in nodes.items() if named)
    return "".join(
        f"; nodes {' and '.join(named)} {several}" if len(named) > 1 else f"; node {named[0]} {one}"
        for (one, several), named in texts
    )


def worst_text(worst: WorstLoss) -> str:
    """Return what the replica that loses most loses, and why."""
    name = f"{worst.topic}-{worst.partition} on broker {worst.broker}"
    if worst.truncatesTo is None:
        return f"{name} loses {count_text(worst.lost, 'offset')} if broker {worst.leader} leads"
    return f"{name} is truncated from {worst.logEndOffset} to {worst.truncatesTo} if broker {worst.leader} leads"


def _best(summary: ClusterSummary) -> tuple[int, int]:
    return summary.lost, summary.acknowledged


def _amount(lost: int, acknowledged: int) -> str:
    return f"{count_text(lost, 'offset')} ({acknowledged:,} acknowledged)"


def order_lines(summary: ClusterSummary, *, everything: bool) -> Iterator[str]:
    """Yield lines on what to start first, and which leaders to choose by hand."""
    if summary.firstVoters:
        best, *others = summary.firstVoters
        alone = f"controllers {_brokers(summary.firstVoters)} first, alone" if others else f"controller {best} first"
        yield f"start {alone}; when {best} leads the quorum, the other nodes"
    order = summary.startOrder
    if summary.order_decides and len(order) > 1:
        then = ", then ".join(map(str, order[1:]))
        yield f"start broker {order[0]} first, and when it leads its partitions, {then}"
    shown = summary.chosen if everything else summary.chosen[:MAX_PARTITIONS]
    for topic, partition, leader, stopped in shown:
        brokers = f"broker {_brokers(stopped)}" if len(stopped) == 1 else f"brokers {_brokers(stopped)}"
        yield (
            f"{topic}-{partition} loses less if broker {leader} leads, which is not certain: keep {brokers} stopped, "
            f"start {leader}, and if it does not lead, "
            f"kafka-leader-election.sh --election-type unclean --topic {topic} --partition {partition}"
        )
    if len(shown) < len(summary.chosen):
        yield f"… and {len(summary.chosen) - len(shown):,} more such partitions (--full)"


def partition_lines(partition: PartitionReplicas) -> Iterator[str]:
    """Yield lines on a partition; those after the first are indented."""
    if partition.topic == METADATA_TOPIC:
        majority = f"{partition.minInSyncReplicas} of which elect a controller"
        majority = majority if len(partition.brokers) > 1 else "the only one"
        yield f"{partition.name}: voters {_brokers(partition.brokers)}, {majority}"
        yield from _replica_lines(partition)
        return
    leader = "no leader" if partition.leader is None else f"leader {partition.leader}"
    line = f"{partition.name}: {leader} in epoch {partition.leaderEpoch}, ISR {_brokers(partition.isr)}"
    if partition.eligibleLeaderReplicas:
        line += f", ELR {_brokers(partition.eligibleLeaderReplicas)}"
    unclean = "enabled" if partition.uncleanLeaderElection else "disabled"
    yield f"{line}; min.insync.replicas {partition.minInSyncReplicas}, unclean elections {unclean}"
    yield from _replica_lines(partition)


def _replica_lines(partition: PartitionReplicas) -> Iterator[str]:
    for replica in partition.given:
        yield f"  {_replica_text(replica)}"
    if partition.notGiven:
        yield f"  disks of {_brokers(partition.notGiven)} were not given"
    for outcome in partition.outcomes:
        if outcome.allowed or outcome.leader == partition.best:
            yield from _outcome_lines(outcome, is_metadata=partition.topic == METADATA_TOPIC)
    if not partition.firstLeads and len(partition.expected) > 1 and partition.topic != METADATA_TOPIC:
        yield "  of these, the one that the controllers fence last leads: the order of starting does not decide that"
    for broker in partition.saved:
        yield f"  what broker {broker} loses at startup, it fetches again from each leader that may be elected"
    for note in partition.notes:
        yield f"  {note}"


def _brokers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _replica_text(replica: GivenReplica) -> str:
    line = f"node {replica.broker}: "
    if replica.missing:
        line += "no directory, it creates an empty log"
        line += "" if replica.highWatermark is None else f"; high watermark {replica.highWatermark}"
        return line + ("" if replica.starts else "; it does not start")
    if replica.logEndOffset is None:
        return line + "how its log is loaded is unknown"
    line += f"log end offset {replica.logEndOffset}"
    line += "" if replica.leaderEpoch is None else f" in epoch {replica.leaderEpoch}"
    line += "" if replica.highWatermark is None else f", high watermark {replica.highWatermark}"
    return line + ("" if replica.starts else "; it does not start")


def _outcome_lines(outcome: LeaderOutcome, *, is_metadata: bool) -> Iterator[str]:
    how = ELECTED[outcome.election] + ("" if outcome.allowed else ", by you alone")
    lost = [loss for loss in outcome.replicas if loss.lost]
    if not lost:
        yield f"  if {outcome.leader} leads ({how}): nothing is lost"
    elif len(lost) == 1:
        yield f"  if {outcome.leader} leads ({how}): {_loss_text(lost[0], is_metadata=is_metadata)}"
    elif is_metadata:
        yield f"  if {outcome.leader} leads ({how}):"
        yield from (f"    {_loss_text(loss, is_metadata=True)}" for loss in lost)
    else:
        yield f"  if {outcome.leader} leads ({how}): {_amount(outcome.lost, outcome.acknowledged)} lost"
        yield from (f"    {_loss_text(loss, is_metadata=False)}" for loss in lost)
    if outcome.strays:
        names = [f"{topic}-{partition} on {broker}" for broker, topic, partition in outcome.strays]
        yield f"    directories become stray: {', '.join(names[:MAX_STRAYS])}" + (
            f" and {len(names) - MAX_STRAYS:,} more" if len(names) > MAX_STRAYS else ""
        )


def _loss_text(loss: ReplicaLoss, *, is_metadata: bool) -> str:
    first, last = loss.firstOffset or 0, (loss.firstOffset or 0) + loss.lost - 1
    where = {
        "startup": "its startup truncates them",
        "logStart": f"it starts again at the leader's log start offset {loss.truncatesTo}",
    }.get(loss.by, f"it truncates to {'an unknown offset' if loss.truncatesTo is None else loss.truncatesTo}")
    size = "" if not loss.bytes else f", {size_text(loss.bytes)}"
    records = "" if loss.records is None else f" ({count_text(loss.records, 'record')}{size})"
    line = f"{loss.broker} loses offsets {first}..{last}{records}: {where}"
    if is_metadata:
        committed = (
            "which may have been committed" if loss.possiblyAcknowledged else "which change nothing, or were abandoned"
        )
        return f"{line}; {committed}"
    rest = loss.lost - loss.acknowledged - loss.possiblyAcknowledged
    parts = []
    if loss.acknowledged:
        parts.append(f"{loss.acknowledged:,} below a high watermark, so acknowledged")
    if loss.possiblyAcknowledged:
        parts.append(f"{loss.possiblyAcknowledged:,} on enough replicas to be acknowledged with acks=all")
    if rest:
        parts.append(f"{rest:,} acknowledged with acks=1 at most")
    return f"{line}; {', '.join(parts)}"
