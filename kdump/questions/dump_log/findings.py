"""Findings of dump-log, printed at the end in the words of kafka-dump-log, with the reason added.

Source: org.apache.kafka.tools.DumpLogSegments (main, TimeIndexDumpErrors)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from kdump.kafka.index_judge import ORDER, Fault
from kdump.log.entries import Entry
from kdump.log.file_kinds import TIME_INDEX, FileKind
from kdump.questions.dump_log.index import MAX_MISMATCHES

MAX_PAIRS = 1_000_000
"""Maximum pairs of offsets that are stored, for all files together; further ones are only counted."""
MISMATCH = "Mismatches in :"
WRONG_TIME = "Found timestamp mismatch in :"
TIME_FALLS = "Found out of order timestamp in :"
NOT_FOUND = "The following indexed offsets are not found in :"


class MissingOffsets:
    """Pairs of consecutive records of one file whose offsets are not consecutive. Stores at most MAX_PAIRS, less the
    `before` of other files."""

    def __init__(self, before: int) -> None:
        self.pairs = array("q")
        self.more = 0
        self._most = MAX_PAIRS - before

    def __len__(self) -> int:
        return len(self.pairs) // 2

    def add(self, before: int, after: int) -> None:
        if len(self) < self._most:
            self.pairs.extend((before, after))
        else:
            self.more += 1


class Findings:
    """Wrong index entries by heading and file, and offset gaps by file."""

    def __init__(self) -> None:
        self._wrong: dict[str, dict[str, list[str]]] = {MISMATCH: {}, WRONG_TIME: {}, TIME_FALLS: {}, NOT_FOUND: {}}
        self._gaps: dict[str, MissingOffsets] = {}

    def wrong(self, path: str, kind: FileKind, wrong: Fault, log_offset: int | None) -> None:
        """Add a wrong entry. `log_offset`: the last offset of the batch that Kafka reads where an .index entry points,
        None if there is none."""
        heading, line = _heading_and_line(kind, wrong, log_offset)
        self._wrong[heading].setdefault(path, []).append(line)

    def gaps(self, path: str) -> MissingOffsets:
        """Return the offset gaps of a file."""
        if path not in self._gaps:
            self._gaps[path] = MissingOffsets(sum(map(len, self._gaps.values())))
        return self._gaps[path]

    def lines(self) -> Iterator[str]:
        for heading, files in self._wrong.items():
            for path, lines in files.items():
                yield heading + path
                yield from lines
                if len(lines) == MAX_MISMATCHES:
                    yield "  and more"
        for path, gaps in self._gaps.items():
            if gaps.pairs or gaps.more:
                yield f"Non-consecutive offsets in {path}"
            for number in range(0, len(gaps.pairs), 2):
                yield f"  {gaps.pairs[number]} is followed by {gaps.pairs[number + 1]}"
            if gaps.more:
                yield f"  and {gaps.more} more"


def _heading_and_line(kind: FileKind, wrong: Fault, log_offset: int | None) -> tuple[str, str]:
    """Return the heading for a wrong entry and its line: Kafka's, if it has one, and the reason."""
    entry, in_time = wrong.entry, kind is TIME_INDEX
    assert entry is not None  # a missing entry is reported only for a closed segment, which this one is not known to be
    why = f"(position {entry.position}: {wrong.message})"
    if not isinstance(entry, Entry):
        return WRONG_TIME if in_time else MISMATCH, f"  {why[1:-1]}"
    offset = entry.values["offset"]
    if not in_time:
        return MISMATCH, f"  Index offset: {offset}, log offset: {'none' if log_offset is None else log_offset} {why}"
    timestamp = entry.values["timestamp"]
    if wrong.before is not None and wrong.what == ORDER:
        before = wrong.before.values["timestamp"]
        return TIME_FALLS, f"  Index timestamp: {timestamp}, Previously indexed timestamp: {before} {why}"
    if wrong.expected is None:
        return NOT_FOUND, f"Indexed offset: {offset}, found log offset: none {why}"
    return WRONG_TIME, f"  Index timestamp: {timestamp}, log timestamp: {wrong.expected} {why}"
