"""What `kdump diff` answers: differences between two copies, and what all copies of a partition amount to."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.forensics.copy_facts import Epoch


class ComparedRecord(NamedTuple):
    """A record of one copy."""

    timestamp: int | None
    sequence: int | None
    producerId: int | None
    producerEpoch: int | None
    isTransactional: bool | None
    isControlBatch: bool | None
    keySize: int
    valueSize: int


class SampleRecord(NamedTuple):
    """A record that differs between two copies."""

    offset: int
    fields: tuple[str, ...]
    left: ComparedRecord
    right: ComparedRecord


@answer("difference")
class CopyDifference(NamedTuple):
    """A difference between two copies."""

    topic: Annotated[str | None, Doc("null for files whose directory names none")]
    partition: Annotated[int | None, Doc("of the topic")]
    kind: Annotated[
        str,
        Doc(
            "records (they say something else), missing (one has none, and nothing explains it), damage; and "
            "what does not make copies divergent: cleaned (the log cleaner has been there), rewritten (the same "
            "records in other batches), leaderEpoch (the same batch but that field), damagedAlike (both, byte "
            "for byte), unread (one could not be read), unknown (both damaged, not alike)"
        ),
    ]
    isDivergence: Annotated[bool, Doc("whether it makes the copies divergent: records, missing, damage")]
    left: Annotated[PathText, Doc("path of the one copy")]
    right: Annotated[PathText, Doc("path of the other")]
    lacking: Annotated[PathText | None, Doc("path of the copy that has not got the records; null: both, or neither")]
    offset: Annotated[int, Doc("the first", OFFSET)]
    lastOffset: Annotated[int, Doc("the last; what lies between may be the same, but for a run of partings", OFFSET)]
    records: Annotated[int, Doc("records that differ, are lacking, or stand in other batches")]
    batches: Annotated[int, Doc("of leaderEpoch: how many")]
    fields: Annotated[tuple[str, ...], Doc("what records say otherwise; of rewritten, in what the batches differ")]
    leftFile: Annotated[PathText | None, Doc("where the first of them stands, or the damage; null: nowhere")]
    leftPosition: Annotated[int | None, Doc("where that batch, or the damage, begins", FILE_BYTE)]
    rightFile: Annotated[PathText | None, Doc("the same in the other copy")]
    rightPosition: Annotated[int | None, Doc("the same in the other copy", FILE_BYTE)]
    reason: Annotated[str, Doc("what is damaged, or what shows that the cleaner was there")]
    samples: Annotated[
        list[SampleRecord],
        Doc(
            "the first records that differ: {…}; left and right have timestamp, "
            "sequence, producerId, producerEpoch, isTransactional, isControlBatch, keySize and valueSize"
        ),
    ]


class EpochThere(NamedTuple):
    """The leader epoch of a copy at the first divergent offset."""

    path: PathText
    leaderEpoch: int | None
    checkpointEpoch: int | None


class ComparedPair(NamedTuple):
    """Two copies, compared."""

    left: Annotated[PathText, Doc()]
    right: Annotated[PathText, Doc()]
    relation: Annotated[str | None, Doc()]
    prefix: Annotated[PathText | None, Doc("path of the shorter one, or null")]
    firstDivergentOffset: Annotated[int | None, Doc()]
    recordsAlike: Annotated[int, Doc()]
    moreDifferences: Annotated[int, Doc("that are counted and not told")]


class FollowerTruncation(NamedTuple):
    """What a copy drops if it follows another."""

    leader: PathText
    follower: PathText
    offset: int | None
    loses: int | None
    by: str
    mends: bool | None


class EpochStart(NamedTuple):
    """The first batch of a leader epoch in a copy."""

    epoch: int
    startOffset: int
    file: PathText
    position: int


class CopyDamage(NamedTuple):
    """Bytes of a copy that are not a valid batch."""

    kind: str
    file: PathText
    position: int
    size: int
    reason: str


class ComparedCopy(NamedTuple):
    """A copy of the partition."""

    path: Annotated[PathText, Doc()]
    logStartOffset: Annotated[int, Doc()]
    logEndOffset: Annotated[int, Doc("behind the last sound batch")]
    highWatermark: Annotated[int | None, Doc()]
    topicId: Annotated[str | None, Doc()]
    segments: Annotated[int, Doc()]
    epochs: Annotated[list[Epoch] | None, Doc("of leader-epoch-checkpoint: {…}; null without it")]
    batchEpochs: Annotated[list[EpochStart], Doc("{…}: the first batch of each")]
    recordsBehind: Annotated[int | None, Doc("records from where histories part; null: they do not")]
    newestBehind: Annotated[int | None, Doc("their newest timestamp")]
    damage: Annotated[list[CopyDamage], Doc("{…}")]
    damagedPlaces: Annotated[int, Doc()]
    tail: Annotated[CopyDamage | None, Doc("torn or padding: how it ends")]
    compacted: Annotated[str, Doc("what shows that; empty: nothing")]
    unread: Annotated[list[PathText], Doc()]
    notes: Annotated[list[PathText], Doc()]


@answer("diff")
class PartitionDiff(NamedTuple):
    """All copies of a partition together."""

    topic: Annotated[str | None, Doc("null for files whose directory names none")]
    partition: Annotated[int | None, Doc("of the topic")]
    relation: Annotated[
        str | None,
        Doc("same, prefix or divergent; null: it cannot be told (nothing in common, or something could not be read)"),
    ]
    firstDivergentOffset: Annotated[int | None, Doc("the first at which two copies part; null: none", OFFSET)]
    cause: Annotated[str | None, Doc("the kind of difference there: records, missing or damage")]
    epochs: Annotated[
        list[EpochThere],
        Doc(
            "of {…} at that offset: what the batch's header has, and what "
            "leader-epoch-checkpoint gives; null: the copy has no such offset, or no such file"
        ),
    ]
    copies: Annotated[list[ComparedCopy], Doc("of {…}")]
    pairs: Annotated[list[ComparedPair], Doc("of {…}")]
    votes: Annotated[
        list[list[PathText]],
        Doc("paths that agree at firstDivergentOffset, the largest group first; empty: no parting"),
    ]
    majority: Annotated[
        list[PathText], Doc("paths of the group with more than half of three votes and more; empty: none")
    ]
    truncations: Annotated[
        list[FollowerTruncation],
        Doc(
            "of {…}: if the one is elected and the other fetches from "
            "it, it drops what it has from `offset` on (null: not known), so many offsets; by epochs, "
            "highWatermark or logStart; mends: whether it then has what the leader has, and sound"
        ),
    ]
    notes: Annotated[list[PathText], Doc("what else is to be said: topic ids that differ, checkpoints that do not fit")]


@answer("diffSummary")
class DiffSummary(NamedTuple):
    """All partitions together."""

    partitions: Annotated[int, Doc("that two paths or more have")]
    same: Annotated[int, Doc("of them")]
    prefix: Annotated[int, Doc("of them")]
    divergent: Annotated[int, Doc("of them")]
    unknown: Annotated[int, Doc("of them, of which it cannot be told")]
    lone: Annotated[int, Doc("partitions that only one path has")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("how long it took", "s")]
