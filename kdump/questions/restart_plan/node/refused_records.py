"""What a start does with records of the metadata log that it cannot apply: a node with the controller role halts; a
broker alone logs a fault, leaves the record out, and takes no more metadata snapshots. No node starts with a log that
it cannot read.

Source: SharedServer.metadataLoaderFaultHandler and fatalQuorumControllerFaultHandler, KafkaRaftClient.initialize.
"""

from __future__ import annotations

import os

from kdump.cluster.metadata_refusals import activation_refusal, refusals, refused_text
from kdump.format.count_text import count_text
from kdump.format.kafka_release import KRAFT, KafkaRelease
from kdump.kafka.config_def import config_exception
from kdump.log.internal_topics import METADATA_LOG
from kdump.problems.problem import Problem
from kdump.questions.restart_plan.answer import EXIT, DirectoryPlan, RestartPlan, failure
from kdump.state.metadata_image import MetadataImage

UNCOMMITTED = "; unless it was never committed, so that another voter takes it back"


def add_refused(
    plan: RestartPlan,
    directory: DirectoryPlan,
    release: KafkaRelease,
    metadata: MetadataImage,
    *,
    is_controller: bool | None,
    with_levels: bool,
) -> None:
    """Add to the plan what happens at the first record that a node of this release cannot apply. `is_controller`:
    whether it has the controller role, None if unknown; `with_levels`: whether levels, types and versions that the
    release does not know count."""
    if release.mode != KRAFT:
        return
    refused = refusals(metadata, release)
    if not with_levels:
        refused = [refusal for refusal in refused if refusal in metadata.refusals]
    activation = activation_refusal(metadata, release) if is_controller else None
    if activation is not None:
        refused.append(activation)
    first = next((refusal for refusal in refused if refusal.exception), None)
    if first is None and metadata.is_too_large:
        plan.doubts.append("the metadata is too large for kdump: whether the node can apply each record is unknown")
    if first is None:
        return
    what = refused_text(first, metadata)
    more = f", nor {count_text(len(refused) - 1, 'later record')}" if len(refused) > 1 else ""
    folder = os.path.join(directory.path, METADATA_LOG)
    if first.stops_broker(release.line) or is_controller:
        why = ""
        if not first.stops_broker(release.line):
            why = uncommitted(plan, metadata, first.offset)
            plan.refusedAt.append(first.offset)
        verb = "read" if first.reader else "abort" if first is activation else "apply"
        values = {"record": what, "verb": verb, "more": more, "uncommitted": why, "folder": folder}
        plan.stops.append(
            failure(
                EXIT,
                "startup-record-refused",
                first.file or folder,
                first.exception,
                first.position if first.file else None,
                first.offset,
                facts={"soleVoter": not _is_one_of_several(plan)},
                values=values,
            )
        )
        return
    case = "" if any(refusal.loader for refusal in refused) else "applied"
    problem = Problem("startup-record-left-out", {"record": what, "exception": first.exception}, case=case)
    if is_controller is None:
        plan.doubts.append(f"{problem.title} (--properties FILE states the roles)")
    else:
        directory.problems.append(problem)


def _is_one_of_several(plan: RestartPlan) -> bool:
    return plan.quorum is not None and len(plan.quorum.voters) > 1


def uncommitted(plan: RestartPlan, metadata: MetadataImage, offset: int | None) -> str:
    """Return under which condition a node does not apply a record of its log: one voter of several commits nothing. A
    snapshot, without an `offset`, is committed."""
    may = offset is not None and offset >= metadata.committed and _is_one_of_several(plan)
    return UNCOMMITTED if may else ""


def add_invalid_config(plan: RestartPlan, release: KafkaRelease, metadata: MetadataImage) -> None:
    """Add the stop for the first topic config that LogManager refuses when it starts: one of any topic, whether or not
    the broker has a replica (LogConfig.fromProps). Limits that depend on another config (local.retention.bytes and
    local.retention.ms up to 3.5) are not checked."""
    for topic in metadata.topics.values():
        for name, value in topic.configs.items():
            exception = config_exception(name, value, release)
            if not exception or release.mode != KRAFT:
                continue
            directory = plan.metadata_directory or plan.directories[0]
            file = os.path.join(directory.path, METADATA_LOG)
            values = {"config": name, "value": value, "topic": topic.name}
            plan.stops.append(failure(EXIT, "startup-config-invalid", file, exception, values=values))
            return
