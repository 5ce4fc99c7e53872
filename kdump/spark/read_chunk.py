"""The task of a scan: reads one chunk of the plan, units and slices of segments, and writes a pack."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kdump.check.options import Options
from kdump.check.resume_state import StateError
from kdump.log.directory_listing import length
from kdump.log.errors import SourceError
from kdump.log.partition_directory import PartitionDirectory
from kdump.render.escape import path_text
from kdump.spark.arrow import arrow_schema
from kdump.spark.bundles import mount_for_task
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.disk_identity import DiskIdentity
from kdump.spark.pack_writer import ChunkWriter, KeptRows
from kdump.spark.packs import ENDING, UNITS, Pack, all_packs, entries
from kdump.spark.read_task import TaskItem
from kdump.spark.resume_point import is_unchanged, parse_resume_point
from kdump.spark.scan_setup import ScanSetup
from kdump.spark.segment_split import SegmentSplit, opened
from kdump.spark.store import Store, StoreError
from kdump.spark.table_read import READERS, TableRead
from kdump.spark.tables import TABLES
from kdump.spark.unit_read import UnitJob, UnitRead


@dataclass
class SliceJob:
    """A slice of a segment whose rows in `table` are to be written."""

    key: str
    table: str
    identity: DiskIdentity
    slice: SegmentSplit
    state: str | None
    size: int
    fingerprint: str


@dataclass
class Chunk:
    """What one task does: the jobs, and the units to copy from packs whose other units have changed, by the stem of the
    pack. `packs`: all packs of earlier scans that the chunk refers to, by their stems."""

    group: str
    jobs: list[UnitJob | SliceJob] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    packs: dict[str, Pack] = field(default_factory=dict)


class ChunkFile(NamedTuple):
    """A chunk that was planned: the file with it, the digest of the file, and the bytes to read."""

    name: str
    digest: str
    stem: str
    size: int


class ChunkTask(NamedTuple):
    """The input of a task."""

    setup: ScanSetup
    chunk: ChunkFile


class ChunkResult(NamedTuple):
    """The pack that a task has written, and how many units it has read: all, and those that it resumed."""

    pack: Pack
    read: int
    continued: int


def put_chunk(store: Store, chunk: Chunk, name: str, stem: str) -> ChunkFile:
    """Write a chunk for the task that will read it. Raises StoreError."""
    data = pickle.dumps(chunk)
    store.write(name, data)
    return ChunkFile(name, hashlib.sha256(data).hexdigest(), stem, sum(job.size for job in chunk.jobs))


def read_chunk_file(task: ChunkTask) -> ChunkResult:
    """Run a task. Raises StoreError."""
    task.setup.limits.apply()
    store = task.setup.store
    data = store.read(task.chunk.name)
    if data is None or hashlib.sha256(data).hexdigest() != task.chunk.digest:
        raise StoreError(f"{store.path(task.chunk.name)}: missing or changed while the scan ran; run it again")
    chunk: Chunk = pickle.loads(data)
    mount_for_task(_path(job) for job in chunk.jobs)
    return read_chunk(task.setup, chunk, task.chunk.stem)


def _path(job: UnitJob | SliceJob) -> str:
    if isinstance(job, SliceJob):
        return job.slice.target.path
    return job.unit[0] if isinstance(job.unit, tuple) else job.unit.name


def read_chunk(setup: ScanSetup, chunk: Chunk, stem: str) -> ChunkResult:
    """Read the units of a chunk and write a pack. Raises StoreError."""
    store = setup.store
    before = _of_earlier_attempt(store, chunk, stem, setup.check)
    writer = ChunkWriter(store, stem, chunk.group)
    result = [0, 0]
    try:
        for name, keys in chunk.copies.items():
            writer.pack.copy_units(chunk.packs[name], keys)
        if before is not None:
            writer.pack.copy_units(before[0], before[1])
        kept = _kept(store, chunk)
        for job in chunk.jobs:
            writer.pack.begin()
            if isinstance(job, SliceJob):
                _slice(writer, job, setup.reading)
            else:
                result[0] += 1
                result[1] += _unit(writer, job, kept.get(job.key))
            if writer.is_due:
                writer.save()
        pack = writer.pack.finish()
    except BaseException as error:
        writer.pack.abandon(error)
        raise
    return ChunkResult(pack, *result)


def _unit(writer: ChunkWriter, job: UnitJob, old: KeptRows | None) -> bool:
    """Read a unit. Returns whether the read resumed where an earlier one ended."""
    read = UnitRead(job, writer, old)
    try:
        entry = read.run()
    except StateError:  # the kept state is unusable: start from the first segment
        read = UnitRead(job, writer)
        entry = read.run()
    writer.pack.end(entry, read.prefix)
    return read.first > 0


def _slice(writer: ChunkWriter, job: SliceJob, reading: ReadOptions) -> None:
    """Write the rows of a slice. Skips unreadable bytes, which are findings."""
    options = replace(reading, table=TABLES[job.table])
    target = job.slice.target
    schema = arrow_schema(options.table)
    table = TableRead(options)
    reader = READERS[job.table](options, table.selection, schema)
    common = table.common(TaskItem(job.slice, job.identity, job.size, job.state), target)
    try:
        window = opened(target, options.window)
    except SourceError:
        window = None
    if window is not None:
        try:
            for batch in reader.read(job.slice, window, common):
                writer.pack.put(job.table, [batch])
        except SourceError:
            pass
        finally:
            window.source.close()
        for batch in reader.rest():
            writer.pack.put(job.table, [batch])
    writer.count(job.size)
    entry = {"key": job.key, "unit": path_text(target.path), "fingerprint": job.fingerprint, **vars(job.identity)}
    writer.pack.end(entry)


def _kept(store: Store, chunk: Chunk) -> dict[str, KeptRows]:
    """Return what earlier scans have kept of the units of the chunk."""
    wanted = {job.key: job.kept_in for job in chunk.jobs if isinstance(job, UnitJob) and job.kept_in is not None}
    found = {}
    for stem in sorted({*wanted.values()}):
        pack = chunk.packs[stem]
        for entry in entries(store, pack, ["key", "rows", "keptState"]):
            if wanted.get(entry["key"]) == stem:
                ranges = {each["table"]: (each["start"], each["kept"]) for each in entry["rows"]}
                found[entry["key"]] = KeptRows(pack, ranges, entry["keptState"])
    return found


def _of_earlier_attempt(store: Store, chunk: Chunk, stem: str, options: Options) -> tuple[Pack, list[str]] | None:
    """Return what an earlier attempt of this task has saved, with the keys of its units that need not be read again.
    Removes their jobs from the chunk, and resumes the one that it was reading."""
    if not any(name.startswith(f"{stem}-") and name.endswith(ENDING) for name in store.list(UNITS)):
        return None
    packs = [pack for pack in all_packs(store) if pack.stem.startswith(f"{stem}-")]
    if not packs:
        return None
    pack = max(packs, key=lambda each: each.bytes)
    jobs = {job.key: job for job in chunk.jobs}
    done = []
    for entry in entries(store, pack, ["key", "fingerprint", "kept"]):
        job = jobs.get(entry["key"])
        if job is not None and entry["fingerprint"] and entry["fingerprint"] == job.fingerprint:
            done.append(entry["key"])
            del jobs[entry["key"]]
        elif isinstance(job, UnitJob):
            jobs[job.key] = resumed_job(job, entry, pack, options)
    chunk.packs[pack.stem] = pack
    chunk.jobs = list(jobs.values())
    return pack, done


def resumed_job(job: UnitJob, entry: dict[str, Any], pack: Pack, options: Options) -> UnitJob:
    """Return the job, resumed from what an earlier read has kept of the partition if that is still valid."""
    kept, place = parse_resume_point(entry["kept"]), job.place
    if kept is None or not isinstance(place, PartitionDirectory) or isinstance(job.unit, tuple):
        return job
    if not is_unchanged(kept, place, job.unit.known, options, job.tables, job.identity):
        return job
    done = sum(length(each.log.path) or 0 for each in place.segments[: kept.segments] if each.log is not None)
    return replace(job, kept=kept, kept_in=pack.stem, size=max(0, job.size - done))
