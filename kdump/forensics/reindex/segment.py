"""Reads one segment as recovery does, rebuilds its indexes, and compares the existing ones with them.

Source: LogSegment.recover, FileRecords.batches, RecordBatch.ensureValid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import Doc
from kdump.check.options import Options
from kdump.forensics.reindex.build import (
    INTERVAL,
    LARGEST_INDEX,
    THROWS,
    TRUNCATES,
    BatchEffects,
    IndexBuilder,
    IndexBytes,
    RecoveryStop,
)
from kdump.forensics.reindex.offset_index import OffsetIndexComparer
from kdump.forensics.reindex.time_index import TimeIndexComparer
from kdump.forensics.reindex.txn_index import TxnIndexComparer
from kdump.forensics.reindex.verdict import Verdict
from kdump.format.batch_header import BATCH_HEADER
from kdump.kafka.file_log_input_stream import StreamStop, kafka_batches
from kdump.log.entries import Item, entries
from kdump.log.errors import SourceError
from kdump.log.file_kinds import INDEX, TIME_INDEX, TXN_INDEX, FileKind
from kdump.log.partition_directory import SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import Batch
from kdump.log.segment_limits import MAX_SEGMENT_SIZE
from kdump.state.transaction_tracker import OpenTransactions

MAX_ENDINGS = 1000
"""Maximum number of Endings of one segment that are kept."""
PIECE = 1 << 20


class RecoveryEnd(NamedTuple):
    """Where recovery stops before the end of the file. `does`: what a broker does there, TRUNCATES, THROWS or SPLITS;
    `is_usual`: whether it is not damage, but the end of a preallocated file or of one that a broker is writing;
    `sound`: where the next valid batch begins, None if none is known."""

    position: Annotated[int, Doc()]
    reason: Annotated[str, Doc()]
    does: Annotated[str, Doc("effect on recovery: truncates, throws, splits")]
    is_usual: Annotated[bool, Doc("whether it is a preallocated end, or one that is being written")] = False
    sound: Annotated[int | None, Doc("start of the next valid batch; null if none is known")] = None


@dataclass
class RebuildOptions:
    """How to rebuild a segment. `open_end`: whether a broker may be appending to it; `compacted`: whether it may have
    been compacted; `known_from`: offset from which the beginning of every transaction is known; `past_damage`: whether
    to continue after the point where recovery truncates."""

    interval: int = INTERVAL
    largest: int = LARGEST_INDEX
    open_end: bool = True
    compacted: bool = False
    known_from: int = 0
    past_damage: bool = False
    on_progress: Callable[[int], None] = lambda count: None


@dataclass
class RebuiltSegment:
    """A segment. `valid`: the bytes that recovery accepts, of `size`; `endings`: where recovery stops and, with
    past_damage, all byte ranges that were skipped."""

    size: int
    valid: int = 0
    batches: int = 0
    lastOffset: int | None = None
    endings: list[RecoveryEnd] = field(default_factory=list)
    indexes: IndexBytes | None = None
    """None if a broker writes none, because it fails to start or splits the segment."""
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def ending(self) -> RecoveryEnd | None:
        """Where recovery stops; None at the end of the segment."""
        return self.endings[0] if self.endings else None


class _IndexComparers:
    """Compares the existing indexes of a segment."""

    def __init__(self, segment: SegmentFiles, question: RebuildOptions, options: Options) -> None:
        base, existing = segment.offset, segment.indexes
        self.verdicts = {kind: Verdict(kind, existing.get(kind)) for kind in (INDEX, TIME_INDEX, TXN_INDEX)}
        items = {kind: _items(each.target, kind, options, each) for kind, each in self.verdicts.items()}
        open_end = question.open_end
        self.offsets = OffsetIndexComparer(items[INDEX], self.verdicts[INDEX], base, open_end=open_end)
        self.offsets.interval = question.interval
        self.times = TimeIndexComparer(items[TIME_INDEX], self.verdicts[TIME_INDEX], base, open_end=open_end)
        self.aborted = TxnIndexComparer(
            items[TXN_INDEX],
            self.verdicts[TXN_INDEX],
            base,
            open_end=False,
            compacted=question.compacted,
            known_from=question.known_from,
        )

    def batch(self, batch: Batch, added: BatchEffects) -> None:
        """Process a batch that the builder has accepted."""
        self.offsets.batch(batch)
        self.times.batch(batch)
        # Without an .index, entries are due where a rebuilt one would have them.
        if self.offsets.here if self.offsets.verdict.path is not None else added.indexed:
            self.times.due()
        self.aborted.added(batch, added)

    def finish(self, indexes: IndexBytes, found: RebuiltSegment, options: Options) -> None:
        pairs = ((self.offsets, indexes.index), (self.times, indexes.timeindex), (self.aborted, indexes.txnindex))
        for judge, rebuilt in pairs:
            verdict = judge.verdict
            judge.finish(rebuilt, found.valid, found.size, is_stopped=not all(each.is_usual for each in found.endings))
            verdict.rebuiltSize, verdict.rebuiltEntries = len(rebuilt), len(rebuilt) // judge.layout.size
            is_same = _begins(verdict, rebuilt, options) and verdict.entries == verdict.rebuiltEntries
            verdict.settle(is_identical=is_same and verdict.size == len(rebuilt), is_same=is_same)


def rebuild(
    segment: SegmentFiles,
    transactions: OpenTransactions,
    question: RebuildOptions,
    options: Options,
    *,
    judged: bool = True,
) -> RebuiltSegment:
    """Rebuild the indexes of a segment. `transactions` contains the transactions open at its beginning, and is updated.
    If not `judged`, the existing indexes are not read. Raises SourceError."""
    assert segment.log is not None
    window = options.open(segment.log)
    with closing(window.source):
        found = RebuiltSegment(window.source.size or 0)
        if found.size > MAX_SEGMENT_SIZE:
            reason = f"{found.size} bytes: a broker does not open segments larger than {MAX_SEGMENT_SIZE}"
            found.endings.append(RecoveryEnd(0, reason, THROWS))
            return found
        judges = _IndexComparers(segment, question, options) if judged else None
        builder = IndexBuilder(
            segment.offset, question.interval, largest=question.largest, transactions=transactions, segment=segment.log
        )
        for item in kafka_batches(window, name_offset=segment.offset, limits=options.limits):
            ending = _take(item, builder, judges) if isinstance(item, Batch) else _ending(item, question)
            if isinstance(item, Batch):
                question.on_progress(item.size)
            if ending is not None:
                if len(found.endings) < MAX_ENDINGS:
                    found.endings.append(ending)
                if not question.past_damage:
                    break
            elif isinstance(item, Batch):
                found.batches += 1
                found.lastOffset = item.lastOffset
                found.valid = item.end if not found.endings else found.valid
        found.size = window.source.size or found.valid  # the size of a compressed file is known only now
        try:
            indexes = builder.finish()
        except RecoveryStop as stop:
            found.endings.insert(0, RecoveryEnd(found.valid, str(stop), stop.does))
            return found
        if judges is not None:
            judges.finish(indexes, found, options)
            found.verdicts = list(judges.verdicts.values())
        if found.ending is None or found.ending.does == TRUNCATES or question.past_damage:
            found.indexes = indexes
        return found


def _take(batch: Batch, builder: IndexBuilder, judges: _IndexComparers | None) -> RecoveryEnd | None:
    """Add the next batch; return the RecoveryEnd if recovery rejects it."""
    description = f"the batch with offset {batch.lastOffset}"
    if batch.magic > 1 and batch.size < BATCH_HEADER.size:
        return RecoveryEnd(batch.position, f"a batch of {batch.size} bytes, less than a header", TRUNCATES)
    if not batch.crcValid:
        return RecoveryEnd(batch.position, f"the checksum of {description} does not match", TRUNCATES)
    try:
        added = builder.add(batch)
    except RecoveryStop as stop:
        return RecoveryEnd(batch.position, f"{description}: {stop}", stop.does)
    if judges is not None:
        judges.batch(batch, added)
    return None


def _ending(stop: StreamStop, question: RebuildOptions) -> RecoveryEnd:
    """Return the RecoveryEnd for bytes that are not a batch."""
    usual = question.open_end and stop.next_valid is None and (stop.zeros or not stop.thrown)
    return RecoveryEnd(stop.position, stop.reason, TRUNCATES, usual, stop.next_valid)


def _items(target: Target | None, kind: FileKind, options: Options, verdict: Verdict) -> Iterator[Item]:
    """Yield everything in an index; a read error is recorded in `verdict`."""
    if target is None:
        return
    try:
        window = options.open(target)
        with closing(window.source):
            verdict.size = window.source.size or 0
            yield from entries(kind, window, target.name_offset or 0)
    except SourceError as error:
        verdict.unread = str(error)


def _begins(verdict: Verdict, rebuilt: bytes, options: Options) -> bool:
    """Return True if the existing file begins with these bytes."""
    if verdict.target is None or verdict.size < len(rebuilt) or verdict.unread:
        return False
    with suppress(SourceError), closing(options.open(verdict.target).source) as source:
        return all(
            source.read_at(at, len(rebuilt[at : at + PIECE])) == rebuilt[at : at + PIECE]
            for at in range(0, len(rebuilt), PIECE)
        )
    return False
