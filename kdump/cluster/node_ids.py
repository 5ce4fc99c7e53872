"""A node's IDs, in the meta.properties of its log directories (MetaProperties), and its roles."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kdump.kafka.server_properties import ServerProperties
from kdump.kafka.small_files import properties
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import Open, open_window
from kdump.log.log_directory import META, LogDirectory

if TYPE_CHECKING:  # most commands ask for IDs alone
    from kdump.state.metadata_image import MetadataImage, QuorumImage


def node_ids(directory: LogDirectory, open_: Open = open_window) -> dict[str, str]:
    """Return what meta.properties states, with the name node.id, which was broker.id before KRaft; empty if the file is
    missing or cannot be read."""
    values = properties(directory.files.get(META), open_=open_)
    if "broker.id" in values:
        values.setdefault("node.id", values["broker.id"])
    return values


def may_be_broker(
    directories: Iterable[LogDirectory],
    nodes: Collection[int | None],
    metadata: MetadataImage | None,
    server: ServerProperties | None,
    *,
    has_failed: bool,
) -> bool:
    """Return True unless the node is only a controller, by its server.properties or, without them, by its log
    directories and the metadata: a controller has no logs but the metadata log, and no checkpoints. `nodes`: its ID,
    more than one if its directories state different ones; `has_failed`: another log directory cannot be read."""
    if server is not None and server.roles is not None:
        return server.is_broker
    if has_failed:
        return True
    for directory in directories:
        if any(each.topic != METADATA_TOPIC for each in directory.partitions):
            return True
        if any(name.endswith("-offset-checkpoint") for name in directory.files):
            return True
    return metadata is None or any(each in metadata.brokers for each in nodes)


def has_controller_role(
    nodes: Collection[int | None], voters: Collection[int], metadata: QuorumImage, server: ServerProperties | None
) -> bool | None:
    """Return whether the node has the controller role, by its properties or what the metadata states of it; None if
    neither does. `nodes`: as for may_be_broker; `voters`: of the quorum, none if they are not known."""
    if server is not None and server.roles is not None:
        return "controller" in server.roles
    if any(node in voters or node in metadata.controllers for node in nodes):
        return True
    others = voters or metadata.controllers
    return False if others and any(node in metadata.brokers for node in nodes) else None
