"""The commands of a message, with its parts filled in: partition, file, offset …"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

from kdump.incident.explain.broker_paths import directory_of, partition_of
from kdump.incident.explain.message import NUMBERS
from kdump.io import file_system
from kdump.log.paths import PARTITION
from kdump.problems.advice import PLACEHOLDER
from kdump.problems.problem import word_of
from kdump.text import shell_word, shell_words

_IN_ACTIONS = {
    "TOPIC:PARTITION": "{topic}:{partitionNumber}",
    "TOPIC": "{topic}",
    "PARTITION": "{partitionNumber}",
    "DIR": "{path}",
}
"""The placeholders of problems/advice.py that messages may state, as parts of commands."""
_PLACE = re.compile(r"\{(\w+)\}")
_OPTION = re.compile(r" --[\w-]+ \{(topic|group)\}")
LOG_TIME = "logTime"
"""The time of a message in its log, as a part of commands."""
UNKNOWN = {
    "disk": "LOGDIR",
    "path": "LOGDIR/TOPIC-PARTITION",
    "file": "FILE",
    "otherFile": "OTHER-FILE",
    "directory": "LOGDIR",
    "folder": "DIRECTORY",
    "producerId": "PRODUCER-ID",
    "partitionNumber": "PARTITION",
    LOG_TIME: "TIME",
}
"""What stands in a command for a part that the message does not have; for others, their name in capitals."""


def fill(
    commands: tuple[str, ...],
    parts: dict[str, str],
    disk: str | None,
    on_disk: dict[str, str],
    disks: Sequence[str] = (),
    topics: Collection[str] = (),
) -> list[str]:
    """Return the commands with values in place of names in braces, quoted for a shell. `on_disk`: paths of the
    partition and the file on the disk that was given, by name. `disks`: the log directories of the broker, which a
    command gets if it is not known which of them the message is about; `topics`: those on these disks. A command is
    left out if it needs a number or time that the message does not have, or a path or topic that is not on the disks;
    of one that can do without it, an option is."""
    values = _values(parts, disk, on_disk)
    roots = tuple(f"{root.rstrip('/')}/" for root in (*disks, disk or "") if root)
    if roots:
        commands = tuple(
            _OPTION.sub(lambda option: option[0] if values.get(option[1]) else "", each) for each in commands
        )
    complete = (
        command
        for command in commands
        if all(values.get(name) for name in _PLACE.findall(command) if name in NUMBERS or name == LOG_TIME)
    )
    filled = {_filled(each, values, disks, shell_word): _filled(each, values, disks) for each in complete}
    return [command for here, command in filled.items() if not roots or _is_there(here, roots, topics)]


def _is_there(command: str, roots: tuple[str, ...], topics: Collection[str]) -> bool:
    """Return whether the paths of a command that are on these disks exist, and the topic, unless the metadata may have
    it."""
    words = shlex.split(command)
    topic = words[words.index("--topic") + 1] if "--topic" in words and "cluster" not in words else None
    return all(file_system.exists(word) for word in words if word.startswith(roots)) and (
        topic is None or any(fnmatchcase(name, topic) for name in topics)
    )


def _values(parts: dict[str, str], disk: str | None, on_disk: dict[str, str]) -> dict[str, str]:
    """Return what stands in commands for each name: parts of the message, and what follows from them."""
    values = dict(parts)
    partition = partition_of(parts)
    if partition is not None:
        values.setdefault("partition", partition)
        name = PARTITION.match(partition)
        if name is not None:
            values.setdefault("topic", partition.rpartition("-")[0])
            values["partitionNumber"] = name["partition"]
    if "file" in parts:  # which may have been temporary, or not been created
        values["folder"] = os.path.dirname(parts["file"]) or "."
    directory = disk or parts.get("directory") or directory_of(parts.get("file", ""), partition)
    if directory:
        values["disk"] = directory
        if partition is not None:
            values["path"] = f"{directory.rstrip('/')}/{partition}"
        else:
            values["path"] = directory if disk else f"{directory.rstrip('/')}/TOPIC-PARTITION"
    elif partition is not None:
        values["path"] = f"LOGDIR/{partition}"
    return {**values, **on_disk}


def _filled(
    text: str, values: dict[str, str], disks: Sequence[str] = (), word: Callable[[str], str] | None = None
) -> str:
    word = word or word_of(text)

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if values.get(name):
            return word(values[name])
        if name == "disk" and disks and text[match.end() : match.end() + 1] in ("", " "):
            return shell_words(disks)
        return UNKNOWN.get(name, name.upper())

    return _PLACE.sub(value, text)


def fill_action(action: str, parts: dict[str, str], disk: str | None, on_disk: dict[str, str]) -> str:
    """Return an action with the placeholders of problems/advice.py filled in that a message states."""
    named = PLACEHOLDER.sub(lambda match: _IN_ACTIONS.get(match[0], match[0]), action)
    return _filled(named, _values(parts, disk, on_disk)) if named != action else action
