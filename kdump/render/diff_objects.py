"""Builds the JSON objects of `kdump diff`."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.answer import Object, answer_object, unknown_keys
from kdump.forensics.comparable_records import ComparableRecord
from kdump.forensics.copy_damage import UnreadableSpan
from kdump.forensics.copy_facts import CopyFacts
from kdump.forensics.diff import Diff
from kdump.forensics.diff_answer import (
    ComparedCopy,
    ComparedPair,
    ComparedRecord,
    CopyDamage,
    CopyDifference,
    DiffSummary,
    EpochStart,
    EpochThere,
    FollowerTruncation,
    PartitionDiff,
    SampleRecord,
)
from kdump.forensics.differences import Comparison, DifferingRange
from kdump.state.unknown_offsets import no_end


def diff_objects(answer: Diff | DiffSummary) -> Iterator[Object]:
    """Yield the objects of one partition: its differences, then the result; or that of the summary."""
    if isinstance(answer, DiffSummary):
        yield answer_object(answer)
        return
    yield from difference_objects(answer)
    yield diff_object(answer)


def difference_objects(diff: Diff) -> Iterator[Object]:
    """Yield each difference of each pair, in order."""
    for (left, right), pair in diff.pairs.items():
        paths = diff.copies[left].path, diff.copies[right].path
        for each in pair.differences:
            yield _difference(diff, each, paths)


def _difference(diff: Diff, each: DifferingRange, paths: tuple[str, str]) -> Object:
    return answer_object(
        CopyDifference(
            topic=diff.topic,
            partition=diff.partition,
            kind=each.kind,
            isDivergence=each.parts,
            left=paths[0],
            right=paths[1],
            lacking=None if each.lacking is None else paths[each.lacking],
            offset=each.first,
            lastOffset=each.last,
            records=each.records,
            batches=each.batches,
            fields=each.fields,
            leftFile=None if each.left is None else each.left.file,
            leftPosition=None if each.left is None else each.left.position,
            rightFile=None if each.right is None else each.right.file,
            rightPosition=None if each.right is None else each.right.position,
            reason=each.reason,
            samples=[
                SampleRecord(
                    sample.offset,
                    sample.fields,
                    _row(sample.left, sample.sizes[0]),
                    _row(sample.right, sample.sizes[1]),
                )
                for sample in each.samples
            ],
        )
    )


def _row(row: ComparableRecord, sizes: tuple[int, int]) -> ComparedRecord:
    return ComparedRecord(
        row.timestamp, row.sequence, row.producerId, row.producerEpoch, row.isTransactional, row.isControlBatch, *sizes
    )


def diff_object(diff: Diff) -> Object:
    paths = [copy.path for copy in diff.copies]
    return answer_object(
        PartitionDiff(
            topic=diff.topic,
            partition=diff.partition,
            relation=diff.relation,
            firstDivergentOffset=diff.firstDivergentOffset,
            cause=diff.cause or None,
            epochs=epochs(diff),
            copies=[_copy(diff, number) for number in range(len(paths))],
            pairs=[_pair(pair, paths[left], paths[right]) for (left, right), pair in diff.pairs.items()],
            votes=[[paths[number] for number in group] for group in diff.votes],
            majority=[paths[number] for number in diff.majority],
            truncations=[
                FollowerTruncation(
                    paths[each.leader],
                    paths[each.follower],
                    each.does.offset,
                    each.does.loses,
                    each.does.by,
                    each.mends,
                )
                for each in diff.choices
            ],
            notes=diff.notes,
        )
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
    return ComparedCopy(
        path=copy.path,
        logStartOffset=copy.logStartOffset,
        logEndOffset=copy.logEndOffset,
        highWatermark=copy.highWatermark,
        topicId=copy.topicId,
        segments=copy.segments,
        epochs=copy.epochs,
        batchEpochs=[
            EpochStart(each.epoch, each.offset, each.place.file, each.place.position) for each in copy.batchEpochs
        ],
        recordsBehind=None if tail is None else tail.records,
        newestBehind=None if tail is None else tail.newest,
        damage=[_damage(each) for each in copy.damages],
        damagedPlaces=copy.damaged,
        tail=None if copy.tail is None else _damage(copy.tail),
        compacted=copy.compacted,
        unread=copy.unread,
        notes=copy.notes,
        unknown=unknown_keys(
            copy.copy.known.no_high_watermark,
            no_end(copy.segments, copy.unread) if copy.logEndOffset is None else None,
        ),
    )


def _damage(each: UnreadableSpan) -> CopyDamage:
    return CopyDamage(each.kind, *each.place, each.reason)
