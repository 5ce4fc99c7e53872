"""`kdump restart-plan`: predicts a broker's next startup."""

from __future__ import annotations

import time
from typing import Any

import click

from kdump.commands.exits import exit_with
from kdump.commands.files import complain
from kdump.commands.params import limit_options
from kdump.commands.rate import RateParam
from kdump.commands.running import reading
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.restart.plan import PartitionPlan
from kdump.forensics.restart.restart_plan import restart_plan
from kdump.forensics.restart.summary import summary
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.restart_report import RestartReport

EXAMPLES = """
\b
Examples:
  kdump restart-plan clean-2
  kdump restart-plan clean-2 --topic 'led*' --all
  kdump restart-plan clean-2 --json | jq 'select(.type=="restartPlan") | .verdict'

\b
Exit status: 0 if the broker starts and loses nothing; 1 if it starts, but records are lost, hidden or set aside, a log
directory goes offline, or there is a warning; 2 for a usage error, or if something could not be read; 3 if it does not
start.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="LOGDIR…", nargs=-1, required=True)
@topic_option("Show only these topics")
@click.option("--all", "everything", is_flag=True, help="Also show partitions that are loaded unchanged.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write JSON Lines: one restartPartition per partition, one restartDirectory per directory, one restartPlan.",
)
@click.option("--full", is_flag=True, help="Do not truncate values, and show every step.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit status.")
@click.option("--max-rate", type=RateParam(), help="Read no faster than this, such as 50MB/s.")
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Predict what a broker of Kafka 4.3 does when it is started on these log directories, which must be all of one
    broker: whether it starts, which logs it recovers, where it truncates them, what is lost, which files it rebuilds,
    completes or deletes, and what to copy first. Reads what the broker would read, and what it would truncate. Nothing
    is written."""
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    exit_with(lambda: _run(paths, options, Output()))


def _run(paths: tuple[str, ...], options: dict[str, Any], output: Output) -> int:
    """Run the command and return its exit status."""
    began = time.monotonic()
    check = reading(options)

    def told(plan: PartitionPlan) -> None:
        if options["as_json"]:
            output.line(answer_line(plan))

    of_topic = matcher(options["topics"])
    with Progress("restart-plan", output, always=not options["as_json"]) as progress:
        plan = restart_plan(paths, check, wanted=of_topic, found=told, met=progress.more)
    if not plan.unread:
        of_topic.refuse_unmatched()
    if options["as_json"]:
        for directory in plan.directories:
            output.line(answer_line(directory))
        output.line(answer_line(summary(plan, time.monotonic() - began)))
    elif not options["quiet"]:
        of_topics = bool(options["topics"])
        report = RestartReport(output, full=options["full"], everything=options["everything"], of_topics=of_topics)
        report.write(plan)
    elif plan.unread:
        for text in plan.unread:
            complain(text)
    output.flush()
    return plan.status
