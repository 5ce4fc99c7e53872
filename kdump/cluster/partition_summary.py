"""The contents of a partition directory: its segments according to their headers, and the disk space that they occupy.

Names and sizes come first, from the directory alone; headers are read on request."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain

from kdump.answer import Unknown
from kdump.format.batch_formats import LARGEST_HEADER
from kdump.format.count_text import plain_count
from kdump.format.index import INDEX_ENTRY
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io import file_system
from kdump.io.errors import SourceError, is_gone, unread
from kdump.io.fault_tolerant import careful_source
from kdump.io.partly_readable import PartlyReadable
from kdump.io.run import PLAIN_RUN, Limits, Run
from kdump.io.source import FileSource, Source
from kdump.io.window import Window
from kdump.log import file_kinds
from kdump.log.header_candidate import candidate_in
from kdump.log.header_totals import HeaderTotals
from kdump.log.live_files import Open, open_target, open_window
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles, log_start_offset
from kdump.log.paths import Target
from kdump.log.region import TORN
from kdump.log.segment_summary import summarize_headers
from kdump.log.withheld import with_bytes
from kdump.state.unknown_offsets import CHECKPOINT_OF, NO_FILES, CheckpointFiles, no_end

Release = Callable[[], KafkaRelease]
"""Finds out which release reads a log, where that may decide."""


def newest() -> KafkaRelease:
    return NEWEST


@dataclass(slots=True)
class SegmentSummary:
    """A segment and the files with its name. `size`: length of the .log in bytes; `error`: why its headers could not be
    read; `is_deleted`: the file went away in the meantime."""

    segment: SegmentFiles
    size: int
    sibling_kinds: tuple[str, ...]
    """Kinds of the files next to it: index, timeindex, txnindex, snapshot."""
    last: bool
    headers: HeaderTotals = field(default_factory=HeaderTotals)
    error: str = ""
    is_deleted: bool = False
    grows: bool = False
    """The file grew while it was read: a broker is writing to it."""

    def end(self, clean: bool | None, release: Release) -> int:
        """Return the offset after the last batch (`next_offset`); `error` states why it is another one."""
        try:
            return next_offset(self.segment, self.headers, clean if self.last else None, release)
        except SourceError as error:
            self.error = str(error)
            return self.segment.offset


def next_offset(segment: SegmentFiles, headers: HeaderTotals, clean: bool | None, release: Release) -> int:
    """Return the offset after the last batch of a segment, or the base offset in its name without one, as a broker has
    it that starts: where headers show damage, it may find another batch than kdump. Raises SourceError."""
    valid = segment.offset if headers.last is None else max(segment.offset, headers.last + 1)
    is_sound = headers.end is None and (
        recovers_last(segment, clean) or not (headers.damage or headers.tail or leads_astray(segment, clean, valid))
    )
    end = None if is_sound else broker_end(segment, clean, valid, _open_bytes, release)
    return valid if end is None else end


def broker_end(segment: SegmentFiles, clean: bool | None, valid: int, open_: Open, release: Release) -> int | None:
    """Return the offset after the last batch of a log that a broker finds, where that may not be `valid`, the offset
    after the last valid one. A broker that does not check the log looks it up in the .index, and goes from length to
    length (LogSegment.readNextOffset). A recovery, after an unclean shutdown or without an .index, checks it, but not a
    magic above 2, which no checksum covers. None if the broker does not load the log. Raises SourceError."""
    if segment.log is None:
        return None
    from kdump.kafka.errors import KafkaError
    from kdump.kafka.log_segment import segment_at

    try:
        read = segment_at(segment.log, segment.offset, open_, release=release())
        if not recovers_last(segment, clean):
            return read.next_offset().offset
        with suppress(SourceError):  # what cannot be read, or is not in a bundle, was said of the batch itself
            return max(valid, read.checked_end())
        return valid
    except KafkaError:
        return None


def leads_astray(segment: SegmentFiles, clean: bool | None, end: int) -> bool:
    """Return True if the last entry of the .index that a broker trusts is not that of a batch at its position, as where
    the .log was cut or replaced, or the .index is another segment's: the broker may find another last batch, or none.
    `end`: the offset after the last batch. False if the .index cannot be read."""
    if segment.log is None or recovers_last(segment, clean):
        return False
    entry = b""
    with suppress(SourceError), closing(open_target(segment.indexes[file_kinds.INDEX], careful_source)) as index:
        entries = (index.size or 0) // INDEX_ENTRY.size
        entry = index.read_at((entries - 1) * INDEX_ENTRY.size, INDEX_ENTRY.size) if entries else b""
    offset, position = int.from_bytes(entry[:4], "big"), int.from_bytes(entry[4:], "big")
    if position <= 0:
        return False
    try:
        with closing(open_target(segment.log, careful_source)) as log:
            batch = candidate_in(log.read_at(position, LARGEST_HEADER), position, Limits())
            size = log.size or 0
            is_there = batch.error is None and batch.end <= size and batch.first_offset <= segment.offset + offset < end
            return size > 0 and not is_there
    except SourceError:  # a bundle has the bytes of headers, and these are none
        return True


def _open_bytes(target: Target) -> Window:
    return Window(open_target(target, with_bytes(careful_source)))


def recovers_last(segment: SegmentFiles, clean: bool | None) -> bool:
    """Return True if a startup recovers the last segment of a log, or may: without a clean shutdown or an .index."""
    return clean is not True or file_kinds.INDEX not in segment.index_kinds


@dataclass
class PartitionSummary:
    """A partition directory. Sizes are lengths in bytes: `size` of the segments, `others_size` of their indexes and all
    other live files, `deleted` of .deleted files, `unfinished` of others that a startup deletes; `on_disk`: bytes that
    those with one name occupy, which differs for preallocated and sparse files, `linked` those with several, by device
    and inode (`occupied`). `swaps`: number of segments that are .swap
    files. `checkpoints` has only offsets of a live directory
    that the checkpoints list."""

    partition: PartitionDirectory
    segment_sizes: array[int] = field(default_factory=lambda: array("q"))
    """Bytes of each .log."""
    first_offset: int | None = None
    """The base offset of the first segment; None without segments."""
    size: int = 0
    others_size: int = 0
    deleted: int = 0
    unfinished: int = 0
    swaps: int = 0
    on_disk: int = 0
    linked: dict[tuple[int, int], int] = field(default_factory=dict)
    checkpoints: Mapping[str, int] = field(default_factory=dict)
    """By file name without '-checkpoint': log-start-offset, replication-offset, recovery-point-offset."""
    checkpoint_files: CheckpointFiles = NO_FILES
    """Why `checkpoints` lacks one of them."""
    tiered: bool = False
    """Whether segments of the topic are copied to remote storage; asked only where it decides the log start offset."""
    unreadable: tuple[tuple[int, int], ...] | None = None
    """Ranges of offsets between the log start offset and the first segment that no segment in remote storage has; None
    if that is not known."""
    clean: bool | None = None
    release: Release = newest
    headers: HeaderTotals = field(default_factory=HeaderTotals)
    log_end: int | None = None
    """The offset that the next record gets; None while the last segment has not been read."""
    damage: str = ""
    """Damage in the headers that a startup of the broker does not repair; empty if there is none."""
    unread: list[str] = field(default_factory=list)
    """Why headers of segments could not be read."""
    _segments: list[SegmentSummary] | None = None

    def add_file(self, path: str) -> int:
        """Add the bytes that a file occupies, and return its length; 0 for a file that is gone."""
        try:
            status = file_system.stat(path)
        except OSError:
            return 0
        allocated = getattr(status, "st_blocks", 0) * 512
        if status.st_nlink > 1:
            self.linked[status.st_dev, status.st_ino] = allocated
        else:
            self.on_disk += allocated
        return status.st_size

    @property
    def segments(self) -> list[SegmentSummary]:
        """The segments; created when they are first needed, because a broker has a hundred thousand."""
        if self._segments is None:
            self._segments = segments_of(self.partition)
            for segment, size in zip(self._segments, self.segment_sizes):
                segment.size = size
        return self._segments

    def forget_segments(self) -> None:
        """Keep the totals alone."""
        self._segments = None

    @property
    def name(self) -> str:
        """topic-partition, as in the directory name."""
        return self.partition.name

    @property
    def short_name(self) -> str:
        """The name without the random part of a directory that is not live."""
        place = self.partition
        return f"{place.topic}-{place.partition} ({place.state})" if place.state else self.name

    @property
    def topic(self) -> str:
        """The topic; the directory name if that is not a partition's, as in remote storage."""
        return self.partition.topic or self.partition.name

    @property
    def log_start(self) -> int | None:
        """The log start offset, where consumers can start, possibly below the first segment if remote storage has the
        records between. None without segments and checkpoint."""
        return log_start_offset(self.checkpoints.get("log-start-offset"), self.first_offset, self.tiered)

    @property
    def local_start(self) -> int | None:
        """The local log start offset: where consumers can start on this disk. None without segments."""
        first, start = self.first_offset, self.log_start
        return first if first is None or start is None else max(first, start)

    @property
    def high_watermark(self) -> int | None:
        """As of the last checkpoint: records above it may not be replicated."""
        return self.checkpoints.get("replication-offset")

    @property
    def unknown(self) -> list[Unknown]:
        """Why offsets of the partition are unknown, by the keys of answers."""
        state, files = self.partition.state, self.checkpoint_files
        found = [files.why(key, name, state) for key, name in CHECKPOINT_OF.items() if name not in self.checkpoints]
        end = no_end(len(self.segment_sizes), self.unread)
        found += [] if self.log_start is not None else [end._replace(key="logStartOffset")]
        return found if self.log_end is not None else [*found, end]

    @property
    def offsets(self) -> int | None:
        """Number of offsets from log start to log end."""
        start, end = self.log_start, self.log_end
        return None if start is None or end is None else max(0, end - start)

    @property
    def errors(self) -> list[str]:
        """Why something could not be read."""
        return [*self.partition.listing_errors, *self.unread]

    def read(self, *, quick: bool = False, run: Run = PLAIN_RUN, open_: Open = open_window) -> None:
        """Read the headers of all segments, one after the other. Never raises SourceError: see `errors`."""
        for segment in self.segments:
            read_segment(segment, quick=quick, run=run, open_=open_)
        self.sum_up()

    def sum_up(self) -> None:
        """Combine what was read of the segments, after all have been read."""
        self._segments = segments = [segment for segment in self.segments if not segment.is_deleted]
        self.segment_sizes = array("q", (segment.size for segment in segments))
        self.first_offset = segments[0].segment.offset if segments else None
        self.headers = HeaderTotals()
        self.damage = ""
        for segment in segments:
            self.headers.merge(segment.headers)
            damage = segment_damage(segment, self.clean)
            if damage and not self.damage:
                self.damage = damage if len(segments) == 1 else f"{damage}, in {segment.segment.name}.log"
        end = segments[-1].end(self.clean, self.release) if segments and not segments[-1].error else None
        self.unread = [segment.error for segment in segments if segment.error]
        self.log_end = None if end is None or segments[-1].error else max(end, self.log_start or 0)


def segment_damage(segment: SegmentSummary, clean: bool | None) -> str:
    """Describe the first damage of a segment. The end of the last segment may be torn or padded unless the shutdown was
    clean (`clean`): at startup, the broker truncates it."""
    headers = segment.headers
    if headers.damage or (segment.last and not clean) or not headers.tail:
        return headers.damage
    size = headers.torn if headers.tail == TORN else headers.padding
    return f"{plain_count(size, 'byte')} of {'an incomplete batch' if headers.tail == TORN else 'zeros'} at the end"


def read_segment(
    facts: SegmentSummary, *, quick: bool = False, run: Run = PLAIN_RUN, open_: Open = open_window
) -> None:
    """Read the headers of one segment. Never raises SourceError: see its `error`."""
    at = facts.segment.log
    assert at is not None
    try:
        window = open_(at)
    except SourceError as error:
        facts.is_deleted = is_gone(error)
        facts.error = "" if facts.is_deleted else str(error)
        return
    try:
        facts.headers = summarize_headers(at, window, quick=quick, run=run)
        source = window.source
        facts.error = source.error or _unreadable(source)
        if isinstance(source, FileSource):
            facts.grows = source.grown() > 0
            facts.size = source.size or 0
        if facts.grows and facts.headers.tail == TORN:
            facts.headers.tail = ""  # a batch that is being written
            facts.headers.torn = 0
    except SourceError as error:
        facts.error = str(error)
    finally:
        window.source.close()


def _unreadable(source: Source) -> str:
    """Report what the device could not read; it was replaced by zeros."""
    return source.unreadable_text if isinstance(source, PartlyReadable) and source.unreadable else ""


def partition_summary(place: PartitionDirectory, clean: bool | None = None) -> PartitionSummary:
    """Return what names and sizes show of a partition directory."""
    facts = PartitionSummary(place, clean=clean)
    here = place.grouped
    facts.first_offset = here.segments[0].offset if here.segments else None
    for segment in here.segments:
        assert segment.log is not None
        length = facts.add_file(segment.log.path)
        facts.segment_sizes.append(length)
        facts.size += length
        facts.swaps += segment.log.path.endswith(".swap")
    indexes = (target for segment in here.segments for target in segment.indexes.values())
    left = {target.path for target in (*here.unfinished, *here.replaced)}
    for target in chain(indexes, here.beside()):
        length = facts.add_file(target.path)
        if target.path.endswith(".deleted"):
            facts.deleted += length
        elif target.path not in left:
            facts.others_size += length
        else:
            facts.unfinished += length
    return facts


def segments_of(place: PartitionDirectory) -> list[SegmentSummary]:
    """Return the segments according to the names of the files alone: their sizes are 0."""
    snapshots = {target.name_offset for target in place.snapshots}
    found = []
    segments = place.segments
    for number, segment in enumerate(segments):
        kinds = segment.index_kinds
        kinds_present = [
            kind.name for kind in (file_kinds.INDEX, file_kinds.TIME_INDEX, file_kinds.TXN_INDEX) if kind in kinds
        ]
        kinds_present += [file_kinds.PRODUCER_SNAPSHOT.name] if segment.offset in snapshots else []
        found.append(SegmentSummary(segment, 0, tuple(kinds_present), number == len(segments) - 1))
    return found


def occupied(partitions: Iterable[PartitionSummary], seen: set[tuple[int, int]] | None = None) -> int:
    """Return the bytes that the files of partitions occupy: a file with several names (hard links) counts once, and not
    if its device and inode are in `seen`, to which it is added."""
    seen = set() if seen is None else seen
    total = 0
    for part in partitions:
        total += part.on_disk + sum(size for file, size in part.linked.items() if file not in seen)
        seen.update(part.linked)
    return total


def log_end(
    partition: PartitionDirectory, clean: bool | None, problems: list[str], release: Release = newest
) -> int | None:
    """Return the log end offset: that after the last batch of the newest segment (`next_offset`). `clean`: whether its
    log directory was shut down cleanly. None if it cannot be read, or if there is no segment."""
    for segment in reversed(partition.segments):
        assert segment.log is not None
        try:
            window = open_window(segment.log)
            with closing(window.source):
                headers = summarize_headers(segment.log, window, quick=True)
            return next_offset(segment, headers, clean, release)
        except SourceError as error:
            problems.append(unread(error))
            if is_gone(error):  # a truncation removed it
                continue
            return None
    return None
