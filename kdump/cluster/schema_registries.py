"""Finds the topics of schema registries on disks, and reads each into its state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import TopicLogs, find_topic_logs, topic_logs
from kdump.cluster.read_groups import CoordinatorLog, log_name, log_records
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.errors import within
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.internal_topics import SCHEMAS_TOPIC
from kdump.log.served_files import targets
from kdump.state.as_of import AsOf, Change
from kdump.state.schema_registry import HARD_DELETED, SchemaRegistry, SchemaVersion
from kdump.state.schema_registry_replay import RegistryReplay


class RegistryLog(NamedTuple):
    """The log of a registry's topic: the newest copy in its cluster, and copies that a broker was to delete."""

    cluster: str
    log: CoordinatorLog
    deleted: tuple[CoordinatorLog, ...]


class FoundRegistries(NamedTuple):
    """The registries under some paths."""

    registries: list[RegistryLog]
    topics: TopicLogs


def find_registries(paths: Iterable[str], topic: str, run: Run) -> FoundRegistries:
    """Return the registries of each cluster; one for each partition of the topic, although a registry refuses more
    than one. A path without Kafka files is passed to `run.unreadable`."""
    return _registries(find_topic_logs(paths, (topic,), run, lone=topic), topic)


def registries_in(disks: Disks) -> list[RegistryLog]:
    """Return the registry of each cluster to which these log directories belong, if its topic is there."""
    registries = _registries(topic_logs(disks, (SCHEMAS_TOPIC,)), SCHEMAS_TOPIC).registries
    return list({registry.cluster: registry for registry in reversed(registries)}.values())[::-1]


def _registries(logs: TopicLogs, topic: str) -> FoundRegistries:
    registries = []
    for cluster in logs.clusters:
        mine, gone = logs.newest.get(cluster, []), tuple(logs.deleted.get(cluster, []))
        if not mine and gone:
            mine = [CoordinatorLog(topic, gone[0].partition, gone[0].path, ())]
        registries += [RegistryLog(cluster, log, gone if number == 0 else ()) for number, log in enumerate(mine)]
    return FoundRegistries(registries, logs)


def read_registry(
    source: RegistryLog, moment: AsOf | None = None, *, keep_gone: bool = False, run: Run = PLAIN_RUN
) -> SchemaRegistry:
    """Read a registry as of `moment` (None: the end of its log). Never raises for what is on the disk: what cannot be
    read, and what a registry skips, is listed in `problems`."""
    registry = SchemaRegistry()
    for _ in registry_changes(source, registry, moment or AsOf(), keep_gone=keep_gone, run=run):
        pass
    return registry


def registry_changes(
    source: RegistryLog,
    registry: SchemaRegistry,
    moment: AsOf,
    *,
    keep_gone: bool = False,
    reports: bool = False,
    run: Run = PLAIN_RUN,
) -> Iterator[Change]:
    """Read a registry into `registry`, like `read_registry`; yield what each record changes, if `reports`."""
    replay = RegistryReplay(registry, keep_gone=keep_gone)
    changes: list[Change] = []
    replay.on_change = changes.append if reports else None
    place = log_name(source.log)
    if not source.log.segments:
        replay.note(f"{place}: no segments")

    def note(problem: str) -> None:
        replay.note(within(place, problem))

    for record in log_records(source.log, moment, note, run):
        replay.apply(record)
        if changes:
            yield from changes
            changes.clear()
    registry.note_skipped(replay.skipped)


def versions_in_deleted_logs(
    logs: Sequence[CoordinatorLog], registry: SchemaRegistry, run: Run = PLAIN_RUN
) -> list[tuple[CoordinatorLog, SchemaVersion]]:
    """Return what only the logs that a broker was to delete still have: versions that are neither in the registry's
    state nor among those that its log has lost."""
    versions: list[tuple[CoordinatorLog, SchemaVersion]] = []
    seen: set[tuple[str, int, int, str]] = set()
    for log in logs:
        other = read_registry(RegistryLog("", log, ()), keep_gone=True, run=run)
        for version in (*other.versions(), *other.removed()):
            current = registry.find(version.subject, version.version)
            place = (version.subject, version.version, version.id, version.text)
            if (current is None or current.text != version.text) and place not in seen:
                seen.add(place)
                versions.append((log, version._replace(state=HARD_DELETED)))
    return versions


def carved_logs(path: str, run: Run) -> list[CoordinatorLog]:
    """Return the segments that `kdump carve --out` wrote to a directory, each as a log: what is no record of a registry
    is skipped. Raises SourceError."""
    if not file_system.exists(path):
        raise missing(path)
    files = (each.path for each in targets(path, run=run))
    return [CoordinatorLog(SCHEMAS_TOPIC, 0, os.path.dirname(each), (each,)) for each in files]
