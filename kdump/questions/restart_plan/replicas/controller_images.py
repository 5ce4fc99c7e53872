"""The cluster's metadata as a voter has it after its startup, and what brokers do with it if that voter is elected:
they make directories stray whose topics or replicas it does not have, whatever their own metadata log has."""

from __future__ import annotations

from functools import cache

from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_files import metadata_files
from kdump.cluster.metadata_log import changes_between
from kdump.io.errors import SourceError
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import PartitionPlan, RestartPlan, Step
from kdump.questions.restart_plan.log_loading.stray_partitions import StrayPartitions
from kdump.questions.restart_plan.node.quorum import metadata_after
from kdump.questions.restart_plan.replicas.quorum_replicas import Quorum, exits_for_leader
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
    plans: dict[int, RestartPlan],
    voting: Quorum,
    quorum: PartitionReplicas,
    images: ControllerImages,
    newest: MetadataImage | None,
) -> list[tuple[int, PartitionPlan]]:
    """Add to each outcome which directories become stray, and to the plan of each node what is certain of that, and
    that it exits. Returns the partitions that become stray whoever is elected, each with its node."""
    for node, plan in plans.items():
        problems = plan.directories[0].problems
        if all(problem.code != "startup-voter-without-state" for problem in problems):
            problems += exits_for_leader(plans, voting, quorum.outcomes, node)
    if newest is None:
        return []
    by_leader: list[Strays] = []
    for number, outcome in enumerate(quorum.outcomes):
        _, image = images.of(plans[outcome.leader]) if outcome.possiblyAcknowledged else ("", None)
        strays = {} if image is None else _strays(plans, StrayPartitions(image))
        names = sorted((node, log.topic, log.partition) for (node, _), (log, _) in strays.items())
        quorum.outcomes[number] = outcome._replace(strays=tuple(StrayReplica(*each) for each in names))
        by_leader.append(strays)
    changed = []
    for key, (log, problem) in by_leader[0].items() if by_leader else ():
        if all(key in strays for strays in by_leader):
            _make_stray(log, problem)
            changed.append((key[0], log))
    return changed


Strays = dict[tuple[int, str], tuple[PartitionPlan, Problem]]
"""Partitions that become stray, and why, by node and path."""


def _strays(plans: dict[int, RestartPlan], rules: StrayPartitions) -> Strays:
    """Return the live partitions that become stray."""
    return {
        (node, log.path): (log, problem)
        for node, plan in plans.items()
        for log in plan.logs
        if not (log.state or log.stray)
        and (problem := rules.problem(log.topic, log.partition, log.topicId, node)) is not None
    }


def _make_stray(log: PartitionPlan, problem: Problem) -> None:
    log.problem = problem._replace(values={**problem.values, "path": log.path, "directory": log.source})
    log.later = ()
    new = f"{log.topic}-{log.partition}.<32 digits>-stray"
    reason = f"to {new}: the directory is stray by the metadata of whoever is elected"
    log.steps.append(Step("rename", log.path, None, None, 0, reason))
