"""Which segments retention deletes now, which later, and which it cannot delete although they are eligible by
themselves.

Source: org.apache.kafka.storage.internals.log.UnifiedLog of 4.3.1: deleteOldSegments, deletableSegments,
deleteLogStartOffsetBreachedSegments, deleteRetentionSizeBreachedSegments, deleteRetentionMsBreachedSegments.

Each rule starts at the oldest segment and stops at the first one that it does not delete: a segment that is eligible by
itself waits for those before it. The active segment is deleted like the others (a new one is rolled before), unless it
is empty; a segment that extends above the high watermark is not deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kdump.cluster.remote_log import RemoteSegment
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.questions.retention.configs import Settings
from kdump.questions.retention.observed_segments import ObservedSegment
from kdump.state.releases import EMPTY_POLICY_OF_TIERED, STARTS_DELETION_AT_LOG_START

NOW, LATER, KEPT, HELD, UNKNOWN = "now", "later", "kept", "held", "unknown"
"""now: the next check deletes it. later: it is not eligible yet. kept: no rule deletes it under the current configs.
held: it is eligible, or would be, except for something outside the configs. unknown: something could not be read, or
the state of remote storage is unknown."""
LOG_START = "logStartOffset"
FUTURE = 3_600_000
"""A timestamp is in the future if it is more than this many ms after the current time: the default of
message.timestamp.after.max.ms."""


class LogFacts(NamedTuple):
    """Offsets of a partition, and `now` in epoch ms. `high_watermark` and `last_stable` are None if unknown;
    `remote_end` is the last offset in remote storage (-1: nothing), None if unknown; `copying`: the copy of later ones
    that has begun."""

    log_start: int
    log_end: int
    high_watermark: int | None
    last_stable: int | None
    now: int
    remote_end: int | None = None
    copying: RemoteSegment | None = None


@dataclass
class Deletion:
    """What happens to a segment, in the fields of SegmentRetention. `by`: number of the segment that it waits for;
    `blocked`: highWatermark, future, tier, tierUnknown, damage, recordTooLarge, cleanerDisabled, roll (the active
    segment is copied to remote storage after it is rolled, which the next check does), or empty."""

    deletion: str
    deletionRule: str | None = None
    deletesAt: int | None = None
    deletesAfterBytes: int | None = None
    by: int | None = None
    blocked: str = ""


def stopped(deletions: list[Deletion], why: str) -> None:
    """Mark the segments that would be deleted now as held, because of `why`: the cleaner threads delete the segments of
    a compacted log, and they do not process this one."""
    for deletion in deletions:
        if deletion.deletion == NOW:
            deletion.deletion, deletion.blocked = HELD, why


def deletions(
    segments: Sequence[ObservedSegment], log: LogFacts, settings: Settings, release: KafkaRelease = NEWEST
) -> list[Deletion]:
    """Return what happens to each segment, in order."""
    return _Retention(segments, log, settings, release).run()


def due_now(
    segments: Sequence[ObservedSegment], log: LogFacts, settings: Settings, release: KafkaRelease = NEWEST
) -> list[Deletion]:
    """Return what the next retention check deletes, as `deletions` does, without what happens to the others (KEPT). The
    timestamp of a segment is read only if all segments before it are deleted."""
    rules = _Retention(segments, log, settings, release)
    rules.apply()
    return rules.found


class _Retention:
    def __init__(
        self, segments: Sequence[ObservedSegment], log: LogFacts, settings: Settings, release: KafkaRelease
    ) -> None:
        self.segments, self.log = segments, log
        self.found = [Deletion(KEPT) for _ in segments]
        self.first = 0
        """Number of the first segment that is not deleted."""
        # With an empty cleanup.policy, local retention still applies to a tiered log.
        is_local = not settings.compacts and settings.is_tiered and EMPTY_POLICY_OF_TIERED.applies(release)
        self.deletes = settings.deletes or is_local
        self.starts_at_log_start = STARTS_DELETION_AT_LOG_START.applies(release)
        self.ms, self.ms_name = settings.retention("ms") if self.deletes else (-1, "retention.ms")
        self.bytes, self.bytes_name = settings.retention("bytes") if self.deletes else (-1, "retention.bytes")
        self.is_tiered = settings.is_tiered

    def run(self) -> list[Deletion]:
        self.apply()
        self._mark_kept()
        return self.found

    def apply(self) -> None:
        """Apply the rules in the broker's order."""
        steps = [self._log_start, self._by_size, self._by_time]
        if not self.starts_at_log_start:
            steps = [self._by_time, self._by_size, self._log_start]
        for step in steps:
            step()

    def _upper(self, number: int) -> int:
        """Return the offset after a segment."""
        return self.segments[number + 1].baseOffset if number + 1 < len(self.segments) else self.log.log_end

    def _blocked(self, number: int) -> str:
        """Return what blocks the deletion of a segment; empty if nothing does."""
        segment, upper = self.segments[number], self._upper(number)
        if number + 1 == len(self.segments) and not segment.size:
            return "empty"
        if self.log.high_watermark is not None and self.log.high_watermark < upper:
            return "highWatermark"
        if self.is_tiered and self.log.log_start < upper:
            if self.log.remote_end is None:
                return "tierUnknown"
            if self.log.remote_end < upper - 1:
                return "tier"
        return ""

    def _delete_first(self, rule: str) -> bool:
        """Delete the first segment that is left by this rule. Return False if something blocks it."""
        if self._blocked(self.first):
            return False
        self.found[self.first] = Deletion(NOW, rule)
        self.first += 1
        return True

    def _log_start(self) -> None:
        while self.first + 1 < len(self.segments) and self._upper(self.first) <= self.log.log_start:
            if not self._delete_first(LOG_START):
                return

    def _by_size(self) -> None:
        size = sum(segment.size for segment in self.segments[self.first :])
        if self.bytes < 0 or size < self.bytes:
            return
        over = size - self.bytes
        while self.first < len(self.segments) and over - self.segments[self.first].size >= 0:
            over -= self.segments[self.first].size
            if not self._delete_first(self.bytes_name):
                return

    def _by_time(self) -> None:
        if self.ms < 0:
            return
        while self.first < len(self.segments):
            segment = self.segments[self.first]
            if not segment.is_read or not self._is_old(segment) or not self._delete_first(self.ms_name):
                return

    def _is_old(self, segment: ObservedSegment) -> bool:
        return self.log.now - segment.timestamp > self.ms

    def _mark_kept(self) -> None:
        """Set what happens to the segments that the rules have left, and why."""
        eligible_at: int | None = None
        by: int | None = None
        unread = False
        blocker: int | None = None
        total = sum(segment.size for segment in self.segments[self.first :])
        above = 0
        for number in range(self.first, len(self.segments)):
            segment, deletion = self.segments[number], self.found[number]
            above += segment.size
            if self.bytes >= 0 and number + 1 < len(self.segments):
                deletion.deletesAfterBytes = max(1, above + self.bytes - total) if above + self.bytes > total else 0
            blocked = self._blocked(number)
            if blocked == "empty" or (self.ms < 0 and self.bytes < 0 and self._upper(number) > self.log.log_start):
                deletion.blocked = blocked
                continue
            unread = unread or not segment.is_read
            if unread:
                deletion.deletion = UNKNOWN
                continue
            due = self._due(number, above, total)
            if self.ms >= 0:
                own = segment.timestamp + self.ms + 1
                if eligible_at is None or own > eligible_at:
                    eligible_at, by = own, number
                deletion.deletesAt, deletion.deletionRule = eligible_at, self.ms_name
                deletion.by = by if by != number else None
            deletion.deletion = LATER if self.ms >= 0 or deletion.deletesAfterBytes is not None else KEPT
            if blocker is None and self.ms >= 0 and segment.timestamp > self.log.now + FUTURE and not due:
                blocker, deletion.blocked, deletion.deletion = number, "future", HELD
            elif blocked and (due or (self.ms >= 0 and eligible_at is not None and eligible_at <= self.log.now)):
                deletion.deletion = UNKNOWN if blocked == "tierUnknown" else HELD
                deletion.blocked, deletion.deletionRule = blocked, due or self.ms_name
                if blocked.startswith("tier") and number + 1 == len(self.segments):
                    deletion.deletion, deletion.blocked = LATER, "roll"  # only rolled segments are copied
            elif blocker is not None and self.ms >= 0 and self._is_old(segment):
                deletion.deletion, deletion.blocked, deletion.by = HELD, "future", blocker

    def _due(self, number: int, above: int, total: int) -> str:
        """Return the rule that would delete a segment if nothing blocked it; empty if there is none."""
        if number + 1 < len(self.segments) and self._upper(number) <= self.log.log_start:
            return LOG_START
        if self.bytes >= 0 and total - self.bytes - above >= 0:
            return self.bytes_name
        return ""
