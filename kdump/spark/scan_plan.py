"""Plans one group of a scan's sources, in a task: lists the directories, compares the units with what earlier scans
have read, and writes the chunks that other tasks read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.cluster.disks import Disks
from kdump.cluster.metadata import Age
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.spark.bundles import content_of, mount_for_task
from kdump.spark.disk_identity import DiskIdentity
from kdump.spark.file_stamps import file_stamp
from kdump.spark.filters import PushedFilters
from kdump.spark.fleet import Fleet, FoundDirectory
from kdump.spark.merged_files import SMALL
from kdump.spark.packs import LAYOUT, PLANNED, Pack, entries
from kdump.spark.read_chunk import Chunk, ChunkFile, ChunkResult, SliceJob, put_chunk, read_chunk, resumed_job
from kdump.spark.read_task import OPENING
from kdump.spark.scan_setup import ScanSetup
from kdump.spark.scan_sources import ScanSource, log_at, place_of
from kdump.spark.segment_split import SegmentSplit
from kdump.spark.store import OWN, Store, StoreError, key_of
from kdump.spark.table_plan import parts_of, slimmed
from kdump.spark.tables import OF_TOPICS, RECORDS, SparkTable
from kdump.spark.unit_read import UnitJob
from kdump.version import __version__

COPIED = 1024 * 1024 * 1024
"""Bytes of packs that one task copies."""
RUNS = f"{OWN}/runs"
UNIT, ROOT, REFUSED = "unit", "root", "refused"
"""Kinds of units, at the beginning of their keys; other keys are of slices, and begin with their table."""


@dataclass(frozen=True)
class GroupTask:
    """The input of a task that plans: a group of sources, and the packs with their units. `number`: the number of the
    group; `chunks`: the number of chunks that keep all cores busy."""

    setup: ScanSetup
    key: str
    sources: tuple[ScanSource, ...]
    unreadable: tuple[tuple[str, str], ...]
    packs: tuple[Pack, ...]
    number: int
    chunks: int


class GroupPlan(NamedTuple):
    """A plan: chunks to read, packs that stay as they are, and a pack that is already written, with the roots of log
    directories. `kept`: number of units that are unchanged; `gone`: number of those that are no longer there;
    `metadata`: how new the metadata is in each log directory that has some with topics, by path."""

    chunks: list[ChunkFile]
    packs: list[Pack]
    written: ChunkResult | None
    kept: int
    gone: int
    metadata: dict[str, Age]


Entry = dict[str, Any]


class _Earlier:
    """What earlier scans have of the units: the packs with an entry of each, and their keys. `skip_damaged`: leave out
    packs that cannot be read, instead of raising StoreError."""

    def __init__(self, store: Store, packs: Iterable[Pack], *, skip_damaged: bool = False) -> None:
        self.packs = {pack.stem: pack for pack in packs}
        self.entries: dict[str, list[tuple[Pack, Entry]]] = {}
        self.keys: dict[str, set[str]] = {}
        for pack in self.packs.values():
            try:
                found = entries(store, pack, PLANNED)
            except StoreError:
                if not skip_damaged:
                    raise
                continue
            for entry in found:
                self.entries.setdefault(entry["key"], []).append((pack, entry))
                self.keys.setdefault(pack.stem, set()).add(entry["key"])

    def valid(self, job: UnitJob | SliceJob) -> Pack | None:
        """Return the newest pack with the unit as it is now."""
        if not job.fingerprint:
            return None
        of_unit = reversed(self.entries.get(job.key, ()))
        return next((pack for pack, entry in of_unit if entry["fingerprint"] == job.fingerprint), None)

    def resumed(self, job: UnitJob, options: Options) -> UnitJob:
        """Return the job, resumed from what an earlier scan has kept of the unit if that is still valid."""
        for pack, entry in reversed(self.entries.get(job.key, ())):
            found = resumed_job(job, entry, pack, options)
            if found is not job:
                return found
        return job


def plan_group(task: GroupTask) -> GroupPlan:
    """Plan a group. Raises StoreError."""
    task.setup.limits.apply()
    mount_for_task(source.path for source in task.sources)
    setup = task.setup
    earlier = _Earlier(setup.store, task.packs, skip_damaged=setup.from_scratch)
    usable = _Earlier(setup.store, ()) if task.setup.from_scratch else earlier
    chosen: dict[str, list[str]] = {}
    todo: list[UnitJob | SliceJob] = []
    found: set[str] = set()
    kept = 0
    fleet = Fleet([FoundDirectory(place_of(source), source.identity) for source in task.sources])
    disks = setup.check.disks(found.place for found in fleet.found)
    for job in _jobs(task, fleet, disks):
        found.add(job.key)
        pack = usable.valid(job)
        if pack is not None:
            chosen.setdefault(pack.stem, []).append(job.key)
            kept += isinstance(job, UnitJob)
        else:
            todo.append(usable.resumed(job, task.setup.check) if isinstance(job, UnitJob) else job)
    gone = sum(_kind(key) in (UNIT, ROOT) for key in earlier.entries.keys() - found)
    whole = [pack for pack in task.packs if earlier.keys.get(pack.stem, {""}) == {*chosen.get(pack.stem, ())}]
    if task.setup.compact:
        small = [pack for pack in whole if pack.bytes < SMALL]
        whole = [pack for pack in whole if pack not in small or len(small) == 1]
    stay = {pack.stem for pack in whole}
    copies = {stem: keys for stem, keys in chosen.items() if stem not in stay}
    roots = [job for job in todo if _kind(job.key) == ROOT]
    written = None
    if roots:
        chunk = Chunk(task.key, roots, packs=earlier.packs)
        written = read_chunk(setup, chunk, f"{setup.run}-{task.number}-root")
    chunks = _chunks(task, [job for job in todo if _kind(job.key) != ROOT], copies, earlier.packs)
    names = [f"{task.number}-{number}" for number in range(len(chunks))]
    files = [
        put_chunk(setup.store, chunk, f"{RUNS}/{setup.run}/{name}", f"{setup.run}-{name}")
        for name, chunk in zip(names, chunks)
    ]
    return GroupPlan(files, whole, written, kept, gone, disks.copies.ages())


def _kind(key: str) -> str:
    return key.partition("-")[0]


def _jobs(task: GroupTask, fleet: Fleet, disks: Disks) -> Iterator[UnitJob | SliceJob]:
    """Yield a job for every unit of the group, for every path that could not be read, and with --records for every
    slice of a segment."""
    for path, text in task.unreadable:
        yield UnitJob(f"{REFUSED}-{key_of(path)}", (path, text), DiskIdentity(), key_of(text), task.setup.tables)
    whose = {found.place.path: found.identity for found in fleet.found}
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
    """Return a fingerprint of what a unit's rows depend on: its files, by size and modification time, and what other
    files record about them."""
    files = list(unit.partition.files()) if unit.partition else [unit.target] if unit.target else []
    stamps = sorted((target.path, *file_stamp(target)) for target in files)
    return _print(task, identity, replace(unit.known, now=0), stamps, content_of(unit.name))


def _root_fingerprint(unit: CheckUnit, identity: DiskIdentity, task: GroupTask) -> str:
    """Return the same for the root of a log directory: its files, the names of all that is in it, what its siblings
    have, and the metadata log."""
    directory = unit.directory
    assert directory is not None
    files = [*directory.files.values(), *directory.others]
    for each in directory.partitions:
        if each.topic == METADATA_TOPIC:
            files += each.files()
    stamps = sorted((target.path, *file_stamp(target)) for target in files)
    names = sorted((each.path, each.state, bool(each.file_names)) for each in directory.candidates)
    beside = (sorted(unit.siblings), sorted((target.path, path) for target, path in unit.duplicates))
    described = unit.metadata.end_offset if unit.metadata is not None else None
    theirs = sorted(each.name for path in unit.siblings for each in _partitions_at(path))
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
            for piece in part.pieces:
                own: SegmentSplit = piece.input
                seen = (own.target.path, *file_stamp(own.target), content_of(own.target.path))
                about = (options.limits, piece.identity, own.target.topic, seen, own[1:])
                key = f"{table.name}-{key_of(own.target.source, own.target.path, str(own.start))}"
                print_ = key_of(LAYOUT, __version__, *map(repr, about))
                yield SliceJob(key, table.name, piece.identity, own, piece.state, piece.size, print_)


def _chunks(
    task: GroupTask, jobs: list[UnitJob | SliceJob], copies: dict[str, list[str]], packs: dict[str, Pack]
) -> list[Chunk]:
    """Divide the jobs among tasks: the largest first and by themselves, small ones together."""
    ordered = sorted(jobs, key=lambda job: -job.size)
    total = sum(max(job.size, OPENING) for job in ordered)
    limit = max(task.setup.reading.split_bytes, total // max(1, task.chunks) + 1)
    found: list[Chunk] = []
    size = limit
    for job in ordered:
        counts = max(job.size, OPENING)
        if size + counts > limit:
            found.append(Chunk(task.key))
            size = 0
        found[-1].jobs.append(job)
        size += counts
    copied = sum(packs[stem].bytes for stem in copies)
    while copies and len(found) * COPIED <= copied:
        found.append(Chunk(task.key))
    for number, (stem, keys) in enumerate(sorted(copies.items())):
        found[number % len(found)].copies[stem] = keys
    for chunk in found:
        referred = {job.kept_in for job in chunk.jobs if isinstance(job, UnitJob)} | chunk.copies.keys()
        chunk.packs = {stem: packs[stem] for stem in referred if stem is not None}
    return [chunk for chunk in found if chunk.jobs or chunk.copies]
