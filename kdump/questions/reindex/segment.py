"""Reads one segment as recovery does, rebuilds its indexes, and compares the existing ones with them.

Source: LogSegment.recover, FileRecords.batches, RecordBatch.ensureValid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from kdump.answer import Doc
from kdump.check.engine.neighbor_files import MAX_BYTES_READ_AGAIN
from kdump.check.options import Options
from kdump.format.count_text import plain_count
from kdump.io.errors import SourceError
from kdump.kafka.errors import CorruptRecord, InvalidOffset, KafkaError, Overflow
from kdump.kafka.file_log_input_stream import StreamStop, kafka_batches
from kdump.kafka.index_builder import INTERVAL, LARGEST_INDEX, IndexBuilder, IndexBytes
from kdump.kafka.index_judge import ORDER, SIZE, ZEROS, Fault
from kdump.kafka.producer_state_manager import CompletedTxn, OngoingTxns
from kdump.kafka.transaction_index import (
    AbortMarker,
    AbortMarkers,
    TransactionIndexJudge,
    entry_problem,
    newer_entry,
    newer_last_entry,
    next_begins,
)
from kdump.log.entries import EntryRun, entry_runs
from kdump.log.file_kinds import INDEX, TIME_INDEX, TXN_INDEX, FileKind
from kdump.log.partition_directory import SegmentFiles
from kdump.log.region import TORN, Batch, Region
from kdump.log.segment_limits import MAX_SEGMENT_SIZE
from kdump.questions.reindex.verdict import OffsetIndexComparer, RebuiltEntries, TimeIndexComparer, Verdict

TRUNCATES, EMPTIES, THROWS, SPLITS = "truncates", "empties", "throws", "splits"
"""What a broker does at a batch that recovery rejects: truncate the log there or at the beginning of the segment, fail
to start, or split the segment."""
MAX_ENDINGS = 1000
"""Maximum number of RecoveryEnds of one segment that are kept."""
PIECE = 1 << 20
END = 1 << 62
"""A byte position after that of any file."""


class RecoveryEnd(NamedTuple):
    """Where recovery stops before the end of the file. `does`: what a broker does there, TRUNCATES or another of these;
    `is_usual`: whether it is not damage, but the end of a preallocated file or of one that a broker is writing;
    `sound`: where the next valid batch begins, None if none is known."""

    position: Annotated[int, Doc()]
    reason: Annotated[str, Doc()]
    does: Annotated[str, Doc("effect on recovery: truncates, empties (the whole segment), throws, splits")]
    is_usual: Annotated[bool, Doc("whether it is a preallocated end, or one that is being written")] = False
    sound: Annotated[int | None, Doc("start of the next valid batch; null if none is known")] = None


@dataclass
class RebuildOptions:
    """How to rebuild a segment. `open_end`: whether a broker may be appending to it; `is_last`: whether it is the last
    one of its log; `compacted`: whether it may have been compacted; `known_from`: offset from which the beginning of
    every transaction is known; `past_damage`: whether to continue after the point where recovery truncates;
    `unflushed`: whether a startup recovers the segment because it may not be flushed (LogLoader.recoverLog)."""

    interval: int = INTERVAL
    largest: int = LARGEST_INDEX
    open_end: bool = True
    is_last: bool = True
    compacted: bool = False
    known_from: int = 0
    past_damage: bool = False
    unflushed: bool = False


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


class _TxnIndexComparer:
    """Compares a .txnindex with the ABORT markers of its segment, once all are known."""

    def __init__(self, segment: SegmentFiles, verdict: Verdict, question: RebuildOptions, options: Options) -> None:
        self.segment, self.verdict, self.question, self.options = segment, verdict, question, options
        self.aborts = AbortMarkers()
        self.walked = 0

    def add(self, batch: Batch, completed: CompletedTxn) -> None:
        """Process the marker of a transaction."""
        if completed.is_aborted:
            producer, _, offset, first, stable = completed
            whole, first = first is not None, -1 if first is None else first
            self.aborts.add(AbortMarker(offset, producer, first, stable, batch.position, batch.size, whole))

    def finish(self, cut: int | None) -> None:
        """Judge the entries. `cut`: the last offset before the damage at which recovery stops, None if it does not."""
        if self.verdict.path is None:
            return
        verdict, question = self.verdict, self.question
        judge = TransactionIndexJudge(
            self.aborts, question.known_from, question.compacted, self._begins, verdict.because
        )
        last = self.segment.offset - 1
        newer = self._newer()
        for item in _items(self.verdict, TXN_INDEX, self.options):
            if isinstance(item, Region):
                verdict.note(Fault(SIZE if item.kind == TORN else ZEROS, item, None, item.reason))
                continue
            for entry in item.entries():
                number, verdict.entries = verdict.entries, verdict.entries + 1
                if newer and newer_entry(entry.values["version"]):
                    continue  # with other fields, perhaps
                problem = entry_problem(entry.values, last)
                last = max(last, entry.values["lastOffset"])
                if cut is not None and entry.values["lastOffset"] > cut:
                    verdict.because("behindTheCut")
                elif problem:
                    verdict.note(Fault(ORDER, entry, number, problem))
                elif not newer and (fault := judge.entry(entry, number)) is not None:
                    verdict.note(fault)
        if newer:
            verdict.unread = verdict.unread or f"{verdict.path}: {newer}"
            return
        for fault in judge.missing():
            verdict.note(fault)

    def _newer(self) -> str:
        """Return that only a release newer than the newest known one writes such a file: it is then not judged."""
        assert self.verdict.target is not None
        with suppress(SourceError), closing(self.options.open(self.verdict.target).source) as source:
            return newer_last_entry(source, source.size or 0)
        return ""

    def _begins(self, abort: AbortMarker, offset: int) -> bool:
        assert self.segment.log is not None
        window = self.options.open(self.segment.log)
        with closing(window.source):
            left = MAX_BYTES_READ_AGAIN - self.walked
            begins, walked = next_begins(window, abort, offset, self.options.limits, left)
        self.walked += walked
        return begins


class _IndexComparers:
    """Compares the existing indexes of a segment."""

    def __init__(self, segment: SegmentFiles, question: RebuildOptions, options: Options) -> None:
        existing, self.base = segment.indexes, segment.offset
        self.verdicts = {kind: Verdict(kind, existing.get(kind)) for kind in (INDEX, TIME_INDEX, TXN_INDEX)}
        offsets, times, aborted = self.verdicts.values()
        how: dict[str, Any] = {"may_be_open": question.open_end, "is_last": question.is_last, "start": self.base}
        self.offsets = OffsetIndexComparer(_items(offsets, INDEX, options), offsets, interval=question.interval, **how)
        self.times = TimeIndexComparer(_items(times, TIME_INDEX, options), times, **how)
        self.aborted = _TxnIndexComparer(segment, aborted, question, options)

    def batch(self, batch: Batch, *, indexed: bool) -> None:
        """Process a batch that recovery accepts. `indexed`: a rebuilt .index has an entry for it."""
        self.offsets.batch(batch)
        self.times.batch(batch)
        # Without an .index, entries are due where a rebuilt one would have them.
        if self.offsets.here if self.offsets.verdict.path is not None else indexed:
            self.times.due()

    def gap(self, end: int) -> None:
        """Process bytes up to `end` that recovery rejects."""
        self.offsets.gap(end)
        self.times.gap(end)

    def finish(self, indexes: IndexBytes, rebuilt_segment: RebuiltSegment, options: Options) -> None:
        for judge in (self.offsets, self.times):
            judge.finish(rebuilt_segment.size)
            verdict, verdict.entries = judge.verdict, judge.entries
            if judge.zeros is not None:
                verdict.because("preallocated")
            if judge.is_left_over:
                verdict.forgive("leftOver")
        is_cut = not all(ending.is_usual for ending in rebuilt_segment.endings)
        self.aborted.finish((rebuilt_segment.lastOffset or -1) if is_cut else None)
        for verdict, rebuilt in zip(self.verdicts.values(), (indexes.index, indexes.timeindex, indexes.txnindex)):
            expected = RebuiltEntries(verdict.kind, rebuilt, self.base)
            verdict.rebuiltSize, verdict.rebuiltEntries = len(rebuilt), len(expected)
            is_same = _begins(verdict, rebuilt, options) and verdict.entries == verdict.rebuiltEntries
            verdict.settle(expected, is_identical=is_same and verdict.size == len(rebuilt), is_same=is_same)


def rebuild(
    segment: SegmentFiles, transactions: OngoingTxns, question: RebuildOptions, options: Options, *, judged: bool = True
) -> RebuiltSegment:
    """Rebuild the indexes of a segment. `transactions` contains the transactions open at its beginning, and is updated.
    If not `judged`, the existing indexes are not read. Raises SourceError."""
    assert segment.log is not None
    window = options.open(segment.log)
    with closing(window.source):
        rebuilt = RebuiltSegment(window.source.size or 0)
        if rebuilt.size > MAX_SEGMENT_SIZE:
            reason = (
                f"{plain_count(rebuilt.size, 'byte')}: a broker does not open segments larger than {MAX_SEGMENT_SIZE}"
            )
            rebuilt.endings.append(RecoveryEnd(0, reason, THROWS))
            return rebuilt
        judges = _IndexComparers(segment, question, options) if judged else None
        builder = IndexBuilder(segment.offset, question.interval, largest=question.largest, transactions=transactions)
        for item in kafka_batches(window, name_offset=segment.offset, limits=options.limits):
            if isinstance(item, Batch):
                ending = _take(item, builder, judges, rebuilt, question)
                options.more(item.size)
            else:
                ending = _ending(item, question)
            if ending is not None:
                if judges is not None:
                    judges.gap(_gap_end(item) if question.past_damage else END)
                if len(rebuilt.endings) < MAX_ENDINGS:
                    rebuilt.endings.append(ending)
                if not question.past_damage:
                    break
        rebuilt.size = window.source.size or rebuilt.valid  # the size of a compressed file is known only now
        try:
            indexes = builder.finish()
        except KafkaError as error:
            does = _does(error, question)
            rebuilt.endings.insert(0, RecoveryEnd(rebuilt.valid, str(error), does))
            rebuilt.valid = 0 if does == EMPTIES else rebuilt.valid
            return rebuilt
        if judges is not None:
            judges.finish(indexes, rebuilt, options)
            rebuilt.verdicts = list(judges.verdicts.values())
        if rebuilt.ending is None or rebuilt.ending.does == TRUNCATES or question.past_damage:
            rebuilt.indexes = indexes
        return rebuilt


def _take(
    batch: Batch,
    builder: IndexBuilder,
    judges: _IndexComparers | None,
    rebuilt: RebuiltSegment,
    question: RebuildOptions,
) -> RecoveryEnd | None:
    """Take the next batch as LogSegment.recover does; return the RecoveryEnd if recovery stops at it."""
    last = batch.lastOffset
    description = f"the batch with offset {last}"
    if not batch.format.is_message and batch.size < batch.format.header.size:
        return RecoveryEnd(
            batch.position, f"a batch of {plain_count(batch.size, 'byte')}, less than a header", TRUNCATES
        )
    if not batch.crcValid:
        return RecoveryEnd(batch.position, f"the checksum of {description} does not match", TRUNCATES)
    try:
        indexed = builder.index(batch)
        rebuilt.batches += 1
        rebuilt.lastOffset = last  # LogSegment.readNextOffset
        rebuilt.valid = batch.end if not rebuilt.endings else rebuilt.valid
        if judges is not None:
            judges.batch(batch, indexed=indexed)
        completed = builder.update_producers(batch)
        if completed is not None and judges is not None:
            judges.aborted.add(batch, completed)
    except KafkaError as error:
        does = _does(error, question)
        if does == EMPTIES and not rebuilt.endings:
            rebuilt.valid = 0
        return RecoveryEnd(batch.position, f"{description}: {error}", does)
    return None


def _does(error: KafkaError, question: RebuildOptions) -> str:
    if isinstance(error, InvalidOffset) and question.unflushed:
        return EMPTIES
    return TRUNCATES if isinstance(error, CorruptRecord) else SPLITS if isinstance(error, Overflow) else THROWS


def _gap_end(item: Batch | StreamStop) -> int:
    """Return where the bytes end that recovery rejects."""
    return item.end if isinstance(item, Batch) else item.next_valid or END


def _ending(stop: StreamStop, question: RebuildOptions) -> RecoveryEnd:
    """Return the RecoveryEnd for bytes that are not a batch."""
    usual = question.open_end and stop.next_valid is None and (stop.zeros or not stop.thrown)
    return RecoveryEnd(stop.position, stop.reason, TRUNCATES, usual, stop.next_valid)


def _items(verdict: Verdict, kind: FileKind, options: Options) -> Iterator[EntryRun | Region]:
    """Yield everything in an index; a read error is recorded in its verdict."""
    target = verdict.target
    if target is None:
        return
    try:
        window = options.open(target)
        with closing(window.source):
            verdict.size = window.source.size or 0
            yield from entry_runs(kind, window, target.name_offset or 0)
    except SourceError as error:
        verdict.unread = str(error)


def _begins(verdict: Verdict, rebuilt: bytes, options: Options) -> bool:
    """Return True if the existing file begins with these bytes."""
    if verdict.target is None or verdict.size < len(rebuilt) or verdict.unread:
        return False
    with suppress(SourceError), closing(options.open(verdict.target).source) as source:
        return all(
            source.read_at(start, len(rebuilt[start : start + PIECE])) == rebuilt[start : start + PIECE]
            for start in range(0, len(rebuilt), PIECE)
        )
    return False
