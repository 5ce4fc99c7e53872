"""Which partitions the cluster does not expect on a broker: the metadata on the disk tells, as far as it goes.

Source: org.apache.kafka.storage.internals.log.LogManager.isStrayReplica, BrokerMetadataPublisher.initializeManagers.
"""

from __future__ import annotations

from kdump.state.image import Metadata, PartitionInfo


class Strays:
    """`metadata` None: nothing is known, and nothing is called a stray."""

    def __init__(self, metadata: Metadata | None) -> None:
        self.metadata = metadata

    def _info(self, topic_id: str | None, partition: int) -> PartitionInfo | None:
        if self.metadata is None or topic_id is None:
            return None
        topic = self.metadata.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def reason(self, topic: str, partition: int, topic_id: str | None, node: int | None) -> str:
        """Why the broker takes the directory for a stray; empty if it does not, or if nothing tells."""
        if self.metadata is None or node is None:
            return ""
        if topic_id is None:
            return "it has no partition.metadata, so that its topic id is not known"
        info = self._info(topic_id, partition)
        if info is None:
            known = self.metadata.topics.get(topic)
            now = f"the topic {topic} has the id {known.id}" if known is not None else f"there is no topic {topic}"
            return f"topic id {topic_id} is not in the cluster's metadata: {now}"
        if node not in info.replicas:
            return f"its replicas are {', '.join(map(str, info.replicas))}, and not {node}"
        return ""

    def directory_of(self, topic_id: str | None, partition: int, node: int | None) -> str | None:
        """The id of the log directory that the replica of a broker is assigned to."""
        info = self._info(topic_id, partition)
        if info is None or node not in info.replicas:
            return None
        number = info.replicas.index(node)
        return info.directories[number] if number < len(info.directories) else None
