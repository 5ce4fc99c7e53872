"""Which offsets of tiered partitions are only in remote storage, and which of them a search has read there."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.cluster.remote_log import uncovered
from kdump.io.remote_paths import remote_partition
from kdump.log.expression.terms import NO, Expression, FileFacts
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.questions.find.directory import SearchedDirectory

Key = tuple[str | None, int | None]


class RemoteOffsets:
    """Collected while directories are searched: those of a bucket may be among them."""

    def __init__(self) -> None:
        self._read: dict[Key, list[tuple[int, int]]] = {}
        self._missing: dict[str, tuple[Key, int, int]] = {}
        self._file, self._is_remote = "", False

    def merge(self, other: RemoteOffsets) -> None:
        """Add what another process has collected."""
        for key, ranges in other._read.items():
            self._read.setdefault(key, []).extend(ranges)
        self._missing |= other._missing

    def batch(self, file: Target, batch: Batch) -> None:
        """Take a batch that is searched."""
        if file.path != self._file:
            self._file, self._is_remote = file.path, remote_partition(file.path.rpartition("/")[0]) is not None
        if not self._is_remote or batch.baseOffset is None or batch.lastOffset is None:
            return
        ranges = self._read.setdefault((file.topic, file.partition), [])
        if ranges and ranges[-1][1] == batch.baseOffset - 1:
            ranges[-1] = ranges[-1][0], batch.lastOffset
        else:
            ranges.append((batch.baseOffset, batch.lastOffset))

    def directory(self, directory: SearchedDirectory, expression: Expression) -> None:
        """Take a partition directory: the offsets below its first segment that its log still has."""
        place = directory.place
        only_remote = None if place is None else directory.around.partitions.only_remote(place)
        if place is not None and only_remote is not None:
            file = Target(place.path, None, place.topic, place.partition)
            if expression.term.truth(FileFacts(file)) != NO:
                self._missing[place.path] = (place.topic, place.partition), *only_remote

    def not_searched(self) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """Yield the path of each partition with such offsets, and those that were read nowhere."""
        for path, (key, start, stop) in self._missing.items():
            lacking = uncovered(self._read.get(key, ()), start, stop)
            if lacking:
                yield path, lacking
