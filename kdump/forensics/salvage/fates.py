"""Outcomes of the bytes that salvage reads, and the ledger lines that record them."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, INLINE, OFFSET, Doc, PathText, answer

KEPT, MENDED, RECOVERED = "kept", "mended", "recovered"
DUPLICATE, SUPERSEDED, PADDING, UNUSED = "duplicate", "superseded", "padding", "unused"
DAMAGED, TORN, UNREAD, CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN = (
    "damaged",
    "torn",
    "unread",
    "contradicts",
    "overlaps",
    "diverged",
    "undecided",
    "untaken",
)

WRITTEN = (KEPT, MENDED, RECOVERED)
NEEDLESS = (DUPLICATE, SUPERSEDED, PADDING, UNUSED)
LOST = (DAMAGED, TORN, UNREAD, CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN)

INCOMPLETE = (CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN, RECOVERED)
"""Outcomes of valid batches that are not in the output, and of best-effort recovery: a partition with any of them is
not whole."""

FATES = {
    KEPT: "written, byte for byte as it was",
    MENDED: "written, with a field put right that no checksum covers (see mended)",
    RECOVERED: "records out of a damaged batch, in a batch that was made for them: a guess, on request only",
    DUPLICATE: "the same batch was written from elsewhere",
    SUPERSEDED: "a better batch of these offsets was written from elsewhere",
    PADDING: "zeros, as preallocation or a crash leaves them",
    UNUSED: "not asked for, or not wanted: nothing of it was written",
    DAMAGED: "no sound batch",
    TORN: "a batch that runs past the end of its file",
    UNREAD: "the device, or the system, did not give the bytes",
    CONTRADICTS: "a valid batch at offsets that another batch has, which was written, or that cannot be its own",
    OVERLAPS: "a valid batch that shares some of its offsets, and not all, with one that was written",
    DIVERGED: "of a history that parted from the one that was written",
    UNDECIDED: "histories part here, and nothing says which is right: --prefer does",
    UNTAKEN: "a valid batch that a broker does not load: it would not start, or cut the log off there",
}
"""Every byte of every segment has one outcome."""


class Span(NamedTuple):
    """Bytes position..position+size-1 of a file, and their outcome."""

    fate: Annotated[str, Doc("; ".join(f"{fate}: {meaning}" for fate, meaning in FATES.items()))]
    file: Annotated[
        PathText, Doc("of the source; its spans tile it, in order of positions unless batches are out of order")
    ]
    position: Annotated[int, Doc("where the span begins", FILE_BYTE)]
    size: Annotated[int | None, Doc("its length; null: not known, for the file could not be read", BYTES)]
    offset: Annotated[int | None, Doc("the first, by the headers; null where nothing can be believed", OFFSET)] = None
    lastOffset: Annotated[int | None, Doc("the last, by the headers", OFFSET)] = None
    batches: Annotated[int, Doc("in it; of what is lost, as far as headers say it")] = 0
    records: Annotated[int, Doc("in them")] = 0
    code: Annotated[str, Doc("the finding (kdump verify --list) behind it; empty: none")] = ""
    reason: Annotated[PathText, Doc("why it has this fate")] = ""
    mended: Annotated[tuple[str, ...], Doc("names of the fields, covered by no checksum, that were put right")] = ()
    odd: Annotated[
        tuple[str, ...], Doc("codes of errors that stay in what was written: verify tells them there, too")
    ] = ()
    outFile: Annotated[PathText | None, Doc("where it was written, below the output directory")] = None
    outPosition: Annotated[int | None, Doc("where it begins there; null for records in JSON", "byte of outFile")] = None

    @property
    def is_lost(self) -> bool:
        return self.fate in LOST


class Hole(NamedTuple):
    """Offsets offset..lastOffset that are not in the output, between two batches that are, or after the last."""

    offset: Annotated[int, Doc("the first of which nothing was written", OFFSET)]
    lastOffset: Annotated[int | None, Doc("the last; null: behind the last batch, and nobody knows how far", OFFSET)]
    cause: Annotated[
        str,
        Doc(
            "lost: something that was not written may have had them; absent: no source has them, as compaction, "
            "retention or a lost file leaves it"
        ),
    ]


LOSS, ABSENT = "lost", "absent"

SalvagedTopic = Annotated[str, Doc()]
SalvagedPartition = Annotated[int, Doc("of the topic")]


@answer("salvageSpan")
class LedgerSpan(NamedTuple):
    """A ledger line: the outcome of a byte range."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    span: Annotated[Span, INLINE]


@answer("salvageHole")
class LedgerHole(NamedTuple):
    """A ledger line: offsets that are not in the output."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    hole: Annotated[Hole, INLINE]
