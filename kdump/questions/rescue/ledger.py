"""What was done with each record: lines that cover the metadata log of the copy that is used, in order, and then what
other copies have in addition."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise

from kdump.cluster.metadata_files import MetadataFiles
from kdump.log.paths import target
from kdump.questions.rescue.answer import (
    AFTER,
    DAMAGED,
    DEPENDENT,
    KEPT,
    LEFT_OUT,
    OTHER,
    UNCOMMITTED,
    RescueCopy,
    RescueRecord,
)
from kdump.state.left_out_records import LeftOut, RecordChoice
from kdump.state.metadata_image import MetadataImage

ASKED = "--leave-out"


def ledger(
    files: MetadataFiles, image: MetadataImage, end: int, choice: RecordChoice, copies: Iterable[RescueCopy]
) -> Iterator[RescueRecord]:
    """Yield the lines. `end`: where the log in the files ends, which is above the end of the image after --as-of."""
    start = image.snapshot or 0
    if start:
        snapshot = next(path for offset, path in files.snapshots if offset == start)
        yield RescueRecord(KEPT, 0, start - 1, snapshot, reason="as the metadata snapshot has them")
    yield from (_left_out(left) for left in choice.left_out if left.refusal.offset is None)
    marks = [_left_out(left) for left in choice.left_out if left.refusal.offset is not None]
    reason = "their metadata transaction was aborted, or did not end"
    for first, last in choice.uncommitted:
        marks.append(RescueRecord(UNCOMMITTED, first, min(last, image.end_offset - 1), "", reason=reason))
    marks.sort(key=lambda mark: (mark.offset or 0, mark.fate != UNCOMMITTED))
    for mark in marks:
        first, last = mark.offset or 0, mark.lastOffset or 0
        if last < start:
            continue  # within an aborted transaction
        first = max(first, start)
        yield from _kept(files, start, first)
        yield from _split(files, mark._replace(offset=first))
        start = last + 1
    yield from _kept(files, start, image.end_offset)
    if image.gap is not None and end <= image.gap:
        why = "" if image.gap_problem is None else image.gap_problem.text
        yield RescueRecord(DAMAGED, image.gap, None, files.path, reason=why)
    if end > image.end_offset:
        yield RescueRecord(AFTER, image.end_offset, end - 1, files.path)
    for copy in copies:
        if copy.ownOffsets and copy.sameUntil is not None and copy.endOffset is not None:
            epochs = ", ".join(map(str, copy.ownEpochs))
            reason = f"{copy.state}: of leader epoch {epochs}"
            yield RescueRecord(OTHER, copy.sameUntil, copy.endOffset - 1, copy.path, reason=reason)
        elif copy.state == DAMAGED:
            yield RescueRecord(OTHER, copy.endOffset, None, copy.path, reason="damaged: what it has there is not known")


def _left_out(left: LeftOut) -> RescueRecord:
    refusal = left.refusal
    return RescueRecord(
        DEPENDENT if left.is_dependent else LEFT_OUT,
        refusal.offset,
        left.last,
        refusal.file,
        refusal.record,
        left.what,
        refusal.exception or ASKED,
        left.because,
        left.dependents,
        left.later,
    )


def _kept(files: MetadataFiles, start: int, end: int) -> Iterator[RescueRecord]:
    if start < end:
        yield from _split(files, RescueRecord(KEPT, start, end - 1, ""))


def _split(files: MetadataFiles, line: RescueRecord) -> Iterator[RescueRecord]:
    """Yield a line for each segment that has some of the offsets."""
    if line.offset is None or line.lastOffset is None or line.file:
        yield line
        return
    bases = [target(path).name_offset or 0 for path in files.segments]
    edges = sorted(
        {line.offset, line.lastOffset + 1, *(each for each in bases if line.offset < each <= line.lastOffset)}
    )
    for first, following in pairwise(edges):
        file = next((path for base, path in reversed(list(zip(bases, files.segments))) if base <= first), files.path)
        yield line._replace(offset=first, lastOffset=following - 1, file=os.path.join(file))
