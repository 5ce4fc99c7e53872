"""Read a fleet of disks into tables with Spark, and report where replicas differ."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kdump.answer import of_fact
from kdump.check.finding import INFO, SEVERITIES, Finding
from kdump.check.totals import CheckTotals, MissingTotals
from kdump.command_line.command_run import print_error
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import JSON, QUIET_HELP, TABLE, OutputOptions, output_options
from kdump.command_line.params import DurationParam, fail_on_option, pair
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.query import CommandOptions, FindingOptions, added, group, many, option
from kdump.render.escape import printable
from kdump.render.findings_report import FindingsReport
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import known_columns, named
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.times import iso
from kdump.spark.scan_answer import FleetSummary, ScanQuery
from kdump.text import shell_word

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_REPLICAS = 50
"""Maximum number of ranges of offsets to print at which replicas differ."""
LOST = {"diverged": "lost when a follower truncates them", "missing": "missing in a replica"}
SHOWN = 5
"""Maximum rows of the lists that describe the fleet; summary.json has more."""


class FleetEnd(NamedTuple):
    """The summary of a scan. `units` returns the units with findings that are printed, and these; `counts` returns the
    codes of findings that are only counted."""

    summary: FleetSummary
    units: Callable[[], Iterable[tuple[str, list[Finding]]]]
    counts: Callable[[], Counter[str]]


@dataclass
class FleetMissing(MissingTotals):
    """What is missing in a fleet. `differing`: number of ranges of offsets at which replicas differ without a
    legitimate reason; `truncated`: of records there that a follower truncates, or a replica lacks."""

    differing: int = 0
    truncated: int = 0

    def __bool__(self) -> bool:
        return super().__bool__() or self.differing > 0

    @property
    def text(self) -> str:
        parts = [super().text] if super().__bool__() else []
        ranges = count_text(self.differing, "range of offsets", "ranges of offsets")
        lost = f" ({count_text(self.truncated, 'record')} that a replica truncates or lacks)" if self.truncated else ""
        return ", ".join([*parts, *([f"REPLICAS DIFFER at {ranges}{lost}"] if self.differing else [])])


class ScanReport(Sink[FleetEnd]):
    """Writes the report of one summary, with times in `zone`."""

    shows_unread = True

    def __init__(self, output: Output, zone: tzinfo) -> None:
        self.output, self.zone = output, zone

    def add(self, answer: FleetEnd) -> None:
        self.write(answer.summary, answer.units(), answer.counts())

    def write(self, summary: FleetSummary, units: Iterable[tuple[str, list[Finding]]], counts: Counter[str]) -> None:
        """Write the report. `units`: each with those of its findings that are printed; `counts`: codes of findings that
        are only counted."""
        report = FindingsReport(self.output, info=False)
        differing = [difference for difference in summary.replicas if difference.severity != INFO]
        missing = FleetMissing(
            differing=len(differing), truncated=sum(difference.lost or 0 for difference in differing)
        )
        for name, findings in units:
            report.part(name)
            for finding in findings:
                report.add(finding)
                missing.add(finding)
        totals = of_fact(
            CheckTotals,
            summary,
            findings=Counter(summary.findings),
            damaged_batches=summary.damagedBatches,
            damaged_records=summary.damagedRecords,
            missing=missing,
            withheld=Counter(summary.notInBundle or {}),
        )
        report.write(totals, summary.seconds, "everything", summary.units.read + summary.units.kept, counts)
        self._copies(summary)
        self._replicas(summary)
        self._table("open transactions", summary.openTransactions, None)
        self._table("groups with lag", [group for group in summary.groups if group.lag])
        self._table("topics", summary.topics)
        self._table("producers", summary.producers)
        self._table("formats and codecs", summary.formats)
        self._table("smallest batches", summary.fill)
        self._table("older than retention.ms", summary.retention)
        self._table("not compacted yet", summary.compaction)
        counted = summary.units
        kept = f", {counted.kept:,} unchanged" if counted.kept else ""
        on = f" ({counted.continued:,} only from a later segment on)" if counted.continued else ""
        gone = f", {counted.gone:,} gone" if counted.gone else ""
        self.output.text("")
        self.output.text(f"{counted.read:,} partitions and files read{on}{kept}{gone}")
        query = f"kdump query {shell_word(summary.out)} 'select * from findings'"
        self.output.text(f"tables in {summary.out}; query them: {query}")
        self.output.flush()

    def _copies(self, summary: FleetSummary) -> None:
        for copy in summary.copies:
            self.output.text(f"{printable(copy.source)}: a copy of {printable(copy.copyOf)}, not counted", style="dim")

    def _replicas(self, summary: FleetSummary) -> None:
        if not summary.replicas:
            return
        more = summary.replicaDifferences - MAX_REPLICAS
        self.output.title("replicas that differ" + (f" (the first {MAX_REPLICAS}; {more:,} more)" if more > 0 else ""))
        for row in summary.replicas[:MAX_REPLICAS]:
            place = f"{row.topic}-{row.partition}"
            offsets = f"offsets {row.firstOffset} to {row.lastOffset}"
            head = f"  {row.severity} {place}: {row.kind} at {offsets}"
            self.output.text(printable(head), style="bad" if row.severity == "error" else "torn")
            replicas = zip(row.sources, row.brokers, row.records, row.lastOffsets)
            for source, broker, records, last in replicas:
                owner = "" if broker is None else f"broker {broker}, "
                here = count_text(records, "record")
                self.output.text(f"    {owner}{printable(source)}: {here} there; its log is up to offset {last}")
            if row.lost:
                self.output.text(f"    {count_text(row.lost, 'record')} are {LOST[row.kind]}")
            self.output.text(f"    {printable(row.explanation)}", style="dim")

    def _table(self, title: str, rows: Sequence[Any], most: int | None = SHOWN) -> None:
        """Write the first rows, at most `most`."""
        if not rows:
            return
        more = f" (the first {most} of {len(rows)})" if most is not None and len(rows) > most else ""
        self.output.title(title + more)
        times = {name: self._time(name) for name in ("timestamp", "first", "last")}
        table = Table(named(None, *known_columns(type(rows[0]), self.zone, times)), self.output)
        for row in rows[:most]:
            table.add(row)
        table.flush()

    def _time(self, name: str) -> Callable[[Any], str]:
        return lambda row: iso(getattr(row, name), self.zone)


EXAMPLES = """
\b
Examples:
  kdump scan '/mnt/*/kafka-logs' --out fleet
  kdump scan s3://disks/2026-11-21 --out fleet --master spark://head:7077 --records
  kdump query fleet 'select topic, code, count(*) from findings group by topic, code'

\b
Exit status: 0 if no finding and no difference between replicas reaches --fail-on, 1 if one does, 2 for a usage error,
or if something could not be read or written.
"""


@dataclass(frozen=True)
class ScanCommandOptions(CommandOptions):
    """The options of the command. Sizes are in bytes."""

    out: str = option(
        "--out",
        metavar="DIR",
        required=True,
        help="Write the tables to this directory: a new one, or that of an earlier scan.",
    )
    master: str | None = option(
        "--master",
        metavar="URL",
        help="Run Spark on this master: spark://…, local-cluster[2,1,1024], sc://… …  [local[*]]",
    )
    query: ScanQuery = group(ScanQuery)
    fail_on: str = fail_on_option(SEVERITIES)
    output: OutputOptions = added(
        output_options(
            json="Print the contents of summary.json.", columns="", full="", quiet=QUIET_HELP, formats=(TABLE, JSON)
        )
    )
    keep: int = option(
        "--keep",
        type=DurationParam(),
        default="7d",
        metavar="TIME",
        help="Keep earlier scans for kdump query --as-of for this long, up to 52w.  [7d]",
    )
    confs: tuple[str, ...] = many("--conf", metavar="KEY=VALUE", help="Set a Spark property; repeatable.")
    findings: FindingOptions = group(FindingOptions)
    remote: RemoteOptions = group(RemoteOptions)
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("fleet", 1), to_the_end=True)
@takes(ScanCommandOptions)
def command(options: ScanCommandOptions) -> None:
    """Read the disks of a fleet: log directories, parent directories, wildcards and URLs. Writes Delta tables, and
    reports what no single disk shows: where replicas differ, which transactions are open, which groups lag, who writes
    what. Files that have not changed since an earlier scan into the same DIR are not read again. Nothing is written to
    the disks."""
    from kdump.spark.session import NoSpark, require

    def run() -> int:
        require()
        return ScanCommand(options).run()

    exit_with(run, NoSpark)


class ScanCommand:
    """One run of the command."""

    def __init__(self, options: ScanCommandOptions) -> None:
        self.options = options
        self.output = options.output.output(headline=False)
        self.sink = options.output.sink(
            self.output,
            lambda: ScanReport(self.output, options.output.zone),
            objects=lambda found: (found.summary,),
            report=True,
        )
        self.query = replace(options.query, remote=options.remote.storage())
        if options.keep > MAX_KEEP:
            raise click.UsageError("--keep: at most 52w")
        self.conf = dict(pair("--conf", setting) for setting in options.confs)

    def run(self) -> int:
        """Run the scan. Returns the exit status. Raises NoSpark."""
        from kdump.spark.session import reason
        from kdump.spark.store import Store, StoreError

        began = time.monotonic()
        store = Store(self.options.out)
        try:
            with ExitStack() as stack, closing(store):
                summary = self._scan(stack, store, began)
        except StoreError as error:
            print_error(str(error))
            return 2
        except Exception as error:
            message = reason(error)
            if message is None:
                raise
            print_error(message)
            return 2
        for unread in summary.unread if not self.sink.shows_unread else ():
            print_error(unread)
        severe = SEVERITIES[: SEVERITIES.index(self.options.fail_on) + 1]
        differs = any(difference.severity in severe for difference in summary.replicas)
        if summary.files and (differs or any(summary.findings[severity] for severity in severe)):
            return 1
        return 2 if summary.unread else 0

    def _scan(self, stack: ExitStack, store: Any, began: float) -> FleetSummary:
        from kdump.spark.delta_tables import finished_scans
        from kdump.spark.result_views import require_readable
        from kdump.spark.scan import finish_scan, scan
        from kdump.spark.scan_plan import has_chunks
        from kdump.spark.session import SMALL_DISKS, are_small, is_embedded, require_java, running
        from kdump.spark.summary import info_counts, put_summary, summarize, units_with_findings
        from kdump.spark.task_runner import LateTasks, LocalTasks, SparkTasks, TaskRunner

        query = self.query

        @cache
        def start() -> SparkSession:
            spark = stack.enter_context(running(self.options.master, self.conf, query.paths, SMALL_DISKS))
            require_readable(spark, store)
            return spark

        read = [*query.paths, *([query.remote.url] if query.remote else ())]
        is_local = not store.is_remote and is_embedded(self.options.master, self.conf)
        tasks: TaskRunner
        if is_local and are_small(read):
            require_java()
            tasks = LocalTasks()
        elif is_local and not query.from_scratch and finished_scans(store):
            tasks = LateTasks(lambda: SparkTasks(start()), has_chunks)
        else:
            tasks = SparkTasks(start())
        with Progress("scan") as progress:
            run = self.options.reading.run(**vars(self.options.findings), **progress.listeners)
            query = replace(query, run=run)
            done = scan(tasks, query, store)
        summary = summarize(start, tasks, query, store, done, began)
        finish_scan(store, done, self.options.keep)
        put_summary(store, summary, done.result_run)
        self.sink.add(
            FleetEnd(
                summary,
                lambda: units_with_findings(tasks, store, done, summary),
                lambda: info_counts(tasks, store, done, summary),
            )
        )
        self.sink.end()
        self.output.flush()
        return summary


MAX_KEEP = 52 * 7 * 24 * 3600 * 1000
