"""The files of the paths of a search, and what their names say of the records in them. Sizes are those of `du -bL`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kdump.io import file_system
from kdump.io.command_line_paths import missing, no_kafka_files
from kdump.io.directory_listing import is_inside, is_url
from kdump.io.errors import Unlisted, is_missing, listing_error
from kdump.io.run import Run
from kdump.log.file_kinds import BATCHES, by_name, is_of_broker
from kdump.log.paths import HALF_COPIED, PARTITION, Target, UnlistedCollector, directories, is_live, target
from kdump.questions.find.answer import CLEANED, DELETED, FUTURE, IN_DELETION, LIVE, STRAY, SWAP
from kdump.questions.find.answer import HALF_COPIED as HALF

OF_DIRECTORY = {"delete": IN_DELETION, "future": FUTURE, "stray": STRAY}
OF_ENDING = ((".deleted", DELETED), (".swap", SWAP), (".cleaned", CLEANED))


@dataclass
class Listing:
    """What is at or below the paths. `files`: those that may hold records, in the order in which to read them, with
    their sizes."""

    run: Run
    otherFiles: int = 0
    otherBytes: int = 0
    directories: int = 0
    directoryBytes: int = 0
    topics: set[str | None] = field(default_factory=set)
    """Topics of all directories and files, also of those without records."""
    _has_kafkas: bool = False
    _seen: set[tuple[int, int]] = field(default_factory=set)
    """Device and inode of each file: one with several names counts once."""

    def __post_init__(self) -> None:
        self._collector = UnlistedCollector(self.run)
        self.run = self._collector.run

    def files(self, paths: Iterable[str]) -> Iterator[list[tuple[Target, int]]]:
        """Yield the files that may hold records, with their sizes, those of one directory together. What cannot be
        listed is passed to `run.unreadable`."""
        for path in paths:
            if path == "-" or is_url(path):
                yield [(target(path), 0)]
            elif not file_system.lexists(path):
                self.run.unreadable(missing(path))
            elif not file_system.isdir(path):
                yield self._counted([path], path)
            else:
                self._has_kafkas, unlisted_before = False, len(self._collector.unlisted)
                for directory in directories(path, self.run):
                    yield self._directory(directory, path)
                if not self._has_kafkas and unlisted_before == len(self._collector.unlisted):
                    self.run.unreadable(no_kafka_files(path, f"{path}: no Kafka files here or below"))

    def _directory(self, directory: str, path: str) -> list[tuple[Target, int]]:
        names: list[str] = []
        try:
            self.directoryBytes += file_system.stat(directory).st_size
            self.directories += 1
            self.topics.add(target(os.path.join(directory, "0")).topic)
            with file_system.scandir(directory) as entries:
                names = [entry.name for entry in entries if not entry.is_dir() or file_system.islink(entry.path)]
        except OSError:
            return []  # `directories` has reported it
        return self._counted([os.path.join(directory, name) for name in sorted(names, key=_order)], path)

    def _counted(self, paths: list[str], path: str) -> list[tuple[Target, int]]:
        """Count the files, and return those that may hold records. Links are followed, but to what is in the path
        anyway."""
        chosen = []
        for file in paths:
            is_link = file != path and file_system.islink(file)
            try:
                status = file_system.stat(file)
                size, is_file = status.st_size, stat.S_ISREG(status.st_mode)
            except OSError as error:
                if not is_link:
                    if not is_missing(error):
                        unlisted = os.path.dirname(file) if error.errno == errno.EACCES else file  # for all files in it
                        self.run.unreadable(Unlisted(listing_error(error, unlisted)))
                    continue
                size, is_file = 0, False
            if is_link and (not is_file or is_inside(os.path.realpath(file), os.path.realpath(path))):
                self.otherFiles += 1
                continue
            if (status.st_dev, status.st_ino) in self._seen:
                continue
            if status.st_ino:  # 0: in a bundle or a bucket
                self._seen.add((status.st_dev, status.st_ino))
            found = target(file, source=path)
            self.topics.add(found.topic)
            name = os.path.basename(file)
            self._has_kafkas = self._has_kafkas or is_of_broker(name)
            holds_records = found.kind in BATCHES or (found.kind is None and not is_of_broker(name)) or file == path
            if holds_records and is_file and (size or file == path):
                chosen.append((found, size))
            else:
                self.otherFiles, self.otherBytes = self.otherFiles + 1, self.otherBytes + size
        return chosen


def _order(name: str) -> tuple[bool, str]:
    """Sort key: live segments first."""
    return not (is_live(name) and by_name(name)[0] in BATCHES), name


def states_of(file: Target) -> tuple[str, ...]:
    """Return what the names of a file and its directory say of the records in it."""
    name = os.path.basename(file.path)
    above = PARTITION.match(os.path.basename(os.path.dirname(os.path.abspath(file.path)))) if file.path != "-" else None
    states = [OF_DIRECTORY[above["state"]]] if above is not None and above["state"] else []
    states += [state for ending, state in OF_ENDING if ending in name]
    if HALF_COPIED.search(name):
        states.append(HALF)
    return tuple(states) or (LIVE,)
