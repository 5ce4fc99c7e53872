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
Exit status: 0, or 2: usage, no scan there, or Spark refused the question.
"""


@click.command(epilog=EXAMPLES)
@click.argument("directory", metavar="DIR")
@click.argument("sql", metavar="SQL")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("--full", is_flag=True, help="Cut nothing short.")
@click.option("--master", metavar="URL", help="Where Spark runs.  [local[*]]")
@click.option("--conf", "confs", metavar="KEY=VALUE", multiple=True, help="A setting of Spark; repeatable.")
def command(directory: str, sql: str, **options: Any) -> None:
    """Ask the tables that kdump scan has written to DIR: segments, batches, records, findings, index_entries,
    producer_states, checkpoints and replicas, by Spark's SQL. docs/spark.md has useful questions."""
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
