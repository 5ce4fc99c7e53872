"""Answers about segments: what their batch headers add up to."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, INLINE, OFFSET, TEXT, Cell, Doc, PathText, Shown, answer, columns, of_fact
from kdump.cluster.partition_summary import SegmentSummary, segment_damage
from kdump.format.codec_table import NAMES
from kdump.format.count_text import size_text
from kdump.log.header_totals import HeaderTotals

SIZE, WORDS, NUMBERS = Cell(size_text), Cell(",".join, none=""), Cell(none="")
NOTES = Shown(rank=8, least=30, cuts=TEXT)
"""What is unusual about a row of ls, which writes it (questions.ls.report)."""


class ListedBatches(NamedTuple):
    """Summary of the batch headers of a segment, or of several."""

    batches: Annotated[
        int | None,
        Doc("number of batches, or of messages of magic 0 and 1; null if not all headers were read"),
        Shown(rank=1, only="logSegment"),
    ]
    records: Annotated[
        int | None,
        Doc(
            "number of records, from headers, also of markers, of aborted transactions and below the log start offset: "
            "stats has what consumers receive; null if not all were read, or for compressed magic 0 and 1"
        ),
        Shown(rank=2),
    ]
    oldestTimestamp: Annotated[
        int | None,
        Doc("smallest first timestamp of a batch; a record in it may be older", EPOCH_MS),
        Shown("oldest", 3),
    ]
    newestTimestamp: Annotated[int | None, Doc("largest maxTimestamp of a batch", EPOCH_MS), Shown("newest", 7)]
    formats: Annotated[
        list[int], Doc("magic values of the batches, in ascending order"), Shown("magic", 2), Cell(none="")
    ]
    compressions: Annotated[
        list[str], Doc(f"compression of the batches: {NAMES}, unknown(N)"), Shown("codecs", 6), WORDS
    ]
    partial: Annotated[
        bool, Doc("whether not all headers were read, so that there may be more formats and compressions")
    ]
    torn: Annotated[int, Doc("length of incomplete batches at the end of a segment", BYTES), SIZE]
    junk: Annotated[int, Doc("bytes that belong to no batch", BYTES), SIZE]
    padding: Annotated[int, Doc("zeros where a batch should start", BYTES), SIZE]
    damage: Annotated[str | None, Doc("first damage visible in the headers; run kdump verify for details")]
    errors: Annotated[list[PathText], Doc("what could not be read, and why"), WORDS]


class ListedHeaders(NamedTuple):
    """The same with the offsets, which exist only within a single partition."""

    firstOffset: Annotated[
        int | None, Doc("first offset of the first batch on this disk", OFFSET), Shown(rank=4, only="logSegment")
    ]
    lastOffset: Annotated[int | None, Doc("last offset of the last batch", OFFSET), Shown(rank=8, only="logSegment")]
    listed_batches: Annotated[ListedBatches, INLINE]


def row_batches(row: Any) -> ListedBatches:
    """Return what a row of ls states about batches."""
    batches: ListedBatches = getattr(row.headers, "listed_batches", row.headers)
    return batches


def damage_style(row: Any) -> str:
    """Return the style of a row of ls."""
    batches = row_batches(row)
    return "bad" if batches.damage or batches.errors else ""


@columns(name=Shown("segment", after=""), notes=NOTES)
@answer("logSegment", damage_style)
class ListedSegment(NamedTuple):
    """A segment."""

    file: Annotated[PathText, Doc("path of the .log")]
    topic: Annotated[str | None, Doc("from the name of its directory")]
    partition: Annotated[int | None, Doc("from the name of its directory")]
    baseOffset: Annotated[int, Doc("base offset, from the file's name", OFFSET)]
    size: Annotated[int, Doc("length of the segment", BYTES), Shown(), SIZE]
    beside: Annotated[
        list[str],
        Doc("files with the same name that exist: index, timeindex, txnindex, snapshot"),
        Shown(rank=2, after="compressions"),
        WORDS,
    ]
    headers: Annotated[ListedHeaders, INLINE]


def headers_answer(headers: HeaderTotals, damage: str, errors: list[str]) -> ListedHeaders:
    """Return the answer about the batch headers of a segment, or of a partition."""
    return ListedHeaders(headers.first, headers.last, batches_answer(headers, damage, errors))


def batches_answer(headers: HeaderTotals, damage: str, errors: list[str]) -> ListedBatches:
    """Return the answer about the batch headers without the offsets."""
    partial = headers.partial or bool(errors)
    return of_fact(
        ListedBatches,
        headers,
        batches=None if partial else headers.batches,
        records=None if partial else headers.records,
        oldestTimestamp=headers.oldest,
        newestTimestamp=headers.newest,
        formats=sorted(headers.formats),
        compressions=sorted(headers.codecs),
        partial=partial,
        damage=damage or None,
        errors=errors,
    )


def segment_answer(facts: SegmentSummary, clean: bool | None) -> ListedSegment:
    """Return the answer about a segment; `clean`: as in segment_damage."""
    target = facts.segment.log
    assert target is not None
    damage = segment_damage(facts, clean)
    return ListedSegment(
        file=target.path,
        topic=target.topic,
        partition=target.partition,
        baseOffset=facts.segment.offset,
        size=facts.size,
        beside=list(facts.sibling_kinds),
        headers=headers_answer(facts.headers, damage, [facts.error] if facts.error else []),
    )
