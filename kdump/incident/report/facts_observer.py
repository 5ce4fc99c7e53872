"""Collects what is drawn of a partition while its regions are read: the strips of its segments, bytes and records by
offset and by time, gaps, producers. Consecutive valid batches are processed in bulk."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import OrderedDict
from itertools import groupby

from kdump.check.finding import Finding
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.check.watchers.transactions import TransactionWatcher
from kdump.core.column_numbers import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_END,
    BATCH_START,
    IS_CONTROL,
    LAST_OFFSET,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
)
from kdump.core.header_columns import HeaderColumns, are_adjacent, total, within
from kdump.format.batch_header import COMPRESSION, TRANSACTIONAL
from kdump.format.codec_table import codec_name
from kdump.incident.report.facts import FindingRanges, Gap, PartitionFacts, ProducerEpoch, SegmentFacts
from kdump.incident.report.segment_strip import CONTROL, DAMAGED, CellContent, Ref, SegmentStrip, coarser
from kdump.log.producer_sums import ProducerSums
from kdump.log.region import Batch, Region
from kdump.questions.transactions.answer import Transaction

MAX_GAPS = 200
MAX_RECENT_TRANSACTIONS = 100_000
"""Maximum number of ended transactions that are remembered until the cells of the current segment exist."""
MANY_SEGMENTS = ((64, 64), (512, 16))
"""(segments, cells): after this many segments of a partition, each further one has at most this many cells."""
PRODUCERS = 200


class FactsObserver(Observer):
    """Observes the check of a partition: reports no findings, but fills `facts`."""

    def __init__(self, facts: PartitionFacts, known: PartitionContext, transactions: TransactionWatcher) -> None:
        self.facts, self.known, self.transactions = facts, known, transactions
        self.strip = SegmentStrip(None)
        self.segment = SegmentFacts("", 0)
        self.next: int | None = None
        """The offset after the last valid batch."""
        self.damaged = False
        """Whether bytes that are not a valid batch follow that batch."""
        self.epochs = ProducerEpochs()
        self.gaps: list[tuple[int, int, Gap]] = []
        self.recent: OrderedDict[Ref, str] = OrderedDict()
        self.pending: set[Ref] = set()
        self.marks: dict[str, FindingRanges] = {}

    def begin(self, part: SegmentContext) -> None:
        self.strip = SegmentStrip(part.size)
        self.segment = SegmentFacts(part.target.path, part.size or 0)

    def region(self, part: SegmentContext, region: Region) -> None:
        self.damaged = True
        self.strip.add(region.position, region.end, CellContent(region.kind))

    def batch(self, seen: BatchContext) -> None:
        batch = seen.batch
        self.segment.batches += 1
        if not seen.is_valid:
            self.damaged = True
            self.strip.add(batch.position, batch.end, CellContent(DAMAGED), batches=1)
            return
        base = batch.lastOffset if batch.baseOffset is None else batch.baseOffset
        records = batch.possible_records
        self.strip.add(batch.position, batch.end, self._content(batch), base, batch.lastOffset, 1, records)
        self._add_batches(base, batch.lastOffset, records, seen.part, batch.position)
        self.facts.offsets.spread(max(0, base), max(0, base, batch.lastOffset), batch.size, records)
        self._at(-1 if batch.maxTimestamp is None else batch.maxTimestamp, batch.size, records)
        self.epochs.batch(batch)

    def _content(self, batch: Batch) -> CellContent:
        producer = -1 if batch.producerId is None else batch.producerId
        ref = None
        if batch.isTransactional:
            ended = self.transactions.ended
            began = ended.transaction if ended is not None else self.transactions.state.open.get(producer)
            ref = (producer, began.first_offset) if began is not None else None
        return CellContent(CONTROL if batch.isControlBatch else batch.compression, producer, ref)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return within(heads, ATTRIBUTES, first, stop, 0, IS_CONTROL - 1)  # markers, which are looked at one by one

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        shift = heads.shift
        starts = [start + shift for start in heads.column(BATCH_START)[first:stop]]
        bases = heads.column(BASE_OFFSET)[first:stop].tolist()
        records = heads.column(RECORD_COUNT)[first:stop].tolist()
        end, last = heads.of(stop - 1, BATCH_END) + shift, heads.of(stop - 1, LAST_OFFSET)
        self.segment.batches += stop - first
        row = 0
        looks = zip(heads.column(ATTRIBUTES)[first:stop].tolist(), heads.column(PRODUCER_ID)[first:stop].tolist())
        for (attributes, producer), same in groupby(looks):
            upto = row + sum(1 for _ in same)
            following = (starts[upto], bases[upto] - 1) if upto < len(starts) else (end, last)
            look = self._content_of(attributes, producer)
            self.strip.add_many(look, starts[row:upto], following[0], bases[row:upto], following[1], records[row:upto])
            row = upto
        self._offsets(bases, heads.column(LAST_OFFSET)[first:stop].tolist(), starts, end, records)
        self._times(heads.column(MAX_TIMESTAMP)[first:stop].tolist(), starts, end, records)
        self.epochs.batches(heads, first, stop)
        self._follow(part, heads, first, stop)

    def _content_of(self, attributes: int, producer: int) -> CellContent:
        ref = None
        if attributes & TRANSACTIONAL.mask:
            began = self.transactions.state.open.get(producer)
            ref = (producer, began.first_offset) if began is not None else None
        return CellContent(codec_name(COMPRESSION.of(attributes)), producer, ref)

    def _offsets(self, bases: list[int], lasts: list[int], starts: list[int], end: int, records: list[int]) -> None:
        offsets, row = self.facts.offsets, 0
        while row < len(bases):
            width = offsets.width
            upto = row
            if lasts[row] < (bases[row] // width + 1) * width and lasts[-1] >= lasts[row]:
                upto = max(row + 1, bisect_left(lasts, (bases[row] // width + 1) * width, row))
                following = starts[upto] if upto < len(starts) else end
                offsets.add(bases[row], following - starts[row], sum(records[row:upto]))
            else:
                upto += 1
                following = starts[upto] if upto < len(starts) else end
                offsets.spread(bases[row], lasts[row], following - starts[row], records[row])
            row = upto

    def _times(self, times: list[int], starts: list[int], end: int, records: list[int]) -> None:
        oldest, newest, width = min(times), max(times), self.facts.time.width
        if oldest >= 0 and oldest // width == newest // width:
            self._at(oldest, end - starts[0], sum(records))
            self._at(newest, 0, 0)
            return
        for row, time in enumerate(times):
            following = starts[row + 1] if row + 1 < len(starts) else end
            self._at(time, following - starts[row], records[row])

    def _at(self, time: int, size: int, records: int) -> None:
        """Add bytes and records at a time (epoch ms); without a timestamp, records are only counted."""
        if time < 0:
            self.facts.untimed += records
            return
        segment = self.segment
        segment.oldest = time if segment.oldest is None else min(time, segment.oldest)
        segment.newest = time if segment.newest is None else max(time, segment.newest)
        self.facts.time.add(time, size, records)

    def _follow(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        """Add batches to the segment, and the gaps before and between them."""
        segment, row = self.segment, first
        while row < stop:
            upto = are_adjacent(heads, row, stop, heads.of(row, BASE_OFFSET) - 1)
            base, last = heads.of(row, BASE_OFFSET), heads.of(upto - 1, LAST_OFFSET)
            self._add_batches(
                base, last, total(heads, RECORD_COUNT, row, upto), part, heads.of(row, BATCH_START) + heads.shift
            )
            row = upto
        assert segment.last is not None

    def _add_batches(self, base: int, last: int, records: int, part: SegmentContext, position: int) -> None:
        """Add valid batches with consecutive offsets base..last, and the gap before them."""
        if self.next is not None and base > self.next:
            gap = Gap(self.next, base - 1, part.target.path, position, self.damaged)
            self.facts.gapCount += 1
            self.facts.missing += gap.size
            heapq.heappush(self.gaps, (gap.size, -gap.first, gap))
            if len(self.gaps) > MAX_GAPS:
                heapq.heappop(self.gaps)
        self.damaged = False
        self.next = max(self.next or 0, last + 1)
        segment = self.segment
        segment.records += records
        segment.first = base if segment.first is None else min(base, segment.first)
        segment.last = last if segment.last is None else max(last, segment.last)

    def finish(self, part: SegmentContext) -> None:
        segment = self.segment
        segment.size = segment.size or self.strip.end
        max_cells = next((cells for many, cells in reversed(MANY_SEGMENTS) if len(self.facts.segments) >= many), None)
        cells = self.strip.cells()
        segment.cells = cells if max_cells is None else coarser(cells, max_cells)
        self.facts.segments.append(segment)
        for cell in segment.cells:
            ref = cell.look.transaction
            if ref is None or ref in self.facts.states:
                continue
            if ref in self.recent:
                self.facts.states[ref] = self.recent[ref]
            else:
                self.pending.add(ref)
        self.recent.clear()
        self.strip = SegmentStrip(None)

    def add_transaction(self, row: Transaction) -> None:
        """Store how a transaction has ended, or that it is open."""
        if row.firstOffset is None:
            return
        ref = (row.producerId, row.firstOffset)
        if ref in self.pending:
            self.pending.discard(ref)
            self.facts.states[ref] = row.state
        self.recent[ref] = row.state
        if len(self.recent) > MAX_RECENT_TRANSACTIONS:
            self.recent.popitem(last=False)

    def found(self, finding: Finding) -> None:
        """Mark the bytes of a finding, if it has any."""
        if finding.size:
            self.marks.setdefault(finding.file, FindingRanges()).add(finding)

    def end(self) -> None:
        facts = self.facts
        facts.segmentCount = len(facts.segments)
        facts.gaps = sorted(gap for _, _, gap in self.gaps)
        facts.producers = self.epochs.largest(PRODUCERS)
        facts.producerCount = self.epochs.count


MAX_PRODUCER_EPOCHS = 4096
"""Maximum number of producer epochs in the table; when it is full, the half with the fewest bytes is removed."""


class ProducerEpochs(ProducerSums):
    """Collects valid batches. `count`: number of producer epochs, where one that was removed and appears again counts
    twice."""

    removed = 0

    @property
    def count(self) -> int:
        return len(self.sums) + self.removed

    def batch(self, batch: Batch) -> None:
        super().batch(batch)
        self._purge()

    def batches(self, heads: HeaderColumns, first: int, stop: int) -> None:
        super().batches(heads, first, stop)
        self._purge()

    def _purge(self) -> None:
        if len(self.sums) > MAX_PRODUCER_EPOCHS:
            kept = sorted(self.sums.items(), key=lambda item: -item[1][2])[: MAX_PRODUCER_EPOCHS // 2]
            self.removed += len(self.sums) - len(kept)
            self.sums = dict(kept)

    def largest(self, limit: int) -> list[ProducerEpoch]:
        """Return the `limit` producer epochs with the most bytes, in order of their first offsets."""
        epochs = [
            ProducerEpoch(*who, first, last, batches, records, size, newest)
            for who, (batches, records, size, _, newest, first, last) in self.sums.items()
        ]
        epochs = sorted(epochs, key=lambda each: -each.bytes)[:limit]
        return sorted(epochs, key=lambda each: (each.first, each.producerId, each.epoch))
