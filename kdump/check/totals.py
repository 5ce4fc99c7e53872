"""What was checked, so that 'nothing found' means something."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kdump.check.missing import Missing
from kdump.log.errors import SourceError, is_gone


@dataclass
class Totals:
    """Counts; `unread` says what could not be read, `notes` what else is to be said. `log_end` is the offset behind the
    last batch, `first` the first offset, None without any batch."""

    partitions: int = 0
    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    known: int = 0
    """Findings that the baseline has accepted."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: Missing = field(default_factory=Missing)

    def refused(self, error: SourceError) -> None:
        """A file could not be opened, or read on."""
        self.problem(str(error))

    def problem(self, text: str) -> None:
        """Why something could not be read; what went away is only noted."""
        (self.notes if is_gone(text) else self.unread).append(text)

    def add(self, other: Totals) -> None:
        self.partitions += other.partitions
        self.files += other.files
        self.bytes += other.bytes
        self.batches += other.batches
        self.records += other.records
        self.findings.update(other.findings)
        self.known += other.known
        self.unread += other.unread
        self.notes += other.notes
        self.missing += other.missing
