"""A log directory at a glance: whose it is, how its broker ended, what is in each partition and how much of the disk
that takes. Names and sizes come first, from the directories alone; headers are read partition by partition."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kdump.log import kinds
from kdump.log.disk import REMOTE_CACHE, LogDirectory, Partition, Segment
from kdump.log.entries import Entry, entries
from kdump.log.errors import SourceError
from kdump.log.headers import Headers, Met, read_headers
from kdump.log.paths import Target
from kdump.log.region import TORN
from kdump.log.source import FileSource, open_source
from kdump.log.window import Window

Open = Callable[[Target], Window]


def open_window(at: Target) -> Window:
    """Raises SourceError."""
    return Window(open_source(at.path))


def read_entries(at: Target, open_: Open = open_window) -> list[Entry]:
    """The entries of a small file that can be read: none of one that cannot, for `kdump verify` says why."""
    if at.kind is None:
        return []
    try:
        window = open_(at)
    except SourceError:
        return []
    try:
        return [item for item in entries(at.kind, window, 0) if isinstance(item, Entry) and item.type]
    except SourceError:
        return []
    finally:
        window.source.close()


def properties(at: Target | None, open_: Open = open_window) -> dict[str, str]:
    """The name=value lines of meta.properties, or the members of .kafka_cleanshutdown; empty without the file."""
    return {entry.values["name"]: entry.values["value"] for entry in read_entries(at, open_)} if at else {}


@dataclass
class SegmentFacts:
    """A segment and the files of its name. `size` is the length of the .log in bytes; `error` says why its headers
    could not be read (None of them is then in `headers`), `gone` that it went away meanwhile."""

    segment: Segment
    size: int
    beside: tuple[str, ...]
    """Names of the kinds of file beside it: index, timeindex, txnindex, snapshot."""
    last: bool
    headers: Headers = field(default_factory=Headers)
    error: str = ""
    gone: bool = False
    grows: bool = False
    """It became longer while it was read: a broker writes to it."""

    @property
    def end(self) -> int:
        """The offset behind the last batch; the one in the name if there is none."""
        return self.segment.offset if self.headers.last is None else self.headers.last + 1


@dataclass
class PartitionFacts:
    """A partition's directory. Sizes are lengths in bytes: `size` of the segments, `beside` of their indexes and all
    other live files, `deleted` of .deleted files, `unfinished` of .swap and .cleaned ones; `on_disk` is what all of
    them occupy, preallocated and sparse files counted as they are. Offsets of the checkpoints are None where those do
    not name the partition, and in a directory that is not live."""

    partition: Partition
    segments: list[SegmentFacts]
    size: int = 0
    beside: int = 0
    deleted: int = 0
    unfinished: int = 0
    on_disk: int = 0
    checkpoints: dict[str, int] = field(default_factory=dict)
    """By the file's name less '-checkpoint': log-start-offset, replication-offset, recovery-point-offset."""
    clean: bool | None = None
    headers: Headers = field(default_factory=Headers)
    was_read: bool = False

    @property
    def name(self) -> str:
        """topic-partition, as the directory has it."""
        return self.partition.name

    @property
    def topic(self) -> str:
        """The topic; the directory's name where that is none of a partition, as in a tier."""
        return self.partition.topic or self.partition.name

    @property
    def log_start(self) -> int | None:
        """Where a consumer may begin: the checkpoint's offset, or the first segment's if that is higher
        (UnifiedLog.logStartOffset). None without segments."""
        first = self.segments[0].segment.offset if self.segments else None
        noted = self.checkpoints.get("log-start-offset")
        # A tier holds what is below the first segment here.
        return first if noted is None else noted if first is None else max(first, noted)

    @property
    def log_end(self) -> int | None:
        """The offset that the next record gets; None while the last segment has not been read."""
        return self.segments[-1].end if self.was_read and self.segments and not self.segments[-1].error else None

    @property
    def high_watermark(self) -> int | None:
        """As of the last checkpoint: what is in the log behind it may not be replicated."""
        return self.checkpoints.get("replication-offset")

    @property
    def offsets(self) -> int | None:
        """How many offsets there are from log start to log end."""
        start, end = self.log_start, self.log_end
        return None if start is None or end is None else max(0, end - start)

    @property
    def errors(self) -> list[str]:
        return [*self.partition.refused, *(segment.error for segment in self.segments if segment.error)]

    @property
    def damage(self) -> str:
        """What the headers show of damage that a start of the broker does not mend by itself; empty if none."""
        for segment in self.segments:
            found = segment_damage(segment, self.clean)
            if found:
                return found
        return ""

    def read(self, *, quick: bool = False, met: Met = lambda count: None, open_: Open = open_window) -> None:
        """Read the headers of all segments, one after the other. Never raises SourceError: see `errors`."""
        for segment in self.segments:
            _read_segment(segment, quick, met, open_)
            self.headers.add(segment.headers)
        self.segments = [segment for segment in self.segments if not segment.gone]
        self.was_read = True


def segment_damage(segment: SegmentFacts, clean: bool | None) -> str:
    """Where a segment's first damage is. Its end may be torn or padded where a broker that did not shut down cleanly
    (`clean` is not true) cuts that off when it starts: in the last segment."""
    headers = segment.headers
    if headers.damage or (segment.last and not clean) or not headers.tail:
        return headers.damage
    size = headers.torn if headers.tail == TORN else headers.padding
    return f"{size} bytes of {'a torn batch' if headers.tail == TORN else 'zeros'} at the end"


def _read_segment(facts: SegmentFacts, quick: bool, met: Met, open_: Open) -> None:
    at = facts.segment.log
    assert at is not None
    try:
        window = open_(at)
    except SourceError as error:
        facts.gone = not os.path.lexists(at.path)
        facts.error = "" if facts.gone else str(error)
        return
    try:
        facts.headers = read_headers(at, window, quick=quick, met=met)
        source = window.source
        facts.error = source.error or ""
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


def partition_facts(place: Partition, clean: bool | None = None) -> PartitionFacts:
    """What names and sizes tell of a partition's directory."""
    snapshots = {at.name_offset for at in place.snapshots}
    facts = PartitionFacts(place, [], clean=clean)
    for number, segment in enumerate(place.segments):
        assert segment.log is not None
        beside = [kind.name for kind in (kinds.INDEX, kinds.TIME_INDEX, kinds.TXN_INDEX) if kind in segment.beside]
        beside += [kinds.PRODUCER_SNAPSHOT.name] if segment.offset in snapshots else []
        last = number == len(place.segments) - 1
        facts.segments.append(SegmentFacts(segment, 0, tuple(beside), last))
    logs = {facts_of.segment.log: facts_of for facts_of in facts.segments}
    others, unfinished = set(place.others), set(place.unfinished)
    for at in place.files():
        length, occupied = _sizes(at.path)
        facts.on_disk += occupied
        if at in logs:
            logs[at].size = length
            facts.size += length
        elif at in unfinished:
            facts.unfinished += length
        elif at in others and at.path.endswith(".deleted"):
            facts.deleted += length
        else:
            facts.beside += length
    return facts


def _sizes(path: str) -> tuple[int, int]:
    """Length, and bytes that it occupies; nothing of a file that is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, getattr(status, "st_blocks", 0) * 512


@dataclass
class DirectoryFacts:
    """A log directory. `identity` is what meta.properties says; `clean` whether its broker shut down cleanly, None for
    a directory that has no checkpoints: a controller's, or a copy of partitions."""

    directory: LogDirectory
    identity: dict[str, str]
    partitions: list[PartitionFacts]
    clean: bool | None
    shutdown: dict[str, str]
    """What .kafka_cleanshutdown says: version, brokerEpoch."""
    dated: int | None
    """When .kafka_cleanshutdown was written, or, without it, the newest checkpoint: epoch ms of the file. A copy that
    did not keep times has its own."""
    absent: list[str]
    """Live partitions that the checkpoints name and that are not here."""
    remote_cache: int
    """Bytes of the copies of a tier's indexes."""

    @property
    def live(self) -> list[PartitionFacts]:
        return [facts for facts in self.partitions if not facts.partition.state]


CHECKPOINTS = ("log-start-offset", "replication-offset", "recovery-point-offset")


def directory_facts(directory: LogDirectory) -> DirectoryFacts:
    """What the files at the root, and names and sizes below it, tell of a log directory."""
    files = directory.files
    noted: dict[tuple[str, int], dict[str, int]] = {}
    for name in CHECKPOINTS:
        at = files.get(name + "-checkpoint")
        for values in (entry.values for entry in read_entries(at)) if at else ():
            noted.setdefault((values["topic"], values["partition"]), {})[name] = values["offset"]
    # Only a broker that has run has these; without them nothing is known of how it ended.
    ran = any(at.kind in (kinds.OFFSET_CHECKPOINT, kinds.CLEAN_SHUTDOWN) for at in files.values())
    clean = directory.is_clean if ran else None
    partitions = []
    for place in directory.partitions:
        # The metadata log is recovered at every start (KafkaRaftLog).
        facts = partition_facts(place, False if place.topic == "__cluster_metadata" else clean)
        if not place.state:
            facts.checkpoints = noted.pop((place.topic or "", place.partition or 0), {})
        partitions.append(facts)
    return DirectoryFacts(
        directory,
        properties(files.get("meta.properties")),
        partitions,
        clean,
        properties(files.get(".kafka_cleanshutdown")),
        _dated(directory),
        sorted(f"{topic}-{partition}" for topic, partition in noted),
        sum(_sizes(path)[0] for path in _below(os.path.join(directory.path, REMOTE_CACHE))),
    )


def _dated(directory: LogDirectory) -> int | None:
    marks = [at for name, at in directory.files.items() if name == ".kafka_cleanshutdown"]
    marks = marks or [at for at in directory.files.values() if at.kind is kinds.OFFSET_CHECKPOINT]
    times = []
    for at in marks:
        try:
            times.append(os.stat(at.path).st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=None)


def _below(directory: str) -> Iterator[str]:
    for path, _, names in os.walk(directory):
        yield from (os.path.join(path, name) for name in names)
