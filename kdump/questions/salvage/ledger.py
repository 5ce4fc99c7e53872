"""The ledger: a line for every byte range that was read, and for every offset gap in the output; and totals.

Lines of one file come in order of position and cover it without gaps. Each is written as soon as it is known, so that
memory does not grow with the log; consecutive batches with the same outcome become one line."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from kdump.answer import answer_object
from kdump.questions.salvage.answer import Salvaged
from kdump.questions.salvage.byte_outcomes import (
    LOSS,
    RECOVERED,
    ByteRange,
    ExcludedRecords,
    LedgerExcluded,
    LedgerHole,
    LedgerSpan,
    MissingOffsetRange,
)

MAX_KEPT = 100
"""Maximum number of losses, and of offset gaps, of a partition that are kept for its report; the ledger has them
all."""


LINES = {ByteRange: LedgerSpan, MissingOffsetRange: LedgerHole, ExcludedRecords: LedgerExcluded}
"""The type of the line for each entry."""


class SalvageLedger:
    """Ledger of one partition, whose totals are those of `made`. `file` receives the lines as JSON."""

    def __init__(self, made: Salvaged, file: BinaryIO) -> None:
        self.made, self._file = made, file
        self._runs: dict[str, ByteRange] = {}
        self._excluded: ExcludedRecords | None = None

    def span(self, span: ByteRange) -> None:
        """Record the outcome of some bytes."""
        made = self.made
        made.bytes[span.fate] += span.size or 0
        made.batches[span.fate] += span.batches
        made.records[span.fate] += span.records
        for name in span.mended:
            made.mended[name] += 1
        for code in span.odd:
            made.odd[code] += 1
        if span.is_lost:
            made.lostPlaces += 1
            if len(made.losses) < MAX_KEPT:
                made.losses.append(span)
        if span.fate == RECOVERED and len(made.guesses) < MAX_KEPT:
            made.guesses.append(span)
        before = self._runs.pop(span.file, None)
        joined = None if before is None else _joined(before, span)
        if before is not None and joined is None:
            self._write(before)
        self._runs[span.file] = joined or span

    def hole(self, hole: MissingOffsetRange) -> None:
        """Record offsets that are not in the output."""
        made = self.made
        count = 0 if hole.lastOffset is None else hole.lastOffset - hole.offset + 1
        if hole.cause == LOSS:
            made.lostHoles += 1
            made.lostOffsets += count
            if len(made.holes) < MAX_KEPT:
                made.holes.append(hole)
        else:
            made.absentHoles += 1
            made.absentOffsets += count
        self._write(hole)

    def excluded(self, run: ExcludedRecords) -> None:
        """Record records that are left out on request."""
        self.made.excluded[run.cause] = self.made.excluded.get(run.cause, 0) + run.records
        before = self._excluded
        if before is not None and (before.file, before.cause, before.lastOffset + 1) == (
            run.file,
            run.cause,
            run.offset,
        ):
            run = run._replace(offset=before.offset, records=before.records + run.records)
        elif before is not None:
            self._write(before)
        self._excluded = run

    def ended(self, path: str) -> None:
        """Write what is left of a file that has been read completely."""
        span = self._runs.pop(path, None)
        if span is not None:
            self._write(span)

    def close(self) -> None:
        for path in list(self._runs):
            self.ended(path)
        if self._excluded is not None:
            self._write(self._excluded)

    def _write(self, entry: ByteRange | MissingOffsetRange | ExcludedRecords) -> None:
        """Write a line. Everything that is not ASCII is escaped: the ledger may be shown on a terminal."""
        line: Any = LINES[type(entry)]
        value = answer_object(line(self.made.topic, self.made.partition, entry))
        self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")


def _joined(one: ByteRange, other: ByteRange) -> ByteRange | None:
    """Return both as one line if the second begins where the first ends, with the same outcome; else None."""
    if one.fate != other.fate or one.size is None or other.size is None or one.position + one.size != other.position:
        return None
    if one.mended or other.mended or one.odd != other.odd or one.code != other.code or one.reason != other.reason:
        return None
    if one.is_lost or one.outFile != other.outFile or one.lastOffset is None or other.offset is None:
        return None
    if one.outPosition is not None and one.outPosition + one.size != other.outPosition:
        return None
    return one._replace(
        size=one.size + other.size,
        lastOffset=other.lastOffset,
        batches=one.batches + other.batches,
        records=one.records + other.records,
    )
