"""Counts of what was checked, over all runs of a scrub too, to back up a result without findings; and of what is
missing, which the headline shows whatever the findings' severity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from kdump.check.finding import INFO, WARNING, Finding, problem_of
from kdump.format.count_text import count_text, first_of
from kdump.io.errors import SourceError, is_gone, same_failure, whole_path
from kdump.io.unreadable_paths import failures
from kdump.log.region import Batch

WITHOUT_MARKER = ("transaction-open", "transaction-hanging")


def is_loss(finding: Finding) -> bool:
    """Return True if what the finding reports as missing is lost."""
    return finding.severity != INFO or finding.case == "damage"


def missing_offsets(finding: Finding) -> int:
    """Return the number of offsets that are lost in a gap; 0 if the finding is not of one."""
    return int(finding.actual - finding.expected) if finding.code == "offset-gap" and is_loss(finding) else 0


@dataclass
class MissingTotals:
    """Totals over findings. Offsets that compaction removed are not missing, nor is the marker of a transaction that
    may still be running: their findings are informational. `partitions`: names of partitions
    without a directory; `gaps`: number of offsets missing between batches; `ends`:
    number missing between the log end offset and the highest checkpoint, by log directory, topic and partition;
    `markers`: transactions without a marker."""

    partitions: list[str] = field(default_factory=list)
    gaps: int = 0
    markers: int = 0
    ends: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """Total number of missing offsets."""
        return self.gaps + sum(self.ends.values())

    def add(self, finding: Finding) -> None:
        """Count what the finding reports as missing."""
        self.gaps += missing_offsets(finding)
        if finding.code == "partition-missing" and is_loss(finding):
            self.partitions.append(f"{finding.topic}-{finding.partition}")
        elif finding.code == "checkpoint-beyond-log" and finding.severity == WARNING:
            if not problem_of(finding).facts["cleanerFile"]:  # which does not show that offsets existed
                log = finding.source, finding.topic, finding.partition
                self.ends[log] = max(self.ends.get(log, 0), finding.actual - finding.expected)
        elif finding.code in WITHOUT_MARKER and is_loss(finding):
            self.markers += 1

    def __add__(self, other: MissingTotals) -> MissingTotals:
        made = MissingTotals(self.partitions + other.partitions, self.gaps + other.gaps, self.markers + other.markers)
        made.ends = {log: max(self.ends.get(log, 0), other.ends.get(log, 0)) for log in {**self.ends, **other.ends}}
        return made

    def __bool__(self) -> bool:
        return bool(self.partitions or self.offsets or self.markers)

    @property
    def text(self) -> str:
        """Summary such as "1 partition missing (orders-0), 60 offsets missing"; empty if nothing is missing."""
        gone = list(dict.fromkeys(self.partitions))  # each once, however many copies of the disk lack it
        names = f"{count_text(len(gone), 'partition')} missing ({first_of(gone)})"
        parts = [names] if self.partitions else []
        parts += [f"{count_text(self.offsets, 'offset')} missing"] if self.offsets else []
        parts += [f"{count_text(self.markers, 'transaction')} without a marker"] if self.markers else []
        return ", ".join(parts)


@dataclass(slots=True)
class Coverage:
    """Counts of bytes of segments. Times in epoch ms, None if there are no such bytes: `oldest`: when the bytes whose
    check is the oldest were checked; `unchecked_since`: when the first of those that were never checked was listed.
    `overdue`: bytes whose check is older than the cadence; `too_large`: segments larger than the budget of a run."""

    bytes: int = 0
    unchecked: int = 0
    overdue: int = 0
    oldest: int | None = None
    unchecked_since: int | None = None
    too_large: int = 0

    def add(self, size: int, unchecked: int, seen: int, checked: int | None, oldest_allowed: int, now: int) -> None:
        """Add a segment of so many bytes, of which some were never `checked`, and which was first `seen` then. What was
        checked in the future is as old as can be."""
        self.bytes += size
        self.unchecked += unchecked
        if unchecked:
            self.unchecked_since = _earliest(seen, now, self.unchecked_since)
        if checked is not None and size:
            checked = checked if checked <= now else 0
            self.overdue += size if checked <= oldest_allowed else 0
            self.oldest = _earliest(checked, self.oldest)

    def merge(self, other: Coverage) -> None:
        """Add the counts of other segments."""
        self.bytes += other.bytes
        self.unchecked += other.unchecked
        self.overdue += other.overdue
        self.too_large += other.too_large
        self.oldest = _earliest(self.oldest, other.oldest)
        self.unchecked_since = _earliest(self.unchecked_since, other.unchecked_since)

    def as_dict(self) -> dict[str, int | None]:
        """Return the counts under their keys in JSON."""
        return {
            "bytes": self.bytes,
            "neverChecked": self.unchecked,
            "overdue": self.overdue,
            "oldestCheck": self.oldest,
            "neverCheckedSince": self.unchecked_since,
        }


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)


@dataclass(kw_only=True)
class LogCounts:
    """Counts of what was read of logs. `batches` counts all of them, also those that are not valid."""

    partitions: int = 0
    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    """Records in valid batches."""

    def _add_counts(self, other: LogCounts) -> None:
        """Add the counts of other logs, and those of a subclass: all fields that begin as a number, and not as None."""
        for counted in fields(self):
            if type(counted.default) is int:
                setattr(self, counted.name, getattr(self, counted.name) + getattr(other, counted.name))


@dataclass
class CheckTotals(LogCounts):
    """Counts. `unread`: what could not be read, and why; `notes`: other remarks, such as files that went away."""

    damaged_batches: int = 0
    damaged_records: int = 0
    """Records that the headers of damaged batches state, as far as these have room for them."""
    findings: Counter[str] = field(default_factory=Counter)
    known: int = 0
    """Findings that the baseline has accepted."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: MissingTotals = field(default_factory=MissingTotals)
    withheld: Counter[str] = field(default_factory=Counter)
    """Number of partitions of which records, or the results of checksums, are not in the bundle."""
    is_selection: bool = field(default=False, repr=False, compare=False)
    """Whether only some topics or partitions are asked for: files of log directories are not theirs."""
    doubted: set[str] = field(default_factory=set, repr=False, compare=False)
    """Codes of findings that had to be checked again, of the unit that was checked last."""
    coverage: Coverage | None = None
    """What was checked over all runs, of a check that remembers them."""
    _problems: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)
    """Each problem is recorded once, although several rules may read the same file."""

    @property
    def nothing_read(self) -> bool:
        """Whether nothing of what is asked for was read, though there is something."""
        return bool(self.unread) and not (self.batches or self.partitions or (self.files and not self.is_selection))

    @property
    def records_text(self) -> str:
        """The number of records and what it leaves out: 6 records in valid batches (3 damaged batches state 5 more)."""
        records = count_text(self.records, "record")
        if not self.damaged_batches:
            return records
        batches = count_text(self.damaged_batches, "damaged batch", "damaged batches")
        states = "states" if self.damaged_batches == 1 else "state"
        return f"{records} in valid batches ({batches} {states} {self.damaged_records:,} more)"

    def count_file(self, size: int | None) -> None:
        """Count a file of so many bytes that was read."""
        self.files += 1
        self.bytes += size or 0

    def add_damaged(self, batch: Batch) -> None:
        """Count a batch whose records are not counted."""
        self.damaged_batches += 1
        self.damaged_records += batch.possible_records

    def add_unreadable(self, error: SourceError) -> None:
        """Add an error that prevented reading a file or the rest of it."""
        self.problem(str(error))

    def problem(self, text: str) -> None:
        """Add the reason why something could not be read; if the file went away, only as a note."""
        problems = self.notes if is_gone(text) else self.unread
        failure = same_failure(text)
        if failure not in self._problems:
            self._problems.add(failure)
            problems.append(text)

    def add_failures(self, stated: Iterable[str] = ()) -> None:
        """Add what the run could not read and no rule has added, except for the files in `stated`, absolute paths."""
        known = {*stated, *map(whole_path, self.unread)}
        for path, failure in failures().items():
            if path not in known:
                self.problem(failure)

    def add(self, other: CheckTotals) -> None:
        """Add the totals of another check."""
        self._add_counts(other)
        self.findings.update(other.findings)
        for reason in (*other.unread, *other.notes):
            self.problem(reason)
        self.missing += other.missing
        self.withheld.update(other.withheld)
