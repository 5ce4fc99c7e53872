"""Will the broker start, and what does that lose? From kdump.questions.restart_plan."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from kdump.check.engine.unflipped import unflipped
from kdump.check.engine.units import CheckUnit
from kdump.cluster.release_evidence import DISK, START_CHECKPOINT
from kdump.format.count_text import count_text, size_text
from kdump.format.kafka_release import KafkaRelease
from kdump.incident.doctor.answer import AffectedRange
from kdump.incident.doctor.disks import Broker, Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.incident.doctor.intact_copies import IntactCopies
from kdump.io import file_system
from kdump.io.directory_listing import is_inside
from kdump.io.errors import SourceError
from kdump.io.run import ignore
from kdump.kafka.errors import KafkaError
from kdump.kafka.file_log_input_stream import RecordBatchView, read_batches
from kdump.kafka.small_files import topic_id
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.lock_holder import lock_holder
from kdump.log.log_directory import META, LogDirectory
from kdump.log.paths import seen_file
from kdump.log.region import Batch
from kdump.log.region_reader import regions
from kdump.problems.catalogue import STOPS, covers_an_error
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import (
    DELETED,
    EXIT,
    HIDDEN,
    STOPPED,
    UNKNOWN,
    PartitionPlan,
    RestartPlan,
    StartupFailure,
)
from kdump.questions.restart_plan.course import FIRST_MINUTES, MAY, METADATA, RECORDS, Course, Loss, StartupEvent
from kdump.questions.restart_plan.loading_events import kind_of
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.identity import starts_as
from kdump.questions.restart_plan.plan_text import (
    UNKNOWN_START,
    loss_texts,
    metadata_text,
    no_loss_text,
    once_text,
    release_texts,
    saved_text,
    start_text,
    time_text,
    unknown_text,
)
from kdump.questions.restart_plan.replicas.quorum_replicas import Quorum
from kdump.questions.restart_plan.replicas.replica_answer import ClusterSummary, PartitionReplicas, WorstLoss
from kdump.questions.restart_plan.replicas.replicas_report import worst_text
from kdump.questions.restart_plan.replicas.restart_cluster import ClusterPlan, joined
from kdump.questions.restart_plan.run import RestartQuery, plan_course, predict_startup
from kdump.text import shell_words

CONSEQUENCE = "startup-open-transaction"
"""Code of a failure that another one has caused."""
SHOWN = 2
"""Number of partitions that are shown as evidence."""
FROM_OTHERS = ("startup-forgotten-leader", "startup-other-leader", "startup-epoch-again")
"""Warnings about a node that only the disks of other nodes show."""
VERSION = "VERSION"
"""What stands for a release that is not known."""
MAX_TOPIC_IDS = 2000
"""Maximum number of partitions of a broker whose topic IDs are compared with those of other clusters."""


@dataclass
class BrokerLine:
    """The line of a broker in the answer. `label`: what precedes it if there are several; `never`: that its controllers
    reject its cluster.id."""

    label: str
    text: str
    never: str = ""

    def __str__(self) -> str:
        return f"{self.label}{self.never}{self.text}"


class StartupExamination:
    """Predicts the next startup of each broker, of `release` or of the one that ran on the disk. `plans`: those of the
    brokers so far."""

    def __init__(self, disks: Disks, on: Examination, release: KafkaRelease | None = None) -> None:
        self.disks, self.on, self.release = disks, on, release
        self.plans: list[RestartPlan] = []
        self._together: list[StartupEvent] = []
        """What the brokers of a cluster lose together."""
        self._has_changed_since: set[str] = set()
        """Directories of partitions that a broker at work has changed since they were read."""
        self.ordered: set[tuple[str, str, int]] = set()
        """Log directory, topic and number of partitions that lose records if their brokers start in the wrong order."""
        self._lines: dict[str, BrokerLine] = {}
        """By the path of the broker's first log directory."""
        self._of_clusters: list[str] = []
        """What follows these lines."""
        self._consequences: list[StartupFailure] = []
        """What follows from a file of a log directory for partitions in it, of the broker that is examined."""
        self._without_quorum = False
        """Whether the voters of a cluster cannot elect a controller."""
        self._began = 0.0
        """When the examination of the broker began, in epoch seconds."""
        self._metadata_read: tuple[str, int] | None = None
        """The log directory and the end of the metadata then."""
        self._changing = 0
        """Number of its partitions that a broker at work has changed since."""

    @property
    def does_not_start(self) -> bool:
        return self._without_quorum or any(plan.verdict == STOPPED for plan in self.plans if plan.directories)

    @property
    def is_unknown(self) -> bool:
        """Whether it is not known of a broker whether it starts."""
        return any(plan.verdict == UNKNOWN for plan in self.plans if plan.directories)

    def is_full(self, directory: str) -> bool:
        """Return True if it was reported that a log directory has no space to start."""
        every = (each for plan in self.plans for each in plan.directories if each.path == directory)
        return any(stop.code == "startup-disk-full" for each in every for stop in each.stops)

    @property
    def certainty(self) -> str:
        """Whether a startup loses data then or within an hour: certain, may, or no."""
        return Course([*self._together, *(each for plan in self.plans for each in self._losses(plan))]).losesWithinHour

    def _losses(self, plan: RestartPlan) -> list[StartupEvent]:
        """Return what a plan's course loses, but for what loading the logs does to those that have changed since."""
        course = plan.course if plan.course.events else plan_course(plan)  # the time was over before it was complete
        return [each for each in course.losses if not (each.is_of_log and each.file in self._has_changed_since)]

    def run(self) -> None:
        """Examine all brokers. Raises OutOfTime."""
        question = self.on.question
        if not self.disks.brokers:
            question.notExamined.append("a partition alone does not show how its broker was shut down")
            return
        done = 0
        for broker in self.disks.brokers:
            done += self._broker(broker)
        self._mixed_clusters()
        self._start_order()
        self._wrong_cluster_ids()
        question.isComplete = done == len(self.disks.brokers) and not question.unread

    def _mixed_clusters(self) -> None:
        """Report directories with one node ID and different cluster IDs: those of one broker, if a volume of another
        cluster is mounted, or those of two brokers, if clusters are compared."""
        by_node: dict[str, dict[str, str]] = {}
        for broker in self.disks.brokers:
            node, cluster = broker.ids.get("node.id"), broker.ids.get("cluster.id")
            if node and cluster:
                by_node.setdefault(node, {}).setdefault(cluster, broker.paths[0])
        for node, clusters in by_node.items():
            if len(clusters) > 1:
                paths = [*clusters.values()]
                self.on.report(
                    Problem("startup-clusters-differ", {"node": node, "count": len(clusters)}),
                    paths[0],
                    evidence=tuple(f"{path}: cluster.id {cluster}" for cluster, path in clusters.items()),
                    file=None,
                    commands=(command("restart-plan", *paths, *self._of_release),),
                )

    def _start_order(self) -> None:
        """Report whether the voters of a cluster elect a controller that has its metadata, and which broker has to
        start first, if replicas lose records otherwise."""
        for directories in self.disks.clusters.values():
            paths = [directory.path for directory in directories]
            own = [plan for plan in self.plans if plan.directories and plan.directories[0].path in paths]
            plans = {plan.nodeId: plan for plan in own if plan.nodeId is not None}
            if len(plans) < 2 or len(plans) < len(own):
                continue
            try:
                options = self.on.reporting(replace(self.disks.options, found=ignore))
                made = joined(dict(sorted(plans.items())), self.disks, options, paths)
            except OutOfTime:
                self.on.out_of_time("restart-plan", *paths, before="the order of starts was known")
                break
            summary = made.summary
            if summary is not None and made.voting is not None:
                self._quorum(summary, made.voting, directories)
            self._changed(made)
            if summary is not None and summary.worst is not None:
                self._replica_losses(summary, summary.worst, made.replicas, paths)
        self._state()

    def _state(self) -> None:
        """State what is known so far as the answer."""
        question = self.on.question
        question.byBroker = [*map(str, self._lines.values()), *self._of_clusters]
        question.answer = "; ".join(question.byBroker)

    def _changed(self, cluster: ClusterPlan) -> None:
        """Report what only the disks of the others show of a node: directories that become stray, and that it exits.
        State in its line what is left to the plan of the nodes together."""
        by_path = {broker.directories[0].path: broker for broker in self.disks.brokers}
        for node, plan in cluster.plans.items():
            broker = next((by_path[each.path] for each in plan.directories if each.path in by_path), None)
            changed = [log for owner, log in cluster.changed if owner == node]
            if broker is None:
                continue
            for log in changed:
                self._partition(log, broker)
            for problem in plan.directories[0].problems:
                if problem.code in FROM_OTHERS:
                    self._of_directory(problem, plan.directories[0].path, broker)
            self._lines[broker.directories[0].path].text = answer(plan)

    def _quorum(self, summary: ClusterSummary, voting: Quorum, directories: list[LogDirectory]) -> None:
        """Report that no controller is elected, or that one can be that lacks what may have been committed."""
        paths = [directory.path for directory in directories]
        run = (command("restart-plan", *paths, *self._of_release),)
        values: dict[str, object] = {"directories": shell_words(paths), "count": len(summary.voters)}
        if summary.hasQuorum is False and not summary.halting:
            values |= {"left": len(summary.ableVoters), "majority": summary.majority}
            values |= {"replaced": " and ".join(map(str, voting.replaced))}
            self._without_quorum = True
            self._of_clusters.append("NO CONTROLLER IS ELECTED: kdump restart-plan")
            self.on.report(
                Problem("startup-quorum-lost", values, {"replacedVoters": bool(voting.replaced)}),
                paths[0],
                commands=run,
            )
        elif summary.quorumLoses and not self._empty_controllers(voting, directories):
            first = summary.firstVoters
            strays = f", and {count_text(summary.strays, 'directory becomes', 'directories become')} stray"
            values |= {"leaders": f"controller {' or '.join(map(str, summary.electable))}"}
            values |= {"lost": f"up to {count_text(summary.quorumLoses, 'record')}"}
            values |= {"strays": strays if summary.strays else "", "first": " and ".join(map(str, first))}
            values |= {"best": first[0] if first else ""}
            facts = {"orderDecides": bool(first), "losesInAnyOrder": bool(summary.quorumLosesLeast)}
            self._of_clusters.append(f"MAY LOSE {summary.quorumLoses:,} RECORDS OF THE METADATA: kdump restart-plan")
            problem = Problem("startup-quorum-loses", values, facts)
            self._lose_together(problem, Loss(METADATA, MAY, summary.quorumLoses), paths[0], commands=run)

    def _lose_together(self, problem: Problem, loss: Loss, source: str, **more: Any) -> None:
        """Report what the brokers of a cluster lose together. `more`: other fields of Item."""
        self._together.append(StartupEvent(FIRST_MINUTES, problem, None, loss=loss))
        self.on.report(problem, source, **more)

    def _replica_losses(
        self, summary: ClusterSummary, worst: WorstLoss, replicas: list[PartitionReplicas], paths: list[str]
    ) -> None:
        """Report what replicas lose when the brokers have joined, and how they lose least."""
        first, *others = map(str, summary.startOrder)
        chosen = summary.chosen[0] if summary.chosen else None
        values: dict[str, object] = {
            "worst": count_text(summary.worstLost, "offset"),
            "acknowledged": f"{summary.worstAcknowledged:,}",
            "named": worst_text(worst),
            "first": first,
            "then": ", then ".join(others),
            "lost": count_text(summary.lost, "offset") if summary.lost else "nothing",
            "diff": command("diff", *paths),
        }
        if chosen is not None:
            values |= {"stopped": " and ".join(map(str, chosen.stopped)), "leader": chosen.leader}
            values |= {"TOPIC": chosen.topic, "PARTITION": chosen.partition}
        facts = {"losesInAnyOrder": bool(summary.lost), "orderDecides": summary.order_decides and bool(others)}
        how = f"start broker {first} first, then {', '.join(others)}" if facts["orderDecides"] else worst_text(worst)
        self._of_clusters.append(f"{how}: kdump restart-plan")
        losing = [each for each in replicas if any(one.lost for one in each.outcomes)]
        self.ordered |= {(path, each.topic, each.partition) for each in losing for path in paths}
        evidence = [
            f"{each.name}: " + ", ".join(f"{one.lost:,} lost if {one.leader} leads" for one in each.outcomes)
            for each in losing[:SHOWN]
        ]
        case = "" if facts["orderDecides"] else "any"
        self._lose_together(
            Problem("startup-order", values, {**facts, "leaderByHand": chosen is not None}, case),
            Loss(RECORDS, MAY, offsets=summary.worstLost),
            paths[0],
            evidence=tuple(evidence),
            commands=(command("restart-plan", *paths, *self._of_release),),
        )

    def _empty_controllers(self, voting: Quorum, directories: list[LogDirectory]) -> bool:
        """Report a majority of voters without a metadata log, if another disk shows topics: they elect one of
        themselves, with an empty log (controller.quorum.voters, KafkaRaftClient). Returns False if there is none."""
        empty = [log for log in voting.members.values() if log.plan.missing]
        source, metadata = self.disks.metadata(directories)
        if len(empty) < voting.majority or metadata is None or metadata.kraft_version:
            return False
        paths = [directory.path for directory in directories]
        values = {
            "nodes": " and ".join(str(log.broker) for log in empty),
            "topics": count_text(len(metadata.topics), "topic"),
            "directories": shell_words(paths),
        }
        self._lose_together(
            Problem("startup-controller-empty", values, case="several" if len(voting.voters) > 1 else ""),
            Loss(METADATA, MAY),
            empty[0].plan.source,
            evidence=(f"{source}: the metadata up to offset {metadata.end_offset}",),
            commands=(self._dry_run(*paths),),
        )
        return True

    def _wrong_cluster_ids(self) -> None:
        """Report brokers of different clusters that have partitions of the same topics, by their IDs: no two clusters
        give a topic the same one."""
        if len({broker.ids.get("cluster.id") for broker in self.disks.brokers}) < 2:
            return
        topics = {id(broker): self._topic_ids(broker) for broker in self.disks.brokers}
        for number, broker in enumerate(self.disks.brokers):
            for other in self.disks.brokers[:number]:
                mine, theirs = broker.ids.get("cluster.id"), other.ids.get("cluster.id")
                shared = topics[id(broker)] & topics[id(other)]
                if mine and theirs and mine != theirs and shared:
                    controllers = [each for each in (broker, other) if self._is_controller(each)]
                    wrong = broker if controllers == [other] else other
                    values = {"mine": mine, "other": theirs, "count": len(shared)}
                    values |= {"right": controllers[0].ids["cluster.id"] if controllers else ""}
                    values |= {"wrong": " and ".join(os.path.join(each.path, META) for each in wrong.directories)}
                    self.on.report(
                        Problem("startup-cluster-id-wrong", values, {"controllerHere": len(controllers) == 1}),
                        broker.paths[0],
                        evidence=tuple(
                            f"{each.paths[0]}: cluster.id {each.ids['cluster.id']}" for each in (broker, other)
                        ),
                        file=os.path.join(broker.directories[0].path, META),
                        commands=(command("cluster", broker.paths[0]), command("cluster", other.paths[0])),
                    )
                    for each in (wrong,) if len(controllers) == 1 else (broker, other):
                        self._may_never_register(each, is_certain=len(controllers) == 1)

    def _may_never_register(self, broker: Broker, *, is_certain: bool) -> None:
        """State in the line of a broker that its controllers reject its cluster.id."""
        line = self._lines[broker.directories[0].path]
        if is_certain or not line.never:
            never = "NEVER REGISTERS" if is_certain else "MAY NEVER REGISTER"
            line.never = f"{never} (INCONSISTENT_CLUSTER_ID); "
        self._state()

    def _topic_ids(self, broker: Broker) -> set[str]:
        """Return the IDs of the topics in the metadata of a node, and in the partition.metadata files of some of its
        partitions. That of the metadata log is the same in every cluster (Uuid.METADATA_TOPIC_ID)."""
        every = (place for directory in broker.directories for place in directory.partitions if not place.state)
        places = [place for place in every if place.topic != METADATA_TOPIC]
        metadata = self.disks.newest_metadata(*broker.paths)[1]
        return {*filter(None, map(topic_id, places[:MAX_TOPIC_IDS])), *(metadata.by_id if metadata else ())}

    def _is_controller(self, broker: Broker) -> bool:
        """Return True if the metadata on the disk of a node shows that it is a controller."""
        metadata = self.disks.newest_metadata(*broker.paths)[1]
        return metadata is not None and broker.node_id in metadata.controllers

    def _broker(self, broker: Broker) -> bool:
        """Predict the startup of a broker. Returns False if there is no prediction."""
        on = self.on
        plan: RestartPlan | None = None
        self._began = time.time()
        source, metadata = self.disks.newest_metadata(*broker.paths)
        self._metadata_read = None if metadata is None else (source, metadata.end_offset)

        def begin(made: RestartPlan) -> None:
            nonlocal plan
            plan = made
            self.plans.append(made)

        def add(partition: PartitionPlan) -> None:
            on.question.partitions += 1
            self._partition(partition, broker)

        try:
            run = replace(self.disks.options, more=on.read_some, begin=begin, found=add)
            asked = RestartQuery(broker.paths, run, kafka_version=self.release, disks=self.disks)
            plan = predict_startup(replace(asked, on_seen=self.disks.note_listing))
        except SourceError as error:
            on.question.notExamined.append(str(error))
            self._finish(broker, plan, is_complete=False)
            return False
        except OutOfTime:
            self._directories(plan, broker)
            self._finish(broker, plan, is_complete=False)
            left = sum(len(each.candidates) for each in broker.directories) - on.question.partitions
            on.question.partitionsLeft += max(0, left)
            on.out_of_time("restart-plan", *broker.paths, before="the startup was predicted completely")
            return False
        except BaseException:  # a signal: what is known so far is the answer
            self._directories(plan, broker)
            raise
        self._later(plan, broker)
        self._directories(plan, broker)
        for unread in plan.unread:
            on.unread(unread)
        self._finish(broker, plan, is_complete=True)
        return True

    def _label(self, broker: Broker) -> str:
        return "" if len(self.disks.brokers) == 1 else f"{', '.join(broker.paths)}: "

    def _later(self, plan: RestartPlan, broker: Broker) -> None:
        """Report what the hour after the startup loses."""
        for event in plan.course.losses:
            if not event.is_of_log:
                source = next((log.source for log in plan.partitions if log.path == event.file), broker.paths[0])
                self.on.report(
                    event.problem,
                    source,
                    places=_due_places(event, source),
                    urgency=STOPS if plan.verdict == STOPPED else "",
                    at=event,
                    evidence=(
                        *(() if event.dueMs is None else (f"due {time_text(event.dueMs)}",)),
                        *_wrong_indexes(event).values(),
                    ),
                    commands=(self._command(broker),),
                    commandForAll=self._command(broker),
                )

    def _finish(self, broker: Broker, plan: RestartPlan | None, *, is_complete: bool) -> None:
        name = self._label(broker)
        if plan is not None and is_complete:
            text = answer(plan)
        else:
            text = "LOSES RECORDS, as far as examined" if plan is not None and self._losses(plan) else "not predicted"
        self._lines[broker.directories[0].path] = BrokerLine(name, text)
        if self._changing:
            changing = count_text(self._changing, "partition", "partitions")
            self.on.question.notExamined.append(f"{name}{changing} changed while they were read: run it again")
            self._changing = 0
        self._state()

    def _directories(self, plan: RestartPlan | None, broker: Broker) -> None:
        """Report failures of the broker and its directories, and their warnings."""
        if plan is None:
            return
        if plan.verdict == UNKNOWN:
            self.on.report(
                Problem("startup-unknown", facts={"ofNewerRelease": bool(plan.newer)}),
                broker.paths[0],
                evidence=tuple(plan.unknowns),
                commands=(self._command(broker),),
            )
        stops = [*plan.stops, *(stop for each in plan.directories for stop in each.stops), *self._consequences]
        self._consequences.clear()
        self._stops(stops, broker, plan)
        for directory in plan.directories:
            for problem in directory.problems:
                # A broker that runs is in the line of the disk.
                if problem.code != "startup-running" or not self.disks.is_running(directory.path):
                    self._of_directory(problem, directory.path, broker)
        if plan.withoutMetadata and plan.partitions:
            self._without_metadata(plan, broker)
        self._change_of_release(plan, broker)

    def _of_directory(self, problem: Problem, path: str, broker: Broker) -> None:
        file = str(problem.values.get("file") or problem.values.get("directory") or path)
        severity = "error" if covers_an_error(problem.code) else ""
        self.on.report(problem, path, severity, evidence=(file,), file=file, commands=(self._command(broker),))

    def _without_metadata(self, plan: RestartPlan, broker: Broker) -> None:
        """Report that the metadata is not here, and that it is lost if a startup has made directories stray by it."""
        strays = sum(partition.state == "stray" for partition in plan.partitions)
        count = count_text(strays, "directory is", "directories are")
        asked = ("--kafka-version", self._known_release(plan), "--controller", "ID@HOST:PORT")
        rescue = (*broker.paths, "--from-data", *(["--with-stray"] if strays else []), *asked)
        values = {"rescue": command("rescue", *rescue), "strays": count}
        problem = Problem("startup-without-metadata", values, {"strays": strays > 0}, "strays" if strays else "")
        self.on.report(
            problem,
            broker.paths[0],
            "error" if strays else "warning",
            evidence=tuple(broker.paths),
            commands=(self._command(broker), self._dry_run(*rescue)),
        )

    def _dry_run(self, *words: str) -> str:
        """Return the command that shows a rescue, which refuses disks of running nodes unless it is told otherwise."""
        is_held = any(map(self.disks.is_running, words))
        return command("rescue", *words, *(["--while-running"] if is_held else []), "--dry-run")

    def _known_release(self, plan: RestartPlan) -> str:
        """Return the release that is named, or the only one that may have run on the disk; VERSION if none is known."""
        if self.release is not None:
            return self.release.option
        chosen = plan.release
        return VERSION if chosen is None or chosen.source != DISK or chosen.doubt or chosen.newer else chosen.version

    def _change_of_release(self, plan: RestartPlan, broker: Broker) -> None:
        """Report what the start of another release than the disk's changes."""
        first, *changes = [*release_texts(plan)] or [""]
        if changes:
            self.on.report(
                Problem("startup-other-release", {"release": first}),
                broker.paths[0],
                evidence=tuple(line.strip() for line in changes),
                commands=(self._command(broker),),
            )

    def _command(self, broker: Broker) -> str:
        return command("restart-plan", *broker.paths, *self._of_release)

    @property
    def _of_release(self) -> tuple[str, ...]:
        return ("--kafka-version", self.release.option) if self.release is not None else ()

    def _stops(self, stops: list[StartupFailure], broker: Broker, plan: RestartPlan) -> None:
        """Report each cause: a file other than a segment stops a startup as a whole, and what follows from that is
        reported with it."""
        by_file: dict[Any, list[StartupFailure]] = {}
        for stop in stops:
            is_segment = stop.file.endswith(".log")
            by_file.setdefault((stop.file, stop.position if is_segment else None), []).append(stop)
        for same in by_file.values():
            first, *others = same
            self._stop(first, broker, plan, others)

    def _stop(
        self, stop: StartupFailure, broker: Broker, plan: RestartPlan, others: Sequence[StartupFailure] = ()
    ) -> None:
        """Report a cause. `others`: what else it does."""
        code = "startup-stops" if EXIT in (stop.kind, *(each.kind for each in others)) else "startup-offline"
        is_known = plan.verdict != UNKNOWN
        release = f" with Kafka {plan.release.version}" if not is_known and plan.release is not None else ""
        where = stop.file if stop.position is None else f"byte {stop.position} of {stop.file}"
        source = next((each.path for each in plan.directories if is_inside(stop.file, each.path)), broker.paths[0])
        whole: dict[str, Any] = {"position": None} if stop.problem.covers else {}  # it is about all of the segment
        self.on.report(
            Problem(code, {"release": release, "message": stop.message}),
            source,
            *(() if is_known else ("warning", "degraded")),
            evidence=(
                where,
                *(f"the broker's log will show: {each.exception}" for each in (stop, *others)),
                *(each.message for each in others),
            ),
            at=stop,
            commands=(self._command(broker),),
            actions=stop.actions,
            named=stop.advice.named,
            covers=(*Problem(code).covers, *stop.problem.covers),
            logged=stop.either or (stop.exception,),
            **whole,
        )

    def _partition(self, plan: PartitionPlan, broker: Broker) -> None:
        self._consequences += [stop for stop in plan.stops if stop.code == CONSEQUENCE]
        self._stops([stop for stop in plan.stops if stop.code != CONSEQUENCE], broker, self.plans[-1])
        more = {
            "topic": plan.topic,
            "partition": plan.partition,
            "file": plan.path,
            "commands": (command("restart-plan", *broker.paths, "--topic", plan.topic, *self._of_release),),
            "commandForAll": self._command(broker),
        }
        if (plan.missing or plan.stray or plan.loses) and self._has_changed(plan):
            self._changing += 1
            self._has_changed_since.add(plan.path)
            return
        if plan.missing:
            offsets = f"the last checkpointed high watermark is {plan.highWatermark}"
            evidence = (offsets,) if plan.highWatermark is not None else ()
            self._lose(plan.problem or Problem("startup-missing"), plan, more, evidence)
        elif plan.stray:
            stray = Problem("startup-stray", case="deleted" if plan.strayDeleted else "")
            order = {"severity": "warning", "urgency": "degraded"} if plan.costs_nothing else {}
            self._lose(stray, plan, {**more, **order}, (plan.stray,))
        elif plan.loses or plan.mayLoseTorn:
            self._loss(plan, more)

    def _loss(self, plan: PartitionPlan, more: dict[str, Any]) -> None:
        """Report that a startup ends a log early, with what makes it do so."""
        cut = plan.cuts[0] if plan.cuts else None
        is_hidden = cut is not None and all(each.kind == HIDDEN for each in plan.cuts)
        # Where recovery, which rebuilds the index, does not end the log later, it is the .log that is damaged.
        by_index = is_hidden and (plan.logEndIfRecovered or 0) > (plan.logEndOffset or 0) and plan.cause is None
        is_misnamed = is_exact = of_start = False
        cause = plan.cause
        if cut is not None:
            if by_index:
                cause = f"{cut.file.removesuffix('.log')}.index", None
            file, position = cause or (cut.file, cut.position)
            more |= {"file": file, "position": position, "offset": cut.offset}
            is_misnamed = cut.batches > 0 and self._is_misnamed(cut.file)
            of_start = os.path.basename(file) == START_CHECKPOINT
            is_exact = position is not None and self._is_repaired_exactly(file, position)
        more["places"] = _places(plan, cause)
        values = {
            "end": plan.logEndOffset,
            "mark": plan.highWatermark,
            "first": None if cut is None else cut.offset,
            "startFile": os.path.join(plan.source, START_CHECKPOINT),
            "path": plan.path,
            "saved": saved_text(plan),
            "salvage": plan.salvage,
            "DIR": plan.path,
            "TOPIC": plan.topic,
            "PARTITION": plan.partition,
        }
        facts = {**plan.facts, "validBatches": bool(plan.salvage), "exactRepair": is_exact}
        facts |= {"hidden": by_index, "misnamed": is_misnamed}
        # No log start offset is above the high watermark (UnifiedLog.maybeIncrementLogStartOffset).
        is_above = of_start and (plan.logEndOffset or 0) > (plan.highWatermark or 0)
        facts["startLineWrong"] = is_above and ((plan.clean and plan.highWatermark is not None) or None)
        facts["tornTail"] = is_hidden and not (by_index or is_misnamed or plan.salvage)
        if facts.get("intactElsewhere") is None:
            facts["intactElsewhere"] = self._is_intact_elsewhere(plan)
        case = "torn" if plan.mayLoseTorn else "new" if plan.losesOnlyNew else kind_of(plan) if plan.cuts else "gone"
        case = "startBeyond" if of_start else case
        more |= {"severity": "warning"} if plan.mayLoseTorn else {}
        self._lose(Problem("startup-loses", values, facts, case), plan, more, tuple(_evidence(plan)))

    def _has_changed(self, plan: PartitionPlan) -> bool:
        """Return whether a broker at work has changed what the plan was made of since it was read: the directory has
        come or gone, the log has grown, or the metadata have another answer."""
        if plan.missing == file_system.isdir(plan.path):
            return True
        if not (plan.missing or plan.stray):
            is_at_work = lock_holder(plan.source) is not None  # it may have started since
            files = [cut.file for cut in plan.cuts] or [plan.path]
            return is_at_work and any(_modified(path) >= self._began for path in files)
        source, metadata = self.disks.newest_metadata(plan.source)
        if metadata is None or (source, metadata.end_offset) == self._metadata_read:
            return False
        node = starts_as(*self.plans[-1].directories)
        if plan.stray:
            return StrayPartitions(metadata).problem(plan.topic, plan.partition, plan.topicId, node) is None
        topic = metadata.topics.get(plan.topic)
        registered = None if topic is None else topic.partitions.get(plan.partition)
        return registered is None or node not in registered.replicas

    @cached_property
    def _intact(self) -> IntactCopies:
        return IntactCopies(self.disks)

    @cached_property
    def _unit_of(self) -> dict[str, CheckUnit]:
        """The units by the directories of their partitions."""
        return {unit.partition.path: unit for unit in self.disks.units if unit.partition is not None}

    def _is_intact_elsewhere(self, plan: PartitionPlan) -> bool | None:
        """Return whether another broker here has all that a startup removes of a log; None if it is unknown."""
        offsets = [(cut.offset, cut.lastOffset) for cut in plan.cuts if cut.loses]
        unit = self._unit_of.get(plan.path) if offsets else None
        if unit is None:
            return None
        has = [None if last is None else self._intact.of_offsets(first, last, unit)[0] for first, last in offsets]
        return True if all(has) else False if False in has else None

    def _is_misnamed(self, path: str) -> bool:
        """Return True if the first batch of a segment has offsets below its name, and is where the segment before ends,
        or without one goes on to the next batch: the name is wrong then, and not the offset."""
        folder, name = os.path.split(path)
        stems = sorted(stem for stem, suffix in map(os.path.splitext, file_system.listdir(folder)) if suffix == ".log")
        stem = name.removesuffix(".log")
        before = [each for each in stems if each.isdigit() and each < stem][-1:]
        with suppress(SourceError, KafkaError, OSError):
            heads = self._heads(path, 2)
            if not (stem.isdigit() and heads and heads[0].baseOffset < int(stem)):
                return False
            ends = [self._heads(os.path.join(folder, f"{each}.log"))[-1] for each in before] or heads[:-1]
            first = heads[0] if before else heads[-1]
            return bool(ends) and first.baseOffset == ends[0].lastOffset + 1
        return False

    def _heads(self, path: str, count: int | None = None) -> list[RecordBatchView]:
        """Return the first batches of a segment as a broker reads them, or the last one. Raises SourceError,
        KafkaError."""
        window = self.disks.options.open(seen_file(path))
        try:
            heads = read_batches(window, 0, window.source.size or 0)
            return list(deque(heads, 1)) if count is None else list(islice(heads, count))
        finally:
            window.source.close()

    def _is_repaired_exactly(self, path: str, position: int) -> bool:
        """Return True if one flipped bit explains the damage to the batch at which a startup truncates a log."""
        with suppress(SourceError):
            window = self.disks.options.open(seen_file(path))
            try:
                region = next(iter(regions(window, start=position, limits=self.disks.options.limits)), None)
                return isinstance(region, Batch) and unflipped(region) is not None
            finally:
                window.source.close()
        return False

    def _lose(self, problem: Problem, plan: PartitionPlan, more: dict[str, Any], evidence: tuple[str, ...]) -> None:
        own: dict[str, Any] = {"actions": plan.actions} if plan.actions else {}
        self.on.report(problem, plan.source, evidence=evidence, **own, **more)


def _due_places(event: StartupEvent, source: str) -> tuple[AffectedRange, ...]:
    """Return the offsets that retention deletes, and the files for which it does."""
    of, values = (source, event.topic, event.partition), event.problem.values
    offsets: Any = (values.get("first"), values.get("last"))
    return tuple(AffectedRange(*of, file, None, None, *offsets) for file in (None, *_wrong_indexes(event)))


def _wrong_indexes(event: StartupEvent) -> dict[str, str]:
    """Return the .timeindex files for which retention deletes segments, with what shows it."""
    indexes: Any = event.problem.values.get("indexes", {})
    return indexes  # type: ignore[no-any-return]


def _places(plan: PartitionPlan, cause: tuple[str, int | None] | None) -> tuple[AffectedRange, ...]:
    """Return the bytes that make a startup end a log early, and the offsets that it no longer has. `cause`: the file
    that does it, and the byte there, if it is not that of a cut."""
    lost = [cut.lastOffset for cut in plan.cuts] + [cut.tornLastOffset for cut in plan.cuts]
    last = max((*(offset for offset in lost if offset is not None), (plan.highWatermark or 0) - 1))
    of = (plan.source, plan.topic, plan.partition)
    end, starts = plan.logEndOffset, [cut.offset for cut in plan.cuts if cut.offset is not None]
    first = end if end is not None and end <= last else min(starts, default=None)
    places = [] if first is None else [AffectedRange(*of, plan.path, 0, 0, first, last)]
    if cause is not None:
        places.append(AffectedRange(*of, *cause, None, first, last))
    for cut in plan.cuts:  # what is deleted only follows
        if cut.kind != DELETED and (cause is None or os.path.splitext(cause[0])[0] not in cut.file):
            places.append(AffectedRange(*of, cut.file, cut.position, None, cut.offset))
    return tuple(places)


def _modified(path: str) -> float:
    """Return when a file was modified, in epoch seconds; infinity if it is gone."""
    try:
        return file_system.stat(path).st_mtime
    except OSError:
        return math.inf


def _evidence(each: PartitionPlan) -> list[str]:
    """Return what is no longer part of a log after a startup."""
    found = []
    for cut in each.cuts[:2]:
        batches = count_text(cut.batches, "valid batch", "valid batches")
        records = "" if cut.records is None else f" with {count_text(cut.records, 'record')}"
        records += f", and an incomplete one of {count_text(cut.tornRecords, 'record')}" if cut.tornRecords else ""
        found.append(f"{cut.kind} from byte {cut.position} of {cut.file} on: {size_text(cut.size)}, {batches}{records}")
    if len(each.cuts) > 2:
        found.append(f"and {count_text(len(each.cuts) - 2, 'more byte range')}")
    if each.replicas is not None:
        found.append(each.replicas.text)
    if each.acknowledged:
        found.append(
            f"{count_text(each.acknowledged, 'offset')} below the last checkpointed high watermark "
            f"{each.highWatermark}: consumers may have read them"
        )
    return found


def answer(plan: RestartPlan) -> str:
    """Return the verdict of a plan, with what it loses, and the release that is started."""
    if plan.verdict == UNKNOWN:
        text = f"{UNKNOWN_START}: {unknown_text(plan)}"
    else:
        text = start_text(plan, plan.verdict)
        if plan.verdict == STOPPED:
            text += once_text(plan)
        else:
            parts = [*loss_texts(plan), *filter(None, [metadata_text(plan)])]
            text += f"; {', '.join(parts) or no_loss_text(plan)}"
    text += AS_READ if plan.unread else ""
    return "; ".join((text, *islice(release_texts(plan), 1)))
