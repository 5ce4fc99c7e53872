"""Totals of missing partitions, offsets and transaction markers, which the headline shows whatever their findings'
severity."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.check.finding import INFO, WARNING, Finding
from kdump.format.count_text import count_text, first_of

WITHOUT_MARKER = ("transaction-open", "transaction-hanging")


def _is_cleaners(finding: Finding) -> bool:
    """Whether a finding is about the log cleaner's checkpoint, which does not show that offsets existed."""
    return finding.file.rpartition("/")[2] == "cleaner-offset-checkpoint"


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
    differing: int = 0
    """Number of ranges of offsets at which replicas differ without a legitimate reason; `truncated`: of records there
    that a follower truncates, or a replica lacks. Only a scan compares replicas."""
    truncated: int = 0
    ends: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """Total number of missing offsets."""
        return self.gaps + sum(self.ends.values())

    def add(self, finding: Finding) -> None:
        """Count what the finding reports as missing."""
        lost = finding.severity != INFO or finding.case == "damage"
        if finding.code == "partition-missing" and lost:
            self.partitions.append(f"{finding.topic}-{finding.partition}")
        elif finding.code == "offset-gap" and lost:
            self.gaps += int(finding.actual or 0) - int(finding.expected or 0)
        elif finding.code == "checkpoint-beyond-log" and finding.severity == WARNING and not _is_cleaners(finding):
            log = finding.source, finding.topic, finding.partition
            self.ends[log] = max(self.ends.get(log, 0), int(finding.actual) - int(finding.expected))
        elif finding.code in WITHOUT_MARKER and lost:
            self.markers += 1

    def __add__(self, other: MissingTotals) -> MissingTotals:
        made = MissingTotals(self.partitions + other.partitions, self.gaps + other.gaps, self.markers + other.markers)
        made.differing, made.truncated = self.differing + other.differing, self.truncated + other.truncated
        made.ends = {log: max(self.ends.get(log, 0), other.ends.get(log, 0)) for log in {**self.ends, **other.ends}}
        return made

    def __bool__(self) -> bool:
        return bool(self.partitions or self.offsets or self.markers or self.differing)

    @property
    def text(self) -> str:
        """Summary such as "1 partition missing (orders-0), 60 offsets missing"; empty if nothing is missing."""
        gone = list(dict.fromkeys(self.partitions))  # each once, however many copies of the disk lack it
        names = f"{count_text(len(gone), 'partition')} missing ({first_of(gone)})"
        parts = [names] if self.partitions else []
        parts += [f"{count_text(self.offsets, 'offset')} missing"] if self.offsets else []
        parts += [f"{count_text(self.markers, 'transaction')} without a marker"] if self.markers else []
        ranges = count_text(self.differing, "range of offsets", "ranges of offsets")
        lost = f" ({count_text(self.truncated, 'record')} that a replica truncates or lacks)" if self.truncated else ""
        parts += [f"REPLICAS DIFFER at {ranges}{lost}"] if self.differing else []
        return ", ".join(parts)
