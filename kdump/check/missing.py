"""Totals of missing offsets and transaction markers, which the headline shows whatever their findings' severity."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdump.check.catalogue import INFO, WARNING
from kdump.check.finding import Finding
from kdump.check.rule import LOST
from kdump.format.counted import many

WITHOUT_MARKER = ("transaction-open", "transaction-hanging")


@dataclass
class Missing:
    """Totals over findings. Offsets that compaction removed are not missing, nor is the marker of a transaction that
    may still be running: their findings are informational. `gaps`: number of offsets missing between batches; `ends`:
    number missing between the log end offset and the highest checkpoint, by log directory, topic and partition;
    `markers`: transactions without a marker."""

    gaps: int = 0
    markers: int = 0
    ends: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """Total number of missing offsets."""
        return self.gaps + sum(self.ends.values())

    def add(self, finding: Finding) -> None:
        """Count what the finding reports as missing."""
        lost = finding.severity != INFO or finding.consequence == LOST
        if finding.code == "offset-gap" and lost:
            self.gaps += int(finding.actual or 0) - int(finding.expected or 0)
        elif finding.code == "checkpoint-beyond-log" and finding.severity == WARNING:
            log = finding.source, finding.topic, finding.partition
            self.ends[log] = max(self.ends.get(log, 0), int(finding.actual) - int(finding.expected))
        elif finding.code in WITHOUT_MARKER and lost:
            self.markers += 1

    def __add__(self, other: Missing) -> Missing:
        made = Missing(self.gaps + other.gaps, self.markers + other.markers)
        made.ends = {log: max(self.ends.get(log, 0), other.ends.get(log, 0)) for log in {**self.ends, **other.ends}}
        return made

    def __bool__(self) -> bool:
        return bool(self.offsets or self.markers)

    @property
    def text(self) -> str:
        """Summary such as "60 offsets missing, 1 transaction without a marker"; empty if nothing is missing."""
        parts = [f"{many(self.offsets, 'offset')} missing"] if self.offsets else []
        parts += [f"{many(self.markers, 'transaction')} without a marker"] if self.markers else []
        return ", ".join(parts)
