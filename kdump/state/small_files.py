"""Reads the small files on a broker's disk, checkpoints and properties, completely and as far as they are readable."""

from __future__ import annotations

import os
import time

from kdump.format import known_releases
from kdump.log import file_kinds
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError, is_gone
from kdump.log.file_kinds import FileKind
from kdump.log.live_files import PAUSES, identity, is_young
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.state.partition_summary import Open, open_window

Offsets = dict[tuple[str, int], int]
READERS = {
    file_kinds.META_PROPERTIES: "MetaProperties",
    file_kinds.QUORUM_STATE: "FileQuorumStateStore",
    file_kinds.CLEAN_SHUTDOWN: "CleanShutdownFileHandler",
    file_kinds.OFFSET_CHECKPOINT: "OffsetCheckpointFile",
    file_kinds.PARTITION_METADATA: "PartitionMetadataFile",
}
"""Classes that read small files, and define the versions of their formats."""


def newer_version(kind: FileKind, version: int | None, what: str = "version") -> str:
    """Return that a file of READERS has a version that only a newer release than the newest known one writes; empty if
    it has another one."""
    return known_releases.newer_version(READERS[kind], version, what)


def read_entries(
    target: Target, open_: Open = open_window, broken: list[str] | None = None, problems: list[str] | None = None
) -> list[Entry]:
    """Return the entries of a small file that can be read. If the file cannot be read, the error is added to
    `problems`. If it cannot be read or has invalid lines, its name is added to `broken`; `kdump verify` reports why."""
    for pause in (*PAUSES, None):
        seen = identity(target.path)
        found, is_valid, error = _read(target, open_)
        if is_valid or pause is None or (identity(target.path) == seen and not is_young(seen)):
            break
        time.sleep(pause)  # a broker is writing it
    if error and problems is not None:
        problems.append(error)
    if not is_valid and broken is not None and not is_gone(error):
        broken.append(os.path.basename(target.path))
    return found


def _read(target: Target, open_: Open) -> tuple[list[Entry], bool, str]:
    """Return the valid entries of the file, whether the whole file is valid, and why it cannot be read, empty if it
    can."""
    found: list[Entry] = []
    if target.kind is None:
        return found, False, ""
    is_valid = True
    try:
        window = open_(target)
        try:
            for item in entries(target.kind, window, 0):
                if not isinstance(item, Entry):
                    is_valid = False
                elif item.type:
                    found.append(item)
        finally:
            window.source.close()
    except SourceError as error:
        return found, False, str(error)
    return found, is_valid, ""


def properties(target: Target | None, broken: list[str] | None = None, *, open_: Open = open_window) -> dict[str, str]:
    """Return the name=value lines of meta.properties, or the members of quorum-state or .kafka_cleanshutdown; empty
    without the file."""
    return (
        {entry.values["name"]: entry.values["value"] for entry in read_entries(target, open_, broken)} if target else {}
    )


def topic_id(place: PartitionDirectory) -> str | None:
    """Return the topic ID in the partition.metadata of a directory; None without one."""
    return properties(place.text("partition.metadata")).get("topic_id")


def offsets(target: Target | None, broken: list[str] | None = None, problems: list[str] | None = None) -> Offsets:
    """Return the offsets of an offset checkpoint by topic and partition; empty without the file."""
    rows = (entry.values for entry in read_entries(target, broken=broken, problems=problems)) if target else ()
    return {(row["topic"], row["partition"]): row["offset"] for row in rows}
