"""The plan of several brokers: which replicas lose what, compared with a naive model of replicas as lists of records,
and with the disks of a real cluster after an unclean election."""

from __future__ import annotations

import json
import random
import re
import shutil
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest

import kdump
from kdump.all_answers import TYPES
from kdump.io.errors import SourceError
from kdump.kafka.follower_truncation import EpochLineage
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.questions.restart_plan.answer import (
    EXIT,
    DirectoryPlan,
    PartitionPlan,
    Quorum,
    QuorumVoter,
    RestartPlan,
    failure,
)
from kdump.questions.restart_plan.replicas.leader_candidates import ElectionRules, candidates
from kdump.questions.restart_plan.replicas.quorum_replicas import (
    first_voters,
    may_lack_epoch,
    quorum_of,
    quorum_replicas,
    take_back_stops,
)
from kdump.questions.restart_plan.replicas.replica_answer import LeaderOutcome, PartitionReplicas, rank
from kdump.questions.restart_plan.replicas.replica_losses import (
    Counted,
    Replica,
    empty_replica,
    partition_replicas,
    replica_of,
)
from kdump.questions.restart_plan.replicas.restart_cluster import restart_cluster, start_orders
from kdump.state.metadata_image import PartitionRegistration
from tests import command
from tests.conftest import DISKS, sample, seeded
from tests.each_case import each_case
from tests.questions.restart_plan import quorum_model
from tests.questions.restart_plan.cluster_model import NOBODY, Failure, failed, started

CLUSTER = [str(DISKS / f"kafka-4.3/clean-{node}") for node in range(3)]
BROKERS = (1, 2, 3)
Log = list[int]
"""The epoch of each record, by offset: in one epoch, one broker appends."""
run = partial(command.run, "restart-plan")


def of_ledger(paths: list[str]) -> PartitionReplicas:
    return next(each for each in restart_cluster(paths).replicas if each.topic == "ledger")


def epochs(log: Log) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(epoch, at) for at, epoch in enumerate(log) if at == 0 or log[at - 1] != epoch)


def plan(log: Log, mark: int | None = None, *, clean: bool = True) -> PartitionPlan:
    found = PartitionPlan("t", 0, "d/t-0", "d", "", clean)
    found.logStartOffset, found.logEndOffset, found.highWatermark = 0, len(log), mark
    found.epochsBefore = found.epochsAfter = epochs(log)
    return found


def replicas(logs: dict[int, Log], marks: dict[int, int]) -> list[Replica]:
    return [replica_of(broker, plan(log, marks.get(broker)), starts=True) for broker, log in logs.items()]


def registration(leader: int = -1, isr: tuple[int, ...] = BROKERS, **more: tuple[int, ...]) -> PartitionRegistration:
    return PartitionRegistration(BROKERS, (), leader, 9, isr, **more)


def outcomes(
    logs: dict[int, Log], marks: dict[int, int] | None = None, least: int = 1, isr: tuple[int, ...] = BROKERS
) -> dict[int, LeaderOutcome]:
    found = partition_replicas(
        "t",
        0,
        registration(isr=isr),
        ElectionRules(least, unclean=False, has_elr=False),
        replicas(logs, marks or {}),
        lambda path, first, end: Counted(end - first),
    )
    return {each.leader: each for each in found.outcomes}


def history(source: random.Random) -> tuple[dict[int, Log], set[tuple[int, int]]]:
    """Return replicas after random elections, and the committed records as (offset, epoch). Whoever is elected appends,
    some follow and truncate as a set of (offset, epoch) says; a clean follower never has what the leader lacks."""
    logs: dict[int, Log] = {broker: [] for broker in BROKERS}
    committed: set[tuple[int, int]] = set()
    for epoch in range(source.randint(1, 6)):
        leader = source.choice(BROKERS)
        logs[leader] = logs[leader] + [epoch] * source.randint(0, 8)
        led = logs[leader]
        following = [each for each in BROKERS if each != leader and source.random() < 0.5]
        for each in following:
            same = next((at for at, pair in enumerate(zip(logs[each], led)) if pair[0] != pair[1]), None)
            same = min(len(logs[each]), len(led)) if same is None else same
            logs[each] = led[: source.randint(same, len(led))]
        if following:
            end = min(len(logs[each]) for each in (leader, *following))
            committed |= {(at, led[at]) for at in range(end)}
    return logs, committed


@each_case("seed", range(60))
def test_what_is_lost_is_what_a_model_loses(seed: int) -> None:
    source = seeded(seed)
    logs, _ = history(source)
    marks = {broker: source.randint(0, len(log)) for broker, log in logs.items()}
    every = {(at, epoch) for log in logs.values() for at, epoch in enumerate(log)}
    committed = {(at, logs[broker][at]) for broker, mark in marks.items() for at in range(mark)}
    found = outcomes(logs, marks)
    for leader, outcome in found.items():
        lost = every - set(enumerate(logs[leader]))
        assert (outcome.lost, outcome.acknowledged) == (len(lost), len(lost & committed)), (leader, logs)
        by_broker = {loss.broker: loss for loss in outcome.replicas}
        for broker in set(BROKERS) - {leader}:
            own = set(enumerate(logs[broker])) - set(enumerate(logs[leader]))
            assert (by_broker[broker].lost if broker in by_broker else 0) == len(own)
            if own:
                assert by_broker[broker].truncatesTo == min(own)[0]


@each_case("least", [1, 2, 3])
def test_only_what_enough_replicas_have_can_be_acknowledged(least: int) -> None:
    outcome = outcomes({1: [0] * 10, 2: [0] * 7, 3: [0] * 4}, {1: 3}, least)[3]
    had = {1: 10, 2: 7, 3: 4}[least]
    assert (outcome.lost, outcome.acknowledged, outcome.possiblyAcknowledged) == (6, 0, had - 4)


def test_a_disk_that_was_not_given_may_have_everything() -> None:
    outcome = outcomes({1: [0] * 10, 3: [0] * 4}, {}, 2)[3]
    assert (outcome.lost, outcome.possiblyAcknowledged) == (6, 6)


def test_what_a_startup_truncates_is_fetched_again() -> None:
    short = plan([0] * 4)
    whole = replica_of(2, plan([0] * 10, 10), starts=True)
    damaged = replica_of(1, short, starts=True)._replace(before=EpochLineage((EpochEntry(0, 0),), 0, 10, 10))
    found = partition_replicas(
        "t", 0, registration(isr=(1, 2)), ElectionRules(1, False, False), [damaged, whole], lambda *_: Counted(6)
    )
    by_leader = {each.leader: each for each in found.outcomes}
    assert by_leader[2].lost == 0
    assert (by_leader[1].lost, by_leader[1].acknowledged) == (6, 6)
    assert [(each.broker, each.by) for each in by_leader[1].replicas] == [(1, "startup"), (2, "epochs")]
    assert found.best == 2


def test_a_missing_directory_is_an_empty_log() -> None:
    gone = plan([])
    gone.missing, gone.logEndOffset, gone.highWatermark = True, None, 10
    lost = replica_of(1, gone, starts=True)
    assert lost.after is not None
    assert (lost.after.end, lost.after.common_end(plan_lineage([0] * 10))) == (0, 0)


def plan_lineage(log: Log) -> EpochLineage:
    return replica_of(1, plan(log), starts=True).before


@each_case(
    "partition, rules, crashed, expected, by_order",
    [
        (registration(2, (2, 3)), (1, False, False), {1, 2}, {2: "isr", 3: "isr"}, False),
        (registration(4, (2, 3, 4)), (1, False, False), {1, 2}, {4: "current"}, True),
        (registration(-1, (3,)), (1, True, False), set(), {3: "isr", 1: "unclean", 2: "unclean"}, True),
        (registration(-1, (), eligibleLeaderReplicas=(2, 3)), (2, False, True), set(), {2: "elr", 3: "elr"}, True),
        (registration(-1, (1,), eligibleLeaderReplicas=(2,)), (2, False, True), set(), {1: "isr", 2: "elr"}, True),
        (registration(1, (1, 2, 3)), (2, False, True), set(), {1: "isr", 2: "isr", 3: "isr"}, False),
        (registration(-1, (1,), eligibleLeaderReplicas=(2,)), (2, False, True), {1}, {2: "elr"}, True),
        (registration(-1, (), lastKnownElr=(3,)), (2, False, True), {1, 2, 3}, {3: "lastKnownLeader"}, True),
        (registration(1, (1, 2)), (2, False, True), {1, 2}, {1: "lastKnownLeader", 2: "lastKnownLeader"}, False),
    ],
)
def test_who_may_lead(
    partition: PartitionRegistration,
    rules: tuple[int, bool, bool],
    crashed: set[int],
    expected: dict[int, str],
    by_order: bool,
) -> None:
    assert candidates(partition, ElectionRules(*rules), set(BROKERS), crashed) == (expected, by_order)


def test_the_order_is_that_with_which_least_is_lost() -> None:
    def of(costs: dict[int, int], first: bool = True) -> PartitionReplicas:
        found = [LeaderOutcome(leader, "isr", True, lost, lost, 0, []) for leader, lost in costs.items()]
        return PartitionReplicas(
            topic="t",
            partition=0,
            leaderEpoch=0,
            brokers=[1, 2, 3],
            minInSyncReplicas=1,
            firstLeads=first,
            given=[],
            outcomes=found,
            notes=[],
        )

    orders = start_orders([1, 2, 3], [of({1: 5, 2: 0}), of({1: 0, 3: 4}), of({3: 1})])
    assert (orders.best[0], orders.cost) == (2, (1, 0, 1))
    assert orders.worst == (10, 0, 10)
    fenced = start_orders([1, 2, 3], [of({1: 5, 2: 0}, first=False)])
    assert fenced.cost == fenced.worst == (5, 0, 5)
    many = start_orders(list(range(9)), [of({4: 0, 2: 9})])
    assert many.best[0] != 2
    assert many.cost == (0, 0, 0)


# --- the disks of a real cluster ---


def test_an_unclean_election() -> None:
    found = of_ledger(CLUSTER)
    assert (found.eligibleLeaderReplicas, found.uncleanLeaderElection) == ([2], True)
    by_leader = {each.leader: (each.election, each.lost, each.replicas[0].truncatesTo) for each in found.outcomes}
    assert by_leader == {2: ("elr", 20, 50), 1: ("unclean", 15, 50)}
    assert [loss.records for each in found.outcomes for loss in each.replicas] == [20, 15]


def test_text_and_json() -> None:
    text = run(*CLUSTER)
    assert text.exit_code == 1
    assert text.stdout.startswith("nodes 0, 1, 2 together: LOSES RECORDS: ledger-0 on broker 1 is truncated")
    assert text.stdout.count("STARTS normally") == 2
    assert text.stdout.count("what follows is in the plan of the nodes together") == 2
    found = [json.loads(line) for line in run(*CLUSTER, "--json").stdout.splitlines()]
    for each in found:
        assert list(each) == ["type", *(key.name for key in TYPES[each["type"]])]
    assert [each["nodeId"] for each in found if each["type"] == "restartPlan"] == [0, 1, 2]
    assert found[-1]["type"] == "restartCluster"
    assert found[-1]["startOrder"] == [1, 2]
    assert [each["topic"] for each in found if each["type"] == "restartReplicas"] == ["ledger"]


def test_without_metadata_nothing_is_compared(tmp_path: Path) -> None:
    for node in (1, 2):
        shutil.copytree(CLUSTER[node], tmp_path / str(node))
        shutil.rmtree(tmp_path / str(node) / "__cluster_metadata-0")
    found = run(tmp_path / "1", tmp_path / "2")
    assert "REPLICAS NOT COMPARED" in found.stdout.splitlines()[0]
    assert found.exit_code


def test_a_directory_of_no_node_next_to_two(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="states whose it is"):
        restart_cluster([*CLUSTER, str(tmp_path / "gone")])


def test_nodes_of_two_clusters_are_not_one_broker(tmp_path: Path) -> None:
    """It is doctor that compares their cluster.ids with their topics."""
    other = tmp_path / "2"
    shutil.copytree(CLUSTER[2], other)
    meta = other / "meta.properties"
    meta.write_text(re.sub("cluster.id=.*", "cluster.id=AAAAAAAAQACAAAAAAAAAAA", meta.read_text()))
    with pytest.raises(SourceError, match=f"{other} has cluster.id AAAAAAAAQACAAAAAAAAAAA: pass those of one cluster"):
        restart_cluster([CLUSTER[1], str(other)])


def test_a_wrong_node_id_does_not_make_another_broker(tmp_path: Path) -> None:
    """The cluster has registered the directory with node 1, so it is node 1's, whatever its meta.properties says."""
    first, second = (Path(shutil.copytree(CLUSTER[node], tmp_path / str(node))) for node in (1, 2))
    meta = second / "meta.properties"
    own = (first / "meta.properties").read_text()
    meta.write_text(own.replace("node.id=1", "node.id=7"))
    shutil.rmtree(second / "__cluster_metadata-0")
    found = restart_cluster([str(first), str(second)])
    assert list(found.plans) == [1]
    assert found.status == 3


def test_bundles_give_the_same(tmp_path: Path) -> None:
    bundles = []
    for node in range(3):
        assert not command.run("bundle", CLUSTER[node], "--out", tmp_path / f"b{node}").exit_code
        bundles.append(str(tmp_path / f"b{node}"))
    found = of_ledger(bundles)
    assert [each.cost for each in found.outcomes] == [each.cost for each in of_ledger(CLUSTER).outcomes]


@pytest.mark.every_disk
@each_case("loss, elected", [("directory", "elr"), ("entry", "elr"), ("format", "lastKnownLeader")])
def test_a_replica_of_which_a_broker_has_nothing_is_an_empty_log(loss: str, elected: str, tmp_path: Path) -> None:
    """Its directory is gone, its checkpoints do not name it either, or the disk was replaced and formatted: it may be
    elected, and the last copy is truncated to it."""
    paths = [shutil.copytree(CLUSTER[node], tmp_path / str(node)) for node in range(3)]
    second = Path(paths[2])
    shutil.rmtree(second / "ledger-0")
    if loss == "entry":
        for path in second.glob("re*-offset-checkpoint"):
            path.write_text("0\n0\n")
    elif loss == "format":
        meta = (second / "meta.properties").read_text().replace("oE8qcd_iUG6Hx2IlmSa0HQ", "yOs7EGq-SHmE9VUF0LhreQ")
        shutil.rmtree(second)
        second.mkdir()
        (second / "meta.properties").write_text(meta)
    found = run(*paths)
    assert found.exit_code
    first, order = found.stdout.splitlines()[:2]
    assert "LOSES RECORDS IN THE WRONG ORDER: ledger-0 on broker 1 is truncated from 70 to 0 if broker 2" in first
    assert order == "  start broker 1 first, and when it leads its partitions, 2"
    assert ("which it has registered and which was not given" in found.stdout) is (loss == "format")
    replicas = of_ledger(list(map(str, paths)))
    assert {each.leader: (each.election, each.lost) for each in replicas.outcomes} == {
        1: ("unclean", 0),
        2: (elected, 70),
    }
    assert replicas.outcomes[0].replicas[0].bytes
    (item,) = [each for each in kdump.doctor(paths).items if each.code == "startup-order"]
    assert "from 70 to 0 if broker 2 leads" in item.title
    assert item.actions[0].startswith("Start broker 1 first")


# --- controllers ---


def controller(log: Log, *, node: int, voters: tuple[int, ...] = BROKERS) -> RestartPlan:
    own = plan(log)
    own.topic = "__cluster_metadata"
    made = RestartPlan([DirectoryPlan("d", None, metadataLogDir=True, nodeId=node)], partitions=[own])
    of = [QuorumVoter(each, None) for each in voters]
    made.quorum = Quorum(0, of, node in voters, False, "unattached", None, max(log, default=0))
    return made


def quorum_with(logs: dict[int, Log]) -> PartitionReplicas:
    found = quorum_replicas({node: controller(log, node=node) for node, log in logs.items()}, lambda *_: Counted())
    assert found is not None
    return found


def test_a_controller_with_a_shorter_log_is_not_elected() -> None:
    found = quorum_with({1: [1] * 10, 2: [1] * 10, 3: [1] * 6})
    assert {each.leader: each.cost for each in found.outcomes} == {1: (0, 0, 0), 2: (0, 0, 0)}


def test_an_emptied_voter_lets_a_stale_one_win() -> None:
    found = quorum_with({1: [], 2: [1] * 6, 3: [1] * 10})
    assert {each.leader: (each.lost, each.possiblyAcknowledged) for each in found.outcomes} == {3: (0, 0), 2: (4, 4)}
    assert "no metadata at all" in found.notes[0]


def test_a_higher_epoch_wins_over_a_longer_log() -> None:
    found = quorum_with({1: [1] * 10, 2: [1] * 4 + [2], 3: [1] * 4})
    assert {each.leader for each in found.outcomes} == {1, 2}
    assert [each.lost for each in found.outcomes if each.leader == 2] == [6]


def test_a_voter_that_was_not_given_may_vote_for_anyone() -> None:
    assert {each.leader for each in quorum_with({1: [1] * 10, 2: [1] * 4}).outcomes} == {1, 2}


def test_an_observer_is_no_voter() -> None:
    plans = {1: controller([1] * 3, node=1, voters=(1, 2)), 2: controller([1] * 3, node=2, voters=(1, 2))}
    plans[3] = controller([1] * 9, node=3, voters=(1, 2))
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    assert [(each.broker, each.inSync) for each in found.given] == [(1, True), (2, True), (3, False)]
    assert [loss.broker for each in found.outcomes for loss in each.replicas if loss.possiblyAcknowledged] == [3, 3]


@each_case(
    "refused, outcomes, note",
    [
        ((1,), {1: True, 2: False, 3: False}, "start 2 and 3 first"),
        ((1, 2, 3), {1: True, 2: True, 3: True}, "each voter"),
    ],
)
def test_a_record_that_stops_controllers_counts_if_one_with_it_is_elected(
    refused: tuple[int, ...], outcomes: dict[int, bool], note: str
) -> None:
    plans = {node: controller([1] * (4 if node in refused else 3), node=node) for node in BROKERS}
    for node in refused:
        plans[node].stops.append(failure(EXIT, "startup-batch-corrupt", "", "", 0, 3, problem=""))
        plans[node].refusedAt.append(3)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    assert {each.leader: each.halts for each in found.outcomes} == outcomes
    assert found.notes[0].startswith(note)


@each_case("offset, voters, starts", [(3, BROKERS, True), (2, BROKERS, False), (3, (*BROKERS, 4, 5), False)])
def test_a_node_starts_if_the_leader_replaces_the_record_that_it_cannot_apply(
    offset: int, voters: tuple[int, ...], starts: bool
) -> None:
    logs = {1: [1] * 4, 2: [1] * 3 + [2], 3: [1] * 3 + [2]}
    plans = {node: controller(log, node=node, voters=voters) for node, log in logs.items()}
    plans[1].stops.append(failure(EXIT, "startup-batch-corrupt", "", "", 0, offset, problem="a record"))
    plans[1].refusedAt.append(offset)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    take_back_stops(plans, found)
    assert (plans[1].stops == []) is starts
    assert any("a record" in each for each in plans[1].assumptions) is starts
    assert any("it starts" in note for note in found.notes) is starts


def test_voters_that_reach_an_epoch_again_exit_when_one_that_knows_another_leader_starts() -> None:
    """See formatted-two and yesterday of docs/election-trials.json: with their disks formatted again, 2 and 3 elect a
    leader; who hears of the other leader exits."""
    plans = {node: controller(log, node=node) for node, log in {1: [1] * 3, 2: [], 3: []}.items()}
    assert plans[1].quorum is not None
    plans[1].quorum = plans[1].quorum._replace(leaderId=1)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    assert sorted(each.leader for each in found.outcomes) == [1, 2, 3]
    exits = [note for note in found.notes if "before node 1 starts" in note]
    assert [note.partition(" exits")[0] for note in exits] == ["node 1 or 2 or 3", "node 2 or 1", "node 3 or 1"]


def test_a_voter_with_a_later_epoch_is_elected_when_it_starts_and_the_others_exit() -> None:
    """See yesterday of docs/election-trials.json: they committed records of epoch 2 before."""
    plans = {node: controller(log, node=node) for node, log in {1: [1, 1, 3], 2: [1, 1], 3: [1, 1]}.items()}
    plans[11] = controller([1, 1, 3], node=11)
    for node in (1, 11):
        quorum = plans[node].quorum
        assert quorum is not None
        plans[node].quorum = quorum._replace(leaderId=1)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    exits = [note[:13] for note in found.notes if "is elected then" in note or "exits, or does not follow" in note]
    assert exits == ["node 2 exits ", "node 3 exits ", "node 11 exits"]


@each_case("led, kept", [(2, True), (1, False)])
def test_a_voter_keeps_other_records_of_an_epoch_that_the_same_leader_reaches_again(led: int, kept: bool) -> None:
    """See yesterday-dynamic of docs/election-trials.json: logs are compared by epoch and end offset alone."""
    plans = {node: controller(log, node=node) for node, log in {1: [1, 1, 2, 2], 2: [1, 1], 3: [1, 1]}.items()}
    plans[11] = controller([1, 1, 2, 2], node=11)
    for node in (1, 11):
        quorum = plans[node].quorum
        assert quorum is not None
        plans[node].quorum = quorum._replace(leaderId=led)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    truncated = {each.leader: {loss.broker: loss.truncatesTo for loss in each.replicas} for each in found.outcomes}
    assert truncated[2] == dict.fromkeys((1, 11), None if kept else 2)
    assert truncated[3] == dict.fromkeys((1, 11), 2)
    assert sum("keeps them without an error" in note for note in found.notes) == 2 * kept


def test_a_formatted_voter_exits_when_the_leader_of_before_resigns() -> None:
    """See formatted-one-dynamic of docs/election-trials.json: the request has no address (3.9.1, 4.4.0)."""
    plans = {node: controller([1] * 3, node=node) for node in BROKERS}
    voters = [QuorumVoter(node, f"directory-{node}") for node in BROKERS]
    for node, each in plans.items():
        each.directories[0].directoryId = "other" if node == 3 else f"directory-{node}"
        assert each.quorum is not None
        each.quorum = each.quorum._replace(kraftVersion=1, voters=voters, leaderId=1)
    for state, nodes in (("resigned", [3]), ("follower", [])):
        quorum, formatted = plans[1].quorum, plans[3].quorum
        assert quorum is not None
        assert formatted is not None
        plans[1].quorum = quorum._replace(state=state)
        plans[3].partitions, plans[3].quorum = [], formatted._replace(kraftVersion=0, voters=[], epoch=0, leaderId=None)
        found = quorum_replicas(plans, lambda *_: Counted())
        assert found is not None
        assert [int(note[5]) for note in found.notes if "does not know any voters" in note] == nodes


@each_case("voters, possible", [({1: [2], 2: [], 3: [1] * 3}, 3), ({1: [1, 2], 2: [1, 2], 3: [1] * 3}, 0)])
def test_what_the_longest_log_lacks_may_have_been_committed_later_if_a_disk_is_empty(
    voters: dict[int, Log], possible: int
) -> None:
    """Node 2 had voted for 1 in epoch 2, then for 3 in epoch 3, and has no records of either any more. The longest log
    leads first in any case: two disks have to be older copies for the other one to be newer."""
    plans = {node: controller(log, node=node) for node, log in voters.items()}
    found, voting = quorum_replicas(plans, lambda *_: Counted()), quorum_of(plans)
    assert found is not None
    assert voting is not None
    assert (found.best, next(each.possiblyAcknowledged for each in found.outcomes if each.leader == 1)) == (1, possible)
    assert first_voters(voting, found.outcomes)[:1] == ([1] if possible else [])


def test_a_leader_that_does_not_know_that_it_led() -> None:
    plans = {node: controller([1] * 3, node=node) for node in BROKERS}
    for node, each in plans.items():
        assert each.quorum is not None
        each.quorum = each.quorum._replace(epoch=1, leaderId=1 if node != 1 else None)
    found = quorum_replicas(plans, lambda *_: Counted())
    assert found is not None
    assert [note[:12] for note in found.notes] == ["node 1 exits"]


# --- models of a quorum and of a cluster ---


def planned_quorum(raft: quorum_model.Raft, given: set[int]) -> dict[int, RestartPlan]:
    """Return the plans of the voters that a model of Raft left, and whose disks are given."""
    plans = {}
    for node in given:
        voter = raft.voters[node]
        made = controller(voter.log, node=node)
        directories = dict(zip(BROKERS, "abc")) if raft.dynamic else dict.fromkeys(BROKERS)
        voters = [QuorumVoter(each, directories[each]) for each in BROKERS]
        made.directories[0].directoryId = directories[node] if voter.in_set else "other"
        if voter.is_blank:
            made.partitions, voters = [], []
        made.quorum = Quorum(int(raft.dynamic), voters, voter.in_set, False, "unattached", voter.leader, voter.epoch)
        plans[node] = made
    return plans


@pytest.mark.sampled
@each_case("seed", sample(range(40), 7, "raft"))
def test_who_is_elected_in_a_model_of_raft_was_predicted_with_what_it_lacks(seed: int) -> None:
    """100 histories each: voters that lag, with a tail of an older epoch, from a backup, or formatted, static and
    dynamic. Some are not given, and have the disk that they had."""
    source = seeded(seed)
    for _ in range(100):
        raft = quorum_model.history(source)
        given = set(BROKERS) if source.random() < 0.7 else set(source.sample(BROKERS, 2)) | raft.changed
        plans = planned_quorum(raft, given)
        found = quorum_replicas(plans, lambda *_: Counted())
        voting = quorum_of(plans)
        if found is None or voting is None:
            assert not any(raft.voters[node].log for node in given)
            continue
        by_leader = {each.leader: each for each in found.outcomes}
        committed = {
            each
            for each in raft.committed
            if any(set(enumerate(log.log)) >= {each} for log in (raft.voters[node] for node in given))
        }
        first = first_voters(voting, found.outcomes)
        unseen = raft.changed | (set(BROKERS) - given)
        assert voting.longest is not None
        # What a majority had that all lack may show nowhere.
        is_hidden = len(unseen) >= voting.majority and not may_lack_epoch(plans, voting, voting.longest)
        for alive in (set(BROKERS), set(source.sample(BROKERS, 2)), set(first)):
            started = deepcopy(raft)
            leader = quorum_model.elected(started, alive, source) if len(alive) > 1 else None
            if leader is None or leader not in given:
                assert alive != set(first) or not first
                continue
            assert leader in by_leader, (raft, alive, leader)
            lost = committed - set(enumerate(raft.voters[leader].log))
            assert is_hidden or by_leader[leader].possiblyAcknowledged >= len(lost), (raft, alive, leader)
            if alive == set(first):
                ranks = {each.leader: rank(each, voting.longest.broker) for each in found.outcomes}
                assert ranks[leader] == min(ranks.values()), (raft, first)


# --- a model of a cluster ---


def planned(failure: Failure) -> PartitionReplicas | None:
    """Return what kdump says of the replicas that a model of a cluster left."""
    model = failure.partition
    replicas = []
    for broker in BROKERS:
        if broker in failure.missing:
            node = RestartPlan([DirectoryPlan("d", clean=False, nodeId=broker)])
            replica = empty_replica(broker, node, "t", 0, "new", clean=False)
            assert replica is not None
        else:
            log = plan(model.logs[broker], model.marks[broker], clean=failure.clean[broker])
            replica = replica_of(broker, log, starts=True)
        replicas.append(replica)
    info = PartitionRegistration(
        BROKERS,
        (),
        model.leader,
        model.epoch,
        tuple(model.isr),
        eligibleLeaderReplicas=tuple(model.elr),
        lastKnownElr=tuple(model.last_known),
    )
    rules = ElectionRules(model.least, model.unclean, model.elr_enabled)
    return partition_replicas("t", 0, info, rules, replicas, lambda path, first, end: Counted(end - first, end - first))


@pytest.mark.sampled
@each_case("seed", sample(range(40), 7, "cluster"))
def test_no_start_of_a_model_cluster_loses_more_than_the_plan_says(seed: int) -> None:
    """100 histories each: replicas out of sync, disks replaced or from a backup, started in a random order and in the
    order of the plan."""
    source = seeded(seed)
    for _ in range(100):
        failure = failed(source)
        made = planned(failure)
        assert made is not None
        orders = start_orders([*BROKERS], [made])
        for order, limit in ((tuple(source.sample(BROKERS, 3)), orders.worst), (tuple(orders.best), orders.cost)):
            again = deepcopy(failure)
            before = {(at, epoch) for log in again.partition.logs.values() for at, epoch in enumerate(log)}
            after = started(again, order, source)
            if after.leader == NOBODY:
                continue
            outcome = next(each for each in made.outcomes if each.leader == after.first_leader)
            lost = len(before - set(enumerate(after.led)))
            assert lost == outcome.lost, (failure, order)
            assert outcome.allowed, (failure, order, after)
            assert outcome.cost <= limit, (failure, order, after)
