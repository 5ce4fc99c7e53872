"""Show groups, their members, committed offsets and lag, now or at an earlier time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click

from kdump.answer import answer_keys
from kdump.cluster.disks import Disks
from kdump.cluster.find_state_logs import OLDER, find_logs
from kdump.cluster.lag import CommittedPosition, LagContext, SharePosition, behind_text
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import CoordinatorLog, merged, newest, read_groups, size_of
from kdump.cluster.topic_coverage import HELD, TopicCoverage, coordinators_covered
from kdump.command_line.command_run import print_error
from kdump.command_line.completion import one_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.name_options import exact_name, topic_filter
from kdump.command_line.output_options import FORMATS, OutputOptions, output_options
from kdump.command_line.params import parse_as_of
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.state_options import Notes, StateOptions, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.query import CommandOptions, added, argument, flag, group, many, option, topic_option
from kdump.questions.groups.answer import DescribedGroup, GroupMember
from kdump.questions.groups.report import (
    DETAILS,
    MEMBERS,
    OFFSETS,
    RESET_FILE,
    SUMMARY,
    GroupDescription,
    GroupReport,
    ResetFile,
    describe_groups,
    group_parts,
)
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables, TableRows
from kdump.render.times import iso
from kdump.state.as_of import AsOf, Change
from kdump.state.groups import SHARE, GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.recorded_change import RecordedChange, change_answer

SINGLE = "add --offsets or --members"
SORTS = [key.name for kind in (DescribedGroup, CommittedPosition, GroupMember) for key in answer_keys(kind)]
EXAMPLES = """
\b
Examples:
  kdump groups /var/lib/kafka
  kdump groups /var/lib/kafka --group 'billing-*'
  kdump groups /var/lib/kafka --offsets --sort lag
  kdump groups /var/lib/kafka --group billing --history --json | jq -c .fields
  kdump groups /var/lib/kafka --as-of 2026-11-20T14:05 --format reset-file > offsets.csv

\b
Exit status: 0 on success, 2 for a usage error, if a path could not be read (the others are shown), or if a log
does not reach the offset in --as-of.
"""


ROWS: dict[str, tuple[type, ...]] = {
    SUMMARY: (DescribedGroup,),
    MEMBERS: (GroupMember,),
    OFFSETS: (CommittedPosition, SharePosition),
    DETAILS: (),
}
"""Classes of the rows, by what is shown; none if it is not a single table."""


@dataclass(frozen=True)
class GroupsStateOptions(StateOptions):
    """StateOptions with one more format."""

    output: OutputOptions = added(
        output_options(
            formats=(*FORMATS, RESET_FILE),
            json="Write JSON Lines; same as --format json. (reset-file: for kafka-consumer-groups.sh --from-file)",
        )
    )


@dataclass(frozen=True)
class GroupsOptions(CommandOptions):
    """The options of the command."""

    paths: tuple[str, ...] = argument(metavar="PATH…", nargs=-1, required=True)
    groups: tuple[str, ...] = many(
        "--group", metavar="GLOB", help="Show these groups in detail (a glob or a /regex/); repeatable."
    )
    topics: tuple[str, ...] = topic_option("Show only offsets of these topics")
    offsets: bool = flag("--offsets", help="Show all offsets in one table.")
    members: bool = flag("--members", help="Show all members in one table.")
    sort: str | None = option(
        "--sort",
        metavar="NAME",
        shell_complete=one_of(lambda: dict.fromkeys(SORTS)),
        help="Sort by this key of the JSON object (lag, lastCommit …), highest first.",
    )
    metrics: str | None = metrics_option()
    remote: RemoteOptions = group(RemoteOptions)
    state: GroupsStateOptions = group(GroupsStateOptions)

    @property
    def shown(self) -> str:
        """What a report shows."""
        if self.members:
            return MEMBERS
        if self.offsets or (self.topics and not self.groups):
            return OFFSETS
        return DETAILS if self.groups else SUMMARY


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 1))
@takes(GroupsOptions)
def command(options: GroupsOptions) -> None:
    """Show the groups in __consumer_offsets and __share_group_state with their members and committed offsets, and with
    their lag if the partitions are on the same disks: lag counts offsets, with transaction markers, and records behind
    what a consumer would still receive. A path is a log directory, a __consumer_offsets-N directory, or a segment in
    it. The state is the one that a group coordinator would load: offsets committed in aborted transactions are ignored.
    Nothing is written."""
    if options.state.history and (options.offsets or options.members or options.sort):
        raise click.UsageError("--history cannot be combined with --offsets, --members or --sort")
    if options.sort and options.sort not in SORTS:
        raise click.UsageError(f"--sort: unknown key {options.sort!r}; use {', '.join(dict.fromkeys(SORTS))}")
    moment = parse_as_of(options.state.as_of, options.state.output.zone)
    run_command(GroupsCommand(options, moment))


class GroupsCommand:
    """One run of the command."""

    def __init__(self, options: GroupsOptions, moment: AsOf) -> None:
        self.options, self.moment = options, moment
        self.changes = 0
        self.sink: Sink[Any]
        shown = options.state.output
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        if shown.format == RESET_FILE:
            if options.state.history or options.members or options.sort:
                raise click.UsageError("--format reset-file has the offsets; omit --history, --members and --sort")
            self.sink = ResetFile(self.output)
        elif options.state.history:
            self.sink = shown.sink(self.output, lambda: TableRows(self.output, tables), (RecordedChange,))
        else:
            self.sink = shown.sink(
                self.output,
                lambda: GroupReport(self.output, tables, options.shown, options.sort, moment == AsOf()),
                ROWS[options.shown],
                objects=self._objects,
                single=SINGLE,
                together=True,
            )
        self._refuse_contradictions()
        self.notes = Notes(self.sink)
        self.group, self.topic = topic_filter(options.groups, "--group"), topic_filter(options.topics)
        self.reading = options.state.reading.run(unreadable=self.notes.add_unreadable)

    def _refuse_contradictions(self) -> None:
        options = self.options
        if options.offsets and options.members and not self.sink.is_complete:
            raise click.UsageError("choose one of --offsets and --members")
        if options.sort and self.sink.streams:
            raise click.UsageError("--sort applies only to tables")
        if options.state.output.columns is not None and options.shown == DETAILS and not options.state.history:
            raise click.UsageError(f"--columns needs a single table; {SINGLE}")

    def _objects(self, description: GroupDescription) -> Iterator[Any]:
        options = self.options
        both = options.offsets == options.members
        return group_parts(description, members=both or options.members, offsets=both or options.offsets)

    def run(self) -> None:
        self.options.remote.mount(self.options.paths, self.notes.add_unreadable)
        logs, disks = self._find(self.options.paths)
        if not logs:
            self.sink.end()
            return
        _, metadata = disks.newest_metadata()
        ends = LogOffsetsByPartition(disks.directories, metadata, disks.node_id, partial(disks.remote_log, metadata))
        context = LagContext(ends, metadata, is_now=self.moment == AsOf())
        history = self._history(logs, context) if self.options.state.history else None
        with Progress("groups") as progress:
            progress.total = size_of(logs)
            run = replace(self.reading, more=progress.more)
            groups = read_groups(logs, self.moment, on_change=history, room=ROOM_ALONE, run=run)
        coverages = coordinators_covered(groups, metadata)
        self.group.absent = lambda typed, pattern: self._absent(typed, pattern, groups, coverages[OFFSETS_TOPIC])
        is_share = any(group.type == SHARE and self.group(name) for name, group in groups.groups.items())
        for topic, each in coverages.items():
            if each.is_partial and (is_share or topic == OFFSETS_TOPIC):
                self.notes.add("", each.note(HELD[topic]))
        if history is None:
            self._show(groups, context)
            if ends.behind:
                print_error(behind_text(ends))
        elif not self.changes and not self.options.groups and not self.options.topics:
            print_error(f"no changes of groups in {_partitions_text(groups)}")
        self.sink.end()
        self.notes.all("", [*groups.problems, *ends.problems])
        for log in groups.logs:
            if self.moment.offset is not None and log.endOffset <= self.moment.offset:
                self.notes.add(log.path, f"ends at offset {log.endOffset}; this is the state at its end")
                self.notes.failed = True

    def _find(self, paths: tuple[str, ...]) -> tuple[list[CoordinatorLog], Disks]:
        logs, disks, _ = find_logs(paths, (OFFSETS_TOPIC, SHARE_TOPIC), self.reading, lone=OFFSETS_TOPIC)
        disks.refuse_other_clusters()
        if self.moment.offset is not None:
            logs = [log for log in logs if log.topic == OFFSETS_TOPIC]
        logs = merged(logs)
        chosen = newest(logs)
        for log in logs:
            if log not in chosen:
                print_error(f"{path_text(log.path)}: {OLDER}")
        offsets = [log for log in chosen if log.topic == OFFSETS_TOPIC]
        if not chosen and not self.notes.failed:
            self.notes.add_unreadable(SourceError(f"{', '.join(paths)}: no {OFFSETS_TOPIC} found"))
        if self.moment.offset is not None and len(offsets) > 1:
            raise click.UsageError(
                f"--as-of: an offset applies to a single partition, but {len(offsets)} of {OFFSETS_TOPIC} were"
                " found; pass the directory of one, or use a time"
            )
        return chosen, disks

    def _history(self, logs: list[CoordinatorLog], context: LagContext) -> Callable[[Change], None]:
        sources = {(log.topic, log.partition): path_text(log.path) for log in logs}

        def on_change(change: Change) -> None:
            name = change.name
            topic, _, number = name.rpartition("-")
            if change.entity == "shareState":
                name = f"{context.topic_name(topic)}-{number}"
                topic = context.topic_name(topic)
            self.changes += 1
            if not self.group(change.group or ""):
                return
            if self.options.topics and not (change.entity in ("offset", "shareState") and self.topic(topic)):
                return
            log = SHARE_TOPIC if change.entity == "shareState" else OFFSETS_TOPIC
            source = sources[log, change.partition or 0]
            self.sink.add(change_answer(source, change._replace(name=name), topic_name=context.topic_name))

        return on_change

    def _absent(
        self, typed: str, pattern: re.Pattern[str], groups: GroupCoordinatorState, offsets: TopicCoverage
    ) -> str:
        """Return what is known of a --group that there is not."""
        removed = next((name for name in reversed(groups.removed.groups) if pattern.search(name)), None)
        if removed is None:
            return offsets.lacks(exact_name(typed))
        partition, record, time = groups.removed.groups[removed]
        when = f"at {iso(time, self.options.state.output.zone)}, " if time is not None else ""
        place = f"offset {record} of {OFFSETS_TOPIC}-{partition}"
        return f"{printable(removed)} was removed {when}by {place}; --history shows it"

    def _show(self, groups: Any, context: LagContext) -> None:
        shown = members = offsets = 0
        is_reported = self.moment.offset is None
        for description in describe_groups(groups, context, self.group, self.topic):
            if self.options.topics and not (description.offsets or description.shares):
                continue
            if not is_reported and description.group.groupType == SHARE:
                is_reported = True
                print_error(
                    f"share groups store their progress in {SHARE_TOPIC}, to which an offset in {OFFSETS_TOPIC}"
                    " does not apply; use a time"
                )
            self.sink.add(description)
            shown += 1
            members += len(description.members)
            offsets += len(description.offsets) + len(description.shares)
        if shown and not members and self.options.members:
            print_error(f"no members in {count_text(shown, 'group')}")
        if shown and not offsets and self.options.offsets:
            print_error(f"no committed offsets in {count_text(shown, 'group')}")
        if not shown and not any((*self.group.unmatched(), *self.topic.unmatched())):
            self._report_no_group(groups)

    def _report_no_group(self, groups: GroupCoordinatorState) -> None:
        """Say what was looked at and found empty."""
        if groups.groups:
            print_error(f"no group matches; there are {count_text(len(groups.groups), 'other group')}")
        else:
            print_error(f"no groups in {_partitions_text(groups)}")


def _partitions_text(groups: GroupCoordinatorState) -> str:
    """Format what was read: 2 partitions of __consumer_offsets."""
    return f"{count_text(len(groups.logs), 'partition')} of {' and '.join(sorted({log.topic for log in groups.logs}))}"
