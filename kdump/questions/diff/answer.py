"""What `kdump diff` answers: differences between two copies, and what all copies of a partition amount to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from kdump.answer import (
    FILE_BYTE,
    OFFSET,
    Doc,
    PathText,
    UnknownKeys,
    answer,
    of_fact,
    unknown_keys,
)
from kdump.kafka.leader_epoch_file_cache import EpochEntry
from kdump.questions.diff.comparable_records import ComparableRecord
from kdump.questions.diff.copy_damage import UnreadableSpan
from kdump.questions.diff.copy_facts import CopyFacts
from kdump.questions.diff.differences import Comparison, DifferingRange
from kdump.questions.diff.run import Diff
from kdump.state.unknown_offsets import no_end


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

    topic: Annotated[str | None, Doc("topic, from the directory's name")]
    partition: Annotated[int | None, Doc("partition, from the directory's name")]
    kind: Annotated[
        str,
        Doc(
            "records (they differ), missing (one copy lacks them without explanation), damage, epochs (the same "
            "records in other leader epochs: a follower truncates them); and what does not make copies divergent: "
            "cleaned (the log cleaner removed them), rewritten (the same records in different batches), leaderEpoch "
            "(batches that differ only in that field), damagedAlike (both damaged, byte for byte the same), unread "
            "(one could not be read), unknown (both damaged, not the same), notInBundle (the batches differ, but "
            "whether their records do is not in the bundle)"
        ),
    ]
    isDivergence: Annotated[bool, Doc("whether it makes the copies divergent: records, missing, damage, epochs")]
    left: Annotated[PathText, Doc("path of one copy")]
    right: Annotated[PathText, Doc("path of the other copy")]
    lacking: Annotated[PathText | None, Doc("path of the copy that lacks the records; null if both or neither do")]
    offset: Annotated[int, Doc("first offset", OFFSET)]
    lastOffset: Annotated[int, Doc("last offset; for legal differences, offsets in between may be the same", OFFSET)]
    records: Annotated[int, Doc("number of records that differ, are missing, or are in different batches")]
    batches: Annotated[int, Doc("for leaderEpoch: number of batches")]
    fields: Annotated[tuple[str, ...], Doc("fields in which records differ; for rewritten, in which batches differ")]
    leftFile: Annotated[PathText | None, Doc("file with the first of them, or with the damage; null if there is none")]
    leftPosition: Annotated[int | None, Doc("start of that batch, or of the damage", FILE_BYTE)]
    rightFile: Annotated[PathText | None, Doc("the same in the other copy")]
    rightPosition: Annotated[int | None, Doc("the same in the other copy", FILE_BYTE)]
    reason: Annotated[str, Doc("what is damaged, the sign of compaction, or why the cleaner did not remove it")]
    samples: Annotated[
        list[SampleRecord],
        Doc(
            "first records that differ, each {…}; left and right have timestamp, "
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
    moreDifferences: Annotated[int, Doc("differences that are only counted")]


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


class ComparedCopy(NamedTuple):
    """A copy of the partition."""

    path: Annotated[PathText, Doc()]
    logStartOffset: Annotated[int, Doc()]
    logEndOffset: Annotated[
        int | None, Doc("offset after the last valid batch; null if the last segment could not be read")
    ]
    highWatermark: Annotated[int | None, Doc()]
    topicId: Annotated[str | None, Doc()]
    segments: Annotated[int, Doc()]
    epochs: Annotated[
        list[EpochEntry] | None, Doc("entries of leader-epoch-checkpoint, each {…}; null if it is missing")
    ]
    batchEpochs: Annotated[list[EpochStart], Doc("first batch of each epoch, {…}")]
    recordsBehind: Annotated[int | None, Doc("number of records after the point of divergence; null if there is none")]
    newestBehind: Annotated[int | None, Doc("their newest timestamp")]
    damage: Annotated[list[UnreadableSpan], Doc("{…}")]
    damagedPlaces: Annotated[int, Doc()]
    tail: Annotated[UnreadableSpan | None, Doc("torn or padding bytes at the end")]
    compacted: Annotated[str, Doc("sign of compaction; empty if there is none")]
    unread: Annotated[list[PathText], Doc()]
    notes: Annotated[list[PathText], Doc()]
    unknown: UnknownKeys


@answer("diff")
class PartitionDiff(NamedTuple):
    """All copies of a partition together."""

    topic: Annotated[str | None, Doc("topic, from the directory's name")]
    partition: Annotated[int | None, Doc("partition, from the directory's name")]
    relation: Annotated[
        str | None, Doc("same, prefix or divergent; null if unknown (no common offset, or something could not be read)")
    ]
    firstDivergentOffset: Annotated[
        int | None, Doc("first offset at which two copies diverge; null if none do", OFFSET)
    ]
    cause: Annotated[str | None, Doc("kind of the difference there: records, missing, damage or epochs")]
    epochs: Annotated[
        list[EpochThere],
        Doc(
            "leader epochs at that offset, each {…}: from the batch header and from leader-epoch-checkpoint; null if "
            "the copy has no such offset, or no such file"
        ),
    ]
    copies: Annotated[list[ComparedCopy], Doc("the copies, each {…}")]
    pairs: Annotated[list[ComparedPair], Doc("every two copies, each {…}")]
    votes: Annotated[
        list[list[PathText]],
        Doc("groups of paths that agree at firstDivergentOffset, the largest first; empty if none diverge"),
    ]
    majority: Annotated[
        list[PathText], Doc("paths of the group with more than half of at least three votes; empty if there is none")
    ]
    truncations: Annotated[
        list[FollowerTruncation],
        Doc(
            "what a follower truncates if the other copy is elected leader, each {…}: the follower truncates to "
            "`offset` (null if unknown) and loses `loses` offsets; by: epochs, highWatermark or logStart; mends: "
            "whether the copies then are the same, and undamaged"
        ),
    ]
    notes: Annotated[list[PathText], Doc("other remarks: different topic IDs, inconsistent checkpoints")]


@answer("diffSummary")
class DiffSummary(NamedTuple):
    """All partitions together."""

    partitions: Annotated[int, Doc("number of partitions in two or more paths")]
    same: Annotated[int, Doc("number of partitions whose copies are the same")]
    prefix: Annotated[int, Doc("number of partitions with a copy that is a prefix")]
    divergent: Annotated[int, Doc("number of partitions whose copies diverge")]
    unknown: Annotated[int, Doc("number of partitions whose relation is unknown")]
    lone: Annotated[int, Doc("number of partitions in only one path")]
    unread: Annotated[list[PathText], Doc("what could not be read, and why")]
    seconds: Annotated[float, Doc("elapsed time", "s")]


def diff_answers(found: Diff | DiffSummary) -> Iterator[CopyDifference | PartitionDiff | DiffSummary]:
    """Yield the differences of one partition, those of each pair in order, then the result; or the summary."""
    if isinstance(found, DiffSummary):
        yield found
        return
    for (left, right), pair in found.pairs.items():
        paths = found.copies[left].path, found.copies[right].path
        for difference in pair.differences:
            yield _difference(found, difference, paths)
    yield _partition(found)


def _difference(diff: Diff, difference: DifferingRange, paths: tuple[str, str]) -> CopyDifference:
    return of_fact(
        CopyDifference,
        difference,
        diff,
        isDivergence=difference.parts,
        left=paths[0],
        right=paths[1],
        lacking=None if difference.lacking is None else paths[difference.lacking],
        offset=difference.first,
        lastOffset=difference.last,
        leftFile=None if difference.left is None else difference.left.file,
        leftPosition=None if difference.left is None else difference.left.position,
        rightFile=None if difference.right is None else difference.right.file,
        rightPosition=None if difference.right is None else difference.right.position,
        samples=[
            SampleRecord(
                sample.offset,
                sample.fields,
                _row(sample.left, sample.sizes[0]),
                _row(sample.right, sample.sizes[1]),
            )
            for sample in difference.samples
        ],
    )


def _row(row: ComparableRecord, sizes: tuple[int, int]) -> ComparedRecord:
    return ComparedRecord(
        row.timestamp, row.sequence, row.producerId, row.producerEpoch, row.isTransactional, row.isControlBatch, *sizes
    )


def _partition(diff: Diff) -> PartitionDiff:
    paths = [copy.path for copy in diff.copies]
    return of_fact(
        PartitionDiff,
        diff,
        cause=diff.cause or None,
        epochs=epochs(diff),
        copies=[_copy(diff, number) for number in range(len(paths))],
        pairs=[_pair(pair, paths[left], paths[right]) for (left, right), pair in diff.pairs.items()],
        votes=[[paths[number] for number in group] for group in diff.votes],
        majority=[paths[number] for number in diff.majority],
        truncations=[
            FollowerTruncation(
                paths[choice.leader],
                paths[choice.follower],
                choice.does.offset,
                choice.does.loses,
                choice.does.by,
                choice.mends,
            )
            for choice in diff.choices
        ],
    )


def epochs(diff: Diff) -> list[EpochThere]:
    """Return the epoch of each copy at the first divergent offset."""
    offset = diff.firstDivergentOffset
    if offset is None:
        return []
    return [
        EpochThere(copy.path, diff.epoch_at(number), copy.checkpoint_epoch(offset))
        for number, copy in enumerate(diff.copies)
    ]


def _pair(pair: Comparison, left: str, right: str) -> ComparedPair:
    return ComparedPair(
        left=left,
        right=right,
        relation=pair.relation,
        prefix=None if pair.shorter is None else (left, right)[pair.shorter],
        firstDivergentOffset=None if pair.first is None else pair.first.first,
        recordsAlike=pair.alike,
        moreDifferences=pair.more,
    )


def _copy(diff: Diff, number: int) -> ComparedCopy:
    copy: CopyFacts = diff.copies[number]
    tail = diff.tail(number)
    return of_fact(
        ComparedCopy,
        copy,
        batchEpochs=[
            EpochStart(each.epoch, each.offset, each.place.file, each.place.position) for each in copy.batchEpochs
        ],
        recordsBehind=None if tail is None else tail.records,
        newestBehind=None if tail is None else tail.newest,
        damage=copy.damages,
        damagedPlaces=copy.damaged,
        unknown=unknown_keys(
            copy.copy.known.unstated("highWatermark"),
            no_end(copy.segments, copy.unread) if copy.logEndOffset is None else None,
        ),
    )
