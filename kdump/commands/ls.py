"""`kdump ls`: lists log directories and their partitions."""

from __future__ import annotations

import click

from kdump.commands.ls_run import LsOptions, run_ls
from kdump.commands.name_options import topic_option
from kdump.commands.output_options import output_options
from kdump.commands.properties_option import properties_option
from kdump.commands.reading_options import low_impact_options
from kdump.commands.typed_options import takes
from kdump.state.ls_rows import SORTS

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
@properties_option
@output_options()
@low_impact_options
@takes(LsOptions)
def command(options: LsOptions) -> None:
    """List log directories: cluster and node IDs, whether the broker was shut down cleanly, and the contents of each
    partition. A path is a log directory, a partition directory, a segment, or a parent directory. Every batch header
    is read, but no records; run kdump verify to check those, too. Nothing is written to the disk."""
    if options.segments and options.by not in (None, "segment"):
        raise click.UsageError("choose one of --segments and --by")
    if options.rows == "segment" and options.sort == "segments":
        raise click.UsageError("--sort segments applies only to rows of partitions or topics")
    run_ls(options)
