"""Replays the records of __consumer_offsets into groups and offsets, with bounded memory.

Source: org.apache.kafka.coordinator.group.GroupCoordinatorShard, and GroupMetadataManager for groups. Where Kafka
throws an exception, so that the coordinator fails to load the partition, this replay notes a problem and continues."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kdump.core.newest_commits import MAX_BYTES, NewestCommits
from kdump.core.record_columns import RecordColumns
from kdump.format.control_record import decode_control
from kdump.format.numbers import LONG_MAX
from kdump.log.record import Record
from kdump.log.region import DefaultRecordBatch
from kdump.state import group_members
from kdump.state.as_of import SAYS_NOTHING, AsOf
from kdump.state.groups import CLASSIC, Group, GroupCoordinatorState, Member
from kdump.state.internal_records import ENTRY, ROOM, memory
from kdump.state.offset_replay import NO_PRODUCER_ID, OffsetReplay, number

MODERN = re.compile(r"(Consumer|Share|Streams)Group(\w+)Key")
"""Names of the key schemas of consumer, share and streams groups."""


class GroupReplay(OffsetReplay):
    """Applies the records of __consumer_offsets to `groups`. Call `begin` before each partition, and `flush` at the
    end."""

    def __init__(self, groups: GroupCoordinatorState, room: int = ROOM) -> None:
        super().__init__(groups, room)
        self.newest = NewestCommits(MAX_BYTES if room <= ROOM else 3 * MAX_BYTES)
        self.newest_name = ""
        """The name with which the problems of these commits are noted."""

    def begin(self, partition: int, name: str) -> None:
        self.flush()
        super().begin(partition, name)

    def take(self, batch: DefaultRecordBatch, columns: RecordColumns, row: int, moment: AsOf, name: str) -> int:
        """Take the commits up to `moment` from the records of a batch from number `row` on: if no changes are reported,
        they wait until `flush`, or until a record of another kind. Returns the number of the first record that is not
        taken. `name`: with which problems are noted."""
        if self.on_change is not None:
            return row
        self.newest_name = name
        last_offset = LONG_MAX if moment.offset is None else moment.offset
        last_time = LONG_MAX if moment.time is None else moment.time
        return self.newest.put(columns, row, batch.header, last_offset, last_time)

    def apply(self, record: Record) -> None:
        """Apply a record; one that does not decode changes nothing."""
        self.flush()
        self._apply(record)

    def flush(self) -> None:
        """Apply the commits that wait."""
        name, self.name = self.name, self.newest_name
        for key, offset, value in self.newest.take():
            self.offset = offset
            decoded = self.read("group-coordinator", key, value)
            if decoded is not None:
                self.commit(NO_PRODUCER_ID, *decoded)
        self.name = name

    def _apply(self, record: Record) -> None:
        self.go_to(record)
        if not self.fits(record):
            return
        if record.is_control:
            control = decode_control(record.key, record.value)
            if control.type in ("COMMIT", "ABORT"):
                self.end_transaction(record.batch.producerId or 0, control.type)
            return
        decoded = self.read("group-coordinator", record.key, record.value)
        if decoded is None:
            return
        key, value = decoded
        modern = MODERN.fullmatch(f"{self.record}Key")
        if self.record in ("OffsetCommit", "LegacyOffsetCommit"):
            producer_id = record.batch.producerId
            self.commit(NO_PRODUCER_ID if producer_id is None else producer_id, key, value)
        elif self.record == "GroupMetadata":
            self.classic(key["group"], value)
        elif modern is not None:
            self.modern(modern[1].lower(), modern[2], key, value)

    def classic(self, name: str, value: dict[str, Any] | None) -> None:
        if value is None:
            self.remove(name)
            return
        members = {member.memberId: member for member in group_members.classic(value, self.at)}
        time = value.get("currentStateTimestamp")
        group = Group(
            name,
            CLASSIC,
            self.partition,
            value["generation"],
            value["protocolType"] or None,
            value["protocol"],
            value["leader"],
            number(time),
            members=members,
        )
        before = self.groups.groups.get(name)
        if self.charge(group_size(group) - (group_size(before) if before else 0)):
            self.groups.groups[name] = group
            self.report_group(before, group)

    def modern(self, kind: str, record_kind: str, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        """Apply a record of a consumer, share or streams group. `kind` is the type of the group, `record_kind` that of
        the record."""
        name = key["groupId"]
        before = self.groups.groups.get(name)
        if before is not None and (before.type != kind or before.is_deleted):
            if value is None:
                return
            if not before.isSimple and not before.is_deleted:
                self.at(f"group {name} is of type {before.type}, but the record is of type {kind}")
            before = None
        if before is None and value is None:
            return  # the group is gone already
        if value is None and record_kind == "Metadata":
            self.remove(name)
            return
        group = before or Group(name, kind, self.partition)
        member = key.get("memberId", "")
        # A record changes at most one member, and there may be thousands: measure only that one.
        old_size = _own_size(before, member) if before else 0
        old = _fields(group) if before and self.on_change else {}
        old_member = group.members.get(member)
        apply = MODERN_RECORDS.get(record_kind)
        if apply is None:
            return
        apply(group, key, value)
        if not self.charge(_own_size(group, member) - old_size):
            group.members.pop(member, None)
            self.room += old_size - _own_size(group, member)
            return
        self.groups.groups[name] = group
        if self.on_change is not None:
            self.report_change("group", name, name, old, _fields(group))
            new_member = group.members.get(member)
            self.report_members(name, *({} if m is None else {member: m} for m in (old_member, new_member)))

    def remove(self, name: str) -> None:
        before = self.groups.groups.pop(name, None)
        if before is None:
            return
        self.room += group_size(before)
        self.groups.removed.add_group(name, self.partition, self.offset, self.timestamp)
        if self.on_change is not None and not before.isSimple:
            self.report_change("group", name, name, _fields(before), {})
        if name in self.groups.offsets:
            # Offsets have tombstones of their own. Until these are read, keep a deleted group for the offsets.
            self.groups.groups[name] = Group(name, before.type, self.partition, is_deleted=True)
            self.charge(group_size(self.groups.groups[name]))

    def report_group(self, before: Group | None, after: Group) -> None:
        if self.on_change is not None:
            old = _fields(before) if before and not before.isSimple and not before.is_deleted else {}
            self.report_change("group", after.groupId, after.groupId, old, _fields(after))
            self.report_members(after.groupId, before.members if before else {}, after.members)

    def report_members(self, group: str, old: dict[str, Member], new: dict[str, Member]) -> None:
        for name in {**old, **new}:
            before, after = (members[name]._asdict() if name in members else {} for members in (old, new))
            self.report_change("member", name, group, before, after)


def finish(groups: GroupCoordinatorState) -> None:
    """Remove simple and deleted groups that have no offsets left, and transactions without pending commits."""
    for key in [key for key, waiting in groups.pending.items() if not waiting]:
        del groups.pending[key]
    waiting_for = {group for waiting in groups.pending.values() for group, _, _ in waiting}
    for name, group in list(groups.groups.items()):
        bare = group.isSimple or group.is_deleted
        if bare and name not in groups.offsets and name not in waiting_for:
            del groups.groups[name]


def group_size(group: Group) -> int:
    """Return about how many bytes of memory a group takes, without its offsets."""
    return _own_size(group, "") + sum(ENTRY + memory(member) for member in group.members.values())


def _own_size(group: Group, member: str) -> int:
    """Return the same for the group itself and only one of its members."""
    size = ENTRY + 400 + memory(group.groupId) + memory(group.regexes) + memory(group.shareTopics)
    return size + (ENTRY + memory(group.members[member]) if member in group.members else 0)


def _fields(group: Group) -> dict[str, Any]:
    """Return the fields of a group, without its members, that --history shows."""
    fields: dict[str, Any] = {name: getattr(group, name) for name in HISTORY_FIELDS}
    fields |= {f"regex {regex}": ", ".join(topics) for regex, topics in group.regexes.items()}
    fields |= {f"share topic {topic}": state for topic, state in group.shareTopics.items()}
    return {name: value for name, value in fields.items() if value not in SAYS_NOTHING and value != -1}


HISTORY_FIELDS: tuple[str, ...] = (
    *("type", "state", "epoch", "protocolType", "protocol", "leader", "assignmentEpoch", "topologyEpoch"),
)
HISTORY_FIELDS += ("validatedTopologyEpoch", "subtopologies")

MODERN_RECORDS: dict[str, Callable[[Group, dict[str, Any], dict[str, Any] | None], None]] = {
    "Metadata": group_members.group_epoch,
    "PartitionMetadata": group_members.nothing,
    "MemberMetadata": group_members.member_metadata,
    "TargetAssignmentMetadata": group_members.target_epoch,
    "TargetAssignmentMember": group_members.target,
    "CurrentMemberAssignment": group_members.current,
    "RegularExpression": group_members.regex,
    "StatePartitionMetadata": group_members.share_topics,
    "Topology": group_members.topology,
}
"""Handlers of consumer, share and streams group records, by record name without the group type."""
