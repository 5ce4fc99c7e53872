"""What kafka-dump-log 4.3 prints of files, byte for byte on standard output, without what is wrong in it.

Standard output is Kafka's wherever Kafka's tool comes to an end; where that throws, this says so on standard error
and goes on. What it finds, it tells at the end, as Kafka's tool does. docs/dump-log.md has the table of what differs.

Source: org.apache.kafka.tools.DumpLogSegments (main, dumpLog).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kdump.check.lone_index import wrong_entries
from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.log.entries import Entry
from kdump.log.errors import SourceError
from kdump.log.kinds import INDEX, KRAFT_SNAPSHOT, TIME_INDEX, Kind
from kdump.log.paths import Target, target
from kdump.log.region import Batch, Limits
from kdump.log.source import open_source
from kdump.log.stream import Stop, batch_at, stream
from kdump.log.window import Window
from kdump.render import dumplog_index as index_text
from kdump.render.dumplog_batch import Contents, RecordLine, batch_line, record_lines
from kdump.render.dumplog_findings import Findings
from kdump.render.escape import path_text, printable
from kdump.render.java import file_text
from kdump.render.output import Output

BOOTSTRAP = "bootstrap.checkpoint"
MOST_COMPLAINTS = 20
"""Records of one file that cannot be decoded, of which each is told."""
LOOK = 4096
"""Bytes that are read to look at one batch's header."""
INDEX_KINDS = {".index": INDEX, ".timeindex": TIME_INDEX}


@dataclass(frozen=True)
class DumpOptions:
    """kafka-dump-log's options, those for records as it derives them: `contents` for key and payload (None: they are
    not printed), `deep` for records at all. `max_bytes`: bytes of each file of batches that are read, None for all."""

    contents: Contents | None = None
    deep: bool = False
    skip_record_metadata: bool = False
    max_bytes: int | None = None
    verify_index_only: bool = False
    index_sanity_check: bool = False
    limits: Limits = field(default_factory=Limits)
    window: int = 1 << 20


class Dump:
    """One run. `complain` takes a line for standard error; `status` is the exit status afterwards."""

    def __init__(self, options: DumpOptions, output: Output, complain: Callable[[str], None]) -> None:
        self.options = options
        self.output = output
        self.status = 0
        self._complain = complain
        self._findings = Findings()

    def run(self, names: Iterable[str]) -> None:
        """Dump the files, one after the other, and tell what was found in them."""
        for name in names:
            path = file_text(name)
            self.lines([f"Dumping {path}"])
            try:
                self._file(path)
            except SourceError as error:
                self.fail(str(error))
            except index_text.Unsound as error:
                self.say(f"{path}: {error}")
            except index_text.Corrupt as error:
                self.fail(f"{path}: {error}")
        self.output.flush()
        for line in self._findings.lines():
            self._complain(line)

    def lines(self, lines: list[str]) -> None:
        """Exact in a pipe; without control characters on a terminal, each item on one line."""
        if self.output.terminal:
            lines = [printable(path_text(line)) for line in lines]
        self.output.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))

    def say(self, text: str) -> None:
        """A line on standard error, behind what standard output has so far."""
        self.output.flush()
        self._complain(f"kdump: {text}")

    def fail(self, text: str) -> None:
        """As say, of what Kafka's tool ends at with 1."""
        self.status = 1
        self.say(text)

    def _file(self, path: str) -> None:
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        at = target(path)
        if suffix in (".log", ".checkpoint"):
            self._batches(path, at)
        elif suffix in INDEX_KINDS:
            self._index(path, at, INDEX_KINDS[suffix])
        elif suffix == ".txnindex":
            self._rows(path, index_text.txn_index_lines)
        elif suffix == ".snapshot":
            self._rows(path, index_text.snapshot_lines)
        else:
            self.output.flush()
            self._complain(f"Ignoring unknown file {path}")

    def _rows(self, path: str, text: Callable[[Window], Iterator[str]]) -> None:
        window = self._open(path)
        try:
            for line in text(window):
                self.lines([line])
        finally:
            window.source.close()

    def _open(self, path: str) -> Window:
        return Window(open_source(path), self.options.window)

    def _batches(self, path: str, at: Target) -> None:
        offset = _offset(path)
        name = os.path.basename(path)
        if path.endswith(".log"):
            offset = at.name_offset if offset is None else offset
            if offset is None:
                self.say(f"{path}: no offset in its name")
            else:
                self.lines([f"Log starting offset: {offset}"])
        elif name == BOOTSTRAP:
            self.lines(["KRaft bootstrap snapshot"])
        elif at.kind is KRAFT_SNAPSHOT:
            end_offset, _, epoch = name.partition(".")[0].partition("-")
            self.lines([f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"])
        else:
            self.say(f"{path}: no offset and epoch in its name")
        window = self._open(path)
        try:
            _Log(self, path, window, offset, self._findings.gaps(os.path.abspath(path))).run()
            if window.source.error:
                self.fail(window.source.error)
        finally:
            window.source.close()

    def _index(self, path: str, at: Target, kind: Kind) -> None:
        options = self.options
        base = _offset(path)
        if base is None and (base := at.name_offset) is None:
            base = 0
            self.say(f"{path}: no base offset in its name: offsets are relative")
        window = self._open(path)
        try:
            entry = INDEX_ENTRY if kind is INDEX else TIME_INDEX_ENTRY
            if kind is INDEX and not window.reaches(entry.size):
                self.lines([f"{path} is empty."])
                return
            if options.index_sanity_check:
                index_text.check_sanity(window, entry, base)
                self.lines([f"{path} passed sanity check."])
                return
            if not options.verify_index_only:
                text = index_text.index_lines if kind is INDEX else index_text.time_index_lines
                for line in text(window, base):
                    self.lines([line])
            self._hold(path, at._replace(name_offset=base), kind, window)
        finally:
            window.source.close()

    def _hold(self, path: str, at: Target, kind: Kind, window: Window) -> None:
        """Hold an index against its segment, and keep what is wrong."""
        stem, _, _ = os.path.basename(path).partition(".")
        log = target(os.path.join(os.path.dirname(path), stem + ".log"))._replace(name_offset=at.name_offset)
        try:
            log_window = self._open(log.path)
        except SourceError as error:
            self.fail(f"{error}: the entries of {path} cannot be checked")
            return
        look = Window(log_window.source, LOOK)
        try:
            for wrong in wrong_entries(at, kind, window, log, log_window, self.options.limits):
                offset = None
                if kind is INDEX and isinstance(wrong.entry, Entry):
                    batch = batch_at(look, wrong.entry.values["position"])
                    offset = None if batch is None else batch.lastOffset
                    if batch is None:  # Kafka's tool ends at such an entry
                        self.status = 1
                self._findings.wrong(os.path.abspath(path), wrong, offset)
        finally:
            log_window.source.close()


def _offset(path: str) -> int | None:
    """The offset in a file's name, what stands before its first point; None if that is no number."""
    stem = os.path.basename(path).partition(".")[0]
    return int(stem) if stem.isascii() and stem.isdigit() else None


class _Log:
    """A file of batches."""

    def __init__(self, dump: Dump, path: str, window: Window, offset: int | None, gaps: Callable[[int, int], None]):
        self.dump = dump
        self.path = path
        self.window = window
        self.offset = offset
        self.gap = gaps
        self.last: int | None = None
        """The offset of the record before."""
        self.at: Batch | None = None
        self.complaints = 0

    def run(self) -> None:
        dump, options = self.dump, self.dump.options
        form = RecordLine(not options.skip_record_metadata, options.contents, self.refuse)
        end = 0
        for item in stream(self.window, name_offset=self.offset, limits=options.limits, most=options.max_bytes):
            if isinstance(item, Stop):
                self._stopped(item)
                continue
            self.at = item
            dump.lines([batch_line(item)])
            if options.deep:
                for lines, offsets in record_lines(item, form):
                    dump.lines(lines)
                    self._follow(offsets)
                self._problems(item)
            end = item.end
        if self.complaints > MOST_COMPLAINTS:
            dump.say(f"{self.path}: {self.complaints - MOST_COMPLAINTS} more records like that")
        size = self.window.source.size
        if options.max_bytes is None and size is not None and size > end:
            dump.lines([f"Found {size - end} invalid bytes at the end of {os.path.basename(self.path)}"])

    def _follow(self, offsets: list[int]) -> None:
        last = self.last
        for offset in offsets:
            if last is not None and offset != last + 1:
                self.gap(last, offset)
            last = offset
        self.last = last

    def _problems(self, batch: Batch) -> None:
        for problem in batch.problems:
            space = f" of the {problem.space} payload" if problem.space else ""
            where = f" (at {problem.position}{space})" if problem.position != batch.position else ""
            self.dump.fail(f"{self.path}: position {batch.position}: {problem.reason}{where}")

    def _stopped(self, stop: Stop) -> None:
        goes_on = "" if stop.sound is None else f"; the next sound batch begins at {stop.sound}"
        if stop.sound == stop.position:
            goes_on = "; the checksum holds for another length"
        text = f"{self.path}: position {stop.position}: {stop.reason}{goes_on}"
        if stop.thrown and (stop.sound is not None or not stop.zeros):
            self.dump.fail(text)
        elif stop.sound is not None:
            self.dump.say(f"{text} (kdump inspect shows it)")
        else:
            self.dump.say(text)

    def refuse(self, offset: int, why: str) -> None:
        """A record that the decoder cannot read."""
        self.dump.status = 1
        self.complaints += 1
        if self.complaints <= MOST_COMPLAINTS:
            self.dump.say(f"{self.path}: offset {offset}: {why}")
