"""`kdump scan`: reads a fleet of disks into tables with Spark, and summarizes them."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from kdump import jsonl
from kdump.check.finding import SEVERITIES
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.input_files import print_error
from kdump.command_line.output_options import JSON, QUIET_HELP, TABLE, OutputOptions, output_options
from kdump.command_line.params import (
    DurationParam,
    SizeParam,
    fail_on_option,
    message_size_option,
    pair,
    timeout_option,
)
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, many, option, takes
from kdump.io.run import Run
from kdump.render.progress import Progress
from kdump.spark.scan_report import FleetEnd, ScanReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """The options of the command. Sizes are in bytes, `transaction_timeout` in milliseconds."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
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
    tables: str | None = option(
        "--tables", metavar="NAME,…", help="Write these tables, and those that the summary needs.  [all but records]"
    )
    records: bool = flag("--records", help="Also write the records.")
    brokers: tuple[str, ...] = many(
        "--broker", metavar="PATH=NAME", help="Name the broker of a disk that has no meta.properties; repeatable."
    )
    fail_on: str = fail_on_option(SEVERITIES)
    output: OutputOptions = added(
        output_options(
            json="Print the contents of summary.json.",
            columns="",
            full="",
            quiet=QUIET_HELP,
            formats=(TABLE, JSON),
        )
    )
    from_scratch: bool = flag(
        "--from-scratch", help="Read everything again, and use nothing of an earlier scan into DIR."
    )
    compact: bool = flag("--compact", help="Also merge files of a table that are smaller than 64 MiB.")
    keep: int = option(
        "--keep",
        type=DurationParam(),
        default="7d",
        metavar="TIME",
        help="Keep earlier scans for kdump query --as-of for this long, up to 52w.  [7d]",
    )
    confs: tuple[str, ...] = many("--conf", metavar="KEY=VALUE", help="Set a Spark property; repeatable.")
    split_size: int | None = option(
        "--split-size", type=SizeParam(), help="Read at least this much in one task.  [64M]"
    )
    transaction_timeout: int = timeout_option()
    max_message_bytes: int | None = message_size_option()
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES)
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
        from kdump.spark.scan import ALL, ScanOptions

        self.options = options
        self.output = options.output.output(headline=False)
        self.sink = options.output.sink(
            self.output,
            lambda: ScanReport(self.output, options.output.zone),
            objects=lambda found: (found.summary,),
            report=True,
        )
        records = options.records
        tables: tuple[str, ...] = ALL
        if options.tables:
            tables = tuple(name.strip() for name in options.tables.split(",") if name.strip())
            records = records or "records" in tables
            unknown = sorted({*tables} - {*ALL, "records"})
            if unknown:
                raise click.UsageError(f"--tables: unknown table {unknown[0]!r}; use {', '.join((*ALL, 'records'))}")
            # Always write the tables from which the summary is computed.
            tables = tuple(name for name in ALL if name in (*tables, *ALWAYS))
        more: dict[str, Any] = {"split_bytes": options.split_size} if options.split_size else {}
        self.scan = ScanOptions(
            options.paths,
            tables,
            records=records,
            brokers=dict(pair("--broker", setting, last=True) for setting in options.brokers),
            limits=options.reading.limits,
            transaction_timeout=options.transaction_timeout,
            max_message_bytes=options.max_message_bytes,
            from_scratch=options.from_scratch,
            compact=options.compact,
            **more,
        )
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
        for unread in summary["unread"] if not self.sink.shows_unread else ():
            print_error(unread)
        severe = SEVERITIES[: SEVERITIES.index(self.options.fail_on) + 1]
        differs = any(difference["severity"] in severe for difference in summary["replicas"])
        if summary["files"] and (differs or any(summary["findings"][severity] for severity in severe)):
            return 1
        return 2 if summary["unread"] else 0

    def _scan(self, stack: ExitStack, store: Any, began: float) -> dict[str, Any]:
        from kdump.spark.result_views import require_readable
        from kdump.spark.scan import finish_scan, scan
        from kdump.spark.session import is_for_this_process, require_java, running
        from kdump.spark.summary import info_counts, put_summary, summarize, units_with_findings
        from kdump.spark.task_runner import LocalTasks, SparkTasks, TaskRunner

        @cache
        def start() -> SparkSession:
            spark = stack.enter_context(running(self.options.master, self.conf, self.options.paths))
            require_readable(spark, store)
            return spark

        is_here = not store.is_remote and is_for_this_process(self.options.master, self.conf, self.options.paths)
        if is_here:
            require_java()
        tasks: TaskRunner = LocalTasks() if is_here else SparkTasks(start())
        with Progress("scan") as progress:
            done = scan(tasks, self.scan, store, Run(**progress.listeners))
        summary = summarize(start, tasks, self.scan, store, done, began)
        finish_scan(store, done, self.options.keep)
        put_summary(store, (jsonl.line(summary) + "\n").encode("utf-8", "backslashreplace"), done.result_run)
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
ALWAYS = ("segments", "batches", "producers", "findings", "checkpoints", "transactions")
