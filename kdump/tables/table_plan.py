"""Plans what to read for a table, piece by piece, from names and sizes: no segment is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.cluster.partition_summary import SegmentSummary, segments_of
from kdump.cluster.transaction_coordinator import UNENDED, TransactionCoordinatorState
from kdump.io import file_system
from kdump.io.directory_listing import is_url, length
from kdump.log import file_kinds
from kdump.log.internal_topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles
from kdump.log.paths import PARTITION, Target
from kdump.tables.disk_identity import DiskIdentity
from kdump.tables.filters import PushedFilters
from kdump.tables.fleet import Fleet, FoundDirectory
from kdump.tables.read_options import ReadOptions, TaskItem, largest_first, packed
from kdump.tables.segment_split import SegmentSplit

COMPRESSED = (".gz", ".zst")


def parts_of(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> list[list[TaskItem]]:
    """Return the tasks for a table."""
    plan = PLANS[options.table.name]
    fleet = Fleet([directory for directory in fleet.found if filters.disk(directory.identity.broker)], fleet.unreadable)
    order = packed if options.table.splits else largest_first
    return list(order(plan(fleet, options, check, filters), options.split_bytes, options.parallelism))


def _partitions(directory: FoundDirectory) -> list[PartitionDirectory]:
    place = directory.place
    return (
        place.partitions
        if isinstance(place, LogDirectory)
        else [place]
        if isinstance(place, PartitionDirectory)
        else []
    )


def _state(place: PartitionDirectory) -> str:
    return place.state or "live"


def _state_of_file(target: Target) -> str | None:
    match = PARTITION.match(os.path.basename(os.path.dirname(target.path)))
    return (match["state"] or "live") if match else None


def _segments(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> Iterator[TaskItem]:
    """Yield slices of each partition's segments, in offset order, and of single files that are, or may be, segments."""
    for directory in fleet.found:
        for place in _partitions(directory):
            logs = [segment.log for segment in place.segments if segment.log is not None and filters.place(segment.log)]
            for target in _in_range(logs, filters):
                yield from _slices(target, directory, options, _state(place))
        single = directory.place
        if (
            isinstance(single, Target)
            and (single.kind is None or single.kind in file_kinds.BATCHES)
            and filters.place(single)
        ):
            yield from _slices(single, directory, options, _state_of_file(single))


def _of_topic(topic: str) -> Callable[..., Iterator[TaskItem]]:
    """Return a plan for the segments of one of Kafka's internal topics."""

    def plan(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> Iterator[TaskItem]:
        return _segments(fleet, options, check, PushedFilters(topics=frozenset({topic})))

    return plan


def _in_range(logs: list[Target], filters: PushedFilters) -> list[Target]:
    """Return the segments without those that are outside the offset range according to the file names."""
    offsets = filters.selection.offsets
    if offsets is None:
        return logs
    chosen = []
    for target, following in pairwise([*logs, None]):
        assert target is not None
        name, end = target.name_offset, following.name_offset if following is not None else None
        below = offsets.first is not None and end is not None and name is not None and name < end <= offsets.first
        if not below and not (offsets.last is not None and name is not None and name > offsets.last):
            chosen.append(target)
    return chosen


def _slices(target: Target, directory: FoundDirectory, options: ReadOptions, state: str | None) -> Iterator[TaskItem]:
    size = length(target.path) or 0
    step = options.split_bytes
    # Without an index, each slice requires reading from the beginning, which an object store would charge for. A bundle
    # has the batches of a segment in blocks, which are read in order.
    is_stored = file_system.tree_at(target.path) is not None
    is_unindexed = is_url(target.path) and not _has_index(target)
    whole = size <= step or target.path.endswith(COMPRESSED) or is_unindexed or is_stored
    if whole:
        yield TaskItem(SegmentSplit(target), directory.identity, size, state)
        return
    for start in range(0, size, step):
        stop = start + step
        yield TaskItem(
            SegmentSplit(target, start, stop if stop < size else None),
            directory.identity,
            min(step, size - start),
            state,
        )


def _has_index(target: Target) -> bool:
    return target.path.endswith(".log") and length(target.path.removesuffix(".log") + ".index") is not None


def _overview(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> Iterator[TaskItem]:
    """Yield one piece per segment: its facts, and whether its broker shut down cleanly."""
    for directory in fleet.found:
        clean = had_clean_shutdown(directory.place) if isinstance(directory.place, LogDirectory) else None
        for place in _partitions(directory):
            for facts in segments_of(place):
                assert facts.segment.log is not None
                if filters.place(facts.segment.log):
                    facts.size = length(facts.segment.log.path) or 0
                    ended = False if place.topic == METADATA_TOPIC else clean
                    yield TaskItem((facts, ended), directory.identity, facts.size // 8, _state(place))
        target = directory.place
        if isinstance(target, Target) and target.kind in (None, file_kinds.SEGMENT) and filters.place(target):
            facts = _alone(target)
            yield TaskItem((facts, None), directory.identity, facts.size // 8, _state_of_file(target))


def _alone(target: Target) -> SegmentSummary:
    return SegmentSummary(SegmentFiles("", target.name_offset or 0, target), length(target.path) or 0, (), True)


def _files(
    choose: Callable[[PartitionDirectory], list[Target]], root: bool, *own: file_kinds.FileKind
) -> Callable[..., Iterator[TaskItem]]:
    """Return a plan for small files of the kinds `own`: those that `choose` returns for a partition, those at the root
    of a log directory if `root` is set, and single files."""

    def plan(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> Iterator[TaskItem]:
        for directory in fleet.found:
            place = directory.place
            files: list[tuple[Target, str | None]] = []
            if root and isinstance(place, LogDirectory):
                files += [(target, None) for target in place.files.values() if target.kind in own]
            for each in _partitions(directory):
                files += [
                    (target, _state(each)) for target in choose(each) if filters.place(target) and target.kind in own
                ]
            if isinstance(place, Target) and place.kind in own and filters.place(place):
                files.append((place, _state_of_file(place)))
            for target, state in files:
                yield TaskItem(target, directory.identity, length(target.path) or 0, state)

    return plan


def _indexes(place: PartitionDirectory) -> list[Target]:
    return [target for segment in place.segments for target in segment.indexes.values()] + place.orphans


def _findings(fleet: Fleet, options: ReadOptions, check: Options, filters: PushedFilters) -> Iterator[TaskItem]:
    """Yield what `kdump verify` checks one after the other (the root of a log directory, a partition, a file), and the
    paths that could not be read."""
    whose = {directory.place.path: directory.identity for directory in fleet.found}
    for path, why in fleet.unreadable:
        yield TaskItem((path, why), DiskIdentity(), 0)
    for unit in units_of(check.disks(directory.place for directory in fleet.found), check):
        place = unit.partition
        source = place.source if place else unit.directory.path if unit.directory else unit.name
        if place is not None and not filters.place(Target(place.path, None, place.topic, place.partition)):
            continue
        yield TaskItem(slimmed(unit), whose[source], unit.size)


def slimmed(unit: CheckUnit) -> CheckUnit:
    """Reduce the unit's coordinator state to the open transactions of its partition: units are sent to tasks."""
    context = unit.known
    if isinstance(context.coordinator, TransactionCoordinatorState):
        mine = {
            name: transaction
            for name, transaction in context.coordinator.by_id.items()
            if transaction.state in UNENDED and context.partition in transaction.partitions.get(context.topic or "", ())
        }
        return replace(unit, known=replace(context, coordinator=replace(context.coordinator, by_id=mine, _open=None)))
    return unit


PLANS: dict[str, Callable[[Fleet, ReadOptions, Options, PushedFilters], Iterator[TaskItem]]] = {
    "segments": _overview,
    "batches": _segments,
    "records": _segments,
    "findings": _findings,
    "group_offsets": _of_topic(OFFSETS_TOPIC),
    "transactions": _of_topic(TRANSACTION_TOPIC),
    "metadata_records": _of_topic(METADATA_TOPIC),
    "index_entries": _files(_indexes, False, file_kinds.INDEX, file_kinds.TIME_INDEX, file_kinds.TXN_INDEX),
    "producer_states": _files(lambda place: place.snapshots, False, file_kinds.PRODUCER_SNAPSHOT),
    "checkpoints": _files(lambda place: place.texts, True, file_kinds.OFFSET_CHECKPOINT, file_kinds.EPOCH_CHECKPOINT),
}
