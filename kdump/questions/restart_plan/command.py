"""Predict startups, also of an older release (downgrade): what is lost or deleted, how long recovery takes, in which
order to start."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import count

import click

from kdump.check.options import Options
from kdump.command_line.command_run import print_error
from kdump.command_line.exit_status import exit_with
from kdump.command_line.expected_size import segment_bytes
from kdump.command_line.help_page import HelpPage
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.properties_option import NodeProperties, properties_option
from kdump.command_line.reading_options import RateParam, ReadingOptions, reading_options
from kdump.command_line.typed_options import takes
from kdump.format.kafka_release import NEWEST, parse_release
from kdump.io.mounted_paths import mount_point
from kdump.io.run import Run
from kdump.kafka.server_properties import ServerProperties
from kdump.query import CommandOptions, added, flag, group, option, refuse_unmatched
from kdump.questions.restart_plan import first_checks
from kdump.questions.restart_plan.answer import CLEAN, PartitionPlan, RestartPlan
from kdump.questions.restart_plan.recovery.recovery_progress import LOADED, RecoveryProgress, follow_recovery
from kdump.questions.restart_plan.recovery.recovery_time import RecoveryQuery, RecoveryTime, estimate, recovery_time
from kdump.questions.restart_plan.recovery.recovery_work import LogWork, StartupWorks, recovery_works
from kdump.questions.restart_plan.recovery.report import RecoveryProgressReport, RecoveryTimeReport
from kdump.questions.restart_plan.replicas.restart_cluster import predict_cluster
from kdump.questions.restart_plan.report import PlanAnswer, RestartReport
from kdump.questions.restart_plan.run import RestartQuery
from kdump.render.progress import Progress

INTERVAL = 5.0
"""Seconds between looks, by default."""


EXAMPLES = """
\b
Examples:
  kdump restart-plan /var/lib/kafka
  kdump restart-plan /mnt/broker-1 /mnt/broker-2 /mnt/broker-3    # several nodes: which one first
  kdump restart-plan /var/lib/kafka --estimate                    # how long recovery takes
  kdump restart-plan /var/lib/kafka --kafka-version 3.9           # a downgrade
  kdump restart-plan /var/lib/kafka --topic 'pay*' --all
  kdump restart-plan /var/lib/kafka --json | jq 'select(.type=="restartPlan") | .verdict'

\b
Exit status: 0 if the broker starts and loses nothing; 1 if it starts, but records are lost, hidden or moved to -stray,
a log directory goes offline, or there is a warning; 2 for a usage error, if something could not be read, or if it
is unknown whether it starts; 3 if it does not.
"""


@dataclass(frozen=True)
class RecoveryOptions(CommandOptions):
    """Whether to estimate or follow a recovery, and what that depends on."""

    estimate: bool = flag(
        "--estimate",
        help="Only estimate how long recovery takes, and in which order logs are loaded; reads no segments.",
    )
    follow: bool = flag(
        "--follow", help="Show how far the recovery of the broker that is starting is, until it has ended."
    )
    interval: float | None = option(
        "--interval",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="With --follow: look again after this many seconds.  [5]",
    )
    threads: int | None = option(
        "--recovery-threads",
        type=click.IntRange(min=1, max=1000),
        metavar="N",
        help="Estimate for this num.recovery.threads.per.data.dir.  [from the metadata; else Kafka's default]",
    )
    read_speed: int | None = option(
        "--read-speed", type=RateParam(), help="Estimate for a disk that delivers this, such as 250MB/s.  [measured]"
    )

    @property
    def query(self) -> RecoveryQuery:
        return RecoveryQuery(self.threads, self.read_speed)


@dataclass(frozen=True)
class RestartPlanOptions(CommandOptions):
    """The options of the command."""

    query: RestartQuery = group(RestartQuery)
    everything: bool = flag("--all", help="Also show partitions with nothing to report.")
    server: ServerProperties | None = properties_option(found=True)
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: one restartPartition per partition, one restartDirectory per directory, a "
            "restartEvent for each event of the startup and the hour after it, one restartPlan per broker; of several "
            "brokers also restartReplicas and restartCluster.",
            columns=CSV_COLUMNS_HELP,
            full="Do not truncate values, and show every step.",
            quiet=QUIET_HELP,
            zone=False,
        )
    )
    recovery: RecoveryOptions = group(RecoveryOptions)
    reading: ReadingOptions = added(reading_options)

    def __post_init__(self) -> None:
        if self.recovery.estimate and self.recovery.follow:
            raise click.UsageError("choose one of --estimate and --follow")
        if self.query.topics and (self.recovery.estimate or self.recovery.follow):
            raise click.UsageError("--estimate and --follow are about all topics; omit --topic")
        if self.recovery.interval is not None and not self.recovery.follow:
            raise click.UsageError("--interval needs --follow")


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("intact", 2), to_the_end=True)
@takes(RestartPlanOptions)
def command(options: RestartPlanOptions) -> None:
    """Predict what a broker does when it is started on these log directories, and in the hour after it: whether it
    starts, which logs it recovers, where it truncates them, what is lost then or deleted by retention, which files it
    rebuilds, completes or deletes, and what to copy first. Given all log directories of several brokers, also predict
    what their replicas lose once they have joined, and which broker to start first. Reads what the broker would read,
    and what it would truncate. Nothing is written."""
    query, paths = options.query, tuple(options.query.paths)
    node = NodeProperties(options.server, paths)
    now = first_checks.current_time() if query.now is None else query.now
    check = options.reading.run(now, kafka_version=query.release, server=node.server)
    if options.recovery.estimate:
        exit_with(lambda: _estimate(paths, options.recovery, check, options.output))
    if options.recovery.follow:
        exit_with(lambda: _follow(paths, options.recovery, options.output))
    exit_with(lambda: _run(options, check, node))


def _run(options: RestartPlanOptions, check: Options, node: NodeProperties) -> int:
    """Run the command and return its exit status."""
    began, query = time.monotonic(), options.query
    output = options.output.output(headline=False)
    sink = options.output.sink(
        output,
        lambda: RestartReport(
            output, full=options.output.full, everything=options.everything, of_topics=bool(query.topics)
        ),
        (PartitionPlan,),
        report=True,
    )
    node.show(options.output, output, sink)
    works = StartupWorks()
    disks = node.disks
    with Progress("restart-plan", expected=lambda: segment_bytes(query.paths, query.has_topic)) as progress:

        def at(done: int, total: int | None) -> None:
            progress.show(f"reading the metadata, {100 * done // total}%" if total and done < total else "")

        def found(answer: PlanAnswer) -> None:
            if isinstance(answer, RestartPlan):
                answer.seconds = round(time.monotonic() - began, 3)
                for directory in answer.directories:
                    sink.add(directory)
                if not (query.topics or options.output.quiet or answer.verdict == CLEAN):
                    sink.add(recovery_of(answer))
                for event in answer.course.in_order:
                    sink.add(event)
            sink.add(answer)

        def recovery_of(plan: RestartPlan) -> RecoveryTime:
            paths = {directory.path for directory in plan.directories}
            _, metadata = disks.newest_metadata(*paths)
            own_works = [work for work in works.works if work.path in paths]
            release = NEWEST if plan.release is None else parse_release(plan.release.version)
            return estimate(own_works, options.recovery.query, metadata, release, check.server)

        run = replace(check, more=progress.more, at=at, found=found)
        plan = predict_cluster(replace(query, run=run, on_seen=works.on_seen, disks=disks))
    if not plan.unread:
        refuse_unmatched(query.topics)
    if plan.summary is not None:
        sink.add(plan.summary)
    sink.end()
    for problem in plan.unread if not sink.shows_unread else ():
        print_error(problem)
    output.flush()
    return plan.status


def _estimate(paths: tuple[str, ...], options: RecoveryOptions, check: Options, output_options: OutputOptions) -> int:
    """Print the estimate, and return the exit status: 2 if something could not be read."""
    output = output_options.output(headline=False)
    sink = output_options.sink(
        output, lambda: RecoveryTimeReport(output, full=output_options.full), (LogWork,), report=True
    )
    with Progress("restart-plan") as progress:
        listed = count(1)
        whole, logs = recovery_time(
            paths,
            options.query,
            kafka_version=check.kafka_version,
            server=check.server,
            run=Run(begin=lambda _: progress.show(f"partition {next(listed):,}")),
        )
    for log in logs:
        sink.add(log)
    sink.add(whole)
    sink.end()
    for problem in whole.unread if not sink.shows_unread else ():
        print_error(problem)
    output.flush()
    return 2 if whole.unread else 0


def _follow(paths: tuple[str, ...], options: RecoveryOptions, output_options: OutputOptions) -> int:
    """Print how far the recovery is, again and again, and return the exit status: 1 if the broker exited before all
    logs were loaded."""
    if any(map(mount_point, paths)):
        raise click.UsageError("--follow needs the broker's own disks, not a bundle")
    output = output_options.output(headline=False)
    sink = output_options.sink(output, lambda: RecoveryProgressReport(output), (RecoveryProgress,), report=True)
    last = None
    for last in follow_recovery(recovery_works(paths), options.interval or INTERVAL):
        sink.add(last)
        output.flush()
    sink.end()
    output.flush()
    return int(last is not None and last.state != LOADED)
