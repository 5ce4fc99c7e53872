"""Query the tables of a scan with SQL."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial

import click

from kdump.command_line.command_run import print_error
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV, JSON, TABLE, OutputOptions, output_options
from kdump.command_line.params import pair
from kdump.command_line.typed_options import takes
from kdump.format.parse_time import parse_time
from kdump.query import CommandOptions, added, argument, many, option
from kdump.render.progress import Progress
from kdump.render.stdout import Output

EXAMPLES = """
\b
Examples:
  kdump query fleet 'select broker, topic, code, message from findings where severity = "error"'
  kdump query fleet 'show tables'
  kdump query fleet 'select * from replica_differences' --json | jq .explanation
  kdump query fleet 'select * from findings except select * from earlier_findings' --since -1d

\b
Exit status: 0 on success, 2 for a usage error, if DIR contains no scan, or if Spark rejects the query.
"""


@dataclass(frozen=True)
class QueryOptions(CommandOptions):
    """The options of the command."""

    directory: str = argument(metavar="DIR")
    sql: str = argument(metavar="SQL")
    output: OutputOptions = added(output_options(columns=""))
    limit: int | None = option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows.")
    as_of: str | None = option(
        "--as-of", metavar="SCAN|TIME", help="Query what that scan has found: its number, or when it was the last."
    )
    since: str | None = option(
        "--since", metavar="SCAN|TIME", help="Also query the tables of that scan, as earlier_findings and so on."
    )
    master: str | None = option("--master", metavar="URL", help="Run Spark on this master.  [local[*]]")
    confs: tuple[str, ...] = many("--conf", metavar="KEY=VALUE", help="Set a Spark property; repeatable.")


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("fleet", 2), mounts=False)
@takes(QueryOptions)
def command(options: QueryOptions) -> None:
    """Query the tables that kdump scan has written to DIR with Spark SQL: segments, batches, records, findings,
    index_entries, producer_states, checkpoints and replicas. docs/spark.md contains useful queries."""
    from kdump.spark.store import Store, StoreError

    zone = options.output.zone
    as_of, since = _scan("--as-of", options.as_of, zone), _scan("--since", options.since, zone)
    try:
        Store(options.directory).require_result()  # before the imports of all else, which take a second
    except StoreError as error:
        print_error(str(error))
        sys.exit(2)
    from kdump.spark.session import NoSpark, require

    try:
        require()
    except NoSpark as error:
        print_error(str(error))
        sys.exit(2)
    from kdump.spark.query import QueryError, QueryResult, query, write_csv, write_json, write_table

    conf = dict(pair("--conf", setting) for setting in options.confs)
    output = options.output.output(headline=False)
    in_table = partial(write_table, full=options.output.full, zone=zone)
    writers: dict[str, Callable[[QueryResult, Output], None]] = {JSON: write_json, CSV: write_csv, TABLE: in_table}
    write = writers[options.output.format]
    try:
        with Progress("query"):
            query(
                options.directory,
                options.sql,
                lambda result: write(result, output),
                limit=options.limit,
                master=options.master,
                conf=conf,
                as_of=as_of,
                since=since,
            )
        output.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except (NoSpark, StoreError, QueryError) as error:
        print_error(str(error))
        sys.exit(2)


def _scan(name: str, value: str | None, zone: tzinfo) -> int | None:
    """Parse the value of an option: the number of a scan, or a time in epoch ms. Raises click.UsageError."""
    if value is None or re.fullmatch(r"[0-9]{1,12}", value):
        return None if value is None else int(value)
    try:
        return parse_time(value, zone, end=True, now=round(time.time() * 1000))
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"{name}: not the number of a scan, and {error}") from None
