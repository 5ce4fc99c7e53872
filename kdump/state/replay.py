"""Replays KRaft metadata records into an image of the cluster, with bounded memory.

The record handlers are in replay_topics (topics, partitions), replay_nodes (brokers, controllers, features) and
replay_access (configs, quotas, ACLs, credentials, tokens). Source: the delta classes in org.apache.kafka.image.
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
"""Handlers by record name."""
NO_EFFECT = {
    "NoOpRecord": "the leader writes it to advance the committed offset",
    "BeginTransactionRecord": "its transaction is applied only if it was committed: see metadata.uncounted",
    "EndTransactionRecord": "see BeginTransactionRecord",
    "AbortTransactionRecord": "see BeginTransactionRecord",
}
"""Records without an effect of their own, and the reason."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Replay:
    """Applies records in order. `room`: memory budget in bytes; `only`: names of the records to apply (None: all);
    `told` is called with each change."""

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
        """Partitions with eligible leader replicas (ELR), by topic: a ClearElrRecord may clear all of them."""
        self.offset: int | None = None
        self.timestamp: int | None = None
        self.record = ""

    def note(self, problem: str) -> None:
        if len(self.metadata.problems) < MOST_PROBLEMS:
            self.metadata.problems.append(problem)

    def at(self, problem: str) -> None:
        """Note a problem in the record being applied."""
        self.note(f"at offset {self.offset}: {problem}")

    def charge(self, size: int, reserve: int = 0) -> bool:
        """Take `size` bytes from the memory budget, leaving `reserve` free. Returns False if there is no room; the
        caller then drops the item."""
        if size > self.room - reserve:
            if not self.is_full:
                self.at(f"too much metadata to keep in memory ({self.all_room} bytes)")
            self.is_full = True
            return False
        self.room -= size
        return True

    def apply(self, record: Record) -> None:
        """Apply a record that is not a control record; one that does not decode changes nothing."""
        self.offset, self.timestamp = record.offset, record.timestamp
        if too_large(record):
            self.at(f"the record is too large: {record.valueSize} bytes")
            return
        value = record.value
        name = metadata_record_name(value)
        handler = HANDLERS.get(name) if self.only is None or name in self.only else None
        # Records without a handler are not decoded; unknown ones are, to note the problem.
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
        """Store `value` and report the change; returns False if there is no room for it."""
        before = where.get(key)
        if not self.charge(size(value) - (size(before) if before is not None else 0), reserve):
            return False
        where[key] = value
        self.tell(entity, name, before, value)
        return True

    def drop(self, where: dict[K, V], key: K, entity: str, name: str) -> bool:
        """Remove the value and report the change; returns False if there was none."""
        before = where.pop(key, None)
        if before is None:
            return False
        self.room += size(before)
        self.tell(entity, name, before, None)
        return True

    def tell(self, entity: str, name: str, old: Any, new: Any) -> None:
        """Pass a change to `told`. Old and new are NamedTuples, dicts or single values; None for no value."""
        if self.told is None or self.offset is None or old == new:
            return
        action = "created" if old is None else "removed" if new is None else "changed"
        before, after = (_as_fields(each, entity) for each in (old, new))
        change = Change(self.offset, self.timestamp, self.record, entity, name, action, differences(before, after))
        self.told(change)

    def find(self, values: dict[str, Any]) -> Topic | None:
        """Return the topic with the ID in `values`; None, with a problem noted, if there is no such topic."""
        topic = self.metadata.by_id.get(values["topicId"])
        if topic is None and not self.is_full:
            self.at(f"there is no topic with the ID {values['topicId']}")
        return topic

    def ids(self, directories: list[str] | None) -> tuple[str, ...]:
        """Return the IDs of log directories, each stored once: the same few occur in every partition."""
        for name in directories or ():
            if name not in self.known_ids and self.charge(ENTRY, reserve=self.all_room // 3):
                self.known_ids[name] = name
        return tuple(self.known_ids.get(name, name) for name in directories or ())


def size(value: Any) -> int:
    """Return about how many bytes of memory an entity takes."""
    return ENTRY + memory(value)


def _as_fields(value: Any, entity: str) -> Any:
    return value if value is None or hasattr(value, "_asdict") or isinstance(value, dict) else {entity: value}
