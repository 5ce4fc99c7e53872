"""`kdump stats`: statistics of partitions."""

from __future__ import annotations

from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain, output_for, refuse
from kdump.commands.overview import NONE_OF_KIND, OverviewOptions, is_of_kind, wanted
from kdump.commands.params import ZoneParam, limit_options, read_once
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.commands.topics import topic_option
from kdump.forensics.read_stats import stats
from kdump.forensics.stats import Stats
from kdump.log.disk import PartitionDirectory
from kdump.log.errors import SourceError
from kdump.render import jsonl
from kdump.render.escape import path_text, printable
from kdump.render.objects import put_bytes
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.stats_objects import stats_object
from kdump.render.stats_report import StatsReport, name_of
from kdump.state.partition_log import partition_summary

EXAMPLES = """
\b
Examples:
  kdump stats clean-1/orders-zstd-0
  kdump stats clean-1 --topic 'orders-*' --top 3
  kdump stats clean-1 --json | jq -c 'select(.scope=="partition") | [.topic, .records, .ratio]'

\b
Exit status: 0 on success, 2 for a usage error, or if something could not be read (the rest is shown).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@topic_option("Read only partitions of these topics")
@click.option("--internal/--no-internal", default=None, help="Show only Kafka's internal topics, or only the others.")
@click.option(
    "--top", type=click.IntRange(min=0), default=10, help="Show this many of the top keys and producers.  [10]"
)
@click.option("--detail", is_flag=True, help="Show each partition in full, and not only the total.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write JSON Lines: one object per partition, and a total if there are several.",
)
@click.option("--full", is_flag=True, help="Do not truncate values.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Show times in this time zone.  [UTC]")
@click.option("--max-rate", type=RateParam(), help="Read no faster than this, such as 50MB/s.")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show statistics of partitions: sizes, rates, batch fill, compression, keys and values, tombstones, times and
    lateness, and the most frequent keys and producers. A path is a segment, a partition directory, a log directory, or
    a parent directory. Every record is read, in bounded memory; nothing is written."""
    read_once(paths)
    exit_with(_Run(paths, options, output_for(options)).run)


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any], output: Output) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.failed = False
        self.total = Stats("", partitions=0)
        self.first: Stats | None = None
        self.report = StatsReport(output, options["zone"], full=options["full"], top=options["top"])
        self.table = self.report.row_table()
        chosen = wanted(OverviewOptions(topics=options["topics"], internal=options["internal"]))
        self.chosen = chosen
        self.is_other_kind = False
        """Whether there is a partition that --internal or --no-internal excludes."""

    def run(self) -> int:
        """Show everything that is selected, and return the exit status."""
        check = reading(self.options)
        with Progress("stats", self.output, always=not self.options["as_json"]) as progress:

            def met(size: int) -> None:
                progress.more(size)
                self.table.tick()

            for found in stats(self.paths, check, wanted=self._is_wanted, refused=self._refused, met=met):
                self._found(found)
        self._end()
        self.output.flush()
        return 2 if self.failed else 0

    def _is_wanted(self, place: PartitionDirectory) -> bool:
        if not place.segments:
            return False
        facts = partition_summary(place)
        self.is_other_kind = self.is_other_kind or not is_of_kind(facts, self.options["internal"])
        return self.chosen(facts)

    def _refused(self, error: SourceError) -> None:
        self.failed |= refuse(error)

    def _found(self, found: Stats) -> None:
        for text in found.unread:
            self._refused(SourceError(text))
        if found.unread and not found.batches and found.topic is None and not self.options["as_json"]:
            return  # not a log
        self.total.partitions += 1
        if self.options["as_json"]:
            self._json(found)
        elif self.options["detail"]:
            self.report.write(found, self._title(found))
        elif self.first is None:
            self.first = found
        else:
            if self.total.partitions == 2:
                self.table.add(self.first, "bad" if self.first.damaged else "")
            self.table.add(found, "bad" if found.damaged else "")
        self.total.add(found)

    def _json(self, found: Stats, is_total: bool = False) -> None:
        value = stats_object(found, self.options["top"], put_bytes, is_total=is_total)
        self.output.line(jsonl.line(value))

    def _title(self, found: Stats) -> str:
        source = printable(path_text(found.source))
        return source if name_of(found) == source else f"{name_of(found)}  ({source})"

    def _end(self) -> None:
        count = self.total.partitions
        if not count:
            if self.is_other_kind:
                complain(NONE_OF_KIND[self.options["internal"]])
            elif not self.failed and not self.options["topics"]:
                complain("no partition with a segment found")
                self.failed = True
            return
        self.total.firstOffset = self.total.lastOffset = None
        if self.options["as_json"]:
            if count > 1:
                self._json(self.total, is_total=True)
            return
        if count == 1:
            if self.first is not None:
                self.report.write(self.first, self._title(self.first))
            return
        self.table.flush()
        if not self.options["detail"]:
            self.output.line("")
        self.report.write(self.total, f"all {count:,} partitions")
