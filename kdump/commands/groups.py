"""`kdump groups`: groups, their members, and the offsets that they have committed."""

from __future__ import annotations

import os
from typing import Any

import click

from kdump.answer import answer_keys
from kdump.commands.completion_words import one_of
from kdump.commands.files import complain, output_for
from kdump.commands.state_options import Teller, as_of, carry_out, column_names, common
from kdump.commands.topics import matcher, topic_option
from kdump.forensics.groups import DescribedGroup, GroupMember
from kdump.log.disk import LogDirectory, partition
from kdump.log.errors import SourceError
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.log.region import Limits
from kdump.render.escape import path_text
from kdump.render.group_objects import change_object
from kdump.render.group_report import GroupReport, describe
from kdump.render.output import Output
from kdump.render.progress import Progress
from kdump.render.state_tables import StateTables, style
from kdump.state.groups import SHARE
from kdump.state.lag import LagContext, Position
from kdump.state.locate import coordinator_logs
from kdump.state.metadata import read_metadata
from kdump.state.moment import Change, Moment
from kdump.state.partition_ends import Disks, log_end
from kdump.state.read_groups import CoordinatorLog, merged, newest, read_groups
from kdump.state.records import ROOM_ALONE

SORTS = [key.name for kind in (DescribedGroup, Position, GroupMember) for key in answer_keys(kind)]
EXAMPLES = """
\b
Examples:
  kdump groups /var/lib/kafka
  kdump groups /var/lib/kafka --group 'billing-*'
  kdump groups /var/lib/kafka --offsets --sort lag
  kdump groups /var/lib/kafka --group billing --history --json | jq -c .fields

\b
Exit status: 0 on success, 2 for a usage error, if a path could not be read (the others are shown), or if a log ends
before --as-of.
"""


@click.command(epilog=EXAMPLES)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--group",
    "groups",
    metavar="GLOB",
    multiple=True,
    help="Show these groups in detail (a glob or a /regex/); repeatable.",
)
@topic_option("Show only offsets of these topics")
@click.option("--offsets", is_flag=True, help="Show all offsets in one table.")
@click.option("--members", is_flag=True, help="Show all members in one table.")
@click.option(
    "--sort",
    metavar="NAME",
    shell_complete=one_of(lambda: dict.fromkeys(SORTS)),
    help="Sort by this key of the JSON object (lag, lastCommit …), highest first.",
)
@common
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Show the groups in __consumer_offsets with their members and committed offsets, and with their lag if the
    partitions are on the same disks. A path is a log directory, a __consumer_offsets-N directory, or a segment in it.
    The state is the one that a group coordinator would load: aborted transactions do not count. Nothing is written."""
    _refuse_contradictions(options)
    moment = as_of(options["as_of"], options["zone"])
    output = output_for(options)
    run = _Run(options, moment, output)
    carry_out(run, paths, output)


def _refuse_contradictions(options: dict[str, Any]) -> None:
    if options["offsets"] and options["members"] and not options["as_json"]:
        raise click.UsageError("choose one of --offsets and --members")
    if options["history"] and (options["offsets"] or options["members"] or options["sort"]):
        raise click.UsageError("--history cannot be combined with --offsets, --members or --sort")
    if options["sort"] and options["sort"] not in SORTS:
        raise click.UsageError(f"--sort: unknown key {options['sort']!r}; use {', '.join(dict.fromkeys(SORTS))}")
    if options["sort"] and options["as_json"]:
        raise click.UsageError("--sort applies only to tables")
    one_table = not options["groups"] or options["offsets"] or options["members"] or options["history"]
    if options["columns"] is not None and not one_table:
        raise click.UsageError("--columns needs a single table; add --offsets or --members")


class _Run:
    """One run of the command."""

    def __init__(self, options: dict[str, Any], moment: Moment, output: Output) -> None:
        self.options = options
        self.moment = moment
        self.output = output
        self.teller = Teller(output, options["as_json"])
        self.group, self.topic = matcher(options["groups"], "--group"), matcher(options["topics"])
        self.limits = Limits(options["max_batch_size"], options["max_decompressed_size"])
        names = column_names(options["columns"], options["as_json"])
        self.tables = StateTables(output, options["zone"], names, options["full"])

    def run(self, paths: tuple[str, ...]) -> None:
        logs, directories = self._find(paths)
        if not logs:
            return
        disks = Disks(directories, self.limits)
        found = [read_metadata(each.path, self.limits) for each in directories]
        known = [each for each in found if each is not None and each.topics]
        metadata = max(known, key=lambda each: each.end_offset, default=None)
        around = LagContext(disks, metadata, is_now=self.moment == Moment())
        told = self._history(logs, around) if self.options["history"] else None
        total = sum(os.path.getsize(path) for log in logs for path in log.segments if os.path.isfile(path))
        with Progress("groups", self.output, always=told is None) as progress:
            progress.total = total
            limits = self.limits
            groups = read_groups(logs, self.moment, told=told, room=ROOM_ALONE, limits=limits, met=progress.more)
        if told is None:
            self._show(groups, around)
        elif self.history is not None:
            self.history.flush()
        self.teller.notes("", [*groups.problems, *disks.problems])
        for log in groups.logs:
            if self.moment.offset is not None and log.endOffset <= self.moment.offset:
                self.teller.note(log.path, f"ends at offset {log.endOffset}; this is the state at its end")
                self.teller.failed = True

    def _find(self, paths: tuple[str, ...]) -> tuple[list[CoordinatorLog], list[LogDirectory]]:
        logs: list[CoordinatorLog] = []
        directories: dict[str, LogDirectory] = {}
        for path in paths:
            try:
                some, around = coordinator_logs(path, self.teller.refuse)
            except SourceError as error:
                self.teller.refuse(error)
                continue
            logs.extend(some)
            directories.update({os.path.realpath(each.path): each for each in around})
        if self.moment.offset is not None:
            logs = [log for log in logs if log.topic == OFFSETS_TOPIC]
        logs = merged(logs)
        chosen = newest(logs, self._end)
        for log in logs:
            if log not in chosen:
                other = f"another copy of {log.topic}-{log.partition} ends at the same offset or a higher one"
                complain(f"{path_text(log.path)}: not read; {other}")
        offsets = [log for log in chosen if log.topic == OFFSETS_TOPIC]
        if not chosen and not self.teller.failed:
            self.teller.refuse(SourceError(f"{', '.join(paths)}: no {OFFSETS_TOPIC} found"))
        if self.moment.offset is not None and len(offsets) > 1:
            raise click.UsageError(
                f"--as-of: an offset applies to a single partition, but {len(offsets)} of {OFFSETS_TOPIC} were"
                " found; pass the directory of one, or use a time"
            )
        return chosen, list(directories.values())

    def _end(self, log: CoordinatorLog) -> int:
        if not log.segments:
            return 0
        return log_end(partition(os.path.dirname(log.segments[-1])), self.limits, []) or 0

    def _history(self, logs: list[CoordinatorLog], around: LagContext) -> Any:
        sources = {(log.topic, log.partition): path_text(log.path) for log in logs}
        self.history = None if self.options["as_json"] else self.tables.open("change")

        def told(change: Change) -> None:
            name = change.name
            topic, _, number = name.rpartition("-")
            if change.entity == "shareState":
                name = f"{around.topic_name(topic)}-{number}"
                topic = around.topic_name(topic)
            if not self.group(change.group or ""):
                return
            if self.options["topics"] and not (change.entity in ("offset", "shareState") and self.topic(topic)):
                return
            log = SHARE_TOPIC if change.entity == "shareState" else OFFSETS_TOPIC
            source = sources[log, change.partition or 0]
            value = change_object(source, change._replace(name=name), topic_name=around.topic_name)
            if self.history is None:
                self.teller.json(value)
            else:
                self.history.add(value, style(value))

        return told

    def _show(self, groups: Any, around: LagContext) -> None:
        described = list(describe(groups, around, self.group, self.topic))
        if self.options["topics"]:
            described = [each for each in described if each.offsets or each.shares]
        if self.moment.offset is not None and any(each.group["groupType"] == SHARE for each in described):
            complain(
                f"share groups store their progress in {SHARE_TOPIC}, to which an offset in {OFFSETS_TOPIC}"
                " does not apply; use a time"
            )
        if not described and not any((*self.group.unmatched(), *self.topic.unmatched())):
            complain("no groups" if not groups.groups else "no group matches")
        if self.options["as_json"]:
            self._json(described)
            return
        report = GroupReport(self.output, self.tables, self.options["sort"], around.is_now)
        if self.options["members"]:
            report.members(described)
        elif self.options["offsets"] or (self.options["topics"] and not self.options["groups"]):
            report.offsets(described)
        elif not self.options["groups"]:
            report.summary(described)
        else:
            for number, each in enumerate(described):
                if number:
                    self.output.line("")
                report.details(each)

    def _json(self, described: Any) -> None:
        both = self.options["offsets"] == self.options["members"]
        for each in described:
            self.teller.json(each.group)
            for value in each.members if both or self.options["members"] else ():
                self.teller.json(value)
            for value in (*each.offsets, *each.shares) if both or self.options["offsets"] else ():
                self.teller.json(value)
