"""What a plan takes for granted because no disk states it."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.format.kafka_release import NEWEST
from kdump.io.directory_listing import real_path
from kdump.kafka.server_properties import ServerProperties
from kdump.questions.restart_plan.answer import RestartPlan
from kdump.questions.restart_plan.cluster_knowledge import ClusterKnowledge
from kdump.questions.restart_plan.node.starting_node import StartingNode
from kdump.questions.restart_plan.remote_storage import RemoteStorage

ENABLED = (
    "remote.log.storage.system.enable is true: otherwise the logs of tiered topics start at their first local offset"
)


def assumptions(node: StartingNode, known: ClusterKnowledge, plan: RestartPlan) -> list[str]:
    """Return what a plan of a node takes for granted before its logs are considered."""
    assert plan.release is not None
    rights, server, metadata = node.rights, node.server, known.metadata
    runs = f"Kafka {plan.release.version}{'' if node.is_kraft else ' with ZooKeeper'}"
    assumed = [f"the node runs {runs}, and nothing else changes the files before it starts"]
    if plan.release.newer:
        assumed.append(f"a newer Kafka than {NEWEST.number} does with the files what {NEWEST.number} does")
    if not rights.is_root:
        assumed.append(f"the node runs as user {rights.name}, with that user's permissions")
    if rights.is_foreign:
        assumed.append("what a bundle does not have hinders nothing: a running broker, mounts, groups, ACLs")
    ids = " and ".join(sorted({f"{directory.clusterId}" for directory in plan.directories if directory.clusterId}))
    if ids:
        assumed.append(f"the cluster that the node joins has the ID {ids}: with a different one it does not start")
    assumed += _assumed_directories(node)
    if not node.is_kraft:
        assumed.append(
            "ZooKeeper still has the cluster's topics and replicas, which no log directory contains: the broker has no "
            "stray partitions, and topic configs are the defaults"
        )
        assumed.append("log.message.format.version and message.format.version are 0.11 or later")
    elif not node.is_broker:
        assumed.append("the node is a controller: its only log is the metadata log")
        if server is None or server.roles is None:
            assumed[-1] += "; if process.roles has broker, too (--properties FILE), it also creates its partitions"
    elif node.is_sole_by_file and not node.metadata_logs:
        assumed.append("it starts with an empty metadata log")
    elif plan.withoutMetadata:
        assumed.append(_assumed_controllers(server))
    elif metadata is None:
        assumed.append("no cluster metadata could be read here, so stray directories and topic configs are unknown")
    elif metadata.newer:
        assumed.append(
            "the cluster's metadata has records of a release that kdump does not know: which directories are stray is "
            "unknown"
        )
    elif not known.is_whole:
        assumed.append(
            f"the cluster's metadata on this disk is damaged after offset {metadata.end_offset}: which directories "
            f"are stray is unknown ({metadata.problems[0]})"
        )
    else:
        is_here = any(directory.path == node.source for directory in node.directories)
        source = "this disk's metadata" if is_here else f"the metadata of {node.source}"
        assumed.append(
            f"the cluster's topics and replicas are those in {source}, up to offset {metadata.end_offset}; "
            "the broker fetches newer metadata from the controllers"
        )
    if node.is_broker and metadata is not None:
        assumed.append("index.interval.bytes is the topic's own value, or 4096")
    return assumed


def assumed_of_logs(
    node: StartingNode, known: ClusterKnowledge, plan: RestartPlan, remote: RemoteStorage
) -> Iterator[str]:
    """Yield what depends on the node's logs."""
    if node.is_broker and any(map(remote.has, plan.partitions)):
        yield ENABLED
    if known.is_sole:
        where = node.server.path if node.starts_empty and node.server is not None else "quorum-state or the metadata"
        yield f"the node is the cluster's only controller, as stated in {where}"


def _assumed_controllers(server: ServerProperties | None) -> str:
    """Return where the metadata is that no given directory has."""
    if server is None or "controller" not in (server.roles or ()):
        return "other nodes are the controllers, and still have the cluster's metadata"
    return "the other controllers still have the cluster's metadata"


def _assumed_directories(node: StartingNode) -> list[str]:
    """Return the assumptions about the directories in the node's configuration, or what its server.properties states
    of them."""
    server, directories = node.server, node.directories
    if server is not None and any(server.names(directory.path) for directory in directories):
        given = {real_path(directory.path) for directory in directories}
        others = [path for path in server.log_dirs if path not in given]
        also = f"; log.dirs also has {', '.join(others)}, of which nothing is known here" if others else ""
        return [f"log.dirs and metadata.log.dir are those in {server.path}{also}"]
    copied = [f"{server.path} names none of these directories, as for a copy of them"] if server is not None else []
    logs = [directory for directory in directories if directory.logDir]
    assumption = f"log.dirs contains {'these directories' if len(logs) > 1 else 'this directory'} and no other"
    if len(directories) == 1:
        return [*copied, assumption]
    metadata = next(directory.path for directory in directories if directory.metadataLogDir)
    if len(logs) < len(directories):
        assumption = f"log.dirs contains {', '.join(directory.path for directory in logs)} and no other directory"
    why = ", whose metadata log is the newest (--properties FILE decides)" if len(node.metadata_logs) > 1 else ""
    return [*copied, assumption, f"metadata.log.dir is {metadata}{why}"]
