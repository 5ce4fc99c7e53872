"""Stray partitions: those that the cluster's metadata, as far as the disk has it, does not assign to a broker. The
broker renames their directories, but does not delete them.

Source: org.apache.kafka.storage.internals.log.LogManager.isStrayReplica, BrokerMetadataPublisher.initializeManagers."""

from __future__ import annotations

from collections.abc import Callable

from kdump.problems.problem import Problem
from kdump.state.metadata_image import MetadataImage, PartitionRegistration


class StrayPartitions:
    """Finds stray partitions. Without `metadata` none is reported, except on the disk of a broker that ran with
    ZooKeeper: no KRaft cluster's metadata has its topics. `history`: whether the metadata log created the topic with an
    ID, and whether it deleted it; None if that is unknown."""

    def __init__(
        self,
        metadata: MetadataImage | None,
        of_zookeeper: bool = False,
        history: Callable[[str], tuple[bool, bool | None]] = lambda topic_id: (False, None),
    ) -> None:
        self.metadata, self.of_zookeeper, self.history = metadata, of_zookeeper, history

    def assigned_to(self, topic_id: str | None, partition: int) -> tuple[int, ...] | None:
        """Return the brokers with replicas of a partition, by its topic ID; None if the metadata does not have it."""
        info = self._info(topic_id, partition)
        return None if info is None else tuple(info.replicas)

    def _info(self, topic_id: str | None, partition: int) -> PartitionRegistration | None:
        if self.metadata is None or topic_id is None:
            return None
        return self.metadata.registration(topic_id, partition)

    def problem(self, topic: str, partition: int, topic_id: str | None, node: int | None) -> Problem | None:
        """Return why the broker treats the directory as stray; None if it does not, or if that is unknown."""
        if self.of_zookeeper:
            return Problem("startup-stray-of-zookeeper")
        if self.metadata is None or node is None:
            return None
        of_topic = self.metadata.topics.get(topic)
        own = of_topic.partitions.get(partition) if of_topic is not None else None
        info = self._info(topic_id, partition)
        if info is not None:
            replicas = ", ".join(map(str, info.replicas))
            stray = Problem("startup-stray-unassigned", {"replicas": replicas, "node": node})
            return None if node in info.replicas else stray
        new_id = of_topic.id if of_topic is not None else ""
        values = {"topic": topic, "TOPIC": topic, "partition": partition, "id": topic_id, "newId": new_id}
        facts: dict[str, bool | None] = {"assigned": own is not None and node in own.replicas}
        if topic_id is None:
            return Problem("startup-stray-without-id", {**values, "log": f"{topic}-{partition}"}, facts)
        case = "noPartition" if new_id == topic_id else "otherId" if new_id else ""
        was_created, deleted = self.history(topic_id)
        # The log created it and never deleted it: what a node still reads of the log ends before that.
        facts["metadataLost"] = not self.metadata.topics or (was_created and deleted is False)
        facts["ofDeleted"] = False if deleted is None and facts["metadataLost"] else deleted
        return Problem("startup-stray-with-other-id", values, facts, case)

    def other_topic(self, topic: str, partition: int, topic_id: str | None, node: int | None) -> tuple[str, str] | None:
        """Return the name of another topic that has the ID of a directory which is not stray, and the ID that the
        broker expects there; None if there is none."""
        own = self.metadata.topics.get(topic) if self.metadata is not None else None
        if self.metadata is None or own is None or topic_id in (None, own.id) or partition not in own.partitions:
            return None
        other = self.metadata.by_id.get(topic_id or "")
        return None if other is None or node not in own.partitions[partition].replicas else (other.name, own.id)

    def directory_of(self, topic_id: str | None, partition: int, node: int | None) -> str | None:
        """Return the ID of the log directory to which the broker's replica is assigned; None if unknown."""
        info = self._info(topic_id, partition)
        return None if info is None else info.directory_of(node)
