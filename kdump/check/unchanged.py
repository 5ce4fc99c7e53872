"""What decides whether a file, or a unit of a check, is unchanged since an earlier run: for `scan` and for `verify
--state`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kdump.check.engine.units import CheckUnit
from kdump.io import file_system
from kdump.io.directory_listing import is_url, version
from kdump.log.live_files import see
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target

Stamp = tuple[int, int | str, int]
"""Size in bytes, modification time in ns and inode; for an object store, the size, whatever it provides instead, and
0. The device is none of it: its number changes when a disk is mounted again."""
Stamps = Mapping[str, Stamp]
"""By path."""
GONE: Stamp = (-1, 0, 0)


def file_stamp(target: Target) -> Stamp:
    """Return the current stamp of a file; GONE if it does not exist or cannot be accessed."""
    if is_url(target.path):
        return (*version(target.path), 0)
    try:
        now = file_system.stat(target.path)
    except OSError:
        return GONE
    return now.st_size, now.st_mtime_ns, now.st_ino


def file_stamps(place: PartitionDirectory) -> Stamps:
    """Return the current stamps of all files of a partition."""
    if place.given is not None or is_url(place.path):
        return {target.path: file_stamp(target) for target in place.files()}
    seen, above = see(place.path), os.path.join(place.path, "")  # quicker than a stat of each path
    return {
        above + name: (file.size, file.modified, file.inode)
        for name, file in seen.identities.items()
        if name and name not in seen.directories
    }


def _stamped(files: Iterable[tuple[str, Stamp]]) -> list[tuple[object, ...]]:
    return sorted((path, *stamp) for path, stamp in files)


def facts_of(unit: CheckUnit, stamps: Stamps | None = None) -> tuple[object, ...]:
    """Return all that the findings of a partition or file depend on, besides the options: its files by their stamps,
    and what other files record about them. It is unchanged if the `repr` of this is. `stamps`: those of its files, if
    they are known."""
    if stamps is None and unit.partition is not None:
        stamps = file_stamps(unit.partition)
    elif stamps is None:
        stamps = {unit.target.path: file_stamp(unit.target)} if unit.target is not None else {}
    return replace(unit.known, now=0), _stamped(stamps.items())
