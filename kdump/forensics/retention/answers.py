"""What `kdump.retention` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: not known, or none."""

from __future__ import annotations

from typing import Any, NamedTuple

HELD, FREE, UNKNOWN = "held", "free", "unknown"
"""Verdicts. held: something is due, by what the configs say, and something else keeps it. free: nothing is kept but by
the configs. unknown: something could not be read, so that it cannot be told."""

FUTURE, OPEN, HANGING, WATERMARK, DAMAGED = (
    "futureTimestamp",
    "openTransaction",
    "hangingTransaction",
    "highWatermark",
    "damage",
)
CLEANER, TIER, STRAY = "cleanerDisabled", "tier", "stray"
HOLDS = (FUTURE, OPEN, HANGING, WATERMARK, DAMAGED, CLEANER, TIER, STRAY)
"""What keeps more than the configs would."""


class SegmentRetention(NamedTuple):
    """A segment.

    `largestTimestamp` is what a broker has for it, `timestampFrom` where from: batch (the record is at
    `timestampPosition`, in the batch whose first offset is `timestampOffset`), timeIndex, or file (no record has one).

    `deletion`: now, later, kept, held, unknown; `deletionRule` what takes it (logStartOffset, or the name of a config),
    `deletesAt` from when on it is due, `deletesAfterBytes` how much more has to be written before retention.bytes takes
    it, `waitsFor` the base offset of an earlier segment that has to go first, `blockedBy` what keeps it.

    `compaction`: clean, dirty, uncleanable, None where the topic is not compacted; `uncleanableBecause` why, and
    `cleanableAt` when that is over, where a time takes it away.

    `tombstones`, `markers`: how many, None where they were not looked for; `...Due` of them have a delete horizon that
    has passed, and go with the next cleaning; `nextDeleteHorizonMs` is the first horizon that has not passed.
    """

    source: str
    topic: str | None
    partition: int | None
    file: str
    baseOffset: int
    lastOffset: int | None
    isActive: bool
    size: int
    batches: int
    records: int
    largestTimestamp: int | None
    timestampFrom: str | None
    timestampPosition: int | None
    timestampOffset: int | None
    deletion: str
    deletionRule: str | None
    deletesAt: int | None
    deletesAfterBytes: int | None
    waitsFor: int | None
    blockedBy: str | None
    compaction: str | None
    uncleanableBecause: tuple[str, ...]
    cleanableAt: int | None
    tombstones: int | None
    tombstonesDue: int | None
    markers: int | None
    markersDue: int | None
    emptyBatches: int
    nextDeleteHorizonMs: int | None


class Hold(NamedTuple):
    """Something that keeps more than the configs would: one of HOLDS. `isAgainstPolicy`: it does so now; else it is
    what the cleaner waits for, as it should. `keeps`: deletion or compaction, of so many `segments` and `bytes`.

    `file`, `position` and `offset` are the evidence: the record with the timestamp, the first batch of the transaction,
    the damaged bytes. `timestamp` is the record's, or when the transaction began; `until` when it ends by itself."""

    source: str
    topic: str | None
    partition: int | None
    hold: str
    isAgainstPolicy: bool
    keeps: str
    segments: int
    bytes: int
    file: str
    position: int | None
    offset: int | None
    timestamp: int | None
    until: int | None
    producerId: int | None
    transactionalId: str | None
    message: str
    fix: str | None


class PartitionRetention(NamedTuple):
    """A partition, behind its segments and holds. `verdict`: held, free, unknown. `settings` has for each config its
    value and where it is from; `isConfigKnown`: whether the topic's own were found.

    Of the cleaner, None where the topic is not compacted: `firstDirtyOffset` (where it goes on; `resetBecause` why that
    is not what cleaner-offset-checkpoint says), `firstUncleanableOffset`, `cleanBytes` and `cleanableBytes`, whose
    `dirtyRatio` has to be above min.cleanable.dirty.ratio; `missingBytes` how much more has to become cleanable for
    that; `overdueAt` from when on max.compaction.lag.ms makes the ratio not matter; `wouldClean` whether the cleaner
    would take this log now; `rollsAfter` the timestamp above which a record rolls the active segment.

    Where the keys were read: of what a cleaning would go through (`cleanedRecords`) the records that it would drop, and
    their bytes as they are unpacked; `keys` are the different ones in the dirty part, and `keysFit` whether the
    cleaner's map takes them all, so that one cleaning is enough.
    """

    source: str
    topic: str | None
    partition: int | None
    path: str
    state: str
    verdict: str
    cleanupPolicy: str
    settings: dict[str, Any]
    isConfigKnown: bool
    segments: int
    bytes: int
    deletableSegments: int
    deletableBytes: int
    heldSegments: int
    heldBytes: int
    nextDeletionAt: int | None
    logStartOffset: int | None
    logEndOffset: int | None
    highWatermark: int | None
    lastStableOffset: int | None
    cleanerCheckpoint: int | None
    firstDirtyOffset: int | None
    resetBecause: str | None
    firstUncleanableOffset: int | None
    cleanBytes: int | None
    cleanableBytes: int | None
    dirtyRatio: float | None
    wouldClean: bool | None
    overdueAt: int | None
    missingBytes: int | None
    rollsAfter: int | None
    tombstones: int | None
    tombstonesDue: int | None
    tombstonesUnstamped: int | None
    markers: int | None
    markersDue: int | None
    nextDeleteHorizonMs: int | None
    keys: int | None
    keysFit: bool | None
    cleanedRecords: int | None
    droppedRecords: int | None
    droppedBytes: int | None
    damages: int
    notes: tuple[str, ...]
