"""Files of a copy of KRaft's metadata log: segments, and metadata snapshots in the same directory.

Source: org.apache.kafka.snapshot.Snapshots (names), KIP-630."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kdump.io.directory_listing import names
from kdump.io.errors import SourceError
from kdump.log.paths import target
from kdump.log.served_files import segments_in

SNAPSHOT = re.compile(r"([0-9]{20})-(?P<epoch>[0-9]{10})\.checkpoint")
BOOTSTRAP = "bootstrap.checkpoint"


@dataclass(frozen=True)
class MetadataFiles:
    """Files of one copy of the metadata log: snapshots with their end offsets, newest last, and segments.
    `bootstrap`: the file that `kafka-storage format` wrote, if the quorum has not started a log yet."""

    path: str
    snapshots: tuple[tuple[int, str], ...] = ()
    segments: tuple[str, ...] = ()
    bootstrap: str | None = None

    @property
    def log_start(self) -> int | None:
        """Offset in the first segment's name; None without segments."""
        return (target(self.segments[0]).name_offset or 0) if self.segments else None

    @property
    def committed(self) -> int | None:
        """Offset below which everything is committed: the end offset of the newest snapshot, because snapshots contain
        only committed records. None without a snapshot."""
        return self.snapshots[-1][0] if self.snapshots else None


class Unreachable(SourceError):
    """The requested offset or time is before the oldest state that the disk still has."""


def metadata_files(folder: str) -> MetadataFiles:
    """Return the files in a directory of __cluster_metadata. Raises OSError."""
    snapshots = tuple(
        (int(name[:20]), os.path.join(folder, name)) for name in names(folder) if SNAPSHOT.fullmatch(name)
    )
    return MetadataFiles(folder, snapshots, tuple(os.path.join(folder, name) for name in segments_in(folder)))


def too_early(files: MetadataFiles, snapshot_problems: Sequence[str]) -> str:
    """Return the message for a requested offset or time that is before the files; `snapshot_problems`: why snapshots
    were skipped."""
    oldest = (
        f"the oldest snapshot ends at offset {files.snapshots[0][0]}" if files.snapshots else "there is no snapshot"
    )
    log = "there is no log" if files.log_start is None else f"the log starts at offset {files.log_start}"
    return "; ".join([f"{files.path}: the metadata does not go back that far: {log}, and {oldest}", *snapshot_problems])
