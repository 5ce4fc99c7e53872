"""Text report of `kdump restore`: the plan, what forbids it, and what was done."""

from __future__ import annotations

from typing import Any

from kdump.format.count_text import count_text
from kdump.format.size_text import size_text
from kdump.questions.restore.answer import (
    RestoreDifference,
    RestoreGroup,
    RestorePartition,
    RestoreRefusal,
    RestoreSummary,
)
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import Column, Table

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
        columns: list[Column] = [
            Column("partition", "partition", lambda plan: printable(plan.name), False, 6, 12),
            Column("to", "to", _target, False, 5, 10),
            Column("records", "records", lambda plan: f"{plan.records:,}", True),
            Column("in target", "in target", lambda plan: f"{plan.restored:,}", True),
            Column("size", "size", lambda plan: size_text(plan.bytes), True),
            Column("offsets", "offsets", _offsets),
            Column("left out", "left out", _left_out, False, 4, 8),
            Column("hash", "hash", lambda plan: plan.hash or "-", False, 2, 8),
        ]
        table = Table(columns, self.output, full=self.full)
        for plan in self._plans:
            table.add(plan)
        table.flush()
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
        if self._groups:
            self._group_table()
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

    def _group_table(self) -> None:
        columns: list[Column] = [
            Column("group", "group", lambda row: printable(row.group), False, 3, 8),
            Column("partition", "partition", lambda row: printable(f"{row.topic}-{row.partition}"), False, 3, 8),
            Column("on the disk", "on the disk", lambda row: str(row.committed), True),
            Column("before", "before", lambda row: "-" if row.before is None else str(row.before), True),
            Column("after", "after", lambda row: "-" if row.after is None else str(row.after), True),
            Column("note", "note", lambda row: printable(row.note), False, 4, 10),
        ]
        table = Table(columns, self.output, full=self.full)
        for row in self._groups:
            table.add(row, "bad" if row.note else "")
        table.flush()


def _target(plan: RestorePartition) -> str:
    number = "any" if plan.targetPartition is None else str(plan.targetPartition)
    return printable(f"{plan.targetTopic}-{number}")


def _offsets(plan: RestorePartition) -> str:
    return "" if plan.firstOffset is None else f"{plan.firstOffset}..{plan.lastOffset}"


def _left_out(plan: RestorePartition) -> str:
    parts = [f"{count:,} {cause}" for cause, count in plan.excluded.items() if count]
    parts += [f"{plan.hidden:,} not committed"] if plan.hidden else []
    parts += [f"{plan.skipped:,} too large"] if plan.skipped else []
    return ", ".join(parts) or "-"
