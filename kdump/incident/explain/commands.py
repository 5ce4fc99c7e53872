"""The commands of a message, with its parts filled in: partition, file, offset …"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from kdump.log.file_kinds import by_name
from kdump.log.log_directory import AT_ROOT
from kdump.log.paths import PARTITION
from kdump.problems.advice import PLACEHOLDER

_IN_ACTIONS = {
    "TOPIC:PARTITION": "{topic}:{partitionNumber}",
    "TOPIC": "{topic}",
    "PARTITION": "{partitionNumber}",
    "DIR": "{path}",
}
"""The placeholders of problems/catalogue.py that messages may state, as parts of commands."""
_PLACE = re.compile(r"\{(\w+)\}")
_WINDOWS = re.compile(r"[A-Za-z]:\\")
IN_PARTITIONS = ("partition.metadata", "leader-epoch-checkpoint", "quorum-state")
UNKNOWN = {
    "disk": "LOGDIR",
    "path": "LOGDIR/TOPIC-PARTITION",
    "file": "FILE",
    "otherFile": "OTHER-FILE",
    "directory": "LOGDIR",
    "producerId": "PRODUCER-ID",
    "partitionNumber": "PARTITION",
}
"""What stands in a command for a part that the message does not have; for others, their name in capitals."""


def partition_of(parts: dict[str, str]) -> str | None:
    """Return the partition that a message is about, as topic-partition: named, or the directory of a file. Log
    directories may have such names, too (disk-1): so a path counts only if it ends there, or with a file that Kafka has
    in partitions."""
    if "partition" in parts:
        return parts["partition"]
    if "topic" in parts and "number" in parts:
        return f"{parts['topic']}-{parts['number']}"
    for name in ("file", "otherFile"):
        path = parts.get(name, "")
        *above, last = (path.replace("\\", "/") if _WINDOWS.match(path) else path).rstrip("/").split("/")
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


def fill(
    commands: tuple[str, ...],
    parts: dict[str, str],
    disk: str | None,
    on_disk: dict[str, str],
    disks: Sequence[str] = (),
) -> list[str]:
    """Return the commands with values in place of names in braces, quoted for a shell. `on_disk`: paths of the
    partition and the file on the disk that was given, by name. `disks`: the log directories of the broker, which a
    command gets if it is not known which of them the message is about."""
    values = dict(parts)
    partition = partition_of(parts)
    if partition is not None:
        values.setdefault("partition", partition)
        name = PARTITION.match(partition)
        if name is not None:
            values.setdefault("topic", partition.rpartition("-")[0])
            values["partitionNumber"] = name["partition"]
    if partition is not None:
        values["path"] = f"LOGDIR/{partition}"
    directory = disk or parts.get("directory") or _log_directory(parts.get("file", ""), partition)
    if directory:
        values["disk"] = directory
        if partition is not None:
            values["path"] = f"{directory.rstrip('/')}/{partition}"
    values.update(on_disk)
    if directory and "path" not in values and partition is None:
        values["path"] = f"{directory.rstrip('/')}/TOPIC-PARTITION"

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if values.get(name):
            return shlex.quote(values[name])
        if name == "disk" and disks and match.string[match.end() : match.end() + 1] in ("", " "):
            return shlex.join(disks)
        return UNKNOWN.get(name, name.upper())

    return list(dict.fromkeys(_PLACE.sub(value, command) for command in commands))


def fill_action(action: str, parts: dict[str, str], disk: str | None, on_disk: dict[str, str]) -> str:
    """Return an action with the placeholders of problems/catalogue.py filled in that a message states."""
    named = PLACEHOLDER.sub(lambda match: _IN_ACTIONS.get(match[0], match[0]), action)
    return fill((named,), parts, disk, on_disk)[0] if named != action else action


def _log_directory(path: str, partition: str | None) -> str:
    """Return the log directory of a file in a message; empty if it does not show."""
    if "/" not in path:
        return ""
    if partition is not None:
        before, separator, _ = path.partition(f"/{partition}")
        return before if separator else ""
    return path.rpartition("/")[0]
