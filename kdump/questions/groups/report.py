"""Output of `kdump groups` for people: a summary, or groups one by one with their members and offsets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kdump.answer import answer_keys, row_style, values_of
from kdump.cluster.lag import CommittedPosition, SharePosition
from kdump.format.count_text import count_text, plain_count
from kdump.questions.groups.answer import DescribedGroup, GroupDescription, GroupMember
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables
from kdump.render.stdout import Output
from kdump.render.table import Table
from kdump.render.times import iso
from kdump.state.committed_offsets import Removal, Rewind
from kdump.text import shell_word


def sort_key(name: str | None) -> Callable[[Any], Any]:
    """Return a sort key for the JSON key of that name: numbers first, in descending order, then texts in ascending
    order, unknown values last."""

    def order(row: Any) -> Any:
        values = values_of(row.__class__)
        field = values[name](row) if name in values else None
        if isinstance(field, (int, float)):
            return (0, -field, "")
        return (1, 0, str(field)) if field not in (None, "") else (2, 0, "")

    return order


REMARKS = 3
"""Maximum number of remarks that are shown below a group of the summary."""
SUMMARY, MEMBERS, OFFSETS, DETAILS = "summary", "members", "offsets", "details"
"""What a GroupReport shows: a table of groups, of members or of offsets, or groups one by one."""


RESET_FILE = "reset-file"


class ResetFile(Sink[GroupDescription]):
    """Writes committed offsets as kafka-consumer-groups.sh --reset-offsets --from-file reads them: a line of group,
    topic, partition and offset for each (CsvUtils.CsvRecordWithGroup)."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def add(self, answer: GroupDescription) -> None:
        for position in answer.offsets:
            line = io.StringIO()
            fields = (position.groupId, position.topic, position.partition, position.offset)
            csv.writer(line, lineterminator="").writerow(fields)
            self.output.line(printable(line.getvalue()))


class GroupReport(Sink[GroupDescription]):
    """Writes described groups, `shown` as one of the above. If not `is_now`, they are as of an earlier time, and no lag
    is known."""

    def __init__(self, output: Output, tables: StateTables, shown: str, sort: str | None, is_now: bool) -> None:
        self.output, self.tables, self.shown, self.sort, self.is_now = output, tables, shown, sort, is_now
        self._remarks: dict[str, list[str]] = {}
        """Lines below the row of a group in the summary."""
        self._kept: list[Any] = []
        """Rows that have to be sorted, or to be in a later table."""
        self._shares: list[Any] = []
        self._table: Table | None = None
        self._shown = 0

    def add(self, answer: GroupDescription) -> None:
        if self.shown == DETAILS:
            if self._shown:
                self.output.line("")
            self.details(answer)
        elif self.shown == SUMMARY:
            places: list[CommittedPosition | SharePosition] = [*answer.offsets, *answer.shares]
            remarks = [
                f"    {printable(position.topic)}-{position.partition}: {printable(position.remark)}"
                for position in places
                if position.remark
            ]
            if len(remarks) > REMARKS:
                remarks[REMARKS:] = [f"    … and {len(remarks) - REMARKS:,} more: kdump groups --offsets"]
            self._remarks[answer.group.groupId] = [*remarks, *_lost_offsets(answer)]
            self._rows(DescribedGroup, (answer.group,), () if self.is_now else ("lagUnknown",))
        elif self.shown == MEMBERS:
            self._rows(GroupMember, answer.members)
        else:
            self._rows(CommittedPosition, answer.offsets)
            self._shares += answer.shares
        self._shown += 1

    def _rows(self, cls: type, rows: Iterable[Any], without: tuple[str, ...] = ()) -> None:
        """Write rows of the table, or keep them until all can be sorted."""
        if self._table is None:
            self._table = self.tables.open(cls, without)
        if self.sort is not None:
            self._kept += rows
            return
        self._write(self._table, rows)

    def _write(self, table: Table, rows: Iterable[Any]) -> None:
        for row in rows:
            table.add(row, row_style(row))
            for remark in self._remarks.pop(row.groupId, ()):
                table.line(remark, "torn")

    def end(self) -> None:
        if self._table is None:
            return
        self._write(self._table, sorted(self._kept, key=sort_key(self.sort)))
        self._table.flush()
        # The offsets of share groups are in another table, if it has the selected columns.
        names = self.tables.names
        if names is not None and not set(names) <= {key.name for key in answer_keys(SharePosition)}:
            return
        if self._shares and self._table.has_rows:
            self.output.line("")
        self.tables.write(sorted(self._shares, key=sort_key(self.sort)))

    def details(self, description: GroupDescription) -> None:
        """Write one group: its facts, its members, its offsets."""
        group = description.group
        name = printable(group.groupId)
        for line in self.output.wrapped(f"{name}: {self._facts(group)}", 2):
            self.output.line(line.replace(name, self.output.paint(name, "head"), 1) if line.startswith(name) else line)
        for remark in _lost_offsets(description):
            for line in self.output.wrapped(remark, 4):
                self.output.line(self.output.paint(line, "torn"))
        for rows in (description.members, description.offsets, description.shares):
            if rows:
                self.output.line("")
                self.tables.write(sorted(rows, key=sort_key(self.sort)), without=("groupId",))

    def _facts(self, group: DescribedGroup) -> str:
        zone = self.tables.zone
        facts = [f"{group.groupType} group", group.state]
        if group.isSimple:
            facts.append("offsets only: no member has ever joined")
        if group.epoch >= 0:
            facts.append(f"{'generation' if group.groupType == 'classic' else 'epoch'} {group.epoch}")
        if group.assignmentEpoch >= 0:
            facts.append(f"assignment of epoch {group.assignmentEpoch}")
        for name, label in (("protocolType", "protocol type"), ("protocol", "assignor"), ("leader", "leader")):
            if getattr(group, name):
                facts.append(f"{label} {printable(getattr(group, name))}")
        if group.topologyEpoch is not None:
            facts.append(f"topology epoch {group.topologyEpoch}")
        facts += [f"topic {printable(name)} {state}" for name, state in group.shareTopics.items()]
        facts += [
            f"regex {printable(name)} matches {plain_count(len(topics), 'topic')}"
            for name, topics in group.regexes.items()
        ]
        if group.stateTimestamp is not None:
            facts.append(f"since {iso(group.stateTimestamp, zone)}")
        if group.lag is not None:
            facts.append(f"lag {'at least ' if group.lagIsMinimum else ''}{group.lag}")
        facts.append(f"in __consumer_offsets-{group.offsetsPartition}")
        return ", ".join(facts)


def _lost_offsets(description: GroupDescription) -> Iterator[str]:
    """Yield lines on offsets that went back and that were removed, with where the history of the group is shown."""
    name = shell_word(description.group.groupId)
    changes: tuple[tuple[str, Sequence[Rewind | Removal]], ...] = (
        ("went back", description.rewinds),
        ("were removed (expired or deleted)", description.removed),
    )
    for what, places in changes:
        if places:
            more = f" and in {count_text(len(places) - 1, 'more partition')}" if len(places) > 1 else ""
            remark = f"committed offsets {what}: {places[0].text}{more}; when and how: --group {name} --history"
            yield f"    {printable(remark)}"
