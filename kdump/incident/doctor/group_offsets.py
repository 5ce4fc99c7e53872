"""Which groups are behind, and whose offsets were reset or cannot be used. From kdump.state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain

from kdump.cluster.find_state_logs import logs_in
from kdump.cluster.lag import (
    CommittedPosition,
    LagContext,
    SharePosition,
    behind_text,
    positions,
    removals,
    share_positions,
)
from kdump.cluster.log_offsets import LogOffsetsByPartition
from kdump.cluster.read_groups import merged, newest, read_groups
from kdump.cluster.topic_coverage import coordinators_covered
from kdump.format.count_text import count_text
from kdump.format.iso_time import iso
from kdump.incident.doctor.answer import AffectedRange
from kdump.incident.doctor.disks import Disks
from kdump.incident.doctor.examination import AS_READ, Examination, OutOfTime, command
from kdump.io.errors import not_known
from kdump.io.run import Run
from kdump.log.internal_topics import OFFSETS_TOPIC
from kdump.log.log_directory import LogDirectory
from kdump.problems.catalogue import CLIENTS, DEGRADED, OLD
from kdump.problems.problem import Problem
from kdump.state.committed_offsets import Removal, Rewind
from kdump.state.groups import GroupCoordinatorState
from kdump.state.internal_records import ROOM_ALONE
from kdump.text import shell_word

BEHIND = 3
"""Number of groups with the largest lag that are named."""
SHOWN = 3
"""Number of a group's partitions that are evidence."""
NEW = 7 * 24 * 3600 * 1000
"""Age in ms up to which a change of offsets comes before other warnings: the default of offsets.retention.minutes."""


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
        self.disks, self.directories = disks, directories
        self.paths = disks.paths if len(disks.clusters) == 1 else [directory.path for directory in directories]
        self.on = on

    def run(self) -> None:
        question = self.on.question
        logs = merged([log for directory in self.directories for log in logs_in(directory)])
        chosen = newest(logs)
        self._source = os.path.dirname(chosen[0].path) if chosen else ""
        if not chosen:
            return
        metadata = self.disks.metadata(self.directories)[1]
        ends = LogOffsetsByPartition(
            self.directories, metadata, self.disks.node_id, partial(self.disks.remote_log, metadata)
        )
        context = LagContext(ends, metadata)
        try:
            run = Run(self.disks.options.limits, more=self.on.read_some)
            groups = read_groups(chosen, room=ROOM_ALONE, run=run)
        except OutOfTime:
            self.on.out_of_time("groups", *self.paths, before=f"{OFFSETS_TOPIC} was read")
            return
        question.partitions += len(chosen)
        self._groups(groups, context)
        for problem in [*groups.problems, *ends.problems][:1]:
            question.notExamined.append(f"the groups are incomplete: {problem}")

    def _groups(self, groups: GroupCoordinatorState, context: LagContext) -> None:
        waiting = groups.pending_by_group()
        lags: list[tuple[int, str, bool]] = []
        troubled = unknown = losing = 0
        for group in sorted(groups.groups):
            lag, is_known, is_minimum = 0, True, False
            bad: list[CommittedPosition | SharePosition] = []
            is_losing = False
            every: Iterable[CommittedPosition | SharePosition] = chain(
                positions(groups, group, waiting, context), share_positions(groups, group, context)
            )
            for position in every:
                counted = position.recordsBehind if isinstance(position, CommittedPosition) else None
                lag += (position.lag or 0) if counted is None else counted
                is_started = isinstance(position, CommittedPosition) or position.startOffset >= 0
                is_minimum |= position.lagIsMinimum or not is_started
                is_known &= position.logEndOffset is not None or bool(position.remark)
                if position.remark and self._is_lost(position):
                    is_losing = True
                elif position.remark:
                    bad.append(position)
            lags.append((lag, group, is_minimum or not is_known))
            unknown += not is_known
            troubled += bool(bad)
            losing += is_losing
            if bad:
                self._out_of_range(group, bad)
            self._went_back(group, groups.rewinds.of(group, groups.offsets.get(group, {})))
            self._removed(group, removals(groups, group, context))
        lags.sort(key=lambda item: (-item[0], item[1]))
        coverages = coordinators_covered(groups, context.metadata).values()
        answer = f"{count_text(len(groups.groups), 'group')} in {' and '.join(each.text for each in coverages)}"
        behind = [f"{group} ({'at least ' * least}{lag:,})" for lag, group, least in lags[:BEHIND] if lag]
        none = "none is known to be behind" if any(least for _, _, least in lags) else "none is behind"
        answer += f"; most behind: {', '.join(behind)}" if behind else f"; {none}"
        if unknown:
            answer += f"; {unknown:,} with partitions whose log is not on these disks: their lag is unknown"
        if context.disks.behind:
            answer += f"; {behind_text(context.disks)}"
        answer += f"; {troubled:,} with offsets that cannot be used" if troubled else ""
        answer += f"; {losing:,} with offsets above the new end of a log" if losing else ""
        if groups.removed.count:
            answer += f"; {count_text(groups.removed.count, 'offset was', 'offsets were')} deleted or expired"
        answer += AS_READ if groups.problems or self.on.is_partial else ""
        self.on.answer(not_known(groups.problems) + answer, self.disks.cluster_label(self._source))

    def _is_lost(self, position: CommittedPosition | SharePosition) -> bool:
        """Return True if a startup loses the offset, which is then not a problem of the group."""
        offset, end = _offset(position), position.logEndOffset
        if offset is None or end is None:
            return False
        of, offsets = (position.topic, position.partition), (min(end, offset), offset)
        places = (AffectedRange(directory.path, *of, None, None, None, *offsets) for directory in self.directories)
        return any(self.on.has_cause("group-offsets-unusable", self.on.question.question, each) for each in places)

    def _out_of_range(self, group: str, bad: list[CommittedPosition | SharePosition]) -> None:
        evidence = [f"{each.topic}-{each.partition}: offset {_offset(each)}: {each.remark}" for each in bad]
        resets = any("auto.offset.reset" in position.remark for position in bad)
        above = next((each for each in bad if isinstance(each, SharePosition) and _is_above(each)), None)
        facts = {"shareGroup": isinstance(bad[0], SharePosition), "aboveLogEnd": above is not None}
        case = "resets" if resets else "shares" if facts["shareGroup"] else ""
        count = count_text(len(bad), "committed offset")
        values: dict[str, object] = {"count": count, "GROUP": group, "TOPIC": (above or bad[0]).topic}
        self.on.report(
            Problem("group-offsets-unusable", values | _reset(bad), facts, case),
            self._source,
            urgency=CLIENTS if resets else DEGRADED,
            group=group,
            evidence=_first(evidence),
            offset=_offset(bad[0]),
            commands=(command("groups", *self.paths, "--group", group),),
            commandForAll=command("groups", *self.paths, "--offsets"),
        )

    def _went_back(self, group: str, moves: list[Rewind]) -> None:
        """Report offsets that went back."""
        if not moves:
            return
        evidence = [f"{move.text} at {iso(move.time)}, by offset {move.record} of {OFFSETS_TOPIC}" for move in moves]
        self.on.report(
            Problem("group-offsets-went-back"),
            self._source,
            urgency=self._urgency([move.time for move in moves]),
            group=group,
            evidence=_first(evidence),
            offset=moves[0].before,
            commands=(command("groups", *self.paths, "--group", group, "--history"),),
            commandForAll=command("groups", *self.paths, "--history"),
        )

    def _urgency(self, times: list[int | None]) -> str:
        """Return the urgency of changes at these times."""
        is_new = any(time is None or self.on.now - time < NEW for time in times)
        return DEGRADED if is_new else OLD

    def _removed(self, group: str, removed: list[Removal]) -> None:
        """Report offsets that were removed of a group that still exists: all for which it has none now, and those that
        it has committed again only if that is new, or if it has not caught up since."""
        gone = [
            each
            for each in removed
            if each.after is None or each.after < each.before or self._urgency([each.time]) == DEGRADED
        ]
        if not gone:
            return
        count = count_text(len(gone), "committed offset was", "committed offsets were")
        facts = {"committedAgain": all(each.after is not None for each in gone)}
        to_offset = _to_offset(gone[0].topic, gone[0].partition, gone[0].before)
        evidence = [
            f"{each.text}, removed at {iso(each.time)} by offset {each.record} of {OFFSETS_TOPIC}" for each in gone
        ]
        self.on.report(
            Problem("group-offsets-removed", {"count": count, "GROUP": group, **to_offset}, facts),
            self._source,
            urgency=self._urgency([removal.time for removal in gone]),
            group=group,
            evidence=_first(evidence),
            offset=gone[0].before,
            commands=(command("groups", *self.paths, "--group", group, "--history"),),
            commandForAll=command("groups", *self.paths, "--history"),
        )


def _first(evidence: list[str]) -> tuple[str, ...]:
    """Return the first lines, one for each partition, and the number of the others."""
    more = len(evidence) - SHOWN
    return (*evidence[:SHOWN], *([f"and {count_text(more, 'more partition')}"] if more > 0 else ()))


def _is_above(position: SharePosition) -> bool:
    return position.logEndOffset is not None and position.startOffset > position.logEndOffset


def _reset(bad: list[CommittedPosition | SharePosition]) -> dict[str, object]:
    """Return the fields of an action for the first of these positions: the offset nearest to it that the log has."""
    first, offset = bad[0], _offset(bad[0])
    if offset is None or first.logStartOffset is None or first.logEndOffset is None:
        return _to_offset(first.topic, first.partition, None)
    return _to_offset(first.topic, first.partition, min(max(offset, first.logStartOffset), first.logEndOffset))


def _to_offset(topic: str, partition: int, offset: int | None) -> dict[str, object]:
    return {"at": shell_word(f"{topic}:{partition}"), "to": "OFFSET" if offset is None else offset}


def _offset(position: CommittedPosition | SharePosition) -> int | None:
    return position.offset if isinstance(position, CommittedPosition) else position.startOffset
