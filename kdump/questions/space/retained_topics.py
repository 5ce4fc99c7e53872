"""The live topics of a broker, and which of their segments retention deletes, from sizes and time indexes alone: `kdump
retention` reads every batch header instead, which takes too long on a full disk of a thousand partitions. And what the
log cleaner writes after a startup, before any space is freed.

The cleaner begins as soon as the broker has started. It writes the cleaned segments next to the old ones, which are
deleted file.delete.delay.ms (1 min) later: until then, cleaning a log can take up to the size of the segments that it
reads (LogCleanerManager.grabFilthiestCompactedLog, Cleaner.cleanSegments). If the disk is full before, the log
directory goes offline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

from kdump.cluster.disks import Node
from kdump.cluster.node_ids import node_ids
from kdump.cluster.remote_log import RemoteLog
from kdump.cluster.remote_mount import lineage_of
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.checkpoint_file import Offsets
from kdump.kafka.small_files import offsets
from kdump.log.log_directory import LogDirectory
from kdump.questions.retention.compaction import compaction
from kdump.questions.retention.configs import FOREVER, OPTION, ConfigOverrides, Setting, Settings
from kdump.questions.retention.configs import settings as settings_of
from kdump.questions.retention.deletion import LogFacts
from kdump.questions.retention.remote_deletion import NOTHING_REMOTE, RemoteRetention, remote_retention, total_of
from kdump.questions.space.usage import DirectoryUsage, PartitionUsage
from kdump.state.metadata_image import MetadataImage
from kdump.state.unknown_offsets import UNREADABLE

HOUR, DAY = 3_600_000, 86_400_000
AGES = (
    *(DAY * each for each in (730, 365, 180, 90, 60, 30, 21, 14, 7, 5, 3, 2, 1)),
    *(HOUR * each for each in (12, 6, 3, 2, 1)),
)
"""Values of retention.ms that are tried, in ms."""
SHARES = (0.75, 0.5, 0.25, 0.1)
"""Values of retention.bytes that are tried, as shares of the topic's largest partition."""
CHECKPOINTS = ("log-start-offset", "replication-offset", "cleaner-offset", "recovery-point-offset")


@dataclass
class RetainedTopic:
    """The live partitions of a topic, and its configs. `are_defaults_known`: whether the broker's server.properties
    was given."""

    name: str
    settings: Settings
    logs: list[PartitionUsage] = field(default_factory=list)
    are_defaults_known: bool = False

    def is_certain(self, *names: str) -> bool:
        """Return whether the values of these configs are those in force."""
        return self.settings.is_certain(*names, are_defaults_known=self.are_defaults_known)

    @property
    def is_unknown(self) -> bool:
        """Whether it depends on configs that are unknown what the broker deletes."""
        return not self.settings.is_known and not self.is_certain("cleanup.policy", "retention.ms")

    def may_be_removed(self, config: str = "retention.ms") -> bool:
        """Return whether segments may be removed by hand once they are due by `config`: not if what is in force is only
        assumed. A log directory does not contain the broker's own defaults."""
        return self.is_certain("cleanup.policy", config) and not self.settings.compacts and not self.settings.is_tiered

    @property
    def allocated(self) -> int:
        return sum(log.allocated for log in self.logs)

    @property
    def remote(self) -> RemoteRetention:
        return total_of(log.remote for log in self.logs)

    @property
    def stays_remote(self) -> bool:
        """Whether remote storage has what local.retention deletes: no local segment goes that was not copied."""
        return self.settings.is_tiered and not self.remote.remoteMissing

    def on(self, sources: frozenset[str]) -> RetainedTopic:
        """Return the topic with its partitions in these log directories."""
        return replace(self, logs=[log for log in self.logs if log.place.source in sources])

    def lower_values(self) -> Iterator[tuple[str, int, int]]:
        """Yield lower values with their configs and those in force, that of retention.ms first, the highest value
        first. None for a topic that only the log cleaner cleans."""
        if not self.settings.deletes and not (self.settings.is_tiered and not self.settings.compacts):
            return
        for what, values in (("ms", AGES), ("bytes", self._sizes())):
            current, config = self.settings.retention(what)
            if self.settings.is_tiered and not config.startswith("local."):
                config = f"local.{config}"  # it determines how long segments stay on this disk
            yield from ((config, value, current) for value in values if not 0 <= current <= value)

    def _sizes(self) -> Iterator[int]:
        largest = max(sum(segment.size for segment in log.segments) for log in self.logs)
        for share in SHARES:
            value = int(largest * share)
            unit = 1 << 30 if value >= 16 << 30 else 1 << 20
            if value >= unit:
                yield value // unit * unit


def with_value(settings: Settings, config: str, value: float) -> Settings:
    """Return the settings with another value of one config."""
    return replace(settings, values={**settings.values, config: Setting(value, OPTION)})


def retained_topics(
    broker: Node,
    usages: Sequence[DirectoryUsage],
    metadata: MetadataImage | None,
    given: ConfigOverrides,
    now: int,
    is_selected: Callable[[str], bool],
    run: Run,
    *,
    is_running: bool,
    missing: frozenset[str] | None = None,
) -> list[RetainedTopic]:
    """Return the topics, the largest first. A running broker has recovered its logs, and has written their indexes.
    `missing`: IDs of segments without an object in remote storage, None if unknown."""
    topics: dict[str, RetainedTopic] = {}
    problems: list[str] = []
    remote: RemoteLog | None = None
    moving = {log.key for usage in usages for log in usage.in_state("future")}
    for usage in usages:
        starts, marks, cleaned, points = (_checkpointed(usage.directory, name, problems) for name in CHECKPOINTS)
        directory_id = node_ids(usage.directory).get("directory.id")
        is_offline = metadata is not None and metadata.is_offline(broker.node_id, directory_id)
        for log in usage.live():
            name, number = log.key
            if not (is_selected(name) and log.segments):
                continue
            if name not in topics:
                own = settings_of(name, metadata, broker.node_id, given, was_cleaned=log.key in cleaned)
                topics[name] = RetainedTopic(name, own, are_defaults_known=bool(given.properties))
            described = metadata.topics.get(name) if metadata is not None else None
            end = None
            if topics[name].settings["remote.storage.enable"] and metadata is not None and described is not None:
                remote = remote or broker.remote_log(metadata, run.limits)
                end = remote.end_of(described.id, number)
                log.remote = _in_remote(log, remote, described.id, end, topics[name].settings, starts, now, missing)
            info = described.partitions.get(number) if described is not None else None
            # With one replica, the high watermark is the log end offset.
            mark = None if info is not None and len(info.replicas) == 1 else marks.get(log.key)
            point = None if is_running or usage.directory.is_clean else points.get(log.key, 0)
            for segment, after in zip_longest(log.segments, (later.baseOffset for later in log.segments[1:])):
                is_above = point is not None and (after is None or after > point)
                segment.recovers = is_above or not segment.is_indexed
            active = log.segments[-1]
            active.is_read = False
            start = max(starts.get(log.key) or 0, log.segments[0].baseOffset)
            log.facts = LogFacts(start, max(active.baseOffset, mark or 0), mark, None, now, end)
            log.cleaned, log.moves, log.waits = cleaned.get(log.key), log.key in moving, is_offline
            topics[name].logs.append(log)
    for problem in problems:
        run.unreadable(SourceError(problem))
    return sorted(topics.values(), key=lambda topic: (-topic.allocated, topic.name))


def _in_remote(
    log: PartitionUsage,
    remote: RemoteLog,
    topic_id: str,
    end: int | None,
    settings: Settings,
    starts: Offsets,
    now: int,
    missing: frozenset[str] | None,
) -> RemoteRetention:
    if end is None:
        return NOTHING_REMOTE
    number = log.key[1]
    start = remote.start_of(topic_id, number, starts.get(log.key))
    only_local = sum(segment.size for segment in log.segments if segment.baseOffset >= end)
    segments = remote.in_log(topic_id, number, lineage_of(log.place))
    return remote_retention(segments, only_local, settings, start, now, missing)[0]


def _checkpointed(directory: LogDirectory, name: str, problems: list[str]) -> Offsets:
    """Return the offsets in a checkpoint of the log directory."""
    listed, unknown = offsets(directory.files.get(f"{name}-checkpoint"))
    problems += [unknown.reason] if unknown and unknown.code == UNREADABLE else []
    return listed


class Cleaning(NamedTuple):
    """A partition that the cleaner cleans after a startup: at most how many bytes it writes, and to one segment.
    `is_postponable`: whether min.cleanable.dirty.ratio=1 prevents it."""

    topic: RetainedTopic
    log: PartitionUsage
    writes: int
    segment: int
    is_postponable: bool


def first_cleanings(topics: Iterable[RetainedTopic]) -> Iterator[Cleaning]:
    """Yield the partitions that the cleaner would clean, as far as sizes and configs show. One whose cleaning was
    interrupted is cleaned again."""
    for topic in topics:
        settings = topic.settings
        for log in topic.logs if settings.compacts and settings["log.cleaner.enable"] else ():
            state = compaction(log.segments, log.facts, settings, log.cleaned)
            # Whether max.compaction.lag.ms has passed is in the batches.
            is_overdue = settings["max.compaction.lag.ms"] < FOREVER and state.cleanableBytes > 0
            if state.is_taken or is_overdue or (".cleaned" in log.left and state.cleanableBytes):
                read = [segment.allocated for segment in log.segments if segment.baseOffset < state.stop]
                yield Cleaning(topic, log, sum(read), max(read, default=0), not is_overdue)


def room_for_cleanings(cleanings: Sequence[Cleaning], source: str) -> int:
    """Return what the cleaner writes in a log directory before it deletes anything: at least a segment in each of its
    threads, and all of what cannot be postponed."""
    here = [cleaning for cleaning in cleanings if cleaning.log.place.source == source]
    threads = max((cleaning.topic.settings["log.cleaner.threads"] for cleaning in here), default=1)
    segments = sorted((cleaning.segment for cleaning in here if cleaning.is_postponable), reverse=True)[:threads]
    return sum(segments) + sum(cleaning.writes for cleaning in here if not cleaning.is_postponable)
