"""Plans one group of a scan's sources, in a task: lists the directories, compares the units with what earlier scans
have read, and writes the chunks that other tasks read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.unchanged import facts_of, file_stamp
from kdump.cluster.disks import Disks
from kdump.cluster.metadata_copies import Age
from kdump.io.mounted_paths import content_of
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.spark.delta_tables import LAYOUT
from kdump.spark.read_chunk import (
    Chunk,
    ChunkFile,
    ChunkResult,
    ScanSetup,
    SliceJob,
    put_chunk,
    read_chunk,
    resumed_job,
)
from kdump.spark.scan_sources import ScanSource, log_at, place_of
from kdump.spark.store import OWN, key_of
from kdump.spark.unit_read import UnitJob
from kdump.spark.units import ENTRY_MARK, LATE_MARK, PLANNED, Entry, entries
from kdump.tables.declarations import OF_TOPICS, RECORDS, SparkTable
from kdump.tables.disk_identity import DiskIdentity
from kdump.tables.filters import PushedFilters
from kdump.tables.fleet import Fleet, FoundDirectory
from kdump.tables.mounted_paths import mount_for_task
from kdump.tables.read_options import OPENING
from kdump.tables.segment_split import SegmentSplit
from kdump.tables.table_plan import parts_of, slimmed
from kdump.version import __version__

RUNS = f"{OWN}/runs"
UNIT, ROOT, REFUSED = "unit", "root", "refused"
"""Kinds of units, at the beginning of their keys; other keys are of slices, and begin with their table."""


@dataclass(frozen=True)
class GroupTask:
    """What a task plans: a group of sources, and the files with the entries of earlier scans. `number`: the number of
    the group; `chunks`: the number of chunks that keep all cores busy."""

    setup: ScanSetup
    key: str
    sources: tuple[ScanSource, ...]
    unreadable: tuple[tuple[str, str], ...]
    earlier: tuple[str, ...]
    number: int
    chunks: int


class GroupPlan(NamedTuple):
    """A plan: chunks to read, and what is already read: the roots of log directories. `dead`: name of the file with the
    owners of rows that no longer hold, if there are any; `kept`: number of units that are unchanged; `gone`: number of
    those that are no longer there; `metadata`: how new the metadata is in each log directory that has some with topics,
    by path."""

    chunks: list[ChunkFile]
    written: ChunkResult | None
    dead: str | None
    kept: int
    gone: int
    metadata: dict[str, Age]


def has_chunks(result: object) -> bool:
    """Return True for the plan of a group of which something has to be read."""
    return isinstance(result, GroupPlan) and bool(result.chunks)


def plan_group(task: GroupTask) -> GroupPlan:
    """Plan a group. Raises StoreError."""
    mount_for_task(source.path for source in task.sources)
    setup = task.setup
    earlier: dict[str, Entry] = {entry["key"]: entry for entry in entries(setup.store, task.earlier, PLANNED, task.key)}
    todo: list[UnitJob | SliceJob] = []
    dead: list[str] = []
    kept = 0
    fleet = Fleet([FoundDirectory(place_of(source), source.identity) for source in task.sources])
    disks = setup.check.disks(directory.place for directory in fleet.found)
    for job in _jobs(task, fleet, disks):
        before = earlier.pop(job.key, None)
        if before is not None and before["fingerprint"] == job.fingerprint:
            kept += isinstance(job, UnitJob)
            continue
        if before is not None:
            if isinstance(job, UnitJob):
                job = resumed_job(job, before, setup.check)
            dead += _dead(job.key, is_resumed=isinstance(job, UnitJob) and job.kept is not None)
        todo.append(job)
    _set_states(task, {job.key: job for job in todo if isinstance(job, UnitJob) and job.kept is not None})
    for key in earlier:
        dead += _dead(key, is_resumed=False)
    roots = [job for job in todo if _kind(job.key) == ROOT]
    written = read_chunk(setup, Chunk(task.key, roots), f"{setup.run}-{task.number}-root") if roots else None
    files = []
    for number, chunk in enumerate(_chunks(task, [job for job in todo if _kind(job.key) != ROOT])):
        name = f"{task.number}-{number}"
        files.append(put_chunk(setup.store, chunk, f"{RUNS}/{setup.run}/{name}", f"{setup.run}-{name}"))
    gone = sum(_kind(key) in (UNIT, ROOT) for key in earlier)
    return GroupPlan(files, written, put_dead(setup, str(task.number), dead), kept, gone, disks.copies.ages())


def _set_states(task: GroupTask, resumed: dict[str, UnitJob]) -> None:
    """Give the jobs the states with which they resume. Raises StoreError."""
    for entry in entries(task.setup.store, task.earlier if resumed else (), ["key", "group", "keptState"], task.key):
        if entry["key"] in resumed:
            resumed[entry["key"]].state = entry["keptState"]


def _dead(key: str, *, is_resumed: bool) -> list[str]:
    """Return the owners of the rows of a unit that no longer hold if it is read again or gone."""
    return [key + ENTRY_MARK, key + LATE_MARK, *([] if is_resumed else [key])]


def put_dead(setup: ScanSetup, name: str, owners: list[str]) -> str | None:
    """Write a file with the owners of rows that no longer hold, if there are any. Returns its name. Raises
    StoreError."""
    if not owners:
        return None
    name = f"{RUNS}/{setup.run}/dead-{name}"
    setup.store.write(name, "\n".join(owners).encode())
    return name


def _kind(key: str) -> str:
    return key.partition("-")[0]


def _jobs(task: GroupTask, fleet: Fleet, disks: Disks) -> Iterator[UnitJob | SliceJob]:
    """Yield a job for every unit of the group, for every path that could not be read, and with --records for every
    slice of a segment."""
    for path, why in task.unreadable:
        yield UnitJob(f"{REFUSED}-{key_of(path)}", (path, why), DiskIdentity(), key_of(why), task.setup.tables)
    whose = {directory.place.path: directory.identity for directory in fleet.found}
    for unit in units_of(disks, task.setup.check):
        place = unit.partition
        source = place.source if place else unit.directory.path if unit.directory else unit.name
        identity = whose[source]
        stamp = _root_fingerprint if unit.directory is not None else _fingerprint
        unit = slimmed(unit)
        key = f"{ROOT if unit.directory else UNIT}-{key_of(source, unit.name)}"
        yield UnitJob(key, unit, identity, stamp(unit, identity, task), task.setup.tables, unit.size)
    tables = [RECORDS] if task.setup.records else []
    yield from _slices(fleet, task, [*tables, *(OF_TOPICS[name] for name in task.setup.tables if name in OF_TOPICS)])


def _fingerprint(unit: CheckUnit, identity: DiskIdentity, task: GroupTask) -> str:
    """Return a fingerprint of what a unit's rows depend on."""
    return _print(task, identity, *facts_of(unit), content_of(unit.name))


def _root_fingerprint(unit: CheckUnit, identity: DiskIdentity, task: GroupTask) -> str:
    """Return the same for the root of a log directory: its files, the names of all that is in it, what its siblings
    have, and the metadata log."""
    directory = unit.directory
    assert directory is not None
    files = [*directory.files.values(), *directory.others]
    for place in directory.partitions:
        if place.topic == METADATA_TOPIC:
            files += place.files()
    stamps = sorted((target.path, *file_stamp(target)) for target in files)
    names = sorted((place.path, place.state, bool(place.file_names)) for place in directory.candidates)
    beside = (sorted(unit.siblings), sorted((target.path, path) for target, path in unit.duplicates))
    described = unit.metadata.end_offset if unit.metadata is not None else None
    theirs = sorted(place.name for path in unit.siblings for place in _partitions_at(path))
    return _print(task, identity, stamps, names, sorted(directory.unknown), beside, described, theirs)


def _partitions_at(path: str) -> list[PartitionDirectory]:
    from kdump.log.log_directory import directory_at

    place = directory_at(path)
    return place.partitions if isinstance(place, LogDirectory) else []


def _print(task: GroupTask, *about: object) -> str:
    options = (task.setup.check.limits, task.setup.check.transaction_timeout, task.setup.check.max_message_bytes)
    return key_of(LAYOUT, __version__, repr(options), repr(task.setup.tables), *map(repr, about))


def _slices(fleet: Fleet, task: GroupTask, tables: list[SparkTable]) -> Iterator[SliceJob]:
    """Yield a job for every slice of every segment that has rows in these tables. The rows of a segment that has not
    been written to are kept. Of Kafka's own topics, only one replica is decoded."""
    decoded = Fleet(
        [
            FoundDirectory(partition(log_at(source, name), source.above), source.identity)
            for source in task.sources
            for name in source.decodes
        ]
    )
    for table in tables:
        options = replace(task.setup.reading, table=table, parallelism=1)
        for part in parts_of(fleet if table is RECORDS else decoded, options, task.setup.check, PushedFilters()):
            for piece in part:
                own: SegmentSplit = piece.input
                seen = (own.target.path, *file_stamp(own.target), content_of(own.target.path))
                about = (options.limits, piece.identity, own.target.topic, seen, own[1:])
                key = f"{table.name}-{key_of(own.target.source, own.target.path, str(own.start))}"
                print_ = key_of(LAYOUT, __version__, *map(repr, about))
                yield SliceJob(key, table.name, piece, print_)


def _chunks(task: GroupTask, jobs: list[UnitJob | SliceJob]) -> list[Chunk]:
    """Divide the jobs among tasks: the largest first and by themselves, small ones together."""
    ordered = sorted(jobs, key=lambda job: -job.size)
    total = sum(max(job.size, OPENING) for job in ordered)
    limit = max(task.setup.reading.split_bytes, total // max(1, task.chunks) + 1)
    chunks: list[Chunk] = []
    size = limit
    for job in ordered:
        counts = max(job.size, OPENING)
        if size + counts > limit:
            chunks.append(Chunk(task.key))
            size = 0
        chunks[-1].jobs.append(job)
        size += counts
    return chunks
