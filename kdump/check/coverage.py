"""How much of the segments of a disk has been checked, over all runs of a scrub."""

from __future__ import annotations

from dataclasses import dataclass


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
