"""What `kdump.retention` answers. Timestamps are epoch ms, durations ms, sizes bytes; None: not known, or none."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import (
    BYTES,
    EPOCH_MS,
    FILE_BYTE,
    INLINE,
    NAME,
    OFFSET,
    PATH,
    TEXT,
    Doc,
    PathText,
    Shown,
    UnknownKeys,
    answer,
)
from kdump.problems.problem import Problem
from kdump.questions.partition_fields import KafkaVersion, PartitionNumber, SourcePath, TopicName
from kdump.questions.retention.configs import Setting
from kdump.questions.retention.remote_deletion import RemoteRetention
from kdump.state.unknown_offsets import CheckpointedOffsets, LogEndOffset, LogStartOffset

HELD, FREE, UNKNOWN = "held", "free", "unknown"
"""Verdicts. held: something is due, by what the configs say, and something else keeps it. free: nothing is kept but by
the configs. unknown: something could not be read, so that it cannot be told."""

FUTURE, OPEN, HANGING, WATERMARK, DAMAGED = (
    *("futureTimestamp", "openTransaction", "hangingTransaction", "highWatermark", "damage"),
)
TOO_LARGE, CLEANER, TIER, STRAY = "recordTooLarge", "cleanerDisabled", "tier", "stray"
MOVE, SHARE, OFFLINE = "move", "shareSnapshot", "directoryOffline"
HOLDS = (FUTURE, OPEN, HANGING, WATERMARK, DAMAGED, TOO_LARGE, CLEANER, TIER, STRAY, MOVE, SHARE, OFFLINE)
"""What keeps more than the configs require."""


def _segment_style(value: SegmentRetention) -> str:
    return {"held": "bad", "unknown": "torn", "now": "dim"}.get(value.deletion, "")


@answer("retentionSegment", _segment_style)
class SegmentRetention(NamedTuple):
    """A segment."""

    source: SourcePath
    topic: TopicName
    partition: PartitionNumber
    file: Annotated[PathText, Doc("path of the segment")]
    baseOffset: Annotated[int, Doc("base offset, from its name", OFFSET), Shown("base")]
    lastOffset: Annotated[
        int | None, Doc("last offset of its last valid batch; null if it has none", OFFSET), Shown("last", 5)
    ]
    isActive: Annotated[bool, Doc("whether it is the active segment")]
    size: Annotated[
        int, Doc("size, without zeros or an incomplete batch at the end of an active segment", BYTES), Shown("bytes", 7)
    ]
    batches: Annotated[int, Doc("number of valid batches")]
    records: Annotated[int, Doc("number of records in them"), Shown(rank=2)]
    largestTimestamp: Annotated[
        int | None,
        Doc("largest timestamp that a broker uses; null if the segment is unreadable", EPOCH_MS),
        Shown("largest timestamp"),
    ]
    timestampFrom: Annotated[
        str | None,
        Doc("its source: batch, timeIndex (the .timeindex differs), file (no record has a timestamp)"),
        Shown("from", 4),
    ]
    timestampPosition: Annotated[int | None, Doc("position of the batch with that timestamp", FILE_BYTE)]
    timestampOffset: Annotated[int | None, Doc("first offset of that batch", OFFSET)]
    deletion: Annotated[
        str, Doc("now, later, kept (no rule deletes it), held (due, but something blocks it), unknown"), Shown()
    ]
    deletionRule: Annotated[
        str | None, Doc("what deletes it: logStartOffset, or the name of a config"), Shown("by", 5, after="deletesAt")
    ]
    deletesAt: Annotated[
        int | None, Doc("time from which it is due, if nothing else changes", EPOCH_MS), Shown("due at", 8)
    ]
    deletesAfterBytes: Annotated[
        int | None,
        Doc("bytes that have to be written before retention.bytes deletes it", BYTES),
        Shown("or after bytes", 5),
    ]
    waitsFor: Annotated[
        int | None, Doc("base offset of the earlier segment that decides deletesAt", OFFSET), Shown("waits for", 4)
    ]
    blockedBy: Annotated[
        str | None,
        Doc(
            "future, highWatermark, tier, tierUnknown, damage, recordTooLarge, cleanerDisabled, move, "
            "directoryOffline; roll (the next check rolls it, so that it can be copied to remote storage); empty (the "
            "active segment, without batches)"
        ),
        Shown("kept by", 6),
    ]
    compaction: Annotated[str | None, Doc("clean, dirty, uncleanable; null if the topic is not compacted"), Shown()]
    uncleanableBecause: Annotated[
        tuple[str, ...],
        Doc("active, lastStableOffset (an open transaction), highWatermark, min.compaction.lag.ms"),
        Shown("because", 8),
    ]
    cleanableAt: Annotated[
        int | None,
        Doc("time from which it is cleanable; null if that does not depend on time", EPOCH_MS),
        Shown("cleanable at", 7),
    ]
    tombstones: Annotated[
        int | None,
        Doc("number of records without a value; null if not compacted or not counted"),
        Shown(rank=6, blank=0),
    ]
    tombstonesDue: Annotated[
        int | None, Doc("number of tombstones in batches whose delete horizon has passed"), Shown("due", 5, blank=0)
    ]
    markers: Annotated[
        int | None,
        Doc("number of control batches with a record; null if the topic is not compacted"),
        Shown(rank=5, blank=0),
    ]
    markersDue: Annotated[
        int | None, Doc("number of these whose delete horizon has passed"), Shown("markers due", 4, blank=0)
    ]
    emptyBatches: Annotated[
        int,
        Doc("number of empty batches that the cleaner keeps for their offsets and sequences"),
        Shown("empty", 2, blank=0),
    ]
    nextDeleteHorizonMs: Annotated[int | None, Doc("first delete horizon that has not passed", EPOCH_MS)]


@answer("retentionHold", lambda value: "bad" if value.isAgainstPolicy else "torn")
class RetentionBlocker(NamedTuple):
    """Something that keeps more than the configs require: one of HOLDS. `file`, `position` and `offset` are the
    evidence: the record with the timestamp, the first batch of the transaction, the damaged bytes."""

    source: Annotated[SourcePath, Shown("in", least=12, cuts=PATH)]
    topic: Annotated[TopicName, Shown(least=12, cuts=NAME)]
    partition: Annotated[PartitionNumber, Shown()]
    hold: Annotated[
        str,
        Doc(
            "futureTimestamp, openTransaction, hangingTransaction, highWatermark, damage, recordTooLarge, "
            "cleanerDisabled, tier, stray, move (to another log directory), shareSnapshot (a share partition whose "
            "last snapshot is old)"
        ),
        Shown(),
    ]
    isAgainstPolicy: Annotated[
        bool,
        Doc(
            "whether it keeps more than the configs require; false if the cleaner waits as intended, or a new segment "
            "for its copy to remote storage"
        ),
    ]
    keeps: Annotated[str, Doc("what it blocks: deletion or compaction"), Shown(rank=6)]
    segments: Annotated[int, Doc("number of segments that it keeps"), Shown()]
    bytes: Annotated[int, Doc("size of these segments", BYTES), Shown()]
    file: Annotated[PathText, Doc("path of the evidence")]
    message: Annotated[str, Doc("explanation", after="transactionalId"), Shown(rank=5, least=24, cuts=TEXT)]
    fix: Annotated[str | None, Doc("what you can do about it", after="message")]
    position: Annotated[
        int | None, Doc("position of the batch or the damaged bytes", FILE_BYTE, after="file"), Shown("at byte", 7)
    ] = None
    offset: Annotated[
        int | None,
        Doc(
            "offset of the record, first offset of the transaction, high watermark, or last offset in remote storage",
            OFFSET,
        ),
        Shown(),
    ] = None
    timestamp: Annotated[
        int | None, Doc("timestamp of the record, or start of the transaction", EPOCH_MS), Shown(rank=6)
    ] = None
    until: Annotated[
        int | None, Doc("time at which it ends by itself; null if the disk does not show one", EPOCH_MS), Shown(rank=8)
    ] = None
    producerId: Annotated[int | None, Doc("producer ID of the transaction")] = None
    transactionalId: Annotated[str | None, Doc("transactional ID, from __transaction_state")] = None
    problem: Problem | None = None


def _style(value: PartitionRetention) -> str:
    return {HELD: "bad", UNKNOWN: "torn"}.get(value.verdict, "")


@answer("retention", _style)
class PartitionRetention(NamedTuple):
    """A partition, after its segments and blockers. For the cleaner to select it, `dirtyRatio` has to be above
    min.cleanable.dirty.ratio, or `overdueAt` has to be reached."""

    source: Annotated[SourcePath, Shown("in", least=12, cuts=PATH)]
    topic: Annotated[TopicName, Shown(least=12, cuts=NAME)]
    partition: Annotated[PartitionNumber, Shown()]
    path: Annotated[PathText, Doc("partition directory, or the file that was passed")]
    state: Annotated[str, Doc("delete, future or stray for such a directory; otherwise empty")]
    verdict: Annotated[
        str,
        Doc("held (something keeps more than the configs require), free, unknown (something is unreadable)"),
        Shown(),
    ]
    cleanupPolicy: Annotated[str, Doc("delete, compact, both, or empty"), Shown("policy")]
    settings: Annotated[
        dict[str, Setting],
        Doc("by config {…}; source: option, topic, broker, cluster default, server.properties, default, assumed"),
    ]
    isConfigKnown: Annotated[bool, Doc("whether the topic's own configs were found")]
    segments: Annotated[int, Doc("number of segments"), Shown()]
    bytes: Annotated[int, Doc("size of all segments", BYTES), Shown()]
    deletableSegments: Annotated[int, Doc("number of segments that the next check deletes")]
    deletableBytes: Annotated[int, Doc("size of these segments", BYTES), Shown("due now", 8, blank=0)]
    heldSegments: Annotated[int, Doc("number of segments that are due, but blocked")]
    heldBytes: Annotated[int, Doc("size of these segments", BYTES), Shown("held", 8, blank=0)]
    nextDeletionAt: Annotated[
        int | None, Doc("time of the next deletion after the next check", EPOCH_MS), Shown("next due at", 7)
    ]
    stateLostAt: Annotated[
        int | None,
        Doc(
            "time from which retention deletes records that must stay: committed offsets, transactional IDs, schemas, "
            "Connect's, MirrorMaker's or state stores'; null for a topic that has none of these, or is only compacted",
            EPOCH_MS,
        ),
    ]
    stateLostBefore: Annotated[
        int | None,
        Doc("of such a topic: offset below which records that must stay were deleted; null if none were", OFFSET),
    ]
    logStartOffset: LogStartOffset
    logEndOffset: LogEndOffset
    highWatermark: Annotated[int | None, Doc("high watermark in replication-offset-checkpoint", OFFSET)]
    checkpointed: Annotated[CheckpointedOffsets, INLINE]
    lastStableOffset: Annotated[
        int | None, Doc("first offset of the oldest open transaction, or the log end offset", OFFSET)
    ]
    cleanerCheckpoint: Annotated[int | None, Doc("offset in cleaner-offset-checkpoint", OFFSET)]
    firstDirtyOffset: Annotated[
        int | None, Doc("offset from which the cleaner continues; null if the topic is not compacted", OFFSET)
    ]
    resetBecause: Annotated[str | None, Doc("why firstDirtyOffset differs from the checkpoint")]
    firstUncleanableOffset: Annotated[
        int | None, Doc("offset at which the cleaner stops; null if the topic is not compacted", OFFSET)
    ]
    cleanBytes: Annotated[
        int | None,
        Doc("size of segments below the first dirty offset; null if the topic is not compacted", BYTES),
        Shown("clean", 3),
    ]
    cleanableBytes: Annotated[
        int | None,
        Doc("size of segments between these two offsets; null if the topic is not compacted", BYTES),
        Shown("cleanable", 4),
    ]
    dirtyRatio: Annotated[
        float | None, Doc("cleanableBytes / (cleanBytes + cleanableBytes); null if both are 0"), Shown("dirty ratio", 6)
    ]
    wouldClean: Annotated[
        bool | None,
        Doc("whether the cleaner would clean the log now; null if the topic is not compacted"),
        Shown("would clean", 6),
    ]
    overdueAt: Annotated[
        int | None, Doc("time from which max.compaction.lag.ms applies, whatever the dirty ratio", EPOCH_MS)
    ]
    missingBytes: Annotated[
        int | None, Doc("bytes that have to become cleanable to reach the ratio; null if it is cleaned", BYTES)
    ]
    rollsAfter: Annotated[int | None, Doc("timestamp above which the next record rolls the active segment", EPOCH_MS)]
    tombstones: Annotated[
        int | None, Doc("number in all segments; null if not compacted or not counted"), Shown(rank=4, blank=0)
    ]
    tombstonesDue: Annotated[
        int | None, Doc("number of tombstones that the next cleaning removes"), Shown("due", 3, blank=0)
    ]
    tombstonesUnstamped: Annotated[
        int | None, Doc("number of tombstones without a delete horizon, which the next cleaning sets")
    ]
    markers: Annotated[
        int | None, Doc("number of transaction markers in all segments; null if the topic is not compacted")
    ]
    markersDue: Annotated[int | None, Doc("number of markers whose delete horizon has passed")]
    nextDeleteHorizonMs: Annotated[int | None, Doc("first delete horizon that has not passed", EPOCH_MS)]
    withoutHorizon: Annotated[
        int | None,
        Doc(
            "number of tombstones and markers that get no delete horizon (Kafka before 3.1; magic 0 and 1) and are not "
            "due: their segment has to be delete.retention.ms older than the last clean one; null if not compacted or "
            "not counted"
        ),
    ]
    kafkaVersion: KafkaVersion
    keys: Annotated[int | None, Doc("number of distinct keys in the dirty part; null if not read (--keys)")]
    keysFit: Annotated[bool | None, Doc("whether they all fit into the cleaner's map, so that one cleaning is enough")]
    cleanedRecords: Annotated[int | None, Doc("number of records that the next cleaning would read")]
    cleanedBytes: Annotated[int | None, Doc("their uncompressed size, without markers", BYTES)]
    droppedRecords: Annotated[int | None, Doc("number of `cleanedRecords` that it would remove")]
    droppedBytes: Annotated[int | None, Doc("their uncompressed size, without markers", BYTES)]
    remote: Annotated[RemoteRetention, INLINE]
    damages: Annotated[
        int | None,
        Doc("number of damaged byte ranges in all segments; null for a directory that was not read"),
        Shown("damaged", 5, blank=0),
    ]
    notes: Annotated[tuple[str, ...], Doc("other remarks")]
    unknown: UnknownKeys
