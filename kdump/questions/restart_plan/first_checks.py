"""What the first retention checks after a startup delete.

Source: LogManager.startupWithConfigOverrides (kafka-log-retention after log.initial.task.delay.ms, then every
log.retention.check.interval.ms) and cleanupLogs; LogCleaner.CleanerThread.cleanFilthiestLog, which deletes the segments
of a log that is compacted, too; UnifiedLog.deleteOldSegments (4.3.1)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdump.check.rules.timestamps import other_unit, utc
from kdump.format.count_text import size_text
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.format.numbers import parse_int
from kdump.io import file_system
from kdump.kafka.log_segment import LogSegment
from kdump.kafka.server_properties import ServerProperties
from kdump.log.indexed_timestamp import indexed_timestamp
from kdump.log.internal_topics import COMPACTED_TOPICS
from kdump.log.live_files import SeenDirectory
from kdump.log.lock_holder import is_running
from kdump.problems.problem import Problem, title_of
from kdump.questions.restart_plan.answer import PartitionPlan
from kdump.questions.restart_plan.course import (
    CERTAIN,
    FIRST_CHECKS,
    HORIZON,
    MAY,
    Loss,
    Part,
    StartupEvent,
    UnansweredStep,
)
from kdump.questions.restart_plan.loading_events import kind_of
from kdump.questions.retention.configs import ConfigOverrides, Settings, settings
from kdump.questions.retention.deletion import LOG_START, NOW, LogFacts, due_now
from kdump.questions.retention.observed_segments import DiskSegment
from kdump.state.metadata_image import MetadataImage, PartitionRegistration

DELAY, DELAY_NAME = 30_000, "log.initial.task.delay.ms"
"""ms after the start at which retention runs for the first time; constant up to 3.7."""
WRITTEN_LAST = "replication-offset-checkpoint"
"""A broker writes it every 5 s (replica.high.watermark.checkpoint.interval.ms)."""
DEFAULTS = "log.retention.* and offsets.retention.minutes are Kafka's defaults where no file states them (--properties)"
WITHOUT_CONFIGS = "the configs of the topics are not on these disks"


def current_time() -> int:
    """Return the current time in epoch ms."""
    return round(time.time() * 1000)


@dataclass
class FirstChecks:
    """What retention deletes of the logs of a node. `now`: epoch ms at which the node starts, 0 for the current time;
    `metadata`: None if it is unknown, or does not count."""

    metadata: MetadataImage | None
    node: int | None
    server: ServerProperties | None
    now: int
    release: KafkaRelease = NEWEST
    assumes_defaults: bool = False
    """Whether a log depends on defaults of a configuration that was not given."""
    unknown: bool = False
    tiered: bool = False
    _settings: dict[object, Settings] = field(default_factory=dict)
    _stopped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = self.now or current_time()

    def of(self, log: PartitionPlan, segments: Sequence[LogSegment], seen: SeenDirectory) -> tuple[StartupEvent, ...]:
        """Return what is deleted of a live log, as it is loaded, within the hour."""
        if log.state or log.stray or log.stops or log.logEndOffset is None or log.logStartOffset is None:
            return ()
        configs = self._of_topic(log.topic)
        if not configs.deletes:
            return ()
        self.tiered |= configs.is_tiered
        self.unknown |= not configs.is_known
        given = bool(self.server)
        self.assumes_defaults |= not configs.is_certain("retention.ms", "retention.bytes", are_defaults_known=given)
        (ms, _), (size, _) = configs.retention("ms"), configs.retention("bytes")
        sized = [segment for segment in segments if segment.size or segment is segments[-1]]
        total = sum(segment.size for segment in sized)
        if not total or configs.is_tiered or not configs.is_known:
            return ()
        loaded = [self._segment(segment, seen) for segment in sized]
        is_old = ms >= 0 and self.now + HORIZON - loaded[0].timestamp > ms
        if not is_old and not 0 <= size <= total:
            return ()
        return self._due(log, loaded, sized, configs)

    def part(self) -> Part:
        """Return which steps are not answered."""
        steps = []
        if self.unknown:
            steps.append(UnansweredStep("retention", WITHOUT_CONFIGS))
        if self.tiered:
            steps.append(UnansweredStep("remoteStorage", "what is due in remote storage is not on these disks"))
        return Part(unanswered=tuple(steps))

    @property
    def assumption(self) -> str:
        """What the events of this hour take for granted."""
        return f"no client writes in the hour after the start{f', and {DEFAULTS}' if self.assumes_defaults else ''}"

    def _due(
        self, log: PartitionPlan, loaded: list[DiskSegment], segments: list[LogSegment], configs: Settings
    ) -> tuple[StartupEvent, ...]:
        assert log.logStartOffset is not None
        assert log.logEndOffset is not None
        facts = LogFacts(log.logStartOffset, log.logEndOffset, None, None, self.now)
        delay = self._delay if not configs.compacts else 0
        later = facts._replace(now=self.now + HORIZON)
        first, within = (self._number(loaded, at, configs) for at in (facts._replace(now=self.now + delay), later))
        before = self._number(loaded, facts._replace(now=self._stopped_at(log.source) + HORIZON), configs)
        fates = due_now(loaded, later, configs, self.release)[:within]
        fates = [fate for fate in fates if fate.deletionRule != LOG_START]
        end = loaded[within].baseOffset if within < len(loaded) else log.logEndOffset
        if not fates or end <= log.logStartOffset:
            return ()
        rule = fates[-1].deletionRule or ""
        deleted = loaded[within - len(fates) : within]
        has_zeros = any(segment.timestamp == 0 for segment in deleted)
        # A broker at work deletes at its next check what it has not loaded with other timestamps.
        is_emptied = within == len(loaded) and (has_zeros or not is_running(log.source))
        case = "all" if is_emptied else "routine" if before >= within else ""
        is_certain = configs.is_certain("cleanup.policy", rule, are_defaults_known=self.server is not None)
        gone = sum(segment.size for segment in deleted)
        newest = max(deleted, key=lambda segment: segment.timestamp)
        unit = other_unit(newest.timestamp, newest.modified)
        is_in = "" if unit is None else f", which read as {unit[0]} is {utc(unit[1])}"
        values = {
            "first": log.logStartOffset,
            "last": end - 1,
            "size": size_text(gone),
            "rule": f"{rule}={configs[rule]}",
            "source": configs.values[rule].source,
            "directory": log.path,
            "newest": utc(newest.timestamp) + is_in,
            "indexes": self._wrong_indexes(deleted, segments[within - len(fates) : within], configs),
        }
        known = {
            "ownConfig": rule in configs.own,
            "otherUnit": unit is not None,
            "timeIndexWrong": bool(values["indexes"]),
        }
        problem = Problem("startup-retention", values, known, case)
        replicas = self._replicas(log)
        elsewhere = None if replicas is None else tuple(each for each in replicas.replicas if each != self.node)
        loss = Loss(
            kind_of(log),
            CERTAIN if is_certain and not elsewhere else MAY,
            None,
            end - log.logStartOffset,
            gone,
            log.logStartOffset,
            end - 1,
            elsewhere,
        )
        due = delay if first == within or first else self._minutes_until(loaded[0], configs)
        event = StartupEvent(FIRST_CHECKS, problem, due, "", self.node, log.topic, log.partition, log.path)
        return (event if case == "routine" else event._replace(loss=loss),)

    def _wrong_indexes(
        self, deleted: list[DiskSegment], segments: list[LogSegment], configs: Settings
    ) -> dict[str, str]:
        """Return the .timeindex files for which segments are due that are not by the batches at their ends, with what
        shows it."""
        wrong = {}
        for loaded, segment in zip(deleted, segments):
            reached = segment.newest_at_end()
            if reached > loaded.timestamp and self.now + HORIZON - reached <= configs.retention("ms")[0]:
                index = f"{segment.stem}.timeindex"
                case = "empty" if indexed_timestamp(loaded.target) is None else ""
                values = {"index": index, "stamp": utc(loaded.timestamp), "reached": utc(reached)}
                wrong[index] = title_of("plan-time-index-wrong", case, **values)
        return wrong

    def _number(self, loaded: list[DiskSegment], facts: LogFacts, configs: Settings) -> int:
        return sum(fate.deletion == NOW for fate in due_now(loaded, facts, configs, self.release))

    def _minutes_until(self, segment: DiskSegment, configs: Settings) -> int:
        """Return the ms after the start from which the first segment is due."""
        ms = configs.retention("ms")[0]
        return max(self._delay, segment.timestamp + ms + 1 - self.now)

    @property
    def _delay(self) -> int:
        stated = None if self.server is None else parse_int(self.server.values.get(DELAY_NAME, ""))
        return DELAY if stated is None or stated < 0 else stated

    def _segment(self, segment: LogSegment, seen: SeenDirectory) -> DiskSegment:
        listed = seen.identities.get(os.path.basename(segment.target.path))
        modified = self.now if listed is None else listed.modified // 1_000_000
        if segment.rebuilt:
            modified = self.now if segment.newest is None else segment.newest
        return DiskSegment(segment.target, segment.size, modified, stamp=segment.newest)

    def _of_topic(self, topic: str) -> Settings:
        described = self.metadata.topics.get(topic) if self.metadata is not None else None
        own = () if described is None else tuple(described.configs.items())
        key = (described is not None, own, described is None and topic in COMPACTED_TOPICS)
        if key not in self._settings:
            properties = {} if self.server is None else self.server.values
            given = ConfigOverrides(properties=properties)
            self._settings[key] = settings(topic, self.metadata, self.node, given)
        return self._settings[key]

    def _replicas(self, log: PartitionPlan) -> PartitionRegistration | None:
        described = self.metadata.topics.get(log.topic) if self.metadata is not None else None
        return None if described is None else described.partitions.get(log.partition)

    def _stopped_at(self, directory: str) -> int:
        """Return when the broker last wrote: the metadata log has a record every 500 ms, and the checkpoints of a
        copy may have times of their own; now, if it runs."""
        if directory not in self._stopped and is_running(directory):
            self._stopped[directory] = self.now
        if directory not in self._stopped:
            try:
                modified = file_system.stat(os.path.join(directory, WRITTEN_LAST)).st_mtime_ns // 1_000_000
            except OSError:
                modified = self.now
            ended = self.metadata.end_time if self.metadata is not None else None
            self._stopped[directory] = min(modified, self.now, self.now if ended is None else ended)
        return self._stopped[directory]
