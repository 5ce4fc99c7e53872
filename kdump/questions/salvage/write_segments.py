"""Writes the chosen batches to a partition directory that a broker can load: segments with their indexes.

Segments begin where those of the source do: if the name of a source segment is above everything that has been written,
a segment of that name begins there. The file in which a batch was found does not matter.
There are no .snapshot files: a broker rebuilds them from the batches at startup. leader-epoch-checkpoint is that of the
source if it matches the batches; otherwise it has their own epochs.

Source: LeaderEpochCheckpointFile (version, count, a line for each epoch and its first offset), LeaderEpochFileCache."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from typing import BinaryIO, Protocol

from kdump.format.batch_header import LOG_OVERHEAD
from kdump.io.errors import SourceError
from kdump.kafka.errors import KafkaError
from kdump.kafka.index_builder import IndexBuilder
from kdump.kafka.leader_epoch_file_cache import (
    EpochEntry,
    LeaderEpochFileCache,
    StoredEpoch,
    epoch_for_offset,
    first_falling,
)
from kdump.kafka.producer_state_manager import OngoingTxns
from kdump.log.output_directory import PASSING, OutputDirectory
from kdump.log.region import Batch, DefaultRecordBatch, LegacyRecordBatch
from kdump.log.segment_limits import MAX_RELATIVE_OFFSET, MAX_SEGMENT_SIZE
from kdump.questions.salvage.source.salvage_reader import SalvageCandidate
from kdump.state.transaction_marker import marker_of
from kdump.state.transaction_tracker import OpenTransactions

LARGEST_FILE = 1 << 30
"""Default of segment.bytes. A segment is rolled at this size, unless its source was larger."""


class BatchRejected(Exception):
    """Raised for a batch that a broker would not load at its place in the output; nothing of it was written."""


class BatchWriter(Protocol):
    """The destination of the chosen batches."""

    @property
    def files(self) -> list[str]:
        """Paths of the files that contain batches, relative to the output directory, in order."""

    def write(self, head: SalvageCandidate) -> tuple[str, int | None]:
        """Write a batch; return the path of the file relative to the output directory, and its byte position there,
        None if it is not stored as it was. Raises BatchRejected, OutputError, and SourceError if its bytes have
        changed."""

    def close(self) -> None:
        """Complete the output, after the last batch."""

    def abandon(self) -> None:
        """Stop, and discard what is incomplete."""


class SegmentWriter:
    """Writes the segments of one partition to `writing`, which becomes `directory` in `out` (see
    OutputDirectory.together). `transactions`: the open transactions so far, over all segments."""

    def __init__(self, out: OutputDirectory, directory: str) -> None:
        self.out, self.directory = out, directory
        self.writing = directory + PASSING
        self.transactions = OpenTransactions()
        self._ongoing = OngoingTxns()
        self.names: list[int] = []
        """Base offsets of the segments written so far."""
        self.last = -1
        self.starts_at_batch = False
        """Whether the first segment begins at its first batch, whatever the name of its source is."""
        self._source = ""
        self._builder: IndexBuilder | None = None
        self._file: BinaryIO | None = None
        self._stack = ExitStack()
        self._size = 0

    @property
    def files(self) -> list[str]:
        """Paths of the segments, relative to the output directory."""
        return [f"{self.directory}/{base:020}.log" for base in self.names]

    def write(self, head: SalvageCandidate) -> tuple[str, int]:
        place = head.reader.place
        size = head.batch.size
        home = _home(head)
        if self._file is None or self._rolls(head, home, size):
            is_named = bool(self.names) or not self.starts_at_batch
            fresh = is_named and self.last < home <= head.base and head.last - home <= MAX_RELATIVE_OFFSET
            self._roll(home if fresh else head.base)
        assert self._builder is not None
        assert self._file is not None
        try:
            self._builder.add(head.batch, self._size)
        except KafkaError as error:
            raise BatchRejected(str(error)) from error
        if write_batch(self._file, head.batch) != size:
            raise SourceError.at(
                place.target.path, "changed while being read; copy it elsewhere, or stop its broker, and try again"
            )
        count_batch(self.transactions, head)
        position, self._size = self._size, self._size + size
        self.last = head.last
        return f"{self.directory}/{self._name('log')}", position

    def _rolls(self, head: SalvageCandidate, home: int, size: int) -> bool:
        assert self._builder is not None
        own = self._builder.base_offset
        if head.last - own > MAX_RELATIVE_OFFSET or self._size + size > MAX_SEGMENT_SIZE:
            return True
        starts = home > self.last and home != own and self._size > 0
        return starts or (self._size + size > LARGEST_FILE and head.position < self._size)

    def empty(self, base: int) -> None:
        """Write a segment without batches, at which the log continues."""
        if base not in self.names and base > self.last:
            self._roll(base)

    def close(self) -> None:
        self._end()

    def abandon(self) -> None:
        error = RuntimeError("abandoned")
        self._stack.__exit__(RuntimeError, error, None)
        self._file = None

    def _name(self, suffix: str) -> str:
        return f"{self.names[-1]:020}.{suffix}"

    def _roll(self, base: int) -> None:
        if self._file is not None and self._size == 0:  # its first batch was rejected
            self.abandon()
            self.names.pop()
        self._end()
        self.names.append(base)
        self._builder = IndexBuilder(base, transactions=self._ongoing)
        self._stack = ExitStack()
        self._file = self._stack.enter_context(self.out.writing(f"{self.writing}/{self._name('log')}"))
        self._size = 0

    def _end(self) -> None:
        if self._file is None or self._builder is None:
            return
        self._file = None
        self._stack.close()
        built = self._builder.finish()
        self.out.write(f"{self.writing}/{self._name('index')}", built.index)
        self.out.write(f"{self.writing}/{self._name('timeindex')}", built.timeindex)
        if built.txnindex:
            self.out.write(f"{self.writing}/{self._name('txnindex')}", built.txnindex)


def count_batch(transactions: OpenTransactions, head: SalvageCandidate) -> None:
    """Apply a batch to the open transactions."""
    batch = head.batch
    if batch.producerId is None or batch.producerId < 0:
        return
    marker = marker_of(batch)
    if marker is not None:
        transactions.marker(batch.producerId, batch.producerEpoch or 0, batch.lastOffset, marker)
    elif not batch.isControlBatch:
        transactions.data(head.reader.place.target, batch)


def _home(head: SalvageCandidate) -> int:
    """Return the base offset of the segment in its copy to which the batch belongs by its offset, -1 if there is none.
    For a file that is not a live segment, return that of the file."""
    place = head.reader.place
    if place.spare:
        return place.name
    after = bisect_right(place.names, head.base)
    return place.names[after - 1] if after else -1


def write_batch(file: BinaryIO, batch: Batch) -> int:
    """Write the bytes of the batch with its corrected header; return their number."""
    if isinstance(batch, DefaultRecordBatch):
        start = file.write(batch.header.packed())
    else:
        assert isinstance(batch, LegacyRecordBatch)
        file.write(batch.header.offset.to_bytes(8, "big", signed=True))
        file.write((batch.size - LOG_OVERHEAD).to_bytes(4, "big"))
        start = LOG_OVERHEAD
    done = start
    for chunk in batch.chunks(start, batch.size - start):
        done += file.write(chunk)
    return done


MAX_EPOCHS = 100_000
"""Maximum number of leader epochs that are kept; no log has so many."""


class EpochsWritten:
    """The leader epochs of the batches that are written, in order. `checkpoint`: the entries of the source's
    file, None without one. The file is ignored if one of the columns is not in ascending order, or if a batch
    has a different epoch."""

    def __init__(self, checkpoint: Sequence[StoredEpoch] | None) -> None:
        self._given = checkpoint or ()
        self._agrees = bool(self._given) and first_falling(self._given) is None
        self._seen: list[tuple[int, int]] = []

    def add(self, epoch: int, base: int) -> bool:
        """Add a batch; return True if its epoch is lower than that of a batch before it."""
        if epoch < 0:
            return epoch < -1  # -1: none
        self._agrees = self._agrees and epoch_for_offset(self._given, base) == epoch
        if self._seen and epoch <= self._seen[-1][0]:
            return epoch < self._seen[-1][0]
        if len(self._seen) < MAX_EPOCHS:
            self._seen.append((epoch, base))
        return False

    def entries(self, end: int, cut_at: int | None = None) -> tuple[list[tuple[int, int]], str]:
        """Return (epoch, start offset) pairs, and their origin: source, batches or empty. `end`: the log end offset;
        entries of the source above it are dropped. `cut_at`: the log start offset of a log that was cut: the entries
        are those that a broker keeps when it truncates the log from both ends."""
        if self._agrees:
            entries = [entry for entry in self._given if entry.startOffset <= end]
            if cut_at is not None:
                cache = LeaderEpochFileCache([EpochEntry(entry.epoch, entry.startOffset) for entry in entries])
                cache.truncate_from_end(end)
                cache.truncate_from_start(cut_at)
                return [(entry.epoch, entry.startOffset) for entry in cache.entries], "source" if cache.entries else ""
            kept = [(entry.epoch, entry.startOffset) for entry in entries]
            return kept, "source" if kept else ""
        return self._seen, "batches" if self._seen else ""


def checkpoint_text(entries: Sequence[tuple[int, int]]) -> bytes:
    """Return the contents of the file."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()
