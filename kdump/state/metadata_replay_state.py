"""The image of the cluster while metadata records are replayed into it, with bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, TypeVar

from kdump.core.partition_records import PartitionRecords
from kdump.format.count_text import plain_count
from kdump.log.record import Record
from kdump.state.as_of import Change, ChangeListener, differences
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, ROOM, memory
from kdump.state.left_out_records import RecordChoice
from kdump.state.metadata_image import MetadataImage, PartitionRegistration, TopicImage
from kdump.state.metadata_problem import Kind, MetadataProblem
from kdump.state.metadata_refusal import Refusal, Rule

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReplayState:
    """What the handlers of records change. `room`: memory budget in bytes; `on_change` is called with each change."""

    on_change: ChangeListener | None = None
    choice: RecordChoice | None = None
    """Which records are left out, and which are; only if the state will be written again: then the secrets of SCRAM
    credentials are kept."""

    def __init__(self, metadata: MetadataImage, room: int = ROOM) -> None:
        self.metadata = metadata
        self.room = self.all_room = room
        self.noted: Counter[Kind] = Counter()
        """Number of problems of each kind."""
        self.is_full = False
        self.known_ids: dict[str, str] = {}
        self.with_elr: dict[str, set[int]] = {}
        """Partitions with eligible leader replicas (ELR), by topic: a ClearElrRecord may clear all of them."""
        self.offset: int | None = None
        self.in_log = False
        """Whether the record is in the log, not in a snapshot."""
        self.number = -1
        """Number of records of the snapshot before it, without control records."""
        self.timestamp: int | None = None
        self.record = ""
        self.file = ""
        """File of the record being applied."""
        self.source: Record | None = None
        """The record being applied."""
        self.position = 0
        """Position of its batch."""
        self.is_partial = False
        """Whether records before this one are missing, so that nothing follows from what is unknown."""
        self.transaction: int | None = None
        """Offset at which a metadata transaction begins that is open."""
        self.stable = -1
        """Highest offset in the batches before that of the record being applied."""
        self.begun_at = ("", 0)
        """File, and position of the batch, of its record."""
        self.directory_owners: dict[str, int] = {}
        """The broker of each log directory."""
        self.partition_records = self.new_partition_records()
        self.acls: set[tuple[str, ...]] = set()
        """The contents of the ACLs: two of them may have the same."""
        self._created: set[str] = set()
        self._in_delta: set[str] = set()

    def note(self, problem: MetadataProblem) -> None:
        if self.noted[problem.kind] < MAX_PROBLEMS:  # of each kind: what follows from one of them is not another's
            self.noted[problem.kind] += 1
            self.metadata.problems.append(problem)

    def at(self, kind: Kind, text: str, refusal: Refusal | None = None) -> None:
        """Note a problem of this kind in the record being applied."""
        self.note(MetadataProblem(kind, f"at offset {self.offset}: {text}", self.log_offset, refusal))

    def refuse(self, rule: Rule, text: str, /, **values: Any) -> None:
        """Note that a node cannot apply the record: the rule states what it throws, the text what is wrong. The caller
        leaves the record out."""
        self.at(Kind.REFUSED, text, self.add_refusal(rule, **values))

    def add_refusal(self, rule: Rule, /, *, of_newer: bool = False, **values: Any) -> Refusal | None:
        """Note what a node throws at the record, and return it; None if that is unknown. Alone if the state is in no
        doubt: the record is left out on request, or applied here, as other releases do. `of_newer`: see Refusal."""
        is_unknown = self.is_partial and not rule.is_certain
        if self.is_full or is_unknown or (self.choice is None and len(self.metadata.refusals) == MAX_PROBLEMS):
            return None
        controller, loader, reader = (end.format(**values) for end in (rule.controller, rule.loader, rule.reader))
        refusal = Refusal(self.record, self.log_offset, self.file, self.position, controller, loader, reader)
        refusal = refusal._replace(since=rule.since, until=rule.until, number=self.snapshot_number, of_newer=of_newer)
        if len(self.metadata.refusals) < MAX_PROBLEMS:
            self.metadata.refusals.append(refusal)
        if self.choice is not None:
            self.choice.refused(refusal, self.source.value if self.source is not None else None)
            self.partition_records.forget()
        return refusal

    def new_partition_records(self) -> PartitionRecords:
        """Return what applies the records of partitions to this state from their bytes."""

        def partitions_of(topic_id: str) -> dict[int, PartitionRegistration] | None:
            topic = self.metadata.by_id.get(topic_id)
            is_left_out = self.choice is not None and topic_id in self.choice.topics
            return None if topic is None or is_left_out else topic.partitions

        return PartitionRecords(PartitionRegistration._make, self.known_ids, partitions_of)

    def created(self, name: str) -> None:
        """Note that the record creates the topic or ACL with this ID."""
        if self.in_log:
            self._created.add(name)
        self._in_delta.discard(name)

    def removed(self, name: str) -> None:
        """Note that the record removes the topic or ACL with this ID. MetadataDelta still finds it if it is in the
        snapshot that a node starts with."""
        if self.in_log and name not in self._created:
            self._in_delta.add(name)

    def left_out(self, name: str) -> None:
        """Note that only the controller refuses what has this ID: MetadataDelta has it."""
        self._in_delta.add(name)

    def for_controller(self, rule: Rule, name: str) -> Rule:
        """Return the rule for something with this ID that is not known: without MetadataLoader, if that has it."""
        return rule._replace(loader="") if name in self._in_delta else rule

    @property
    def log_offset(self) -> int | None:
        """Offset of the record being applied; None in a snapshot."""
        return self.offset if self.in_log else None

    @property
    def snapshot_number(self) -> int | None:
        """Number of the record being applied in a snapshot; None in the log."""
        return None if self.in_log else self.number

    def mark(self, offsets: dict[K, int | None], key: K) -> None:
        """Note the offset and the place of the first record with this key, for what is decided later."""
        offsets.setdefault(key, self.log_offset)
        self.metadata.places.setdefault(key, (self.file, self.position, self.snapshot_number))

    def note_newer(self, reason: str) -> None:
        """Note that the record being applied is of a newer release than the newest known one: what it changes is not
        known."""
        if len(self.metadata.newer) < MAX_PROBLEMS:
            self.metadata.newer.setdefault(reason, self.log_offset)
        self.at(Kind.NEWER, reason)

    def charge(self, size: int, reserve: int = 0) -> bool:
        """Take `size` bytes from the memory budget, leaving `reserve` free. Returns False if there is no room; the
        caller then drops the item."""
        if size > self.room - reserve:
            if not self.is_full:
                self.at(Kind.TOO_LARGE, f"too much metadata to keep in memory ({plain_count(self.all_room, 'byte')})")
            self.is_full = True
            return False
        self.room -= size
        return True

    def keep(self, where: dict[K, V], key: K, value: V, entity: str, name: str, reserve: int = 0) -> bool:
        """Store `value` and report the change; returns False if there is no room for it."""
        before = where.get(key)
        if not self.charge(size(value) - (size(before) if before is not None else 0), reserve):
            return False
        where[key] = value
        self.report_change(entity, name, before, value)
        return True

    def drop(self, where: dict[K, V], key: K, entity: str, name: str) -> bool:
        """Remove the value and report the change; returns False if there was none."""
        before = where.pop(key, None)
        if before is None:
            return False
        self.room += size(before)
        self.report_change(entity, name, before, None)
        return True

    def report_change(self, entity: str, name: str, old: Any, new: Any) -> None:
        """Pass a change to `on_change`. Old and new are NamedTuples, dicts or single values; None for no value."""
        if self.on_change is None or self.offset is None or old == new:
            return
        action = "created" if old is None else "removed" if new is None else "changed"
        before, after = (_as_fields(image, entity) for image in (old, new))
        change = Change(self.offset, self.timestamp, self.record, entity, name, action, differences(before, after))
        self.on_change(change)

    def find(self, values: dict[str, Any], rule: Rule) -> TopicImage | None:
        """Return the topic with the ID in `values`; None, with a problem and the `rule` noted, if there is no such
        topic."""
        topic = self.metadata.by_id.get(values["topicId"])
        if topic is None and not self.is_full:
            text = f"there is no topic with the ID {values['topicId']}"
            self.refuse(self.for_controller(rule, values["topicId"]), text, **values)
        return topic

    def ids(self, directories: list[str] | None) -> tuple[str, ...]:
        """Return the IDs of log directories, each stored once: the same few occur in every partition."""
        if not directories:
            return ()
        known = self.known_ids
        for name in directories:
            if name not in known and self.charge(ENTRY, reserve=self.all_room // 3):
                known[name] = name
        return tuple([known.get(name, name) for name in directories])


def size(value: Any) -> int:
    """Return about how many bytes of memory an entity takes."""
    return ENTRY + memory(value)


def _as_fields(value: Any, entity: str) -> Any:
    return value if value is None or hasattr(value, "_asdict") or isinstance(value, dict) else {entity: value}
