"""What `kdump.retention` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: not known, or none."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.forensics.answers import PartitionNumber, SourcePath, TopicName
from kdump.forensics.retention.configs import Setting

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


@answer("retentionSegment")
class SegmentRetention(NamedTuple):
    """A segment."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    file: Annotated[PathText, Doc("the segment")]
    baseOffset: Annotated[int, Doc("as its name says", OFFSET)]
    lastOffset: Annotated[int | None, Doc("of its last sound batch; null: it has none", OFFSET)]
    isActive: Annotated[bool, Doc("whether it is the newest, which is written to")]
    size: Annotated[int, Doc("without zeros or half a batch at the end of an active segment", BYTES)]
    batches: Annotated[int, Doc("sound ones")]
    records: Annotated[int, Doc("in them")]
    largestTimestamp: Annotated[int | None, Doc("as a broker has it; null: the segment could not be read", EPOCH_MS)]
    timestampFrom: Annotated[
        str | None, Doc("batch, timeIndex (its .timeindex says otherwise), file (no record has one)")
    ]
    timestampPosition: Annotated[int | None, Doc("of the batch that has it", FILE_BYTE)]
    timestampOffset: Annotated[int | None, Doc("the first of that batch", OFFSET)]
    deletion: Annotated[
        str, Doc("now, later, kept (no rule takes it), held (it is due, and something keeps it), unknown")
    ]
    deletionRule: Annotated[str | None, Doc("what takes it: logStartOffset, or the name of a config")]
    deletesAt: Annotated[int | None, Doc("from when on it is due, nothing else happening", EPOCH_MS)]
    deletesAfterBytes: Annotated[
        int | None, Doc("so much more has to be written before retention.bytes takes it", BYTES)
    ]
    waitsFor: Annotated[int | None, Doc("base offset of the earlier segment that decides deletesAt", OFFSET)]
    blockedBy: Annotated[
        str | None,
        Doc(
            "future, highWatermark, tier, tierUnknown, damage, cleanerDisabled; roll: the next check rolls it, "
            "for the tier to copy it; empty: the active one, without a batch"
        ),
    ]
    compaction: Annotated[str | None, Doc("clean, dirty, uncleanable; null: the topic is not compacted")]
    uncleanableBecause: Annotated[
        tuple[str, ...], Doc("active, lastStableOffset (an open transaction), highWatermark, min.compaction.lag.ms")
    ]
    cleanableAt: Annotated[int | None, Doc("when that is over; null: no time takes it away", EPOCH_MS)]
    tombstones: Annotated[int | None, Doc("records without a value; null: not compacted, or not looked for")]
    tombstonesDue: Annotated[int | None, Doc("of them in batches whose delete horizon has passed")]
    markers: Annotated[int | None, Doc("control batches with a record; null: the topic is not compacted")]
    markersDue: Annotated[int | None, Doc("of them those whose delete horizon has passed")]
    emptyBatches: Annotated[int, Doc("batches that the cleaner has emptied, and keeps for their offsets and sequences")]
    nextDeleteHorizonMs: Annotated[int | None, Doc("the first delete horizon that has not passed", EPOCH_MS)]


@answer("retentionHold")
class Hold(NamedTuple):
    """Something that keeps more than the configs would: one of HOLDS. `file`, `position` and `offset` are the evidence:
    the record with the timestamp, the first batch of the transaction, the damaged bytes."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    hold: Annotated[
        str,
        Doc(
            "futureTimestamp, openTransaction, hangingTransaction, highWatermark, damage, cleanerDisabled, tier, stray"
        ),
    ]
    isAgainstPolicy: Annotated[bool, Doc("whether the configs would let it go; false: the cleaner waits as it should")]
    keeps: Annotated[str, Doc("from deletion or compaction")]
    segments: Annotated[int, Doc("how many it keeps")]
    bytes: Annotated[int, Doc("of them", BYTES)]
    file: Annotated[PathText, Doc("where the evidence is")]
    position: Annotated[int | None, Doc("of the batch, or of the damaged bytes", FILE_BYTE)]
    offset: Annotated[
        int | None, Doc("of the record, of the transaction's first, the high watermark, the tier's end", OFFSET)
    ]
    timestamp: Annotated[int | None, Doc("the record's; when the transaction began", EPOCH_MS)]
    until: Annotated[int | None, Doc("when it ends by itself; null: nothing on the disk says", EPOCH_MS)]
    producerId: Annotated[int | None, Doc("of the transaction")]
    transactionalId: Annotated[str | None, Doc("of the transaction, as __transaction_state has it")]
    message: Annotated[str, Doc("why it is kept")]
    fix: Annotated[str | None, Doc("what a person can do about it")]


@answer("retention")
class PartitionRetention(NamedTuple):
    """A partition, after its segments and holds. For the cleaner to take it, `dirtyRatio` has to be above
    min.cleanable.dirty.ratio, or `overdueAt` has to be reached."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    path: Annotated[PathText, Doc("the directory, or the file that was given")]
    state: Annotated[str, Doc("delete, future or stray for a directory of that kind; else empty")]
    verdict: Annotated[
        str, Doc("held (something is kept beyond the configs), free, unknown (something is not readable)")
    ]
    cleanupPolicy: Annotated[str, Doc("delete, compact, both, or empty")]
    settings: Annotated[
        dict[str, Setting],
        Doc("by config {…}: option, topic, broker, cluster default, server.properties, default, assumed"),
    ]
    isConfigKnown: Annotated[bool, Doc("whether the topic's own configs were found")]
    segments: Annotated[int, Doc("how many there are")]
    bytes: Annotated[int, Doc("of all", BYTES)]
    deletableSegments: Annotated[int, Doc("that the next check deletes")]
    deletableBytes: Annotated[int, Doc("of them", BYTES)]
    heldSegments: Annotated[int, Doc("that are due, and kept")]
    heldBytes: Annotated[int, Doc("of them", BYTES)]
    nextDeletionAt: Annotated[int | None, Doc("when the first segment goes that does not go now", EPOCH_MS)]
    logStartOffset: Annotated[int | None, Doc("by log-start-offset-checkpoint, else that of the first segment", OFFSET)]
    logEndOffset: Annotated[int | None, Doc("behind the last sound batch", OFFSET)]
    highWatermark: Annotated[int | None, Doc("as replication-offset-checkpoint has it", OFFSET)]
    lastStableOffset: Annotated[int | None, Doc("the first offset of an open transaction, else the log end", OFFSET)]
    cleanerCheckpoint: Annotated[int | None, Doc("as cleaner-offset-checkpoint has it", OFFSET)]
    firstDirtyOffset: Annotated[int | None, Doc("where the cleaner goes on; null: the topic is not compacted", OFFSET)]
    resetBecause: Annotated[str | None, Doc("why that is not what the checkpoint says")]
    firstUncleanableOffset: Annotated[
        int | None, Doc("up to where it may go; null: the topic is not compacted", OFFSET)
    ]
    cleanBytes: Annotated[
        int | None, Doc("of segments below the first dirty offset; null: the topic is not compacted", BYTES)
    ]
    cleanableBytes: Annotated[
        int | None, Doc("of segments between the two offsets; null: the topic is not compacted", BYTES)
    ]
    dirtyRatio: Annotated[float | None, Doc("cleanableBytes / (cleanBytes + cleanableBytes); null: both are 0")]
    wouldClean: Annotated[
        bool | None, Doc("whether the cleaner would take the log now; null: the topic is not compacted")
    ]
    overdueAt: Annotated[int | None, Doc("from when on max.compaction.lag.ms makes the ratio not matter", EPOCH_MS)]
    missingBytes: Annotated[
        int | None, Doc("so much more has to become cleanable for the ratio; null: it is taken", BYTES)
    ]
    rollsAfter: Annotated[int | None, Doc("the first record with a later timestamp rolls the active segment", EPOCH_MS)]
    tombstones: Annotated[int | None, Doc("of all segments; null: not compacted, or not looked for")]
    tombstonesDue: Annotated[int | None, Doc("that the next cleaning takes away")]
    tombstonesUnstamped: Annotated[int | None, Doc("that have no delete horizon: the next cleaning gives them one")]
    markers: Annotated[int | None, Doc("transaction markers of all segments; null: the topic is not compacted")]
    markersDue: Annotated[int | None, Doc("whose delete horizon has passed")]
    nextDeleteHorizonMs: Annotated[int | None, Doc("the first that has not passed", EPOCH_MS)]
    keys: Annotated[int | None, Doc("different ones in the dirty part; null: they were not read (--keys)")]
    keysFit: Annotated[bool | None, Doc("whether the cleaner's map takes them all, so that one cleaning is enough")]
    cleanedRecords: Annotated[int | None, Doc("that the next cleaning would go through")]
    droppedRecords: Annotated[int | None, Doc("of them those that it would drop")]
    droppedBytes: Annotated[int | None, Doc("of those, as they are unpacked; markers aside", BYTES)]
    damages: Annotated[int, Doc("damaged stretches in all segments")]
    notes: Annotated[tuple[str, ...], Doc("what else is to be said")]
