"""Copies of a partition: their files, and what the small files next to them contain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kdump.check.log_dir_context import LogDirContext, Surroundings, own_context
from kdump.check.options import Options
from kdump.check.partition_context import CheckpointedEpoch, PartitionContext
from kdump.io import file_system
from kdump.io.command_line_paths import missing, no_kafka_files
from kdump.io.directory_listing import is_url
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.small_files import topic_id
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import BATCHES
from kdump.log.find_directories import find_directories
from kdump.log.log_directory import LogDirectory, directory_above
from kdump.log.partition_directory import NO_SEGMENT, PartitionDirectory, partition
from kdump.log.paths import Target

PartitionKey = tuple[str, int]
SWAP = ".swap"
LOG = ".log"
"""Part of a name by which a file is read as a segment: LogFileUtils.isLogFile accepts every name that ends with it."""


@dataclass
class Copy:
    """A replica, or another copy, of a partition: its live segments in offset order, those that a startup would serve.
    `path`: the file or directory."""

    path: str
    segments: list[Target]
    known: PartitionContext = field(default_factory=PartitionContext)
    topic_id: str | None = None
    """The topic ID in partition.metadata, as Kafka prints it."""

    @property
    def key(self) -> PartitionKey | None:
        topic, partition = self.known.topic, self.known.partition
        return None if topic is None or partition is None else (topic, partition)

    @property
    def epochs(self) -> tuple[CheckpointedEpoch, ...] | None:
        """The entries of leader-epoch-checkpoint; None without one."""
        return self.known.epochs

    @property
    def high_watermark(self) -> int | None:
        """The last checkpointed high watermark, from replication-offset-checkpoint; None without one."""
        return self.known.high_watermark

    @property
    def notes(self) -> list[str]:
        """Notes on the .swap files that a startup installs."""
        swaps = [segment.path for segment in self.segments if segment.path.endswith(SWAP)]
        return [f"{path}: a startup installs it, and deletes the segments that it replaces" for path in swaps]


class Side(NamedTuple):
    """The contents of one path: one copy of a partition or, for a log directory or a directory above, the live
    partitions by topic and number. `directory_ids`: IDs of the log directories."""

    path: str
    single: Copy | None
    partitions: dict[PartitionKey, Copy]
    directory_ids: frozenset[str]


def side(path: str, options: Options) -> Side:
    """Return what is at `path`. Raises SourceError if it contains nothing of Kafka's, or a partition twice."""
    directories = list(find_directories(path, options))
    only = directories[0] if len(directories) == 1 else None
    if isinstance(only, Target):
        return Side(path, _of_file(only, options), {}, frozenset())
    if isinstance(only, PartitionDirectory) and os.path.abspath(only.path) == os.path.abspath(path):
        if not only.segments:
            raise no_kafka_files(path, f"{path}: {NO_SEGMENT}")
        return Side(path, of_partition(only, options), {}, frozenset())
    copies: dict[PartitionKey, Copy] = {}
    disks = options.disks(directories)
    identities: set[str] = set()
    for place in directories:
        if isinstance(place, LogDirectory):
            identities.add(disks.ids(place).get("directory.id", ""))
            surrounds = LogDirContext(place, options, disks)
            inside = [(each, surrounds.known(each)) for each in place.partitions if not each.state]
        else:
            inside = [(each, own_context(each, options)) for each in (place,) if isinstance(each, PartitionDirectory)]
        for each, known in inside:
            if each.topic is None or each.partition is None:
                continue
            key = (each.topic, each.partition)
            if key in copies:
                raise SourceError.at(path, f"{each.name} is in {copies[key].path} and in {each.path}; pass one of them")
            copies[key] = copy_of(each, known)
    return Side(path, None, copies, frozenset(identities - {""}))


def of_partition(place: PartitionDirectory, options: Options) -> Copy:
    """Return the copy in a partition directory, with what is known from its log directory, if it is in one."""
    return copy_of(place, Surroundings(options).of_partition(place))


def copy_of(place: PartitionDirectory, known: PartitionContext) -> Copy:
    """Return the copy in a partition directory, about which this is known."""
    return Copy(place.path, _logs(place), known, topic_id(place))


def _logs(place: PartitionDirectory) -> list[Target]:
    return [segment.log for segment in place.segments if segment.log is not None]


def relisted(copy: Copy) -> Copy:
    """Return the copy with the segments that are in its directory now."""
    if is_url(copy.path) or not file_system.isdir(copy.path):
        return copy
    here = partition(copy.path, copy.segments[0].source if copy.segments else "")
    return replace(copy, segments=_logs(here))


def _of_file(target: Target, options: Options) -> Copy:
    """Return the copy that consists of one segment, with what is known from its directory."""
    reject_others(target, options)
    known, topic_id = PartitionContext(topic=target.topic, partition=target.partition), None
    if target.path != "-" and "://" not in target.path:
        place = directory_above(target.path)
        if isinstance(place, PartitionDirectory):
            copy = of_partition(place, options)
            known, topic_id = copy.known, copy.topic_id
    return Copy(target.path, [target], known, topic_id)


def reject_others(target: Target, options: Options) -> None:
    """Raise SourceError if the file does not exist or is not a log."""
    if target.path == "-":
        return
    if "://" not in target.path and not file_system.exists(target.path):
        raise missing(target.path)
    kind = target.kind
    if kind is None:
        window = options.open(target)
        try:
            kind = by_content(window)
        finally:
            window.source.close()
    if kind not in BATCHES:
        raise SourceError.at(target.path, f"{kind.title}, not a log; pass a segment or a directory")


class CopyGroup(NamedTuple):
    """Copies to compare with each other; `key` is None for files and directories that were given as paths."""

    key: PartitionKey | None
    copies: list[Copy]


def groups(sides: list[Side]) -> Iterator[CopyGroup]:
    """Yield what to compare: all paths as one partition, or partition by partition. A partition that only one side has
    comes with one copy."""
    if all(each.single for each in sides):
        yield CopyGroup(None, [each.single for each in sides if each.single])
        return
    named = {each.single.key for each in sides if each.single and each.single.key}
    keys = named or {key for each in sides for key in each.partitions}
    for key in sorted(keys):
        copies = [copy for each in sides if (copy := each.single or each.partitions.get(key))]
        yield CopyGroup(key, [copy for copy in copies if copy.key == key])


def of_places(paths: str | Iterable[str], run: Run) -> Iterator[PartitionDirectory | Target]:
    """Yield the partitions, including those that are not live, and files at or below the paths. `run.unreadable` is
    called for a path with nothing of Kafka's."""
    for path in [paths] if isinstance(paths, str) else paths:
        try:
            for place in find_directories(path, run):
                if isinstance(place, LogDirectory):
                    yield from place.partitions
                else:
                    yield place
        except SourceError as error:
            run.unreadable(error)
