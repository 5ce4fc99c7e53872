"""Replays offset commits into committed offsets and those pending in transactions, with bounded memory.

Source: org.apache.kafka.coordinator.group.OffsetMetadataManager (replay)."""

from __future__ import annotations

from typing import Any

from kdump.format.coordinator_record import decode_coordinator_record
from kdump.format.count_text import plain_count
from kdump.format.kafka_uuid import ZERO_UUID
from kdump.io.errors import NotKnown, within
from kdump.log.record import Record
from kdump.state.as_of import Change, ChangeListener, differences
from kdump.state.committed_offsets import OffsetAndMetadata
from kdump.state.groups import CLASSIC, Group, GroupCoordinatorState
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, ROOM, memory, too_large

NO_PRODUCER_ID = -1
QUIET = ("commitTimestamp", "expireTimestamp", "recordOffset")
"""Fields that differ in every commit and therefore do not count as a change."""


class OffsetReplay:
    """Applies the commits of a log to `groups`, using at most `room` bytes of memory; calls `on_change` with each
    change."""

    on_change: ChangeListener | None = None

    def __init__(self, groups: GroupCoordinatorState, room: int = ROOM) -> None:
        self.groups = groups
        self.room = self.all_room = room
        self.is_full = False
        self.partition = 0
        self.name = ""
        self.offset = 0
        self.timestamp: int | None = None
        self.record = ""
        self.noted_newer: set[tuple[str, str]] = set()
        """Logs, with what of a newer release has been noted of each: at the first such record."""
        self.open: dict[str, set[int]] = {}
        """Producer IDs of the partition's open transactions, by the groups with pending offsets in them."""

    def begin(self, partition: int, name: str) -> None:
        """Start with the records of this partition. `name` is the prefix of problems, if not empty."""
        self.partition, self.name = partition, name
        self.open.clear()

    def note(self, problem: str) -> None:
        if len(self.groups.problems) < MAX_PROBLEMS:
            self.groups.problems.append(within(self.name, problem) if self.name else problem)

    def at(self, problem: str) -> None:
        self.note(f"at offset {self.offset}: {problem}")

    def go_to(self, record: Record) -> None:
        """Attribute the changes and problems that follow to this record."""
        assert record.offset is not None
        self.offset, self.timestamp = record.offset, record.timestamp

    def fits(self, record: Record) -> bool:
        """Return True if a record is small enough to decode; notes a problem if it is not."""
        if too_large(record):
            self.at(
                f"the record is too large: key {plain_count(record.keySize, 'byte')}"
                f", value {plain_count(record.valueSize, 'byte')}"
            )
            return False
        return True

    def read(
        self, folder: str, key: bytes | None, value: bytes | None
    ) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
        """Return the decoded key and value of a record of the coordinator whose schemas are in `folder`; the value is
        None in a tombstone. Sets `record` to the name of its schema. Returns None, and notes a problem, if the record
        does not decode."""
        decoded = decode_coordinator_record(folder, key, value)
        problem = decoded.key.problem or (decoded.value.problem if decoded.value else None)
        if decoded.newer and (self.name, decoded.newer) not in self.noted_newer:
            self.noted_newer.add((self.name, decoded.newer))
            self.note(NotKnown(within(self.name, f"at offset {self.offset}: {decoded.newer}")))
        if problem is not None:
            if not decoded.newer:
                self.at(str(problem))
            return None
        assert decoded.key.schema is not None
        assert decoded.key.decoded is not None
        self.record = decoded.key.schema.name.removesuffix("Key")
        return (
            decoded.key.decoded.value,
            decoded.value.decoded.value if decoded.value and decoded.value.decoded else None,
        )

    def charge(self, size: int) -> bool:
        """Take `size` bytes from the memory budget. Returns False if there is no room; the caller then drops the
        item."""
        if size > self.room:
            if not self.is_full:
                self.at(f"too many groups and offsets to keep in memory ({plain_count(self.all_room, 'byte')})")
            self.is_full = True
            return False
        self.room -= size
        return True

    def commit(self, producer_id: int, key: dict[str, Any], value: dict[str, Any] | None) -> None:
        group, at = key["group"], (key["topic"], key["partition"])
        if value is None:
            self.forget_offset(group, at)
            return
        topic_id = value.get("topicId")
        commit = OffsetAndMetadata(
            value["offset"],
            number(value.get("leaderEpoch")),
            value["metadata"],
            value["commitTimestamp"],
            number(value.get("expireTimestamp")),
            None if topic_id == ZERO_UUID else topic_id,
            self.offset,
        )
        if group not in self.groups.groups and self.charge(ENTRY + memory(group)):
            self.groups.groups[group] = Group(group, CLASSIC, self.partition, isSimple=True)
        if producer_id == NO_PRODUCER_ID:
            self.put_offset(group, at, commit)
            return
        waiting = self.groups.pending.get((self.partition, producer_id), {})
        before = waiting.get((group, at[0], at[1]))
        if self.charge(_size(commit) - (_size(before) if before else 0)):
            self.groups.pending[self.partition, producer_id] = waiting
            waiting[group, at[0], at[1]] = commit
            self.open.setdefault(group, set()).add(producer_id)
            self.report_offset(group, at, self.groups.offsets.find(group, at), commit, "pending")

    def put_offset(self, group: str, at: tuple[str, int], commit: OffsetAndMetadata) -> None:
        before = self.groups.offsets.find(group, at)
        if self.charge(_size(commit) - (_size(before) if before else 0)):
            if before is not None and commit.offset < before.offset:
                self.groups.rewinds.add(group, at, before.offset, commit)
            self.groups.offsets.put(group, at, commit)
            self.report_offset(group, at, before, commit)

    def forget_offset(self, group: str, at: tuple[str, int]) -> None:
        """Apply a tombstone: remove the committed offset and any pending ones."""
        before = self.groups.offsets.pop(group, at)
        if before is not None:
            self.room += _size(before)
            self.groups.removed.add(group, at, before, self.offset, self.timestamp)
            self.groups.removed.add_group(group, self.partition, self.offset, self.timestamp)
            self.report_offset(group, at, before, None)
        for producer_id in self.open.get(group, ()):
            waiting = self.groups.pending.get((self.partition, producer_id), {})
            gone = waiting.pop((group, at[0], at[1]), None)
            if gone is not None:
                self.room += _size(gone)
                self.report_offset(group, at, gone, None)

    def end_transaction(self, producer_id: int, marker: str) -> None:
        waiting = self.groups.pending.pop((self.partition, producer_id), None)
        self.record = marker
        for (group, topic, partition), commit in (waiting or {}).items():
            at = (topic, partition)
            self.room += _size(commit)
            self.open.get(group, set()).discard(producer_id)
            committed = self.groups.offsets.find(group, at)
            if marker == "ABORT":
                self.report_offset(group, at, commit, committed, "aborted")
            # The newer record wins, whatever the order in which transactions end.
            elif committed is None or commit.recordOffset > committed.recordOffset:
                self.put_offset(group, at, commit)

    def report_offset(
        self,
        group: str,
        at: tuple[str, int],
        old: OffsetAndMetadata | None,
        new: OffsetAndMetadata | None,
        action: str = "",
    ) -> None:
        if self.on_change is not None:
            before, after = ({} if offset is None else offset._asdict() for offset in (old, new))
            self.report_change("offset", f"{at[0]}-{at[1]}", group, before, after, action, quiet=QUIET)

    def report_change(
        self,
        entity: str,
        name: str,
        group: str,
        old: dict[str, Any],
        new: dict[str, Any],
        action: str = "",
        quiet: tuple[str, ...] = (),
    ) -> None:
        """Pass a change to `on_change`; old is empty for a created entity, new for a removed one. Changes only in
        `quiet` fields are not passed."""
        if self.on_change is None:
            return
        changed = {n: pair for n, pair in differences(old or None, new or None).items() if n not in quiet}
        if old and new and not changed and not action:
            return
        action = action or ("created" if not old else "removed" if not new else "changed")
        change = Change(self.offset, self.timestamp, self.record, entity, name, action, changed, group, self.partition)
        self.on_change(change)


def _size(commit: OffsetAndMetadata) -> int:
    return ENTRY + 100 + memory(commit.metadata)


def number(value: int | None) -> int | None:
    return None if value is None or value < 0 else value
