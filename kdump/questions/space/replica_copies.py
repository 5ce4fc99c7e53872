"""Replicas that are complete on another broker, so that this broker can do without its own, and stray directories that
the cluster does without.

A replica may go only if the cluster does not need it, by the newest metadata among the paths: another broker leads the
partition and is in the ISR, and this one is in neither Isr nor Elr, and cannot become the leader in an unclean
election. And the other copy, which has to be here to be examined, must have everything: the same leader epochs with the
same start offsets (which is how a follower compares its log with its leader's: KIP-101,
LeaderEpochFileCache.endOffsetFor), and a log end offset at or after this one's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kdump.check.log_dir_context import own_context
from kdump.check.options import Options
from kdump.cluster.disks import Node
from kdump.cluster.partition_summary import log_end
from kdump.kafka.small_files import topic_id
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory
from kdump.questions.space.answer import JUDGE, NOTHING
from kdump.questions.space.usage import PartitionUsage
from kdump.state.effective_config import effective
from kdump.state.metadata_image import MetadataImage

UNCLEAN = "unclean.leader.election.enable"
EMPTY = "so that it may become the leader with an empty log"


class ReplicaVerdict(NamedTuple):
    """Whether a replica may go. `why`: why not, or what makes it safe. `stays_on`: the brokers that keep it."""

    may_go: bool
    why: str
    stays_on: tuple[int, ...] = ()


class ReplicaCopies:
    """The partitions of other brokers. `metadata`: the newest there is; `properties`: the server.properties that the
    brokers and controllers share, as far as given; `copies`: by topic and partition, each with the ID of its broker."""

    def __init__(
        self, others: Sequence[Node], metadata: MetadataImage | None, options: Options, properties: Mapping[str, str]
    ) -> None:
        self.metadata, self.properties, self.options = metadata, properties, options
        self.problems: list[str] = []
        self.copies: dict[tuple[str, int], list[tuple[int | None, PartitionDirectory]]] = {}
        every = (
            (node.node_id, partition)
            for node in others
            for directory in node.directories
            for partition in directory.partitions
        )
        for node_id, place in every:
            if not place.state and place.topic not in (None, METADATA_TOPIC) and place.partition is not None:
                assert place.topic is not None
                self.copies.setdefault((place.topic, place.partition), []).append((node_id, place))

    def verdict(self, usage: PartitionUsage, node_id: int | None, high_watermark: int | None) -> ReplicaVerdict:
        """Return whether this broker's replica may go."""
        topic, number = usage.key
        described = self.metadata.topics.get(topic) if self.metadata is not None else None
        info = described.partitions.get(number) if described is not None else None
        if node_id is None or info is None or self.metadata is None or self.metadata.doubt:
            return ReplicaVerdict(False, "the metadata does not show who leads it")
        why = self._why_needed(topic, node_id, info.leader, info.isr, info.eligibleLeaderReplicas)
        if why:
            return ReplicaVerdict(False, why)
        if topic_id(usage.place) not in (None, described.id if described is not None else None):
            return ReplicaVerdict(False, "the directory is of another topic with this name")
        copy = next((place for number, place in self.copies.get(usage.key, ()) if number == info.leader), None)
        if copy is None:
            return ReplicaVerdict(False, f"the disk of its leader, broker {info.leader}, is not among the paths")
        missing = self._missing(usage, copy, high_watermark)
        if missing:
            return ReplicaVerdict(False, missing)
        stays = tuple(broker for broker in info.replicas if broker != node_id)
        return ReplicaVerdict(True, f"complete on broker {info.leader}: {copy.path}", stays)

    def _why_needed(self, topic: str, node_id: int, leader: int, isr: tuple[int, ...], elr: tuple[int, ...]) -> str:
        if leader == node_id:
            return "this broker leads it"
        if leader < 0 or leader not in isr:
            return "it has no leader"
        if node_id in isr:
            return f"this broker is in its ISR, {EMPTY}"
        if node_id in elr:
            return f"this broker is in its ELR, {EMPTY}"
        assert self.metadata is not None
        unclean = effective(self.metadata, topic, UNCLEAN, node_id) or self.properties.get(UNCLEAN)
        if unclean is not None and unclean.strip().lower() == "true":
            return "unclean.leader.election.enable=true: it may become the leader with an empty log"
        return ""

    def _missing(self, usage: PartitionUsage, other: PartitionDirectory, high_watermark: int | None) -> str:
        """Return what the leader's copy lacks; empty if nothing."""
        own_end = log_end(usage.place, None, self.problems)
        other_end = log_end(other, False, self.problems)  # a damaged batch replaces nothing
        if own_end is None or other_end is None or self.problems:
            return "a log end offset could not be read"
        if max(own_end, high_watermark or 0) > other_end:
            return f"it ends at {own_end}, the leader's copy at {other_end}"
        own, others = own_context(usage.place, self.options).epochs, own_context(other, self.options).epochs
        if not own or not others:
            return "a leader-epoch-checkpoint is missing"
        starts = {entry.epoch: entry.startOffset for entry in others}
        first = others[0].startOffset
        for entry in own:
            if entry.startOffset >= first and starts.get(entry.epoch) != entry.startOffset:
                return f"the leader's copy has another start offset for leader epoch {entry.epoch}: the logs diverge"
        later = [entry.startOffset for entry in others if entry.epoch > own[-1].epoch]
        if later and min(later) < own_end:
            return f"it continues after offset {min(later)} in leader epoch {own[-1].epoch}: the logs diverge"
        return ""

    def elsewhere(self, place: PartitionDirectory) -> str:
        """Return where another copy of a stray directory is, with the same topic ID; empty if none is known."""
        if place.topic is None or place.partition is None:
            return ""
        own = topic_id(place)
        for node_id, copy in self.copies.get((place.topic, place.partition), ()):
            own_end, other_end = log_end(place, None, self.problems), log_end(copy, False, self.problems)
            same = own is not None and own == topic_id(copy)
            if same and own_end is not None and other_end is not None and other_end >= own_end:
                return f"broker {node_id}: {copy.path}"
        return ""


class StrayVerdict(NamedTuple):
    """`cost`: what it costs to remove it, as in SpaceStep; None if it must stay, because that is unknown."""

    cost: str | None
    why: str


def stray_verdict(place: PartitionDirectory, copies: ReplicaCopies, node_id: int | None) -> StrayVerdict:
    """Return the verdict on a -stray directory of the broker `node_id`."""
    cost, why = _by_metadata(place, copies, node_id)
    elsewhere = copies.elsewhere(place)
    if elsewhere:
        return StrayVerdict(NOTHING, f"{why}; another copy is complete on {elsewhere}")
    if cost is None:
        return StrayVerdict(None, f"{why}, so that this may be the only copy")
    return StrayVerdict(cost, f"{why}; no other copy is among the paths")


def _by_metadata(place: PartitionDirectory, copies: ReplicaCopies, node_id: int | None) -> tuple[str | None, str]:
    """Return what removing it costs by the metadata alone, None if that is unknown, and why it is stray."""
    own, metadata, number = topic_id(place), copies.metadata, place.partition
    if metadata is None or metadata.doubt or not metadata.topics or own is None:
        return None, "the metadata or the topic ID is missing"
    described = metadata.by_id.get(own)
    if described is None:
        return JUDGE, "the metadata does not have its topic: it was deleted, or the controllers were formatted since"
    info = described.partitions.get(number or 0)
    if info is None or info.leader < 0 or not info.isr or node_id in info.replicas:
        return None, "the partition has no leader elsewhere"
    brokers = ", ".join(map(str, info.isr))
    return NOTHING, f"the replica was moved to other brokers, and is in sync on {brokers}"


def reassignment(stays: dict[tuple[str, int], tuple[int, ...]]) -> str:
    """Return the JSON for kafka-reassign-partitions.sh that leaves the partitions on these brokers."""
    rows = [{"topic": topic, "partition": number, "replicas": on} for (topic, number), on in stays.items()]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)
