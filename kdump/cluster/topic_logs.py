"""Finds the logs of topics under paths, with the cluster that each belongs to."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import NamedTuple

from kdump.cluster.find_state_logs import coordinator_logs, deleted_logs
from kdump.cluster.node_ids import node_ids
from kdump.cluster.read_groups import CoordinatorLog, newest
from kdump.io.directory_listing import real_path
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log.log_directory import LogDirectory


class TopicLogs(NamedTuple):
    """The logs of some topics, by cluster: the newest copy of each partition, and copies that a broker was to delete.
    `older`: copies that are not the newest, which OLDER says of them. `directories`: the log directories, with their
    cluster. `is_complete`: whether all of the paths could be searched."""

    newest: dict[str, list[CoordinatorLog]]
    deleted: dict[str, list[CoordinatorLog]]
    older: list[CoordinatorLog]
    directories: list[tuple[str, LogDirectory]]
    is_complete: bool

    @property
    def clusters(self) -> list[str]:
        return sorted({*self.newest, *self.deleted})


OLDER = "not read; another copy of it ends at the same offset or a higher one"


def find_topic_logs(paths: Iterable[str], topics: Container[str], run: Run, *, lone: str) -> TopicLogs:
    """Return the logs of `topics`. A segment whose directory has no topic's name is one of `lone`. A path without Kafka
    files is passed to `run.unreadable`, and left out."""
    logs: dict[str, list[CoordinatorLog]] = {}
    deleted: dict[str, list[CoordinatorLog]] = {}
    seen: dict[str, tuple[str, LogDirectory]] = {}
    errors: list[SourceError] = []

    def unreadable(error: SourceError) -> None:
        errors.append(error)
        run.unreadable(error)

    for path in paths:
        try:
            found, directories = coordinator_logs(path, replace(run, unreadable=unreadable), topics, lone=lone)
        except SourceError as error:
            unreadable(error)
            continue
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
    return TopicLogs(chosen, deleted, older, list(seen.values()), not errors)


def cluster_of(directory: LogDirectory) -> str:
    """Return what identifies the cluster of a log directory: its ID, else the path of the directory."""
    return node_ids(directory).get("cluster.id") or real_path(directory.path)
