"""Dumps a file of batches like kafka-dump-log.

Source: org.apache.kafka.tools.DumpLogSegments (dumpLog, dumpBatchRecords, printTrailingBytes)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from kdump.format.codec_table import BY_NAME
from kdump.format.kafka_release import NEWEST, KafkaRelease
from kdump.io.run import Limits
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.kafka.file_log_input_stream import StreamStop, kafka_batches
from kdump.log.region import Batch
from kdump.questions.dump_log.batch import Contents, RecordLineFormat, batch_line, record_lines
from kdump.questions.dump_log.findings import MissingOffsets
from kdump.questions.dump_log.out import DumpOutput
from kdump.render.progress import Progress

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
                first = [batch_line(item)]
                if options.deep:
                    for lines, offsets in record_lines(item, form):
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
                    self._problems(item)
                if item.compression not in BY_NAME and not item.problems:  # its records were not requested
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

    def _problems(self, batch: Batch) -> None:
        for problem in batch.problems:
            space = f" of the {problem.space} payload" if problem.space else ""
            where = f" (at {problem.position}{space})" if problem.position != batch.position else ""
            self.out.fail(f"{self.path}: position {batch.position}: {problem.reason}{where}")

    def _stopped(self, stop: StreamStop) -> None:
        goes_on = "" if stop.next_valid is None else f"; the next valid batch starts at byte {stop.next_valid}"
        if stop.next_valid == stop.position:
            field = "magic" if stop.reason.startswith("magic ") else "length"
            goes_on = f"; the checksum matches for a different {field}"
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
