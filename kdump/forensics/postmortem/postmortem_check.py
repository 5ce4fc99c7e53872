"""One scan of a partition for everything: the checks of `kdump verify`, the counts of `kdump stats`, the ledger of
`kdump transactions`, and what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop
from typing import Any

from kdump.check.engine.partition_check import PartitionCheck
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.check.totals import CheckTotals
from kdump.cluster.transaction_coordinator import TransactionCoordinatorState
from kdump.core.header_columns import HeaderColumns
from kdump.forensics.answers import HANGING, OPEN, Difference, Note, PartitionTransactions, Transaction
from kdump.forensics.partition_scan import PartitionScan
from kdump.forensics.postmortem.facts import PartitionFacts
from kdump.forensics.postmortem.facts_observer import FactsObserver
from kdump.forensics.read_stats import StatsReader
from kdump.forensics.stats import Stats
from kdump.forensics.transaction_ledger import TransactionLedger
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.region import Batch, Region
from kdump.log.window import Window

MAX_OPEN_TRANSACTIONS, MAX_ENDED_TRANSACTIONS, MAX_DIFFERENCES = 200, 200, 50


class LedgerObserver(Observer):
    """Passes the scan to the ledger and keeps its answers: open transactions, and the longest of those that ended."""

    def __init__(self, ledger: TransactionLedger, facts: PartitionFacts, survey: FactsObserver) -> None:
        self.ledger = ledger
        self.facts = facts
        self.survey = survey
        self.longest: dict[str, list[tuple[int, int, int, Transaction]]] = {}
        self.count = 0

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop

    def batch(self, seen: BatchContext) -> None:
        self._keep(self.ledger.batch(seen))

    def finish(self, part: SegmentContext) -> None:
        self._keep(self.ledger.finish(part))

    def end(self) -> None:
        self._keep(self.ledger.end())
        ended = [row for rows in self.longest.values() for _, _, _, row in rows]
        self.facts.transactions += sorted(ended, key=lambda row: (row.firstOffset or 0, row.producerId))

    def _keep(self, answers: Any) -> None:
        facts = self.facts
        for answer in answers:
            if isinstance(answer, Transaction):
                self.survey.add_transaction(answer)
                self._row(answer)
            elif isinstance(answer, PartitionTransactions):
                facts.ended = answer
            elif isinstance(answer, Difference) and len(facts.differences) < MAX_DIFFERENCES:
                facts.differences.append(answer)
            elif isinstance(answer, Note) and len(facts.notes) < MAX_DIFFERENCES:
                facts.notes.append(f"{answer.source}: {answer.message}" if answer.source else answer.message)

    def _row(self, row: Transaction) -> None:
        if row.state in (OPEN, HANGING):
            if len(self.facts.transactions) < MAX_OPEN_TRANSACTIONS:
                self.facts.transactions.append(row)
            return
        first = row.firstOffset if row.firstOffset is not None else row.markerOffset
        size = (row.markerOffset or 0) - (first or 0)
        self.count += 1
        rows = self.longest.setdefault(row.state, [])
        entry = (size, -(first or 0), self.count, row)
        if len(rows) < MAX_ENDED_TRANSACTIONS:
            heappush(rows, entry)
        else:
            heappushpop(rows, entry)


def _name(partition: PartitionDirectory, alone: bool) -> str:
    """Return the name to display: for a single file it includes the partition, if the directory's name contains it."""
    is_known = alone and partition.topic is not None
    return f"{partition.topic}-{partition.partition}/{partition.name}" if is_known else partition.name


class PostMortemCheck(PartitionScan):
    """The scan. `facts` is filled while the caller consumes the findings and passes each to `found`."""

    survey: FactsObserver

    def __init__(
        self,
        partition: PartitionDirectory,
        known: PartitionContext,
        options: Options,
        totals: CheckTotals,
        *,
        alone: bool = False,
    ) -> None:
        stats = Stats(partition.path, partition.topic, partition.partition)
        self.facts = PartitionFacts(
            name=_name(partition, alone),
            path=partition.path,
            source=partition.source,
            topic=partition.topic,
            partition=partition.partition,
            state=partition.state,
            is_compacted=bool(known.compacted),
            stats=stats,
        )
        self.reader = StatsReader(stats, options)
        super().__init__(partition, known, options, totals, alone=alone)
        self.survey = FactsObserver(self.facts, known, self.transactions)
        coordinator = known.coordinator if isinstance(known.coordinator, TransactionCoordinatorState) else None
        ledger = TransactionLedger(self, coordinator, options.now, options.transaction_timeout)
        self.watch(LedgerObserver(ledger, self.facts, self.survey), self.survey)

    def _make_observers(self) -> list[Observer]:
        """Return the rules of verify, of which the ledger needs the .txnindex entries without a marker."""
        self.entries_of_index.keeps = True
        return PartitionCheck._make_observers(self)

    def _regions(self, part: SegmentContext, window: Window, run_mode: str) -> Iterator[Region]:
        stats = self.facts.stats
        self.reader.begin(part.target, window.source)
        for region in super()._regions(part, window, run_mode):
            problems = list(region.problems) if isinstance(region, Batch) else []
            yield region
            if isinstance(region, Batch):
                region.problems = problems  # without those that the check has added: the statistics find them again
            self.reader.region(part.target, region, part.last)
        stats.files += 1
        stats.bytes += window.source.size or 0

    def found(self, finding: Finding) -> None:
        """Add a finding of this partition."""
        self.survey.found(finding)
