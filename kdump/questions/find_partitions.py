"""Turns paths into the partitions of a query, each with what is known from the files around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from kdump.answer import Note
from kdump.check.engine.second_look import Looking
from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.cluster.disks import Disks
from kdump.io import file_system
from kdump.io.command_line_paths import missing, no_kafka_files
from kdump.io.errors import SourceError, went_away
from kdump.io.fault_tolerant import careful_source
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import FileKind
from kdump.log.internal_topics import METADATA_TOPIC, TRANSACTION_TOPIC
from kdump.log.partition_directory import NO_SEGMENT, PartitionDirectory, SegmentFiles, current, one_file, partition
from kdump.log.paths import Target
from kdump.state.releases import Difference

NO_TRANSACTIONS = (METADATA_TOPIC, TRANSACTION_TOPIC)
"""Kafka writes to these without producer IDs."""


@dataclass
class PartitionInput:
    """A partition, or some of its segments. `size`: bytes of the segments; `is_part`: some segments of the partition
    are not selected."""

    partition: PartitionDirectory
    known: PartitionContext
    options: Options
    size: int
    is_part: bool = False
    was_named: bool = False
    """Whether the path was this partition or a segment in it, and not a directory above."""
    unit: CheckUnit | None = None
    """The check unit of the partition; None for some segments of a partition."""

    def now(self) -> tuple[PartitionInput, Looking | None]:
        """Return the partition as it is when its turn comes, and the Looking that decides which findings hold while a
        broker is running; None for segments that were given as paths."""
        if self.unit is None:
            return self, None
        every = replace(
            self.options, only=frozenset(), headers_only=False
        )  # all: callers use rules of several families
        here = current(self.partition)
        looking = Looking(replace(self.unit, options=every, partition=here))
        options = replace(self.options, open_source=looking.opener)
        return replace(self, partition=here, options=options), looking


def find_partitions(
    paths: Iterable[str], options: Options, *, everything: bool = False
) -> tuple[list[PartitionInput], Disks]:
    """Return the partitions that `paths` stand for, and the log directories among them; partitions that are not live
    only if given as a path. `options.unreadable` is called for what has no batches, or nothing of Kafka's.
    `everything`: also include partitions without transactions and those that are not live; the metadata log still has
    to be given as a path."""
    options = replace(options, open_source=careful_source)
    named = tuple(paths)
    disks = options.disks_at(named)
    units = units_of(disks, options)
    return partitions_of(units, named, options, everything=everything), disks


def partitions_of(
    found_units: Iterable[CheckUnit], named: Sequence[str], options: Options, *, everything: bool = False
) -> list[PartitionInput]:
    """Return the partitions of the check units of the paths `named`."""
    inputs: list[PartitionInput] = []
    files: dict[str, list[CheckUnit]] = {}
    for unit in found_units:
        place = unit.partition
        if place is not None:
            was_named = place.path in named
            is_selected = not place.state and place.topic not in NO_TRANSACTIONS
            is_selected = is_selected or (everything and place.topic != METADATA_TOPIC)
            for problem in place.listing_errors:
                options.unreadable(SourceError(problem))
            if place.segments and (is_selected or was_named):
                inputs.append(PartitionInput(place, unit.known, options, unit.size, was_named=was_named, unit=unit))
            elif not place.segments and was_named:
                options.unreadable(no_kafka_files(place.path, f"{place.path}: {NO_SEGMENT}"))
        elif unit.target is not None:
            target = unit.target
            key = target.path if _is_alone(target) else os.path.dirname(os.path.abspath(target.path))
            files.setdefault(key, []).append(unit)
    for here in files.values():
        inputs.extend(_of_files(here, options))
    return inputs


def of_topics(places: Iterable[PartitionInput], is_selected: Callable[[str], bool]) -> list[PartitionInput]:
    """Return the partitions of the selected topics, and those whose topic is not known."""
    return [place for place in places if place.known.topic is None or is_selected(place.known.topic)]


def is_away(place: PartitionInput) -> bool:
    """Return True if nothing is left of a partition when its turn comes, which its options are told."""
    if place.partition.segments:
        return False
    for problem in place.partition.listing_errors or [went_away(place.partition.path)]:
        place.options.unreadable(SourceError(problem))
    return True


def _is_alone(target: Target) -> bool:
    return target.path == "-" or "://" in target.path


def _kind(target: Target, options: Options) -> FileKind:
    """Return the kind of a file, by name or content; a stream is assumed to be a segment. Raises SourceError."""
    if _is_alone(target):
        return file_kinds.SEGMENT
    if not file_system.exists(target.path):
        raise missing(target.path)
    if not file_system.isfile(target.path) or target.kind is not None:
        return target.kind or file_kinds.SEGMENT
    with closing(options.open(target).source) as source:
        return by_content(Window(source))


def _of_files(here: list[CheckUnit], options: Options) -> Iterable[PartitionInput]:
    """Yield partitions for some segments of one directory, with the indexes and snapshots next to them."""
    requested: dict[str, Target] = {}
    for unit in here:
        target = unit.target
        assert target is not None
        try:
            kind = _kind(target, options)
        except SourceError as error:
            options.unreadable(error)
            continue
        if kind is not file_kinds.SEGMENT:
            options.unreadable(SourceError.at(target.path, f"{kind.title}, not a segment; kdump inspect shows it"))
        elif _is_alone(target) or target.kind is None:
            alone = one_file(target, SegmentFiles("", target.name_offset or 0, target))
            yield PartitionInput(alone, unit.known, options, unit.size, is_part=True, was_named=True)
        else:
            requested[os.path.basename(target.path)] = target
    if not requested:
        return
    whole = partition(os.path.dirname(next(iter(requested.values())).path) or ".")
    kept = []
    for segment in whole.segments:
        assert segment.log is not None
        target = requested.pop(os.path.basename(segment.log.path), None)
        if target is not None:
            kept.append(segment.with_log(target))
    kept += [
        SegmentFiles("", target.name_offset or 0, target) for target in requested.values()
    ]  # .deleted, .swap, .cleaned
    is_part = len(kept) < len(whole.segments)
    newest = whole.segments[-1] if whole.segments else None
    context = here[0].known
    last = newest is None or kept[-1].name == newest.name
    path = kept[0].log.path if len(kept) == 1 and kept[0].log else whole.path
    yield PartitionInput(
        whole.with_segments(kept, path),
        replace(context, last=last),
        options,
        sum(unit.size for unit in here),
        is_part,
        True,
    )


def release_doubts(places: Iterable[PartitionInput], rules: tuple[Difference, ...]) -> Iterator[Note]:
    """Yield a note for each log directory on which several releases are possible that differ in one of `rules`."""
    reported: set[tuple[str, str]] = set()
    for place in places:
        applied, source = place.known.release, place.partition.source
        if not applied.doubt or not any(rule.is_open(applied) for rule in rules):
            continue
        doubt = f"the rules of Kafka {applied.release} are applied, but {applied.doubt} (--kafka-version)"
        if (source, doubt) not in reported:
            reported.add((source, doubt))
            yield Note(source, doubt)
