"""`kdump scan`: reads a fleet of disks into tables with Spark, and summarizes them."""

from __future__ import annotations

import time
from typing import Any

import click

from kdump.check.catalogue import SEVERITIES
from kdump.commands.exits import exit_with
from kdump.commands.files import complain
from kdump.commands.params import SizeParam, duration, limit_options, pair
from kdump.log.region import Limits
from kdump.render import jsonl
from kdump.render.output import Output
from kdump.render.progress import Progress

EXAMPLES = """
\b
Examples:
  kdump scan '/mnt/*/kafka-logs' --out fleet
  kdump scan s3://disks/2026-11-21 --out fleet --master spark://head:7077 --records
  kdump query fleet 'select topic, code, count(*) from findings group by topic, code'

\b
Exit status: 0 no finding, and no replicas that differ, at or above --fail-on, 1 some, 2 usage, or something could not
be read or written.
"""


FORMATS = ("parquet", "delta", "iceberg")


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--out", metavar="DIR", required=True, help="Where the tables go: a new directory, or an earlier scan's.")
@click.option("--master", metavar="URL", help="Where Spark runs: spark://…, local-cluster[2,1,1024] …  [local[*]]")
@click.option("--tables", metavar="NAME,…", help="Write these tables.  [all but records]")
@click.option("--records", is_flag=True, help="Write the records, too.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="parquet", help="Of the tables.  [parquet]")
@click.option("--broker", "brokers", metavar="PATH=NAME", multiple=True, help="Broker of a disk that does not say.")
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="error", help="Exit with 1 from here on.  [error]")
@click.option("--json", "as_json", is_flag=True, help="Print what summary.json has.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only exit.")
@click.option("--from-scratch", is_flag=True, help="Read all of it, whatever an earlier scan into DIR has kept.")
@click.option("--conf", "confs", metavar="KEY=VALUE", multiple=True, help="A setting of Spark; repeatable.")
@click.option("--split-size", type=SizeParam(), help="Bytes that a task reads together.  [64M]")
@click.option("--transaction-timeout", default="15m", metavar="TIME", help="An open transaction is old after.  [15m]")
@click.option("--max-message-bytes", type=SizeParam(), help="Warn of larger batches.  [the topic's, where it is known]")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Read a fleet: log directories, directories above, wildcards and URLs. Writes tables as Parquet, and says what
    no single disk shows: where replicas differ, which transactions are open and groups behind, who writes what. What
    has not changed since an earlier scan into the same DIR is not read again. Nothing is written to the disks."""
    from kdump.spark.session import NoSpark, require

    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")

    def run() -> int:
        require()
        return _Run(paths, options).run()

    exit_with(run, NoSpark)


class _Run:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], options: dict[str, Any]) -> None:
        from kdump.spark.scan import ALL, ScanOptions

        self.options = options
        self.output = Output()
        tables: tuple[str, ...] = ALL
        if options["tables"]:
            tables = tuple(name.strip() for name in options["tables"].split(",") if name.strip())
            options["records"] = options["records"] or "records" in tables
            unknown = sorted({*tables} - {*ALL, "records"})
            if unknown:
                raise click.UsageError(f"--tables: no table {unknown[0]!r}; there are {', '.join((*ALL, 'records'))}")
            # Always write the tables from which the summary is computed.
            tables = tuple(name for name in ALL if name in (*tables, *ALWAYS))
        more = {"split_bytes": options["split_size"]} if options["split_size"] else {}
        self.scan = ScanOptions(
            paths,
            tables,
            records=options["records"],
            brokers=dict(pair("--broker", text, last=True) for text in options["brokers"]),
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
            transaction_timeout=duration(options["transaction_timeout"], "--transaction-timeout"),
            max_message_bytes=options["max_message_bytes"],
            from_scratch=options["from_scratch"],
            **more,
        )
        self.conf = dict(pair("--conf", text) for text in options["confs"])

    def run(self) -> int:
        """Run the scan. Returns the exit status. Raises NoSpark."""
        from kdump.spark.session import reason, running
        from kdump.spark.store import Store, StoreError

        began = time.monotonic()
        try:
            with running(self.options["master"], self.conf) as spark:
                said = self._scan(spark, Store(self.options["out"]), began)
        except StoreError as error:
            complain(str(error))
            return 2
        except Exception as error:
            text = reason(error)
            if text is None:
                raise
            complain(text)
            return 2
        if self.options["as_json"] or self.options["quiet"]:
            for unread in said["unread"]:
                complain(unread)
        severe = SEVERITIES[: SEVERITIES.index(self.options["fail_on"]) + 1]
        differs = any(each["severity"] in severe for each in said["replicas"])
        if said["files"] and (differs or any(said["findings"][severity] for severity in severe)):
            return 1
        return 2 if said["unread"] else 0

    def _scan(self, spark: Any, store: Any, began: float) -> dict[str, Any]:
        from kdump.spark import delta, iceberg
        from kdump.spark.scan import scan
        from kdump.spark.store import SUMMARY
        from kdump.spark.summary import infos, summarize, told

        also = {"delta": delta, "iceberg": iceberg}.get(self.options["form"])
        if also is not None:
            also.require(store)
        with Progress("scan", self.output, always=not self.options["as_json"]) as progress:
            done = scan(spark, self.scan, store, progress.at)
        said = summarize(spark, self.scan, store, done, began)
        if also is not None:
            also.publish(store)
        store.write(SUMMARY, (jsonl.line(said) + "\n").encode("utf-8", "backslashreplace"))
        if self.options["as_json"]:
            self.output.line(jsonl.line(said))
            self.output.flush()
        elif not self.options["quiet"]:
            from kdump.render.scan_report import ScanReport

            ScanReport(self.output).write(said, told(spark, done), infos(done))
        return said


ALWAYS = ("segments", "batches", "findings")
