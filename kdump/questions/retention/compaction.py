"""What the log cleaner does with a compacted log: what is clean, what it may clean, what it may not clean yet, and
whether it would clean this log now.

Source: org.apache.kafka.storage.internals.log.LogCleanerManager (cleanableOffsets, maxCompactionDelay,
calculateCleanableBytes, grabFilthiestCompactedLog), LogToClean and LogSegments.values of 4.3.1; for a log that it
cannot read, LogCleaner.CleanerThread (tryCleanFilthiestLog, cleanFilthiestLog: nothing more is cleaned or deleted).
What earlier releases do: LogCleaner.clean of 2.8.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.questions.retention.configs import FOREVER, Settings
from kdump.questions.retention.deletion import LogFacts
from kdump.questions.retention.observed_segments import ObservedSegment
from kdump.state.releases import CLEANS_BELOW_HIGH_WATERMARK, DELETE_HORIZON

CLEAN, DIRTY, UNCLEANABLE = "clean", "dirty", "uncleanable"
ACTIVE, LAG, STABLE, WATERMARK, DAMAGE = (
    *("active", "min.compaction.lag.ms", "lastStableOffset", "highWatermark", "damage"),
)
"""Reasons why the cleaner must not clean a segment."""


@dataclass
class CleaningState:
    """The cleaning state of a segment, as in SegmentRetention."""

    compaction: str | None
    uncleanableBecause: tuple[str, ...] = ()
    cleanableAt: int | None = None


NOT_CLEANED = CleaningState(None)


@dataclass
class Compaction:
    """The cleaning state of a log, as in PartitionRetention. `stop`: base offset of the segment that contains the first
    uncleanable offset.

    `cleanBytes` and `cleanableBytes` determine the ratio as in LogToClean: by segments, so that one with the first
    dirty offset in its middle counts in both. `is_overdue`: max.compaction.lag.ms has elapsed, as of `overdueAt`, and
    the ratio does not matter. `is_taken`: the cleaner would clean this log, if none is dirtier."""

    segments: list[CleaningState]
    cleanerCheckpoint: int | None
    firstDirtyOffset: int
    resetBecause: str | None
    firstUncleanableOffset: int
    stop: int
    cleanBytes: int
    cleanableBytes: int
    dirtyRatio: float | None
    is_overdue: bool
    overdueAt: int | None
    is_taken: bool
    missingBytes: int | None
    rollsAfter: int | None
    """None if the active segment is empty or has no timestamp."""
    wouldClean: bool = False


def compaction(
    segments: Sequence[ObservedSegment],
    log: LogFacts,
    settings: Settings,
    checkpoint: int | None,
    release: KafkaRelease = NEWEST,
) -> Compaction:
    """Return the cleaning state of the segments, of which there must be at least one; the last one is the active
    segment. `checkpoint`: the offset in cleaner-offset-checkpoint, None if it has none."""
    active = segments[-1]
    first_dirty, reset = _first_dirty(log, checkpoint)
    stable = log.last_stable if log.last_stable is not None else log.log_end
    if log.high_watermark is not None and CLEANS_BELOW_HIGH_WATERMARK.applies(release):
        stable = min(stable, log.high_watermark)
    lag = max(settings["min.compaction.lag.ms"], 0)
    dirty = _values(segments[:-1], active.baseOffset, first_dirty)
    young = next((segment for segment in dirty if lag and segment.timestamp > log.now - lag), None)
    bounds = [stable, active.baseOffset, *((young.baseOffset,) if young is not None else ())]
    first_uncleanable = max(first_dirty, min(bounds))
    from_stop = _values(segments[:-1], active.baseOffset, first_uncleanable)
    stop = from_stop[0].baseOffset if from_stop else active.baseOffset
    to_stop = _between(segments, min(first_dirty, stop), stop)
    cleanable = sum(segment.size for segment in to_stop)
    clean = sum(segment.size for segment in segments if segment.baseOffset < first_dirty)
    longest = max(settings["max.compaction.lag.ms"], 0)
    stamps = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    overdue_at = min(stamps) + longest + 1 if stamps and longest < FOREVER else None
    is_overdue = overdue_at is not None and overdue_at <= log.now
    total = clean + cleanable
    ratio = cleanable / total if total else None
    least = settings["min.cleanable.dirty.ratio"]
    taken = ratio is not None and ((is_overdue and cleanable > 0) or ratio > least)
    made = Compaction(
        segments=[],
        cleanerCheckpoint=checkpoint,
        firstDirtyOffset=first_dirty,
        resetBecause=reset,
        firstUncleanableOffset=first_uncleanable,
        stop=stop,
        cleanBytes=clean,
        cleanableBytes=cleanable,
        dirtyRatio=None if ratio is None else round(ratio, 6),
        is_overdue=is_overdue,
        overdueAt=overdue_at,
        is_taken=taken,
        missingBytes=None if taken else _missing(clean, cleanable, least),
        rollsAfter=active.first_timestamp + settings.longest_segment if active.first_timestamp >= 0 else None,
    )
    ripe = 0
    for number, segment in enumerate(segments):
        upper = segments[number + 1].baseOffset if number + 1 < len(segments) else log.log_end
        is_young = young is not None and segment.baseOffset >= young.baseOffset
        ripe = max(ripe, segment.timestamp + lag) if is_young else 0
        made.segments.append(_cleaning(segment, upper, made, log, stable, ripe if segment is not active else 0))
        if segment is active:
            made.segments[-1].uncleanableBecause = (ACTIVE,)
    return made


def settle_tombstones(
    segments: Sequence[ObservedSegment], compaction: Compaction, settings: Settings, release: KafkaRelease
) -> None:
    """Decide which tombstones and markers are due that have no delete horizon and get none."""
    has_horizons = DELETE_HORIZON.applies(release)
    horizon = segment_horizon(segments, compaction.firstDirtyOffset, settings)
    for segment in segments:
        for counts in (segment.tombstones, segment.markers):
            if counts is not None:
                counts.by_segment(is_due=segment.modified <= horizon, has_horizons=has_horizons)


def segment_horizon(segments: Sequence[ObservedSegment], first_dirty: int, settings: Settings) -> int:
    """Return the modification time (epoch ms) up to which a cleaning removes tombstones from a segment, if their
    batches have no delete horizon: delete.retention.ms before that of the last clean segment."""
    last = next((segment for segment in reversed(segments) if segment.baseOffset < first_dirty), None)
    return 0 if last is None else int(last.modified - settings["delete.retention.ms"])


def unreadable(segments: Sequence[ObservedSegment], compaction: Compaction) -> ObservedSegment | None:
    """Return the first segment that the cleaner would read and cannot; None if there is none, or nothing is dirty."""
    if not any(each.compaction == DIRTY for each in compaction.segments):
        return None
    pairs = zip(segments, compaction.segments)
    reached = (segment for segment, each in pairs if each.compaction in (CLEAN, DIRTY))
    return next((each for each in reached if each.damage is not None and not each.damage.is_readable), None)


def _first_dirty(log: LogFacts, checkpoint: int | None) -> tuple[int, str | None]:
    if checkpoint is None:
        return log.log_start, None
    if checkpoint < log.log_start:
        return log.log_start, f"{checkpoint} is below the log start offset {log.log_start}"
    if checkpoint > log.log_end:
        return log.log_start, f"{checkpoint} is above the log end offset {log.log_end}: everything counts as dirty"
    return checkpoint, None


def _values(rolled: Sequence[ObservedSegment], active: int, start: int) -> list[ObservedSegment]:
    """Return the rolled segments from the one that contains offset `start` on (nonActiveLogSegmentsFrom)."""
    return [] if start > active else _between(rolled, start, active)


def _between(segments: Sequence[ObservedSegment], start: int, stop: int) -> list[ObservedSegment]:
    """Return the segments from the one that contains offset `start` on whose base offset is below `stop`
    (LogSegments.values)."""
    if start == stop:
        return []
    floor = max((segment.baseOffset for segment in segments if segment.baseOffset <= start), default=start)
    return [segment for segment in segments if floor <= segment.baseOffset < stop]


def _missing(clean: int, cleanable: int, least: float) -> int | None:
    """Return the bytes missing for cleanable / (clean + cleanable) > least; None if no number of bytes is enough."""
    if least >= 1:
        return None
    return max(1, int(least * clean / (1 - least)) + 1 - cleanable)


def _cleaning(
    segment: ObservedSegment, upper: int, compaction: Compaction, log: LogFacts, stable: int, ripe: int
) -> CleaningState:
    """Return the state of a segment. `ripe`: epoch ms from which min.compaction.lag.ms allows cleaning it; 0: it does
    already."""
    if segment.baseOffset < compaction.stop:
        return CleaningState(CLEAN if upper <= compaction.firstDirtyOffset else DIRTY)
    because = []
    if stable < upper:
        is_watermark = log.last_stable is None or (log.high_watermark is not None and stable < log.last_stable)
        because.append(WATERMARK if is_watermark else STABLE)
    if ripe:
        because.append(LAG)
    return CleaningState(UNCLEANABLE, tuple(because), ripe if because == [LAG] else None)
