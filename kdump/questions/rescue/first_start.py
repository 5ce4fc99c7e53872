"""What the first start of the brokers with a rescued state costs: who may lead by the leader, ISR and ELR that it
states, and what their disks have. The same rules as those of kdump restart-plan, for logs as they are on the disks.

A state from before a moment may name replicas in sync that were deleted since. They would be created empty, and be
elected: a replica that has records leads instead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from kdump.cluster.disks import Disks, Node
from kdump.cluster.partition_summary import log_end
from kdump.io.errors import SourceError
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine
from kdump.kafka.small_files import offsets, topic_id
from kdump.log.file_kinds import OFFSET_CHECKPOINT
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.questions.restart_plan.answer import PartitionPlan
from kdump.questions.restart_plan.replicas.leader_candidates import election_rules
from kdump.questions.restart_plan.replicas.replica_answer import PartitionReplicas, WorstLoss
from kdump.questions.restart_plan.replicas.replica_losses import Counted, Replica, partition_replicas, replica_of
from kdump.questions.restart_plan.replicas.restart_cluster import start_orders, worst_loss
from kdump.state.metadata_image import MetadataImage, PartitionRegistration

Key = tuple[str, int]


class FirstStart(NamedTuple):
    """What the brokers' first start costs. `order`: of starting them; `decides`: whether it matters; `lost`, `least`:
    offsets in the worst order, and in that one."""

    order: list[int]
    decides: bool
    lost: int
    least: int
    worst: WorstLoss | None


class DiskReplicas:
    """The replicas of partitions on the disks of brokers."""

    def __init__(self, disks: Disks, image: MetadataImage) -> None:
        self.image = image
        assigned = {
            node for topic in image.topics.values() for each in topic.partitions.values() for node in each.replicas
        }
        self.nodes: set[int] = set()
        self._here: dict[Key, dict[int, Replica]] = {}
        for node in disks.nodes:
            if node.node_id is not None and node.node_id in assigned:
                self.nodes.add(node.node_id)
                for key, replica in self._of_node(node, node.node_id):
                    self._here.setdefault(key, {})[node.node_id] = replica

    def _of_node(self, node: Node, number: int) -> Iterator[tuple[Key, Replica]]:
        clean = all(place.is_clean for place in node.directories)
        for place in node.directories:
            checkpoints = {
                name.removesuffix("-checkpoint"): offsets(target)[0]
                for name, target in place.files.items()
                if target.kind is OFFSET_CHECKPOINT
            }
            for log in place.partitions:
                if log.topic in (None, METADATA_TOPIC) or log.partition is None or log.state:
                    continue
                key = (log.topic or "", log.partition)
                named = topic_id(log)
                if named is not None and self.image.registration(named, log.partition) is None:
                    continue  # it becomes stray
                plan = PartitionPlan(*key, log.path, place.path, "", place.is_clean)
                plan.highWatermark = checkpoints.get("replication-offset", {}).get(key)
                plan.logStartOffset = checkpoints.get("log-start-offset", {}).get(key, 0)
                plan.logEndOffset = log_end(log, place.is_clean, plan.unread)
                with suppress(BadLine, SourceError):
                    path = os.path.join(log.path, "leader-epoch-checkpoint")
                    epochs = checkpoint_file.epochs(path)
                    plan.epochsBefore = plan.epochsAfter = tuple(epochs) if epochs else None
                yield key, replica_of(number, plan, starts=True, clean=clean)

    def of(self, key: Key, partition: PartitionRegistration) -> list[Replica]:
        """Return the replicas of a partition on the given brokers; one of which a broker has nothing is empty."""
        here = self._here.get(key, {})
        return [here.get(node) or self._nothing(node, key) for node in partition.replicas if node in self.nodes]

    @staticmethod
    def _nothing(node: int, key: Key) -> Replica:
        plan = PartitionPlan(*key, "", "", "", False)
        plan.missing = True
        return replica_of(node, plan, starts=True)


def put_in_charge(replicas: DiskReplicas) -> Iterator[tuple[Key, PartitionRegistration, PartitionRegistration]]:
    """Let no replica lead of which its broker has nothing, if another one has records: change the state, and yield each
    partition with its registration before and after."""
    for topic in replicas.image.topics.values():
        for number, partition in topic.partitions.items():
            every = replicas.of((topic.name, number), partition)
            nothing = {each.broker for each in every if each.plan.missing}
            having = [each for each in every if each.before.end > each.before.start]
            able = (*partition.isr, *partition.eligibleLeaderReplicas, *partition.lastKnownElr, partition.leader)
            if not having or not nothing & set(able):
                continue
            isr = tuple(node for node in partition.isr if node not in nothing)
            elr = tuple(node for node in partition.eligibleLeaderReplicas if node not in nothing)
            if not isr and not elr:
                best = max(
                    having,
                    key=lambda each: (each.before.epochs[-1].epoch if each.before.epochs else -1, each.before.end),
                )
                isr = (best.broker,)
            leader = partition.leader if partition.leader in isr else isr[0] if isr else -1
            made = partition._replace(leader=leader, isr=isr, eligibleLeaderReplicas=elr, lastKnownElr=())
            topic.partitions[number] = made
            yield (topic.name, number), partition, made


def first_start(replicas: DiskReplicas) -> FirstStart:
    """Return what the first start costs."""
    differing: list[PartitionReplicas] = []
    for topic in replicas.image.topics.values():
        rules = election_rules(replicas.image, topic.name)
        for number, partition in sorted(topic.partitions.items()):
            every = replicas.of((topic.name, number), partition)
            if len(every) > 1:
                made = partition_replicas(topic.name, number, partition, rules, every, lambda *_: Counted())
                if any(outcome.lost for outcome in made.expected):
                    differing.append(made)
    orders = start_orders(sorted(replicas.nodes), differing)
    decides = orders.cost != orders.worst
    return FirstStart(orders.best, decides, orders.worst[2], orders.cost[2], worst_loss(differing))
