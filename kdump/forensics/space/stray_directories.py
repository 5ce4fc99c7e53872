"""Decides whether a -stray directory may be removed, by the cluster's metadata and the copies on other disks."""

from __future__ import annotations

from typing import NamedTuple

from kdump.forensics.space.answers import JUDGE, NOTHING
from kdump.forensics.space.replica_copies import ReplicaCopies
from kdump.kafka.small_files import topic_id
from kdump.log.partition_directory import PartitionDirectory


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
    if metadata is None or metadata.problems or not metadata.topics or own is None:
        return None, "the metadata or the topic ID is missing"
    described = metadata.by_id.get(own)
    if described is None:
        return JUDGE, "the cluster has deleted its topic, and no client can read its records"
    info = described.partitions.get(number or 0)
    if info is None or info.leader < 0 or not info.isr or node_id in info.replicas:
        return None, "the partition has no leader elsewhere"
    brokers = ", ".join(map(str, info.isr))
    return NOTHING, f"the replica was moved to other brokers, and is in sync on {brokers}"
