"""Finds on this disk what a message names by the path on the broker's disk."""

from __future__ import annotations

import os
import re
from functools import cached_property

from kdump.cluster.disks import Disks
from kdump.incident.explain.broker_paths import names_of, partition_of
from kdump.io import file_system
from kdump.io.directory_listing import parent, real_path
from kdump.io.errors import SourceError
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory

_NAMED = re.compile(r"(?P<name>[\w.-]{1,249}-\d{1,10})(?:\.[0-9a-f]{32}-(?:delete|future|stray))?")


class DiskPlaces:
    """The log directories and partitions that were found on these disks. Raises SourceError if there is a file among
    them."""

    def __init__(self, paths: tuple[str, ...], disks: Disks) -> None:
        self.paths = paths
        self.directories = disks.directories
        self.partitions: dict[str, list[PartitionDirectory]] = {}
        """By topic-partition, with the directories that are not live."""
        for place in disks.found:
            if isinstance(place, LogDirectory):
                for partition in place.partitions:
                    self._add_partition(partition)
            elif isinstance(place, PartitionDirectory):
                self._add_partition(place)
            else:
                raise SourceError.at(place.path, "not a directory; pass a log directory or a partition directory")

    @cached_property
    def topics(self) -> set[str]:
        """The topics that have a directory on these disks."""
        return {name.rpartition("-")[0] for name in self.partitions}

    def _add_partition(self, place: PartitionDirectory) -> None:
        if place.topic is not None:
            self.partitions.setdefault(f"{place.topic}-{place.partition}", []).append(place)

    def partition(self, name: str, directory: str = "") -> PartitionDirectory | None:
        """Return the partition topic-partition: of several directories, the one that a path in the message names, else
        the live one."""
        last = {name for name in names_of(directory) if name}

        def order(place: PartitionDirectory) -> tuple[bool, bool, bool, str]:
            own, above = os.path.basename(os.path.abspath(place.path)), os.path.abspath(parent(place.path))
            return own not in last, os.path.basename(above) not in last, bool(place.state), real_path(place.path)

        return min(self.partitions.get(name, []), key=order, default=None)

    def directory(self, path: str) -> LogDirectory | None:
        """Return the log directory that a path in a message names, or is in: the only one, or one with that name."""
        if len(self.directories) == 1:
            return self.directories[0]
        parts = set(names_of(path))
        return next((each for each in self.directories if os.path.basename(os.path.abspath(each.path)) in parts), None)

    def file(self, path: str) -> tuple[str, bool] | None:
        """Return where the file of a message is on this disk, and whether it is there; None for a path of something
        else. A file that the broker has renamed since counts as missing."""
        parts = names_of(path)
        for number in range(len(parts) - 1, -1, -1):
            named = _NAMED.fullmatch(parts[number])
            place = None if named is None else self.partition(named["name"], path)
            if place is not None:
                below = parts[number + 1 :]
                here = os.path.join(place.path, *below) if below else os.path.join(parent(place.path), parts[number])
                return here, file_system.exists(here)
            if named is not None and partition_of({"file": path}) == named["name"]:
                directory = self.directory(path)  # a partition that is not on this disk
                return (os.path.join(directory.path, *parts[number:]), False) if directory is not None else None
        directory = self.directory(path)
        if directory is None:
            return None
        if os.path.basename(os.path.abspath(directory.path)) == parts[-1]:
            return directory.path, True
        here = os.path.join(directory.path, parts[-1])
        return (here, True) if file_system.exists(here) else None
