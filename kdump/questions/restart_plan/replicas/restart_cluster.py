"""Predicts the next startup of several brokers together, and what their replicas lose once they have joined the
cluster and follow a leader."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise, permutations
from typing import NamedTuple

from kdump.answer import of_fact
from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.core.column_numbers import BATCH_END, BATCH_START, LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import total as sum_of
from kdump.io.errors import SourceError
from kdump.io.run import Run, ignore
from kdump.kafka.small_files import clean_broker_epoch
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import partition
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth
from kdump.log.walk import PartitionReader, RegionObserver, observe
from kdump.query import offered
from kdump.questions.restart_plan.answer import STOPPED, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.replicas.controller_images import ControllerImages, play_through
from kdump.questions.restart_plan.replicas.leader_candidates import election_rules
from kdump.questions.restart_plan.replicas.quorum_replicas import (
    Quorum,
    first_voters,
    quorum_of,
    quorum_replicas,
    take_back_stops,
)
from kdump.questions.restart_plan.replicas.replica_answer import (
    ChosenLeader,
    ClusterSummary,
    PartitionReplicas,
    WorstLoss,
)
from kdump.questions.restart_plan.replicas.replica_losses import (
    Counted,
    Replica,
    empty_replica,
    partition_replicas,
    replica_of,
)
from kdump.questions.restart_plan.run import RestartQuery, plan_course, predict_startup
from kdump.state.metadata_image import MetadataImage
from kdump.text import shell_words

__all__ = ["restart_cluster"]

ELECTION = "these brokers are down, and all others run"


@dataclass
class ClusterPlan:
    """The plans of several brokers, by node ID, and of the partitions whose replicas differ. `summary` and `replicas`
    are empty if all paths belong to one broker."""

    plans: dict[int, RestartPlan] = field(default_factory=dict)
    replicas: list[PartitionReplicas] = field(default_factory=list)
    summary: ClusterSummary | None = None
    voting: Quorum | None = None
    """The logs of the voters; None if they are unknown."""
    changed: list[tuple[int, PartitionPlan]] = field(default_factory=list)
    """Partitions, each with its node, that become stray because no voter that may be elected has their topic."""

    @property
    def unread(self) -> list[str]:
        return [problem for plan in self.plans.values() for problem in plan.unread]

    @property
    def status(self) -> int:
        """Exit status of `kdump restart-plan`: the highest of the brokers'; at least 1 if their replicas lose
        records."""
        loses = self.summary is not None and self.summary.loses
        return max([int(loses), *(plan.status for plan in self.plans.values())])


def predict_cluster(query: RestartQuery) -> ClusterPlan:
    """Predict what the brokers of these log directories do at their next startup, each as `kdump.restart_plan` does,
    and what their replicas lose after that: followers truncate to the leader epochs of their leader.

    `run.found` is called with the plan of each partition, then of each broker, then with each partition whose replicas
    differ.
    Leaders, in-sync replicas and configs are those in the newest metadata on the disks, so pass a controller's disk,
    too. Raises SourceError and ValueError as it does, and SourceError for a path that states no node next to those of
    several nodes. Source: see the modules of this package."""
    options, named = query.reading, list(dict.fromkeys(query.paths))
    disks = query.disks or Disks.at(named, Run(options.limits, ignore), nested=False, server=options.server)
    nodes = _paths_by_node(named, disks)
    made = ClusterPlan()
    quiet = replace(options, found=ignore) if len(nodes) > 1 else options
    for node, own in nodes.items():
        made.plans[node] = predict_startup(replace(query, paths=own, run=quiet, options=None, disks=disks))
    return joined(made.plans, disks, options, is_selected=query.has_topic)


restart_cluster = offered("restart_cluster", RestartQuery, predict_cluster)


def joined(
    plans: dict[int, RestartPlan],
    disks: Disks,
    options: Options,
    paths: Sequence[str] = (),
    *,
    is_selected: Callable[[str], bool] = lambda topic: True,
) -> ClusterPlan:
    """Return the plan of the brokers of one cluster, given those of each, by node ID. `paths`: its log directories, if
    `disks` has those of other clusters, too; `is_selected` selects the topics of the plans."""
    made = ClusterPlan(plans)
    counter = RecordCounter(options)
    images = ControllerImages(disks, options)
    made.voting = quorum_of(plans)
    quorum = quorum_replicas(plans, counter.count, images.changes)
    source, metadata = disks.newest_metadata(*paths) if len(plans) > 1 else ("", None)
    if made.voting is not None and quorum is not None:
        take_back_stops(plans, quorum)
        made.changed = play_through(plans, made.voting, quorum, images, metadata)
        for plan in plans.values():
            plan.course = plan_course(plan)
    for plan in plans.values():
        if len(plans) > 1:
            for log in plan.partitions:
                if is_selected(log.topic):
                    options.found(log)
            plan.course.answered_together()
        options.found(plan)
    if len(plans) > 1:
        if quorum is not None and quorum.best_outcome is not None and quorum.best_outcome.possiblyAcknowledged:
            source, metadata = images.of(plans[quorum.best_outcome.leader])
        _join(made, quorum, source, metadata, options, counter, is_selected)
    return made


def _paths_by_node(paths: list[str], disks: Disks) -> dict[int, list[str]]:
    """Return the paths by node. Directories that do not state a node are not told apart, nor those of one node and
    several clusters: no broker starts with such a mixture, which is what the plan of one broker says. Raises
    SourceError for nodes of several clusters, and for a path that states no node next to paths of several nodes."""
    directories = {path: disks.below(path) for path in paths} if len(paths) > 1 else {}
    of_path = {path: disks.node_of(here[0]) for path, here in directories.items() if len(here) == 1}
    nodes = sorted({node.node_id for node in of_path.values() if node.node_id is not None})
    clusters = {node.cluster_id: path for path, node in of_path.items() if node.cluster_id is not None}
    if len(nodes) < 2 or not clusters:
        return {nodes[0] if len(nodes) == 1 else -1: paths}
    if len(clusters) > 1:
        stated = ", ".join(f"{path} has cluster.id {cluster}" for cluster, path in clusters.items())
        doctor = shell_words(("kdump", "doctor", *paths))
        raise SourceError(f"{stated}: pass those of one cluster; {doctor} shows whether a cluster.id is wrong")
    groups: dict[int, list[str]] = {}
    for path in paths:
        number = of_path[path].node_id if path in of_path else None
        if number is None:
            listed = ", ".join(map(str, nodes))
            raise SourceError.at(
                path,
                f"no meta.properties states whose it is, next to log directories of nodes {listed}; pass "
                "those of its node alone",
            )
        groups.setdefault(number, []).append(path)
    return dict(sorted(groups.items()))


def _join(
    made: ClusterPlan,
    quorum: PartitionReplicas | None,
    source: str,
    metadata: MetadataImage | None,
    options: Options,
    counter: RecordCounter,
    is_selected: Callable[[str], bool],
) -> None:
    """Add what the replicas lose, and the summary. `metadata`: the newest, in the log directory `source`."""
    several = 0
    brokers: set[int] = set()
    for replicas in _replicas(made.plans, metadata, is_selected):
        several += 1
        brokers.update(replica.broker for replica in replicas)
        differing = _examined(replicas, metadata, counter)
        if differing is not None and _is_notable(differing):
            made.replicas.append(differing)
            options.found(differing)
    costs = [outcome.acknowledged + outcome.possiblyAcknowledged for outcome in quorum.outcomes] if quorum else []
    committed, least = max(costs, default=0), min(costs, default=0)
    strays = max((len(outcome.strays) for outcome in quorum.outcomes), default=0) if quorum else 0
    if quorum is not None and (committed or quorum.notes or strays):
        options.found(quorum)
    voting = made.voting
    with_logs = [node for node, plan in made.plans.items() if node in brokers or plan.logs or plan.missing]
    able = [node for node in with_logs if made.plans[node].verdict != STOPPED]
    orders = start_orders(able or with_logs, made.replicas)
    chosen = [
        ChosenLeader(differing.topic, differing.partition, differing.best, _worse(differing))
        for differing in made.replicas
        if differing.best is not None and needs_you(differing)
    ]
    made.summary = ClusterSummary(
        nodes=list(made.plans),
        metadata=source,
        metadataOffset=None if metadata is None else metadata.replayed_offset,
        partitions=several,
        hasQuorum=None if quorum is None else not all(outcome.halts for outcome in quorum.outcomes),
        halting=[] if quorum is None else [outcome.leader for outcome in quorum.outcomes if outcome.halts],
        quorumLoses=committed,
        quorumLosesLeast=least,
        voters=[] if quorum is None else quorum.brokers,
        ableVoters=[] if voting is None else [log.broker for log in voting.able],
        electable=[] if quorum is None else [outcome.leader for outcome in quorum.outcomes],
        firstVoters=[] if voting is None or quorum is None else first_voters(voting, quorum.outcomes),
        strays=strays,
        differing=len(made.replicas),
        losing=orders.losing,
        startOrder=orders.best,
        lost=orders.cost[2],
        acknowledged=orders.cost[0],
        worstLost=orders.worst[2],
        worstAcknowledged=orders.worst[0],
        worst=worst_loss(made.replicas),
        chosen=chosen,
        assumptions=_assumptions(made.plans, source, metadata),
    )


def _replicas(
    plans: dict[int, RestartPlan], metadata: MetadataImage | None, is_selected: Callable[[str], bool]
) -> Iterator[list[Replica]]:
    """Yield the replicas of each partition of which at least two brokers have one, be it only in the metadata."""
    by_partition: dict[tuple[str, int], dict[int, Replica]] = {}
    moved: set[tuple[int, str, int]] = set()
    clean = {node: _is_clean(plan, node, metadata) for node, plan in plans.items()}
    for node, plan in plans.items():
        for log in plan.partitions:
            if log.topic != METADATA_TOPIC and not log.state and not log.stray:
                replica = replica_of(node, log, starts=plan.verdict != STOPPED, clean=clean[node])
                by_partition.setdefault((log.topic, log.partition), {})[node] = replica
            elif log.state == "future":
                moved.add((node, log.topic, log.partition))
    for topic in metadata.topics.values() if metadata is not None else ():
        for number, registration in topic.partitions.items() if is_selected(topic.name) else ():
            here = by_partition.get((topic.name, number), {})
            for node in registration.replicas:
                if node in plans and node not in here and (node, topic.name, number) not in moved:
                    directory = registration.directory_of(node)
                    nothing = empty_replica(node, plans[node], topic.name, number, directory, clean=clean[node])
                    if nothing is not None:
                        by_partition.setdefault((topic.name, number), here)[node] = nothing
    return ([*by_partition[key].values()] for key in sorted(by_partition) if len(by_partition[key]) > 1)


def _is_clean(plan: RestartPlan, node: int, metadata: MetadataImage | None) -> bool:
    """Return whether the controllers take the broker's last shutdown for a clean one: each of its log directories has
    the .kafka_cleanshutdown of its last registration (LogManager.readBrokerEpochFromCleanShutdownFiles,
    ClusterControlManager.registerBroker)."""
    directories = [directory for directory in plan.directories if directory.logDir]
    if not all(directory.clean for directory in directories):
        return False
    registered = None if metadata is None else metadata.brokers.get(node)
    epochs = {clean_broker_epoch(directory.path) for directory in directories}
    return registered is None or epochs <= {None} or epochs == {registered.brokerEpoch}


def _examined(
    replicas: list[Replica], metadata: MetadataImage | None, counter: RecordCounter
) -> PartitionReplicas | None:
    """Return what the replicas lose; None if the metadata does not have the partition."""
    topic, number = replicas[0].plan.topic, replicas[0].plan.partition
    of_topic = None if metadata is None else metadata.topics.get(topic)
    partition = None if of_topic is None else of_topic.partitions.get(number)
    if metadata is None or partition is None:
        return None
    return partition_replicas(topic, number, partition, election_rules(metadata, topic), replicas, counter.count)


def _is_notable(partition_replicas: PartitionReplicas) -> bool:
    """Return True if records may be lost, or are lost at a startup and fetched again, or if something is unknown."""
    diverge = any(outcome.lost for outcome in partition_replicas.outcomes if outcome.allowed)
    return diverge or bool(partition_replicas.saved) or bool(partition_replicas.notes)


def needs_you(differing: PartitionReplicas) -> bool:
    """Return True if the best leader is not elected for certain without an administrator."""
    best, costs = differing.best_outcome, [outcome.cost for outcome in differing.expected]
    return best is not None and bool(costs) and best.cost < (min(costs) if differing.firstLeads else max(costs))


def _worse(differing: PartitionReplicas) -> list[int]:
    """Return the brokers that may be elected, and with which more is lost than with the best leader."""
    best = differing.best_outcome
    return [each.leader for each in differing.expected if best is not None and each.cost > best.cost]


def worst_loss(differing: list[PartitionReplicas]) -> WorstLoss | None:
    """Return the replica that loses most."""
    worst = max(differing, key=lambda each: each.worst.cost if each.worst else (0, 0, 0), default=None)
    outcome = None if worst is None else worst.worst
    losses = [loss for loss in outcome.replicas if loss.lost] if outcome is not None else []
    if worst is None or outcome is None or not losses:
        return None
    loss = max(losses, key=lambda loss: (loss.acknowledged, loss.possiblyAcknowledged, loss.lost))
    return of_fact(
        WorstLoss,
        loss,
        outcome,
        worst,
        truncatesTo=None if loss.by == "startup" else loss.truncatesTo,
        logEndOffset=(loss.firstOffset or 0) + loss.lost,
    )


def _absent_directories(plans: dict[int, RestartPlan], metadata: MetadataImage) -> Iterator[str]:
    """Yield a sentence for each given broker of which the metadata has registered other log directories, too."""
    for node, plan in plans.items():
        given = {directory.directoryId for directory in plan.directories}
        absent = [own for own in metadata.broker_directories.get(node, ()) if own not in given]
        if absent:
            yield (
                f"broker {node} starts without the log directory {', '.join(absent)}, which it has registered and "
                "which was not given: its replicas there are taken to be empty"
            )


def _assumptions(plans: dict[int, RestartPlan], source: str, metadata: MetadataImage | None) -> list[str]:
    if metadata is None:
        return ["no cluster metadata could be read here: leaders and in-sync replicas are unknown"]
    return [
        *_absent_directories(plans, metadata),
        f"leaders, in-sync replicas and configs are those in the metadata of {source}, up to offset "
        f"{metadata.end_offset}; the controllers may have newer metadata",
        "min.insync.replicas and unclean.leader.election.enable are 1 and false where the metadata does not set them",
        ELECTION,
    ]


MOST_OFFSETS = 10_000_000
"""Maximum number of offsets in which records are counted: a terabyte of headers takes minutes."""


class RecordCounter:
    """Counts records, each offset range once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.count = cache(self._count)

    def _count(self, path: str, first: int, end: int) -> Counted:
        """Count the records at the offsets first..end-1."""
        try:
            return self._records(path, first, end) if end - first <= MOST_OFFSETS else Counted()
        except (SourceError, OSError):
            return Counted()

    def _records(self, path: str, first: int, end: int) -> Counted:
        segments = [segment.log for segment in partition(path).segments if segment.log is not None]
        bases = [segment.name_offset or 0 for segment in segments]
        reader = PartitionReader(self.options.open, Run(self.options.limits))
        counted = _RecordsBetween(first, end)
        for target, (base, following) in zip(segments, pairwise([*bases, end])):
            if base >= end:
                break
            if max(base, following) <= first and target is not segments[-1]:
                continue
            observe(partial(reader.segment, target), [counted])
        return Counted(counted.records, counted.size)


class _RecordsBetween(RegionObserver):
    """The number of records at the offsets first..end-1, by the headers, None if one of these has no possible count;
    and the number of their bytes."""

    depth = Depth.HEADERS

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.records: int | None = 0
        self.size = 0

    def region(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            headers = region.headers
            lasts = headers.column(LAST_OFFSET)
            first, stop = (bisect_left(lasts, offset) for offset in (self.first, self.end))
            self._add(sum_of(headers, RECORD_COUNT, first, stop))
            if first < stop:
                self.size += headers.column(BATCH_END)[stop - 1] - headers.column(BATCH_START)[first]
        elif isinstance(region, Batch) and self.first <= region.lastOffset < self.end:
            self._add(region.possible_records if region.recordCount == region.possible_records else None)
            self.size += region.size

    def _add(self, records: int | None) -> None:
        self.records = None if self.records is None or records is None else self.records + records


MOST_PERMUTED = 6
"""Up to this many brokers, every order is tried; of more, those in which one broker comes first."""

Cost = tuple[int, int, int]


class Choice(NamedTuple):
    """The leaders that the controllers may elect, with what each loses, and whether the order of starting decides."""

    costs: tuple[tuple[int, Cost], ...]
    by_order: bool


class StartOrders(NamedTuple):
    """The best order, what it loses (acknowledged, possibly acknowledged, all), and what the worst order loses."""

    best: list[int]
    cost: Cost
    worst: Cost
    losing: int
    """Number of partitions that lose records in the best order."""


def start_orders(brokers: list[int], partitions: Iterable[PartitionReplicas]) -> StartOrders:
    """Return the best order. If the order does not decide who leads a partition, the worst that may lead counts."""
    choices: Counter[Choice] = Counter()
    for differing in partitions:
        costs = tuple((outcome.leader, outcome.cost) for outcome in differing.expected)
        choices[Choice(costs, differing.firstLeads)] += 1
    if len(brokers) <= MOST_PERMUTED:
        orders = list(permutations(brokers))
    else:
        orders = [(first, *(broker for broker in brokers if broker != first)) for first in brokers]
    costs_of = {order: _cost(order, choices) for order in orders}
    best = min(orders, key=costs_of.__getitem__)
    losing = sum(count for choice, count in choices.items() if any(_led(best, choice)))
    return StartOrders(list(best), costs_of[best], max(costs_of.values()), losing)


def _cost(order: tuple[int, ...], choices: Counter[Choice]) -> Cost:
    total = [0, 0, 0]
    for choice, count in choices.items():
        for number, value in enumerate(_led(order, choice)):
            total[number] += value * count
    return total[0], total[1], total[2]


def _led(order: tuple[int, ...], choice: Choice) -> Cost:
    """Return what is lost of a partition."""
    nothing = (0, 0, 0)
    if not choice.by_order:
        return max((cost for _, cost in choice.costs), default=nothing)
    by_broker = dict(choice.costs)
    return next(
        (by_broker[broker] for broker in order if broker in by_broker), max(by_broker.values(), default=nothing)
    )
