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
Exit status: 0 on success, 2 for a usage error, or if something could not be read (the rest is shown).
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--by",
    type=click.Choice(["partition", "topic", "segment"]),
    help="Show one row for each of these.  [partition; segment for a partition directory]",
)
@click.option("--segments", is_flag=True, help="Show one row per segment; same as --by segment.")
@topic_option("Show only these topics")
@click.option("--internal/--no-internal", default=None, help="Show only Kafka's internal topics, or only the others.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="name",
    help="Sort rows: size, segments, offsets and newest descending; name and oldest ascending.  [name]",
)
@click.option("--reverse", is_flag=True, help="Reverse the sort order.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Show at most N rows per directory.")
@click.option("--quick", is_flag=True, help="Read only the first and last batches of each segment.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines.")
@click.option("--columns", metavar="NAME,…", help="Show these columns, in this order, by their JSON names.")
@click.option("--full", is_flag=True, help="Do not truncate values.")
@click.option("--tz", "zone", type=ZoneParam(), default="UTC", help="Show times in this time zone.  [UTC]")
def command(paths: tuple[str, ...], **options: Any) -> None:
    """List log directories: cluster and node IDs, whether the broker was shut down cleanly, and the contents of each
    partition. A path is a log directory, a partition directory, a segment, or a parent directory. Every batch header
    is read, but no records; run kdump verify to check those, too. Nothing is written to the disk."""
    if options["segments"] and options["by"] not in (None, "segment"):
        raise click.UsageError("choose one of --segments and --by")
    by = "segment" if options.pop("segments") else options["by"]
    if by == "segment" and options["sort"] == "segments":
        raise click.UsageError("--sort segments applies only to rows of partitions or topics")
    if options["columns"] is not None and options["as_json"]:
        raise click.UsageError("--columns applies only to tables")
    columns = [name.strip() for name in options["columns"].split(",")] if options["columns"] is not None else None
    show_overview(paths, OverviewOptions(**{**options, "by": by, "columns": columns}))
