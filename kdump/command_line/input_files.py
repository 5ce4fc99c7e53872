"""Input files of the commands that show them: finds and opens them, and prints notes on them to stderr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from kdump.format.count_text import count_text, plain_count
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.errors import NOT_KNOWN, NotKnown, SourceError, is_gone
from kdump.io.remote_paths import nameless_topic
from kdump.io.run import Run
from kdump.io.source import FileSource
from kdump.io.unreadable_paths import failures, same_failure
from kdump.io.window import Window
from kdump.log.file_kinds import (
    BATCHES,
    INDEXES,
    PRODUCER_SNAPSHOT,
    SEGMENT,
    TXN_INDEX,
    FileKind,
    by_content,
    by_name,
    is_of_broker,
)
from kdump.log.live_files import open_target
from kdump.log.paths import Target, is_live
from kdump.log.paths import target as target_of
from kdump.log.served_files import targets
from kdump.render.escape import path_text, printable

if TYPE_CHECKING:  # only inspect has them
    from kdump.log.pseudonyms import Pseudonyms
    from kdump.log.region_scan import RegionScan
    from kdump.log.search_coverage import SearchCoverage

COMPLAINED = "kdump.command_line.input_files.complained"
"""Key in click's context: whether this run has written a line to stderr."""


def print_error(text: str) -> None:
    """Print one line to stderr."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[COMPLAINED] = True
    click.echo(f"kdump: {printable(path_text(text))}", err=True)


NAMES = "kdump.command_line.input_files.names"
"""Key in click's context: what replaces the names in the errors of this run."""


def replace_names(names: Pseudonyms) -> None:
    """Print what could not be read without names: the path with replacements, and no reason that may have one."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[NAMES] = names


def _shown(error: str) -> str:
    """Return the text of an error as it is printed."""
    context = click.get_current_context(silent=True)
    names: Pseudonyms | None = None if context is None else context.meta.get(NAMES)
    return error if names is None else names.located(error)


GONE = "kdump.command_line.input_files.gone"
"""Key in click's context: number of files and directories that were deleted during this run."""
MAX_DELETED_LISTED = 5
"""Maximum number of them that are listed by name."""


def note_deleted(error: SourceError) -> None:
    """Print a line to stderr for a file or directory that was deleted during the run, for the first MAX_DELETED_LISTED
    of them."""
    context = click.get_current_context(silent=True)
    count = 1 if context is None else context.meta.get(GONE, 0) + 1
    if context is not None:
        context.meta[GONE] = count
    if count <= MAX_DELETED_LISTED:
        print_error(_shown(str(error)))


def print_deleted_total() -> None:
    """Print how many more were deleted; for the end of the run."""
    context = click.get_current_context(silent=True)
    more = (0 if context is None else context.meta.pop(GONE, 0)) - MAX_DELETED_LISTED
    if more > 0:
        print_error(f"{count_text(more, 'more file')} went away while this ran, deleted by retention or compaction")


UNREAD = "kdump.command_line.input_files"
"""Key in click's context: the errors reported in this run about what could not be read, each once."""


def report_unreadable(error: SourceError) -> bool:
    """Print a line to stderr for input that could not be read, and mention it in the first line of the output, too.
    Return False if it was deleted during the run, which is only noted."""
    if is_gone(error):
        note_deleted(error)
        return False
    if same_failure(str(error)) not in _reported():  # both the search and the directory report what cannot be listed
        print_error(_shown(str(error)))
    add_unreadable(str(error))
    return True


def add_unreadable(text: str) -> None:
    """Like `report_unreadable`, for an error that has been printed already."""
    _reported().setdefault(same_failure(text), text)


def _reported() -> dict[str, str]:
    """Return the errors of this run by `same_failure`."""
    context = click.get_current_context(silent=True)
    reported: dict[str, str] = {} if context is None else context.meta.setdefault(UNREAD, {})
    return reported


def unreadable() -> list[str]:
    """Return what could not be read in this run: the errors that the command has reported, then the failures that
    nothing has reported yet (kdump.io.unreadable_paths)."""
    return [*_reported().values(), *_unreported()]


def _unreported() -> list[str]:
    """Return the failures to read a file or directory whose path is in no error that the command has reported."""
    paths = {os.path.abspath(part) for message in _reported().values() for part in message.split(": ")}
    return [message for path, message in failures().items() if path not in paths]


OUTPUT = "kdump.command_line.input_files.output"
"""Key in click's context: the output whose first line states what was not read."""
MAX_FAILURES_LISTED = 20
"""Maximum number of failures that are listed by name at the end of a run."""


def unreadable_line() -> str:
    """Return the first line of output for people, if something could not be read; else an empty string."""
    problems = unreadable()
    if not problems:
        return ""
    more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    head = NOT_KNOWN if all(isinstance(problem, NotKnown) for problem in problems) else "NOT ALL WAS READ"
    return f"{head}: {printable(path_text(_shown(problems[0])))}{more}"


def print_unreadable() -> bool:
    """End an answer whose first line states what was not read: print the failures that the command itself did not
    report; if it has no other output, write the first line alone. Return True if a file or directory could not be
    read."""
    output = click.get_current_context().meta.get(OUTPUT)
    if output is None:
        return False
    if failures() or any(isinstance(reported, NotKnown) for reported in _reported().values()):
        output.finish()
    if not failures():
        return False
    messages = _unreported()
    for message in messages[:MAX_FAILURES_LISTED]:
        print_error(_shown(message))
    if len(messages) > MAX_FAILURES_LISTED:
        print_error(f"… and {len(messages) - MAX_FAILURES_LISTED:,} more files that could not be read")
    return True


class Files:
    """The files that the given paths stand for, of topics and partitions for which `of_topic` and `of_partition` are
    true, as far as the name of their directory contains them. `failed`: whether one could not be read; `follow`:
    whether growth is expected; `all_files`: whether those that no broker serves are read, too; `coverage` counts the
    files that are left out of a search."""

    def __init__(
        self,
        paths: tuple[str, ...],
        kind: FileKind | None,
        scan: RegionScan,
        of_topic: Callable[[str], bool],
        *,
        follow: bool,
        all_files: bool = False,
        coverage: SearchCoverage | None = None,
        of_partition: Callable[[int | None], bool] = lambda number: True,
    ) -> None:
        self.paths, self.of_partition, self.all_files, self.coverage = paths, of_partition, all_files, coverage
        self.kind, self.scan, self.of_topic, self.follow = kind, scan, of_topic, follow
        self.failed = False
        self._without_records: list[SourceError] = []
        self._has_batches = False
        self.named: list[int] = []
        """The base offsets in the names of segments, including segments outside the selected offsets."""

    def __iter__(self) -> Iterator[Target]:
        """Yield every file to read. Paths that cannot be read are reported and skipped."""
        for path in self.paths:
            if path != "-" and "://" not in path and not file_system.lexists(path):
                self.report_unreadable(missing(path))
                continue
            try:
                found_targets = targets(
                    path,
                    self.kind,
                    Run(unreadable=self.report_unreadable),
                    all_files=self.all_files,
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
        if not self.all_files and (kind is SEGMENT or (kind in BATCHES and not is_live(path))):
            self.coverage.left_over += 1
        elif self.all_files and not is_of_broker(os.path.basename(path)):
            self.coverage.other(path_text(path))

    def _in_range(self, files: list[Target]) -> list[Target]:
        """Leave out segments that are outside the selected offsets according to the names of their neighbors."""
        offsets = self.scan.selection.offsets
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

    def try_all(self, files: list[Target]) -> None:
        """Report the files that cannot be opened, so that this is known before the first one is shown."""
        for target in files:
            try:
                if file_system.isfile(target.path):
                    open_target(target).close()
            except SourceError as error:
                if not is_gone(error):
                    self.report_unreadable(error)

    def open(self, target: Target, *, keep: bool = False) -> tuple[Window, FileKind] | None:
        """Return the file and its kind, by name or content; None, after a line to stderr, if it cannot be read."""
        try:
            window = self.scan.open(target, keep=keep)
            kind = target.kind or by_content(window)
            self._has_batches = self._has_batches or kind in BATCHES
        except SourceError as error:
            self.report_unreadable(error)
            return None
        if kind is PRODUCER_SNAPSHOT:
            window.source.keep = True
        if kind in INDEXES and target.name_offset is None and kind is not TXN_INDEX:
            print_error(f"{path_text(target.path)}: no base offset in the file name; offsets are relative to it")
        return window, kind

    def report_unreadable(self, error: SourceError) -> None:
        """Report a path or device that could not be read; the other files are still processed."""
        self.failed = report_unreadable(error) or self.failed

    def refuse(self, target: Target, kind: FileKind, conditions: list[str]) -> None:
        """Note that a file has no records, to which these conditions apply (`report_refused`)."""
        if target.source != target.path:
            return  # found in a directory, of which it is no part of what is searched
        segment = f"{target.path.rpartition('.')[0]}.log"
        instead = segment if kind in INDEXES and file_system.isfile(segment) else "a segment or a directory of them"
        options = f"{', '.join(conditions)} {'applies' if len(conditions) == 1 else 'apply'}"
        message = f"{target.path}: {kind.title} has no records, to which {options}; give {instead}"
        self._without_records.append(SourceError(message))

    def report_refused(self) -> None:
        """Report the files without records as ones that could not be searched, if there were no others."""
        for error in () if self._has_batches else self._without_records:
            self.report_unreadable(error)

    def ended(self, target: Target, window: Window, kind: FileKind, count: int) -> None:
        """Print notes on a file after reading it. `count`: batches, or entries and other regions, that were read."""
        source = window.source
        name = path_text(target.path)
        if source.error:
            print_error(_shown(source.error))
            self.failed = True
        if isinstance(source, FileSource) and not self.follow:
            grown = source.grown()
            if grown > 0:
                print_error(f"{name}: grew by {plain_count(grown, 'byte')} while being read; use --follow to show them")
            elif grown < 0:
                print_error(f"{name}: was truncated by {plain_count(-grown, 'byte')} while being read")
        if source.size == 0 and target.source == target.path:  # one in a directory is a new segment, or was cleaned
            print_error(f"{name}: is empty")
        elif source.size and not count and self.scan.selection.is_all:
            no_batch = (
                f"no record batch in {source.size} bytes; if this is not a segment, set the file kind with --as KIND"
            )
            print_error(f"{name}: {no_batch if kind in BATCHES else 'no entries'}")

    def notes(self) -> None:
        """Print notes at the end of the run."""
        scan = self.scan
        if scan.unshown and self.coverage is None:
            regions = "region is" if scan.unshown == 1 else "regions are"
            print_error(
                f"{scan.unshown} {regions} not shown ({plain_count(scan.unshown_bytes, 'byte')}"
                f" without a readable batch);"
                " omit the filter options to show all"
            )
