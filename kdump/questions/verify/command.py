"""Check segments, indexes and checkpoints for damage, at once or a part each night; also remote storage."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from kdump.check.engine.units import CheckUnit, units_of
from kdump.check.engine.workers import run_all, usual_jobs_for
from kdump.check.finding import SEVERITIES, Finding
from kdump.check.options import CRC_FAMILIES
from kdump.check.rule import DAY
from kdump.check.totals import CheckTotals, Coverage
from kdump.command_line.command_run import print_error
from kdump.command_line.completion import listed
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_of_run, metrics_option
from kdump.command_line.name_options import PartitionFilter, partition_option, topic_filter
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.params import (
    DurationParam,
    SizeParam,
    fail_on_option,
    jobs_option,
    message_size_option,
    read_once,
)
from kdump.command_line.properties_option import properties_option
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.kafka_release import KafkaRelease
from kdump.io.errors import SourceError
from kdump.io.low_impact_reads import limit_requests
from kdump.io.source import RECORDS
from kdump.kafka.server_properties import ServerProperties
from kdump.problems.catalogue import Declaration, family_names, findings
from kdump.query import (
    CommandOptions,
    added,
    argument,
    flag,
    group,
    option,
    release_option,
    timeout_option,
    topic_option,
)
from kdump.render.findings_report import CheckEnd, CodeTable, FindingsReport, check_objects
from kdump.render.progress import Progress
from kdump.render.stdout import Output

if TYPE_CHECKING:
    from kdump.check.engine.remote_check import RemoteCheck
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


def _names(
    all_names: Callable[[], Iterable[str]], noun: str
) -> Callable[[click.Context, click.Parameter, str | None], frozenset[str]]:
    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> frozenset[str]:
        if value is None:
            return frozenset()
        names = frozenset(name.strip() for name in value.split(",") if name.strip())
        known = [*all_names()]
        unknown = sorted(names - set(known))
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is not a {noun}; use {', '.join(known)}")
        if not names:
            raise click.BadParameter(f"{value!r} contains no {noun}; use {', '.join(known)}")
        return names

    return parse


@dataclass(frozen=True)
class VerifyOptions(CommandOptions):
    """The options of the command. `transaction_timeout` is in milliseconds."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1)
    headers_only: bool = flag("--crc", help="Check only headers, checksums and offsets; nothing is decompressed.")
    only: frozenset[str] = option(
        "--only",
        metavar="FAMILY,…",
        callback=_names(family_names, "family"),
        shell_complete=listed(lambda: [(name, "") for name in family_names()]),
        help="Check only these families of findings.",
    )
    ignore: frozenset[str] = option(
        "--ignore",
        metavar="CODE,…",
        callback=_names(findings, "code"),
        shell_complete=listed(lambda: [(code.code, code.meaning) for code in findings().values()]),
        help="Omit findings with these codes.",
    )
    topics: tuple[str, ...] = topic_option("Check only partitions of these topics")
    partitions: tuple[int, ...] = partition_option("Check only partitions")
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
    jobs: int | None = jobs_option("Check")
    baseline: str | None = option(
        "--baseline", metavar="FILE", help="Omit the findings in FILE, the output of an earlier --json run."
    )
    state: str | None = option(
        "--state",
        metavar="DIR",
        help="Remember in DIR what was checked: read what is new, and what is due, and report all that was found.",
    )
    cadence: int | None = option(
        "--cadence", type=DurationParam(), help="With --state, read each segment again within this time.  [30d]"
    )
    budget: int | None = option(
        "--budget", type=SizeParam(), help="With --state, read at most this many bytes of segments in one run."
    )
    max_time: int | None = option(
        "--max-time", type=DurationParam(), help="With --state, begin no further segment after this time."
    )
    metrics: str | None = metrics_option()
    transaction_timeout: int = timeout_option()
    max_message_bytes: int | None = message_size_option()
    kafka_version: KafkaRelease | None = release_option("Judge by the rules")
    server: ServerProperties | None = properties_option()
    remote: RemoteOptions = group(RemoteOptions)
    quick: bool = flag("--quick", help="With --remote: only compare names and sizes of objects; read none.")
    max_requests: int | None = option(
        "--max-requests",
        type=click.IntRange(min=1),
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
    output = options.output.output(headline=False)
    if options.listing:
        if options.paths:
            raise click.UsageError("--list takes no path")
        _list(options.output, output)
        return
    if not options.paths:
        raise click.UsageError("Missing argument 'PATH…'")
    if options.headers_only and options.only - CRC_FAMILIES:
        raise click.UsageError("--crc checks only the families bytes and offsets; choose one of --crc and --only")
    _refuse_combinations(options)
    if options.max_requests is not None and options.remote.remote_url is None:
        raise click.UsageError("--max-requests needs --remote URL")
    read_once(options.paths)
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
        refused, reason = WITHOUT_STATE, "needs --state"
    else:
        refused, reason = NOT_WITH_STATE, "does not go with --state, which checks everything, in one process"
    for name, option_name in refused.items():
        if getattr(options, name):
            raise click.UsageError(f"{option_name} {reason}")


class VerifyCommand:
    """One run of the command."""

    def __init__(self, options: VerifyOptions, output: Output) -> None:
        self.options, self.output = options, output
        self.baseline: set[FindingKey] = set()
        self.totals = CheckTotals()
        self.scrub: Scrub | None = None
        self.of_topic = topic_filter(options.topics)
        self.of_partition = PartitionFilter(options.partitions)
        self.sink = options.output.sink(
            output,
            lambda: FindingsReport(output, info=options.info or options.fail_on == "info"),
            (Finding,),
            objects=check_objects,
            report=True,
        )
        self.check = options.reading.run(
            only=options.only,
            ignore=options.ignore if options.state is None else frozenset(),
            headers_only=options.headers_only,
            transaction_timeout=options.transaction_timeout,
            max_message_bytes=options.max_message_bytes,
            kafka_version=options.kafka_version,
            server=options.server,
            remote=options.remote.storage(quick=options.quick),
            unreadable=self.totals.add_unreadable,
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        options = self.options
        if options.baseline:
            self.baseline = read_baseline(options.baseline)
        began = time.monotonic()
        if options.state is not None:
            self.scrub = self._scrub(options.state)
        with Progress("verify") as progress:
            check = replace(self.check, more=progress.more)
            disks = check.disks_at(options.paths)
            work = [unit for unit in units_of(disks, check) if self._is_selected(unit)]
            for unit in work if self.of_topic.is_unmatched else ():
                for topic in unit.missing_topics():  # which has no other unit here
                    self.of_topic(topic)
            if not self.totals.unread:
                self.of_topic.refuse_unmatched()
                self.of_partition.refuse_unmatched()
            limit_requests(options.max_requests)
            remote = None
            if check.remote is not None:
                from kdump.check.engine.remote_check import remote_check

                remote = remote_check(disks, replace(check, show=progress.show), work, self.totals)
            remote_size = 0 if remote is None else remote.size
            if remote is not None and remote.estimate:
                print_error(remote.estimate)
            progress.total = sum(unit.size for unit in work) + remote_size if self.scrub is None else None
            if self.scrub is None:
                results = run_all(work, options.jobs or usual_jobs_for(work), self.totals)
            else:
                results = self.scrub.run(work)
            for unit, findings in results:
                self._unit(unit, findings)
            if remote is not None:
                self._in_remote_storage(remote)
                remote.end(self.totals)
        if self.scrub is not None:
            self.scrub.state.close()
            self._metrics(self.scrub)
        self.sink.add(CheckEnd(self.totals, time.monotonic() - began, self._families()))
        self.sink.end()
        self.output.flush()
        for unread in self.totals.unread if not self.sink.shows_unread else ():
            print_error(unread)
        if RECORDS in self.options.only and self.totals.withheld[RECORDS]:
            print_error(
                "--only records: the records are not in the bundle (kdump bundle --records TOPIC includes them)"
            )
            return 2
        severe = SEVERITIES[: SEVERITIES.index(options.fail_on) + 1]
        if any(self.totals.findings[severity] for severity in severe):
            return 1
        return 2 if self.totals.unread else 0

    def _scrub(self, directory: str) -> Scrub:
        # Not at the top: only this needs sqlite3.
        from kdump.check.scrub.run import Scrub, refuse_sources
        from kdump.check.scrub.schedule import Budget
        from kdump.check.scrub.state import ScrubState

        options = self.options
        refuse_sources(options.paths)
        cadence = 30 * DAY if options.cadence is None else options.cadence
        budget = Budget(options.budget, None if options.max_time is None else options.max_time / 1000)
        state = ScrubState(directory, options.paths)
        self.totals.coverage = Coverage()
        return Scrub(
            state, self.check, cadence, budget, self.totals, coverage=self.totals.coverage, ignored=options.ignore
        )

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

    def _is_selected(self, unit: CheckUnit) -> bool:
        return (unit.topic is None or self.of_topic(unit.topic)) and self.of_partition(unit.number)

    def _in_remote_storage(self, remote: RemoteCheck) -> None:
        for place, topic in remote.places():
            if self.of_topic(topic) and self.of_partition(place[1]):
                self.totals.partitions += 1
                self.sink.part(f"{topic}-{place[1]} in {remote.listing.url}")
                self._findings(remote.findings(place, topic, self.totals))

    def _unit(self, unit: CheckUnit, findings: Iterator[Finding]) -> None:
        self.sink.part(unit.name)
        self._findings(
            finding
            for finding in findings
            if not (unit.directory is not None and self.options.topics and not self.of_topic(finding.topic or ""))
        )

    def _findings(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if self.baseline and _key(finding) in self.baseline:
                self.totals.known += 1
                continue
            self._finding(finding)

    def _finding(self, finding: Finding) -> None:
        self.totals.findings[finding.severity] += 1
        self.totals.missing.add(finding)
        self.sink.add(finding)

    def _families(self) -> str:
        if self.options.headers_only and not self.options.only:
            return "headers, checksums and offsets"
        return ", ".join(sorted(self.options.only | {"bytes"})) if self.options.only else "everything"


def _list(options: OutputOptions, output: Output) -> None:
    sink = options.sink(output, lambda: CodeTable(output), (Declaration,), report=True)
    for code in findings().values():
        sink.add(code)
    sink.end()
    output.flush()


OF_SUMMARY = {"findings", "known", "unread"}
"""Keys of verify's summary, which distinguish it from that of other commands."""
FindingKey = tuple[str, str | None, int | None, int | None, str]
"""What a baseline identifies an accepted finding by: code, topic-partition and offset; without a topic or an offset,
also file name."""


def read_baseline(path: str) -> set[FindingKey]:
    """Return the findings of a file written by `kdump verify --json`. Raises SourceError if it cannot be read or is
    anything else."""
    keys: set[FindingKey] = set()
    lines = 0
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    lines += 1
                    if row["type"] == "finding":
                        keys.add(_key_of(row["code"], row["topic"], row["partition"], row["offset"], row["file"]))
                    elif row["type"] != "summary" or not row.keys() >= OF_SUMMARY:
                        raise ValueError(row["type"])
                except (ValueError, KeyError, TypeError) as error:
                    raise SourceError(f"{path}: line {number} is not a line that kdump verify --json writes") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not lines:
        raise SourceError(f"{path}: is empty, and the output of kdump verify --json is not")
    return keys


def _key(finding: Finding) -> FindingKey:
    return _key_of(finding.code, finding.topic, finding.partition, finding.offset, finding.file)


def _key_of(code: str, topic: str | None, partition: int | None, offset: int | None, file: str) -> FindingKey:
    return code, topic, partition, offset, os.path.basename(file) if topic is None or offset is None else ""
