"""Rebuilds a cluster's metadata from the partition directories of its brokers, if no copy of it is left.

Leaders: the replica with the highest last leader epoch, then the highest end, has the records that the last leader had
(KIP-101). In sync are those with the same records up to the same end: whoever of them registers last may lead.

Source: ReplicationControlManager.replay (partitions of brokers that are not registered yet), ClusterControlManager
.registerBroker (brokers register by themselves, each with the end offset of the metadata log as its epoch).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.cluster.disks import Disks
from kdump.cluster.release_evidence import completed, disk_release, level_name
from kdump.format.count_text import count_text, first_of
from kdump.format.kafka_release import KafkaRelease
from kdump.format.known_releases import at_most
from kdump.io import file_system
from kdump.io.run import Run
from kdump.kafka.config_def import config_exception
from kdump.log.internal_topics import METADATA_LOG, OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.problems.problem import title_of
from kdump.questions.rescue.answer import (
    Rescue,
    RescueDirectory,
    RescueError,
    RescueInvention,
    RescueLoss,
    RescueStep,
    RescueTopic,
    RescueUnknown,
)
from kdump.questions.rescue.config_file import GivenConfigs, GivenTopic, given_configs
from kdump.questions.rescue.coordinators import Coordinators, partition_count
from kdump.questions.rescue.data_copies import DELETE, NOT_USED, DataCopies, FoundTopic, LogCopy
from kdump.questions.rescue.rescuer import (
    WITH_DIRECTORY_ID,
    RescueQuery,
    Rescuer,
    refuse_copies,
    refuse_zookeeper,
    refused,
)
from kdump.questions.rescue.steps import aside_step, step_text, steps
from kdump.questions.rescue.topic_configs import BROKER_MIN_ISR, HELD, HOLD, MIN_ISR, RETENTION, topic_configs
from kdump.questions.rescue.write_log import NewLog
from kdump.state.metadata_image import BROKER as BROKER_TYPE
from kdump.state.metadata_image import TOPIC, MetadataImage, PartitionRegistration, ProducerIds, QuorumImage, TopicImage

UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAQ"
"""DirectoryId.UNASSIGNED: the broker chooses a log directory."""
QUORUM_FEATURE = "kraft.version"
FAR_OFFSETS, FAR_EPOCHS = 1_000_000_000, 1_000_000
"""How far the offset and the epoch of the new log are above those that were found: usually, none is found."""
NOTE, LOSS, UNKNOWN = "rescue-note", "rescue-loss", "rescue-unknown"
MAX_NAMED = 10
"""Maximum number of topics that a line names."""


class DataRescuer(Rescuer):
    """Rebuilds the state from partition directories."""

    more_offsets, more_epochs = FAR_OFFSETS, FAR_EPOCHS

    def __init__(self, disks: Disks, asked: RescueQuery, run: Run) -> None:
        super().__init__(disks, asked, run)
        self.epoch_places = ()  # the state is made of them
        self._old = [each for each in self.places if file_system.isdir(os.path.join(each.path, METADATA_LOG))]
        self._refuse_metadata()
        refuse_copies(disks)
        self.release = self._release()
        self.given = GivenConfigs() if asked.configs is None else self._checked(given_configs(asked.configs))
        self.notes = [title_of(NOTE, configs=asked.configs, line=each) for each in self.given.skipped]
        if self.given.unsure:
            topics_of = first_of(sorted(self.given.unsure))
            self.notes.append(title_of(NOTE, "describe", configs=asked.configs, topics=topics_of))
        self.copies = DataCopies(disks, self.cluster_id, self.given.topics, with_stray=asked.with_stray, run=run)
        self.topics: list[RescueTopic] = []
        self.losses: list[RescueLoss] = []
        topics = self.copies.topics
        self.coordinators = Coordinators(topics.get(OFFSETS_TOPIC), topics.get(TRANSACTION_TOPIC), run)
        self.image = self._state()
        self.voters = self.named_voters()

    def _refuse_metadata(self) -> None:
        """Raise RescueError if a copy of the metadata is left, which has all that the partitions do not show."""
        path, image = self.disks.newest_metadata(*(place.path for place in self._old)) if self._old else ("", None)
        if image is not None and image.topics:
            topics = count_text(len(image.topics), "topic")
            raise refused(path=path, topics=topics, last=image.end_offset - 1)
        refuse_zookeeper(self.disks)

    def _release(self) -> KafkaRelease:
        """Return the release that runs: nodes start with no level that is above what they know."""
        releases = [disk_release([each.path for each in node.directories], None) for node in self.disks.nodes]
        if self.asked.release is not None:
            return completed(self.asked.release, releases[0])
        for each in releases:
            if each.since != each.until or not each.is_stated or each.newer:
                raise RescueError(
                    "nothing on these disks states which release of Kafka runs: name the oldest one that a node of the "
                    "cluster runs with --kafka-version"
                )
        return min((each.release for each in releases), key=lambda each: each.line)

    def _checked(self, given: GivenConfigs) -> GivenConfigs:
        """Return what --configs states. Raises RescueError for a config with which no broker starts."""
        for name, topic in given.topics.items():
            for config, value in (topic.configs or {}).items():
                exception = config_exception(config, value, self.release)
                if exception:
                    raise RescueError(f"--configs {self.asked.configs}: {config}={value} of {name}: {exception}")
        return given

    def _state(self) -> MetadataImage:
        image = MetadataImage()
        levels = at_most(self.release.line).new_levels
        image.features = {name: level for name, level in levels.items() if level and name != QUORUM_FEATURE}
        image.kraft_version = int(self.asked.dynamic_quorum)
        if self.asked.dynamic_quorum and not levels.get(QUORUM_FEATURE):
            raise RescueError(f"--dynamic-quorum: Kafka {self.release.number} has none")
        remote = [each.remote_log(None, self.run.limits) for each in self.disks.nodes]
        tiered = {topic_id for each in remote for topic_id, _ in each.ends}
        epoch, coordinator, producer = 0, 0, self.coordinators.producer_id
        for name in list(self.copies.topics):
            topic = self.copies.topics.pop(name)  # what is known of its copies is not needed any more
            for facts in (each.facts for each in topic.every()):
                epoch, producer = max(epoch, facts.epoch), max(producer, facts.producer_id)
                coordinator = max(coordinator, facts.coordinator_epoch)
            made = TopicImage(name, topic.topic_id)
            image.topics[name] = image.by_id[topic.topic_id] = made
            for number in range(self._count(topic)):
                made.partitions[number] = self._partition(topic, number)
            sizes = [len(each.replicas) for each in made.partitions.values()]
            given = self.given.topics.get(name, GivenTopic())
            values, shown = dict(given.configs or {}), ["configs of --configs"]
            if given.configs is None:
                is_cleaned = name in self.copies.cleaned
                values, shown = topic_configs(
                    topic, max(sizes), is_cleaned=is_cleaned, is_tiered=topic.topic_id in tiered
                )
            made.configs = image.configs[TOPIC, name] = values
            self.notes += _without_remote(topic, values)
            lost = [number for number in made.partitions if number not in topic.copies]
            self.topics.append(
                RescueTopic(
                    name, topic.topic_id, topic.id_from, len(sizes), lost, max(sizes), min(sizes), values, shown
                )
            )
        for broker, values in self.given.brokers.items():
            image.configs[BROKER_TYPE, broker] = values
        for each in self.topics:
            for number, registration in image.topics[each.topic].partitions.items():
                # The epoch of a partition without a copy is not known.
                least = max(epoch * (number in each.lost), coordinator * (each.topic == TRANSACTION_TOPIC))
                if registration.leaderEpoch < least:
                    image.topics[each.topic].partitions[number] = registration._replace(leaderEpoch=least)
        image.producer_ids[""] = ProducerIds(-1, -1, producer + 1)
        return image

    def _count(self, topic: FoundTopic) -> int:
        """Return how many partitions a topic has, as far as anything names them."""
        named = [number + 1 for number in topic.copies]
        given = self.given.topics.get(topic.name, GivenTopic())
        named += [each.get(topic.name, -1) + 1 for each in (self.copies.checkpointed, self.coordinators.committed)]
        count = max(*named, given.partitions, *(each + 1 for each in given.replicas))
        return count if given.partitions else partition_count(self.coordinators.keys.get(topic.name, {}), count)

    def _partition(self, topic: FoundTopic, number: int) -> PartitionRegistration:
        copies = topic.copies.get(number, [])
        given = self.given.topics.get(topic.name, GivenTopic()).replicas.get(number, [])
        if copies:
            rank = max(each.rank for each in copies)
            equal = [each for each in copies if each.rank == rank]
            # A copy of the same end whose epochs differ has other records.
            first = equal[number % len(equal)]
            equal = [each for each in equal if _common(first, each) >= rank[1]]
            self._note_losses(topic, number, first, copies)
            leader, in_sync, epoch = first.node, [each.node for each in equal], max(each.facts.epoch for each in copies)
        else:
            nodes = given or self._nodes_for(topic, number)
            leader, in_sync, epoch = nodes[0], nodes[:1], 0
            given = nodes
            reason = title_of(LOSS)
            self.losses.append(RescueLoss(topic.name, number, leader, None, None, None, None, None, None, reason))
        holders = {each.node: each for each in copies}
        order = [each for each in dict.fromkeys((*given, leader, *holders)) if each in holders or each in given]
        if not given:
            order = [leader, *(each for each in order if each != leader)]
        directories: tuple[str, ...] = ()
        ids = [holders[each].directory_id if each in holders else UNASSIGNED for each in order]
        if self.line >= WITH_DIRECTORY_ID and None not in ids:
            directories = tuple(each for each in ids if each is not None)
        return PartitionRegistration(tuple(order), directories, leader, max(epoch, 0), tuple(in_sync), partitionEpoch=0)

    def _nodes_for(self, topic: FoundTopic, number: int) -> list[int]:
        """Return the nodes of a partition that none has: as many as its neighbours have, in turn."""
        nodes = sorted({each.node for each in topic.every()})
        size = max((len(each) for each in topic.copies.values()), default=1)
        return [nodes[(number + each) % len(nodes)] for each in range(min(size, len(nodes)))]

    def _note_losses(self, topic: FoundTopic, number: int, leader: LogCopy, copies: Iterable[LogCopy]) -> None:
        end = leader.facts.lineage.end
        if leader.facts.damaged is not None:
            reason = title_of(LOSS, "damaged")
            place = leader.node, end, leader.node, leader.log.path
            self.losses.append(RescueLoss(topic.name, number, *place, leader.facts.damaged, None, None, reason))
        for each in copies:
            own = each.facts.lineage
            first = max(_common(leader, each), leader.facts.lineage.start)
            if each is leader or own.end <= first:
                continue
            marks = [
                min(mark, _common(copy, each))
                for copy in copies
                if (mark := copy.facts.lineage.highWatermark) is not None
            ]
            committed = max(marks) > first if marks else None
            reason = title_of(LOSS, "diverges")
            place = leader.node, end, each.node, each.log.path
            self.losses.append(RescueLoss(topic.name, number, *place, first, own.end - 1, committed, reason))

    @property
    def images(self) -> list[QuorumImage]:
        quorums = [self.disks.copies.quorum(each.path) for each in self._old]
        return [*(each for each in quorums if each is not None), self.image]

    def found_directory(self, number: int) -> LogDirectory | None:
        own = [directory for node in self.disks.nodes if node.node_id == number for directory in node.directories]
        return next((directory for directory in own if directory in self._old), next(iter(own), None))

    def answers(self, made: Rescue) -> None:
        made.topics, made.directories = self.topics, self.copies.directories
        # Records that were committed, and whole partitions, first.
        made.losses = sorted(self.losses, key=lambda each: (each.nodeId is not None, not each.committed))
        made.unknowns = list(self._unknowns())
        summary = made.summary
        summary.fromData, summary.notes = True, list(self._notes())
        summary.lostPartitions = sum(len(each.lost) for each in self.topics)
        summary.lostOffsets = sum(
            each.lastOffset - each.firstOffset + 1
            for each in self.losses
            if each.firstOffset is not None and each.lastOffset is not None
        )
        summary.notUsed = sum(each.state in NOT_USED for each in self.copies.directories)

    def invent(self, log: NewLog) -> None:
        reason = "as kafka-storage.sh format chooses them for this release"
        levels = ", ".join(f"{name} {level_name(name, level)}" for name, level in self.image.features.items())
        self.inventions.append(RescueInvention("feature levels", None, levels, reason))
        for topic in self.topics:
            if topic.idFrom == "made":
                reason = "none of its directories states one"
                self.inventions.append(RescueInvention(f"topic ID of {topic.topic}", None, topic.topicId, reason))
        super().invent(log)

    def _notes(self) -> Iterator[str]:
        yield from self.notes
        for topic in self.topics:
            if topic.fewest < topic.replicas:
                yield title_of(NOTE, "replicas", topic=topic.topic, fewest=topic.fewest, most=topic.replicas)
        for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC):
            made = self.image.topics.get(name)
            if made is not None and not self.given.topics.get(name, GivenTopic()).partitions:
                partitions = count_text(len(made.partitions), "partition")
                yield title_of(NOTE, "partitions", topic=name, partitions=partitions)
        for each in self.topics:
            if each.topic in BROKER_MIN_ISR and self.given.topics.get(each.topic, GivenTopic()).configs is None:
                values = {"value": each.configs[MIN_ISR], "config": BROKER_MIN_ISR[each.topic]}
                yield title_of(NOTE, "minIsr", topic=each.topic, **values)
        yield from self._deleted()
        gone = sorted(set(self.coordinators.committed) - set(self.image.topics))
        if gone:
            yield title_of(NOTE, "notRebuilt", topics=first_of(gone, MAX_NAMED))

    def _deleted(self) -> Iterator[str]:
        """Yield which topics are rebuilt although a broker was deleting a directory of theirs."""
        ids = {topic.topicId: topic.topic for topic in self.topics}
        deleted: dict[str, list[RescueDirectory]] = {}
        for directory in self.copies.directories:
            if directory.state == DELETE and directory.topicId in ids:
                deleted.setdefault(ids[directory.topicId], []).append(directory)
        for name, directories in deleted.items():
            nodes, paths = [str(each.nodeId) for each in directories], [each.path for each in directories]
            yield title_of(NOTE, "deleted", topic=name, nodes=first_of(nodes), paths=first_of(paths))

    def steps(self, made: Rescue) -> Iterator[RescueStep]:
        controllers = {each.found for each in made.controllers}
        why = step_text("otherHistory")
        others = (each for each in self._old if each.path not in controllers)
        return steps(
            made, self.disks, (aside_step(each.path, self.disks.node_of(each).node_id, why) for each in others)
        )

    def _unknowns(self) -> Iterator[RescueUnknown]:
        """Yield what only the metadata had."""
        configs = "kafka-configs.sh --bootstrap-server HOST:PORT --alter"
        held = [topic.topic for topic in self.topics if RETENTION in topic.configs and HELD in topic.shown]
        if held:
            command = f"{configs} --entity-type topics --entity-name TOPIC --add-config NAME=VALUE"
            reason = title_of(UNKNOWN, held=HELD, configs=",".join(HOLD))
            yield RescueUnknown(f"configs of {count_text(len(held), 'topic')}", reason, command)
        if not self.given.brokers:
            command = f"{configs} --entity-type brokers --entity-default --add-config NAME=VALUE"
            yield RescueUnknown("dynamic configs of brokers", title_of(UNKNOWN, "brokers"), command)
        yield RescueUnknown(
            "users (SCRAM credentials)",
            title_of(UNKNOWN, "users"),
            f"{configs} --entity-type users --entity-name USER --add-config 'SCRAM-SHA-512=[password=PASSWORD]'",
        )
        yield RescueUnknown(
            "ACLs",
            title_of(UNKNOWN, "acls"),
            "kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal User:USER --operation OPERATION "
            "--topic TOPIC",
        )
        yield RescueUnknown(
            "quotas",
            title_of(UNKNOWN, "quotas"),
            f"{configs} --entity-type users --entity-name USER --add-config producer_byte_rate=BYTES",
        )
        yield RescueUnknown(
            "configs of groups and of client metrics",
            title_of(UNKNOWN, "groups"),
            f"{configs} --entity-type groups --entity-name GROUP --add-config NAME=VALUE",
        )
        yield RescueUnknown(
            "delegation tokens",
            title_of(UNKNOWN, "tokens"),
            "kafka-delegation-tokens.sh --bootstrap-server HOST:PORT --command-config FILE --create "
            "--max-life-time-period MS",
        )


def _without_remote(topic: FoundTopic, configs: dict[str, str]) -> Iterator[str]:
    """Yield which logs of a topic without remote storage look like those of one with it."""
    for copy in topic.every() if configs.get("remote.storage.enable") != "true" else ():
        if copy.facts.remote_start is not None:
            yield title_of(NOTE, "remote", path=copy.log.path, start=copy.facts.remote_start)


def _common(one: LogCopy, other: LogCopy) -> int:
    """Return the offset up to which two copies have the same records."""
    return one.facts.lineage.common_end(other.facts.lineage)
