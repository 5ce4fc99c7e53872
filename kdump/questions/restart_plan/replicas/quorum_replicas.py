"""The metadata logs of several controllers together: which voters can be elected, and what the others lose then.

A voter grants its vote to a candidate whose log is at least as long as its own: a higher last epoch, or the same one
and no lower end offset. What a majority of the voters has is committed.

Source: KafkaRaftClient.handleVoteRequest, LogOffsetMetadata and EpochElection (4.3.1), KIP-595.
"""

from __future__ import annotations

from kdump.log.internal_topics import METADATA_TOPIC
from kdump.questions.restart_plan.answer import EXIT, QuorumVoter, RestartPlan
from kdump.questions.restart_plan.replicas.replica_answer import LeaderOutcome, PartitionReplicas
from kdump.questions.restart_plan.replicas.replica_losses import CountRecords, Replica, replica_losses, replica_of

QUORUM = "quorum"
"""Why a voter is elected: a majority can vote for it."""


def quorum_replicas(plans: dict[int, RestartPlan], count: CountRecords) -> PartitionReplicas | None:
    """Return what the voters' metadata logs lose, for each voter that may be elected; None if the given disks are those
    of fewer than two voters."""
    logs = {node: replica for node, plan in plans.items() if (replica := _metadata_log(node, plan)) is not None}
    voters = _voters(plans, logs)
    replicas = [log for node, log in logs.items() if _is_voter(plans[node], node, voters)]
    if len(voters) < 2 or len(replicas) < 2:
        return None
    majority = len(voters) // 2 + 1
    here = {replica.broker for replica in replicas}
    absent = [voter.voterId for voter in voters if voter.voterId not in here]
    able = [replica for replica in replicas if replica.starts and replica.after is not None]
    emptied = sum(replica.before.end == 0 for replica in replicas)
    outcomes = []
    for leader in sorted(able, key=_length, reverse=True):
        votes = sum(_length(log) <= _length(leader) for log in able) + len(absent)
        if leader.after is None or votes < majority:
            continue
        losses, totals = replica_losses(leader, leader.after, replicas, majority - len(absent) - emptied, count)
        halts = bool(plans[leader.broker].refusedAt)
        outcomes.append(LeaderOutcome(leader.broker, QUORUM, True, *totals, losses, halts))
    return PartitionReplicas(
        topic=METADATA_TOPIC,
        partition=0,
        leaderEpoch=max((log.after.epochs[-1][0] for log in able if log.after and log.after.epochs), default=0),
        brokers=[voter.voterId for voter in voters],
        minInSyncReplicas=majority,
        given=[replica.given(in_sync=True, without_epochs=0) for replica in replicas],
        outcomes=outcomes,
        notes=[
            *_notes(voters, able, absent, majority, emptied),
            *_halting(plans, outcomes, absent),
            *_forgotten(plans),
        ],
    )


def _metadata_log(node: int, plan: RestartPlan) -> Replica | None:
    log = plan.metadata_log
    return None if log is None else replica_of(node, log, starts=plan.votes)


def _length(replica: Replica) -> tuple[int, int]:
    """Return last epoch and end offset, by which voters compare logs."""
    after = replica.after
    if after is None:
        return -1, -1
    return (after.epochs[-1][0] if after.epochs else 0), after.end


def _voters(plans: dict[int, RestartPlan], logs: dict[int, Replica]) -> list[QuorumVoter]:
    """Return the voters that the longest log states."""
    for node in sorted(logs, key=lambda node: _length(logs[node]), reverse=True):
        quorum = plans[node].quorum
        if quorum is not None and quorum.voters:
            return quorum.voters
    return []


def _is_voter(plan: RestartPlan, node: int, voters: list[QuorumVoter]) -> bool:
    own = None if plan.metadata_directory is None else plan.metadata_directory.directoryId
    return any(
        voter.voterId == node and (voter.voterDirectoryId is None or own is None or voter.voterDirectoryId == own)
        for voter in voters
    )


def _notes(voters: list[QuorumVoter], able: list[Replica], absent: list[int], majority: int, emptied: int) -> list[str]:
    notes = []
    if len(able) + len(absent) < majority:
        notes.append(
            f"only {len(able)} of {len(voters)} voters can start with these disks, and {majority} are needed: "
            "no controller is elected, and no broker starts serving"
        )
    if emptied:
        notes.append(
            f"{emptied} of the voters has no metadata at all: it votes for any candidate, and may have had committed "
            "records that only one other voter has"
        )
    return notes


def _halting(plans: dict[int, RestartPlan], outcomes: list[LeaderOutcome], absent: list[int]) -> list[str]:
    """Return a note if nodes have a record that no controller can apply: who is elected commits its log."""
    halting = [str(outcome.leader) for outcome in outcomes if outcome.halts]
    others = [str(outcome.leader) for outcome in outcomes if not outcome.halts]
    record = "a metadata record that no controller can apply"
    if halting and not others:
        return [f"each voter that can be elected has {record}: one after the other halts there"]
    if halting:
        advice = f"start {' and '.join(others)} first: if {' or '.join(halting)} is elected, it commits {record}, and "
        return [f"{advice}one after the other halts there; another leader's log replaces it"]
    return [
        f"{node} has {record}, and is not elected: it starts, and the leader's log replaces it"
        for node, plan in plans.items()
        if not absent and _is_replaced(node, plan, outcomes)
    ]


def _is_replaced(node: int, plan: RestartPlan, outcomes: list[LeaderOutcome]) -> bool:
    """Return True if a node starts with a record that it cannot apply, and truncates it whoever is elected."""
    if not plan.votes or not plan.refusedAt or not outcomes:
        return False
    ends = [loss.truncatesTo for outcome in outcomes for loss in outcome.replicas if loss.broker == node]
    return len(ends) == len(outcomes) and all(
        offset is not None and end is not None and end <= offset for end in ends for offset in plan.refusedAt
    )


def take_back_stops(plans: dict[int, RestartPlan], quorum: PartitionReplicas) -> None:
    """Let the nodes start that halt only at records that the log of any voter that may be elected replaces. A voter
    that was not given may be elected with them."""
    if quorum.notGiven:
        return
    for node, plan in plans.items():
        if _is_replaced(node, plan, quorum.outcomes):
            leaders = " or ".join(str(outcome.leader) for outcome in quorum.outcomes)
            stops = [stop for stop in plan.stops if stop.kind == EXIT]
            plan.stops = [stop for stop in plan.stops if stop.kind != EXIT]
            plan.assumptions += [
                f"node {leaders} is elected, whose log replaces what this node cannot apply: {stop.message}"
                for stop in stops
            ]


def _forgotten(plans: dict[int, RestartPlan]) -> list[str]:
    """Return a note for each node that another one names as the leader of an epoch that it does not know of itself
    (KafkaRaftClient.maybeTransition throws an IllegalStateException)."""
    notes = []
    for node, plan in plans.items():
        own = plan.quorum
        named = [
            (other.quorum.epoch, name)
            for name, other in plans.items()
            if name != node and other.quorum is not None and other.quorum.leaderId == node
        ]
        if own is None or own.isVoter is False or not named:
            continue
        epoch, name = max(named)
        if own.epoch < epoch or (own.epoch == epoch and own.leaderId != node):
            notes.append(
                f"node {node} exits if it hears from node {name}, which names it as the leader of epoch {epoch}: its "
                "own quorum-state does not say so; start it again when another leader has been elected"
            )
    return notes
