"""What a scan has to read: every unit of the fleet, less those that are as they were when they were read last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kdump import __version__
from kdump.check.options import Options
from kdump.check.run import Unit, units_of
from kdump.log.listing import is_url, length
from kdump.log.paths import Target
from kdump.spark.coordination import retention_of
from kdump.spark.filters import Wanted
from kdump.spark.fleet import Fleet, Identity
from kdump.spark.options import ReadOptions
from kdump.spark.plan import parts_of, slimmed
from kdump.spark.scan_task import Job
from kdump.spark.store import key_of
from kdump.spark.walk import Slice


def jobs_of(fleet: Fleet, check: Options, tables: tuple[str, ...]) -> list[Job]:
    """Every unit, and every path that leads to none, as a job."""
    whose = {found.place.path: found.identity for found in fleet.found}
    ages = retention_of(fleet)
    jobs = []
    for path, text in fleet.refused:
        jobs.append(Job(key_of("refused", path), (path, text), Identity(), "", tables))
    for unit in units_of([found.place for found in fleet.found], check):
        place = unit.partition
        source = place.source if place else unit.directory.path if unit.directory else unit.name
        identity = whose[source]
        unit = slimmed(unit)
        key = key_of("root" if unit.directory else "unit", source, unit.name)
        age = ages.get((identity.cluster, place.topic if place else None))
        print_ = _fingerprint(unit, identity, check, (*tables, str(age)))
        jobs.append(Job(key, unit, identity, print_, tables, unit.size, age))
    return jobs


def _fingerprint(unit: Unit, identity: Identity, check: Options, tables: tuple[str, ...]) -> str:
    """What a unit's rows depend on: its files, by size and time of change, and what is known from around it. Empty for
    what is read anew each time: the root of a log directory is small, and says of all the others."""
    if unit.directory is not None:
        return ""
    files = list(unit.partition.files()) if unit.partition else [unit.target] if unit.target else []
    options = (check.limits, check.transaction_timeout, check.max_message_bytes)
    known = replace(unit.known, now=0)
    stamps = sorted(stamp(at) for at in files)
    return key_of(__version__, repr(options), repr(tables), repr(identity), repr(known), repr(stamps))


def stamp(at: Target) -> tuple[str, int, int]:
    """What changes when a file is written to; a store says no more than its length."""
    if is_url(at.path):
        return at.path, length(at.path) or -1, 0
    try:
        now = os.stat(at.path)
    except OSError:
        return at.path, -1, 0
    return at.path, now.st_size, now.st_mtime_ns


@dataclass
class RecordJob:
    """A slice of a segment whose records are wanted."""

    key: str
    identity: Identity
    slice: Slice
    state: str | None
    size: int
    fingerprint: str


def record_jobs(fleet: Fleet, options: ReadOptions, check: Options) -> Iterator[RecordJob]:
    """Every slice of every live segment. A segment that nothing was written to keeps its rows."""
    for part in parts_of(fleet, replace(options, parallelism=1), check, Wanted()):
        for piece in part.pieces:
            own: Slice = piece.what
            seen = stamp(own.at)
            print_ = key_of(__version__, repr(options.limits), repr(piece.identity), repr(seen), repr(own[1:]))
            key = key_of("records", own.at.source, own.at.path, str(own.start))
            yield RecordJob(key, piece.identity, own, piece.state, piece.size, print_)
