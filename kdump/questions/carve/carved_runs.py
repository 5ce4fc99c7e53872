"""Groups adjacent batches, as in a segment, into runs: each was probably one file.

Batches do not state their topic or partition, so runs do not, either. A run continues if the next batch begins exactly
where the last one ends, and nothing indicates that it belongs to another log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, OFFSET, Doc, PathText, answer
from kdump.format.codec_table import NAMES
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import Batch, LegacyRecordBatch
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET, MAX_SEGMENT_SIZE
from kdump.state.producer_state import GAP, ProducerState, ProducerStateEntry, follows

SECTOR = 512
"""Sector size of a disk in bytes: a file begins at a multiple of it."""
MAX_RUN_ENDS = 200_000
"""Maximum number of runs whose end offsets are kept, to find runs that may follow them: 30 MB."""
MAX_LISTED = 10
"""Maximum number of producers, and of runs that it may follow, that are listed for a run."""


@answer("run")
@dataclass
class CarvedRun:
    """Adjacent batches of `file`, bytes position..end-1. Epochs and producer IDs are those of v2 batches."""

    number: Annotated[int, Doc("number of the run, from 1 in the order found", name="run")]
    file: Annotated[PathText, Doc("path of the searched file")]
    position: Annotated[int, Doc("start of its first batch", FILE_BYTE)]
    end: int
    firstOffset: Annotated[int, Doc("first offset of its first batch", OFFSET, after="records")]
    lastOffset: Annotated[int, Doc("last offset of its last batch", OFFSET, after="firstOffset")]
    batches: Annotated[int, Doc("number of batches, which directly follow each other")] = 0
    records: Annotated[int, Doc("number of records, from headers; for compressed messages of v0 and v1 if known")] = 0
    magics: Annotated[list[int], Doc("formats (magic) of its batches")] = field(default_factory=list)
    codecs: Annotated[list[str], Doc(f"compression of its batches: {NAMES}")] = field(default_factory=list)
    firstEpoch: Annotated[int | None, Doc("leader epoch of its first batch with one", name="firstLeaderEpoch")] = None
    lastEpoch: Annotated[int | None, Doc("leader epoch of its last batch with one", name="lastLeaderEpoch")] = None
    producerIds: Annotated[list[int], Doc(f"producer IDs of its batches, at most {MAX_LISTED}")] = field(
        default_factory=list
    )
    firstTimestamp: Annotated[int | None, Doc("smallest maxTimestamp of its batches", EPOCH_MS)] = None
    lastTimestamp: Annotated[int | None, Doc("largest maxTimestamp of its batches", EPOCH_MS)] = None
    mayFollow: Annotated[
        list[int],
        Doc(f"numbers of earlier runs that end at the offset before firstOffset, at most {MAX_LISTED}"),
    ] = field(default_factory=list)
    written: Annotated[PathText | None, Doc("path of the segment written from it; null if none was")] = None
    note: Annotated[PathText, Doc("why no indexes were written for it")] = ""

    @property
    def size(
        self,
    ) -> Annotated[int, Doc("length of the run; it contains nothing but its batches", BYTES, after="position")]:
        return self.end - self.position


class Runs:
    """Groups batches into runs, file by file."""

    def __init__(self) -> None:
        self.count = 0
        self.current: CarvedRun | None = None
        self._producers: ProducerState[ProducerStateEntry] = ProducerState()
        self._ends: dict[int, list[int]] = {}

    def ends_before(self, batch: Batch) -> bool:
        """Return True if there is no current run, or `batch` does not continue it."""
        run = self.current
        if run is None or batch.position != run.end:
            return True
        base, last = _first(batch), batch.lastOffset
        if base <= run.lastOffset or last - run.firstOffset > MAX_RELATIVE_OFFSET:
            return True
        if batch.end - run.position > MAX_SEGMENT_SIZE:
            return True
        is_gap = base != run.lastOffset + 1
        if is_gap and batch.position % SECTOR == 0:
            return True  # as likely another file as a log that the cleaner compacted
        epoch = batch.partitionLeaderEpoch
        if epoch is not None and epoch >= 0 and run.lastEpoch is not None and epoch < run.lastEpoch:
            return True
        known = self._producers.get(batch.producerId) if _has_sequence(batch) and batch.producerId is not None else None
        broken = follows(known, batch) if known is not None else None
        return broken is not None and not (is_gap and broken.kind == GAP)

    def end(self) -> CarvedRun | None:
        """End the current run and return it; None if there is none."""
        run, self.current = self.current, None
        if run is not None and len(self._ends) < MAX_RUN_ENDS:
            self._ends.setdefault(run.lastOffset + 1, []).append(run.number)
        return run

    def add(self, file: str, batch: Batch) -> CarvedRun:
        """Add a batch and return its run: the current one, or a new one if there is none."""
        run = self.current
        if run is None:
            self.count += 1
            base = _first(batch)
            run = self.current = CarvedRun(self.count, file, batch.position, batch.position, base, base)
            run.mayFollow = self._ends.get(base, [])[:MAX_LISTED]
            self._producers = ProducerState()
        run.end, run.lastOffset = batch.end, batch.lastOffset
        run.batches += 1
        run.records += batch.possible_records
        for value, known in ((batch.magic, run.magics), (batch.compression, run.codecs)):
            if value not in known:
                known.append(value)  # type: ignore[arg-type]
        epoch, timestamp = batch.partitionLeaderEpoch, batch.maxTimestamp
        if epoch is not None and epoch >= 0:
            run.firstEpoch, run.lastEpoch = epoch if run.firstEpoch is None else run.firstEpoch, epoch
        if timestamp is not None and timestamp >= 0:
            run.firstTimestamp = timestamp if run.firstTimestamp is None else min(run.firstTimestamp, timestamp)
            run.lastTimestamp = max(run.lastTimestamp or 0, timestamp)
        if batch.producerId is not None and batch.producerId >= 0:
            if batch.producerId not in run.producerIds and len(run.producerIds) < MAX_LISTED:
                run.producerIds.append(batch.producerId)
            if _has_sequence(batch):
                self._producers.data(batch)
        return run


def _has_sequence(batch: Batch) -> bool:
    return bool(batch.producerId is not None and batch.producerId >= 0 and (batch.baseSequence or 0) >= 0) and (
        not batch.isControlBatch
    )


def _first(batch: Batch) -> int:
    """Return the first offset; for a wrapper that does not state it, the last."""
    if isinstance(batch, LegacyRecordBatch):
        read_wrapper(batch)
    return batch.lastOffset if batch.baseOffset is None else batch.baseOffset
