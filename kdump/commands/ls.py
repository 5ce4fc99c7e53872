"""`kdump ls`: lists log directories and their partitions."""

from __future__ import annotations

from typing import Any

import click

from kdump.commands.overview import OverviewOptions, show_overview
from kdump.commands.params import ZoneParam
from kdump.commands.topics import topic_option
from kdump.state.overview import SORTS

EXAMPLES = """
\b
Examples:
  kdump ls /var/lib/kafka
  kdump ls /var/lib/kafka --sort size -n 20
  kdump ls /var/lib/kafka --by topic --no-internal --quick
  kdump ls /var/lib/kafka/payments-0

\b
Exit status: 0, or 2: usage, or something could not be read (the rest was).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--by",
    type=click.Choice(["partition", "topic", "segment"]),
    help="What a row is.  [partition; of a partition: segment]",
)
@click.option("--segments", is_flag=True, help="A row a segment; short for --by segment.")
@topic_option("Show only these topics")
@click.option("--internal/--no-internal", default=None, help="Only Kafka's own topics, or only the others.")
@click.option("--sort", type=click.Choice(SORTS), default="name", help="Largest, oldest or newest first.  [name]")
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most so many rows of each directory.")
@click.option("--quick", is_flag=True, help="Read only the first and last batches of each segment.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines.")
@click.option("--columns", metavar="NAME,…", help="Columns of the table, in order, by their JSON names.")
@click.option("--full", is_flag=True, help="Cut nothing short.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Time zone of tables.  [UTC]")
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show log directories at a glance: whose they are, how their broker ended, and what each partition holds. A path
    is a log directory, the directory of a partition, segments, or a directory above. Every batch header is read, but
    no record: whether what is behind the headers is sound, kdump verify tells. Nothing is written to the disk."""
    if options["segments"] and options["by"] not in (None, "segment"):
        raise click.UsageError("choose one of --segments and --by")
    by = "segment" if options.pop("segments") else options["by"]
    if by == "segment" and options["sort"] == "segments":
        raise click.UsageError("--sort segments is for rows of partitions or topics")
    if options["columns"] is not None and options["as_json"]:
        raise click.UsageError("--columns is for tables")
    columns = [name.strip() for name in options["columns"].split(",")] if options["columns"] is not None else None
    show_overview(paths, OverviewOptions(**{**options, "by": by, "columns": columns}))
