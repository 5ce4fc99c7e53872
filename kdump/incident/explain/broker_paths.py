"""What a path or the name of a partition in a message is: paths of the broker's machine, which may be in quotes or
Windows' own, and partitions with their topic ID."""

from __future__ import annotations

import re

from kdump.log.file_kinds import AT_ROOT, REMOTE_CACHE, by_name, is_of_broker
from kdump.log.paths import PARTITION

IN_PARTITIONS = ("partition.metadata", "leader-epoch-checkpoint", "quorum-state")
PATHS = ("file", "otherFile", "directory")
"""The parts of a message that are paths."""
_WINDOWS = re.compile(r"(?:\\\\[?.]\\)?[A-Za-z]:[\\/]|\\\\\w")
_QUOTES = {"'": "'", '"': '"', "`": "`", "‘": "’", "[": "]"}
_WITH_ID = re.compile(r"(?P<topicId>[\w-]{22}):(?P<partition>.+)")


def is_windows(path: str) -> bool:
    """Return True for an absolute path of Windows."""
    return _WINDOWS.match(path) is not None


def names_of(path: str) -> list[str]:
    """Return the names in a path, the file's own last."""
    return (path.replace("\\", "/") if is_windows(path) else path).rstrip("/").split("/")


def normalized(parts: dict[str, str]) -> dict[str, str]:
    """Return the parts of a message with paths without quotes and the partition without its topic ID, which becomes a
    part of its own: RemoteLogManager prints a partition as ID:topic-0."""
    clean = {name: _unquoted(value) if name in PATHS else value for name, value in parts.items()}
    with_id = _WITH_ID.fullmatch(clean.get("partition", ""))
    if with_id is not None:
        clean["partition"] = with_id["partition"]
        clean.setdefault("topicId", with_id["topicId"])
    return clean


def _unquoted(path: str) -> str:
    path = path.strip()
    while len(path) > 2 and _QUOTES.get(path[0]) == path[-1]:
        path = path[1:-1].strip()
    return path


def partition_of(parts: dict[str, str]) -> str | None:
    """Return the partition that a message is about, as topic-partition: named, or the directory of a file. Log
    directories may have such names, too (disk-1): so a path counts only if it ends there, or with a file that Kafka has
    in partitions."""
    if "partition" in parts:
        return parts["partition"]
    if "topic" in parts and "number" in parts:
        return f"{parts['topic']}-{parts['number']}"
    for name in ("file", "otherFile"):
        *above, last = names_of(parts.get(name, ""))
        if PARTITION.match(last) and parts.get(name) != parts.get("directory") and len(above) > 1:
            return _topic_partition(last)
        kind = by_name(last)[0]
        if above and PARTITION.match(above[-1]) and (last in IN_PARTITIONS or kind not in (None, *AT_ROOT)):
            return _topic_partition(above[-1])
    return None


def _topic_partition(name: str) -> str:
    match = PARTITION.match(name)
    assert match is not None
    return f"{match['topic']}-{match['partition']}"


def is_outside(path: str) -> bool | None:
    """Return True for a path of something that no log directory contains, such as a configuration, and False for one of
    Kafka's files; None if it may be either, as the path of a directory."""
    names = names_of(path)
    if is_of_broker(names[-1].removesuffix(".tmp")) or REMOTE_CACHE in names or any(map(PARTITION.match, names[-2:])):
        return False
    return True if "." in names[-1] else None


def directory_of(path: str, partition: str | None) -> str:
    """Return the log directory of a file in a message, as the message writes it; empty if it does not show."""
    names = names_of(path)
    if len(names) == 1 or is_outside(path):
        return ""
    if partition is not None:
        owner = next((name for name in names if PARTITION.match(name) and _topic_partition(name) == partition), None)
        if owner is None:
            return ""
        return path[: path.index(owner)].rstrip("/\\")
    below = path.index(REMOTE_CACHE) if REMOTE_CACHE in names else -len(names[-1])
    return path.rstrip("/\\")[:below].rstrip("/\\")
