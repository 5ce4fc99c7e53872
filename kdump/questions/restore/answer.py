"""Answers of `kdump restore`: what is produced to which topic, what forbids it, and how the target compares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from kdump.answer import BYTES, EPOCH_MS, OFFSET, Doc, PathText, Shown, answer, columns
from kdump.format.count_text import size_text


class RestoreError(Exception):
    """The request cannot be carried out, or the cluster does not allow it; the message is one line with what to do."""


def _or(number: int | None, unknown: str) -> str:
    return unknown if number is None else str(number)


@columns(
    source=Shown("partition", 6, 12, cell=lambda plan: plan.name),
    target=Shown("to", 5, 10, cell=lambda plan: f"{plan.targetTopic}-{_or(plan.targetPartition, 'any')}"),
    selected=Shown("records", right=True, cell=lambda plan: f"{plan.records:,}"),
    there=Shown("in target", right=True, cell=lambda plan: f"{plan.restored:,}"),
    size=Shown(right=True, cell=lambda plan: size_text(plan.bytes)),
    offsets=Shown(cell=lambda plan: "" if plan.firstOffset is None else f"{plan.firstOffset}..{plan.lastOffset}"),
    left=Shown("left out", 4, 8, cell=lambda plan: plan.left_out or "-"),
    sum=Shown("hash", 2, 8, cell=lambda plan: plan.hash or "-"),
)
@answer("restorePartition")
@dataclass
class RestorePartition:
    """A partition: its records that are selected, and how many of them the target has."""

    topic: Annotated[str, Doc("topic of the source")]
    partition: Annotated[int, Doc("partition of the source")]
    path: Annotated[PathText, Doc("the source")]
    targetTopic: Annotated[str, Doc("topic to which the records go")]
    targetPartition: Annotated[int | None, Doc("partition to which they go; null with --repartition")] = None
    records: Annotated[int, Doc("number of selected records")] = 0
    bytes: Annotated[int, Doc("their keys, values and headers", BYTES)] = 0
    firstOffset: Annotated[int | None, Doc("offset of the first one in the source; null if there are none", OFFSET)] = (
        None
    )
    lastOffset: Annotated[int | None, Doc("offset of the last one", OFFSET)] = None
    oldest: Annotated[int | None, Doc("lowest timestamp of a selected record; null if none has one", EPOCH_MS)] = None
    newest: Annotated[int | None, Doc("highest timestamp", EPOCH_MS)] = None
    largest: Annotated[int, Doc("size of the largest record, not compressed", BYTES)] = 0
    hidden: Annotated[int, Doc("records that a read_committed consumer does not receive; 0 with --all")] = 0
    excluded: Annotated[dict[str, int], Doc("records left out on request, by option")] = field(default_factory=dict)
    late: Annotated[int, Doc("of these, how many have timestamps before a time in --until, but follow the cut")] = 0
    skipped: Annotated[int, Doc("records that --skip-too-large leaves out")] = 0
    undecided: Annotated[int, Doc("records of which nothing shows whether --without matches")] = 0
    untimed: Annotated[int, Doc("records without a timestamp, which get the time at which they are produced")] = 0
    restored: Annotated[int, Doc("number of selected records that the target has already, from an earlier run")] = 0
    cleaned: Annotated[
        int, Doc("of these, with --check: those that the target's log cleaner may have removed, and that are not there")
    ] = 0
    hash: Annotated[
        str, Doc("hash of the selected records in order: key, value, headers and timestamp; hexadecimal")
    ] = ""
    nullKeys: Annotated[int, Doc("number of records without a key")] = 0
    unframedKeys: Annotated[int, Doc("number of keys that begin with no schema ID")] = 0
    unframedValues: Annotated[int, Doc("number of values that begin with no schema ID")] = 0
    damages: Annotated[int, Doc("number of damaged places, and of batches out of order")] = 0

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def left_out(self) -> str:
        """How many records are left out, and why."""
        parts = [f"{count:,} {cause}" for cause, count in self.excluded.items() if count]
        parts += [f"{self.hidden:,} not committed"] if self.hidden else []
        parts += [f"{self.skipped:,} too large"] if self.skipped else []
        return ", ".join(parts)


@answer("restoreRefusal")
class RestoreRefusal(NamedTuple):
    """Why nothing is produced, and the command that mends it."""

    topic: Annotated[str, Doc("topic of the target, or of the source if that is damaged; empty for the cluster")]
    reason: Annotated[PathText, Doc("what forbids it")]
    action: Annotated[PathText, Doc("command or option that helps")]


@answer("restoreDifference")
class RestoreDifference(NamedTuple):
    """A record of which --check finds that the target lacks it, has another one, or has it in addition."""

    topic: Annotated[str, Doc("topic of the target")]
    partition: Annotated[int | None, Doc("partition of the target; null with --repartition")]
    kind: Annotated[str, Doc("missing, differs or extra")]
    offset: Annotated[int | None, Doc("offset of the record in the source; null for an extra one", OFFSET)]
    targetOffset: Annotated[int | None, Doc("offset of the record in the target; null for a missing one", OFFSET)]
    reason: Annotated[str, Doc("what differs")] = ""


@columns(
    name=Shown("partition", 3, 8, cell=lambda row: f"{row.topic}-{row.partition}", after="group"),
    was=Shown("before", right=True, cell=lambda row: _or(row.before, "-"), after="committed"),
    then=Shown("after", right=True, cell=lambda row: _or(row.after, "-"), after="was"),
)
@answer("restoreGroup")
class RestoreGroup(NamedTuple):
    """A committed offset of a group, translated to the target."""

    group: Annotated[str, Doc("group"), Shown(rank=3, least=8)]
    topic: Annotated[str, Doc("topic of the target")]
    partition: Annotated[int, Doc("partition")]
    committed: Annotated[int, Doc("committed offset on the disk", OFFSET), Shown("on the disk")]
    before: Annotated[int | None, Doc("committed offset in the target before; null if there is none", OFFSET)]
    after: Annotated[int | None, Doc("committed offset in the target after; null if it was not set", OFFSET)]
    note: Annotated[str, Doc("why it was not set; empty if it was"), Shown(rank=4, least=10)] = ""


@answer("restoreSummary")
class RestoreSummary(NamedTuple):
    """Totals."""

    target: Annotated[str, Doc("bootstrap servers of the target")]
    partitions: Annotated[int, Doc("number of partitions")]
    records: Annotated[int, Doc("number of selected records")]
    bytes: Annotated[int, Doc("their keys, values and headers", BYTES)]
    produced: Annotated[int, Doc("number of records that this run has produced")]
    refusals: Annotated[int, Doc("number of reasons for which nothing is produced")]
    differences: Annotated[int | None, Doc("number of differences that --check found; null without --check")]
    done: Annotated[bool, Doc("whether the target has all selected records, by the ledger or by --check")]
    seconds: Annotated[float, Doc("elapsed time", "s")]
