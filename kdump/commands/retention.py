"""`kdump retention`: explains why segments are not deleted or compacted."""

from __future__ import annotations

import time
from typing import Any

import click

from kdump.answer import answer_object
from kdump.commands.files import complain, output_for
from kdump.commands.overview import is_log_directory
from kdump.commands.params import duration, limit_options, read_once
from kdump.commands.state_options import Teller, carry_out, clock, column_names, shown
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.answers import Note
from kdump.forensics.places import PartitionInput
from kdump.forensics.retention.answers import Hold, PartitionRetention, SegmentRetention
from kdump.forensics.retention.ask import ask
from kdump.forensics.retention.configs import ConfigOverrides, broker_names, check, known_names
from kdump.forensics.retention.partition import RetentionQuery
from kdump.forensics.retention.properties import read_properties
from kdump.log.region import Limits
from kdump.render.escape import path_text
from kdump.render.forensic_objects import answer_line
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.retention_report import RetentionReport
from kdump.render.state_tables import StateTables, style

CONFIG_HELP = "Override a topic config, or set a broker default (log.retention.hours=1); repeatable."
METADATA_HELP = "Read topic configs from this log directory or __cluster_metadata-0.  [the same disk]"
PROPERTIES_HELP = "Read the broker's defaults, which no log directory contains, from this server.properties."
EXAMPLES = """
\b
Examples:
  kdump retention /var/lib/kafka/clicks-0
  kdump retention /var/lib/kafka --properties /etc/kafka/server.properties
  kdump retention /var/lib/kafka --json | jq -c 'select(.type=="retentionHold")'
  kdump retention clicks-0 --config retention.ms=3600000 --now 2026-11-21T09:00

\b
Exit status: 0 if nothing is kept longer than the configs require, 1 if something is, 2 for a usage error, or if
something could not be read or determined.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@topic_option("Read only partitions of these topics")
@click.option(
    "--list", "listing", is_flag=True, help="Show each partition in full.  [log directory: one row per partition]"
)
@click.option(
    "--holds", is_flag=True, help="Show only what keeps data longer than the configs require, one row per cause."
)
@click.option("--config", "config", metavar="KEY=VALUE", multiple=True, help=CONFIG_HELP)
@click.option("--metadata", metavar="DIR", help=METADATA_HELP)
@click.option("--properties", metavar="FILE", help=PROPERTIES_HELP)
@click.option("--now", metavar="TIME", help="Apply retention as of this time: ISO-8601, epoch ms, -2h.  [current time]")
@click.option(
    "--transaction-timeout",
    default="15m",
    metavar="TIME",
    help="Treat transactions open for longer than this as old.  [15m]",
)
@click.option("--headers", is_flag=True, help="Read batch headers only: faster, but tombstones are not counted.")
@click.option(
    "--keys", is_flag=True, help="Also read keys, and show what the next cleaning of a compacted log would remove."
)
@shown
@limit_options
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Explain why segments are not deleted or compacted: which are deleted now, which later and when, and by which
    config; what is clean and dirty, and whether the log cleaner would clean it; and what is kept longer than the
    configs require, and by which record, transaction or bytes. A path is a segment, a partition directory, a log
    directory, or a parent directory. Nothing is written."""
    if options["keys"] and options["headers"]:
        raise click.UsageError("choose one of --keys and --headers")
    if options["holds"] and options["listing"]:
        raise click.UsageError("choose one of --list and --holds")
    if options["columns"] and not options["holds"] and options["listing"]:
        raise click.UsageError("--columns applies only to the rows of partitions, or to those of --holds")
    read_once(paths)
    output = output_for(options)
    run = _Run(options, output)
    carry_out(run, paths, output)


def given(options: tuple[str, ...], properties: str | None) -> ConfigOverrides:
    """Return the configs from --config and --properties. Raises click.UsageError and SourceError."""
    found = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--config: {text!r} is not KEY=VALUE")
        if name not in known_names():
            raise click.UsageError(f"--config: unknown config {name!r}; use {', '.join(sorted(known_names()))}")
        try:
            check(name, value)
        except ValueError:
            raise click.UsageError(f"--config {name}: {value!r} is not a valid value") from None
        found[name] = value
    values = read_properties(properties) if properties is not None else {}
    if properties is not None and not broker_names() & values.keys():
        complain(f"--properties {path_text(properties)}: sets none of the configs used here, such as log.retention.ms")
    return ConfigOverrides(found, values)


class _Run:
    """One run of the command."""

    def __init__(self, options: dict[str, Any], output: Output) -> None:
        self.options = options
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.names = column_names(options["columns"], options["as_json"])
        self.tables = StateTables(output, options["zone"], self.names, options["full"])
        now = clock(options["now"], options["zone"])
        self.now = round(time.time() * 1000) if now is None else now
        self.status = 0

    def run(self, paths: tuple[str, ...]) -> int:
        options = self.options
        question = RetentionQuery(
            now=self.now,
            timeout=duration(options["transaction_timeout"], "--transaction-timeout"),
            given=given(options["config"], options["properties"]),
            metadata=options["metadata"],
            deep=not options["headers"],
            keys=options["keys"],
            topic=matcher(options["topics"]),
            limits=Limits(options["max_batch_size"], options["max_decompressed_size"]),
        )
        report: RetentionReport | None = None
        seen = 0
        kept: list[Hold] = []
        with Progress("retention", self.output, always=self._waits(paths)) as progress:

            def started(place: PartitionInput) -> None:
                nonlocal seen, report
                seen += 1
                if report is None:
                    single = options["listing"] or (self.names is None and place.was_named)
                    report = RetentionReport(self.output, self.tables, self.now, single=single)

            for answer in ask(
                paths, question, refused=self.teller.refuse, met=progress.more, started=started, total=progress.expect
            ):
                self._status(answer)
                if isinstance(answer, Note):
                    self.teller.note(answer.source, answer.message)
                elif options["holds"] and not isinstance(answer, Hold):
                    continue
                elif options["as_json"]:
                    self.output.line(answer_line(answer))
                elif options["holds"]:
                    assert isinstance(answer, Hold)
                    kept.append(answer)
                elif report is not None:
                    report.add(answer)
        if not seen and not self.teller.failed:
            if not options["topics"]:
                complain("no partition with a segment found")
            self.teller.failed = True
        self._holds(kept)
        if report is not None:
            report.finish()
        return self.status

    def _waits(self, paths: tuple[str, ...]) -> bool:
        """Return True if the rows come at the end, one per partition."""
        return not self.options["as_json"] and not self.options["listing"] and all(map(is_log_directory, paths))

    def _status(self, answer: SegmentRetention | Hold | PartitionRetention | Note) -> None:
        if isinstance(answer, PartitionRetention):
            status = {"held": 1, "unknown": 2}.get(answer.verdict, 0)
            self.status = max(self.status, status)

    def _holds(self, kept: list[Hold]) -> None:
        if not self.options["holds"] or self.options["as_json"]:
            return
        if not kept:
            complain("nothing is kept longer than the configs require")
        without = () if len({hold.source for hold in kept}) > 1 else ("source",)
        table = self.tables.open("retentionHold", without)
        for hold in kept:
            value = answer_object(hold)
            table.add(value, style(value))
        table.flush()
