"""Check segments, indexes and checkpoints for damage, at once or a part each night; also remote storage."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from kdump.check.finding import SEVERITIES, Finding
from kdump.check.options import CRC_FAMILIES
from kdump.check.rule import DAY
from kdump.command_line.command_run import print_error
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_of_run, metrics_option
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.params import (
    fail_on_option,
    read_once,
)
from kdump.command_line.properties_option import properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.io.run import ignore
from kdump.io.source import RECORDS
from kdump.kafka.server_properties import ServerProperties
from kdump.problems.catalogue import Declaration, findings
from kdump.query import (
    CommandOptions,
    added,
    flag,
    group,
    option,
)
from kdump.questions.verify.run import Check, ScrubOf, VerifyQuery
from kdump.render.findings_report import CheckEnd, CodeTable, FindingsReport, check_objects
from kdump.render.progress import Progress
from kdump.render.stdout import Output

if TYPE_CHECKING:
    from kdump.check.scrub.run import Scrub

EXAMPLES = """
\b
Examples:
  kdump verify /var/lib/kafka
  kdump verify --crc /var/lib/kafka/payments-0
  kdump verify --json 00000000000000000000.log | jq -r 'select(.type=="finding") | .code'
  kdump verify /var/lib/kafka --state /var/lib/kdump --budget 200GB
  kdump verify --list

\b
Exit status: 0 if no finding reaches --fail-on, 1 if one does, 2 for a usage error, or if something
could not be read and the status is not 1.
"""


@dataclass(frozen=True)
class VerifyOptions(CommandOptions):
    """The options of the command."""

    query: VerifyQuery = group(VerifyQuery)
    fail_on: str = fail_on_option(SEVERITIES)
    info: bool = flag("--info", help="Also show informational findings.")
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: findings, then one summary.",
            columns=CSV_COLUMNS_HELP,
            full="",
            quiet=QUIET_HELP,
            zone=False,
        )
    )
    listing: bool = flag("--list", help="Print the catalogue of findings.")
    state: str | None = option(
        "--state",
        metavar="DIR",
        help="Remember in DIR what was checked: read what is new, and what is due, and report all that was found.",
    )
    cadence: int | None = option(
        "--cadence", type="time", help="With --state, read each segment again within this time.  [30d]"
    )
    budget: int | None = option(
        "--budget", type="size", help="With --state, read at most this many bytes of segments in one run."
    )
    max_time: int | None = option(
        "--max-time", type="time", help="With --state, begin no further segment after this time."
    )
    metrics: str | None = metrics_option()
    server: ServerProperties | None = properties_option()
    remote: RemoteOptions = group(RemoteOptions)
    quick: bool = flag("--quick", help="With --remote: only compare names and sizes of objects; read none.")
    max_requests: int | None = option(
        "--max-requests",
        type="count",
        help="With --remote: send the store at most this many requests, and leave the rest unread.",
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("intact", 1), to_the_end=True)
@takes(VerifyOptions)
def command(options: VerifyOptions) -> None:
    """Check segments, indexes, snapshots and checkpoints for damage: files, partition directories, log directories, or
    parent directories. Reports what is damaged and where, the impact on brokers and consumers, and what to do. --remote
    also checks the objects in remote storage; --state reads what is new, and all of it within a cadence. Nothing is
    written to the disk."""
    query, output = options.query, options.output.output(headline=False)
    if options.listing:
        if query.paths:
            raise click.UsageError("--list takes no path")
        _list(options.output, output)
        return
    if not query.paths:
        raise click.UsageError("Missing argument 'PATH…'")
    if query.headers_only and {*query.only} - CRC_FAMILIES:
        raise click.UsageError("--crc checks only the families bytes and offsets; choose one of --crc and --only")
    _refuse_combinations(options)
    if options.max_requests is not None and options.remote.remote_url is None:
        raise click.UsageError("--max-requests needs --remote URL")
    read_once(query.paths)
    verify = VerifyCommand(options, output)
    exit_with(verify.run)


WITHOUT_STATE = {"cadence": "--cadence", "budget": "--budget", "max_time": "--max-time"}
NOT_WITH_STATE = {
    "headers_only": "--crc",
    "only": "--only",
    "topics": "--topic",
    "partitions": "--partition",
    "jobs": "--jobs",
    "baseline": "--baseline",
}


def _refuse_combinations(options: VerifyOptions) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.state is None:
        asked: object = options
        refused, reason = WITHOUT_STATE, "needs --state"
    else:
        asked = options.query
        refused, reason = NOT_WITH_STATE, "does not go with --state, which checks everything, in one process"
    for name, option_name in refused.items():
        if getattr(asked, name):
            raise click.UsageError(f"{option_name} {reason}")


class VerifyCommand:
    """One run of the command."""

    def __init__(self, options: VerifyOptions, output: Output) -> None:
        self.options, self.output = options, output
        self.sink = options.output.sink(
            output,
            lambda: FindingsReport(output, info=options.info or options.fail_on == "info"),
            (Finding,),
            objects=check_objects,
            report=True,
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        options, began = self.options, time.monotonic()
        remote = options.remote.storage(quick=options.quick)
        with Progress("verify") as progress:
            run = options.reading.run(
                unreadable=ignore, begin=self.sink.part, more=progress.more, expect=progress.expect, show=progress.show
            )
            check = Check(
                replace(options.query, run=run),
                server=options.server,
                remote=remote,
                max_requests=options.max_requests,
                tell=print_error,
                scrub=None if options.state is None else self._scrub(options.state),
            )
            for finding in check.findings():
                self.sink.add(finding)
        if check.scrub is not None:
            check.scrub.state.close()
            self._metrics(check.scrub)
        totals = check.totals
        self.sink.add(CheckEnd(totals, time.monotonic() - began, self._families()))
        self.sink.end()
        self.output.flush()
        for unread in totals.unread if not self.sink.shows_unread else ():
            print_error(unread)
        if RECORDS in options.query.only and totals.withheld[RECORDS]:
            print_error(
                "--only records: the records are not in the bundle (kdump bundle --records TOPIC includes them)"
            )
            return 2
        severe = SEVERITIES[: SEVERITIES.index(options.fail_on) + 1]
        if any(totals.findings[severity] for severity in severe):
            return 1
        return 2 if totals.unread else 0

    def _scrub(self, directory: str) -> ScrubOf:
        # Not at the top: only this needs sqlite3.
        from kdump.check.scrub.run import Scrub, refuse_sources
        from kdump.check.scrub.schedule import Budget
        from kdump.check.scrub.state import ScrubState

        options = self.options
        paths = tuple(options.query.paths)
        refuse_sources(paths)
        cadence = 30 * DAY if options.cadence is None else options.cadence
        budget = Budget(options.budget, None if options.max_time is None else options.max_time / 1000)
        state = ScrubState(directory, paths)
        return lambda check, totals, ignored: Scrub(state, check, cadence, budget, totals, ignored=ignored)

    def _metrics(self, scrub: Scrub) -> None:
        """Add what a scrub knows of topics and file systems to the metrics."""
        metrics = metrics_of_run()
        if metrics is None:
            return
        for topic in scrub.sizes.keys() | scrub.deleted.keys():
            metrics.add("kdump_topic_bytes", scrub.sizes[topic], topic)
            metrics.add("kdump_topic_deleted_bytes", scrub.deleted[topic], topic)
        for (topic, _), ends in scrub.ends.items():
            metrics.add("kdump_topic_last_stable_offset_lag", ends.lag, topic)
            since = None if ends.open_since is None else ends.open_since / 1000
            metrics.add("kdump_topic_oldest_open_transaction_timestamp_seconds", since, topic)
        for path, days in scrub.full_in.items():
            metrics.add("kdump_filesystem_until_full_seconds", days * DAY / 1000, path)

    def _families(self) -> str:
        query = self.options.query
        if query.headers_only and not query.only:
            return "headers, checksums and offsets"
        return ", ".join(sorted({*query.only, "bytes"})) if query.only else "everything"


def _list(options: OutputOptions, output: Output) -> None:
    sink = options.sink(output, lambda: CodeTable(output), (Declaration,), report=True)
    for code in findings().values():
        sink.add(code)
    sink.end()
    output.flush()
