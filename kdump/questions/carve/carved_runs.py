"""Groups adjacent batches, as in a segment, into runs: each was probably one file.

Batches do not state their topic or partition, so runs do not, either. A run continues if the next batch begins exactly
where the last one ends, and nothing indicates that it belongs to another log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from kdump.answer import BYTES, EPOCH_MS, FILE_BYTE, OFFSET, Doc, PathText, Shown, answer, columns
from kdump.format.codec_table import NAMES
from kdump.format.count_text import range_text
from kdump.log.legacy_records import read_wrapper
from kdump.log.region import Batch, LegacyRecordBatch
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET, MAX_SEGMENT_SIZE
from kdump.state.producer_state import GAP, ProducerState, ProducerStateEntry, follows

__all__ = ["CarvedRun"]

SECTOR = 512
"""Sector size of a disk in bytes: a file begins at a multiple of it."""
MAX_RUN_ENDS = 200_000
"""Maximum number of runs whose end offsets are kept, to find runs that may follow them: 30 MB."""
MAX_LISTED = 10
"""Maximum number of producers, and of runs that it may follow, that are listed for a run."""


def _words(values: list[Any]) -> str:
    return " ".join(map(str, values))


@columns(
    bytes=Shown(right=True, cell=lambda run: str(run.size), after="position"),
    recordCount=Shown("records", 5, right=True, cell=lambda run: str(run.records), after="batches"),
    offsets=Shown(cell=lambda run: range_text(run.firstOffset, run.lastOffset), after="recordCount"),
    magic=Shown(rank=3, cell=lambda run: _words(run.magics), after="offsets"),
    codec=Shown(rank=4, cell=lambda run: _words(run.codecs), after="magic"),
    epoch=Shown(rank=2, right=True, cell=lambda run: range_text(run.firstEpoch, run.lastEpoch), after="codec"),
    producers=Shown(rank=1, cell=lambda run: _words(run.producerIds), after="epoch"),
    follows=Shown("may follow", 7, right=True, cell=lambda run: _words(run.mayFollow)),
)
@answer("run")
@dataclass
class CarvedRun:
    """Adjacent batches of `file`, bytes position..end-1. Epochs and producer IDs are those of v2 batches."""

    number: Annotated[int, Doc("number of the run, from 1 in the order found", name="run"), Shown()]
    file: Annotated[PathText, Doc("path of the searched file")]
    position: Annotated[int, Doc("start of its first batch", FILE_BYTE), Shown()]
    end: int
    firstOffset: Annotated[int, Doc("first offset of its first batch", OFFSET, after="records")]
    lastOffset: Annotated[int, Doc("last offset of its last batch", OFFSET, after="firstOffset")]
    batches: Annotated[int, Doc("number of batches, which directly follow each other"), Shown()] = 0
    records: Annotated[int, Doc("number of records, from headers; for compressed messages of v0 and v1 if known")] = 0
    magics: Annotated[list[int], Doc("formats (magic) of its batches")] = field(default_factory=list)
    codecs: Annotated[list[str], Doc(f"compression of its batches: {NAMES}")] = field(default_factory=list)
    firstEpoch: Annotated[int | None, Doc("leader epoch of its first batch with one", name="firstLeaderEpoch")] = None
    lastEpoch: Annotated[int | None, Doc("leader epoch of its last batch with one", name="lastLeaderEpoch")] = None
    producerIds: Annotated[list[int], Doc(f"producer IDs of its batches, at most {MAX_LISTED}")] = field(
        default_factory=list
    )
    firstTimestamp: Annotated[int | None, Doc("smallest maxTimestamp of its batches", EPOCH_MS)] = None
    lastTimestamp: Annotated[int | None, Doc("largest maxTimestamp of its batches", EPOCH_MS), Shown("newest", 6)] = (
        None
    )
    mayFollow: Annotated[
        list[int], Doc(f"numbers of earlier runs that end at the offset before firstOffset, at most {MAX_LISTED}")
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
        current = self.current
        if current is None or batch.position != current.end:
            return True
        base, last = _first(batch), batch.lastOffset
        if base <= current.lastOffset or last - current.firstOffset > MAX_RELATIVE_OFFSET:
            return True
        if batch.end - current.position > MAX_SEGMENT_SIZE:
            return True
        is_gap = base != current.lastOffset + 1
        if is_gap and batch.position % SECTOR == 0:
            return True  # as likely another file as a log that the cleaner compacted
        epoch = batch.partitionLeaderEpoch
        if epoch is not None and epoch >= 0 and current.lastEpoch is not None and epoch < current.lastEpoch:
            return True
        producer = (
            self._producers.get(batch.producerId) if _has_sequence(batch) and batch.producerId is not None else None
        )
        broken = follows(producer, batch) if producer is not None else None
        return broken is not None and not (is_gap and broken.kind == GAP)

    def end(self) -> CarvedRun | None:
        """End the current run and return it; None if there is none."""
        ended, self.current = self.current, None
        if ended is not None and len(self._ends) < MAX_RUN_ENDS:
            self._ends.setdefault(ended.lastOffset + 1, []).append(ended.number)
        return ended

    def add(self, file: str, batch: Batch) -> CarvedRun:
        """Add a batch and return its run: the current one, or a new one if there is none."""
        current = self.current
        if current is None:
            self.count += 1
            base = _first(batch)
            current = self.current = CarvedRun(self.count, file, batch.position, batch.position, base, base)
            current.mayFollow = self._ends.get(base, [])[:MAX_LISTED]
            self._producers = ProducerState()
        current.end, current.lastOffset = batch.end, batch.lastOffset
        current.batches += 1
        current.records += batch.possible_records
        for value, listed in ((batch.magic, current.magics), (batch.compression, current.codecs)):
            if value not in listed:
                listed.append(value)  # type: ignore[arg-type]
        epoch, timestamp = batch.partitionLeaderEpoch, batch.maxTimestamp
        if epoch is not None and epoch >= 0:
            current.firstEpoch, current.lastEpoch = epoch if current.firstEpoch is None else current.firstEpoch, epoch
        if timestamp is not None and timestamp >= 0:
            current.firstTimestamp = (
                timestamp if current.firstTimestamp is None else min(current.firstTimestamp, timestamp)
            )
            current.lastTimestamp = max(current.lastTimestamp or 0, timestamp)
        if batch.producerId is not None and batch.producerId >= 0:
            if batch.producerId not in current.producerIds and len(current.producerIds) < MAX_LISTED:
                current.producerIds.append(batch.producerId)
            if _has_sequence(batch):
                self._producers.data(batch)
        return current


def _has_sequence(batch: Batch) -> bool:
    return bool(batch.producerId is not None and batch.producerId >= 0 and (batch.baseSequence or 0) >= 0) and (
        not batch.isControlBatch
    )


def _first(batch: Batch) -> int:
    """Return the first offset; for a wrapper that does not state it, the last."""
    if isinstance(batch, LegacyRecordBatch):
        read_wrapper(batch)
    return batch.lastOffset if batch.baseOffset is None else batch.baseOffset
