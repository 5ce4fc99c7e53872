"""What a node knows of its cluster when it decides which of its directories are stray, and which partitions it lacks.

Source: BrokerMetadataPublisher.initializeManagers."""

from __future__ import annotations

from typing import NamedTuple

from kdump.questions.restart_plan.answer import PartitionPlan, Quorum
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.quorum import metadata_after
from kdump.questions.restart_plan.node.starting_node import StartingNode
from kdump.state.metadata_image import MetadataImage


class ClusterKnowledge(NamedTuple):
    """`metadata`: the cluster's, None if unknown; `is_whole`: whether it is undamaged; `is_sole`: whether the node is
    the only controller, so that its metadata log is what the cluster knows."""

    metadata: MetadataImage | None
    is_whole: bool
    is_sole: bool
    strays: StrayPartitions

    @property
    def has_topics(self) -> bool:
        return self.metadata is not None and bool(self.metadata.topics)


def cluster_knowledge(node: StartingNode, log: PartitionPlan | None, quorum: Quorum | None) -> ClusterKnowledge:
    """Return what the node knows once its metadata `log` (None if there is none) is loaded, truncated or not."""
    metadata = node.metadata
    if node.starts_empty and node.is_kraft:
        metadata = MetadataImage()
    # An unfinished tail does not count as damage.
    is_cut = metadata is not None and bool(metadata.problems) and log is not None and bool(log.loses or log.stops)
    is_whole = metadata is not None and not metadata.newer and not is_cut
    voters = [] if quorum is None or not quorum.isVoter else quorum.voters
    is_sole = node.starts_empty or (metadata is not None and len(voters) == 1)
    if is_sole and log is not None and not node.leaves_zookeeper:
        own = metadata_after(log, node.disks)
        if own is not None and not own.newer and log.cuts:
            metadata, is_whole = own, True
    strays = StrayPartitions(metadata, node.leaves_zookeeper, lambda id_: node.disks.topic_history(id_, node.source))
    known = ClusterKnowledge(metadata, is_whole, is_sole, strays)
    # A broker decides on strays once it has what the controllers have. If they are other nodes, a metadata log without
    # topics next to partitions is not what they have.
    if not (is_whole and (known.has_topics or is_sole)) and not node.leaves_zookeeper:
        return known._replace(strays=StrayPartitions(None))
    return known
