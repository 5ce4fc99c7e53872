"""The task of a scan: reads one chunk of the plan, units and slices of segments, and writes their rows."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kdump.check.options import Options
from kdump.check.resume_state import StateError
from kdump.io.directory_listing import length
from kdump.log.partition_directory import PartitionDirectory
from kdump.render.escape import path_text
from kdump.spark.arrow import PER_MS
from kdump.spark.resume_point import is_unchanged, parse_resume_point
from kdump.spark.store import Store, StoreError
from kdump.spark.unit_read import UnitJob, UnitRead
from kdump.spark.unit_writer import UnitWriter
from kdump.spark.units import Entry, Files, Leftover, entries, leftovers
from kdump.tables.arrow import arrow_schema
from kdump.tables.declarations import TABLES
from kdump.tables.mounted_paths import mount_for_task
from kdump.tables.read_options import ReadOptions, TaskItem
from kdump.tables.table_read import TableRead, path_of


@dataclass(frozen=True)
class ScanSetup:
    """The result, how to check and to read, and what to write. `run`: the name of the scan; `since`: that of the last
    one that was finished."""

    store: Store
    check: Options
    reading: ReadOptions
    tables: tuple[str, ...]
    records: bool
    run: str
    since: str


@dataclass
class SliceJob:
    """A slice of a segment (SegmentSplit) whose rows in `table` are to be written."""

    key: str
    table: str
    piece: TaskItem
    fingerprint: str

    @property
    def size(self) -> int:
        return self.piece.size


@dataclass
class Chunk:
    """What one task does. `group`: what the jobs were planned with."""

    group: str
    jobs: list[UnitJob | SliceJob] = field(default_factory=list)


class ChunkFile(NamedTuple):
    """A chunk that was planned: the file with it, the digest of the file, and the bytes to read."""

    name: str
    digest: str
    stem: str
    size: int


class ChunkResult(NamedTuple):
    """The files that a task has written, and how many units it has read (all, and those that it resumed) or copied from
    what a killed scan has left. `restarted`: the keys of units that it did not resume although that was planned."""

    files: Files
    read: int
    continued: int
    copied: int
    restarted: list[str]


def put_chunk(store: Store, chunk: Chunk, name: str, stem: str) -> ChunkFile:
    """Write a chunk for the task that will read it. Raises StoreError."""
    data = pickle.dumps(chunk)
    store.write(name, data)
    return ChunkFile(name, hashlib.sha256(data).hexdigest(), stem, sum(job.size for job in chunk.jobs))


def read_chunk_file(setup: ScanSetup, file: ChunkFile) -> ChunkResult:
    """Read a chunk. Raises StoreError."""
    data = setup.store.read(file.name)
    if data is None or hashlib.sha256(data).hexdigest() != file.digest:
        raise StoreError(f"{setup.store.path(file.name)}: missing or changed while the scan ran; run it again")
    chunk: Chunk = pickle.loads(data)
    mount_for_task(path_of(job.piece.input if isinstance(job, SliceJob) else job.unit) for job in chunk.jobs)
    return read_chunk(setup, chunk, file.stem)


def read_chunk(setup: ScanSetup, chunk: Chunk, stem: str) -> ChunkResult:
    """Read the units of a chunk and write their rows. Raises StoreError."""
    writer = UnitWriter(setup.store, stem, chunk.group)
    read = continued = copied = 0
    restarted: list[str] = []
    try:
        wanted = {job.key: job.fingerprint for job in chunk.jobs}
        left = leftovers(setup.store, setup.since, stem, wanted)
        for job in chunk.jobs:
            first = 0
            earlier = left.get(job.key)
            resumes = isinstance(job, UnitJob) and job.kept is not None
            if earlier is not None and earlier.entry["fingerprint"] and (resumes or not earlier.entry["firstSegment"]):
                writer.copy_unit(job.key, earlier.names, late=True)
                _copy_entry(writer, earlier)
                first = earlier.entry["firstSegment"]
                copied += isinstance(job, UnitJob)
            elif isinstance(job, SliceJob):
                _slice(writer, job, setup.reading)
            else:
                resumed = job if earlier is None or resumes else resumed_job(job, earlier.entry, setup.check)
                first = _unit(writer, resumed, earlier.names if earlier is not None and resumed is not job else [])
                read += 1
                continued += first > 0
            if resumes and not first:
                restarted.append(job.key)
            if writer.is_due:
                writer.save()
        return ChunkResult(writer.finish(), read, continued, copied, restarted)
    except BaseException as error:
        writer.abandon(error)
        raise


def _copy_entry(writer: UnitWriter, leftover: Leftover) -> None:
    """Copy the entry of a unit that another task has read. Raises StoreError."""
    key = leftover.entry["key"]
    for entry in entries(writer.store, leftover.names[-1:]):
        if entry["key"] == key:
            writer.end(entry)


def _unit(writer: UnitWriter, job: UnitJob, names: list[str]) -> int:
    """Read a unit. `names`: the files with the rows of what is not read again, unless they are in the result. Returns
    the number of the first segment that was read."""
    try:
        read = UnitRead(job, writer, names)
        entry = read.run()
    except StateError:  # the kept state is unusable: start from the first segment
        read = UnitRead(replace(job, kept=None), writer)
        entry = read.run()
    writer.end(entry)
    return read.first


def _slice(writer: UnitWriter, job: SliceJob, reading: ReadOptions) -> None:
    """Write the rows of a slice."""
    writer.begin(job.key, late=False)
    table = TABLES[job.table]
    for batch in TableRead(replace(reading, table=table)).slices([job.piece], arrow_schema(table, per_ms=PER_MS)):
        writer.put(table, [batch])
    writer.count(job.size)
    path = path_text(path_of(job.piece.input))
    writer.end({"key": job.key, "unit": path, "fingerprint": job.fingerprint, **vars(job.piece.identity)})


def resumed_job(job: UnitJob, entry: Entry, options: Options) -> UnitJob:
    """Return the job, resumed from what an earlier read has kept of the partition if that is still valid."""
    kept, place = parse_resume_point(entry["kept"]), job.place
    if kept is None or not isinstance(place, PartitionDirectory) or isinstance(job.unit, tuple):
        return job
    if not is_unchanged(kept, place, job.unit.known, options, job.tables, job.identity):
        return job
    done = sum(length(segment.log.path) or 0 for segment in place.segments[: kept.segments] if segment.log is not None)
    return replace(job, kept=kept, state=entry.get("keptState"), size=max(0, job.size - done))
