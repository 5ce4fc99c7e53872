"""Outcomes of the bytes that salvage reads, and the ledger lines that record them."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kdump.answer import BYTES, FILE_BYTE, INLINE, OFFSET, Doc, PathText, answer
from kdump.decode.record_cut import FROM, UNTIL, WITHOUT

KEPT, MENDED, RECOVERED, FILTERED = "kept", "mended", "recovered", "filtered"
EXCLUDED = "excluded"
DUPLICATE, SUPERSEDED, PADDING, UNUSED = "duplicate", "superseded", "padding", "unused"
DAMAGED, TORN, UNREAD, CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN = (
    *("damaged", "torn", "unread", "contradicts", "overlaps", "diverged", "undecided", "untaken"),
)

WRITTEN = (KEPT, MENDED, RECOVERED, FILTERED)
LOST = (DAMAGED, TORN, UNREAD, CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN)

INCOMPLETE = (CONTRADICTS, OVERLAPS, DIVERGED, UNDECIDED, UNTAKEN, RECOVERED)
"""Outcomes of valid batches that are not in the output, and of best-effort recovery: a partition with any of them is
not whole."""

FATES = {
    KEPT: "written unchanged, byte for byte",
    MENDED: "written, with a corrected field that no checksum covers (see mended)",
    RECOVERED: "from a damaged batch: one flipped bit corrected, or the records that decode, whose values may be wrong",
    FILTERED: "written without some of its records, which --from, --until or --without leaves out",
    EXCLUDED: "left out by --from, --until or --without; an emptied batch without records may be written for it",
    DUPLICATE: "equal to a batch that was written from elsewhere; the reason says whether byte for byte",
    SUPERSEDED: "a better batch of these offsets was written from elsewhere",
    PADDING: "zeros, left by preallocation or a crash",
    UNUSED: "not requested or not needed, and not written",
    DAMAGED: "damaged batches, and bytes that belong to no batch",
    TORN: "a batch that extends past the end of its file",
    UNREAD: "the device or the system could not read these bytes",
    CONTRADICTS: "a valid batch whose offsets belong to another batch, which was written, or cannot be its own",
    OVERLAPS: "a valid batch that shares some, but not all, of its offsets with a batch that was written",
    DIVERGED: "from a history that diverges from the one that was written",
    UNDECIDED: "histories diverge here, and nothing shows which is right; choose one with --prefer",
    UNTAKEN: "a valid batch that a broker does not load: it would fail to start, or truncate the log there",
}
"""Every byte of every segment has one outcome."""


CUT_REASONS = {FROM: "before --from", UNTIL: "after --until", WITHOUT: "matched by --without"}


class ByteRange(NamedTuple):
    """Bytes position..position+size-1 of a file, and their outcome."""

    fate: Annotated[str, Doc("; ".join(f"{fate}: {meaning}" for fate, meaning in FATES.items()))]
    file: Annotated[
        PathText,
        Doc("source file; its spans cover it completely, in order of position unless batches are out of order"),
    ]
    position: Annotated[int, Doc("start of the span", FILE_BYTE)]
    size: Annotated[int | None, Doc("length of the span; null if unknown because the file could not be read", BYTES)]
    offset: Annotated[int | None, Doc("first offset, from the headers; null if none is plausible", OFFSET)] = None
    lastOffset: Annotated[int | None, Doc("last offset, from the headers; null if it would exceed 64 bits", OFFSET)] = (
        None
    )
    batches: Annotated[int, Doc("number of batches; if lost, as far as headers show")] = 0
    records: Annotated[int, Doc("number of records in them")] = 0
    code: Annotated[str, Doc("code of the finding (kdump verify --list) that caused it; empty if none")] = ""
    reason: Annotated[PathText, Doc("reason for the fate")] = ""
    mended: Annotated[tuple[str, ...], Doc("names of corrected fields, which no checksum covers")] = ()
    odd: Annotated[
        tuple[str, ...], Doc("codes of errors that remain in the output, where verify also reports them")
    ] = ()
    outFile: Annotated[PathText | None, Doc("file in the output directory to which it was written")] = None
    outPosition: Annotated[int | None, Doc("its start in outFile; null for records in JSON", "byte of outFile")] = None
    is_exact: bool = False
    """Whether the checksum shows that the bytes that were recovered are the original ones."""

    @property
    def is_lost(self) -> bool:
        return self.fate in LOST


class MissingOffsetRange(NamedTuple):
    """Offsets offset..lastOffset that are not in the output, between two batches that are, or after the last."""

    offset: Annotated[int, Doc("first missing offset", OFFSET)]
    lastOffset: Annotated[int | None, Doc("last missing offset; null if unknown, after the last batch", OFFSET)]
    cause: Annotated[
        str,
        Doc(
            "lost: they may have been in something that was not written; absent: no source has them, because of "
            "compaction, retention or a lost file"
        ),
    ]


class ExcludedRecords(NamedTuple):
    """Records that are left out on request, one after the other."""

    file: Annotated[PathText, Doc("source file")]
    offset: Annotated[int, Doc("first offset", OFFSET)]
    lastOffset: Annotated[int, Doc("last offset", OFFSET)]
    records: Annotated[int, Doc("number of records, control records included")]
    cause: Annotated[str, Doc("option that left them out: from, until or without")]


LOSS, ABSENT = "lost", "absent"

SalvagedTopic = Annotated[str, Doc("topic")]
SalvagedPartition = Annotated[int, Doc("partition of the topic")]


@answer("salvageSpan")
class LedgerSpan(NamedTuple):
    """A ledger line: the outcome of a byte range."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    span: Annotated[ByteRange, INLINE]


@answer("salvageHole")
class LedgerHole(NamedTuple):
    """A ledger line: offsets that are not in the output."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    hole: Annotated[MissingOffsetRange, INLINE]


@answer("salvageExcluded")
class LedgerExcluded(NamedTuple):
    """A ledger line: records that are left out on request."""

    topic: SalvagedTopic
    partition: SalvagedPartition
    excluded: Annotated[ExcludedRecords, INLINE]
