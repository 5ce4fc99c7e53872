"""The metadata logs of several controllers together: which voters can be elected, and what the others, and the brokers,
lose then.

A voter grants its vote to a candidate whose log is at least as long as its own: a higher last epoch, or the same one
and no lower end offset. A voter of a dynamic quorum whose directory.id is another one is no voter; one without a log
votes for anyone. A voter that was not given votes unless a log shows that it led a later epoch than the candidate has.

What the longest of all logs has may have been committed, whoever has it: a voter that lacks it may be an older copy.
What it does not have was given up when the leader of its last epoch was elected, or committed in a later epoch, if a
disk shows that no log may have the records of that any more.

Source: KafkaRaftClient.handleVoteRequest and maybeTransition, QuorumState, UnattachedState, VoterSet (4.3.1), KIP-595.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdump.log.internal_topics import METADATA_TOPIC
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, RESIGNED, PartitionPlan, QuorumVoter, RestartPlan
from kdump.questions.restart_plan.replicas.replica_answer import LeaderOutcome, PartitionReplicas, rank
from kdump.questions.restart_plan.replicas.replica_losses import CountRecords, Replica, replica_losses, replica_of

QUORUM = "quorum"
"""Why a voter is elected: a majority can vote for it."""

Length = tuple[int, int]
"""Last epoch and end offset, by which voters compare logs."""
Changes = Callable[[str, int, int], bool]
"""Returns whether a record of a metadata log between two offsets changes anything, or may."""


class Quorum(NamedTuple):
    """The voters of a cluster. `members`: the logs of those whose disks were given; `replaced`: those whose disks were
    given, with another directory.id; `absent`: those of which none was given; `observers`: the logs of other nodes."""

    voters: list[QuorumVoter]
    members: dict[int, Replica]
    replaced: list[int]
    absent: list[int]
    observers: dict[int, Replica]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def knows_voters(self, plan: RestartPlan) -> bool:
        """Return whether a voter knows that it is one: with kraft.version 1 only from its own metadata."""
        is_dynamic = any(voter.voterDirectoryId is not None for voter in self.voters)
        return not is_dynamic or (plan.quorum is not None and bool(plan.quorum.voters))

    @property
    def able(self) -> list[Replica]:
        """The voters that take part in elections."""
        return [log for log in self.members.values() if log.starts and log.after is not None]

    @property
    def longest(self) -> Replica | None:
        """The longest log of all nodes."""
        return max((*self.members.values(), *self.observers.values()), key=_length, default=None)


def quorum_of(plans: dict[int, RestartPlan]) -> Quorum | None:
    """Return the quorum; None if no file states the voters, or the disks of fewer than two of them were given, and not
    of all."""
    logs = {node: replica for node, plan in plans.items() if (replica := _metadata_log(node, plan)) is not None}
    voters = _voters(plans, logs)
    members, replaced = {}, []
    for voter in voters:
        node = voter.voterId
        if node not in plans:
            continue
        if _is_voter(plans[node], voter):
            members[node] = logs.get(node) or _empty_log(node, plans[node])
        else:
            replaced.append(node)
    absent = [voter.voterId for voter in voters if voter.voterId not in plans]
    if not voters or (absent and len(members) + len(replaced) < 2):
        return None
    observers = {node: log for node, log in logs.items() if node not in members and node not in replaced}
    return Quorum(voters, members, replaced, absent, observers)


def quorum_replicas(
    plans: dict[int, RestartPlan], count: CountRecords, changes: Changes = lambda path, first, end: True
) -> PartitionReplicas | None:
    """Return what the metadata logs lose, for each voter that may be elected; None if quorum_of returns None."""
    quorum = quorum_of(plans)
    longest = None if quorum is None else quorum.longest
    if quorum is None or longest is None:
        return None
    able, majority, is_late = quorum.able, quorum.majority, may_lack_epoch(plans, quorum, longest)
    bounds = {node: _least_length(plans, node) for node in quorum.absent}
    outcomes = []
    for leader in sorted(able, key=_length, reverse=True):
        votes = sum(_length(log) <= _length(leader) for log in able)
        votes += sum(bound <= _length(leader) for bound in bounds.values())
        if leader.after is None or votes < majority or not quorum.knows_voters(plans[leader.broker]):
            continue
        led = leader.after
        first = led.common_end(longest.before)
        is_changed = first < longest.before.end and changes(longest.plan.path, first, longest.before.end)

        def held(replica: Replica, first: int = first, is_changed: bool = is_changed) -> int:
            end, last = replica.before.common_end(longest.before), replica.before.end
            if is_late and end < last and changes(replica.plan.path, end, last):
                return last
            return end if is_changed else min(first, end)

        behind = [log for log in quorum.observers.values() if led.common_end(log.before) < log.before.end]
        losses, totals = replica_losses(leader, led, [*quorum.members.values(), *behind], held, count)
        losses = [
            loss._replace(truncatesTo=None) if _epoch_kept(plans, quorum, loss.broker, leader.broker) else loss
            for loss in losses
        ]
        halts = bool(plans[leader.broker].refusedAt)
        outcomes.append(LeaderOutcome(leader.broker, QUORUM, True, *totals, losses, halts))
    losing = {loss.broker for outcome in outcomes for loss in outcome.replicas}
    replaced = [_empty_log(node, plans[node]) for node in quorum.replaced]
    shown = [*quorum.members.values(), *replaced, *(log for node, log in quorum.observers.items() if node in losing)]
    return PartitionReplicas(
        topic=METADATA_TOPIC,
        partition=0,
        leaderEpoch=max((log.after.epochs[-1][0] for log in able if log.after and log.after.epochs), default=0),
        brokers=[voter.voterId for voter in quorum.voters],
        minInSyncReplicas=majority,
        given=[replica.given(in_sync=replica.broker in quorum.members, without_epochs=0) for replica in shown],
        outcomes=outcomes,
        _longest=longest.broker,
        notes=[
            *_notes(quorum),
            *_older_copies(plans, quorum, longest),
            *_halting(plans, outcomes, quorum.absent),
            *(problem.title for node in plans for problem in exits_for_leader(plans, quorum, outcomes, node)),
        ],
    )


def first_voters(quorum: Quorum, outcomes: list[LeaderOutcome]) -> list[int]:
    """Return the voters to start first, a majority of which the best outcome's leader is elected for certain; empty if
    it does not matter, or if there is no such majority."""

    def cost(outcome: LeaderOutcome) -> tuple[object, ...]:  # not what was never committed
        return rank(outcome, longest)[:-1]

    longest = None if quorum.longest is None else quorum.longest.broker
    best = min(outcomes, key=lambda each: rank(each, longest), default=None)
    if best is None or all(cost(each) == cost(best) for each in outcomes):
        return []
    leader = quorum.members[best.leader]
    worse = {each.leader for each in outcomes if cost(each) > cost(best)}
    others = [
        log
        for log in sorted(quorum.able, key=_length, reverse=True)
        if log is not leader and (_length(log) < _length(leader) or log.broker not in worse)
    ]
    chosen = [leader, *others][: quorum.majority]
    return [log.broker for log in chosen] if len(chosen) == quorum.majority else []


def _metadata_log(node: int, plan: RestartPlan) -> Replica | None:
    log = plan.metadata_log
    return None if log is None else replica_of(node, log, starts=plan.votes)


def _empty_log(node: int, plan: RestartPlan) -> Replica:
    """Return the log that a voter without one starts with."""
    directory = plan.metadata_directory or plan.directories[0]
    log = PartitionPlan(METADATA_TOPIC, 0, f"{directory.path}/{METADATA_TOPIC}-0", directory.path, "", clean=False)
    log.missing = True
    return replica_of(node, log, starts=plan.votes)


def _length(replica: Replica) -> Length:
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


def _is_voter(plan: RestartPlan, voter: QuorumVoter) -> bool:
    own = None if plan.metadata_directory is None else plan.metadata_directory.directoryId
    return voter.voterDirectoryId is None or own is None or voter.voterDirectoryId == own


def _least_length(plans: dict[int, RestartPlan], node: int) -> Length:
    """Return how long the log of a voter that was not given is at least: it had all that others have of the last epoch
    that it led."""
    least = (-1, -1)
    for plan in plans.values():
        log, quorum = plan.metadata_log, plan.quorum
        if quorum is not None and quorum.leaderId == node:
            ends = quorum.epoch == (log.lastEpoch if log is not None else 0) and log is not None
            least = max(least, (quorum.epoch, (log.logEndOffset or 0) if ends and log is not None else 0))
    return least


def _notes(quorum: Quorum) -> Iterator[str]:
    able, absent, majority = quorum.able, quorum.absent, quorum.majority
    if quorum.replaced:
        names = " and ".join(map(str, quorum.replaced))
        yield (
            f"not a voter any more: {names}; the disk has another directory.id than the metadata states, as after it "
            "was formatted"
        )
    if len(able) + len(absent) < majority:
        yield (
            f"only {len(able)} of {len(quorum.voters)} voters can start with these disks, and {majority} are needed: "
            "no controller is elected, and no broker starts serving"
        )
    emptied = sum(replica.before.end == 0 for replica in quorum.members.values())
    if emptied:
        yield (
            f"{emptied} of the voters has no metadata at all: it votes for any candidate, and may have had committed "
            "records that only one other voter has"
        )


def _older_copies(plans: dict[int, RestartPlan], quorum: Quorum, longest: Replica) -> Iterator[str]:
    """Yield a note if too few voters know of the last epoch: its leader had the votes of a majority, each of which
    wrote the epoch to quorum-state before."""
    epoch = _length(longest)[0]
    behind = [node for node in quorum.members if _known_epoch(plans[node]) < epoch]
    if behind and len(quorum.voters) - len(quorum.replaced) - len(behind) < quorum.majority:
        names = " or ".join(map(str, behind))
        yield (
            f"the disk of {names} is an older copy: a majority voted in epoch {epoch}, and too few quorum-states "
            "have it"
        )


def may_lack_epoch(plans: dict[int, RestartPlan], quorum: Quorum, longest: Replica) -> bool:
    """Return True if a disk shows that records of a later epoch than any log has may be lost: a voter has nothing,
    was replaced or is an older copy, or a leader of such an epoch is known."""
    led = [plan.quorum.epoch for plan in plans.values() if plan.quorum is not None and plan.quorum.leaderId is not None]
    is_emptied = any(replica.before.end == 0 for replica in quorum.members.values())
    is_led = max(led, default=0) > _length(longest)[0]
    return is_emptied or is_led or bool(quorum.replaced) or any(_older_copies(plans, quorum, longest))


def _known_epoch(plan: RestartPlan) -> int:
    return 0 if plan.quorum is None else plan.quorum.epoch


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


def exits_for_leader(
    plans: dict[int, RestartPlan], quorum: Quorum, outcomes: list[LeaderOutcome], node: int
) -> Iterator[Problem]:
    """Yield why a node exits when it hears who leads (KafkaRaftClient.maybeTransition throws an IllegalStateException),
    or does not follow: another one names it as the leader of an epoch that it does not know of itself; or its own
    quorum-state names another leader of an epoch that the voters have not reached."""
    own = plans[node].quorum
    named = [
        (other.quorum.epoch, name)
        for name, other in plans.items()
        if name != node and other.quorum is not None and other.quorum.leaderId == node
    ]
    if own is not None and named and node in {voter.voterId for voter in quorum.voters}:
        epoch, name = max(named)
        if own.epoch < epoch or (own.epoch == epoch and own.leaderId != node):
            yield Problem("startup-forgotten-leader", {"node": node, "other": name, "epoch": epoch})
    resigning = [log.broker for log in quorum.able if (led := plans[log.broker].quorum) and led.state == RESIGNED]
    if node in {voter.voterId for voter in quorum.voters} and resigning and not quorum.knows_voters(plans[node]):
        # Who led resigns from its epoch by a request to the address of each voter, without its own.
        yield Problem("startup-forgotten-leader", {"node": node, "other": resigning[0]}, case="resigned")
    yield from _epochs_again(plans, quorum, outcomes, node)
    yield from _epochs_kept(plans, quorum, outcomes, node)
    if node in quorum.observers and own is not None and own.leaderId is not None:
        firsts = {each.leader: _epoch_without(plans, quorum, each.leader, node) for each in outcomes}
        elected = [leader for leader, first in firsts.items() if first is not None and first <= own.epoch]
        leaders = " or ".join(str(leader) for leader in elected if leader != own.leaderId)
        if leaders:
            log = plans[node].metadata_log
            state = "quorum-state" if log is None else f"{log.path}/quorum-state"
            values = {"node": node, "leaders": leaders, "leader": own.leaderId, "epoch": own.epoch, "state": state}
            yield Problem("startup-other-leader", values)


def _epochs_again(
    plans: dict[int, RestartPlan], quorum: Quorum, outcomes: list[LeaderOutcome], node: int
) -> Iterator[Problem]:
    """Yield a problem if others can elect a leader before a voter starts, this node or another one, that knows another
    leader of that epoch: who hears of the other first exits. If its log has a later epoch, it is elected, and truncates
    the others below their high watermarks: these exit (KafkaRaftClient.handleFetchResponse)."""
    for other in quorum.able:
        own = plans[other.broker].quorum
        rest = {log.broker for log in quorum.able if log is not other}
        if own is None or own.leaderId is None or node not in {*rest, other.broker}:
            continue
        firsts = {
            each.leader: first
            for each in outcomes
            if each.leader != other.broker
            and (first := _epoch_without(plans, quorum, each.leader, other.broker)) is not None
            and first <= own.epoch
        }
        longer = [leader for leader, first in firsts.items() if first < _length(other)[0]]
        same = [leader for leader in firsts if leader not in (own.leaderId, *longer)]
        longer = longer if node in rest else []
        if leaders := longer or same:
            values: dict[str, object] = {"node": node, "other": other.broker, "leader": own.leaderId}
            either = (node, other.broker) if node in rest else (node, *sorted(rest))
            values |= {"epoch": own.epoch, "either": " or ".join(map(str, either))}
            values["leaders"] = " or ".join(map(str, leaders))
            yield Problem("startup-epoch-again", values, {"voter": True}, "longer" if longer else "")
            return


def _epochs_kept(
    plans: dict[int, RestartPlan], quorum: Quorum, outcomes: list[LeaderOutcome], node: int
) -> Iterator[Problem]:
    """Yield a problem if others can elect a leader without this node again in an epoch that it has of the same one."""
    kept = {each.leader: epoch for each in outcomes if (epoch := _epoch_kept(plans, quorum, node, each.leader))}
    if kept:
        values: dict[str, object] = {"node": node, "other": node, "epoch": min(kept.values())}
        values["leaders"] = " or ".join(map(str, kept))
        log = plans[node].metadata_log
        values["folder"] = "" if log is None else log.path
        yield Problem("startup-epoch-again", values, {"voter": node in quorum.members}, "kept")


def _epoch_kept(plans: dict[int, RestartPlan], quorum: Quorum, node: int, leader: int) -> int | None:
    """Return an epoch of which a node has records, and in which others can elect the leader again; None if there is
    none. Logs are compared by where an epoch ends (MetadataLog.validateOffsetAndEpoch): up to where the epoch then ends
    on the leader, the node keeps other records."""
    log = quorum.members.get(node) or quorum.observers.get(node)
    own = plans[node].quorum
    if log is None or own is None or node == leader:
        return None
    first = _epoch_without(plans, quorum, leader, node)
    same = (entry.epoch for entry in log.before.epochs if entry.epoch < own.epoch or own.leaderId == leader)
    return None if first is None else next((epoch for epoch in same if epoch >= first), None)


def _epoch_without(plans: dict[int, RestartPlan], quorum: Quorum, leader: int, node: int) -> int | None:
    """Return the first epoch in which others can elect the leader before a node starts; None if they cannot. Before one
    that is no voter, any majority may."""
    epochs = []
    for down in [node] if node in quorum.members else [None, *quorum.members]:
        rest = [log for log in quorum.able if log.broker != down]
        votes = sum(_length(log) <= _length(quorum.members[leader]) for log in rest)
        if quorum.members[leader] in rest and votes >= quorum.majority:
            epochs.append(_first_epoch(plans, rest, leader))
    return min(epochs, default=None)


def _first_epoch(plans: dict[int, RestartPlan], able: list[Replica], leader: int) -> int:
    """Return the first epoch in which a voter can be elected by these: one that led the last one resigns from it, and
    begins with the next but one."""
    known = max(_known_epoch(plans[log.broker]) for log in able)
    own = plans[leader].quorum
    return known + 1 + (own is not None and own.state == RESIGNED and own.epoch == known)
