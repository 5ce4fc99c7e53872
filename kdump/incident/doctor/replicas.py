"""What the cluster's metadata states about leaders, in-sync replicas and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kdump.format.count_text import count_text
from kdump.format.iso_time import iso
from kdump.incident.doctor.answer import Priority
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import Examination, command
from kdump.io.run import Run
from kdump.log.internal_topics import METADATA_LOG, state_in
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import LogDirectory
from kdump.questions.retention.answer import PartitionRetention
from kdump.questions.retention.run import retention
from kdump.state.effective_config import replication_limits
from kdump.state.metadata_image import MetadataImage
from kdump.state.partition_problems import least_isr, trouble
from kdump.state.partition_registrations import PartitionRegistration

NEVER_UNCLEAN = (
    "do not elect an unclean leader before you have compared the replicas (kdump diff): records that only the last "
    "leader has are then lost",
)
NEVER_LOWER = (
    "do not lower min.insync.replicas to make producers work again: acknowledged records are then on fewer disks",
)


def examine_replicas(disks: Disks, on: Examination) -> None:
    """Report the partitions without a leader or with too few in-sync replicas, and fenced brokers, of each cluster."""
    question = on.question
    for directories in disks.clusters.values():
        source, metadata = disks.metadata(directories)
        if metadata is not None:
            ReplicasExamination(disks, directories, source, on).run(metadata)
    if question.answer:
        _state_topics(disks, on)
    else:
        question.notExamined.append("there is no cluster metadata with topics on these disks")
    question.isComplete = not question.notExamined


class ReplicasExamination:
    """The replicas of one cluster. What is so because a broker whose disk is examined has stopped is only counted: it
    ends when that broker starts. `source`: the log directory that has the metadata."""

    def __init__(self, disks: Disks, directories: Sequence[LogDirectory], source: str, on: Examination) -> None:
        self.on = on
        self.source = source
        self.label = disks.cluster_label(source)
        self.stopped = {
            broker.node_id
            for broker in disks.brokers_of(directories)
            if not broker.is_copy and all(lock_holder(directory.path) is None for directory in broker.directories)
        } - {None}
        """IDs of the nodes of these disks that are not running."""
        self.found: Counter[str] = Counter()
        self.waiting = 0
        """Number of partitions with a problem that ends when one of these nodes starts."""

    def run(self, metadata: MetadataImage) -> None:
        question = self.on.question
        partitions = 0
        for name in sorted(metadata.topics):
            topic = metadata.topics[name]
            least = least_isr(metadata, topic)
            for number, info in sorted(topic.partitions.items()):
                partitions += 1
                problems = trouble(info, least)
                if problems and self._ends_with_startup(info):
                    self.waiting += 1
                    problems = [each for each in problems if each == "recovering"]
                if problems:
                    self.found.update(problems)
                    limits = replication_limits(metadata, name, number, info)
                    self._partition(name, number, info, problems, least, limits)
        question.partitions += partitions
        self._brokers(metadata)
        for problem in metadata.problems[:1]:
            state = "has what is not known here" if metadata.newer else "is damaged"
            state = "has a record that nodes refuse" if metadata.refusals and not metadata.newer else state
            question.notExamined.append(f"the metadata {state}, so it may be out of date: {problem}")
        self._answer(metadata, partitions)

    def _answer(self, metadata: MetadataImage, partitions: int) -> None:
        names = ("offline", "under-min-isr", "under-replicated", "reassigning")
        parts = [f"{self.found[name]:,} {name}" for name in names if self.found[name]]
        if self.waiting:
            stopped = _ids(sorted(node for node in self.stopped if node is not None))
            parts.append(f"{self.waiting:,} lack a leader or replicas until a stopped broker starts ({stopped})")
        state = ", ".join(parts) or "each has a leader, and all replicas are in sync"
        answer = f"{count_text(partitions, 'partition')} in the metadata up to offset {metadata.end_offset}: {state}"
        self.on.answer(answer, self.label)

    def _ends_with_startup(self, info: PartitionRegistration) -> bool:
        if info.is_reassigning:
            return False
        if info.is_offline:
            candidates = info.isr or info.eligibleLeaderReplicas or info.lastKnownElr
            return any(node in self.stopped for node in candidates)
        return all(node in self.stopped for node in info.replicas if node not in info.isr)

    def _partition(
        self,
        topic: str,
        number: int,
        info: PartitionRegistration,
        problems: list[str],
        least: int,
        limits: list[str],
    ) -> None:
        state = f"replicas {_ids(info.replicas)}, in sync {_ids(info.isr)}, leader epoch {info.leaderEpoch}"
        if info.eligibleLeaderReplicas:
            state += f", eligible {_ids(info.eligibleLeaderReplicas)}"
        lagging = _ids([node for node in info.replicas if node not in info.isr])
        actions: tuple[str, ...]
        never: tuple[str, ...]
        if "offline" in problems:
            candidates = info.isr or info.eligibleLeaderReplicas or info.lastKnownElr
            first = (f"start broker {_ids(candidates)} again: it has all committed records",) if candidates else ()
            how = Priority.NO_LEADER, "error", "partition-offline"
            title = "the partition has no leader: no client can read or write it"
            actions = (*first, "if it cannot be started, copy its disk, and compare the replicas with kdump diff")
            never = NEVER_UNCLEAN
        elif "under-min-isr" in problems:
            how = Priority.MIN_ISR, "error", "partition-under-min-isr"
            title = f"fewer in-sync replicas than min.insync.replicas ({least}): producers with acks=all fail"
            actions = (f"find out why broker {lagging} does not follow: is it up, is its disk full or damaged?",)
            never = NEVER_LOWER
        elif "under-replicated" in problems:
            how = Priority.WARNING, "warning", "partition-under-replicated"
            title = "not all replicas are in sync"
            actions = (f"find out why broker {lagging} does not follow",)
            never = ("do not stop a broker that is the only one in sync",)
        elif "recovering" in problems:
            how = Priority.WARNING, "warning", "partition-unclean-leader"
            title = "the leader was elected uncleanly and has not recovered: records may have been lost"
            actions = ("compare the replicas with kdump diff",)
            never = ("do not delete another replica before you have compared it: it may have what this leader lacks",)
            if len(info.replicas) == 1:
                title = "the only replica leads again after an unclean shutdown: what was not on the disk is lost"
                actions = ("nothing: if only the process ended, and not the machine, everything was on the disk",)
                never = ()
        else:  # a reassignment is no problem
            return
        if limits:
            state += f"; replication is limited by {', '.join(limits)}"
            actions += ("raise the throttle; kafka-reassign-partitions.sh --verify removes that of a reassignment",)
        self.on.item(
            *how,
            self.source,
            title,
            topic=topic,
            partition=number,
            evidence=(state,),
            commands=(command("cluster", self.source, "--topic", topic),),
            commandForAll=command("cluster", self.source, "--show", "partitions", "--problems"),
            actions=actions,
            never=never,
        )

    def _brokers(self, metadata: MetadataImage) -> None:
        fenced = sorted(
            number for number, broker in metadata.brokers.items() if broker.fenced and number not in self.stopped
        )
        if fenced:
            self.on.item(
                Priority.WARNING,
                "warning",
                "broker-fenced",
                self.source,
                f"fenced, and serving no clients: broker {_ids(fenced)}",
                impact="it has stopped, or does not reach the controllers",
                evidence=(f"{METADATA_LOG} up to offset {metadata.end_offset}",),
                commands=(command("cluster", self.source, "--show", "brokers"),),
                actions=("start it, or find out why it does not reach the controllers",),
                never=("do not unregister or format it before you know that others have all its records",),
            )


def _state_topics(disks: Disks, on: Examination) -> None:
    """Report the topics whose retention deletes records that must stay."""
    partitions = (place for directory in disks.directories for place in directory.partitions)
    topics = {place.topic for place in partitions if place.topic is not None and state_in(place.topic)}
    if not topics:
        return
    every = retention(disks.paths, now=on.now, topics=topics, deep=False, run=Run(unreadable=on.unreadable))
    for answer in every:
        if not isinstance(answer, PartitionRetention):
            continue
        at, before, what = answer.stateLostAt, answer.stateLostBefore, state_in(answer.topic)
        if at is None and before is None:
            continue
        compact = "cleanup.policy=compact" + ("" if at is None else " before")
        deletes = f"retention has deleted {what}" if at is None else f"retention deletes {what} from {iso(at)} on"
        evidence = [f"retention.ms={answer.settings['retention.ms'].value}"]
        evidence[0] += "" if at is None else f", oldest records from offset {answer.logStartOffset}"
        evidence += [] if before is None else [f"log start offset {before}: offsets 0..{before - 1} are gone"]
        on.item(
            Priority.GROUPS,
            "error",
            "state-topic-deleted",
            answer.source,
            f"cleanup.policy={answer.cleanupPolicy}: {deletes}",
            topic=answer.topic,
            partition=answer.partition,
            impact=f"the {what} whose last record is older are lost",
            evidence=tuple(evidence),
            commands=(command("retention", answer.source, "--topic", str(answer.topic)),),
            titleForAll="retention deletes records that must stay",
            actions=(
                f"set {compact}: kafka-configs.sh --bootstrap-server HOST:9092 --alter "
                f"--entity-type topics --entity-name {answer.topic} --add-config cleanup.policy=compact",
                "copy the partition's directory first",
            ),
            never=("do not delete the topic to have it created again",),
        )


def _ids(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
