"""Plans a scan: the jobs for every unit of the fleet, with fingerprints that show which units are unchanged since they
were last read, and how far into a partition a read can resume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.options import Options
from kdump.log.directory_listing import length
from kdump.log.partition_directory import PartitionDirectory
from kdump.spark.coordinators import retention_of
from kdump.spark.data_source_options import ReadOptions
from kdump.spark.file_stamps import file_stamp
from kdump.spark.filters import PushedFilters
from kdump.spark.fleet import DiskIdentity, Fleet
from kdump.spark.resume_point import is_unchanged, parse_resume_point
from kdump.spark.scan_task import UnitJob
from kdump.spark.segment_split import SegmentSplit
from kdump.spark.store import LAYOUT, key_of
from kdump.spark.table_plan import parts_of, slimmed
from kdump.version import __version__

MAX_FILES = 500
"""Maximum number of files with the kept rows of a partition. Each scan that finds new segments adds some; beyond the
maximum, a scan starts from the first segment, which leaves only a few."""


def jobs_of(fleet: Fleet, check: Options, tables: tuple[str, ...]) -> list[UnitJob]:
    """Return a job for every unit, and for every path that could not be read."""
    whose = {found.place.path: found.identity for found in fleet.found}
    ages = retention_of(fleet)
    jobs = []
    for path, text in fleet.unreadable:
        jobs.append(UnitJob(key_of("refused", path), (path, text), DiskIdentity(), "", tables))
    for unit in units_of([found.place for found in fleet.found], check):
        place = unit.partition
        source = place.source if place else unit.directory.path if unit.directory else unit.name
        identity = whose[source]
        unit = slimmed(unit)
        key = key_of("root" if unit.directory else "unit", source, unit.name)
        age = ages.get((identity.cluster, place.topic if place else None))
        print_ = _fingerprint(unit, identity, check, (*tables, str(age)))
        jobs.append(UnitJob(key, unit, identity, print_, tables, unit.size, age))
    return jobs


def _fingerprint(unit: CheckUnit, identity: DiskIdentity, check: Options, tables: tuple[str, ...]) -> str:
    """Return a fingerprint of what a unit's rows depend on: its files, by size and modification time, and what other
    files record about them. Empty for the root of a log directory, which is always read again: it is small, and
    describes all other units."""
    if unit.directory is not None:
        return ""
    files = list(unit.partition.files()) if unit.partition else [unit.target] if unit.target else []
    options = (check.limits, check.transaction_timeout, check.max_message_bytes)
    known = replace(unit.known, now=0)
    stamps = sorted((target.path, *file_stamp(target)) for target in files)
    return key_of(LAYOUT, __version__, repr(options), repr(tables), repr(identity), repr(known), repr(stamps))


def resumed_job(job: UnitJob, entry: dict[str, Any] | None, check: Options) -> UnitJob:
    """Return the job, resumed from what an earlier scan has kept of the partition if that is still valid."""
    kept, place = parse_resume_point((entry or {}).get("kept")), job.place
    if kept is None or not isinstance(place, PartitionDirectory) or not isinstance(job.unit, CheckUnit):
        return job
    if len(kept.files) > MAX_FILES:
        return job
    if not is_unchanged(kept, place, job.unit.known, check, job.tables, job.identity):
        return job
    done = sum(length(each.log.path) or 0 for each in place.segments[: kept.segments] if each.log is not None)
    return replace(job, kept=kept, size=max(0, job.size - done))


@dataclass
class RecordJob:
    """A slice of a segment whose records are to be written."""

    key: str
    identity: DiskIdentity
    slice: SegmentSplit
    state: str | None
    size: int
    fingerprint: str


def record_jobs(fleet: Fleet, options: ReadOptions, check: Options) -> Iterator[RecordJob]:
    """Yield a job for every slice of every segment. The rows of a segment that has not been written to are kept."""
    for part in parts_of(fleet, replace(options, parallelism=1), check, PushedFilters()):
        for piece in part.pieces:
            own: SegmentSplit = piece.input
            seen = (own.target.path, *file_stamp(own.target))
            print_ = key_of(LAYOUT, __version__, repr(options.limits), repr(piece.identity), repr(seen), repr(own[1:]))
            key = key_of("records", own.target.source, own.target.path, str(own.start))
            yield RecordJob(key, piece.identity, own, piece.state, piece.size, print_)
