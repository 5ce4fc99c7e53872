"""What the metadata and the coordinators' logs on this disk have of topics, nodes, groups, transactional IDs and
producers that a message names. Each is read once, when a message needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.read_groups import newest, read_groups
from kdump.cluster.topic_coverage import coverage
from kdump.cluster.transaction_coordinator import PREPARED, TransactionCoordinatorState, read_coordinator
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.incident.explain.answer import GROUP, IDENTITY, NODE, PRODUCER, TOPIC, TRANSACTION, Evidence
from kdump.incident.explain.disk_places import DiskPlaces
from kdump.io.run import Limits, Run, ignore
from kdump.kafka.quorum_state import complete_quorum
from kdump.kafka.small_files import properties
from kdump.log.internal_topics import METADATA_LOG, METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import META, LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.questions.producers.answer import Producer
from kdump.questions.producers.run import producers
from kdump.state.groups import GroupCoordinatorState
from kdump.state.metadata_image import Endpoint, MetadataImage

MOST_PARTITIONS = 20
"""Maximum number of partitions of a transaction or a topic that are named."""
ID_KEYS = ("cluster.id", "node.id", "broker.id", "directory.id", "version")


def node_of(directory: LogDirectory) -> tuple[str | None, str | None]:
    """Return the node and the cluster that a log directory is of, by its meta.properties."""
    file = directory.files.get(META)
    identity = {} if file is None else properties(file)
    return identity.get("node.id", identity.get("broker.id")), identity.get("cluster.id")


class DiskState:
    """State of the cluster in the files of `places`. `disks`: the log directories among them."""

    def __init__(self, places: DiskPlaces, limits: Limits, disks: Disks) -> None:
        self.places, self.limits, self.disks = places, limits, disks

    @cached_property
    def metadata(self) -> tuple[str, MetadataImage] | None:
        """The newest metadata of the cluster, and the path of its log; None if no directory has one."""
        source, newest = self.disks.newest_metadata()
        if newest is None:
            return None
        path = f"{source.rstrip('/')}/{METADATA_LOG}"
        metadata = replace(newest)  # which others use as it is
        complete_quorum(metadata, path)
        return path, metadata

    @cached_property
    def groups(self) -> GroupCoordinatorState:
        of_one = next((each for each in self.disks.clusters.values() if any(logs_in(place) for place in each)), [])
        logs = newest([log for directory in of_one for log in logs_in(directory)])
        return read_groups(logs, run=Run(self.limits))

    @cached_property
    def coordinator(self) -> TransactionCoordinatorState | None:
        count = None if self.metadata is None else self.metadata[1].partition_count(TRANSACTION_TOPIC)
        return read_coordinator([each.path for each in self._of(TRANSACTION_TOPIC)], count, self.limits)

    def _of(self, topic: str) -> list[PartitionDirectory]:
        live = (each for places in self.places.partitions.values() for each in places if not each.state)
        return [each for each in live if each.topic == topic]

    def identity(self, directory: LogDirectory) -> Evidence:
        """Return the contents of meta.properties."""
        file = directory.files.get(META)
        path = f"{directory.path.rstrip('/')}/{META}"
        if file is None:
            return Evidence(IDENTITY, path, None, None, f"{META} is missing")
        identity = properties(file)
        ids = ", ".join(f"{key}={identity[key]}" for key in ID_KEYS if key in identity)
        return Evidence(IDENTITY, path, None, None, f"{META}: {ids or 'has none of the values that Kafka needs'}")

    def node(self, number: int) -> Iterator[Evidence]:
        """Yield what the metadata has of a node: its registration, or its place in the quorum."""
        if self.metadata is None:
            return
        path, image = self.metadata
        texts = []
        broker, controller, voter = image.brokers.get(number), image.controllers.get(number), image.voters.get(number)
        if broker is not None:
            state = "fenced" if broker.fenced else "not fenced"
            texts.append(f"registered as a broker, {state}, at {_addresses(broker.endPoints)}")
        if controller is not None:
            texts.append(f"registered as a controller at {_addresses(controller.endPoints)}")
        if voter is not None:
            leads = image.leader is not None and image.leader.leaderId == number
            texts.append("a voter of the quorum" + (" and its last known leader" if leads else ""))
        line = f"node {number}: {'; '.join(texts) or 'not in the metadata'} (metadata up to offset {image.end_offset})"
        yield Evidence(NODE, path, None, image.end_offset, line)

    def quorum(self) -> Iterator[Evidence]:
        """Yield the quorum's voters and its last known leader."""
        if self.metadata is None:
            return
        path, image = self.metadata
        voters = ", ".join(map(str, sorted(image.voters))) or "unknown"
        leader = "unknown" if image.leader is None else f"{image.leader.leaderId} epoch {image.leader.leaderEpoch}"
        line = f"quorum: voters {voters}; last known leader {leader}; metadata up to offset {image.end_offset}"
        yield Evidence(NODE, path, None, image.end_offset, line)

    def topic(self, name: str | None, ids: tuple[str, ...], partition: int | None) -> Iterator[Evidence]:
        """Yield what the metadata has of a topic with that name or one of these IDs, and of one partition."""
        if self.metadata is None:
            return
        path, image = self.metadata
        topics = [image.topics.get(name or ""), *(image.by_id.get(each) for each in ids)]
        for topic in {each.id: each for each in topics if each is not None}.values():
            line = f"topic {topic.name}: ID {topic.id}, {count_text(len(topic.partitions), 'partition')}"
            info = None if partition is None else topic.partitions.get(partition)
            if info is not None:
                leader = "no leader" if info.leader < 0 else f"leader {info.leader}"
                line += f"; partition {partition}: {leader} epoch {info.leaderEpoch}"
                line += f", replicas {_numbers(info.replicas)}, ISR {_numbers(info.isr)}"
            yield Evidence(TOPIC, path, None, image.end_offset, line)
        for each in ids:
            if each not in image.by_id:
                yield Evidence(TOPIC, path, None, image.end_offset, f"no topic has the ID {each}")
        if name is not None and name not in image.topics and not any(topics) and name != METADATA_TOPIC:
            yield Evidence(TOPIC, path, None, image.end_offset, f"topic {name} is not in the metadata")

    def group(self, name: str) -> Iterator[Evidence]:
        """Yield what the coordinators' logs have of a group."""
        groups = self.groups
        path = groups.logs[0].path if groups.logs else ""
        if not groups.logs:
            yield Evidence(GROUP, path, None, None, f"group {name}: no partition of {OFFSETS_TOPIC} is on this disk")
            return
        group, offsets = groups.groups.get(name), groups.offsets.get(name, {})
        if group is None and not offsets:
            here = (log.partition for log in groups.logs if log.topic == OFFSETS_TOPIC)
            covered = coverage(OFFSETS_TOPIC, here, self.metadata and self.metadata[1])
            line = f"group {name}: not in {covered.text} on this disk"
            removed = groups.removed.groups.get(name)
            if removed is not None:
                line += f"; it was removed by offset {removed.record} of {OFFSETS_TOPIC}-{removed.partition}"
            elif covered.lacks(name):
                line += f"; {covered.lacks(name)}"
            yield Evidence(GROUP, path, None, None, line)
            return
        state = "" if group is None else f"{group.type}, {group.state}, {count_text(len(group.members), 'member')}, "
        places = [f"{topic}-{number}={commit.offset}" for (topic, number), commit in sorted(offsets.items())]
        line = f"group {name}: {state}{count_text(len(places), 'committed offset')}"
        if places:
            line += f" ({first_of(places, 5)})"
        yield Evidence(GROUP, path, None, None, line)

    def transactional_id(self, name: str) -> Iterator[Evidence]:
        """Yield the coordinator's last record of a transactional ID."""
        coordinator = self.coordinator
        if coordinator is None:
            line = f"transactional ID {name}: no partition of {TRANSACTION_TOPIC} is on this disk"
            yield Evidence(TRANSACTION, "", None, None, line)
            return
        current, last = coordinator.by_id.get(name), coordinator.history.last_records.get(name)
        path = next((each.path for each in self._of(TRANSACTION_TOPIC) if last and each.name == last.name), "")
        if current is None:
            line = f"transactional ID {name}: not in {coordinator.coverage.text} on this disk"
            lacks = "" if last else coordinator.coverage.lacks(name)
            yield Evidence(TRANSACTION, path, None, None, f"{line}; {lacks}" if lacks else line)
            return
        line = f"transactional ID {name}: producer {current.producerId} epoch {current.producerEpoch}, {current.state}"
        places = [f"{topic}-{number}" for topic, numbers in current.partitions.items() for number in numbers]
        if places:
            line += f", partitions {first_of(places, MOST_PARTITIONS)}"
            line += "; not completed: its producer gets CONCURRENT_TRANSACTIONS" if current.state in PREPARED else ""
        yield Evidence(TRANSACTION, path, None, None if last is None else last.offset, line)

    def prepared(self) -> Iterator[Evidence]:
        """Yield the transactions that the coordinators have not completed."""
        coordinator = self.coordinator
        names = [] if coordinator is None else [transaction.transactionalId for transaction in coordinator.prepared()]
        for name in names[:MOST_PARTITIONS]:
            yield from self.transactional_id(name or "")
        if coordinator is None or not names:
            where = f"no partition of {TRANSACTION_TOPIC}"
            if coordinator is not None:
                where = f"no transaction is in Prepare in {coordinator.coverage.text}"
            yield Evidence(TRANSACTION, "", None, None, f"{where} on this disk")

    def producer(self, number: int, place: PartitionDirectory) -> Iterator[Evidence]:
        """Yield what a partition has of a producer ID."""
        has_batches = False
        for row in producers(place.path, producer_ids=[number], run=Run(self.limits, ignore)):
            if not isinstance(row, Producer):
                continue
            has_batches = True
            line = f"producer {number}: {count_text(row.batches, 'batch', 'batches')}"
            if row.transactionalId is not None:
                line += f", transactional ID {row.transactionalId}"
            if row.lastSequence is not None:
                line += f", epoch {row.epoch}, last sequence {row.lastSequence} at offset {row.lastOffset}"
            else:
                line += ", not in the state that a broker loads at startup"
            if row.gaps or row.duplicates or row.fenced or row.epochStarts:
                duplicates = plain_count(row.duplicates, "duplicate")
                fenced = plain_count(row.fenced, "fenced batch", "fenced batches")
                line += f"; {plain_count(row.gaps, 'gap')}, {duplicates}, {fenced}"
            yield Evidence(PRODUCER, row.file, row.position, row.lastOffset, line)
        if not has_batches:
            line = f"producer {number}: no batch in this log: retention or compaction deleted them, or it never wrote"
            yield Evidence(PRODUCER, place.path, None, None, line)


def _addresses(endpoints: tuple[Endpoint, ...]) -> str:
    return ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints) or "no address"


def _numbers(nodes: tuple[int, ...]) -> str:
    return ", ".join(map(str, nodes)) or "none"
