"""Show groups, their members, committed offsets and lag, now or at an earlier time."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import click

from kdump.answer import Note, answer_keys
from kdump.cluster.lag import CommittedPosition, SharePosition, behind_text
from kdump.command_line.command_run import print_error
from kdump.command_line.completion import one_of
from kdump.command_line.help_page import HelpPage
from kdump.command_line.metrics_option import metrics_option
from kdump.command_line.name_options import TopicFilter, exact_name, has_unmatched
from kdump.command_line.output_options import FORMATS, OutputOptions, output_options
from kdump.command_line.remote_option import RemoteOptions
from kdump.command_line.state_options import Notes, limit_options, run_command
from kdump.command_line.typed_options import takes
from kdump.format.count_text import count_text
from kdump.io.errors import SourceError
from kdump.log.internal_topics import OFFSETS_TOPIC, SHARE_TOPIC
from kdump.query import CommandOptions, LimitOptions, added, group, option
from kdump.questions.groups.answer import DescribedGroup, GroupMember
from kdump.questions.groups.report import (
    DETAILS,
    MEMBERS,
    OFFSETS,
    RESET_FILE,
    SUMMARY,
    GroupReport,
    ResetFile,
)
from kdump.questions.groups.run import GroupsQuery, GroupsRead, SeveralLogs
from kdump.render.escape import path_text, printable
from kdump.render.progress import Progress
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables, TableRows
from kdump.render.times import iso
from kdump.state.as_of import AsOf
from kdump.state.groups import SHARE, GroupCoordinatorState
from kdump.state.recorded_change import RecordedChange

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
class GroupsOptions(CommandOptions):
    """The options of the command."""

    query: GroupsQuery = group(GroupsQuery)
    sort: str | None = option(
        "--sort",
        metavar="NAME",
        shell_complete=one_of(lambda: dict.fromkeys(SORTS)),
        help="Sort by this key of the JSON object (lag, lastCommit …), highest first.",
    )
    metrics: str | None = metrics_option()
    remote: RemoteOptions = group(RemoteOptions)
    output: OutputOptions = added(
        output_options(
            formats=(*FORMATS, RESET_FILE),
            json="Write JSON Lines; same as --format json. (reset-file: for kafka-consumer-groups.sh --from-file)",
        )
    )
    reading: LimitOptions = added(limit_options)

    @property
    def shown(self) -> str:
        """What a report shows."""
        query = self.query
        if query.members:
            return MEMBERS
        if query.offsets or (query.topics and not query.groups):
            return OFFSETS
        return DETAILS if query.groups else SUMMARY


@click.command(cls=HelpPage, epilog=EXAMPLES, listed=("state", 1))
@takes(GroupsOptions)
def command(options: GroupsOptions) -> None:
    """Show the groups in __consumer_offsets and __share_group_state with their members and committed offsets, and with
    their lag if the partitions are on the same disks: lag counts offsets, with transaction markers, and records behind
    what a consumer would still receive. A path is a log directory, a __consumer_offsets-N directory, or a segment in
    it. The state is the one that a group coordinator would load: offsets committed in aborted transactions are ignored.
    Nothing is written."""
    query = options.query
    if query.history and (query.offsets or query.members or options.sort):
        raise click.UsageError("--history cannot be combined with --offsets, --members or --sort")
    if options.sort and options.sort not in SORTS:
        raise click.UsageError(f"--sort: unknown key {options.sort!r}; use {', '.join(dict.fromkeys(SORTS))}")
    run_command(GroupsCommand(options))


class GroupsCommand:
    """One run of the command."""

    def __init__(self, options: GroupsOptions) -> None:
        self.options, self.query = options, options.query
        self.sink: Sink[Any]
        shown, is_now = options.output, self.query.moment == AsOf()
        self.output = shown.output()
        tables = StateTables(self.output, shown.zone, shown.names, shown.full)
        if shown.format == RESET_FILE:
            if self.query.history or self.query.members or options.sort:
                raise click.UsageError("--format reset-file has the offsets; omit --history, --members and --sort")
            self.sink = ResetFile(self.output)
        elif self.query.history:
            self.sink = shown.sink(self.output, lambda: TableRows(self.output, tables), (RecordedChange,))
        else:
            self.sink = shown.sink(
                self.output,
                lambda: GroupReport(self.output, tables, options.shown, options.sort, is_now),
                ROWS[options.shown],
                objects=self.query.parts,
                single=SINGLE,
                together=True,
            )
        self._refuse_contradictions()
        self.notes = Notes(self.sink)

    def _refuse_contradictions(self) -> None:
        options, query = self.options, self.query
        if query.offsets and query.members and not self.sink.is_complete:
            raise click.UsageError("choose one of --offsets and --members")
        if options.sort and self.sink.streams:
            raise click.UsageError("--sort applies only to tables")
        if options.output.columns is not None and options.shown == DETAILS and not query.history:
            raise click.UsageError(f"--columns needs a single table; {SINGLE}")

    def run(self) -> None:
        query, unreadable = self.query, self.notes.add_unreadable
        self.options.remote.mount(tuple(query.paths), unreadable)
        with Progress("groups") as progress:
            run = self.options.reading.run(unreadable=unreadable, more=progress.more, expect=progress.expect)
            try:
                read = GroupsRead(replace(query, run=run), self._older, self.sink.add)
            except SeveralLogs as error:
                raise click.UsageError(f"--as-of: {error}") from None
        if not read.logs:
            if not self.notes.failed:
                unreadable(SourceError.at(", ".join(query.paths), f"no {OFFSETS_TOPIC} found"))
            self.sink.end()
            return
        if isinstance(query.groups, TopicFilter):
            query.groups.absent = lambda typed, pattern: self._absent(typed, pattern, read)
        for note in read.not_read():
            self.notes.add(*note)
        if not query.history:
            self._show(read)
            if read.ends.behind:
                print_error(behind_text(read.ends))
        elif not read.changes and not query.groups and not query.topics:
            print_error(f"no changes of groups in {_partitions_text(read.groups)}")
        self.sink.end()
        self.notes.all("", [note.message for note in read.problems()])
        for note in read.ends_before():
            self.notes.add(*note)
            self.notes.failed = True

    def _older(self, note: Note) -> None:
        print_error(f"{path_text(note.source)}: {note.message}")

    def _absent(self, typed: str, pattern: re.Pattern[str], read: GroupsRead) -> str:
        """Return what is known of a --group that there is not."""
        groups, offsets = read.groups, read.coverages[OFFSETS_TOPIC]
        removed = next((name for name in reversed(groups.removed.groups) if pattern.search(name)), None)
        if removed is None:
            return offsets.lacks(exact_name(typed))
        partition, record, time = groups.removed.groups[removed]
        when = f"at {iso(time, self.options.output.zone)}, " if time is not None else ""
        place = f"offset {record} of {OFFSETS_TOPIC}-{partition}"
        return f"{printable(removed)} was removed {when}by {place}; --history shows it"

    def _show(self, read: GroupsRead) -> None:
        query = self.query
        shown = members = offsets = 0
        is_reported = query.moment.offset is None
        for description in read.descriptions():
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
        if shown and not members and query.members:
            print_error(f"no members in {count_text(shown, 'group')}")
        if shown and not offsets and query.offsets:
            print_error(f"no committed offsets in {count_text(shown, 'group')}")
        if not shown and not has_unmatched(TopicFilter):
            self._report_no_group(read.groups)

    def _report_no_group(self, groups: GroupCoordinatorState) -> None:
        """Say what was looked at and found empty."""
        if groups.groups:
            print_error(f"no group matches; there are {count_text(len(groups.groups), 'other group')}")
        else:
            print_error(f"no groups in {_partitions_text(groups)}")


def _partitions_text(groups: GroupCoordinatorState) -> str:
    """Format what was read: 2 partitions of __consumer_offsets."""
    return f"{count_text(len(groups.logs), 'partition')} of {' and '.join(sorted({log.topic for log in groups.logs}))}"
