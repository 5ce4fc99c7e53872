"""What becomes of each byte that salvage reads, and the lines of its ledger that say so."""

from __future__ import annotations

from typing import NamedTuple

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
"""Of valid batches that are not in the output, and of guesses: with any of them a partition is not whole."""

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
"""Every byte of every segment has one."""


class Span(NamedTuple):
    """Bytes position..position+size-1 of a file (size None: not known), and what became of them.

    offset..lastOffset: what stands there, by its headers; None where nothing can be believed. `batches` and `records`:
    how many there are, of the lost as far as their headers say it. `code`: the finding (kdump verify) behind it, if it
    is one. `mended`: names of fields that were put right; `odd`: codes of findings that stay in what was written.
    `outFile` and `outPosition`: where it was written to.
    """

    fate: str
    file: str
    position: int
    size: int | None
    offset: int | None = None
    lastOffset: int | None = None
    batches: int = 0
    records: int = 0
    code: str = ""
    reason: str = ""
    mended: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    outFile: str | None = None
    outPosition: int | None = None

    @property
    def is_lost(self) -> bool:
        return self.fate in LOST


class Hole(NamedTuple):
    """Offsets offset..lastOffset of which nothing was written, between two batches that were, or behind the last
    (lastOffset None: how far is not known). `cause`: lost, if something lost lies there; else absent: no source has
    them, as compaction, retention or a lost file leaves it."""

    offset: int
    lastOffset: int | None
    cause: str


LOSS, ABSENT = "lost", "absent"
