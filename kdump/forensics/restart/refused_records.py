"""What a start does with records of the metadata log that it cannot apply: a node with the controller role halts; a
broker alone logs a fault, leaves the record out, and takes no more metadata snapshots. No node starts with a log that
it cannot read.

Source: SharedServer.metadataLoaderFaultHandler and fatalQuorumControllerFaultHandler, KafkaRaftClient.initialize.
"""

from __future__ import annotations

import os

from kdump.cluster.metadata_refusals import refusals, refused_text
from kdump.forensics.restart.plan_values import EXIT, DirectoryPlan, RestartPlan, StartupFailure
from kdump.format.count_text import count_text
from kdump.format.kafka_release import KRAFT, KafkaRelease
from kdump.kafka.server_properties import ServerProperties
from kdump.log.internal_topics import METADATA_LOG
from kdump.state.metadata_image import MetadataImage


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
    found = refusals(metadata, release)
    if not with_levels:
        found = [each for each in found if each in metadata.refusals]
    first = next((each for each in found if each.exception), None)
    if first is None:
        return
    what = refused_text(first, metadata)
    more = f", nor {count_text(len(found) - 1, 'later record')}" if len(found) > 1 else ""
    folder = os.path.join(directory.path, METADATA_LOG)
    if first.stops_broker(release.line) or is_controller:
        several = plan.quorum is not None and len(plan.quorum.voters) > 1
        why = "; unless it was never committed, so that another voter takes it back" if several else ""
        verb = "read" if first.reader else "apply"
        plan.stops.append(
            StartupFailure(
                EXIT,
                first.file or folder,
                first.position if first.file else None,
                first.offset,
                f"{what}: the node cannot {verb} it{more}, and halts{why}",
                first.exception,
                _remedy(folder, several=several),
            )
        )
        return
    halts = "a node with the controller role halts there"
    goes_on = "a broker alone logs a fault, goes on without the record, and takes no more metadata snapshots"
    if not any(each.loader for each in found):
        goes_on = "a broker alone applies it"
    text = f"{what}: {first.exception}; {halts}; {goes_on}"
    if is_controller is None:
        plan.doubts.append(f"{text} (--properties FILE states the roles)")
    else:
        directory.warnings.append(text)


def _remedy(folder: str, *, several: bool) -> str:
    copy = f"copy {folder} first: no configuration skips a record"
    if several:
        return f"{copy}. If another voter does not have it, move {folder} away, and the node fetches the log again"
    return (
        f"{copy}. Start the release that wrote it, if that is another one; otherwise restore the directory from before "
        "the record, as the incident page metadata-log describes"
    )


def controller_role(plan: RestartPlan, server: ServerProperties | None, metadata: MetadataImage) -> bool | None:
    """Return whether the node has the controller role, by its properties or what the metadata states of it; None if
    neither does."""
    if server is not None and server.roles is not None:
        return "controller" in server.roles
    nodes = {each.nodeId for each in plan.directories} - {None}
    voters = [] if plan.quorum is None else plan.quorum.voters
    if any(each.voterId in nodes for each in voters) or nodes & set(metadata.controllers):
        return True
    others = voters or metadata.controllers
    return False if others and nodes & set(metadata.brokers) else None
