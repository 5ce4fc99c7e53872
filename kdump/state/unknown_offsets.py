"""Offsets of a partition, as answers state them, and why one is unknown (kdump.answer.Unknown)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from kdump.answer import OFFSET, Doc, Unknown

LogStartOffset = Annotated[
    int | None,
    Doc(
        "base offset of the first segment, or that in log-start-offset-checkpoint if it is higher or the topic tiered",
        OFFSET,
    ),
]
LogEndOffset = Annotated[
    int | None,
    Doc(
        "offset after the last batch that a broker finds when it starts, damaged or not unless it recovers the last "
        "segment, or the base offset of that; null if unread",
        OFFSET,
    ),
]

CHECKPOINT_OF = {"highWatermark": "replication-offset", "recoveryPoint": "recovery-point-offset"}
"""The checkpoint that states an offset, without '-checkpoint', by the key of answers."""


class CheckpointedOffsets(NamedTuple):
    """The offsets that ls, retention and the scan state of a live partition as a checkpoint has them. A new one is a
    field here, with its checkpoint in CHECKPOINT_OF."""

    recoveryPoint: Annotated[
        int | None, Doc("from recovery-point-offset-checkpoint; what is below has been flushed", OFFSET)
    ]

    @classmethod
    def of(cls, checkpoints: Mapping[str, int]) -> CheckpointedOffsets:
        return cls(*(checkpoints.get(CHECKPOINT_OF[name]) for name in cls._fields))


NO_FILE, DAMAGED, UNREADABLE = "noFile", "damagedFile", "unreadableFile"
NO_ENTRY, EARLIER, NOT_LIVE, NO_SEGMENT = "noEntry", "earlierTopic", "notLive", "noSegment"
UNREAD, NOT_SELECTED = "unreadSegment", "notSelected"


class CheckpointFiles(NamedTuple):
    """Offset checkpoints of a log directory. `unread`: why a broker uses nothing of a file, by its name without
    '-checkpoint'. `directory`: its path, empty for a partition that is in no log directory."""

    directory: str
    unread: Mapping[str, Unknown]

    def why(self, key: str, name: str, state: str) -> Unknown:
        """Return why the checkpoint states nothing of a partition whose directory has this state; `key`: of the
        answer."""
        if state:
            return Unknown(key, NOT_LIVE, f"a broker keeps none for a directory that is not live ({state})", None)
        if not self.directory:
            return Unknown(key, NO_FILE, f"no log directory was found around it, with a {name}-checkpoint", None)
        if name in self.unread:
            return self.unread[name]._replace(key=key)
        return Unknown(key, NO_ENTRY, "the file does not list the partition", _path(self.directory, name))

    def without(self, name: str) -> CheckpointFiles:
        """Return the same for a partition whose topic was created after the checkpoint was written."""
        reason = "it was written before the topic was created, and lists an earlier topic of this name"
        return self._replace(unread={**self.unread, name: Unknown("", EARLIER, reason, _path(self.directory, name))})


NO_FILES = CheckpointFiles("", {})


def no_file(directory: str, name: str) -> Unknown:
    """Return why nothing is known from a checkpoint that a log directory does not have."""
    return Unknown("", NO_FILE, "the log directory does not have the file", _path(directory, name))


def _path(directory: str, name: str) -> str:
    return os.path.join(directory, f"{name}-checkpoint")


def no_end(segments: int, errors: list[str]) -> Unknown:
    """Return why the log end offset is unknown."""
    if not segments:
        return Unknown("logEndOffset", NO_SEGMENT, "there is no segment", None)
    return Unknown("logEndOffset", UNREAD, errors[-1] if errors else "the last segment was not read", None)
