"""`kdump.carve`: finds the batches in files of any kind, and the runs that they form."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import BinaryIO

from kdump.check.options import Options
from kdump.io import file_system
from kdump.io.errors import SourceError, is_missing, listing_error
from kdump.io.fault_tolerant import careful_source
from kdump.io.partly_readable import PartlyReadable
from kdump.io.run import Run
from kdump.kafka.errors import KafkaError
from kdump.kafka.index_builder import IndexBuilder
from kdump.log.output_directory import PASSING, OutputDirectory
from kdump.log.paths import Target, target
from kdump.log.region import Batch
from kdump.query import OptionsQuery, Query, offered, option
from kdump.questions.carve.carved_runs import CarvedRun, Runs
from kdump.questions.carve.search import CarvedBatch, Search

__all__ = ["CarvedFile", "carve"]


@dataclass
class CarvedFile:
    """A file that has been searched completely. `skipped`: bytes in sparse regions, which were not read; `unreadable`:
    bytes that the device could not read; `unchecked`: headers that were passed over because there were too many of
    them."""

    file: str
    size: int
    skipped: int = 0
    unchecked: int = 0
    unreadable: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CarveQuery(OptionsQuery):
    """What to search, and where to write what is found."""

    paths_option = {**Query.paths_option, "metavar": "FILE…"}
    out: str | None = option(
        "--out", metavar="DIR", help="Write each run as a segment with its indexes to this new directory."
    )


def answers(query: CarveQuery) -> Iterator[CarvedBatch | CarvedRun | CarvedFile]:
    """Yield the valid batches in files of any kind, in order of their positions; a CarvedRun after the last batch of
    each run, and a CarvedFile after each file. `paths`: files, block devices, - for standard input, or directories,
    which are searched recursively. Each run is written to its own directory below `out`, a new directory, as a segment
    with its indexes; by default nothing is written.

    A batch can be read until you request the next item. `run.unreadable` is called with the SourceError for each file
    that could not be read. Raises SourceError, and kdump.log.output_directory.OutputError."""
    named, out = list(query.paths), query.out
    options = Options.given(query.run, open_source=careful_source)
    writer = None if out is None else Writer(OutputDirectory(out, named))
    runs = Runs()
    with nullcontext() if writer is None else writer.output.synced_once():
        for each_file in chain.from_iterable(_files(path, options) for path in named):
            try:
                yield from _file(each_file, runs, writer, options)
            except SourceError as error:
                if writer is not None:
                    writer.abandon()
                runs.end()
                options.unreadable(error)
            except BaseException:  # OutputError, or the caller has stopped iterating
                if writer is not None:
                    writer.abandon()
                raise


carve = offered("carve", CarveQuery, answers)


def _files(path: str, run: Run) -> Iterator[Target]:
    if path == "-" or "://" in path or not file_system.isdir(path):
        yield target(path)
        return

    is_known = False

    def unlistable(error: OSError) -> None:
        nonlocal is_known
        is_known = True  # or it is unknown
        run.unreadable(SourceError(listing_error(error, str(error.filename))))

    for folder, below, names in file_system.walk(path, onerror=unlistable):
        below.sort()
        for name in sorted(names):
            if not _is_skipped(os.path.join(folder, name)):
                is_known = True
                yield target(os.path.join(folder, name), source=path)
    if not is_known:
        run.unreadable(SourceError.at(path, "no files in or below this directory"))


def _is_skipped(path: str) -> bool:
    """Return True for a pipe, a device or a socket that was found in a directory, and for a broken link."""
    try:
        return not stat.S_ISREG(file_system.stat(path).st_mode)
    except OSError as error:
        return is_missing(error)


def _file(
    target: Target, runs: Runs, writer: Writer | None, options: Options
) -> Iterator[CarvedBatch | CarvedRun | CarvedFile]:
    window = options.open(target)
    with closing(window.source) as source:
        search = Search(window, options)
        for answer in search.batches():
            if answer.within is not None:
                yield answer
                continue
            if runs.ends_before(answer.batch):
                yield from _end(runs, writer)
            carved = runs.add(target.path, answer.batch)
            if writer is not None:
                writer.add(carved, answer.batch)
            yield replace(answer, run=carved.number)
        yield from _end(runs, writer)
        done = CarvedFile(target.path, source.size or 0, search.skipped, search.unchecked)
        if source.error:
            done.notes.append(source.error)
        if isinstance(source, PartlyReadable):
            done.unreadable = sum(size for _, size in source.unreadable)
        yield done


def _end(runs: Runs, writer: Writer | None) -> Iterator[CarvedRun]:
    carved = runs.end()
    if carved is not None:
        if writer is not None:
            writer.end(carved)
        yield carved


class Writer:
    """Writes one run after the other, batch by batch: run-000001/<first offset>.log …"""

    def __init__(self, output: OutputDirectory) -> None:
        self.output = output
        self._together = ExitStack()
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self._builder: IndexBuilder | None = None
        self._directory = self._stem = ""

    def add(self, carved: CarvedRun, batch: Batch) -> None:
        """Write the next batch of a run. Raises OutputError."""
        if self._file is None:
            self._directory, self._stem = f"run-{carved.number:06}", f"{carved.firstOffset:020}"
            self._together.enter_context(self.output.together(self._directory))
            self._file = self._stack.enter_context(self.output.writing(self._passing(".log")))
            self._builder = IndexBuilder(carved.firstOffset)
        if self._builder is not None:
            try:
                self._builder.add(batch, batch.position - carved.position)
            except KafkaError as stop:
                self._builder = None
                carved.note = f"no indexes written, because of the batch at byte {batch.position}: {stop}"
        for piece in batch.chunks(0, batch.size):
            self._file.write(piece)

    def end(self, run: CarvedRun) -> None:
        """Finish a run after its last batch. Raises OutputError."""
        self._stack.close()
        if self._builder is not None:
            self._indexes(run, self._builder)
        self._file = None
        self._together.close()
        run.written = self.output.path(f"{self._directory}/{self._stem}.log")

    def _indexes(self, carved: CarvedRun, builder: IndexBuilder) -> None:
        try:
            indexes = builder.finish()
        except KafkaError as stop:
            carved.note = f"no indexes written: {stop}"
            return
        endings = ((".index", indexes.index), (".timeindex", indexes.timeindex), (".txnindex", indexes.txnindex))
        for ending, data in endings:
            if data or ending != ".txnindex":
                self.output.write(self._passing(ending), data)

    def _passing(self, ending: str) -> str:
        """Return the temporary name of a file of the run, used until the run is complete."""
        return f"{self._directory}{PASSING}/{self._stem}{ending}"

    def abandon(self) -> None:
        """Remove a partially written run."""
        for stack in (self._stack, self._together):
            with suppress(KeyboardInterrupt):
                stack.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        self._file = None
