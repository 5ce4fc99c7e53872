"""`kdump restart-plan --estimate` and `--follow`: how long a recovery takes, and how far a running one is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import click

from kdump.check.options import Options
from kdump.command_line.input_files import print_error
from kdump.command_line.low_impact_options import RateParam
from kdump.command_line.output_options import OutputOptions
from kdump.command_line.typed_options import CommandOptions, flag, option
from kdump.io.run import Run
from kdump.log.bundle_names import bundle_of
from kdump.questions.restart_plan.recovery.progress_report import RecoveryProgressReport
from kdump.questions.restart_plan.recovery.recovery_progress import LOADED, RecoveryProgress
from kdump.questions.restart_plan.recovery.recovery_time import RecoveryLog, RecoveryQuery
from kdump.questions.restart_plan.recovery.report import RecoveryTimeReport
from kdump.questions.restart_plan.recovery.run import follow_recovery, recovery_time, recovery_works
from kdump.render.progress import Progress

INTERVAL = 5.0
"""Seconds between looks, by default."""


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
        return RecoveryQuery(self.threads, read_speed=self.read_speed)


def run_estimate(
    paths: tuple[str, ...], options: RecoveryOptions, check: Options, output_options: OutputOptions
) -> int:
    """Print the estimate, and return the exit status: 2 if something could not be read."""
    output = output_options.output(headline=False)
    sink = output_options.sink(
        output,
        lambda: RecoveryTimeReport(output, full=output_options.full),
        (RecoveryLog,),
        report=True,
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
    for text in whole.unread if not sink.shows_unread else ():
        print_error(text)
    output.flush()
    return 2 if whole.unread else 0


def run_follow(paths: tuple[str, ...], options: RecoveryOptions, output_options: OutputOptions) -> int:
    """Print how far the recovery is, again and again, and return the exit status: 1 if the broker exited before all
    logs were loaded."""
    if any(map(bundle_of, paths)):
        raise click.UsageError("--follow needs the broker's own disks, not a bundle")
    output_options = replace(output_options, pager=False)  # lines come for as long as the recovery takes
    output = output_options.output(headline=False)
    sink = output_options.sink(output, lambda: RecoveryProgressReport(output), (RecoveryProgress,), report=True)
    last = None
    for last in follow_recovery(recovery_works(paths), options.interval or INTERVAL):
        sink.add(last)
        output.flush()
    sink.end()
    output.flush()
    return int(last is not None and last.state != LOADED)
