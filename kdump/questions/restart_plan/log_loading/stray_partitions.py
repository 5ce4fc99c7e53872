"""Stray partitions: those that the cluster's metadata, as far as the disk has it, does not assign to a broker. The
broker renames their directories, but does not delete them.

Source: org.apache.kafka.storage.internals.log.LogManager.isStrayReplica, BrokerMetadataPublisher.initializeManagers.
"""

from __future__ import annotations

from kdump.state.metadata_image import MetadataImage
from kdump.state.partition_registrations import PartitionRegistration

WITHOUT_ID = "it has no partition.metadata, so its topic ID is unknown"


class StrayPartitions:
    """Finds stray partitions. Without `metadata` none is reported, except on the disk of a broker that ran with
    ZooKeeper: no KRaft cluster's metadata has its topics."""

    def __init__(self, metadata: MetadataImage | None, of_zookeeper: bool = False) -> None:
        self.metadata, self.of_zookeeper = metadata, of_zookeeper

    def _info(self, topic_id: str | None, partition: int) -> PartitionRegistration | None:
        if self.metadata is None or topic_id is None:
            return None
        return self.metadata.registration(topic_id, partition)

    def reason(self, topic: str, partition: int, topic_id: str | None, node: int | None) -> tuple[str, str]:
        """Return why the broker treats the directory as stray, and the remedy if there is one; both are empty if it
        does not, or if that is unknown."""
        if self.of_zookeeper:
            migrate = (
                "start the broker with the release that it ran before; 3.4 to 3.9 can migrate from ZooKeeper to KRaft"
            )
            return "its broker ran with ZooKeeper, so the partition is unknown to the KRaft cluster", migrate
        if self.metadata is None or node is None:
            return "", ""
        of_topic = self.metadata.topics.get(topic)
        own = of_topic.partitions.get(partition) if of_topic is not None else None
        info = self._info(topic_id, partition)
        if info is not None and node not in info.replicas:
            return f"its replicas are {', '.join(map(str, info.replicas))}, not {node}", ""
        if info is not None:
            return "", ""
        remedy = ""
        if of_topic is not None and own is not None and node in own.replicas:
            write = f"write the lines 'version: 0' and 'topic_id: {of_topic.id}' to its partition.metadata"
            if topic_id is None:
                remedy = f"if it is that partition, {write}"
            else:
                remedy = (
                    "if the topic was deleted and created again, leave the ID as it is: these are the old topic's "
                    f"records. If the topic was never deleted (kdump cluster --topic {topic} --history), the file is "
                    f"damaged: {write}"
                )
        if topic_id is None:
            return WITHOUT_ID, remedy
        now = f"the topic {topic} has the ID {of_topic.id}" if of_topic is not None else f"there is no topic {topic}"
        if of_topic is not None and of_topic.id == topic_id:
            now = f"the topic {topic} has no partition {partition}"
        return f"topic ID {topic_id}, partition {partition} is not in the cluster's metadata: {now}", remedy

    def directory_of(self, topic_id: str | None, partition: int, node: int | None) -> str | None:
        """Return the ID of the log directory to which the broker's replica is assigned; None if unknown."""
        info = self._info(topic_id, partition)
        return None if info is None else info.directory_of(node)
