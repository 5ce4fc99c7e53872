"""`kdump verify`: checks files for damage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from kdump.answer import answer_object
from kdump.check.baseline import Baseline, read_baseline
from kdump.check.catalogue import CATALOGUE, SEVERITIES
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.run import Unit, family_names, units
from kdump.check.totals import CheckTotals
from kdump.check.workers import run_all, usual_processes
from kdump.commands.completion_words import listed
from kdump.commands.exits import exit_with
from kdump.commands.files import complain
from kdump.commands.params import SizeParam, duration, limit_options, read_once
from kdump.commands.rate import RateParam
from kdump.commands.topics import matcher, topic_option
from kdump.log.errors import SourceError
from kdump.log.region import Limits
from kdump.render import jsonl
from kdump.render.objects import code_object, summary_object
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.report import FindingsReport

EXAMPLES = """
\b
Examples:
  kdump verify /var/lib/kafka
  kdump verify --crc /var/lib/kafka/payments-0
  kdump verify --json 00000000000000000000.log | jq -r 'select(.type=="finding") | .code'
  kdump verify --list

\b
Exit status: 0 if no finding reaches --fail-on, 1 if one does, 2 for a usage error, or for unreadable input if no
finding does.
"""


def _names(known: list[str], what: str) -> Callable[[click.Context, click.Parameter, str | None], frozenset[str]]:
    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> frozenset[str]:
        names = frozenset(name.strip() for name in (value or "").split(",") if name.strip())
        unknown = sorted(names - set(known))
        if unknown:
            raise click.BadParameter(f"{unknown[0]!r} is not a {what}; use {', '.join(known)}")
        if value is not None and not names:
            raise click.BadParameter(f"{value!r} contains no {what}; use {', '.join(known)}")
        return names

    return parse


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1)
@click.option("--crc", "headers_only", is_flag=True, help="Check only headers and checksums; nothing is decompressed.")
@click.option(
    "--only",
    metavar="FAMILY,…",
    callback=_names(family_names(), "family"),
    shell_complete=listed(lambda: [(name, "") for name in family_names()]),
    help="Check only these families of findings.",
)
@click.option(
    "--ignore",
    metavar="CODE,…",
    callback=_names(list(CATALOGUE), "code"),
    shell_complete=listed(lambda: [(code.code, code.meaning) for code in CATALOGUE.values()]),
    help="Omit findings with these codes.",
)
@topic_option("Check only partitions of these topics")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="error",
    help="Exit with status 1 for findings of this severity or higher.  [error]",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON Lines: findings, then one summary.")
@click.option("--info", is_flag=True, help="Also show informational findings.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit status.")
@click.option("--list", "listing", is_flag=True, help="Print the catalogue of findings.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Check this many partitions in parallel.  [CPU cores, at most 4; 1 for small inputs]",
)
@click.option("--max-rate", type=RateParam(), help="Read no faster than this in all jobs together, such as 50MB/s.")
@click.option("--baseline", metavar="FILE", help="Omit the findings in FILE, the output of an earlier --json run.")
@click.option(
    "--transaction-timeout",
    default="15m",
    metavar="TIME",
    help="Warn about transactions open for longer than this.  [15m]",
)
@click.option(
    "--max-message-bytes",
    type=SizeParam(),
    help="Warn about batches larger than this.  [the topic's max.message.bytes, if known]",
)
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Check segments, indexes, snapshots and checkpoints for damage: files, partition directories, log directories, or
    parent directories. Reports what is damaged and where, the impact on brokers and consumers, and what to do. Nothing
    is written to the disk."""
    output = Output()
    if options["listing"]:
        if paths:
            raise click.UsageError("--list takes no path")
        _list(output, options["as_json"])
        return
    if not paths:
        raise click.UsageError("Missing argument 'PATH…'")
    if options["headers_only"] and options["only"] - {"bytes"}:
        raise click.UsageError("--crc checks only the family bytes; choose one of --crc and --only")
    if options["quiet"] and options["as_json"]:
        raise click.UsageError("choose one of --quiet and --json")
    read_once(paths)

    def run() -> int:
        baseline = read_baseline(options["baseline"]) if options["baseline"] else None
        return _Run(paths, options, output, baseline).run()

    exit_with(run)


class _Run:
    """One run of the command."""

    def __init__(
        self, paths: tuple[str, ...], options: dict[str, Any], output: Output, baseline: Baseline | None
    ) -> None:
        self.paths = paths
        self.options = options
        self.output = output
        self.baseline = baseline
        self.totals = CheckTotals()
        self.of_topic = matcher(options["topics"])
        self.report = FindingsReport(output, info=options["info"] or options["fail_on"] == "info")
        self.check = Options(
            only=options["only"],
            ignore=options["ignore"],
            headers_only=options["headers_only"],
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
            transaction_timeout=duration(options["transaction_timeout"], "--transaction-timeout"),
            max_message_bytes=options["max_message_bytes"],
            now=int(time.time() * 1000),
            window=options["window"],
        )

    def run(self) -> int:
        """Run the command and return its exit status."""
        began = time.monotonic()
        work = [unit for unit in units(self.paths, self.check, self._refused) if self._is_wanted(unit)]
        if not self.totals.unread:
            self.of_topic.refuse_unmatched()
        with Progress("verify", self.output, always=not self.options["as_json"]) as progress:
            progress.total = sum(unit.size for unit in work)
            jobs = self.options["jobs"] or usual_processes(work)
            for unit, findings in run_all(work, jobs, self.options["max_rate"], self.totals, progress.more):
                self._unit(unit, findings)
        seconds = time.monotonic() - began
        if self.options["as_json"]:
            self.output.line(jsonl.line(summary_object(self.totals, seconds)))
            self.output.flush()
        nothing = not self.totals.files and not self.totals.batches and not any(self.totals.findings.values())
        is_silent = self.options["quiet"] or (nothing and bool(self.totals.unread))
        if not is_silent and not self.options["as_json"]:
            self.report.write(self.totals, seconds, self._families())
        if is_silent or self.options["as_json"]:
            for unread in self.totals.unread:
                complain(unread)
        severe = SEVERITIES[: SEVERITIES.index(self.options["fail_on"]) + 1]
        if any(self.totals.findings[severity] for severity in severe):
            return 1
        return 2 if self.totals.unread else 0

    def _is_wanted(self, unit: Unit) -> bool:
        return unit.topic is None or self.of_topic(unit.topic)

    def _unit(self, unit: Unit, findings: Iterator[Finding]) -> None:
        self.report.unit(unit.name)
        for finding in findings:
            if unit.directory is not None and self.options["topics"] and not self.of_topic(finding.topic or ""):
                continue
            if self.baseline is not None and finding in self.baseline:
                self.totals.known += 1
                continue
            self._finding(finding)

    def _finding(self, finding: Finding) -> None:
        self.totals.findings[finding.severity] += 1
        self.totals.missing.add(finding)
        if self.options["as_json"]:
            self.output.line(jsonl.line(answer_object(finding)))
        elif not self.options["quiet"]:
            self.report.add(finding)

    def _refused(self, error: SourceError) -> None:
        self.totals.refused(error)

    def _families(self) -> str:
        if self.options["headers_only"]:
            return "headers and checksums"
        return ", ".join(sorted(self.options["only"] | {"bytes"})) if self.options["only"] else "everything"


def _list(output: Output, as_json: bool) -> None:
    if as_json:
        for code in CATALOGUE.values():
            output.line(jsonl.line(code_object(code)))
    else:
        from kdump.render.table import Column, Table

        columns = [
            Column("code", "CODE", lambda code: code.code),
            Column("family", "FAMILY", lambda code: code.family),
            Column("severity", "SEVERITY", lambda code: code.severity + (" *" if code.unless else "")),
            Column("meaning", "MEANING", lambda code: code.meaning, least=20),
        ]
        table = Table(columns, output)
        for code in CATALOGUE.values():
            table.add(code)
        table.flush()
        output.line(
            "\n* lower in some cases; checkpoint-beyond-log and file-unknown can be higher, too: see docs/findings.md"
        )
    output.flush()
