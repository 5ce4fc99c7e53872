"""Compare replicas of a partition: where they diverge, and in which leader epochs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace

import click

from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import compared_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import TopicFilter, has_unmatched
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import NotRead, RemoteOptions
from kdump.command_line.state_options import Notes
from kdump.command_line.typed_options import takes
from kdump.io.errors import SourceError
from kdump.log.log_directory import directory_at
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.diff.answer import DiffSummary, PartitionDiff, diff_answers
from kdump.questions.diff.differences import DIVERGENT, PREFIX, SAME
from kdump.questions.diff.report import DiffReport
from kdump.questions.diff.run import LITTLE, Diff, DiffQuery, answers
from kdump.questions.find_copies import CopyGroup
from kdump.render.progress import Progress
from kdump.render.stdout import Output

MAX_UNPAIRED = 5
"""Maximum number of partitions without a counterpart that are listed by name."""
EXAMPLES = """
\b
Examples:
  kdump diff /mnt/broker-1/ledger-0 /mnt/broker-2/ledger-0
  kdump diff /mnt/broker-1 /mnt/broker-2 /mnt/broker-3 --topic 'led*'
  kdump diff /mnt/broker-1 /mnt/broker-2 --json | jq 'select(.type=="diff") | .firstDivergentOffset'

\b
Exit status: 0 if the copies are the same, 1 if they differ (or one is a prefix of another), 2 for a usage error, or if
something could not be read or compared.
"""


@dataclass(frozen=True)
class DiffOptions(CommandOptions):
    """The options of the command."""

    query: DiffQuery = group(DiffQuery)
    everything: bool = flag("--all", help="Also list the partitions that are the same.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: differences, one diff per partition, one diffSummary.",
            columns=CSV_COLUMNS_HELP,
            full="Do not truncate values, and show every difference.",
            quiet=QUIET_HELP,
        )
    )
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("replicas", 1), to_the_end=True)
@takes(DiffOptions)
def command(options: DiffOptions) -> None:
    """Compare replicas, or other copies of a partition: files, partition directories, or log directories, which are
    compared partition by partition. Reports whether the copies are the same, one is a prefix of another, or they
    diverge; at which offset and in which leader epochs; and what a broker does about it. Copies that differ only by
    compression, batching, compaction, retention or segment boundaries are the same; a mirror in another cluster has
    other offsets and is none of them (kdump help questions). Nothing is written to the disks."""
    paths = tuple(options.query.paths)
    if len(paths) < 2:
        raise click.UsageError("at least two paths are needed")
    if "-" in paths and (paths.count("-") > 1 or len(paths) > 2):
        raise click.UsageError("standard input (-) can be given only once, and compared with only one other path")
    exit_with(lambda: DiffCommand(options, options.output.output()).run())


class DiffCommand:
    """One run of the command."""

    def __init__(self, options: DiffOptions, output: Output) -> None:
        self.options, self.query, self.output = options, options.query, output
        zone, full = options.output.zone, options.output.full
        self.sink = options.output.sink(
            output,
            lambda: DiffReport(output, zone, full=full, everything=options.everything, named=tuple(self.query.paths)),
            (PartitionDiff,),
            objects=diff_answers,
            report=True,
        )
        self.notes = Notes(self.sink)
        self.counts: Counter[str | None] = Counter()
        self.gone = 0
        """Number of comparisons without a result because segments were deleted during the run."""
        self.has_gone = False
        """Whether a path was deleted during the run, so that nothing may be left to compare."""
        self.unpaired: list[str] = []
        self.lone_differ = False
        self.not_read = NotRead()

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        query = replace(self.query, hash_key=self.query.key, on_unpaired=self._add_unpaired)
        self.options.remote.mount(tuple(query.paths))
        with Progress("diff", expected=lambda: compared_bytes(query.paths, query.has_topic)) as progress:
            check = self.options.reading.run(only=LITTLE, unreadable=self._note_unread, **progress.listeners)
            for compared in answers(replace(query, run=check)):
                self._found(compared)
        self._end(time.monotonic() - began)
        self.output.flush()
        if unreadable() or self.counts[None] > self.gone:
            return 2
        if not sum(self.counts.values()):
            return 0 if self.has_gone else 2
        return int(bool(self.counts[PREFIX] or self.counts[DIVERGENT] or self.lone_differ))

    def _note_unread(self, error: SourceError) -> None:
        if not report_unreadable(error):
            self.has_gone = True

    def _add_unpaired(self, group: CopyGroup, is_difference: bool) -> None:
        assert group.key is not None
        self.unpaired.append(f"{group.key[0]}-{group.key[1]} is only in {group.copies[0].path}")
        self.lone_differ = self.lone_differ or is_difference

    def _found(self, diff: Diff) -> None:
        self.counts[diff.relation] += 1
        self.gone += diff.relation is None and diff.has_deleted_segment
        for copy in diff.copies:
            self.not_read.note(directory_at(copy.path))
            for problem in copy.unread:
                self._note_unread(SourceError(problem))
        self.sink.add(diff)

    def _end(self, seconds: float) -> None:
        total = sum(self.counts.values())
        if not self.options.output.quiet:
            self._report_lone()
            if not total and not unreadable() and not self.has_gone and not has_unmatched(TopicFilter):
                print_error("no partition is in more than one of the paths")
        summary = DiffSummary(
            partitions=total,
            same=self.counts[SAME],
            prefix=self.counts[PREFIX],
            divergent=self.counts[DIVERGENT],
            unknown=self.counts[None],
            lone=len(self.unpaired),
            unread=unreadable(),
            seconds=round(seconds, 3),
        )
        self.sink.add(summary)
        self.sink.end()

    def _report_lone(self) -> None:
        for number, message in enumerate(self.unpaired):
            self.notes.add("", message, quiet=number >= MAX_UNPAIRED)
        if len(self.unpaired) > MAX_UNPAIRED:
            print_error(f"… and {len(self.unpaired) - MAX_UNPAIRED} more partitions that are only in one of the paths")
