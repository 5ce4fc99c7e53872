"""What a startup has to recover, from names, sizes and checkpoints alone: no segment is read for it.

A broker loads the logs of a directory in the order in which the file system lists them, and recovers of each the
segment that contains the recovery point, every later one, and those without an .index. One that is both is read twice:
when its index is missed, and after all segments have been opened.

Source: kafka.log.LogManager.loadLogs, LogLoader.loadSegmentFiles and recoverLog, LogSegments.values(recoveryPoint) (2.8
to 4.3)."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, MutableSequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

from kdump.answer import BYTES, Doc, PathText, Shown, answer, columns
from kdump.cluster.disks import Disks
from kdump.format.count_text import duration_text, size_text
from kdump.format.numbers import LONG_MAX
from kdump.io import file_system
from kdump.io.errors import SourceError, reason
from kdump.io.run import PLAIN_RUN, Run
from kdump.kafka.checkpoint_file import BadLine, offsets
from kdump.kafka.log_segment import first_unflushed
from kdump.log.file_kinds import CLEAN_MARK, REMOTE_CACHE
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.live_files import SeenDirectory
from kdump.log.served_files import swaps_in
from kdump.questions.restart_plan.log_loading.replica_moves import parse_name
from kdump.questions.restart_plan.node.directories import node_directories

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
MAX_DIGITS = 19
"""Digits of the largest offset; a file name with more is not a segment's."""


def _seconds(seconds: float | None) -> str:
    return "?" if seconds is None else duration_text(int(seconds * 1000))


@columns(
    log=Shown("partition", least=16, cell=lambda log: log.path.rpartition("/")[2]),
    place=Shown("number", 6, right=True, cell=lambda log: "?" if log.number is None else f"{log.number:,}"),
    read=Shown("re-read", 7, right=True, cell=lambda log: f"{log.recovered:,}"),
    reads=Shown(rank=8, right=True, cell=lambda log: size_text(log.bytes)),
    starts=Shown("starts after", 8, right=True, cell=lambda log: _seconds(log.startsAfter)),
    done=Shown("done after", 8, right=True, cell=lambda log: _seconds(log.endsAfter)),
)
@answer("recoveryLog")
@dataclass
class LogWork:
    """A log that is loaded, in the order of loading."""

    topic: Annotated[PathText, Doc("topic, from the directory's name")]
    partition: Annotated[int, Doc("partition, from the directory's name")]
    path: Annotated[PathText, Doc("partition directory")]
    source: Annotated[PathText, Doc("log directory")]
    number: Annotated[
        int | None, Doc("its place in the order in which the broker loads the directory's logs, from 1; null: unknown")
    ]
    segments: Annotated[int, Doc("number of segments")] = 0
    bases: MutableSequence[int] = field(default_factory=lambda: array("q"))
    """Base offset of each segment that is recovered, in order."""
    sizes: MutableSequence[int] = field(default_factory=lambda: array("q"))
    """Their sizes in bytes."""
    againBytes: int = 0
    """Bytes of those that are read a second time."""
    producerBytes: int = 0
    """Bytes before the first of them of whose batches the headers are read for producer state, because no snapshot is
    there."""
    startsAfter: Annotated[
        float | None, Doc("estimated seconds from the beginning until it is loaded", "s", after="bytes")
    ] = None
    endsAfter: Annotated[
        float | None, Doc("estimated seconds from the beginning until it has been loaded", "s", after="startsAfter")
    ] = None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def recovered(self) -> Annotated[int, Doc("number of segments that recovery reads and checks", after="segments")]:
        return len(self.bases)

    @property
    def bytes(self) -> Annotated[int, Doc("bytes that are read for it", BYTES, after="recovered")]:
        return sum(self.sizes)

    def segment(self, number: int) -> str:
        """Return the path of a recovered segment without its ending."""
        return os.path.join(self.path, f"{self.bases[number]:020}")


@dataclass
class DirectoryWork:
    """A log directory; `logs` in the order in which a broker loads them. `unread`: what could not be listed, or
    read."""

    path: str
    clean: bool
    logs: list[LogWork] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def recovered(self) -> list[LogWork]:
        return [log for log in self.logs if log.bases]

    @property
    def bytes(self) -> int:
        return sum(log.bytes for log in self.logs)


def recovery_works(paths: Iterable[str], run: Run = PLAIN_RUN, disks: Disks | None = None) -> list[DirectoryWork]:
    """Return what is to be recovered in each log directory. Raises SourceError."""
    paths = list(paths)
    directories = node_directories(paths, disks or Disks.at(paths, nested=False))
    return [
        directory_work(directory.path, run) for directory in directories if directory.logDir and not directory.failed
    ]


def directory_work(path: str, run: Run = PLAIN_RUN) -> DirectoryWork:
    """Return what a broker has to recover in a log directory. `run.begin` is called after each partition."""
    directory = DirectoryReader(path, in_order=file_system.tree_at(path) is None)
    work = directory.work
    for inside in _subdirectories(work):
        try:
            directory.add(inside, _files(inside))
        except FileNotFoundError:  # deleted in the meantime
            continue
        except OSError as error:
            work.unread.append(f"{error.filename or inside}: {reason(error, error.filename or inside)}")
        run.begin(inside)
    return work


class DirectoryReader:
    """Fills in the DirectoryWork of a log directory, partition by partition. `in_order`: whether they come in the order
    in which a broker loads them, which a bundle does not have."""

    def __init__(self, path: str, *, in_order: bool) -> None:
        self.in_order = in_order
        self.work = DirectoryWork(path, file_system.exists(os.path.join(path, CLEAN_MARK)))
        self._points: dict[tuple[str, int], int] = {}
        checkpoint = os.path.join(path, RECOVERY_POINTS)
        try:
            self._points = offsets(checkpoint)
        except (BadLine, SourceError) as error:
            self.work.unread.append(f"{checkpoint}: {error}; everything counts as unflushed")

    def add(self, path: str, files: Iterable[tuple[str, int]]) -> None:
        """Add a partition directory with these names and sizes of files; another directory is skipped. Raises what
        iterating over the files raises."""
        parsed = parse_name(os.path.basename(path))
        if parsed is None or parsed[0] == METADATA_TOPIC:
            return
        topic, partition, state = parsed
        number = len(self.work.logs) + 1 if self.in_order else None
        log = LogWork(topic, partition, path, self.work.path, number)
        self.work.logs.append(log)
        recovers = not self.work.clean and state != "delete"  # LogLoader.load
        try:
            _fill(log, self._points.get((topic, partition), 0), files, recovers=recovers)
        except FileNotFoundError:
            self.work.logs.pop()
            raise


class StartupWorks:
    """Collects what is to be recovered while a startup is predicted, which lists the partitions, not in the broker's
    order."""

    def __init__(self) -> None:
        self._readers: dict[str, DirectoryReader] = {}
        self._seen: set[str] = set()

    def on_seen(self, path: str, seen: SeenDirectory) -> None:
        """Take what is in a partition directory, the first time that it is listed."""
        if path in self._seen:
            return
        self._seen.add(path)
        root = os.path.dirname(path)
        if root not in self._readers:
            self._readers[root] = DirectoryReader(root, in_order=False)
        self._readers[root].add(path, ((name, seen.identities[name].size) for name in seen.files))

    @property
    def works(self) -> list[DirectoryWork]:
        return [reader.work for reader in self._readers.values()]


def _subdirectories(work: DirectoryWork) -> Iterator[str]:
    """Yield the paths of directories in the order in which the file system lists them."""
    try:
        with file_system.scandir(work.path) as entries:
            for entry in entries:
                if entry.is_dir() and entry.name != REMOTE_CACHE:
                    yield entry.path
    except OSError as error:
        work.unread.append(f"{work.path}: {error.strerror}")


def _files(path: str) -> Iterator[tuple[str, int]]:
    """Yield names and sizes of files; 0 for those whose size does not matter. Raises OSError."""
    with file_system.scandir(path) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # deleted in the meantime
                if not entry.is_dir():
                    yield entry.name, entry.stat().st_size if entry.name.endswith(".log") else 0


def _fill(log: LogWork, point: int, files: Iterable[tuple[str, int]], *, recovers: bool) -> None:
    """Note the segments that are recovered."""
    sizes: dict[int, int] = {}
    indexed, snapshots = set(), []
    listed = list(files)
    swaps = swaps_in(log.path, [name for name, _ in listed])
    for name, size in listed:
        if swaps.replaces(name):
            continue
        stem, _, ending = (name.removesuffix(".swap") if name in swaps.installed else name).rpartition(".")
        if not (stem.isdigit() and stem.isascii() and len(stem.lstrip("0")) <= MAX_DIGITS):
            continue
        base = int(stem)
        if base > LONG_MAX:
            continue
        if ending == "log":
            sizes[base] = size
            if name in swaps.installed:
                indexed.add(base)  # the startup creates one of zeros if there is none
        elif ending == "index":
            indexed.add(base)
        elif ending == "snapshot":
            snapshots.append(base)
    bases = sorted(sizes)
    log.segments = len(bases)
    first = first_unflushed(bases, point) if recovers else len(bases)
    chosen = [base for number, base in enumerate(bases) if number >= first or base not in indexed]
    log.bases.extend(chosen)
    log.sizes.extend(sizes[base] for base in chosen)
    log.againBytes = sum(sizes[base] for base in bases[first:] if base not in indexed)
    if chosen:
        # Before the first one is recovered, the producer state at its base offset is loaded, or read.
        loaded = max((offset for offset in snapshots if offset <= chosen[0]), default=bases[0])
        between = bases[max(0, bisect_right(bases, loaded) - 1) :]
        log.producerBytes = sum(sizes[base] for base in between if base < chosen[0] and loaded < chosen[0])
