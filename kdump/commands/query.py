"""`kdump query`: runs SQL on the result of a scan."""

from __future__ import annotations

import sys
from typing import Any

import click

from kdump.commands.files import complain
from kdump.commands.params import pair
from kdump.render.output import Output

EXAMPLES = """
\b
Examples:
  kdump query fleet 'select broker, topic, code, message from findings where severity = "error"'
  kdump query fleet 'show tables'
  kdump query fleet 'select * from replicas' --json | jq .explanation

\b
Exit status: 0 on success, 2 for a usage error, if DIR contains no scan, or if Spark rejects the query.
"""


@click.command(epilog=EXAMPLES)
@click.argument("directory", metavar="DIR")
@click.argument("sql", metavar="SQL")
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows.")
@click.option("--full", is_flag=True, help="Do not truncate values.")
@click.option("--master", metavar="URL", help="Run Spark on this master.  [local[*]]")
@click.option("--conf", "confs", metavar="KEY=VALUE", multiple=True, help="Set a Spark property; repeatable.")
def command(directory: str, sql: str, **options: Any) -> None:
    """Query the tables that kdump scan has written to DIR with Spark SQL: segments, batches, records, findings,
    index_entries, producer_states, checkpoints and replicas. docs/spark.md contains useful queries."""
    from kdump.spark.session import NoSpark, require

    try:
        require()
    except NoSpark as error:
        complain(str(error))
        sys.exit(2)
    from kdump.spark.query import QueryError, query
    from kdump.spark.store import StoreError

    conf = dict(pair("--conf", text) for text in options.pop("confs"))
    try:
        query(directory, sql, Output(), **options, conf=conf)
    except KeyboardInterrupt:
        sys.exit(130)
    except (NoSpark, StoreError, QueryError) as error:
        complain(str(error))
        sys.exit(2)
