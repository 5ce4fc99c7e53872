"""Finds a broker's log directories, if none are given: those of a running broker, else those in the usual places.

Source: the defaults of config/*.properties and of the images in docs/kubernetes.md."""

from __future__ import annotations

import glob
import os
import re
from typing import NamedTuple

from kdump.cluster.broker_configuration import RunningBroker, running_brokers
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError, reason
from kdump.kafka.server_properties import ServerProperties
from kdump.log.log_directory import META
from kdump.text import shell_words

PLACES = (
    *("/var/lib/kafka", "/var/lib/kafka/data*", "/var/lib/kafka/data*/kafka-log*", "/var/lib/kafka-logs"),
    *("/mnt/data/data*/logs", "/bitnami/kafka/data", "/var/kafka-logs", "/opt/kafka/data", "/data/kafka*", "/kafka*"),
    *("/tmp/kafka-logs", "/tmp/kraft-combined-logs", "/tmp/kraft-broker-logs", "/tmp/kraft-controller-logs"),
)
"""Patterns of the directories that packages, images and operators use."""


class FoundLogDirectories(NamedTuple):
    """`directories`: log directories; `why`: where they were found."""

    directories: tuple[str, ...]
    why: str


def find_log_directories(root: str = "") -> FoundLogDirectories:
    """Return the log directories on this machine. `root`: what precedes every path. Raises SourceError if there are
    none, or if it is not clear which: those of several brokers."""
    brokers = running_brokers(root)
    if len(brokers) > 1:
        each = "; ".join(map(_listed, brokers))
        raise SourceError(f"{len(brokers)} nodes are running; pass the log directories of one, or of all: {each}")
    if brokers:
        return _of_broker(brokers[0])
    directories = sorted({path for place in PLACES for path in glob.glob(root + place) if _is_log_directory(path)})
    closed = _closed(root, directories)
    if not directories and closed:
        denials = ", ".join(f"{path}: {why}" for path, why in closed.items())
        raise SourceError(f"no path given, no broker is running, and {denials}; or pass the directories in log.dirs")
    if not directories:
        raise SourceError(
            f"no path given, no broker is running, and no log directory in {root}/var/lib/kafka or another usual place:"
            " pass the directories in log.dirs"
        )
    unread = f"; {', '.join(closed)} may not be read" if closed else ""
    return FoundLogDirectories(tuple(directories), f"with {META}, in the usual places; no broker is running{unread}")


def _closed(root: str, directories: list[str]) -> dict[str, str]:
    """Return those of the usual places, or directories above them, that this user may not read, and why."""
    closed = {}
    for place in PLACES:
        for path in (root + re.split(r"/[^/]*\*", place)[0], *glob.glob(root + place)):
            try:
                if path not in directories:
                    os.listdir(path)
            except PermissionError as error:
                closed[path] = reason(error, path)
            except OSError:
                pass  # it does not exist
    return closed


def _listed(broker: RunningBroker) -> str:
    """Return a node with its log directories, or why they are unknown."""
    try:
        server = broker.properties()
    except SourceError as error:
        return f"process {broker.process}: {error}"
    node = " and ".join(sorted(server.roles or ("broker",))) + (
        f" {server.node_id}" if server.node_id is not None else ""
    )
    return f"{node} (process {broker.process}): {shell_words(_stated(server))}"


def _stated(server: ServerProperties) -> list[str]:
    """Return the log directories in a node's properties, with that of its metadata."""
    directories = server.stated_log_dirs
    return directories + [own for own in server.paths("metadata.log.dir") if own not in directories]


def _of_broker(broker: RunningBroker) -> FoundLogDirectories:
    try:
        server = broker.properties()
    except SourceError as error:
        raise SourceError(f"log.dirs of {broker.name}: {error}; or pass its log directories") from None
    directories = _stated(server)
    missing = [path for path in directories if not os.path.isdir(path)]
    if len(missing) == len(directories):
        raise SourceError(
            f"log.dirs of {broker.name}: {missing[0]}: no such directory, or not readable: run as its user"
        )
    note = f", of which {count_text(len(missing), 'is', 'are')} missing: {', '.join(missing)}" if missing else ""
    why = f"log.dirs of {broker.name}, {server.path}{note}"
    return FoundLogDirectories(tuple(directory for directory in directories if directory not in missing), why)


def _is_log_directory(path: str) -> bool:
    return os.path.isfile(os.path.join(path, META))
