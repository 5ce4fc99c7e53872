"""`kdump restart-plan`: predicts the next startup of a broker, or of several."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from kdump.commands.exit_status import exit_with
from kdump.commands.expected_size import segment_bytes
from kdump.commands.input_files import print_error
from kdump.commands.name_options import topic_filter, topic_option
from kdump.commands.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.commands.reading_options import ReadingOptions, reading_options
from kdump.commands.release_option import release_option
from kdump.commands.typed_options import CommandOptions, takes
from kdump.forensics.restart.plan_values import PartitionPlan
from kdump.forensics.restart.restart_cluster import restart_cluster
from kdump.format.kafka_release import KafkaRelease
from kdump.render.progress import Progress
from kdump.render.restart_report import PlanEnd, RestartReport, plan_objects

EXAMPLES = """
\b
Examples:
  kdump restart-plan clean-2
  kdump restart-plan clean-2 --topic 'led*' --all
  kdump restart-plan clean-2 --json | jq 'select(.type=="restartPlan") | .verdict'

\b
Exit status: 0 if the broker starts and loses nothing; 1 if it starts, but records are lost, hidden or moved to -stray,
a log directory goes offline, or there is a warning; 2 for a usage error, or if something could not be read; 3 if it
does not start.
"""


@dataclass(frozen=True)
class RestartPlanOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...]
    output: OutputOptions
    reading: ReadingOptions
    topics: tuple[str, ...]
    everything: bool
    kafka_version: KafkaRelease | None


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="LOGDIR…", nargs=-1, required=True)
@topic_option("Examine only these topics, so problems in others are missed")
@click.option("--all", "everything", is_flag=True, help="Also show partitions with nothing to report.")
@release_option("Predict the startup")
@output_options(
    json="Write JSON Lines: one restartPartition per partition, one restartDirectory per directory, one restartPlan "
    "per broker; of several brokers also restartReplicas and restartCluster.",
    columns=CSV_COLUMNS_HELP,
    full="Do not truncate values, and show every step.",
    quiet="Print nothing; only set the exit status.",
    zone=False,
)
@reading_options
@takes(RestartPlanOptions)
def command(options: RestartPlanOptions) -> None:
    """Predict what a broker does when it is started on these log directories: whether it starts, which logs it
    recovers, where it truncates them, what is lost, which files it rebuilds, completes or deletes, and what to copy
    first. Given all log directories of several brokers, also predict what their replicas lose once they have joined,
    and which broker to start first. Reads what the broker would read, and what it would truncate. Nothing is
    written."""
    exit_with(lambda: _run(options))


def _run(options: RestartPlanOptions) -> int:
    """Run the command and return its exit status."""
    began = time.monotonic()
    output = options.output.output(headline=False)
    sink = options.output.sink(
        output,
        lambda: RestartReport(
            output, full=options.output.full, everything=options.everything, of_topics=bool(options.topics)
        ),
        (PartitionPlan,),
        objects=plan_objects,
        report=True,
    )
    check = options.reading.check_options()
    of_topic = topic_filter(options.topics)
    with Progress("restart-plan", expected=lambda: segment_bytes(options.paths, of_topic)) as progress:

        def on_metadata(done: int, total: int) -> None:
            progress.show(f"reading the metadata, {100 * done // total}%" if done < total else "")

        plan = restart_cluster(
            options.paths,
            check,
            kafka_version=options.kafka_version,
            is_selected=of_topic,
            on_plan=sink.add,
            on_broker=lambda plan: sink.add(PlanEnd(plan, time.monotonic() - began)),
            on_replicas=sink.add,
            on_progress=progress.more,
            on_metadata=on_metadata,
        )
    if not plan.unread:
        of_topic.refuse_unmatched()
    if plan.summary is not None:
        sink.add(plan.summary)
    sink.end()
    for text in plan.unread if not sink.shows_unread else ():
        print_error(text)
    output.flush()
    return plan.status
