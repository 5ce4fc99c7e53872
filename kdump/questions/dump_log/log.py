"""Dumps a file of batches like kafka-dump-log, and prints the findings at the end in its words, with the reason added.

Source: org.apache.kafka.tools.DumpLogSegments (dumpLog, dumpBatchRecords, printTrailingBytes, main,
TimeIndexDumpErrors)."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kdump.format.codec_table import BY_NAME
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.run import Limits
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.kafka.file_log_input_stream import StreamStop, kafka_batches
from kdump.kafka.index_judge import ORDER, Fault
from kdump.log.entries import Entry
from kdump.log.file_kinds import TIME_INDEX, FileKind
from kdump.log.reading import Reading
from kdump.log.region import Batch
from kdump.questions.dump_log.batch import Contents, RecordLineFormat, batch_line, record_lines
from kdump.questions.dump_log.index import MAX_MISMATCHES
from kdump.render.escape import printable
from kdump.render.progress import Progress
from kdump.render.stdout import Output

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


TOGETHER = 500
"""Number of lines that are written together: a call for each would cost more than the line."""
LONG = 1 << 20
"""Number of characters above which a line is written in pieces."""


class DumpOutput:
    """Writes output and errors. `complain` receives lines for standard error; `status` is the exit status so far."""

    def __init__(self, output: Output, complain: Callable[[str], None]) -> None:
        self.output, self.complain = output, complain
        self.status = 0

    def lines(self, lines: list[str]) -> None:
        """Write lines: unchanged to a pipe, on a terminal without control characters and each on a single line."""
        if self.output.terminal:
            lines = [printable(_bytes(line).decode("utf-8", "backslashreplace")) for line in lines]
        if max(map(len, lines), default=0) <= LONG:
            self.output.write(_bytes("\n".join(lines) + "\n"))
            return
        for line in lines:
            for start in range(0, len(line), LONG):
                self.output.write(_bytes(line[start : start + LONG]))
            self.output.write(b"\n")

    def pieces(self, line: Iterable[str]) -> None:
        """One line that comes in pieces."""
        for piece in line:
            if self.output.terminal:
                piece = printable(_bytes(piece).decode("utf-8", "backslashreplace"))
            self.output.write(_bytes(piece))
        self.output.write(b"\n")

    def each(self, lines: Iterable[str]) -> None:
        """Write lines, several at a time."""
        kept: list[str] = []
        try:
            for line in lines:
                kept.append(line)
                if len(kept) == TOGETHER:
                    self.lines(kept)
                    kept = []
        finally:
            if kept:
                self.lines(kept)

    def error_line(self, message: str) -> None:
        """Write a line to standard error, after everything written to standard output so far."""
        self.output.flush()
        self.complain(f"kdump: {message}")

    def fail(self, message: str) -> None:
        """Like `error_line`, for errors for which Kafka's tool exits with 1."""
        self.status = 1
        self.error_line(message)


def _bytes(line: str) -> bytes:
    """Encode a line; surrogates stand for bytes that are not UTF-8, in a path or from DefaultDecoder."""
    return line.encode("utf-8", "surrogateescape")


MAX_REPORTED_RECORDS = 20
"""Maximum undecodable records per file that are reported individually."""


@dataclass(frozen=True)
class DumpOptions:
    """Options of kafka-dump-log. `contents`: decoder of keys and values (None: do not print them). `deep`: print
    records. `max_bytes`: bytes to read of each file of batches, None for all."""

    contents: Contents | None = None
    deep: bool = False
    skip_record_metadata: bool = False
    max_bytes: int | None = None
    verify_index_only: bool = False
    index_sanity_check: bool = False
    release: KafkaRelease = NEWEST
    """Whose tool's output it is."""
    limits: Limits = field(default_factory=Limits)
    window: int = 1 << 20


class LogDump:
    """Dumps one file. `gaps` gets the offsets of records that are not consecutive."""

    def __init__(
        self, options: DumpOptions, out: DumpOutput, path: str, window: Window, offset: int | None, gaps: MissingOffsets
    ) -> None:
        self.options, self.out, self.path, self.window, self.offset = options, out, path, window, offset
        self.gaps = gaps
        self.last: int | None = None
        """Offset of the previous record."""
        self.complaints = 0

    def run(self) -> None:
        out, options = self.out, self.options
        form = RecordLineFormat(not options.skip_record_metadata, options.contents, self.report_undecodable)
        end = 0
        source = self.window.source
        with Progress(self.path) as progress:
            for item in kafka_batches(
                self.window, name_offset=self.offset, limits=options.limits, max_bytes=options.max_bytes
            ):
                progress.at(item.position, source.size)
                if isinstance(item, StreamStop):
                    self._stopped(item)
                    continue
                first, reading = [batch_line(item)], Reading(item)
                if options.deep:
                    for lines, offsets in record_lines(reading, form):
                        if isinstance(lines, list):
                            out.lines(first + lines if first else lines)
                        else:
                            if first:
                                out.lines(first)
                            out.pieces(lines)
                        first = []
                        self._follow(offsets)
                if first:
                    out.lines(first)
                if options.deep:
                    self._problems(reading)
                if item.compression not in BY_NAME and not reading.problems:  # its records were not requested
                    out.fail(f"{self.path}: position {item.position}: compression codec {item.compression}")
                end = item.end
        if self.complaints > MAX_REPORTED_RECORDS:
            out.error_line(f"{self.path}: {self.complaints - MAX_REPORTED_RECORDS} more such records")
        if options.max_bytes is None and source.size is not None and source.size > end:
            out.lines([f"Found {source.size - end} invalid bytes at the end of {os.path.basename(self.path)}"])
        if isinstance(source, FileSource) and (grown := source.grown()):
            change = f"grew by {grown} bytes" if grown > 0 else f"was truncated by {-grown} bytes"
            out.error_line(f"{self.path}: {change} while being read")

    def _follow(self, offsets: list[int]) -> None:
        last = self.last
        for offset in offsets:
            if last is not None and offset != last + 1:
                self.gaps.add(last, offset)
            last = offset
        self.last = last

    def _problems(self, reading: Reading[Batch]) -> None:
        batch = reading.batch
        for problem in reading.problems:
            space = f" of the {problem.space} payload" if problem.space else ""
            where = f" (at {problem.position}{space})" if problem.position != batch.position else ""
            self.out.fail(f"{self.path}: position {batch.position}: {problem.reason}{where}")

    def _stopped(self, stop: StreamStop) -> None:
        goes_on = "" if stop.next_valid is None else f"; the next valid batch starts at byte {stop.next_valid}"
        if stop.next_valid == stop.position:
            goes_on = f"; the checksum matches for a different {stop.field}"
        message = f"{self.path}: position {stop.position}: {stop.reason}{goes_on}"
        if stop.thrown and (stop.next_valid is not None or not stop.zeros):
            self.out.fail(message)
        elif stop.next_valid is not None:
            self.out.error_line(f"{message} (run kdump inspect to see it)")
        else:
            self.out.error_line(message)

    def report_undecodable(self, offset: int, why: str) -> None:
        """Report a record that the decoder cannot read."""
        self.out.status = 1
        self.complaints += 1
        if self.complaints <= MAX_REPORTED_RECORDS:
            self.out.error_line(f"{self.path}: offset {offset}: {why}")
