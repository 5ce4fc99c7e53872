"""Collects the facts for a post-mortem of paths: each partition is read once, several in parallel."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from heapq import heappush, heappushpop
from itertools import islice
from typing import TYPE_CHECKING, Any

from kdump.answer import Note
from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.units import CheckUnit, units
from kdump.check.engine.workers import in_worker, processes_for, usual_jobs_for, worker_pool
from kdump.check.finding import SEVERITIES, Finding
from kdump.check.options import Options
from kdump.check.rule import BatchContext, Observer, SegmentContext, SegmentObserver
from kdump.check.totals import CheckTotals
from kdump.cluster.directory_summary import had_clean_shutdown
from kdump.core.header_columns import HeaderColumns
from kdump.incident.report.facts import Directory, PartitionFacts, PostMortem, Series, by_time
from kdump.incident.report.facts_observer import FactsObserver
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.low_impact_reads import limited_to
from kdump.io.run import Run
from kdump.io.shared_counter import FromWorker, result_of
from kdump.kafka.small_files import properties
from kdump.log.histograms import Histogram
from kdump.log.log_directory import META, LogDirectory
from kdump.log.partition_directory import PartitionDirectory
from kdump.parallel_jobs import stop_workers, submitted, worker_ended
from kdump.questions.certain_answers import is_damage
from kdump.questions.stats.frequent_items import SpaceSaving
from kdump.questions.stats.run import StatsReader
from kdump.questions.stats.totals import Stats
from kdump.questions.transactions.answer import HANGING, OPEN, Difference, PartitionTransactions, Transaction
from kdump.questions.transactions.ledger import TransactionLedger
from kdump.signals import uninterrupted

if TYPE_CHECKING:
    from concurrent.futures import Future

DRAWN = 60
"""Number of partitions for which everything is kept; of the others, only what a table row needs."""
KEPT = {"error": 200, "warning": 200, "info": 50}
"""Maximum number of findings kept per partition, by severity."""
AHEAD = 4
"""Units of work per process that are started before their turn."""
TOPICS = 200
"""Maximum number of topics with their own bytes and records over time; those with the fewest bytes are counted
together."""

UnitFilter = Callable[[CheckUnit], bool]
PartitionResult = tuple[PartitionFacts, CheckTotals]


def postmortem(
    paths: str | Iterable[str],
    options: Run | None = None,
    *,
    is_selected: UnitFilter = lambda unit: True,
    jobs: int | None = None,
    max_rate: int | None = None,
) -> PostMortem:
    """Read the files, partition directories and log directories at `paths` or below, and return the facts for a
    post-mortem, in memory that does not grow with the logs.

    `is_selected` selects units of work (check/engine/units.py); `jobs` is the number of cores to use, by default as in
    `kdump verify`; `max_rate` is in bytes per second, for all of them together. A path that cannot be read is
    passed to `options.unreadable`. Raises SourceError if there is no partition at all; what cannot be read below a path
    is in the totals' `unread`."""
    began = time.monotonic()
    named = [paths] if isinstance(paths, str) else list(paths)
    options = Options.given(options, now=round(time.time() * 1000))

    unread: list[SourceError] = []
    work = [unit for unit in units(tuple(named), replace(options, unreadable=unread.append)) if is_selected(unit)]
    if all(unit.directory is not None for unit in work):
        raise unread[0] if unread else SourceError("no partitions found here")
    for error in unread:
        options.unreadable(error)
    options.expect(sum(unit.size for unit in work))
    made = PostMortem(named, options.now)
    gather = _Gather(made)
    with limited_to(max_rate):
        for unit, (facts, totals) in _run_all(work, jobs or usual_jobs_for(work), named, options):
            if unit.directory is not None:
                made.directories.append(_directory(unit.directory))
            gather.add(facts, totals)
    gather.end()
    made.totals.add_failures()
    made.seconds = time.monotonic() - began
    return made


NONE = SpaceSaving(0)
"""Replaces the keys and producers of a partition after they have been added to the total."""


class _Gather:
    """Collects partitions as they are finished, and drops what will not be drawn."""

    def __init__(self, made: PostMortem) -> None:
        self.made = made
        self.series: dict[str | None, Histogram] = {}
        self.sizes: dict[str, int] = {}
        self.drawn: list[PartitionFacts] = []

    def add(self, facts: PartitionFacts, totals: CheckTotals) -> None:
        made = self.made
        made.totals.add(totals)
        made.totals.findings.update(facts.severities)
        if not facts.segmentCount:
            made.others.append(facts)
            return
        made.untimed += facts.untimed
        made.stats.add(facts.stats)
        topic = facts.topic or facts.name
        self.series.setdefault(topic, by_time()).merge(facts.time)
        self.sizes[topic] = self.sizes.get(topic, 0) + facts.stats.batchBytes
        self._fewer()
        facts.time = by_time()
        facts.stats.moments, facts.stats.keys, facts.stats.producers = Histogram(), NONE, NONE
        made.partitions.append(facts)
        self.drawn.append(facts)
        if len(self.drawn) > DRAWN:
            least = min(self.drawn, key=lambda each: each.weight)
            self.drawn.remove(least)
            least.forget()

    def _fewer(self) -> None:
        if len(self.sizes) > TOPICS:
            least = min(self.sizes, key=lambda topic: self.sizes[topic])
            del self.sizes[least]
            self.series.setdefault(None, by_time()).merge(self.series.pop(least))

    def end(self) -> None:
        self.made.series = [Series(topic, time) for topic, time in self.series.items()]


def _directory(directory: LogDirectory) -> Directory:
    return Directory(directory.path, properties(directory.files.get(META)), had_clean_shutdown(directory))


def read_unit(unit: CheckUnit) -> PartitionResult:
    """Read a unit of work once, and return its facts and totals."""
    totals, scans = CheckTotals(), list[_ScanFacts]()
    severities, codes, damages = Counter[str](), Counter[tuple[str, str]](), 0
    kept: dict[str, list[Finding]] = {severity: [] for severity in SEVERITIES}

    def observers(scan: PartitionScan) -> Iterable[Observer | SegmentObserver]:
        scans.append(_ScanFacts(scan))
        return scans[0].observers

    for finding in unit.run(totals, observers):
        for scan in scans:
            scan.survey.found(finding)
        totals.missing.add(finding)
        severities[finding.severity] += 1
        codes[finding.severity, finding.code] += 1
        damages += is_damage(finding)
        if len(kept[finding.severity]) < KEPT[finding.severity]:
            kept[finding.severity].append(finding)
    name = unit.partition.name if unit.partition is not None else unit.name
    facts = scans[0].taken() if scans else PartitionFacts(name, unit.name, "", None, None, "")
    facts.severities, facts.codes = severities, codes
    facts.ended = facts.ended and facts.ended._replace(damages=damages)
    facts.findings = [finding for severity in SEVERITIES for finding in kept[severity]]
    return facts, totals


def _read_here(unit: CheckUnit) -> PartitionResult:
    return read_unit(replace(unit, options=replace(unit.options, open_source=careful_source)))


def _run_all(
    work: list[CheckUnit], jobs: int, named: list[str], run: Run
) -> Iterator[tuple[CheckUnit, PartitionResult]]:
    """Yield each unit, in order, with its facts and totals."""
    with ExitStack() as stack:
        processes = processes_for(work, jobs)
        made = worker_pool(stack, processes, named) if processes > 1 else None
        if made is None:
            for unit in work:
                yield unit, _read_here(unit)
            return
        from concurrent.futures import BrokenExecutor

        pool, counter = made
        is_broken = False
        futures: deque[Future[FromWorker[PartitionResult]]] = deque()
        rest = iter(work)
        try:
            for unit in work:
                result = None
                try:
                    # Only a few are read before their turn: each result may contain thousands of keys.
                    with uninterrupted():  # stop_workers has to find every worker that was started
                        for following in islice(rest, 0 if is_broken else AHEAD * jobs - len(futures)):
                            futures.append(submitted(pool, in_worker, read_unit, following))
                    if not is_broken:
                        result = result_of(futures.popleft(), counter, run)
                except BrokenExecutor:
                    is_broken = True
                    run.unreadable(worker_ended(unit.name))
                yield unit, _read_here(unit) if result is None else result
        except BaseException:
            stop_workers(pool)
            raise


MAX_OPEN_TRANSACTIONS, MAX_ENDED_TRANSACTIONS, MAX_DIFFERENCES = 200, 200, 50


class LedgerObserver(Observer):
    """Passes the scan to the ledger and keeps its answers: open transactions, and the longest of those that ended."""

    def __init__(self, ledger: TransactionLedger, facts: PartitionFacts, survey: FactsObserver) -> None:
        self.ledger, self.facts, self.survey = ledger, facts, survey
        self.longest: dict[str, list[tuple[int, int, int, Transaction]]] = {}
        self.count = 0

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return stop

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        self._keep(self.ledger.accept_run(part, heads, first, stop))

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


class _ScanFacts:
    """Collects the facts of a scan by three `observers` more than it has rules."""

    def __init__(self, scan: PartitionScan) -> None:
        partition = scan.partition
        self.facts = PartitionFacts(
            name=_name(partition, scan.alone),
            path=partition.path,
            source=partition.source,
            topic=partition.topic,
            partition=partition.partition,
            state=partition.state,
            is_compacted=bool(scan.known.compacted),
            stats=Stats(partition.path, partition.topic, partition.partition),
        )
        self.survey = FactsObserver(self.facts, scan.known, scan.transactions)
        ledger = LedgerObserver(TransactionLedger(scan), self.facts, self.survey)
        self.observers = (ledger, self.survey, StatsReader(self.facts.stats, scan.options))

    def taken(self) -> PartitionFacts:
        """Return the facts after the scan."""
        facts = self.facts
        for segment in facts.segments:
            segment.marks = list(self.survey.marks.get(segment.path, ()))
        for sketch in (facts.stats.keys, facts.stats.producers):  # arrays that are only needed for counting
            sketch.shed()
            sketch.counts, sketch.weights = sketch.counts[: len(sketch.slots)], sketch.weights[: len(sketch.slots)]
        return facts
