"""Which files `kdump inspect` reads, and what is selected of each. Notes on them are printed to stderr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kdump.command_line.command_run import print_error, report_unreadable, without_names
from kdump.format.count_text import plain_count
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.errors import SourceError, is_gone
from kdump.io.remote_paths import nameless_topic
from kdump.io.run import Run
from kdump.io.source import FileSource
from kdump.io.window import Window
from kdump.log.entries import Entry, Item, entries
from kdump.log.expression.terms import NO
from kdump.log.file_contents import by_content
from kdump.log.file_kinds import (
    BATCHES,
    INDEXES,
    KINDS,
    PRODUCER_SNAPSHOT,
    SEGMENT,
    TXN_INDEX,
    FileKind,
    by_name,
    is_of_broker,
)
from kdump.log.live_files import open_target
from kdump.log.paths import Target, is_live
from kdump.log.paths import target as target_of
from kdump.log.record import Record
from kdump.log.region import Batch, Defect, Region
from kdump.log.region_scan import RegionScan
from kdump.log.search_coverage import SearchCoverage
from kdump.log.selection import Selection
from kdump.log.served_files import targets
from kdump.log.torn_batch import TornBatch, torn_batch
from kdump.questions.inspect.options import InspectOptions
from kdump.render.escape import path_text
from kdump.render.progress import Progress

if TYPE_CHECKING:
    from kdump.questions.read_committed import ReadCommitted


class SelectedFiles:
    """The files that the paths stand for, of topics and partitions for which `of_topic` and `of_partition` are true, as
    far as the name of their directory contains them."""

    def __init__(
        self,
        options: InspectOptions,
        selection: Selection,
        of_topic: Callable[[str], bool],
        of_partition: Callable[[int | None], bool],
    ) -> None:
        self.options, self.of_topic, self.of_partition = options, of_topic, of_partition
        self.kind = KINDS.get(options.kind or "")
        limits = options.reading.limits
        self.committed: ReadCommitted | None = None
        if options.read_committed:
            from kdump.questions.read_committed import ReadCommitted

            self.committed = ReadCommitted(limits, print_error, by_markers=options.by_markers)
            selection = replace(selection, gate=self.committed)
        self.selection = selection
        self.scan = RegionScan(
            selection, limits, options.of_records, options.reading.run().window, not options.no_index
        )
        searches = selection.looks_at_content and not options.extract
        self.coverage = SearchCoverage(selection) if searches else None
        """What a search for keys, values or headers has read; None for everything else."""
        self.searched: dict[str, None] = {}
        """The directories in which it has read segments."""
        self.listed: list[Target] = []
        self.failed = False
        """Whether a file could not be read."""
        self._without_records: list[SourceError] = []
        self._has_batches = False
        self._has_committed = False
        """Whether a file was shown as a read_committed consumer sees it."""
        self.named: list[int] = []
        """The base offsets in the names of segments, including segments outside the selected offsets."""

    def __iter__(self) -> Iterator[Target]:
        """Yield every file to read. Paths that cannot be read are reported and skipped."""
        for path in self.options.paths:
            if path != "-" and "://" not in path and not file_system.lexists(path):
                self.report_unreadable(missing(path))
                continue
            try:
                found_targets = targets(
                    path,
                    self.kind,
                    Run(unreadable=self.report_unreadable),
                    all_files=self.options.all_files,
                    on_other=self._left_out if self.coverage is not None else None,
                )
                yield from self._in_range([target for target in found_targets if self._is_selected(target)])
            except SourceError as error:
                self.report_unreadable(error)

    def _is_selected(self, target: Target) -> bool:
        if target.topic is None or self.of_topic(target.topic):
            return self.of_partition(target.partition)
        if self.coverage is not None:
            path = target.path if "://" in target.path else os.path.abspath(target.path)
            if nameless_topic(os.path.dirname(path)) == target.topic:
                self.coverage.without_topic_name(target.topic)
        return False

    def _left_out(self, path: str) -> None:
        """Count a file in a directory that is not read, if it may contain what is searched."""
        assert self.coverage is not None
        target = target_of(path)
        if not self.of_topic(target.topic or "") or not self.of_partition(target.partition):
            return
        kind = by_name(path)[0]
        if not self.options.all_files and (kind is SEGMENT or (kind in BATCHES and not is_live(path))):
            self.coverage.left_over += 1
        elif self.options.all_files and not is_of_broker(os.path.basename(path)):
            self.coverage.other(path_text(path))

    def _in_range(self, files: list[Target]) -> list[Target]:
        """Leave out segments that are outside the selected offsets according to the names of their neighbors."""
        offsets = self.selection.offsets
        self.named += [
            target.name_offset for target in files if target.kind in BATCHES and target.name_offset is not None
        ]
        if offsets is None:
            return files
        chosen = []
        for target, following in zip(files, [*files[1:], None]):
            end = None
            is_next = following is not None and is_live(following.path) and is_live(target.path)
            if following is not None and is_next and os.path.dirname(following.path) == os.path.dirname(target.path):
                end = following.name_offset
            if end is not None and target.name_offset is not None and end <= target.name_offset:
                end = None  # two copies of one segment, as in remote storage
            below = end is not None and offsets.first is not None and end <= offsets.first
            above = target.name_offset is not None and offsets.last is not None and target.name_offset > offsets.last
            if not (below or above):
                chosen.append(target)
        return chosen

    def try_all(self) -> None:
        """Report the files that cannot be opened, so that this is known before the first one is shown."""
        for target in self.listed:
            try:
                if file_system.isfile(target.path):
                    open_target(target).close()
            except SourceError as error:
                if not is_gone(error):
                    self.report_unreadable(error)

    def open(self, target: Target, *, keep: bool = False) -> tuple[Target, Window] | None:
        """Return the file with its kind, by name or content, and opened; None, after a line to stderr, if it cannot be
        read. With --read-committed, also finds out what a read_committed consumer sees of it. `keep`: all of a stream
        may be read again."""
        try:
            window = self.scan.open(target, keep=keep or self.committed is not None)
            kind = target.kind or by_content(window)
            self._has_batches = self._has_batches or kind in BATCHES
        except SourceError as error:
            self.report_unreadable(error)
            return None
        if kind is PRODUCER_SNAPSHOT:
            window.source.keep = True
        if kind in INDEXES and target.name_offset is None and kind is not TXN_INDEX:
            print_error(f"{path_text(target.path)}: no base offset in the file name; offsets are relative to it")
        if self._refuses(target, kind) or not self._turned_to(target, window, kind, keep):
            window.source.close()
            return None
        if self.coverage is not None and kind in BATCHES:
            self.coverage.files += 1
            if target.source != target.path:  # the search is of the directory
                self.searched[os.path.dirname(target.path)] = None
        return target._replace(kind=kind), window

    def _refuses(self, target: Target, kind: FileKind) -> bool:
        """Return True for a file without records if conditions apply to these, and note that (`report_refused`)."""
        conditions = self.selection.conditions_on_records(kind)
        if self.options.extract and kind not in BATCHES:
            conditions.append("--extract")
        if conditions and target.source == target.path:  # in a directory, it is no part of what is searched
            segment = f"{target.path.rpartition('.')[0]}.log"
            instead = segment if kind in INDEXES and file_system.isfile(segment) else "a segment or a directory of them"
            options = f"{', '.join(conditions)} {'applies' if len(conditions) == 1 else 'apply'}"
            message = f"{target.path}: {kind.title} has no records, to which {options}; give {instead}"
            self._without_records.append(SourceError(message))
        return bool(conditions)

    def _turned_to(self, target: Target, window: Window, kind: FileKind, keep: bool) -> bool:
        """Find out what a read_committed consumer sees of the file, if that is asked for. Return False, after a line to
        stderr, if this cannot be read."""
        if self.committed is None or kind not in BATCHES:
            return True
        try:
            with Progress(f"{target.path}: transactions") as progress:
                self.committed.turn_to(target, window, Run(more=progress.more))
        except SourceError as error:
            self.report_unreadable(error)
            return False
        window.source.keep = keep
        self._has_committed = True
        return True

    def items(self, target: Target, window: Window) -> Iterator[Item]:
        """Yield the selected items of a file of a known kind: regions, or entries and the regions among them."""
        assert target.kind is not None
        if target.kind in BATCHES:
            yield from self.scan.chosen(target, window)
            return
        for item in entries(target.kind, window, target.name_offset or 0):
            self.scan.run.at(getattr(item, "position", 0), window.source.size)
            if isinstance(item, Defect) or (
                self.selection.entry(item.position, item.values)
                if isinstance(item, Entry) and item.type
                else self.selection.is_all
            ):
                yield item

    def torn(self, region: Region, window: Window) -> TornBatch | None:
        """Return the batch of a torn region; None if it has no records that can be decoded and may match."""
        torn = torn_batch(region, window, self.scan.limits)
        return None if torn is None or self.selection.batch(torn) == NO else torn

    def records(self) -> Iterator[Record]:
        """Yield the selected records of all files, for as long as they can be read."""
        for file in self:
            opened = self.open(file)
            if opened is None:
                continue
            target, window = opened
            try:
                for region in self.scan.chosen(target, window) if target.kind in BATCHES else ():
                    batch = region if isinstance(region, Batch) else self.torn(region, window)
                    if batch is not None:
                        batch.crcValid  # noqa: B018  (taken while the batch can be read)
                        yield from self.selection.records(batch)
            except SourceError as error:
                self.report_unreadable(error)
            finally:
                window.source.close()

    def report_unreadable(self, error: SourceError) -> None:
        """Report a path or device that could not be read; the other files are still processed."""
        self.failed = report_unreadable(error) or self.failed

    def report_refused(self) -> None:
        """Report the files without records as ones that could not be searched, if there were no others."""
        for error in () if self._has_batches else self._without_records:
            self.report_unreadable(error)

    def ended(self, target: Target, window: Window, count: int) -> None:
        """Print notes on a file after reading it. `count`: batches, or entries and other regions, that were read."""
        source = window.source
        name = path_text(target.path)
        if source.error:
            print_error(without_names(source.error))
            self.failed = True
        if isinstance(source, FileSource) and not self.options.follow:
            grown = source.grown()
            if grown > 0:
                print_error(f"{name}: grew by {plain_count(grown, 'byte')} while being read; use --follow to show them")
            elif grown < 0:
                print_error(f"{name}: was truncated by {plain_count(-grown, 'byte')} while being read")
        if source.size == 0 and target.source == target.path:  # one in a directory is a new segment, or was cleaned
            print_error(f"{name}: is empty")
        elif source.size and not count and self.selection.is_all:
            no_batch = (
                f"no record batch in {source.size} bytes; if this is not a segment, set the file kind with --as KIND"
            )
            print_error(f"{name}: {no_batch if target.kind in BATCHES else 'no entries'}")

    def notes(self) -> None:
        """Print notes at the end of the run."""
        self.report_refused()
        scan = self.scan
        if scan.unshown and self.coverage is None:
            regions = "region is" if scan.unshown == 1 else "regions are"
            print_error(
                f"{scan.unshown} {regions} not shown ({plain_count(scan.unshown_bytes, 'byte')}"
                f" without a readable batch);"
                " omit the filter options to show all"
            )
        # With --last, batches are read more than once, so the counts would be wrong.
        if self.committed is not None and self._has_committed and not self.options.last:
            self.committed.end()
