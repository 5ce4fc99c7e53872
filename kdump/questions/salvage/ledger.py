"""The ledger: a line for every byte range that was read, and for every offset gap in the output; and totals.

Lines of one file come in order of position and cover it without gaps. Each is written as soon as it is known, so that
memory does not grow with the log; consecutive batches with the same outcome become one line.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, BinaryIO

from kdump.answer import answer_object
from kdump.questions.salvage.byte_outcomes import LOSS, RECOVERED, ByteRange, LedgerHole, LedgerSpan, MissingOffsetRange

MAX_KEPT = 100
"""Maximum number of losses, and of offset gaps, of a partition that are kept for its report; the ledger has them
all."""


class SalvageLedger:
    """Ledger of one partition. `file` receives the lines as JSON; None if they are not needed."""

    def __init__(self, topic: str | None, partition: int | None, file: BinaryIO | None) -> None:
        self.topic = topic
        self.partition = partition
        self.bytes: Counter[str] = Counter()
        self.batches: Counter[str] = Counter()
        self.records: Counter[str] = Counter()
        self.losses: list[ByteRange] = []
        self.lost_places = 0
        self.guesses: list[ByteRange] = []
        self.mended: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.holes: list[MissingOffsetRange] = []
        self.lost_holes = self.absent_holes = 0
        self.absent_offsets = self.lost_offsets = 0
        self._file = file
        self._runs: dict[str, ByteRange] = {}

    def span(self, span: ByteRange) -> None:
        """Record the outcome of some bytes."""
        self.bytes[span.fate] += span.size or 0
        self.batches[span.fate] += span.batches
        self.records[span.fate] += span.records
        self.mended.update(span.mended)
        self.odd.update(span.odd)
        if span.is_lost:
            self.lost_places += 1
            if len(self.losses) < MAX_KEPT:
                self.losses.append(span)
        if span.fate == RECOVERED and len(self.guesses) < MAX_KEPT:
            self.guesses.append(span)
        before = self._runs.pop(span.file, None)
        joined = None if before is None else _joined(before, span)
        if before is not None and joined is None:
            self._write(before)
        self._runs[span.file] = joined or span

    def hole(self, hole: MissingOffsetRange) -> None:
        """Record offsets that are not in the output."""
        count = 0 if hole.lastOffset is None else hole.lastOffset - hole.offset + 1
        if hole.cause == LOSS:
            self.lost_holes += 1
            self.lost_offsets += count
            if len(self.holes) < MAX_KEPT:
                self.holes.append(hole)
        else:
            self.absent_holes += 1
            self.absent_offsets += count
        self._write(hole)

    def ended(self, path: str) -> None:
        """Write what is left of a file that has been read completely."""
        span = self._runs.pop(path, None)
        if span is not None:
            self._write(span)

    def close(self) -> None:
        for path in list(self._runs):
            self.ended(path)

    def line(self, value: dict[str, Any]) -> None:
        """Write a line with a type of its own. Everything that is not ASCII is escaped: the ledger may be shown on a
        terminal."""
        if self._file is not None:
            self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")

    def _write(self, entry: ByteRange | MissingOffsetRange) -> None:
        if self._file is not None:
            line = LedgerSpan if isinstance(entry, ByteRange) else LedgerHole
            self.line(answer_object(line(self.topic, self.partition, entry)))  # type: ignore[arg-type]


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
