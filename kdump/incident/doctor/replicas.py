"""What the cluster's metadata states about leaders, in-sync replicas and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kdump.cluster.metadata_refusals import may_be_applied
from kdump.cluster.release_evidence import applied_release
from kdump.format.count_text import count_text
from kdump.format.iso_time import iso
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import Examination, OutOfTime, command
from kdump.log.internal_topics import METADATA_LOG, state_in
from kdump.log.log_directory import LogDirectory
from kdump.problems.catalogue import CLIENTS, DEGRADED, LOSES
from kdump.problems.problem import Problem
from kdump.questions.retention.answer import PartitionRetention
from kdump.state.effective_config import replication_limits
from kdump.state.metadata_image import MetadataImage, PartitionRegistration
from kdump.state.metadata_problem import Kind
from kdump.state.partition_problems import least_isr, trouble

CODES = {
    "offline": "partition-offline",
    "under-min-isr": "partition-under-min-isr",
    "under-replicated": "partition-under-replicated",
    "recovering": "partition-unclean-leader",
}
"""The problem that each trouble of a partition is; of several, the first one."""
HOUR = 3_600_000


def examine_replicas(disks: Disks, on: Examination) -> None:
    """Report the partitions without a leader or with too few in-sync replicas, and fenced brokers, of each cluster."""
    question = on.question
    for directories in disks.clusters.values():
        source, metadata = disks.metadata(directories)
        if metadata is not None:
            ReplicasExamination(disks, directories, source, metadata, on).run()
    if question.answer:
        try:
            _state_topics(disks, on)
        except OutOfTime:
            on.out_of_time("retention", *disks.paths, before="the retention of state was known")
    else:
        question.notExamined.append("there is no cluster metadata with topics on these disks")
    question.isComplete = not question.notExamined


class ReplicasExamination:
    """The replicas of one cluster. What is so because a broker whose disk is examined has stopped is only counted: it
    ends when that broker starts. `source`: the log directory that has the metadata."""

    def __init__(
        self,
        disks: Disks,
        directories: Sequence[LogDirectory],
        source: str,
        metadata: MetadataImage,
        on: Examination,
    ) -> None:
        self.on, self.source, self.metadata = on, source, metadata
        node = disks.node_of(next(each for each in directories if each.path == source))
        paths = [each.path for each in node.directories]
        self.release = applied_release(paths, metadata, disks.options.kafka_version).release
        """That of the node that has the metadata."""
        self.label = disks.cluster_label(source)
        brokers = [broker for broker in disks.brokers_of(directories) if not broker.is_copy]
        down = [each for each in brokers if all(here.process is None for here in each.directories)]
        ids = {disks.ids(each).get("directory.id", "") for broker in down for each in broker.directories}
        owners = {metadata.owner_of(each) for each in ids}
        self.stopped = {*(broker.node_id for broker in down), *owners} - {None}
        """IDs of the nodes of these disks that are not running."""
        self.is_current = any(each.process is not None for each in directories)
        """Whether the metadata is that of a running node: on the disk of a stopped one it is of the time it stopped."""
        here = {broker.node_id for broker in brokers} - self.stopped
        self.idle = {
            number
            for number, broker in metadata.brokers.items()
            if number in here and (broker.fenced or broker.inControlledShutdown)
        }
        """IDs of those that run, and do not serve clients yet, or no more: they are fenced, or shut down."""
        self.found: Counter[str] = Counter()
        self.waiting = 0
        """Number of partitions with a problem that ends when one of these nodes starts."""

    def run(self) -> None:
        question, metadata = self.on.question, self.metadata
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
        if (doubt := metadata.doubt) is not None:
            state = "has a record that nodes cannot apply" if doubt.kind == Kind.REFUSED else "is damaged"
            state = "has what is not known here" if may_be_applied(doubt, metadata, self.release) else state
            question.notExamined.append(f"the metadata {state}, so it may be out of date: {doubt.text}")
        self._answer(metadata, partitions)

    def _answer(self, metadata: MetadataImage, partitions: int) -> None:
        names = ("offline", "under-min-isr", "under-replicated", "reassigning")
        parts = [f"{self.found[name]:,} {name}" for name in names if self.found[name]]
        if self.waiting:
            nodes = _ids(sorted(node for node in self.stopped | self.idle if node is not None))
            which = "stopped, stopping or fenced" if self.idle else "stopped"
            parts.append(f"{self.waiting:,} lack a leader or replicas until a {which} broker starts ({nodes})")
        state = ", ".join(parts) or "each has a leader, and all replicas are in sync"
        answer = f"{count_text(partitions, 'partition')} in the metadata up to offset {metadata.end_offset}: {state}"
        self.on.answer(answer, self.label)

    def _ends_with_startup(self, info: PartitionRegistration) -> bool:
        if info.is_reassigning:
            return False
        if info.is_offline:
            candidates = info.isr or info.eligibleLeaderReplicas or info.lastKnownElr
            return any(node in self.stopped | self.idle for node in candidates)
        return all(node in self.stopped | self.idle for node in info.replicas if node not in info.isr)

    def _partition(
        self, topic: str, number: int, info: PartitionRegistration, problems: list[str], least: int, limits: list[str]
    ) -> None:
        state = f"replicas {_ids(info.replicas)}, in sync {_ids(info.isr)}, leader epoch {info.leaderEpoch}"
        if info.eligibleLeaderReplicas:
            state += f", eligible {_ids(info.eligibleLeaderReplicas)}"
        lagging = _ids([node for node in info.replicas if node not in info.isr])
        candidates = info.isr or info.eligibleLeaderReplicas
        alone = len(info.replicas) == 1
        code = next((CODES[each] for each in CODES if each in problems), None)
        if code is None:  # a reassignment is no problem
            return
        if limits:
            state += f"; replication is limited by {', '.join(limits)}"
        values: dict[str, object] = {"replicas": _ids(info.replicas), "lagging": lagging, "least": least}
        values |= {"candidates": " or ".join(map(str, candidates)), "TOPIC": topic, "PARTITION": number}
        facts = {"candidates": bool(candidates), "throttled": bool(limits), "onlyReplica": alone}
        self.on.report(
            Problem(code, values, facts, "alone" if alone and code == CODES["recovering"] else ""),
            self.source,
            severity="" if self.is_current else "warning",
            topic=topic,
            partition=number,
            evidence=(state,),
            commands=(command("cluster", self.source, "--topic", topic),),
            commandForAll=command("cluster", self.source, "--show", "partitions", "--problems"),
        )

    def _brokers(self, metadata: MetadataImage) -> None:
        fenced = sorted(
            number for number, broker in metadata.brokers.items() if broker.fenced and number not in self.stopped
        )
        if fenced:
            self.on.report(
                Problem("broker-fenced", {"brokers": _ids(fenced)}),
                self.source,
                evidence=(f"{METADATA_LOG} up to offset {metadata.end_offset}",),
                commands=(command("cluster", self.source, "--show", "brokers"),),
            )


def _state_topics(disks: Disks, on: Examination) -> None:
    """Report the topics whose retention deletes records that must stay."""
    places = [place for place in disks.places if place.known.topic is not None and state_in(place.known.topic)]
    for answer in (each for _, answers in disks.retention(places, on) for each in answers):
        if not isinstance(answer, PartitionRetention):
            continue
        at, before = answer.stateLostAt, answer.stateLostBefore
        if at is None and before is None:
            continue
        evidence = [f"retention.ms={answer.settings['retention.ms'].value}"]
        evidence[0] += "" if at is None else f", oldest records from offset {answer.logStartOffset}"
        evidence += [] if before is None else [f"log start offset {before}: offsets 0..{before - 1} are gone"]
        values = {"policy": answer.cleanupPolicy, "state": state_in(answer.topic), "TOPIC": answer.topic}
        values |= {"DIR": answer.path}
        on.report(
            Problem("state-topic-deleted", values | {"time": iso(at)}, case="deleted" if at is None else ""),
            answer.source,
            urgency=CLIENTS if at is None else LOSES if at < on.now + HOUR else DEGRADED,
            at=answer,
            evidence=tuple(evidence),
            commands=(command("retention", answer.source, "--topic", str(answer.topic)),),
        )


def _ids(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
