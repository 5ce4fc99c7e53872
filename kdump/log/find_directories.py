"""Finds the log directories, partition directories and files at or below a path. Each directory is listed once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kdump.io import file_system
from kdump.io.command_line_paths import no_kafka_files
from kdump.io.directory_listing import DirectoryEntry, is_directory, is_url, items
from kdump.io.errors import Unlisted, listing_error
from kdump.io.run import Run
from kdump.io.source import Identity, identity_of
from kdump.log.log_directory import LogDirectory, Place, log_directory_above, recognize
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import PARTITION, UnlistedCollector, directories, natural, target


def find_directories(path: str, run: Run) -> Iterator[Place]:
    """Yield what `path` is or, for any other directory, what is below it. Raises SourceError if there are no Kafka
    files, and all directories could be read; calls `run.unreadable` for a directory that cannot be read."""
    if path == "-" or not is_directory(path):
        yield target(path)
        return
    collector = UnlistedCollector(run)
    has_any = False
    for place in _Walk(collector.run).places(path):
        has_any = True
        yield place
    if not has_any:
        directory_above = _in_log_directory(path)
        if directory_above is not None:
            yield directory_above
        elif not collector.unlisted:
            raise no_kafka_files(path, f"{path}: no Kafka log directory, partition or segment here or below")


def _in_log_directory(path: str) -> PartitionDirectory | None:
    """Return the partition of a directory without files of Kafka's that has a partition's name and is in a broker's
    log directory: the broker creates an empty log there at startup."""
    if not PARTITION.match(os.path.basename(os.path.abspath(path))):
        return None
    above = log_directory_above(path)
    return partition(path, above.path) if above is not None and above.files else None


class _Walk:
    """A walk through directories that follows each link once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seen: set[tuple[int, int]] = set()
        """Device and inode of each directory on a local disk."""

    def places(self, directory: str) -> Iterator[Place]:
        """Yield the places at and below a directory, those in one place in the order of their names."""
        waiting = [(directory, False)]  # with whether it is in another place, which has listed it if it is a partition
        while waiting:
            directory, is_nested = waiting.pop()
            listed = self._list(directory)
            if listed is None:
                continue
            entries, seen = listed
            below = [entry for entry in entries if entry.is_directory]
            place = recognize(directory, entries, seen)
            if place is None or (is_nested and isinstance(place, PartitionDirectory)):
                waiting.extend((entry.path, False) for entry in _last_first(below))
                continue
            del listed, entries  # of a directory of 200,000 files: what is done with the place needs memory, too
            yield place
            if isinstance(place, LogDirectory):
                self._note_partitions(place)
            nested = set(place.nested if isinstance(place, LogDirectory) else place.directories)
            for entry in below:
                if entry.path not in nested and not PARTITION.match(entry.name):
                    self._note_unreadable(entry.path)
            waiting.extend(
                (entry.path, True) for entry in _last_first(entry for entry in below if entry.path in nested)
            )

    def _list(self, directory: str) -> tuple[list[DirectoryEntry], Identity | None] | None:
        """Return the contents of a directory and its identity from before; None if it was listed before, or cannot be
        read."""
        seen = None
        try:
            if not is_url(directory):
                seen = identity_of(file_system.stat(directory))
                if seen[:2] in self.seen:
                    return None
                self.seen.add(seen[:2])
            return items(directory), seen
        except OSError as error:
            self.run.unreadable(Unlisted(listing_error(error, directory)))
            return None

    def _note_partitions(self, place: LogDirectory) -> None:
        for candidate in place.candidates:
            seen = candidate.listing.seen
            if candidate.listing_errors:
                self.run.unreadable(Unlisted(candidate.listing_errors[0]))
            elif seen is not None and not candidate.directories:
                self.seen.add(seen[:2])

    def _note_unreadable(self, path: str) -> None:
        """Note what cannot be listed in or below a directory that a broker ignores."""
        for _ in directories(path, self.run):
            pass


def _last_first(entries: Iterable[DirectoryEntry]) -> list[DirectoryEntry]:
    """Return directories in the order in which to add them to a stack."""
    return sorted(entries, key=lambda entry: natural(entry.name), reverse=True)
