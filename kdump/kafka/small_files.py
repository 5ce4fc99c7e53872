"""Reads the small files on a broker's disk, checkpoints and properties, next to a running broker; and the offset
checkpoints of a log directory, as a broker reads them."""

from __future__ import annotations

__lazy_modules__ = {"kdump.kafka", "kdump.kafka.checkpoint_file"}

import os
from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple

from kdump.answer import Unknown
from kdump.format import known_releases
from kdump.format.numbers import parse_long
from kdump.format.text_files import TextLine
from kdump.io import file_system
from kdump.io.errors import SourceError, is_gone
from kdump.kafka import checkpoint_file
from kdump.kafka.checkpoint_file import BadLine, Offsets, read_checkpoint
from kdump.log import file_kinds
from kdump.log.file_kinds import CLEAN_MARK, FileKind
from kdump.log.live_files import Open, Opener, open_window, read_stable
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, applied_checkpoints
from kdump.log.paths import Target
from kdump.log.paths import target as as_target
from kdump.state.unknown_offsets import DAMAGED, UNREADABLE, CheckpointFiles, no_file

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


def properties(target: Target | None, broken: list[str] | None = None, *, open_: Open = open_window) -> dict[str, str]:
    """Return the name=value lines of meta.properties, or the members of quorum-state or .kafka_cleanshutdown, that can
    be read; empty without the file. If it cannot be read or has invalid lines, its name is added to `broken`; `kdump
    verify` reports why."""
    if target is None:
        return {}
    values, is_valid = read_stable(target.path, lambda: _read(target, open_), lambda found: found[1])
    if not is_valid and broken is not None:
        broken.append(os.path.basename(target.path))
    return values


def clean_broker_epoch(directory: str) -> int | None:
    """Return the broker epoch in the .kafka_cleanshutdown of a log directory; None without one, as before Kafka 3.7."""
    path = os.path.join(directory, CLEAN_MARK)
    return parse_long(properties(as_target(path)).get("brokerEpoch")) if file_system.isfile(path) else None


def _read(target: Target, open_: Open) -> tuple[dict[str, str], bool]:
    """Return the properties that can be read, and whether the whole file is valid, or went away."""
    values: dict[str, str] = {}
    if target.kind is None:
        return values, False
    from kdump.log.entries import Entry, entries  # ls of partitions starts without

    is_valid = True
    try:
        window = open_(target)
        with closing(window.source):
            for item in entries(target.kind, window, 0):
                is_valid &= isinstance(item, Entry)
                if isinstance(item, Entry) and item.type:
                    values[item.values["name"]] = item.values["value"]
    except SourceError as error:
        return values, is_gone(str(error))
    return values, is_valid


def topic_id(place: PartitionDirectory) -> str | None:
    """Return the topic ID that a broker reads in the partition.metadata of a directory; None if it reads none."""
    try:
        return checkpoint_file.topic_id(os.path.join(place.path, "partition.metadata"))
    except (BadLine, SourceError):
        return None


def offset_lines(target: Target, opener: Opener | None = None) -> tuple[list[TextLine], Unknown | None]:
    """Return the entries of an offset checkpoint; none, and why, if a broker cannot read it, because it then uses
    nothing of it."""
    try:
        checkpoint = read_checkpoint(target.path, opener=opener)
    except SourceError as error:
        return [], Unknown("", UNREADABLE, str(error), target.path)
    if checkpoint.error is not None:
        return [], Unknown("", DAMAGED, f"a broker does not read the file: {checkpoint.error}", target.path)
    return checkpoint.entries, None


def offsets(target: Target | None) -> tuple[Offsets, Unknown | None]:
    """Return the offsets of an offset checkpoint by topic and partition; none, and why, as `offset_lines`; none without
    the file."""
    lines, unknown = ([], None) if target is None else offset_lines(target)
    return {(line.values["topic"], line.values["partition"]): line.values["offset"] for line in lines}, unknown


WRITTEN = ("log-start-offset", "replication-offset", "recovery-point-offset")
"""Those that every broker writes; cleaner-offset exists only where something was compacted."""


class CheckpointOffset(NamedTuple):
    """Offset of a partition in the checkpoint file `target`, and position and size of its line in bytes."""

    offset: int
    target: Target
    position: int
    size: int


class OffsetCheckpoints(dict[str, dict[tuple[str, int], CheckpointOffset]]):
    """Offsets by the file's name without '-checkpoint', then by topic and partition."""

    def __init__(self, directory: LogDirectory, opener: Opener | None = None) -> None:
        super().__init__()
        self.unread: dict[str, Unknown] = {name: no_file(directory.path, name) for name in WRITTEN}
        self.files = CheckpointFiles(directory.path, self.unread)
        for file_name, target in directory.files.items():
            if target.kind is not file_kinds.OFFSET_CHECKPOINT:
                continue
            name = file_name.removesuffix("-checkpoint")
            lines, unknown = offset_lines(target, opener)
            self.unread.pop(name, None)
            self.unread |= {} if unknown is None else {name: unknown}
            self[name] = {
                (line.values["topic"], line.values["partition"]): CheckpointOffset(
                    line.values["offset"], target, line.position, line.size
                )
                for line in lines
            }

    def of(self, place: PartitionDirectory) -> Mapping[str, CheckpointOffset]:
        """Return those of a partition's offsets that apply to its directory, by the name of the file."""
        key = place.topic, place.partition
        return applied_checkpoints(place.state, {name: of[key] for name, of in self.items() if key in of})
