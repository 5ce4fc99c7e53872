"""Which groups are behind, and whose offsets were reset or cannot be used. From kdump.state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.lag import CommittedPosition, LagContext, SharePosition, positions, share_positions
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import merged, newest, read_groups
from kdump.format.count_text import count_text
from kdump.format.iso_time import iso
from kdump.incident.doctor.answer import Priority
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.errors import not_known
from kdump.io.run import Run
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.state.as_of import Change
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE
from kdump.state.offset_rewinds import Rewind

BEHIND = 3
"""Number of groups with the largest lag that are named."""
MAX_REMOVED = 10_000
"""Maximum number of removed offsets that are remembered."""
SHOWN = 3
"""Number of a group's partitions that are evidence."""
NEW = 7 * 24 * 3600 * 1000
"""Age in ms up to which a change of offsets comes before other warnings: the default of offsets.retention.minutes."""
SET_OFFSETS = (
    "with the group stopped, set the offsets that it should continue from: kafka-consumer-groups.sh --bootstrap-server "
    "HOST:PORT --group {} --reset-offsets … --dry-run first"
)
NEVER = (
    "do not reset offsets while members of the group are running: they commit over it",
    "do not reset to latest to make the lag go away: the records in between are then never processed",
)


class Removal(NamedTuple):
    """A committed offset that was removed, with the offset and time (epoch ms) of the record that did it."""

    name: str
    before: int | None
    record: int
    time: int | None


def examine_groups(disks: Disks, on: Examination) -> None:
    """Report the groups of each cluster."""
    question = on.question
    for directories in disks.clusters.values():
        GroupsExamination(disks, directories, on).run()
    if not question.answer and not question.notExamined:
        question.notExamined.append(f"there is no {OFFSETS_TOPIC} on these disks")
    question.isComplete = not question.notExamined


class GroupsExamination:
    """Reads the coordinators' logs of one cluster once, and compares offsets with the partitions on the same disks."""

    def __init__(self, disks: Disks, directories: Sequence[LogDirectory], on: Examination) -> None:
        self.disks = disks
        self.directories = directories
        self.paths = disks.paths if len(disks.clusters) == 1 else [directory.path for directory in directories]
        self.on = on
        self._removed: dict[tuple[str, str], Removal] = {}
        """By group and partition, unless an offset was committed again."""
        self._deleted = 0
        """Number of committed offsets that were deleted, most of them because they expired."""

    def run(self) -> None:
        question = self.on.question
        logs = merged([log for directory in self.directories for log in logs_in(directory)])
        chosen = newest(logs)
        self._source = os.path.dirname(chosen[0].path) if chosen else ""
        if not chosen:
            return
        metadata = self.disks.metadata(self.directories)[1]
        ends = LogOffsetsByPartition(self.directories, metadata)
        context = LagContext(ends, metadata)
        try:
            groups = read_groups(
                chosen,
                on_change=self._change,
                room=ROOM_ALONE,
                run=Run(self.disks.options.limits, more=self.on.read_some),
            )
        except OutOfTime:
            run = command("groups", *self.paths)
            question.notExamined.append(f"the time was over before {OFFSETS_TOPIC} was read: run {run}")
            return
        question.partitions += len(chosen)
        self._groups(groups, context)
        for problem in [*groups.problems, *ends.problems][:1]:
            question.notExamined.append(f"the groups are incomplete: {problem}")

    def _change(self, change: Change) -> None:
        if change.entity != "offset" or change.group is None:
            return
        before, _ = change.fields.get("offset", (None, None))
        key = (change.group, change.name)
        if change.action == "removed":
            self._deleted += 1
            if len(self._removed) < MAX_REMOVED:
                self._removed[key] = Removal(change.name, before, change.offset, change.timestamp)
        elif change.action in ("created", "changed"):
            self._removed.pop(key, None)

    def _groups(self, groups: GroupCoordinatorState, context: LagContext) -> None:
        waiting = groups.pending_by_group()
        lags: list[tuple[int, str]] = []
        troubled = 0
        for group in sorted(groups.groups):
            lag = 0
            bad: list[CommittedPosition | SharePosition] = []
            every: Iterable[CommittedPosition | SharePosition] = chain(
                positions(groups, group, waiting, context), share_positions(groups, group, context)
            )
            for position in every:
                counted = position.recordsBehind if isinstance(position, CommittedPosition) else None
                lag += (position.lag or 0) if counted is None else counted
                if position.remark:
                    bad.append(position)
            lags.append((lag, group))
            troubled += bool(bad)
            if bad:
                self._out_of_range(group, bad)
            self._went_back(group, groups.rewinds.of(group, groups.offsets.get(group, {})))
            self._gone(group, context)
        lags.sort(key=lambda item: (-item[0], item[1]))
        answer = count_text(len(groups.groups), "group")
        behind = [f"{group} ({lag:,})" for lag, group in lags[:BEHIND] if lag]
        answer += f"; most behind: {', '.join(behind)}" if behind else "; none is behind"
        answer += f"; {troubled:,} with offsets that cannot be used" if troubled else ""
        if self._deleted:
            answer += f"; {count_text(self._deleted, 'offset was', 'offsets were')} deleted or expired"
        answer += AS_READ if groups.problems or self.on.is_partial else ""
        self.on.answer(not_known(groups.problems) + answer, self.disks.cluster_label(self._source))

    def _out_of_range(self, group: str, bad: list[CommittedPosition | SharePosition]) -> None:
        evidence = [f"{each.topic}-{each.partition}: offset {_offset(each)}: {each.remark}" for each in bad]
        resets = any("auto.offset.reset" in position.remark for position in bad)
        title = f"{count_text(len(bad), 'committed offset')} that it cannot continue from"
        self.on.item(
            Priority.GROUPS if resets else Priority.WARNING,
            "warning",
            "group-offsets-unusable",
            self._source,
            title,
            group=group,
            impact="auto.offset.reset decides where it continues" if resets else "",
            evidence=_first(evidence),
            offset=_offset(bad[0]),
            commands=(command("groups", *self.paths, "--group", group),),
            commandForAll=command("groups", *self.paths, "--offsets"),
            titleForAll="committed offsets that they cannot continue from",
            actions=(SET_OFFSETS.format(group),),
            never=NEVER,
        )

    def _went_back(self, group: str, moves: list[Rewind]) -> None:
        """Report offsets that went back."""
        if not moves:
            return
        evidence = [f"{move.text} at {iso(move.time)}, by offset {move.record} of {OFFSETS_TOPIC}" for move in moves]
        self.on.item(
            self._priority([move.time for move in moves]),
            "warning",
            "group-offsets-went-back",
            self._source,
            "committed offsets went back, by a reset or by a commit",
            group=group,
            impact="the records in between were read, or will be read, again",
            evidence=_first(evidence),
            offset=moves[0].before,
            commands=(command("groups", *self.paths, "--group", group, "--history"),),
            commandForAll=command("groups", *self.paths, "--history"),
            actions=("find out who did it: the history shows which record changed which offset, and when",),
            never=NEVER,
        )

    def _priority(self, times: list[int | None]) -> int:
        """Return the priority of changes at these times: old ones come with the other warnings."""
        is_new = any(time is None or self.on.now - time < NEW for time in times)
        return Priority.GROUPS if is_new else Priority.WARNING

    def _gone(self, group: str, context: LagContext) -> None:
        """Report offsets that were removed of a group that still exists, and of topics that do."""
        gone = [
            each for (name, _), each in self._removed.items() if name == group and _partition_exists(each.name, context)
        ]
        if not gone:
            return
        evidence = [
            f"{each.name}: offset {each.before}, removed at {iso(each.time)} by offset {each.record} of {OFFSETS_TOPIC}"
            for each in gone
        ]
        self.on.item(
            self._priority([removal.time for removal in gone]),
            "warning",
            "group-offsets-removed",
            self._source,
            f"{count_text(len(gone), 'committed offset was', 'committed offsets were')} removed: expired or deleted",
            group=group,
            impact="auto.offset.reset decides where it continues there",
            evidence=_first(evidence),
            offset=gone[0].before,
            commands=(command("groups", *self.paths, "--group", group, "--history"),),
            commandForAll=command("groups", *self.paths, "--history"),
            titleForAll="committed offsets were removed: expired or deleted",
            actions=(
                "compare with offsets.retention.minutes: they expire if the group is empty, or not subscribed to the "
                "topic, for that long",
                SET_OFFSETS.format(group),
            ),
            never=NEVER,
        )


def _first(evidence: list[str]) -> tuple[str, ...]:
    """Return the first lines, one for each partition, and the number of the others."""
    more = len(evidence) - SHOWN
    return (*evidence[:SHOWN], *([f"and {count_text(more, 'more partition')}"] if more > 0 else ()))


def _partition_exists(name: str, context: LagContext) -> bool:
    topic, _, number = name.rpartition("-")
    return not context.missing(topic, int(number), None)


def _offset(position: CommittedPosition | SharePosition) -> int | None:
    return position.offset if isinstance(position, CommittedPosition) else position.startOffset
