"""The work of `kdump ls`: identifies each path, selects and sorts the rows, and passes them to a view."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

import click

from kdump.cluster.directory_summary import LogDirectoryStates, log_directory_summary, single_partition_summary
from kdump.cluster.disks import Disks
from kdump.cluster.partition_summary import PartitionSummary
from kdump.cluster.segment_answer import ListedSegment
from kdump.command_line.command_run import print_error, report_unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.name_options import topic_filter
from kdump.command_line.output_options import OutputOptions, output_options
from kdump.command_line.properties_option import properties_option
from kdump.command_line.remote_option import RemoteOptions
from kdump.format.count_text import count_text
from kdump.io import file_system
from kdump.io.command_line_paths import missing
from kdump.io.directory_listing import is_url, items, parent
from kdump.io.errors import SourceError, listing_error
from kdump.io.run import Run
from kdump.io.unreadable_paths import failures
from kdump.kafka.server_properties import ServerProperties
from kdump.log import file_kinds
from kdump.log.find_directories import find_directories
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.log.log_directory import LogDirectory
from kdump.log.partition_directory import PartitionDirectory, partition
from kdump.log.paths import Target
from kdump.query import CommandOptions, added, argument, flag, group, option, topic_option
from kdump.questions.ls.answer import ListedPartition, ListedTopic
from kdump.questions.ls.report import DirectoryStart, LsReport, PartitionStart, RowsEnd, ls_objects, ls_row_objects
from kdump.questions.ls.rows import SORTS, LsRow, LsRows, chosen
from kdump.render.amounts import size_text
from kdump.render.escape import path_text
from kdump.render.progress import Progress
from kdump.render.table import OtherColumns, UnknownColumn

LARGE = 64 << 30
"""Total size of segments in bytes from which a note recommends --quick."""

TopicPredicate = Callable[[str], bool]


@dataclass(frozen=True)
class LsOptions(CommandOptions):
    """Options of `kdump ls`. `by`: partition, topic or segment; None for the default of the path. `topics`: globs, or
    /regexes/, of which one has to match; `internal`: only Kafka's own topics (True), only others (False), or all
    (None)."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    by: str | None = option(
        "--by",
        type=click.Choice(["partition", "topic", "segment"]),
        help="Show one row for each of these.  [partition; segment for a partition directory]",
    )
    segments: bool = flag("--segments", help="Show one row per segment; same as --by segment.")
    topics: tuple[str, ...] = topic_option("Show only these topics")
    internal: bool | None = option(
        "--internal/--no-internal", default=None, help="Show only Kafka's internal topics, or only the others."
    )
    sort: str = option(
        "--sort",
        type=click.Choice(SORTS),
        default="name",
        help="Sort rows: size, segments, offsets and newest descending; name and oldest ascending.  [name]",
    )
    reverse: bool = flag("--reverse", help="Reverse the sort order.")
    limit: int | None = option(
        "-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows per directory."
    )
    quick: bool = flag("--quick", help="Read only the first and last batches of each segment.")
    server: ServerProperties | None = properties_option()
    metrics: str | None = metrics_option()
    remote: RemoteOptions = group(RemoteOptions)
    output: OutputOptions = added(output_options())

    @property
    def rows(self) -> str | None:
        return "segment" if self.segments else self.by


NONE_OF_KIND = {
    True: "no partition of Kafka's internal topics found",
    False: "no partition found, except of Kafka's internal topics",
}
"""Messages for --internal (True) and --no-internal (False) if no partition is selected."""


def is_of_kind(topic: str, internal: bool | None) -> bool:
    """Return True if --internal or --no-internal, whichever was given, selects the topic."""
    return internal is None or (topic in INTERNAL_TOPICS) == internal


def selected_topics(topics: tuple[str, ...], internal: bool | None) -> TopicPredicate:
    """Return the predicate that selects partitions by their topic. Raises click.UsageError."""
    of_topic = topic_filter(topics)

    def is_selected(topic: str) -> bool:
        return is_of_kind(topic, internal) and of_topic(topic)

    return is_selected


ROWS: dict[str | None, tuple[type, ...]] = {
    "partition": (ListedPartition,),
    "topic": (ListedTopic,),
    "segment": (ListedSegment,),
    None: (ListedPartition, ListedSegment),
}
"""Classes of the rows, by the option --by."""


class LsRun:
    """One run of the command. `failed`: whether something could not be read."""

    def __init__(self, options: LsOptions) -> None:
        self.options = options
        self.output = options.output.output()
        self.failed = False
        self._damaged = 0
        self._shown = 0
        self._reported: set[str] = set()
        self._is_selected = selected_topics(options.topics, options.internal)
        self._disks = Disks.at(options.paths, server=options.server)
        self._log_directory_states: LogDirectoryStates = {}
        shown = options.output
        self._sink = shown.sink(
            self.output,
            lambda: LsReport(
                self.output, zone=shown.zone, names=shown.names, full=shown.full, by_size=options.sort == "size"
            ),
            ROWS[options.rows],
            objects=ls_objects,
            row_objects=ls_row_objects,
        )

    def run(self) -> None:
        """Show everything that is selected."""
        files: dict[str, list[Target]] = {}
        for path in self.options.paths:
            try:
                for place in map(self._disks.described, find_directories(path, Run(unreadable=self._note_unread))):
                    if isinstance(place, LogDirectory):
                        self._directory(place)
                    elif isinstance(place, PartitionDirectory):
                        self._partition(place)
                    elif (
                        place.kind is file_kinds.SEGMENT and "://" not in place.path and file_system.isfile(place.path)
                    ):
                        files.setdefault(os.path.dirname(os.path.abspath(place.path)), []).append(place)
                    else:
                        self._note_unread(SourceError(_why_unlistable(place.path)))
            except SourceError as error:
                self._note_unread(error)
        for targets in files.values():
            self._files(parent(targets[0].path), targets)
        self._sink.end()
        self.output.flush()
        if not self._shown and self.options.internal is not None and not self.options.topics and not self.failed:
            print_error(NONE_OF_KIND[self.options.internal])
        if self._damaged:
            found_in = count_text(self._damaged, "place")
            print_error(f"damage found in {found_in}; run kdump verify for details and impact")

    def _directory(self, place: LogDirectory) -> None:
        facts = log_directory_summary(place, self._disks)
        facts.absent = [key for key in facts.absent if self._is_selected(key[0])]
        paths = {os.path.join(os.path.abspath(place.path), name) for name in facts.broken}
        self._damaged += bool(paths - failures().keys())
        parts = [part for part in facts.partitions if self._is_selected(part.topic)]
        rows = LsRows(parts, self.options.rows or "partition")
        if not len(rows) and not facts.absent and self.options.topics:  # --topic matches nothing here
            return
        self._sink.add(DirectoryStart(facts, rows))
        total = rows.size
        if total >= LARGE and not self.options.quick and self.options.limit is None:
            print_error(f"{size_text(total)} of segments; use --quick to read only the first and last batches of each")
        self._rows(rows, place.path, len(rows), rows.size)

    def _partition(self, place: PartitionDirectory) -> None:
        facts = single_partition_summary(place, self._log_directory_states)
        if not self._is_selected(facts.topic):
            return
        by = self.options.rows or "segment"
        if by == "segment":
            self._sink.add(PartitionStart(facts))
        rows = LsRows([facts], by, is_alone=True)
        self._rows(rows, place.path, len(rows), rows.size, facts if by == "segment" else None)
        if by == "segment":
            self._report(facts.partition.listing_errors)

    def _files(self, directory: str, targets: list[Target]) -> None:
        """Show segments that were given as paths, with what is known from their directory."""
        facts = single_partition_summary(partition(directory), self._log_directory_states)
        if not self._is_selected(facts.topic):
            return
        names = {os.path.basename(target.path): target for target in targets}
        rows = []
        for row in LsRows([facts], "segment"):
            assert row.segment is not None
            assert row.segment.segment.log is not None
            target = names.pop(os.path.basename(row.segment.segment.log.path), None)
            if target is not None:
                row.segment.segment = row.segment.segment.with_log(target)
                rows.append(row)
        for target in names.values():  # not live segments
            self._note_unread(SourceError(_why_unlistable(target.path)))
        self._rows(rows, directory, len(rows), sum(row.size for row in rows))

    def _rows(
        self, rows: Iterable[LsRow], name: str, count: int, size: int, of: PartitionSummary | None = None
    ) -> None:
        """Show rows: `count` of them, with `size` bytes of segments."""
        options = self.options
        shown = deleted = 0
        with Progress(name) as progress:
            progress.total = size

            def more(count: int) -> None:
                progress.more(count)
                self._sink.tick()

            turns = chosen(
                rows,
                sort=options.sort,
                reverse=options.reverse,
                limit=options.limit,
                quick=options.quick,
                run=Run(more=more),
            )
            try:
                for row in turns:
                    if row.is_deleted:
                        deleted += 1
                        continue
                    shown += 1
                    self._report(row.errors)
                    self._damaged += row.is_damaged
                    self._sink.add(row)
            except (UnknownColumn, OtherColumns) as error:
                raise click.UsageError(str(error)) from None
        self._shown += shown
        self._sink.add(RowsEnd(shown, count - deleted, of))
        self.output.tick()

    def _report(self, errors: list[str]) -> None:
        for error in errors:
            self._note_unread(SourceError(error))

    def _note_unread(self, error: SourceError) -> None:
        if str(error) not in self._reported:  # reported both by the search and by the directory
            self.failed |= report_unreadable(error)
        self._reported.add(str(error))


def _why_unlistable(path: str) -> str:
    if "://" not in path and path != "-" and not file_system.lexists(path):
        return str(missing(path))
    try:
        if is_url(path):
            items(path)
    except OSError as error:
        return listing_error(error, path)
    return f"{path_text(path)}: neither a directory nor a live segment; use kdump inspect to show a file"


def run_ls(options: LsOptions) -> NoReturn:
    """List the paths, then exit with its status."""

    def run() -> int:
        options.remote.mount(options.paths)
        ls = LsRun(options)
        ls.run()
        return 2 if ls.failed else 0

    exit_with(run)
