"""The live topics of a broker, and which of their segments retention deletes, from sizes and time indexes alone: `kdump
retention` reads every batch header instead, which takes too long on a full disk of a thousand partitions.

A broker takes the largest timestamp of a rolled segment from the last entry of its .timeindex, and from the file's
modification time without one (LogSegment.largestTimestamp). Of a segment that it recovers, it is that of the batches:
these are read only if the .timeindex is not as it was when the segment was rolled. The active segment is never counted:
a broker deletes it, too, once all its records are due, but not before it has rolled a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

from kdump.check.options import Options
from kdump.cluster.disks import Node
from kdump.cluster.node_ids import node_ids
from kdump.cluster.remote_log import RemoteLog
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.kafka.checkpoint_file import Offsets
from kdump.kafka.small_files import offsets
from kdump.log import file_kinds
from kdump.log.indexed_timestamp import complete_timestamp, indexed_timestamp
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import Target
from kdump.log.segment_summary import summarize_headers
from kdump.questions.retention.configs import ASSUMED, DEFAULT, OPTION, ConfigOverrides, Setting, Settings
from kdump.questions.retention.configs import settings as settings_of
from kdump.questions.retention.deletion import NOW, LogFacts, due_now
from kdump.questions.retention.observed_segments import ObservedSegment
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


class TimedSegment(ObservedSegment):
    """A rolled segment whose largest timestamp is determined when it is first needed. `recovers`: whether startup
    re-reads it."""

    _stamp: int | None = None

    @property
    def timestamp(self) -> int:
        if self._stamp is None:
            self._stamp = self._newest()
        return self._stamp

    def _newest(self) -> int:
        read = complete_timestamp if self.recovers else indexed_timestamp
        stamp = read(self.target) if self.size or not self.recovers else None
        if stamp is None and self.recovers:
            stamp = self._of_batches()
        return self.modified if stamp is None else stamp

    def _of_batches(self) -> int | None:
        """Return the largest timestamp of the batches; None if they have none, or cannot be read."""
        try:
            window = Options().open(self.target)
            with closing(window.source):
                newest = summarize_headers(self.target, window).newest
        except SourceError:
            return None
        return newest if newest is not None and newest >= 0 else None


class RetainedLog:
    """A live partition, for retention. `high_watermark` is the checkpointed one, None if that is unknown or the log has
    one replica. `remote_end`: see LogFacts. `recovery_point`: offset from which on startup recovers the log; None if it
    does not. `cleaned`: the offset in cleaner-offset-checkpoint. `waits`: retention and the cleaner leave it alone,
    because its log directory is offline."""

    def __init__(
        self,
        usage: PartitionUsage,
        facts: LogFacts,
        recovery_point: int | None = None,
        cleaned: int | None = None,
        *,
        moves: bool = False,
        waits: bool = False,
    ) -> None:
        self.usage = usage
        self.cleaned = cleaned
        self.moves, self.waits = moves, waits
        self.segments: list[ObservedSegment] = []
        place = usage.place
        for number, base in enumerate(usage.bases):
            path = f"{place.path}/{base:020}.log"
            target = Target(path, base, place.topic, place.partition, file_kinds.SEGMENT, place.source)
            segment = TimedSegment(target, base, usage.sizes[number], usage.times[number])
            after = usage.bases[number + 1] if number + 1 < len(usage.bases) else None
            is_above = recovery_point is not None and (after is None or after > recovery_point)
            segment.recovers = is_above or base in usage.unindexed
            self.segments.append(segment)
        active = self.segments[-1]
        active.is_read = False
        first = active.base if facts.high_watermark is None else facts.high_watermark
        self.facts = facts._replace(
            log_start=max(facts.log_start, self.segments[0].base), log_end=max(active.base, first)
        )
        self.goes = 0
        """Number of its first segments that go with the steps so far, by hand or by the broker."""
        self.removed = 0
        """Number of those that a step removes by hand."""

    def due(self, settings: Settings, later: int = 0) -> int:
        """Return how many of the first segments the next check deletes, or one that runs `later` ms from now; the
        active segment is not counted."""
        cleans = settings["log.cleaner.enable"]
        if self.waits or (self.moves and cleans) or (settings.compacts and not cleans):
            return 0
        found = due_now(self.segments, self.facts._replace(now=self.facts.now + later), settings)
        return min(sum(each.state == NOW for each in found), len(self.segments) - 1)

    def allocated(self, first: int, stop: int) -> int:
        """Return what the segments first..stop - 1 occupy, with their indexes and producer snapshots."""
        return sum(self.usage.allocs[first:stop])

    def start_after(self, count: int) -> int:
        """Return the log start offset after the first `count` segments are deleted."""
        return max(self.facts.log_start, self.segments[count].base)


@dataclass
class RetainedTopic:
    """The live partitions of a topic, and its configs. `are_defaults_known`: whether the broker's server.properties
    was given."""

    name: str
    settings: Settings
    logs: list[RetainedLog] = field(default_factory=list)
    are_defaults_known: bool = False

    def is_certain(self, *names: str) -> bool:
        """Return whether the values of these configs are those in force: given, the topic's own, or the default of a
        broker whose server.properties is known. If the topic's own are unknown, they may differ from any other."""
        sources = {self.settings.values[name].source for name in names}
        if not self.settings.is_known:
            return sources == {OPTION}
        return ASSUMED not in sources and (self.are_defaults_known or DEFAULT not in sources)

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
        return sum(log.usage.allocated for log in self.logs)

    def on(self, sources: frozenset[str]) -> RetainedTopic:
        """Return the topic with its partitions in these log directories."""
        return replace(self, logs=[log for log in self.logs if log.usage.place.source in sources])

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
        largest = max(sum(log.usage.sizes) for log in self.logs)
        for share in SHARES:
            value = int(largest * share)
            unit = 1 << 30 if value >= 16 << 30 else 1 << 20
            if value >= unit:
                yield value // unit * unit


def with_value(settings: Settings, config: str, value: float) -> Settings:
    """Return the settings with another value of one config."""
    return replace(settings, values={**settings.values, config: Setting(value, OPTION)})


def checkpointed(directory: LogDirectory, name: str, problems: list[str]) -> Offsets:
    """Return the offsets in a checkpoint of the log directory."""
    found, unknown = offsets(directory.files.get(f"{name}-checkpoint"))
    problems += [unknown.reason] if unknown and unknown.code == UNREADABLE else []
    return found


def retained_topics(
    broker: Node,
    usages: Iterable[DirectoryUsage],
    metadata: MetadataImage | None,
    given: ConfigOverrides,
    now: int,
    is_selected: Callable[[str], bool],
    run: Run,
    *,
    is_running: bool,
) -> list[RetainedTopic]:
    """Return the topics, the largest first. A running broker has recovered its logs, and has written their indexes."""
    topics: dict[str, RetainedTopic] = {}
    problems: list[str] = []
    remote: RemoteLog | None = None
    usages = list(usages)
    moving = {each.key for usage in usages for each in usage.in_state("future")}
    for usage in usages:
        starts, marks, cleaned, points = (checkpointed(usage.directory, name, problems) for name in CHECKPOINTS)
        directory_id = node_ids(usage.directory).get("directory.id")
        is_offline = metadata is not None and metadata.is_offline(broker.node_id, directory_id)
        for each in usage.live():
            if each.place.topic is None or each.place.partition is None or not each.bases:
                continue
            name, number = each.key
            if not is_selected(name):
                continue
            if name not in topics:
                own = settings_of(name, metadata, broker.node_id, given, was_cleaned=each.key in cleaned)
                topics[name] = RetainedTopic(name, own, are_defaults_known=bool(given.properties))
            described = metadata.topics.get(name) if metadata is not None else None
            end = None
            if topics[name].settings.is_tiered and metadata is not None:
                remote = remote or broker.remote_log(metadata, run.limits)
                end = remote.end_of(described.id if described else None, number)
            info = described.partitions.get(number) if described is not None else None
            # With one replica, the high watermark is the log end offset.
            mark = None if info is not None and len(info.replicas) == 1 else marks.get(each.key)
            point = None if is_running or usage.directory.is_clean else points.get(each.key, 0)
            facts = LogFacts(
                log_start=starts.get(each.key) or 0,
                log_end=0,
                high_watermark=mark,
                last_stable=None,
                now=now,
                remote_end=end,
            )
            moves = each.key in moving
            topics[name].logs.append(
                RetainedLog(each, facts, point, cleaned.get(each.key), moves=moves, waits=is_offline)
            )
    for text in problems:
        run.unreadable(SourceError(text))
    return sorted(topics.values(), key=lambda topic: (-topic.allocated, topic.name))
