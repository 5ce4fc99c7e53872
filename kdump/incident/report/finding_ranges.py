"""Byte ranges of a file that have findings, in a bounded number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.check.finding import Finding

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
