"""`kdump restart-plan`: predicts the next startup of a broker, or of several."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import click

from kdump.check.options import Options
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.input_files import print_error
from kdump.command_line.name_options import topic_filter, topic_option
from kdump.command_line.output_options import CSV_COLUMNS_HELP, OutputOptions, output_options
from kdump.command_line.properties_option import NodeProperties, properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.release_option import release_option
from kdump.command_line.typed_options import CommandOptions, added, argument, flag, group, takes
from kdump.format.kafka_release import NEWEST, KafkaRelease, parse_release
from kdump.kafka.server_properties import ServerProperties
from kdump.questions.restart_plan.answer import CLEAN, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.recovery.command import RecoveryOptions, run_estimate, run_follow
from kdump.questions.restart_plan.recovery.recovery_work import StartupWorks
from kdump.questions.restart_plan.recovery.run import time_of
from kdump.questions.restart_plan.replicas.replica_answer import PartitionReplicas
from kdump.questions.restart_plan.replicas.restart_cluster import restart_cluster
from kdump.questions.restart_plan.report import PlanEnd, RestartReport, plan_objects
from kdump.render.progress import Progress

EXAMPLES = """
\b
Examples:
  kdump restart-plan clean-2
  kdump restart-plan clean-2 --topic 'led*' --all
  kdump restart-plan clean-2 --json | jq 'select(.type=="restartPlan") | .verdict'
  kdump restart-plan clean-2 --estimate

\b
Exit status: 0 if the broker starts and loses nothing; 1 if it starts, but records are lost, hidden or moved to -stray,
a log directory goes offline, or there is a warning; 2 for a usage error, if something could not be read, or if it
is unknown whether it starts; 3 if it does not.
"""


@dataclass(frozen=True)
class RestartPlanOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="LOGDIR…", nargs=-1, required=True)
    topics: tuple[str, ...] = topic_option("Examine only these topics, so problems in others are missed")
    everything: bool = flag("--all", help="Also show partitions with nothing to report.")
    kafka_version: KafkaRelease | None = release_option("Predict the startup")
    server: ServerProperties | None = properties_option(found=True)
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one restartPartition per partition, one restartDirectory per directory, one "
            "restartPlan per broker; of several brokers also restartReplicas and restartCluster.",
            columns=CSV_COLUMNS_HELP,
            full="Do not truncate values, and show every step.",
            quiet="Print nothing; only set the exit status.",
            zone=False,
        )
    )
    recovery: RecoveryOptions = group(RecoveryOptions)
    reading: ReadingOptions = added(reading_options)

    def __post_init__(self) -> None:
        if self.recovery.estimate and self.recovery.follow:
            raise click.UsageError("choose one of --estimate and --follow")
        if self.topics and (self.recovery.estimate or self.recovery.follow):
            raise click.UsageError("--estimate and --follow are about all topics; omit --topic")
        if self.recovery.interval is not None and not self.recovery.follow:
            raise click.UsageError("--interval needs --follow")


@click.command(epilog=EXAMPLES)
@takes(RestartPlanOptions)
def command(options: RestartPlanOptions) -> None:
    """Predict what a broker does when it is started on these log directories: whether it starts, which logs it
    recovers, where it truncates them, what is lost, which files it rebuilds, completes or deletes, and what to copy
    first. Given all log directories of several brokers, also predict what their replicas lose once they have joined,
    and which broker to start first. Reads what the broker would read, and what it would truncate. Nothing is
    written."""
    node = NodeProperties(options.server, options.paths)
    check = options.reading.run(kafka_version=options.kafka_version, server=node.server)
    if options.recovery.estimate:
        exit_with(lambda: run_estimate(options.paths, options.recovery, check, options.output))
    if options.recovery.follow:
        exit_with(lambda: run_follow(options.paths, options.recovery, options.output))
    exit_with(lambda: _run(options, check, node))


def _run(options: RestartPlanOptions, check: Options, node: NodeProperties) -> int:
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
    node.show(options.output, output, sink)
    of_topic = topic_filter(options.topics)
    works = StartupWorks()
    disks = node.disks
    with Progress("restart-plan", expected=lambda: segment_bytes(options.paths, of_topic)) as progress:

        def at(done: int, total: int | None) -> None:
            progress.show(f"reading the metadata, {100 * done // total}%" if total and done < total else "")

        def found(answer: PartitionPlan | RestartPlan | PartitionReplicas) -> None:
            sink.add(plan_end(answer) if isinstance(answer, RestartPlan) else answer)

        def plan_end(plan: RestartPlan) -> PlanEnd:
            recovery = None
            if not (options.topics or options.output.quiet or plan.verdict == CLEAN):
                release = NEWEST if plan.release is None else parse_release(plan.release.version)
                own = {each.path for each in plan.directories}
                _, known = disks.newest_metadata(*own)
                own_works = [work for work in works.works if work.path in own]
                recovery, _ = time_of(own_works, options.recovery.query, known, release, check.server)
            return PlanEnd(plan, time.monotonic() - began, recovery)

        plan = restart_cluster(
            options.paths,
            replace(check, more=progress.more, at=at, found=found),
            kafka_version=options.kafka_version,
            is_selected=of_topic,
            on_seen=works.on_seen,
            disks=disks,
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
