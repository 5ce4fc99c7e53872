"""Produce the records on a disk to topics of a running cluster, exactly once; --check compares them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timezone
from typing import Any

import click

from kdump.check.options import Options
from kdump.cluster.find_state_logs import find_logs
from kdump.cluster.read_groups import merged, newest, read_groups
from kdump.command_line.command_run import print_error, report_unreadable, unreadable
from kdump.command_line.cut_options import CutOptions
from kdump.command_line.exit_status import exit_with
from kdump.command_line.help_page import HelpPage
from kdump.command_line.name_options import topic_filter
from kdump.command_line.output_options import CSV_COLUMNS_HELP, QUIET_HELP, OutputOptions, output_options
from kdump.command_line.params import parse_as_of
from kdump.command_line.reading_options import ReadingOptions, reading_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text, size_text
from kdump.kafka.server_properties import client_properties
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.query import CommandOptions, added, argument, flag, group, option, topic_option
from kdump.questions.restore.answer import (
    RestoreDifference,
    RestoreError,
    RestoreGroup,
    RestorePartition,
    RestoreRefusal,
    RestoreSummary,
)
from kdump.questions.restore.cluster import Position, TargetCluster, TopicState
from kdump.questions.restore.plan import Refusals, key_of
from kdump.questions.restore.run import Committed, Restore, check, create_topics, restore_groups
from kdump.questions.restore.source import LEDGER, RestoreQuery, RestoreSource, find_sources
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import write_answers
from kdump.render.stdout import Output

USUAL_RATE = 20 << 20
"""Bytes per second for which the plan states a time."""


class RestoreReport(Sink[Any]):
    """Writes the partitions as a table, then what follows. `writes`: with --yes; `checks`: with --check."""

    def __init__(self, output: Output, *, full: bool, writes: bool, checks: bool) -> None:
        self.output, self.full, self.writes, self.checks = output, full, writes, checks
        self._plans: list[RestorePartition] = []
        self._refusals: list[RestoreRefusal] = []
        self._groups: list[RestoreGroup] = []

    def add(self, answer: Any) -> None:
        if isinstance(answer, RestorePartition):
            self._plans.append(answer)
        elif isinstance(answer, RestoreRefusal):
            self._refusals.append(answer)
        elif isinstance(answer, RestoreGroup):
            self._groups.append(answer)
        elif isinstance(answer, RestoreDifference):
            self._difference(answer)
        elif isinstance(answer, RestoreSummary):
            self._summary(answer)

    def _difference(self, found: RestoreDifference) -> None:
        number = "" if found.partition is None else f"-{found.partition}"
        source = "" if found.offset is None else f", offset {found.offset} of the source"
        target = "" if found.targetOffset is None else f", offset {found.targetOffset} of the target"
        reason = f": {found.reason}" if found.reason else ""
        self.output.text(f"{found.kind.upper()}: {printable(found.topic)}{number}{source}{target}{reason}", style="bad")

    def _summary(self, summary: RestoreSummary) -> None:
        self._head(summary)
        write_answers(self.output, self._plans, full=self.full)
        untimed = sum(plan.untimed for plan in self._plans)
        if untimed:
            count = count_text(untimed, "record has", "records have")
            self.output.text(f"{count} no timestamp, and get the time at which they are produced")
        late = sum(plan.late for plan in self._plans)
        if late:
            have = count_text(late, "record has", "records have")
            self.output.text(
                f"{have} a timestamp before --until, but follow the first record that has not, and are left out; to "
                "keep them, pass an offset",
                style="bad",
            )
        cleaned = sum(plan.cleaned for plan in self._plans)
        if cleaned:
            are = count_text(cleaned, "record is", "records are")
            self.output.text(f"{are} not in compacted topics of the target, whose cleaner removes them; the others are")
        for refusal in self._refusals:
            self.output.text(f"refused: {printable(refusal.topic)}: {path_text(refusal.reason)}", style="bad")
            self.output.line(printable(f"  {refusal.action}"))
        write_answers(self.output, self._groups, full=self.full, style=lambda row: "bad" if row.note else "")
        if not self.writes and not self.checks and not self._refusals and not summary.done:
            self.output.text("nothing was written; to produce this, add --yes")

    def _head(self, summary: RestoreSummary) -> None:
        what = f"{count_text(summary.records, 'record')} of {count_text(summary.partitions, 'partition')}"
        what += f", {size_text(summary.bytes)}, to {printable(summary.target)}"
        if self.checks:
            if summary.differences:
                self.output.text(f"DIFFERENT: {what}: {count_text(summary.differences, 'difference')}", style="bad")
            else:
                self.output.text(f"EQUAL: {what}: partition, order, key, value, headers and timestamp of each")
        elif self._refusals:
            self.output.text(f"REFUSED: {what}: nothing was produced", style="bad")
        elif summary.done:
            self.output.text(f"restored: {what}; this run produced {summary.produced:,}")
        elif self.writes:
            self.output.text(f"NOT COMPLETE: {what}; this run produced {summary.produced:,}", style="bad")
        else:
            left = sum(plan.bytes for plan in self._plans if plan.restored < plan.records)
            seconds = max(1, round(left / USUAL_RATE))
            self.output.text(f"plan: {what}; about {seconds} s at {size_text(USUAL_RATE)} per second")


EXAMPLES = """
\b
Examples:
  kdump restore /backup/orders-0 --to kafka:9092
  kdump restore /var/lib/kafka --topic 'orders*' --to kafka:9092 --create --yes
  kdump restore /backup --topic orders=orders-again --until 2026-11-20T14:05 --to kafka:9092 --create --yes
  kdump restore /backup --to kafka:9092 --config client.properties --check

\b
Exit status: 0 if all selected records are in the target, or can be produced; 1 if something forbids it, if not all
were produced, or if --check found a difference; 2 for a usage error, or if a source or the cluster could not be read.
"""


@dataclass(frozen=True)
class RestoreOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    to: str = option("--to", metavar="BOOTSTRAP", required=True, help="Produce to the cluster at HOST:PORT[,…].")
    yes: bool = flag("--yes", help="Produce; without it, only show the plan.")
    dry_run: bool = flag("--dry-run", help="Only show the plan, which is the default.")
    checks: bool = flag("--check", help="Read the target back and compare it with the source; write nothing.")
    topics: tuple[str, ...] = topic_option("Restore only these topics, or topic A with the name B: A=B")
    cut: CutOptions = group(CutOptions)
    all: bool = flag("--all", help="Also restore what read_committed consumers do not receive: aborted, open, deleted.")
    create: bool = flag("--create", help="Create missing topics, with partitions and configs as on the disk.")
    repartition: bool = flag("--repartition", help="Choose partitions by the keys, instead of keeping them.")
    append: bool = flag("--append", help="Also produce to partitions that are not empty.")
    skip_too_large: bool = flag("--skip-too-large", help="Leave out records above the target's max.message.bytes.")
    groups: bool = flag("--groups", help="Also set the committed offsets of the groups on the disk, translated.")
    as_of: str | None = option(
        "--as-of", metavar="TIME", help="With --groups: take the offsets that were committed at this time."
    )
    remote: RemoteOptions = group(RemoteOptions)
    config: str | None = option(
        "--config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Read options of the client (TLS, SASL; librdkafka's names) from this properties file.",
    )
    output: OutputOptions = added(
        output_options(
            json="Write JSON Lines: restorePartition, restoreRefusal, restoreDifference, restoreGroup, restoreSummary.",
            columns=CSV_COLUMNS_HELP,
            quiet=QUIET_HELP,
            zone=False,
        )
    )
    reading: ReadingOptions = added(reading_options)


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("salvage", 2), to_the_end=True)
@takes(RestoreOptions)
def command(options: RestoreOptions) -> None:
    """Produce the records of partitions on a disk to topics of a running cluster: same partition, order, key, value,
    headers and timestamp, exactly once over interruptions. Without --yes, show what would be produced, and what forbids
    it with the command that mends it. This is the only command that connects to a cluster, and it connects only to
    the one in --to."""
    if options.yes and (options.dry_run or options.checks):
        raise click.UsageError("--yes produces; it cannot be combined with --dry-run or --check")
    if options.as_of is not None and not options.groups:
        raise click.UsageError("--as-of applies only to --groups")
    exit_with(RestoreCommand(options).run, RestoreError)


class RestoreCommand:
    """One run of the command."""

    def __init__(self, options: RestoreOptions) -> None:
        self.options = options
        renamed = dict(pair.split("=", 1) for pair in options.topics if "=" in pair)
        self.query = RestoreQuery(options.cut.request, options.all, renamed, options.repartition)
        self.is_selected = topic_filter(tuple(typed.split("=", 1)[0] for typed in options.topics))
        output = options.output.output()
        self.sink = options.output.sink(
            output,
            lambda: RestoreReport(output, full=options.output.full, writes=options.yes, checks=options.checks),
            (RestorePartition,),
            report=True,
        )
        self.output = output
        self.began = time.monotonic()
        self.sources: list[RestoreSource] = []
        self.states: dict[str, TopicState] = {}
        self.positions: dict[str, Position] = {}
        self.produced = self.differences = 0
        self.is_failed = False

    def run(self) -> int:
        """Run the command and return its exit status."""
        options = self.options
        config = client_properties(options.config) if options.config is not None else {}
        options.remote.mount(options.paths)
        run = options.reading.run(unreadable=report_unreadable)
        self.sources = find_sources(options.paths, run, self.query, self.is_selected)
        if not self.sources:
            if not unreadable() and not options.topics:
                print_error("no partition with a segment found")
            return 2
        if any(True for _ in self.is_selected.unmatched()):
            return 2
        cluster = TargetCluster(options.to, config)
        try:
            status = self._run(cluster, run)
        except cluster.kafka.KafkaException as error:
            raise RestoreError(f"{options.to}: {cluster.text(error)}") from None
        finally:
            cluster.close()
        self.output.flush()
        return status

    def _run(self, cluster: TargetCluster, run: Options) -> int:
        options = self.options
        names = cluster.names()
        if options.skip_too_large:
            self._limit(cluster, names)
        with Progress("plan") as progress:
            progress.total = len(self.sources)
            for source in self.sources:
                source.survey()
                progress.more(1)
        if unreadable():
            raise RestoreError("not everything could be read; nothing was produced")
        self._look(cluster, names)
        refusals = [] if options.checks else list(self._refusals(cluster))
        if options.create and options.yes and not refusals and {each.target_topic for each in self.sources} - names:
            create_topics(cluster, self.sources, names, run.disks_at(options.paths).newest_metadata()[1])
            self._look(cluster, cluster.names())
            refusals = list(self._refusals(cluster))
        if options.checks:
            with Progress("compare"):
                for difference in check(cluster, self.sources, self.states, self.positions, append=options.append):
                    self.differences += 1
                    self.sink.add(difference)
        if options.yes and not refusals:
            self._produce(cluster)
        self._groups(cluster, run, writes=options.yes and not refusals)
        return self._end(refusals)

    def _limit(self, cluster: TargetCluster, names: set[str]) -> None:
        """Skip the records that are too large for the topics of the target."""
        for topic in {source.target_topic for source in self.sources} & names:
            self.query.limits[topic] = int(cluster.topic(topic).configs.get("max.message.bytes", "1048588"))

    def _look(self, cluster: TargetCluster, names: set[str]) -> None:
        """Read what the cluster has: the topics, and the positions of earlier runs."""
        wanted = {source.target_topic for source in self.sources} | {LEDGER}
        self.states = {name: cluster.topic(name) for name in sorted(wanted & names)}
        is_denied = LEDGER in self.states and self.states[LEDGER].denied
        self.positions = {} if is_denied else cluster.positions()
        for source in self.sources:
            state = self.states.get(source.target_topic)
            known = self.positions.get(key_of(source, state)) if state is not None else None
            source.plan.restored = 0 if known is None else known.records

    def _refusals(self, cluster: TargetCluster) -> Iterator[RestoreRefusal]:
        options = self.options
        found = Refusals(
            cluster,
            self.sources,
            self.states,
            self.positions,
            append=options.append,
            creates=options.create,
            skips_large=options.skip_too_large,
        )
        yield from found.all()

    def _produce(self, cluster: TargetCluster) -> None:
        cluster.create_ledger()
        with Progress("produce") as progress:
            progress.total = sum(source.plan.records - source.plan.restored for source in self.sources)
            restore = Restore(cluster, self.sources, self.states, progress.more)
            try:
                restore.run()
            finally:
                self.produced = restore.produced
        self._look(cluster, cluster.names())

    def _groups(self, cluster: TargetCluster, run: Options, *, writes: bool) -> None:
        if not self.options.groups:
            return
        moment = parse_as_of(self.options.as_of, timezone.utc)
        logs, _, _ = find_logs(self.options.paths, (OFFSETS_TOPIC,), run, lone=OFFSETS_TOPIC)
        if not logs:
            raise RestoreError(f"--groups: no {OFFSETS_TOPIC} found; pass a log directory that has one")
        state = read_groups(newest(merged(logs)), moment, run=run)
        committed: Committed = {
            name: {place: commit.offset for place, commit in places.items()} for name, places in state.offsets.items()
        }
        for answer in restore_groups(cluster, self.sources, self.states, self.positions, committed, writes=writes):
            self.is_failed |= bool(answer.note)
            self.sink.add(answer)
        places = {(source.topic, source.partition) for source in self.sources}
        if all(places.isdisjoint(each) for each in committed.values()):
            print_error("--groups: no group has committed offsets of these partitions; --as-of TIME takes earlier ones")

    def _end(self, refusals: list[RestoreRefusal]) -> int:
        options = self.options
        plans = [source.plan for source in self.sources]
        done = all(plan.restored == plan.records for plan in plans) and not self.differences
        for answer in (*plans, *refusals):
            self.sink.add(answer)
        self.sink.add(
            RestoreSummary(
                options.to,
                len(plans),
                sum(plan.records for plan in plans),
                sum(plan.bytes for plan in plans),
                self.produced,
                len(refusals),
                self.differences if options.checks else None,
                done,
                round(time.monotonic() - self.began, 3),
            )
        )
        self.sink.end()
        return int(bool(refusals or self.differences or self.is_failed or (options.yes and not done)))
