"""Finds the segments whose indexes are rebuilt, with what is known about their partitions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kdump.check.engine.units import units
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.log_segment import first_unflushed
from kdump.log.file_kinds import INDEXES, SEGMENT, FileKind
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import log_directory_above
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, current, partition
from kdump.log.paths import Target, target


@dataclass
class ReindexInput:
    """One partition and the segments of it to reindex: those in `named`, or all. `directory`: the log directory that
    contains the partition, if any."""

    partition: PartitionDirectory
    known: PartitionContext
    named: list[SegmentFiles] | None
    directory: str | None

    @property
    def selected_segments(self) -> list[SegmentFiles]:
        return self.partition.segments if self.named is None else self.named


def find_segments(paths: Iterable[str], options: Options) -> list[ReindexInput]:
    """Return the partitions at `paths`, in order. Calls `options.unreadable` for paths that are not segments, or not
    readable."""
    inputs: list[ReindexInput] = []
    files: dict[str, ReindexInput] = {}
    for unit in units(tuple(paths), options):
        place, target = unit.partition, unit.target
        if place is not None:
            for problem in place.listing_errors:
                options.unreadable(SourceError(problem))
            if place.segments:
                inputs.append(_asked(place, unit.known, None))
        elif target is not None:
            segment = _segment(target, options)
            folder = os.path.dirname(target.path) or "."
            if segment is not None and folder not in files:
                files[folder] = _asked(partition(folder), unit.known, [])
                inputs.append(files[folder])
            if segment is not None:
                here = files[folder]
                assert here.named is not None
                here.named.append(segment)
    for here in files.values():
        _use_given_paths(here)
    return inputs


def now(place: ReindexInput) -> ReindexInput:
    """The partition at its turn: listed again if its directory has changed since, unless segments were named."""
    here = current(place.partition)
    return place if here is place.partition or place.named is not None else replace(place, partition=here)


def _use_given_paths(made: ReindexInput) -> None:
    """Put the segments that were given as paths in the place of those of the directory."""
    assert made.named is not None
    given = {os.path.basename(segment.log.path): segment.log for segment in made.named if segment.log is not None}
    segments = []
    for segment in made.partition.segments:
        file = given.get(os.path.basename(segment.log.path)) if segment.log is not None else None
        segments.append(segment if file is None else segment.with_log(file))
    live = {os.path.basename(segment.log.path): segment for segment in segments if segment.log is not None}
    made.named = [live.get(os.path.basename(segment.log.path), segment) for segment in made.named if segment.log]
    made.partition = made.partition.with_segments(segments)


def _segment(target: Target, run: Run) -> SegmentFiles | None:
    """Return a file given by the user as a segment; if it is not one, tell `options.unreadable` and return None."""
    if target.path == "-" or "://" in target.path:
        run.unreadable(
            SourceError(
                f"{target.path}: the base offset comes from the segment's name; "
                "copy the segment to a file with that name"
            )
        )
    elif not file_system.exists(target.path):
        run.unreadable(missing(target.path))
    elif target.kind is None or (target.name_offset is None and target.kind is SEGMENT):
        run.unreadable(
            SourceError(f"{target.path}: not named like a segment (<20 digits>.log), whose name states its base offset")
        )
    elif target.kind is not SEGMENT:
        run.unreadable(
            SourceError(f"{target.path}: {target.kind.title}, not a segment; pass the .log in the same directory")
        )
    else:
        return SegmentFiles("", target.name_offset or 0, target, _adjacent_indexes(target))
    return None


def _adjacent_indexes(segment: Target) -> dict[FileKind, Target]:
    """Return the indexes of a segment file. If it is not live, their names have the same suffix (.deleted, .swap)."""
    stem, _, ending = segment.path.rpartition(".log")
    paths = {kind: f"{stem}.{kind.name}{ending}" for kind in INDEXES}
    return {kind: target(path, source=segment.source) for kind, path in paths.items() if file_system.isfile(path)}


def _asked(place: PartitionDirectory, known: PartitionContext, named: list[SegmentFiles] | None) -> ReindexInput:
    directory = log_directory_above(place.path)
    return ReindexInput(place, known, named, directory.path if directory is not None else None)


def is_last(made: ReindexInput, segment: SegmentFiles) -> bool:
    """Return True if no segment of the partition follows."""
    return not made.partition.segments or segment.offset >= made.partition.segments[-1].offset


def is_unflushed(made: ReindexInput, segment: SegmentFiles) -> bool:
    """Return True if a startup recovers a segment because it may not be flushed: after an unclean shutdown, one that
    does not end below the recovery point; of the metadata log, every time."""
    context = made.known
    if context.topic == METADATA_TOPIC:
        return True
    point = context.checkpoints.get("recovery-point-offset")
    bases = [segment.offset for segment in made.partition.segments]
    first = bases[first_unflushed(bases, 0 if point is None else point.offset)] if bases else 0
    return context.clean is False and segment.offset >= first
