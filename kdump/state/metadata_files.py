"""The files of a copy of KRaft's metadata log: segments, and the snapshots beside them.

Source: org.apache.kafka.snapshot.Snapshots (names), KIP-630.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kdump.log.errors import SourceError
from kdump.log.listing import names
from kdump.log.paths import segments_in, target

SNAPSHOT = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
BOOTSTRAP = "bootstrap.checkpoint"


@dataclass(frozen=True)
class MetadataFiles:
    """The files of one copy of the metadata log: its snapshots by end offset, newest last, and its segments.
    `bootstrap`: what `kafka-storage format` wrote, where the quorum has not begun a log yet."""

    path: str
    snapshots: tuple[tuple[int, str], ...] = ()
    segments: tuple[str, ...] = ()
    bootstrap: str | None = None

    @property
    def log_start(self) -> int | None:
        """The offset in the first segment's name; None without segments."""
        return (target(self.segments[0]).name_offset or 0) if self.segments else None

    @property
    def committed(self) -> int | None:
        """An offset below which everything is committed: the end of the newest snapshot, for snapshots are made of
        what is. None where there is no snapshot."""
        return self.snapshots[-1][0] if self.snapshots else None


class Unreachable(SourceError):
    """The moment asked for lies before what the disk still has."""


def metadata_files(folder: str) -> MetadataFiles:
    """The files in a directory of __cluster_metadata. Raises OSError."""
    snapshots = tuple(
        (int(name[:20]), os.path.join(folder, name)) for name in names(folder) if SNAPSHOT.fullmatch(name)
    )
    return MetadataFiles(folder, snapshots, tuple(os.path.join(folder, name) for name in segments_in(folder)))


def too_early(files: MetadataFiles, refused: Sequence[str]) -> str:
    """What to say of a moment that the files do not go back to; `refused`: why snapshots were passed over."""
    oldest = f"its oldest snapshot ends at offset {files.snapshots[0][0]}" if files.snapshots else "it has no snapshot"
    log = "there is no log" if files.log_start is None else f"the log begins at offset {files.log_start}"
    return "; ".join([f"{files.path}: the metadata does not go back to that moment: {log}, and {oldest}", *refused])
