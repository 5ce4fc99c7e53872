"""Which files a path means, and what the names on a broker's disk say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from kdump.log.errors import SourceError

# Kafka pads an offset to 20 digits (LogFileUtils.filenamePrefixFromOffset); a tier's copy adds the segment's id.
SEGMENT = re.compile(r"^(\d{20})(?:-[\w-]{22})?\.log(?:\.(?:deleted|swap|cleaned))?(?:\.(?:gz|zst))?$")
SNAPSHOT = re.compile(r"^(?:\d{20}-\d{10}|bootstrap)\.checkpoint(?:\.(?:deleted|part))?$")
# topic-partition, with what a broker appends to a directory that it is deleting, moving or does not know.
PARTITION = re.compile(r"^(?P<topic>[\w.-]+)-(?P<partition>\d+)(?:\.[0-9a-f]{32}-(?:delete|future|stray))?$")

OTHER_FILES = {
    ".index": "an offset index",
    ".timeindex": "a time index",
    ".txnindex": "an index of aborted transactions",
    ".snapshot": "a snapshot of producer states",
    "leader-epoch-checkpoint": "a leader epoch checkpoint",
    ".leader_epoch_checkpoint": "a leader epoch checkpoint",
    "recovery-point-offset-checkpoint": "an offset checkpoint",
    "replication-offset-checkpoint": "an offset checkpoint",
    "log-start-offset-checkpoint": "an offset checkpoint",
    "cleaner-offset-checkpoint": "an offset checkpoint",
    "partition.metadata": "a partition's topic id",
    "meta.properties": "the identity of a log directory",
    "quorum-state": "the state of a KRaft voter",
    ".kafka_cleanshutdown": "the mark of a clean shutdown",
}
"""Files on a broker's disk that hold no record batches, by their names or endings."""


class Target(NamedTuple):
    """A file to read. `name_offset` is the base offset that its name gives; topic and partition are its directory's."""

    path: str
    name_offset: int | None
    topic: str | None
    partition: int | None


def target(path: str) -> Target:
    """What the name of a file says: a segment's base offset (a snapshot's batches start at 0 whatever its name)."""
    name = os.path.basename(path)
    match = SEGMENT.match(name)
    directory = PARTITION.match(os.path.basename(os.path.dirname(path if "://" in path else os.path.abspath(path))))
    known = bool(directory) and path != "-"
    return Target(
        path,
        int(match.group(1)) if match else None,
        directory.group("topic") if directory and known else None,
        int(directory.group("partition")) if directory and known else None,
    )


def other_kind(path: str) -> str | None:
    """What a file of Kafka's that holds no batches is, by its name; None for what may be a segment."""
    name = re.sub(r"\.(?:deleted|swap|cleaned|tmp)$", "", os.path.basename(path))
    for ending, kind in OTHER_FILES.items():
        if name.endswith(ending) and (ending.startswith(".") or name == ending):
            return kind
    return None


def targets(path: str) -> Iterator[Target]:
    """The segments that `path` means: a file itself, a directory's live segments in offset order, those of the
    directories below it, in order of their names. Raises SourceError when there are none."""
    if path == "-" or "://" in path or not os.path.isdir(path):
        yield target(path)
        return
    found = False
    try:
        for directory in _directories(path):
            for name in segments_in(directory):
                found = True
                yield target(os.path.join(directory, name))
    except OSError as error:
        raise SourceError(f"{error.filename or path}: {error.strerror}") from error
    if not found:
        raise SourceError(f"{path}: no segment (<20 digits>.log) in this directory or below it")


def segments_in(directory: str) -> list[str]:
    """Names of the live segments in a directory, in offset order."""
    return sorted(name for name in os.listdir(directory) if SEGMENT.match(name) and _is_live(name))


def _is_live(name: str) -> bool:
    return not name.endswith((".deleted", ".swap", ".cleaned"))


def _directories(path: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for directory, names, _files in os.walk(path, onerror=refuse):
        names.sort(key=_natural)
        yield directory


def _natural(name: str) -> tuple[str, int]:
    match = PARTITION.match(name)
    return (match.group("topic"), int(match.group("partition"))) if match else (name, -1)
