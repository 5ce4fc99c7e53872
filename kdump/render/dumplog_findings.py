"""What was found in the files, told at the end in the words of kafka-dump-log 4.3.

Source: org.apache.kafka.tools.DumpLogSegments (main, TimeIndexDumpErrors).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from kdump.check.lone_index import WrongEntry
from kdump.log.entries import Entry

MOST = 1_000_000
"""Pairs of offsets of one file that are kept; the others are counted."""


class Gaps:
    """Offsets of records that do not follow each other, in bounded memory."""

    def __init__(self) -> None:
        self.pairs = array("q")
        self.more = 0

    def add(self, before: int, after: int) -> None:
        if len(self.pairs) < 2 * MOST:
            self.pairs.extend((before, after))
        else:
            self.more += 1


class Findings:
    """By file: index entries that are wrong, and gaps."""

    def __init__(self) -> None:
        self._wrong: dict[str, list[WrongEntry]] = {}
        self._gaps: dict[str, Gaps] = {}

    def wrong(self, path: str, wrong: WrongEntry) -> None:
        self._wrong.setdefault(path, []).append(wrong)

    def gaps(self, path: str) -> Callable[[int, int], None]:
        """Where the gaps of a file go."""
        return self._gaps.setdefault(path, Gaps()).add

    def lines(self) -> Iterator[str]:
        for path, entries in self._wrong.items():
            time = entries[0].code.startswith("time-")
            yield f"{'Found timestamp mismatch' if time else 'Mismatches'} in :{path}"
            for wrong in entries:
                yield "  " + _entry_line(wrong)
        for path, gaps in self._gaps.items():
            if gaps.pairs:
                yield f"Non-consecutive offsets in {path}"
            for at in range(0, len(gaps.pairs), 2):
                yield f"  {gaps.pairs[at]} is followed by {gaps.pairs[at + 1]}"
            if gaps.more:
                yield f"  {gaps.more} more"


def _entry_line(wrong: WrongEntry) -> str:
    """Kafka's line where it has one for this, and what is wrong."""
    entry = wrong.entry
    if wrong.code.endswith("-beyond-log"):
        return f"position {entry.position}: {wrong.message}"
    if isinstance(entry, Entry) and "timestamp" in entry.values and wrong.expected is not None:
        said = f"Index timestamp: {entry.values['timestamp']}, log timestamp: {wrong.expected}"
    elif isinstance(entry, Entry) and "timestamp" not in entry.values and wrong.expected is not None:
        said = f"Index offset: {entry.values['offset']}, log offset: {wrong.expected}"
    else:
        return f"position {entry.position}: {wrong.message}"
    return f"{said}  (position {entry.position}: {wrong.message})"
