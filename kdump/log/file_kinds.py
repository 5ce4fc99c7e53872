"""Kinds of files in a log directory, recognized by name (by content: file_contents)."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any, NamedTuple

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY, TXN_INDEX_ENTRY
from kdump.format.layout import Layout
from kdump.format.numbers import LONG_MAX


class FileKind(NamedTuple):
    """A kind of file. `name` is the value for --as; `pattern`, without groups, matches a file name without the suffixes
    that a broker appends (.deleted, .swap …)."""

    name: str
    title: str
    pattern: str

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)  # unpickling in another process returns the same FileKind object


# Kafka pads an offset to 20 digits (LogFileUtils.filenamePrefixFromOffset); copies in remote storage and the cache of
# remote indexes append the segment's ID.
DIGITS = 20
"""Length of a base offset in a file's name."""
_ZERO = "0" * DIGITS
_DIGITS = rf"[0-9]{{{DIGITS}}}"
_UUID = r"(?:[-_][\w-]{22})?"
_OFFSET = _DIGITS + _UUID

SEGMENT = FileKind("segment", "a segment", _OFFSET + r"\.log")
KRAFT_SNAPSHOT = FileKind(
    "kraft-snapshot", "a metadata snapshot", r"[0-9]{20}-[0-9]{10}\.checkpoint|bootstrap\.checkpoint"
)
INDEX = FileKind("index", "an offset index", _OFFSET + r"\.index")
TIME_INDEX = FileKind("timeindex", "a time index", _OFFSET + r"\.timeindex")
TXN_INDEX = FileKind("txnindex", "a transaction index", _OFFSET + r"\.txnindex")
PRODUCER_SNAPSHOT = FileKind("snapshot", "a producer snapshot", _OFFSET + r"\.snapshot")
OFFSET_CHECKPOINTS = tuple(
    f"{name}-checkpoint"
    for name in ("recovery-point-offset", "replication-offset", "log-start-offset", "cleaner-offset")
)
OFFSET_CHECKPOINT = FileKind("offset-checkpoint", "an offset checkpoint", "|".join(OFFSET_CHECKPOINTS))
EPOCH_CHECKPOINT = FileKind(
    "leader-epoch-checkpoint",
    "a leader epoch checkpoint",
    rf"leader-epoch-checkpoint|{_OFFSET}\.leader_epoch_checkpoint",
)
PARTITION_METADATA = FileKind("partition-metadata", "the topic ID of a partition", r"partition\.metadata")
META_PROPERTIES = FileKind("meta-properties", "the properties of a log directory", r"meta\.properties")
QUORUM_STATE = FileKind("quorum-state", "the quorum state of a KRaft node", r"quorum-state")
CLEAN_SHUTDOWN = FileKind("clean-shutdown", "a clean-shutdown file", r"\.kafka_cleanshutdown")

KINDS = {
    kind.name: kind
    for kind in (
        *(SEGMENT, KRAFT_SNAPSHOT, INDEX, TIME_INDEX, TXN_INDEX, PRODUCER_SNAPSHOT, OFFSET_CHECKPOINT),
        *(EPOCH_CHECKPOINT, PARTITION_METADATA, META_PROPERTIES, QUORUM_STATE, CLEAN_SHUTDOWN),
    )
}


def named(name: str) -> FileKind:
    """Return the kind with that name. Raises KeyError."""
    return KINDS[name]


BATCHES = (SEGMENT, KRAFT_SNAPSHOT)
"""Kinds of files that contain record batches."""
AT_ROOT = {META_PROPERTIES, OFFSET_CHECKPOINT}
"""Kinds of files that a broker creates in each of its log directories."""
CLEAN_MARK = ".kafka_cleanshutdown"
"""File that a broker writes at a clean shutdown, and deletes at startup (CleanShutdownFileHandler)."""
LOCK = ".lock"
"""Empty file that a running broker locks in each of its log directories (LogManager.LockFileName)."""
REMOTE_CACHE = "remote-log-index-cache"
"""Directory inside a log directory in which a broker caches indexes from remote storage (RemoteIndexCache)."""
OWN_NAMES = frozenset({LOCK, REMOTE_CACHE, "_rlmm_committed_offsets", "remote_log_snapshot"})
"""Names of files and directories of a broker's own that are of no kind; the last two until 3.5
(RemoteLogMetadataSnapshotFile, ConsumerManager)."""

_ENDINGS = r"(?:\.(?:deleted|swap|cleaned|part|tmp))*(?:\.(?:gz|zst))?"
ENDINGS = re.compile(_ENDINGS + "$")
"""Suffixes that a broker, or whoever copied the file, has appended to the name."""

# One group for each kind: a name of no kind, which most are in a directory of other files, costs a single match.
_NAME = re.compile(f"(?:{'|'.join(f'({kind.pattern})' for kind in KINDS.values())}){_ENDINGS}")
_OFFSET_NAME = re.compile(rf"({_DIGITS}){_UUID}\.")
_BY_GROUP = (None, *KINDS.values())


def by_name(path: str) -> tuple[FileKind | None, int | None]:
    """Return the kind and the base offset that a file name implies, None for each that it does not. A broker parses the
    digits as a long, so a name with a larger number is not a Kafka file name."""
    name = os.path.basename(path) if "/" in path else path
    stem = name[:DIGITS]
    is_offset = len(stem) == DIGITS and stem.isdigit() and stem.isascii()
    kind, has_offset = _by_pattern(_ZERO + name[DIGITS:] if is_offset else name)
    if not has_offset:
        return kind, None
    offset = int(stem)
    return (kind, offset) if offset <= LONG_MAX else (None, None)


def is_of_broker(name: str) -> bool:
    """Return True if a file or directory with this name in a log directory is Kafka's own."""
    return by_name(name)[0] is not None or ENDINGS.sub("", name) in OWN_NAMES


@lru_cache(256)  # the same endings occur 200,000 times
def _by_pattern(name: str) -> tuple[FileKind | None, bool]:
    """Return the kind that a file name implies, and whether the name contains a base offset."""
    match = _NAME.fullmatch(name)
    return (None, False) if match is None else (_BY_GROUP[match.lastindex or 0], bool(_OFFSET_NAME.match(name)))


INDEXES: dict[FileKind, Layout[Any]] = {TXN_INDEX: TXN_INDEX_ENTRY, INDEX: INDEX_ENTRY, TIME_INDEX: TIME_INDEX_ENTRY}
"""Kinds without a header, the one with the strictest test first."""
