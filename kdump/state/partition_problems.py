"""The problems of partitions according to the cluster's metadata: no leader, too few in-sync replicas."""

from __future__ import annotations

from kdump.format.numbers import parse_int
from kdump.state.effective_config import effective
from kdump.state.metadata_image import MetadataImage, PartitionRegistration, TopicImage


def least_isr(metadata: MetadataImage, topic: TopicImage) -> int:
    """Return the topic's min.insync.replicas; 1 if it is not known."""
    least = parse_int(effective(metadata, topic.name, "min.insync.replicas", None))
    return 1 if least is None else least


def trouble(info: PartitionRegistration, least: int) -> list[str]:
    """Return the problems of a partition that matter to an operator, in words. `least` is its `least_isr`."""
    problems = []
    if info.is_offline:
        problems.append("offline")
    if info.is_under_replicated:
        problems.append("under-replicated")
    if len(info.isr) < least:
        problems.append("under-min-isr")
    if info.is_reassigning:
        problems.append("reassigning")
    if info.leaderRecoveryState != "RECOVERED":
        problems.append("recovering")
    return problems
