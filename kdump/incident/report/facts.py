"""Facts for a post-mortem, of each partition and of all. Sizes in bytes, times in epoch ms; None: unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kdump.check.finding import ERROR, WARNING, Finding
from kdump.check.rules.newer_release import NEWER_RELEASE
from kdump.check.totals import CheckTotals
from kdump.incident.report.segment_strip import Cell, Ref
from kdump.log.histograms import Histogram, doubling, of_time
from kdump.questions.stats.totals import Stats
from kdump.questions.transactions.answer import Difference, PartitionTransactions, Transaction

MAX_MARKS = 100
"""Maximum number of marks of one severity in one file; if there are more, marks near each other are merged."""


class FindingRange(NamedTuple):
    """Bytes start..end-1 of a file with this number of `findings`, the first of which has this code."""

    start: int
    end: int
    severity: str
    code: str
    findings: int


class FindingRanges:
    """Collects the findings of one file."""

    def __init__(self) -> None:
        self.near = 0
        self.by_severity: dict[str, list[FindingRange]] = {}

    def add(self, finding: Finding) -> None:
        marks = self.by_severity.setdefault(finding.severity, [])
        start = finding.position
        mark = FindingRange(start, start + max(1, finding.size), finding.severity, finding.code, 1)
        if marks and _gap(marks[-1], mark) <= self.near:
            marks[-1] = _both(marks[-1], mark)
            return
        marks.append(mark)
        while len(marks) > MAX_MARKS:
            self._thin(marks)

    def _thin(self, marks: list[FindingRange]) -> None:
        marks.sort()
        self.near = max(1, 2 * self.near, (marks[-1].end - marks[0].start) // (4 * MAX_MARKS))
        kept = [marks[0]]
        for mark in marks[1:]:
            if _gap(kept[-1], mark) <= self.near:
                kept[-1] = _both(kept[-1], mark)
            else:
                kept.append(mark)
        marks[:] = kept

    def __iter__(self) -> Iterator[FindingRange]:
        return iter(sorted(mark for marks in self.by_severity.values() for mark in marks))


def _gap(one: FindingRange, other: FindingRange) -> int:
    return max(one.start, other.start) - min(one.end, other.end)


def _both(one: FindingRange, other: FindingRange) -> FindingRange:
    start, end = min(one.start, other.start), max(one.end, other.end)
    return FindingRange(start, end, one.severity, one.code, one.findings + other.findings)


MAX_BUCKETS = 512
"""Maximum number of buckets that are drawn."""


def by_time() -> Histogram:
    """Return an empty histogram of bytes and records over time."""
    return Histogram(of_time, MAX_BUCKETS)


@dataclass
class SegmentFacts:
    """A segment and its contents. Offsets and times are those of its valid batches."""

    path: str
    size: int
    batches: int = 0
    records: int = 0
    first: int | None = None
    last: int | None = None
    oldest: int | None = None
    newest: int | None = None
    cells: list[Cell] = field(default_factory=list)
    marks: list[FindingRange] = field(default_factory=list)


class Gap(NamedTuple):
    """Offsets first..last that no batch has. `is_damage`: the gap contains bytes that are not a valid batch."""

    first: int
    last: int
    path: str
    position: int
    is_damage: bool

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass
class ProducerEpoch:
    """What a producer wrote in one of its epochs: data, without markers."""

    producerId: int
    epoch: int
    first: int
    last: int
    batches: int = 0
    records: int = 0
    bytes: int = 0
    newest: int = -1


@dataclass
class PartitionFacts:
    """A partition, or the selected segments of it. Long lists are limited to the worst or largest entries; the counts
    are complete."""

    name: str
    """topic-partition, or the last part of the path."""
    path: str
    source: str
    topic: str | None
    partition: int | None
    state: str
    """delete, future or stray for such a directory; else empty."""
    is_compacted: bool = False
    segments: list[SegmentFacts] = field(default_factory=list)
    segmentCount: int = 0
    stats: Stats = field(default_factory=lambda: Stats(""))
    time: Histogram = field(default_factory=by_time)
    """Bytes and records by the time of their batches, and by offset."""
    offsets: Histogram = field(default_factory=lambda: Histogram(doubling, MAX_BUCKETS))
    untimed: int = 0
    """Records of batches without a timestamp."""
    gaps: list[Gap] = field(default_factory=list)
    gapCount: int = 0
    missing: int = 0
    """Number of offsets in all gaps."""
    transactions: list[Transaction] = field(default_factory=list)
    ended: PartitionTransactions | None = None
    states: dict[Ref, str] = field(default_factory=dict)
    """How the transactions ended that are shown in cells."""
    differences: list[Difference] = field(default_factory=list)
    producers: list[ProducerEpoch] = field(default_factory=list)
    producerCount: int = 0
    """Number of all producer epochs."""
    findings: list[Finding] = field(default_factory=list)
    severities: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of all findings, by severity and code."""
    notes: list[str] = field(default_factory=list)

    @property
    def weight(self) -> tuple[int, ...]:
        """How much there is to report, for sorting."""
        held = self.ended.open + self.ended.hanging if self.ended else 0
        return self.severities[ERROR], self.severities[WARNING], held, self.stats.bytes

    def forget(self) -> None:
        """Keep only what a table row needs."""
        self.segments, self.gaps, self.transactions, self.producers = [], [], [], []
        self.states, self.offsets, self.time = {}, Histogram(doubling), by_time()


class Series(NamedTuple):
    """Bytes and records over time, of the partitions of one topic, or of all other topics together (None)."""

    topic: str | None
    time: Histogram


@dataclass
class Directory:
    """A log directory: the contents of meta.properties, and whether its broker shut down cleanly (None: no broker has
    run)."""

    path: str
    identity: dict[str, str]
    clean: bool | None


@dataclass
class PostMortem:
    """All facts. `partitions` are in the order of the paths; those for which everything is kept have `segments`."""

    paths: list[str]
    began: int
    """Epoch ms."""
    seconds: float = 0.0
    partitions: list[PartitionFacts] = field(default_factory=list)
    others: list[PartitionFacts] = field(default_factory=list)
    """Roots of log directories, and single files that are not segments, with their findings."""
    directories: list[Directory] = field(default_factory=list)
    totals: CheckTotals = field(default_factory=CheckTotals)
    stats: Stats = field(default_factory=lambda: Stats("", partitions=0))
    series: list[Series] = field(default_factory=list)
    untimed: int = 0

    @property
    def newer(self) -> list[str]:
        """What only a release newer than the newest known one writes."""
        facts = (*self.others, *self.partitions)
        return [finding.message for one in facts for finding in one.findings if finding.code == NEWER_RELEASE.code]
