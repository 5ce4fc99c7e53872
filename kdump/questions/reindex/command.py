"""Rebuild the indexes of segments as a broker does, and report what is wrong with the old ones."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace

import click

from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.log.output_directory import OutputError
from kdump.query import CommandOptions, added, flag, group
from kdump.questions.reindex.report import ReindexReport
from kdump.questions.reindex.run import LITTLE, Reindexed, ReindexQuery, ReindexSummary, answers
from kdump.questions.reindex.verdict import IDENTICAL, LEGAL, MISSING, WRONG
from kdump.render.progress import Progress
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump reindex /var/lib/kafka/payments-0 --out /tmp/saved
  kdump reindex /var/lib/kafka --topic 'pay*' --all
  kdump reindex /var/lib/kafka --json | jq -r 'select(.type=="reindex") | .file, .indexes[].status'

\b
Exit status: 0 if a broker could have written the old indexes, 1 if an index is wrong or missing, or a segment is
damaged, 2 for a usage error, or if something could not be read or rebuilt.
"""


@dataclass(frozen=True)
class ReindexOptions(CommandOptions):
    """The options of the command."""

    query: ReindexQuery = group(ReindexQuery)
    everything: bool = flag("--all", help="Also show segments whose indexes are identical.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one reindex per segment, one reindexSummary.",
            columns=CSV_COLUMNS_HELP,
            full="Do not truncate values, and show every wrong entry that is kept.",
            quiet="Print nothing; only write files and set the exit status.",
            zone=False,
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("salvage", 3), to_the_end=True, mounts=False)
@takes(ReindexOptions)
def command(options: ReindexOptions) -> None:
    """Rebuild the .index, .timeindex and .txnindex of segments (files, partition directories, log directories) as a
    broker's recovery does, and report whether the old ones are identical, differ in a way that a broker may write, or
    are wrong: which entry, and what it should be. --out writes the new ones to another directory, and states how to use
    them. Nothing is written to the disks."""
    exit_with(ReindexCommand(options, options.output.output()).run, OutputError)


class ReindexCommand:
    """One run of the command."""

    def __init__(self, options: ReindexOptions, output: Output) -> None:
        self.options, self.output, query = options, output, options.query
        self.sink = options.output.sink(
            output,
            lambda: ReindexReport(
                output, full=options.output.full, everything=options.everything, named=tuple(query.paths), out=query.out
            ),
            (Reindexed,),
            report=True,
        )
        self.counts: Counter[str] = Counter()

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        query = self.options.query
        with Progress("reindex", expected=lambda: segment_bytes(query.paths, query.has_topic)) as progress:
            run = self.options.reading.run(only=LITTLE, unreadable=report_unreadable, **progress.listeners)
            for made in answers(replace(query, run=run)):
                self._made(made)
        self._end(time.monotonic() - began)
        self.output.flush()
        if unreadable() or self.counts["refused"] or not self.counts["segments"]:
            return 2
        return int(bool(self.counts[WRONG] or self.counts[MISSING] or self.counts["cut"]))

    def _made(self, made: Reindexed) -> None:
        self.counts["segments"] += 1
        self.counts["cut"] += made.is_cut
        self.counts["refused"] += not made.is_rebuilt
        for verdict in made.verdicts:
            self.counts[verdict.status] += 1
            self.counts["written"] += verdict.written is not None
        self.sink.add(made)

    def _end(self, seconds: float) -> None:
        counts = self.counts
        is_told = self.options.query.topics or self.options.output.quiet
        if not counts["segments"] and not unreadable() and not is_told:
            print_error("no segment found")
        names = ("segments", IDENTICAL, LEGAL, WRONG, MISSING, "cut", "refused", "written")
        sums = {name: counts[name] for name in names}
        self.sink.add(ReindexSummary(**sums, unread=unreadable(), seconds=round(seconds, 3)))
        self.sink.end()
