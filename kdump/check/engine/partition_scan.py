"""Scans one partition: every segment in order, seen by observers, and the state that carries over between segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from kdump.check.engine.batch_runs import BatchRunChecker
from kdump.check.engine.neighbor_files import NeighborFiles
from kdump.check.engine.unflipped import unflipped
from kdump.check.finding import ERROR, INFO, WARNING, Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.resume_state import FINDINGS, NAMES, NUMBER, Resumable, packed, unpack
from kdump.check.resume_state import HELD as HELD_FINDINGS
from kdump.check.rule import BatchContext, Observer, SegmentContext, SegmentObserver
from kdump.check.rules import records as record_rules
from kdump.check.rules.bytes import MAGIC_UNKNOWN, batch_findings, region_finding, unreadable_bytes
from kdump.check.rules.producer_snapshots import ProducerSnapshotRule
from kdump.check.totals import CheckTotals
from kdump.check.watchers.broker_start import BrokerStart
from kdump.check.watchers.compaction import CompactionWatcher
from kdump.check.watchers.producers import ProducerWatcher
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.check.watchers.txn_index_entries import TxnIndexEntries
from kdump.core.column_numbers import BASE_OFFSET, LAST_OFFSET, RECORD_COUNT
from kdump.core.header_columns import HeaderColumns, total
from kdump.format.count_text import count_text
from kdump.io.errors import ReadingStopped, SourceError
from kdump.io.source import RECORDS, FileSource, Source, modified
from kdump.io.window import Window
from kdump.log.batch_validity import impossible_count, is_valid
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.legacy_records import read_wrapper
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.region import PADDING, Batch, BatchRun, DefaultRecordBatch, LegacyRecordBatch, Region
from kdump.log.region_reader import Depth, regions
from kdump.log.walk import RegionObserver, walk
from kdump.log.withheld import with_bytes, withheld_segment
from kdump.problems.advice import joined_cases
from kdump.state.other_replicas import who_has_it
from kdump.state.producer_state import ProducerState
from kdump.state.transaction_marker import marker_of
from kdump.state.transaction_tracker import OngoingTxn

ObserversOf = Callable[["PartitionScan"], Iterable[Observer | SegmentObserver]]
"""Returns the observers of a scan, before it begins."""
MAX_HELD = 1000
"""Maximum number of findings held back until it is known what a truncation at their position loses."""


class PartitionScan(Resumable, RegionObserver):
    """One scan of a partition: its segments in order, seen by observers of batches, which may be rules, and then by
    observers of regions. `observers` returns them for the scan, whose watchers they may ask if they are among them
    (kdump.check.engine.rule_list). `log_start` and `log_end` are set after it. It can stop before any segment and be
    resumed there: `state` returns the state, `resume` restores it."""

    saved_fields = {
        **dict.fromkeys(("log_start", "_valid_end", "reached", "recovery_sensitive", "_records"), NUMBER),
        "_held": HELD_FINDINGS,
        "later": FINDINGS,
        "damaged": NAMES,
    }
    _part: SegmentContext
    """The current segment."""
    _source: Source
    _runs: BatchRunChecker | None = None

    def __init__(
        self,
        partition: PartitionDirectory,
        known: PartitionContext,
        options: Options,
        totals: CheckTotals,
        observers: ObserversOf,
        *,
        alone: bool = False,
        producers: ProducerState[Any] | None = None,
    ) -> None:
        """`alone`: only the segments are checked, because a single file was selected; `producers`: the state to keep of
        the producers, by default what the rules need."""
        self.partition = partition
        self.known = known
        self.options = options
        self.totals = totals
        self.alone = alone
        self.log_start: int | None = None
        self._valid_end: int | None = None
        """The offset after the last valid batch; None if it is unknown."""
        self._base = 0
        """The base offset of the current segment."""
        self.reached = -1
        """The highest offset that a valid batch starts or ends with."""
        self.recovery_sensitive = 0
        """Number of findings whose impact depends on whether recovery re-reads the segment."""
        self.first = 0
        """Index of the segment to start with."""
        self.within: tuple[int, int] | None = None
        """Of that segment: the byte up to which it was checked before, and the offset of the next batch; None: none."""
        self._held: list[tuple[Finding, int, int | None]] = []
        """Damage with the number of records, and the log end offset, before it."""
        self._records = 0
        self._damage: int | None = None
        """Position of the bytes before the next batch that are not valid; None if there are none."""
        self.damaged: list[str] = []
        """Paths of the segments with bytes that are not valid."""
        self.later: list[Finding] = []
        """Findings that depend on whether anything is damaged, which the end of the log decides; whoever sets it yields
        them then."""
        self._lacks: set[str] = set()
        """What of the log is withheld."""
        self.seeded_from: Target | None = None
        """The producer snapshot at the base offset of the first segment, which stands in for the log below it: its open
        transactions are those at the start. None if there is no such snapshot, or it is not valid."""
        self.neighbor_files = NeighborFiles(options, totals)
        self.producers = ProducerWatcher(known, producers)
        self.transactions = TransactionWatcher()
        self.entries_of_index = TxnIndexEntries(self.transactions, self.neighbor_files.aborted)
        self.compaction = CompactionWatcher(known)
        every = list(observers(self))
        self.observers = [observer for observer in every if isinstance(observer, Observer)]
        self._of_regions = [observer for observer in every if isinstance(observer, SegmentObserver)]

    @cached_property
    def start(self) -> BrokerStart:
        """What a broker does with the snapshots."""
        read = replace(self.options, open_source=with_bytes(self.options.open_source)).open
        return BrokerStart(self.partition, self.known, self.neighbor_files.snapshot, read, self.totals.add_unreadable)

    @property
    def is_one_log(self) -> bool:
        """Whether the segments form one log, unlike copies in remote storage."""
        return self.alone or self.partition.topic is not None

    def seeded_transactions(self) -> TransactionWatcher:
        """Return the watcher of transactions, with those that are open where the log begins."""
        if not self.alone:
            self.transactions.start = self.start
            first = self.start.bases[0]
            for target in self.partition.snapshots if first > 0 else ():
                stored = self.start.open_in(target) if target.name_offset == first else None
                if stored is not None:
                    self.transactions.state.correct(stored)
                    self.seeded_from = target
        return self.transactions

    def findings(self) -> Iterator[Any]:
        """Yield the findings about the log, and what else the observers answer, in log order. The other files of the
        directory are checked by kdump.check.engine.units."""
        try:
            for number in range(self.first, len(self.partition.segments)):
                for observer in self.observers:
                    observer.before(number)
                yield from self.segment(number)
            yield from self.end()
        finally:
            self.observers, self._runs = [], None  # some refer to this scan

    def segment(self, number: int) -> Iterator[Finding]:
        """Yield the findings about the segment at this index, which follows the one that was read before it."""
        segments = self.partition.segments
        yield from self._segment(segments[number], segments[number + 1] if number + 1 < len(segments) else None)

    def by_itself(self, number: int) -> Iterator[Finding]:
        """Yield the findings about the segment at this index that need no other segment."""
        self.forget()
        yield from self.segment(number)
        yield from (finding for finding, _, _ in self._held)
        self._held = []

    def end(self) -> Iterator[Finding]:
        """Yield the findings that only the end of the log decides."""
        yield from self._truncated()
        yield from _findings(observer.end() for observer in self.observers)

    def state(self) -> str:
        """Return the state left by the segments so far as JSON, without the counts in `totals`. Raises StateError."""
        return packed([self, self.neighbor_files, *self.observers])

    def resume(self, number: int, state: str, within: tuple[int, int] | None = None) -> None:
        """Continue with the segment at index `number`, with the `state` of another check of the same segments before
        it, and of this one up to `within`: a byte at which a batch begins or will begin, and its offset. If this raises
        StateError, the check can no longer be used."""
        segments = self.partition.segments[: number + (within is not None)]
        logs = [segment.log for segment in segments if segment.log is not None]
        unpack(state, [self, self.neighbor_files, *self.observers], [*logs, *self.partition.snapshots])
        offset = self.partition.segments[number].offset if within is None else within[1]
        self.transactions.continue_at(offset, is_within=within is not None)
        self.first, self.within = number, within

    def forget(self) -> None:
        """Note that what was read so far says nothing of what is read next: no rule concludes anything from both."""
        self._valid_end = None
        for observer in self.observers:
            observer.unread()

    def _segment(self, segment: SegmentFiles, following: SegmentFiles | None) -> Iterator[Finding]:
        assert segment.log is not None
        last = following is None and segment.log.name_offset is not None
        if self.alone:
            last = self.known.last if self.known.last is not None else True
        try:
            window = self.options.open(segment.log)
        except SourceError as error:
            self._unread(error)
            return
        start, start_offset = self.within or (0, 0)
        self.within = None
        if segment.log.name_offset is not None:
            self._base = segment.log.name_offset
            self._valid_end = start_offset if start else self._base
        part = SegmentContext(
            segment,
            segment.log,
            last,
            recovers(self.known, following),
            self.known.now if (changed := modified(window.source)) is None else changed,
            window.source.size,
            start,
            start_offset,
            None if following is None or following.log is None else following.log.name_offset,
        )
        try:
            yield from self._walk(part, window)
            self.totals.files += 1
        except SourceError as error:
            self._unread(error)
        finally:
            self.totals.bytes += max(0, (window.source.size or 0) - start)
            window.source.close()

    def _unread(self, error: SourceError) -> None:
        """Report the error. No rule draws conclusions across bytes that were not read."""
        if not isinstance(error, ReadingStopped):
            self.totals.add_unreadable(error)
        self.forget()

    def _walk(self, part: SegmentContext, window: Window) -> Iterator[Finding]:
        observers, source = self.observers, window.source
        decode = not self.options.headers_only
        keyed = bool(self.known.compacted)
        withheld = withheld_segment(source)
        lacks = set() if withheld is None else withheld.unchecked(keyed=keyed)
        deep = decode and "records" in self.options.chosen
        unchecked = {lacked for lacked in lacks if lacked != RECORDS or deep}
        deep = deep and RECORDS not in lacks
        self.totals.withheld.update(sorted(unchecked - self._lacks))
        self._lacks.update(lacks)
        for other in self._of_regions:
            other.begin(part.target, window, part.last)
        yield from _findings(observer.begin(part) for observer in observers)
        self._runs = BatchRunChecker(part, self.known, observers, self.options.limits, decode=decode, deep=deep)
        self._part, self._source, self._damage = part, source, None
        yield from walk(partial(self._regions, part, window), [self, *self._of_regions], self.options)
        if source.error:
            self.totals.unread.append(source.error)
        yield from unreadable_bytes(part.target, source)
        yield from _findings(observer.finish(part) for observer in observers)
        for other in self._of_regions:
            other.finish(source)

    @property
    def depth(self) -> Depth:  # type: ignore[override]
        """What the observers need of the regions."""
        return Depth.CHECKSUMS if all(observer.accepts_runs for observer in self.observers) else Depth.BATCHES

    def region(self, region: Region) -> Iterator[Finding]:
        part, source, damage = self._part, self._source, self._damage
        if isinstance(region, BatchRun):
            self._damage = None
            yield from self._examined(region, damage)
        elif isinstance(region, Batch):
            valid = is_valid(region)  # before a wrapper is read
            yield from self._batch(region, damage)
            if valid:
                self._damage = None
                return
            self._damaged_in(part)
            self._damage = region.position if damage is None else damage
        else:
            if region.kind != PADDING:
                self._damaged_in(part)
            self._damage = region.position if damage is None else damage
            if not (region.end == source.size and isinstance(source, FileSource) and self._grows(source)):
                yield from self._hold(region_finding(part, region, source.size, served=not self.known.state))
                yield from _findings(observer.region(part, region) for observer in self.observers)

    def _damaged_in(self, part: SegmentContext) -> None:
        if self.damaged[-1:] != [part.target.path]:
            self.damaged.append(part.target.path)

    def _examined(self, region: BatchRun, damage: int | None) -> Iterator[Finding]:
        """Let the observers examine the batches of a run. `damage`: as in `_batch`."""
        runs = self._runs
        assert runs is not None
        for batches in runs.split(region, damage is not None):
            if isinstance(batches, range):
                self._count_accepted(region.headers, batches)
                yield from runs.accept(region.headers, batches)
                continue
            batch, marker = batches
            if marker is None:
                yield from self._batch(batch, damage)
            else:  # plain_marker has examined it
                self._count(1, 1, batch.lastOffset, batch.lastOffset)
                yield from self._observe(BatchContext(self._part, batch, True, marker, None))
            damage = None

    def _regions(self, part: SegmentContext, window: Window, depth: Depth) -> Iterator[Region]:
        """Return the regions of the segment."""
        name_offset = part.target.name_offset
        return regions(window, name_offset=name_offset, start=part.start, limits=self.options.limits, depth=depth)

    def _batch(self, batch: Batch, damage: int | None) -> Iterator[Finding]:
        """Yield all findings for one batch. `damage`: position of bytes before it that are not valid, None if there are
        none."""
        part, valid, reading = self._part, is_valid(batch), Reading(batch)
        if valid and not self.options.headers_only and isinstance(batch, LegacyRecordBatch):
            read_wrapper(reading)
        repaired = None if valid or self.options.headers_only else unflipped(batch)
        if not valid:
            for finding in batch_findings(part, batch):
                yield from self._hold(finding.given({"exactRepair": repaired is not None}))
        marker = None
        if valid and not self.options.headers_only:
            if "records" in self.options.chosen and RECORDS not in self._lacks:
                yield from record_rules.findings(part, self.known, reading)
            marker = marker_of(batch)
        if valid:
            yield from record_rules.count_findings(part.target, reading)
            base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
            self._count(1, 0 if reading.problems else batch.possible_records, base, batch.lastOffset)
        else:
            self.totals.batches += 1
            marker = None if repaired is None else marker_of(repaired)
        if not valid or reading.problems or impossible_count(batch) is not None:
            self.totals.add_damaged(batch)
        written = repaired if isinstance(repaired, DefaultRecordBatch) else None
        yield from self._observe(BatchContext(part, batch, valid, marker, damage, written))

    def _observe(self, seen: BatchContext) -> Iterator[Finding]:
        for observer in self.observers:
            answers = observer.batch(seen)
            if answers:
                yield from answers

    def _count_accepted(self, heads: HeaderColumns, rows: range) -> None:
        records = total(heads, RECORD_COUNT, rows.start, rows.stop)
        self._count(len(rows), records, heads.of(rows.start, BASE_OFFSET), heads.of(rows.stop - 1, LAST_OFFSET))

    def _count(self, batches: int, records: int, first: int, last: int) -> None:
        """Count valid batches with their records and first and last offset."""
        self.totals.batches += batches
        self.totals.records += records
        self._records += records
        self.log_start = first if self.log_start is None else min(self.log_start, first)
        self._valid_end = max(self._base, last + 1)
        self.reached = max(self.reached, first, last)

    def _grows(self, source: FileSource) -> bool:
        """Return True, and add a note, if the file grew during the check: its last bytes cannot be judged."""
        if not self._part.last or source.grown() <= 0:
            return False
        self.totals.notes.append(f"{self._part.target.path}: grew while being read; its new end was not checked")
        return True

    def _hold(self, finding: Finding) -> Iterator[Finding]:
        """Hold back damage that a restart will truncate until the records lost with it have been counted."""
        doubtful = finding.severity in (ERROR, WARNING)
        self.recovery_sensitive += doubtful
        survives = finding.code == MAGIC_UNKNOWN.code  # its checksum does not cover magic: recovery may keep it
        if self._part.recovers and doubtful and not survives and len(self._held) < MAX_HELD:
            self._held.append((finding, self._records, self._valid_end))
        else:
            yield finding

    def _truncated(self) -> Iterator[Finding]:
        mark = self.known.high_watermark
        for number, (finding, before, end) in enumerate(self._held):
            lost = self._records - before
            case = "truncatesRecords" if lost else "truncates"
            values: dict[str, object] = {"records": count_text(lost, "record")}
            if mark is not None and mark > (end or 0):
                case = joined_cases(case, "belowWatermark")
                values |= {"offsets": count_text(mark - (end or 0), "offset"), "watermark": mark}
                values["replicas"] = who_has_it(self.known.replicas)
            if number:
                case = "truncatesBefore"
            yield finding.in_case(case, values=values) if finding.severity != INFO else finding
        self._held = []

    @property
    def compared(self) -> list[str]:
        """Paths of the producer snapshots that have been compared with the log so far."""
        return next((rule.compared for rule in self.observers if isinstance(rule, ProducerSnapshotRule)), [])

    @property
    def open_transactions(self) -> Mapping[int, OngoingTxn]:
        """A broker's open transactions at the end of the log, by producer ID; empty if no rule needs them."""
        return self.transactions.state.in_broker

    @property
    def last_stable_offset(self) -> int | None:
        """The first offset of the oldest open transaction of a broker, or its log end offset (BrokerStart); None if it
        is unknown."""
        running, start, end = next(iter(self.open_transactions.values()), None), self.transactions.start, self.log_end
        if running is None or start is None:
            return end if running is None else running.first_offset
        return start.last_stable_offset(end, running.first_offset, is_suspect=self.transactions.is_suspect)

    @property
    def log_end(self) -> int | None:
        """The log end offset of a broker that starts, as `next_offset` has it; None if it is unknown."""
        start, end = self.transactions.start, self._valid_end
        return end if start is None else start.log_end(end, is_suspect=self.transactions.is_suspect)

    @property
    def stored_end(self) -> int | None:
        """The offset at which the stored log ends; None if it is unknown."""
        start, end = self.transactions.start, self._valid_end
        return end if start is None else start.stored_end(end, is_suspect=self.transactions.is_suspect)

    @property
    def held_by(self) -> int | None:
        """The producer ID of the transaction at which read_committed consumers stop; None if there is none."""
        producer_id = next(iter(self.open_transactions), None)
        return None if producer_id is None or self.last_stable_offset == self.log_end else producer_id


def _findings(answers: Iterable[Iterable[Finding] | None]) -> Iterator[Finding]:
    """Yield the findings that observers return, one observer after the other."""
    for answer in answers:
        if answer:
            yield from answer


def recovers(context: PartitionContext, following: SegmentFiles | None) -> bool | None:
    """Return True if the broker re-reads a segment at startup, given the one `following` it; None if unknown.
    After an unclean shutdown it re-reads the one that contains the recovery point and those after it
    (LogLoader.recoverLog); KRaft always re-reads all (KafkaRaftLog)."""
    if context.topic == METADATA_TOPIC:
        return True
    if context.clean is not False:
        return None if context.clean is None else False
    point = context.checkpoints.get("recovery-point-offset")
    return point is None or following is None or following.offset > point.offset
