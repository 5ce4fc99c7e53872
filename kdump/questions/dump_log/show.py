"""Prints files like kafka-dump-log, byte for byte on standard output, but without its bugs.

Standard output is identical wherever Kafka's tool completes. Where that throws, kdump reports the problem on standard
error and continues. Like Kafka's tool, it prints its findings at the end. docs/dump-log.md lists the differences.

Source: org.apache.kafka.tools.DumpLogSegments (main, dumpLog).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kdump.format.index import INDEX_ENTRY, TIME_INDEX_ENTRY
from kdump.format.numbers import parse_long
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.io.source import open_source
from kdump.io.window import Window
from kdump.kafka.file_log_input_stream import batch_at
from kdump.kafka.index_judge import Fault
from kdump.log.entries import Entry
from kdump.log.file_kinds import INDEX, KRAFT_SNAPSHOT, TIME_INDEX, FileKind
from kdump.log.paths import Target, target
from kdump.questions.dump_log import index as index_text
from kdump.questions.dump_log.findings import Findings
from kdump.questions.dump_log.index import wrong_entries
from kdump.questions.dump_log.java import file_text
from kdump.questions.dump_log.log import DumpOptions, LogDump
from kdump.questions.dump_log.out import DumpOutput
from kdump.render.progress import Progress

BOOTSTRAP = "bootstrap.checkpoint"
LOOK = 4096
"""Bytes read to examine the header of one batch."""
INDEX_KINDS = {".index": INDEX, ".timeindex": TIME_INDEX}


class Dump:
    """One run of the command; afterwards, `out.status` is the exit status."""

    def __init__(self, options: DumpOptions, out: DumpOutput) -> None:
        self.options = options
        self.out = out
        self._findings = Findings()

    def run(self, names: Iterable[str]) -> None:
        """Dump the files one after the other, then print what was found in them."""
        for name in names:
            path = file_text(name)
            self.out.lines([f"Dumping {path}"])
            try:
                self._file(path)
            except SourceError as error:
                self.out.fail(str(error))
            except index_text.RejectedFile as error:
                self.out.error_line(f"{path}: {error}")
            except index_text.CorruptFile as error:
                self.out.fail(f"{path}: {error}")
        self.out.output.flush()
        for line in self._findings.lines():
            self.out.complain(line)

    def _file(self, path: str) -> None:
        suffix = os.path.splitext("x" + os.path.basename(path))[1]
        file = target(path)
        if suffix in (".log", ".checkpoint"):
            self._batches(path, file)
        elif suffix in INDEX_KINDS:
            self._index(path, file, INDEX_KINDS[suffix])
        elif suffix == ".txnindex":
            self._rows(path, partial(index_text.txn_index_lines, release=self.options.release))
        elif suffix == ".snapshot":
            self._rows(path, index_text.snapshot_lines)
        else:
            self.out.output.flush()
            self.out.complain(f"Ignoring unknown file {path}")

    def _rows(self, path: str, lines_of: Callable[[Window], Iterator[str]]) -> None:
        window = self._open(path)
        try:
            self.out.each(lines_of(window))
        finally:
            window.source.close()

    def _open(self, path: str) -> Window:
        return Window(open_source(path), self.options.window)

    def _batches(self, path: str, target: Target) -> None:
        offset = _offset(path)
        name = os.path.basename(path)
        if path.endswith(".log"):
            offset = target.name_offset if offset is None else offset
            if offset is None:
                self.out.error_line(f"{path}: no offset in its name")
            else:
                self.out.lines([f"Log starting offset: {offset}"])
        elif name == BOOTSTRAP:
            self.out.lines(["KRaft bootstrap snapshot"])
        elif target.kind is KRAFT_SNAPSHOT:
            end_offset, _, epoch = name.partition(".")[0].partition("-")
            self.out.lines([f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"])
        else:
            self.out.error_line(f"{path}: no offset and epoch in its name")
        window = self._open(path)
        try:
            LogDump(self.options, self.out, path, window, offset, self._findings.gaps(os.path.abspath(path))).run()
            if window.source.error:
                self.out.fail(window.source.error)
        finally:
            window.source.close()

    def _index(self, path: str, target: Target, kind: FileKind) -> None:
        options = self.options
        base = _offset(path)
        if base is None and (base := target.name_offset) is None:
            base = 0
            self.out.error_line(f"{path}: no base offset in its name: offsets are relative")
        window = self._open(path)
        try:
            entry = INDEX_ENTRY if kind is INDEX else TIME_INDEX_ENTRY
            if kind is INDEX and not window.reaches(entry.size):
                self.out.lines([f"{path} is empty."])
                if not file_system.exists(_log_of(path)):  # Kafka's tool opens it first
                    self.out.fail(f"{_log_of(path)}: No such file or directory")
                return
            if options.index_sanity_check:
                index_text.check_sanity(window, entry, base)
                self.out.lines([f"{path} passed sanity check."])
                return
            if not options.verify_index_only:
                lines_of = index_text.index_lines if kind is INDEX else index_text.time_index_lines
                self.out.each(lines_of(window, base))
            self._compare(path, target._replace(name_offset=base), kind, window)
        finally:
            window.source.close()

    def _compare(self, path: str, index: Target, kind: FileKind, window: Window) -> None:
        """Compare an index with its segment, and collect its wrong entries."""
        log = target(_log_of(path))._replace(name_offset=index.name_offset)
        try:
            log_window = self._open(log.path)
        except SourceError as error:
            self.out.fail(f"{error}: the entries of {path} cannot be checked")
            return
        look = Window(log_window.source, LOOK)
        try:
            with Progress(log.path) as progress:
                run = Run(self.options.limits, at=progress.at)
                for wrong in wrong_entries(index, kind, window, log, log_window, run):
                    self._wrong(path, kind, wrong, look)
            if kind is TIME_INDEX and index_text.log_throws(log.path, index.name_offset or 0, window, log_window):
                self.out.status = 1
        finally:
            log_window.source.close()

    def _wrong(self, path: str, kind: FileKind, wrong: Fault, log: Window) -> None:
        if kind is TIME_INDEX and wrong.expected is not None and wrong.expected == wrong.actual:
            return  # the timestamp is that of its batch, which is all that Kafka's tool compares
        offset = None
        if kind is INDEX and isinstance(wrong.entry, Entry):
            batch = batch_at(log, wrong.entry.values["position"])
            if batch is None:  # Kafka's tool fails at such an entry
                self.out.status = 1
            else:
                offset = batch.lastOffset
        self._findings.wrong(os.path.abspath(path), kind, wrong, offset)


def _log_of(path: str) -> str:
    """Return the path of the segment of an index."""
    return os.path.join(os.path.dirname(path), os.path.basename(path).partition(".")[0] + ".log")


def _offset(path: str) -> int | None:
    """Return the offset in a file's name: the part before the first period. None if that is not a number."""
    stem = os.path.basename(path).partition(".")[0]
    return parse_long(stem)
