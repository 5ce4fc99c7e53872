"""The cluster's metadata as a voter has it after its startup, and what brokers do with it if that voter is elected:
they make directories stray whose topics or replicas it does not have, whatever their own metadata log has."""

from __future__ import annotations

from functools import cache

from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import changes_between
from kdump.io.errors import SourceError
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan, Step
from kdump.questions.restart_plan.course import Part
from kdump.questions.restart_plan.loading_events import log_events
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.quorum import metadata_after
from kdump.questions.restart_plan.replicas.quorum_replicas import exits_for_leader, quorum_of
from kdump.questions.restart_plan.replicas.replica_answer import PartitionReplicas, StrayReplica
from kdump.state.metadata_image import MetadataImage


class ControllerImages:
    """Reads the metadata of voters, once each."""

    def __init__(self, disks: Disks, options: Options) -> None:
        self.disks, self.options = disks, options
        self.changes = cache(self._changes)

    def _changes(self, path: str, first: int, end: int) -> bool:
        """Return whether a record of the metadata log between two offsets changes anything, or may."""
        try:
            return changes_between(metadata_files(path), first, end, self.options)
        except (SourceError, OSError):
            return True

    def of(self, plan: RestartPlan) -> tuple[str, MetadataImage | None]:
        """Return the log directory with a voter's metadata log, and what is in it after the startup; None if that is
        unknown."""
        log = plan.metadata_log
        if log is None or log.logEndOffset == 0:
            return plan.directories[0].path, MetadataImage()
        return log.source, metadata_after(log, self.disks)


def play_through(
    plans: dict[int, RestartPlan], quorum: PartitionReplicas, images: ControllerImages, newest: MetadataImage | None
) -> list[tuple[int, PartitionPlan]]:
    """Add to each outcome which directories become stray, and to the plan of each node what is certain of that, and
    that it exits. Returns the partitions that become stray whoever is elected, each with its node."""
    voting = quorum_of(plans)
    for node, plan in plans.items() if voting is not None else ():
        known = {problem.code for problem in plan.directories[0].problems}
        exits = list(exits_for_leader(plans, voting, quorum.outcomes, node)) if voting is not None else []
        if "startup-voter-without-state" not in known:
            plan.directories[0].problems += exits
    if newest is None:
        return []
    certain: dict[tuple[int, str], tuple[PartitionPlan, StrayPartitions]] | None = None
    for number, outcome in enumerate(quorum.outcomes):
        strays: dict[tuple[int, str], tuple[PartitionPlan, StrayPartitions]] = {}
        if outcome.possiblyAcknowledged:
            _, image = images.of(plans[outcome.leader])
            strays = {} if image is None else _strays(plans, StrayPartitions(image))
            names = sorted((node, log.topic, log.partition) for (node, _), (log, _) in strays.items())
            quorum.outcomes[number] = outcome._replace(strays=tuple(StrayReplica(*each) for each in names))
        certain = strays if certain is None else {key: certain[key] for key in certain if key in strays}
    changed = []
    for (node, _), (log, rules) in (certain or {}).items():
        _make_stray(plans[node], log, rules, node)
        changed.append((node, log))
    return changed


def _strays(
    plans: dict[int, RestartPlan], rules: StrayPartitions
) -> dict[tuple[int, str], tuple[PartitionPlan, StrayPartitions]]:
    """Return the live partitions that become stray, by node and path."""
    return {
        (node, log.path): (log, rules)
        for node, plan in plans.items()
        for log in plan.logs
        if not (log.state or log.stray) and rules.problem(log.topic, log.partition, log.topicId, node) is not None
    }


def _make_stray(plan: RestartPlan, log: PartitionPlan, rules: StrayPartitions, node: int) -> None:
    problem = rules.problem(log.topic, log.partition, log.topicId, node)
    if problem is None:
        return
    log.problem = problem._replace(values={**problem.values, "path": log.path, "directory": log.source})
    new = f"{log.topic}-{log.partition}.<32 digits>-stray"
    reason = f"to {new}: the directory is stray by the metadata of whoever is elected"
    log.steps.append(Step("rename", log.path, None, None, 0, reason))
    plan.course.add(Part(tuple(log_events(plan, log))))
