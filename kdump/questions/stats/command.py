"""Count records, and what consumers receive: by partition, hour, key, producer; sizes, compression, rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import click

from kdump.answer import Object
from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.params import read_once
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import NotRead, RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.io.errors import SourceError
from kdump.log.histograms import Histogram
from kdump.log.partition_directory import PartitionDirectory
from kdump.query import CommandOptions, added, flag, group, option
from kdump.questions.ls.run import NONE_OF_KIND, is_of_kind
from kdump.questions.stats.answer import PartitionStatistics, stats_object
from kdump.questions.stats.report import WITHHELD, CountReport, StatsPart, StatsReport
from kdump.questions.stats.row_counts import BY, PERIODS, ROWS, PeriodCounts, rows
from kdump.questions.stats.run import StatsQuery, answers, read_each
from kdump.questions.stats.totals import Stats
from kdump.render.progress import Progress
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump stats /var/lib/kafka --topic payments
  kdump stats /var/lib/kafka --topic payments --by hour
  kdump stats /var/lib/kafka --topic 'orders-*' --by key --top 3
  kdump stats /var/lib/kafka --json | jq -c 'select(.scope=="partition") | [.topic, .records, .ratio]'

\b
Exit status: 0 on success, 2 for a usage error, or if something could not be read (the rest is shown).
"""


@dataclass(frozen=True)
class StatsOptions(CommandOptions):
    """The options of the command."""

    query: StatsQuery = group(StatsQuery)
    by: str | None = option(
        "--by",
        type=click.Choice(BY),
        help="Show one row for each of these: its records and their bytes, of all topics.",
    )
    top: int = option(
        "--top", type=click.IntRange(min=0), default=10, help="Show this many of the top keys and producers.  [10]"
    )
    detail: bool = flag("--detail", help="Show each partition in full, and not only the total.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one object per partition, and a total if there are several.",
            columns=CSV_COLUMNS_HELP,
        )
    )
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("records", 1))
@takes(StatsOptions)
def command(options: StatsOptions) -> None:
    """Show statistics of partitions: records, and how many of them consumers receive; sizes, rates, how full batches
    are, compression, keys, values and headers, tombstones, timestamps, how far out of order they are, and the most
    frequent keys and producers. A path is a segment, a partition directory, a log directory, or a parent directory.
    Every record is read, in bounded memory; nothing is written."""
    read_once(options.query.paths)
    if options.by and options.detail:
        raise click.UsageError("choose one of --by and --detail")
    exit_with(StatsCommand(options, options.output.output()).run)


class StatsCommand:
    """One run of the command."""

    def __init__(self, options: StatsOptions, output: Output) -> None:
        self.options, self.query, self.output = options, options.query, output
        shown = options.output
        by, zone = options.by, shown.zone
        self.moments = partial(PeriodCounts, by, zone) if by in PERIODS else Histogram
        self.total = Stats("", partitions=0, moments=self.moments())
        if by is None:
            self.sink = shown.sink(
                output,
                lambda: StatsReport(output, zone, full=shown.full, top=options.top, detail=options.detail),
                (PartitionStatistics,),
                objects=self._objects,
                report=True,
            )
        else:
            self.sink = shown.sink(
                output, lambda: CountReport(output, by, self.total, zone, full=shown.full), (ROWS[by],), report=True
            )
        self.is_other_kind = False
        """Whether there is a partition that --internal or --no-internal excludes."""
        self.not_read = NotRead()
        self.found_none = False
        """Whether all paths could be read, and no partition was found."""

    def _objects(self, part: StatsPart) -> Iterator[Object]:
        yield stats_object(part.stats, self.options.top, is_total=part.is_total)

    def run(self) -> int:
        """Show everything that is selected, and return the exit status."""
        query = self.query
        self.options.remote.mount(tuple(query.paths))
        with Progress("stats", expected=lambda: segment_bytes(query.paths, query.has_topic)) as progress:

            def more(size: int) -> None:
                progress.more(size)
                self.sink.tick()

            check = self.options.reading.run(unreadable=report_unreadable, more=more, begin=self.not_read.note)
            query = replace(query, run=check, is_selected=self._is_selected)
            by_row = self.options.by is not None
            for made in (each[0] for each in read_each(query, check, self.moments)) if by_row else answers(query):
                self._found(made)
        self._end()
        self.output.flush()
        return 2 if unreadable() or self.found_none else 0

    def _is_selected(self, place: PartitionDirectory) -> bool:
        is_other = bool(place.segments) and not is_of_kind(place.topic or place.name, self.query.internal)
        self.is_other_kind = self.is_other_kind or is_other
        return bool(place.segments)

    def _found(self, stats: Stats) -> None:
        for reason in stats.unread:
            report_unreadable(SourceError(reason))
        if stats.unread and not stats.batches and stats.topic is None and not self.sink.is_complete:
            return  # not a log
        by = self.options.by
        if by is None:
            self.sink.add(StatsPart(stats))
        elif by != "producer" and (stats.unknown or stats.keyless):
            missing = WITHHELD.partition(":")[0]
            report_unreadable(SourceError.at(stats.source, f"{missing}, so --by {by} lacks them"))
        self.total.add(stats)

    def _end(self) -> None:
        count = self.total.partitions
        if not count:
            if self.is_other_kind and self.query.internal is not None:
                print_error(NONE_OF_KIND[self.query.internal])
            elif not unreadable() and not self.query.topics and not self.query.partitions:
                print_error("no partition with a segment found")
                self.found_none = True
        self.total.firstOffset = self.total.lastOffset = None
        if self.options.by:
            for row in rows(self.options.by, self.total, self.options.top):
                self.sink.add(row)
        elif count > 1:
            self.sink.add(StatsPart(self.total, is_total=True))
        self.sink.end()
