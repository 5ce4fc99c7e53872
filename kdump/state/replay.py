"""Records of KRaft's metadata -> the image of the cluster that they make, in bounded memory.

What each record changes stands in replay_topics (topics, partitions), replay_nodes (brokers, controllers, features) and
replay_access (configs, quotas, ACLs, credentials, tokens). Source: the deltas of org.apache.kafka.image.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from kdump.format.metadata_record import decode_metadata_record, metadata_record_name
from kdump.log.record import Record
from kdump.state import replay_access, replay_nodes, replay_topics
from kdump.state.image import Metadata, Topic
from kdump.state.moment import Change, Told, differences
from kdump.state.records import ENTRY, MOST_PROBLEMS, ROOM, memory, too_large

HANDLERS: dict[str, Callable[[Replay, dict[str, Any]], None]] = {
    **replay_topics.HANDLERS,
    **replay_nodes.HANDLERS,
    **replay_access.HANDLERS,
}
"""What a record does, by its name."""
NO_EFFECT = {
    "NoOpRecord": "the leader writes it to move the committed offset on",
    "BeginTransactionRecord": "what it begins counts once it has ended: see metadata.uncounted",
    "EndTransactionRecord": "see BeginTransactionRecord",
    "AbortTransactionRecord": "see BeginTransactionRecord",
}
"""The records without an effect of their own, and why they have none."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Replay:
    """Applies records one after the other. `only` names those that are of interest (None: all); `told` hears of what
    each of them changed."""

    def __init__(
        self, metadata: Metadata, room: int = ROOM, only: frozenset[str] | None = None, told: Told | None = None
    ) -> None:
        self.metadata = metadata
        self.room = self.all_room = room
        self.only = only
        self.told = told
        self.is_full = False
        self.known_ids: dict[str, str] = {}
        self.with_elr: dict[str, set[int]] = {}
        """The partitions that have eligible leader replicas, by topic: one record clears them all."""
        self.offset: int | None = None
        self.timestamp: int | None = None
        self.record = ""

    def note(self, problem: str) -> None:
        if len(self.metadata.problems) < MOST_PROBLEMS:
            self.metadata.problems.append(problem)

    def at(self, problem: str) -> None:
        """A problem of the record that is applied."""
        self.note(f"at offset {self.offset}: {problem}")

    def charge(self, size: int, reserve: int = 0) -> bool:
        """Whether there is room for so many bytes more beside the `reserve`; what there is none for is not
        remembered."""
        if size > self.room - reserve:
            if not self.is_full:
                self.at(f"more metadata than is kept in memory, {self.all_room} bytes")
            self.is_full = True
            return False
        self.room -= size
        return True

    def apply(self, record: Record) -> None:
        """What a record that is no control record changes; one that does not decode changes nothing."""
        self.offset, self.timestamp = record.offset, record.timestamp
        if too_large(record):
            self.at(f"a record of {record.valueSize} bytes")
            return
        value = record.value
        name = metadata_record_name(value)
        handler = HANDLERS.get(name) if self.only is None or name in self.only else None
        # Those that are of no interest are not decoded.
        if handler is None and not name.startswith("UNKNOWN"):
            return
        said = decode_metadata_record(value)
        if said.problem is not None:
            self.at(str(said.problem))
        elif handler is not None:
            assert said.values is not None
            self.record = name
            handler(self, said.values)

    def keep(self, where: dict[K, V], key: K, value: V, entity: str, name: str, reserve: int = 0) -> bool:
        """Remember `value`, if there is room for it."""
        before = where.get(key)
        if not self.charge(size(value) - (size(before) if before is not None else 0), reserve):
            return False
        where[key] = value
        self.tell(entity, name, before, value)
        return True

    def drop(self, where: dict[K, V], key: K, entity: str, name: str) -> bool:
        """Forget it; False if it was not there."""
        before = where.pop(key, None)
        if before is None:
            return False
        self.room += size(before)
        self.tell(entity, name, before, None)
        return True

    def tell(self, entity: str, name: str, old: Any, new: Any) -> None:
        """Tell of a change; old and new are NamedTuples, dicts or single values, None where there is nothing."""
        if self.told is None or self.offset is None or old == new:
            return
        action = "created" if old is None else "removed" if new is None else "changed"
        before, after = (_as_fields(each, entity) for each in (old, new))
        change = Change(self.offset, self.timestamp, self.record, entity, name, action, differences(before, after))
        self.told(change)

    def find(self, values: dict[str, Any]) -> Topic | None:
        """The topic that a record names by its id."""
        topic = self.metadata.by_id.get(values["topicId"])
        if topic is None and not self.is_full:
            self.at(f"there is no topic with the id {values['topicId']}")
        return topic

    def ids(self, directories: list[str] | None) -> tuple[str, ...]:
        """The ids of log directories, each kept once: the same few come with every partition."""
        for name in directories or ():
            if name not in self.known_ids and self.charge(ENTRY, reserve=self.all_room // 3):
                self.known_ids[name] = name
        return tuple(self.known_ids.get(name, name) for name in directories or ())


def size(value: Any) -> int:
    """Bytes that an entity takes, about."""
    return ENTRY + memory(value)


def _as_fields(value: Any, entity: str) -> Any:
    return value if value is None or hasattr(value, "_asdict") or isinstance(value, dict) else {entity: value}
