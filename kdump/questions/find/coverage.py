"""Counts what a search reads and what it cannot, such as offsets of tiered partitions that are only in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kdump.answer import of_fact
from kdump.cluster.remote_log import uncovered
from kdump.io.remote_paths import remote_partition
from kdump.log.expression.terms import NO, Expression, FileFacts
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.questions.find.answer import NotSearched, SearchCoverage
from kdump.questions.find.directory import SearchedDirectory
from kdump.questions.find.listing import Listing

LIMIT = "the limit was reached"
AS_BYTES = "compared as bytes only: "
NO_TOPIC = "the rest of EXPR is met, but no directory names their topic and partition"
NOT_ABORTED = "the rest of EXPR is met, but whether their transaction was aborted is not known"
NOT_THERE = "no partition of this topic is in the paths: "
ALL_OUT = "no file in the paths is of a topic and partition that EXPR asks for"
NONE_LIVE = "no file in the paths is live, and of a topic and partition that EXPR asks for"


class NotThere(str):
    """That no partition of a topic is in the paths."""

    topic = ""

    @classmethod
    def of(cls, topic: str) -> NotThere:
        made = cls(NOT_THERE + topic)
        made.topic = topic
        return made


class AsBytes(str):
    """That a part of records was compared as bytes: it has no decoder (UNDECODED), or why it does not decode."""

    part = why = ""

    @classmethod
    def of(cls, part: str, why: str) -> AsBytes:
        made = cls(f"{AS_BYTES}{part} {why}")
        made.part, made.why = part, why
        return made


@dataclass
class Coverage:
    """The counts of one search; `gaps` by file and reason: position, bytes, records."""

    matches: int = 0
    files: int = 0
    batches: int = 0
    records: int = 0
    read_bytes: int = 0
    """Size of the files that were read."""
    ruledOutFiles: int = 0
    ruledOutBytes: int = 0
    gaps: dict[tuple[str, str], tuple[int | None, int, int]] = field(default_factory=dict)

    def merge(self, other: Coverage) -> None:
        """Add what another process has counted."""
        for name, count in vars(other).items():
            if name != "gaps":
                setattr(self, name, getattr(self, name) + count)
        for (file, reason), gap in other.gaps.items():
            self.add(file, reason, *gap)

    def begin(self, size: int) -> None:
        """Count a file of this size that is read."""
        self.files += 1
        self.read_bytes += size

    def rule_out(self, size: int) -> None:
        """Count a file of this size that is not read, because its name does not match."""
        self.ruledOutFiles += 1
        self.ruledOutBytes += size

    def stopped(self, files: list[tuple[Target, int]]) -> None:
        """Count files that are not read because there were enough matches."""
        for file, size in files:
            self.read_bytes += size
            self.add(file.path, LIMIT, None, size)

    def add(self, file: str, reason: str, position: int | None, size: int, records: int = 0) -> None:
        """Count bytes of a file that could not be searched."""
        first, bytes_before, records_before = self.gaps.get((file, reason), (position, 0, 0))
        if size or records or not bytes_before:
            self.gaps[file, reason] = (first, bytes_before + size, records_before + records)

    def undecided(self, file: Target, undecoded: dict[str, str]) -> None:
        """Count a record of which it is not known whether it matches: its bytes alone could be compared, or its topic,
        its partition or the outcome of its transaction is not known."""
        for part, reason in undecoded.items():
            self.add(file.path, AsBytes.of(part, reason), None, 0, 1)
        if not undecoded:
            self.add(file.path, NO_TOPIC if file.topic_name is None else NOT_ABORTED, None, 0, 1)

    def not_there(self, expression: Expression, listing: Listing, path: str, *, live: bool) -> None:
        """Take note of topics that the expression names and that are in none of the paths, and if all files are ruled
        out. `live`: so are those that no consumer reads."""
        for topic in sorted(expression.topics - listing.topics) if listing.directories else ():
            self.add(path, NotThere.of(topic), None, 0)
        if self.ruledOutFiles and not self.files and not self.gaps:
            self.add(path, NONE_LIVE if live else ALL_OUT, None, 0)

    def answer(self, expression: str, listing: Listing) -> SearchCoverage:
        """Return the counts of the search, with those of the files that were listed for it."""
        gaps = [NotSearched(file, reason, *numbers) for (file, reason), numbers in self.gaps.items()]
        missed = sum(gap.bytes for gap in gaps)
        return of_fact(
            SearchCoverage,
            self,
            listing,
            expression=expression,
            isComplete=not gaps,
            bytes=self.read_bytes - missed,
            notSearchedBytes=missed,
            totalBytes=self.read_bytes + self.ruledOutBytes + listing.otherBytes + listing.directoryBytes,
            notSearched=gaps,
        )


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
