"""Will the broker start, and what does that lose? From kdump.questions.restart_plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

from kdump.format.count_text import count_text
from kdump.format.kafka_release import KafkaRelease
from kdump.format.size_text import size_text
from kdump.incident.doctor.answer import Priority
from kdump.incident.doctor.disks import Broker, Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.errors import SourceError
from kdump.log.lock_holder import lock_holder
from kdump.questions.restart_plan.answer import EXIT, STOPPED, UNKNOWN, PartitionPlan, RestartPlan, StartupFailure
from kdump.questions.restart_plan.plan_text import (
    STARTS,
    UNKNOWN_START,
    loss_texts,
    metadata_text,
    no_loss_text,
    release_texts,
    saved_text,
    unknown_text,
)
from kdump.questions.restart_plan.run import predict_startup

NEVER_STOPPED = (
    "do not delete or edit files by trial until it starts: copy the log directories first, a start that gets further "
    "also truncates logs",
)
NEVER_TRIED = ("do not start the broker to see whether it works: a startup truncates and deletes files",)
NEVER_LOSES = ("do not start the broker before the directories are copied: what a startup truncates is gone",)
NEVER_STRAY = ("do not delete a -stray directory before you know that another replica has its records",)
NEVER_MISSING = (
    "do not start the broker if this was the only replica in sync: with an empty log it may become the leader, and the "
    "other replicas truncate to match",
)


class StartupExamination:
    """Predicts the next startup of each broker, of `release` or of the one that ran on the disk. `plans`: those of the
    brokers so far."""

    def __init__(self, disks: Disks, on: Examination, release: KafkaRelease | None = None) -> None:
        self.disks = disks
        self.on = on
        self.release = release
        self.plans: list[RestartPlan] = []
        self.losing: Counter[str] = Counter()
        """Number of partitions by what happens to them."""
        self._texts: list[str] = []

    @property
    def does_not_start(self) -> bool:
        return any(plan.verdict == STOPPED for plan in self.plans if plan.directories)

    @property
    def is_unknown(self) -> bool:
        """Whether it is not known of a broker whether it starts."""
        return any(plan.verdict == UNKNOWN for plan in self.plans if plan.directories)

    @property
    def loses(self) -> bool:
        return bool(self.losing)

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
                self.on.item(
                    Priority.DEGRADED,
                    "warning",
                    "startup-clusters-differ",
                    paths[0],
                    f"node {node} of {len(clusters)} clusters: if these are the log directories of one broker, it does "
                    "not start",
                    impact="they are examined here as those of different brokers",
                    evidence=tuple(f"{path}: cluster.id {cluster}" for cluster, path in clusters.items()),
                    file=None,
                    commands=(command("restart-plan", *paths, *self._of_release),),
                    actions=("if one broker has both in log.dirs, mount its own volume in place of the foreign one",),
                    never=("do not edit cluster.id or delete meta.properties to make the broker start",),
                )

    def _broker(self, broker: Broker) -> bool:
        """Predict the startup of a broker. Returns False if there is no prediction."""
        on = self.on
        plan: RestartPlan | None = None

        def begin(made: RestartPlan) -> None:
            nonlocal plan
            plan = made
            self.plans.append(made)

        def add(partition: PartitionPlan) -> None:
            on.question.partitions += 1
            self._partition(partition, broker)

        try:
            plan = predict_startup(
                broker.paths,
                replace(self.disks.options, more=on.read_some, begin=begin, found=add),
                kafka_version=self.release,
                on_seen=self.disks.note_listing,
                disks=self.disks,
            )
        except SourceError as error:
            on.question.notExamined.append(str(error))
            self._finish(broker, None)
            return False
        except OutOfTime:
            self._directories(plan, broker)
            self._finish(broker, None)
            left = sum(len(each.candidates) for each in broker.directories) - on.question.partitions
            on.question.partitionsLeft += max(0, left)
            on.question.notExamined.append(
                "the time was over before the startup was predicted completely: run " + command("restart-plan") + " "
                f"{broker.quoted}"
            )
            return False
        except BaseException:  # a signal: what is known so far is the answer
            self._directories(plan, broker)
            raise
        self._directories(plan, broker)
        for unread in plan.unread:
            on.unread(unread)
        self._finish(broker, plan)
        return True

    def _finish(self, broker: Broker, plan: RestartPlan | None) -> None:
        name = "" if len(self.disks.brokers) == 1 else f"{', '.join(broker.paths)}: "
        if plan is None:
            self._texts.append(
                f"{name}not predicted" if not self.losing else f"{name}LOSES RECORDS, as far as examined"
            )
        else:
            self._texts.append(name + answer(plan))
        self.on.question.answer = "; ".join(self._texts)
        self.on.question.byBroker = self._texts

    def _directories(self, plan: RestartPlan | None, broker: Broker) -> None:
        """Report failures of the broker and its directories, and their warnings."""
        if plan is None:
            return
        if plan.verdict == UNKNOWN:
            self.on.item(
                Priority.DEGRADED,
                "warning",
                "startup-unknown",
                broker.paths[0],
                "it is not known whether the node starts",
                evidence=tuple(plan.unknowns),
                commands=(self._command(broker),),
                actions=("use a newer kdump, one that knows the release that ran here",),
                never=NEVER_TRIED,
            )
        for stop in plan.stops:
            self._stop(stop, broker, plan)
        for directory in plan.directories:
            for stop in directory.stops:
                self._stop(stop, broker, plan)
            is_held = lock_holder(directory.path) is not None
            for warning in directory.warnings:
                if not (is_held and warning.startswith("process ")):  # which is in the line of the disk
                    self.on.item(
                        Priority.DEGRADED,
                        "warning",
                        "startup-warning",
                        directory.path,
                        warning,
                        evidence=(directory.path,),
                        file=directory.path,
                        commands=(self._command(broker),),
                        actions=("settle this before you start the broker",),
                        never=NEVER_TRIED,
                    )
        if plan.withoutMetadata and plan.partitions:
            self._without_metadata(plan, broker)
        self._change_of_release(plan, broker)

    def _without_metadata(self, plan: RestartPlan, broker: Broker) -> None:
        """Report that the metadata is not here, and that it is lost if a startup has made directories stray by it."""
        strays = sum(partition.state == "stray" for partition in plan.partitions)
        count = count_text(strays, "directory is", "directories are")
        what = "if the controllers have none either, a startup makes all partitions stray"
        if strays:
            what = f"{count} stray since an earlier startup: it may be lost, or a controller was formatted anew"
        title = f"there is no cluster metadata with topics here: {what}"
        rescue = ("rescue", *broker.paths, "--from-data", *(["--with-stray"] if strays else []), "--dry-run")
        self.on.item(
            Priority.LOSES,
            "error" if strays else "warning",
            "startup-without-metadata",
            broker.paths[0],
            title,
            evidence=tuple(broker.paths),
            commands=(self._command(broker), command(*rescue)),
            actions=(
                "check that the controllers still have their metadata before you start the broker",
                "if neither they nor another broker have a __cluster_metadata-0 with the topics, kdump rescue "
                "--from-data rebuilds it from the disks of all brokers (docs/rescue.md)",
            ),
            never=(
                "do not format metadata.log.dir again to make the broker start",
                *(["do not delete the -stray directories: they may be all there is of their topics"] if strays else []),
            ),
        )

    def _change_of_release(self, plan: RestartPlan, broker: Broker) -> None:
        """Report what the start of another release than the disk's changes."""
        first, *changes = [*release_texts(plan)] or [""]
        if changes:
            self.on.item(
                Priority.DEGRADED,
                "warning",
                "startup-other-release",
                broker.paths[0],
                f"the startup of another release; {first}",
                evidence=tuple(line.strip() for line in changes),
                commands=(self._command(broker),),
                actions=("copy the log directories, if you may have to return to the older release",),
                never=NEVER_TRIED,
            )

    def _command(self, broker: Broker) -> str:
        return command("restart-plan", *broker.paths, *self._of_release)

    @property
    def _of_release(self) -> tuple[str, ...]:
        return ("--kafka-version", self.release.option) if self.release is not None else ()

    def _stop(self, stop: StartupFailure, broker: Broker, plan: RestartPlan) -> None:
        exits = stop.kind == EXIT
        effect = "the broker does not start" if exits else "the log directory goes offline"
        is_known = plan.verdict != UNKNOWN
        if not is_known and plan.release is not None:
            effect += f" with Kafka {plan.release.version}"
        where = stop.file if stop.position is None else f"byte {stop.position} of {stop.file}"
        source = next((each.path for each in plan.directories if stop.file.startswith(each.path)), broker.paths[0])
        self.on.item(
            Priority.STOPS if is_known else Priority.DEGRADED,
            "error" if is_known else "warning",
            "startup-stops" if exits else "startup-offline",
            source,
            f"{effect}: {stop.message}",
            evidence=(where, f"the broker's log will show: {stop.exception}"),
            file=stop.file,
            position=stop.position,
            offset=stop.offset,
            commands=(self._command(broker),),
            actions=(stop.remedy,),
            never=NEVER_STOPPED,
            logged=stop.exception,
        )

    def _partition(self, plan: PartitionPlan, broker: Broker) -> None:
        for stop in plan.stops:
            self._stop(stop, broker, self.plans[-1])
        more = {
            "topic": plan.topic,
            "partition": plan.partition,
            "file": plan.path,
            "commands": (command("restart-plan", *broker.paths, "--topic", plan.topic, *self._of_release),),
            "commandForAll": self._command(broker),
        }
        if plan.missing:
            self.losing["missing"] += 1
            title = (
                "the directory is missing; a startup creates an empty log" if plan.steps else "the directory is missing"
            )
            offsets = f"the last checkpointed high watermark is {plan.highWatermark}"
            evidence = (offsets,) if plan.highWatermark is not None else ()
            self._lose(
                "startup-missing", plan, title, NEVER_MISSING, more | {"evidence": evidence, "actions": (plan.remedy,)}
            )
        elif plan.stray:
            self.losing["stray"] += 1
            effect = "deletes it" if plan.strayDeleted else "renames it to -stray and no longer serves it"
            title = f"the directory is stray, and a startup {effect}"
            copy = tuple(f"copy {path} elsewhere before you start the broker" for path in plan.copyFirst)
            actions = (*copy, *filter(None, (plan.remedy,)))
            self._lose(
                "startup-stray", plan, title, NEVER_STRAY, more | {"evidence": (plan.stray,), "actions": actions}
            )
        elif plan.loses:
            self.losing["loses"] += 1
            title = (
                "a startup loses records" if not plan.losesOnlyNew else "after a startup, new records are not readable"
            )
            cut = plan.cuts[0] if plan.cuts else None
            if cut is not None:
                more |= {"file": cut.file, "position": cut.position, "offset": cut.offset}
            copy = tuple(f"copy {path} elsewhere before you start the broker" for path in plan.copyFirst)
            more |= {"evidence": tuple(_evidence(plan)), "actions": (*copy, _choice(plan))}
            self._lose("startup-loses", plan, title, NEVER_LOSES, more)

    def _lose(
        self, code: str, plan: PartitionPlan, title: str, never: tuple[str, ...], more: dict[str, object]
    ) -> None:
        self.on.item(Priority.LOSES, "error", code, plan.source, title, never=never, **more)


def _choice(plan: PartitionPlan) -> str:
    """Return what to decide about records that a startup loses, once the directory is copied."""
    salvage = f"{plan.salvage} saves {saved_text(plan)}" if plan.salvage else "nothing valid can be saved from here"
    others = plan.replicas
    if others is None:
        return f"then decide: if another replica has the records, the truncation costs nothing; otherwise {salvage}"
    if not others.brokers:
        return f"{others.text}, so a truncation is final: {salvage}"
    return f"then decide: {others.text}; if the records are there, the truncation costs nothing; otherwise {salvage}"


def _evidence(each: PartitionPlan) -> list[str]:
    """Return what is no longer part of a log after a startup."""
    found = []
    for cut in each.cuts[:2]:
        batches = count_text(cut.batches, "valid batch", "valid batches")
        records = "" if cut.records is None else f" with {count_text(cut.records, 'record')}"
        found.append(f"{cut.kind} from byte {cut.position} of {cut.file} on: {size_text(cut.size)}, {batches}{records}")
    if len(each.cuts) > 2:
        found.append(f"and {count_text(len(each.cuts) - 2, 'more byte range')}")
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
        parts = loss_texts(plan)
        text = STARTS[plan.verdict]
        if plan.verdict == STOPPED:
            text += f"; once it does, it {' and '.join(parts)}" if parts else ""
        else:
            parts += filter(None, [metadata_text(plan)])
            text += f"; {', '.join(parts) or no_loss_text(plan)}"
    text += AS_READ if plan.unread else ""
    return "; ".join((text, *islice(release_texts(plan), 1)))
