"""List log directories: whose disk each is (cluster and node IDs), and what each partition has."""

from __future__ import annotations

import click

from kdump.command_line.help_page import HelpPage
from kdump.command_line.reading_options import low_impact_options
from kdump.command_line.typed_options import takes
from kdump.questions.ls.show import LsOptions, run_ls

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


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("disk", 1))
@takes(LsOptions)
@low_impact_options
def command(options: LsOptions) -> None:
    """List log directories: cluster and node IDs, whether the broker was shut down cleanly, and the contents of each
    partition. A path is a log directory, a partition directory, a segment, or a parent directory. Every batch header
    is read, but no records; run kdump verify to check those, too. Nothing is written to the disk."""
    if options.segments and options.by not in (None, "segment"):
        raise click.UsageError("choose one of --segments and --by")
    if options.rows == "segment" and options.sort == "segments":
        raise click.UsageError("--sort segments applies only to rows of partitions or topics")
    run_ls(options)
