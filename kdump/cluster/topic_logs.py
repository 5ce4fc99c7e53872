"""Finds the logs of topics under paths, with the cluster that each belongs to."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import NamedTuple

from kdump.cluster.find_state_logs import coordinator_logs, deleted_logs
from kdump.cluster.node_ids import node_ids
from kdump.cluster.read_groups import CoordinatorLog, newest
from kdump.log.directory_listing import real_path
from kdump.log.log_directory import LogDirectory
from kdump.log.run import Run


class TopicLogs(NamedTuple):
    """The logs of some topics, by cluster: the newest copy of each partition, and copies that a broker was to delete.
    `older`: copies that are not the newest. `directories`: the log directories, with their cluster."""

    newest: dict[str, list[CoordinatorLog]]
    deleted: dict[str, list[CoordinatorLog]]
    older: list[CoordinatorLog]
    directories: list[tuple[str, LogDirectory]]

    @property
    def clusters(self) -> list[str]:
        return sorted({*self.newest, *self.deleted})


def find_topic_logs(paths: Iterable[str], topics: Container[str], run: Run, *, lone: str) -> TopicLogs:
    """Return the logs of `topics`. A segment whose directory has no topic's name is one of `lone`. Raises SourceError
    for a path without Kafka files."""
    logs: dict[str, list[CoordinatorLog]] = {}
    deleted: dict[str, list[CoordinatorLog]] = {}
    seen: dict[str, tuple[str, LogDirectory]] = {}
    for path in paths:
        found, directories = coordinator_logs(path, run, topics, lone=lone)
        clusters = {real_path(each.path): cluster_of(each) for each in directories}
        for directory in directories:
            place = real_path(directory.path)
            if place not in seen:
                deleted.setdefault(clusters[place], []).extend(deleted_logs(directory, topics))
                seen[place] = (clusters[place], directory)
        for log in found:
            above = os.path.dirname(real_path(log.path))
            cluster = clusters.get(above) or clusters.get(os.path.dirname(above)) or ""
            logs.setdefault(cluster, []).append(log)
    chosen = {cluster: newest(each) for cluster, each in logs.items()}
    kept = {each.path for mine in chosen.values() for each in mine}
    older = [each for mine in logs.values() for each in mine if each.path not in kept]
    return TopicLogs(chosen, deleted, older, list(seen.values()))


def cluster_of(directory: LogDirectory) -> str:
    """Return what tells the directories of one cluster from others: its ID, else the directory itself."""
    return node_ids(directory).get("cluster.id") or real_path(directory.path)
