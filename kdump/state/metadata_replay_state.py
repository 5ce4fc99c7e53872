"""The image of the cluster while metadata records are replayed into it, with bounded memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from kdump.state.as_of import Change, ChangeListener, differences
from kdump.state.internal_records import ENTRY, MAX_PROBLEMS, ROOM, memory
from kdump.state.metadata_image import MetadataImage, TopicImage

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReplayState:
    """What the handlers of records change. `room`: memory budget in bytes; `on_change` is called with each change."""

    def __init__(self, metadata: MetadataImage, room: int = ROOM, on_change: ChangeListener | None = None) -> None:
        self.metadata = metadata
        self.room = self.all_room = room
        self.on_change = on_change
        self.is_full = False
        self.known_ids: dict[str, str] = {}
        self.with_elr: dict[str, set[int]] = {}
        """Partitions with eligible leader replicas (ELR), by topic: a ClearElrRecord may clear all of them."""
        self.offset: int | None = None
        self.in_log = False
        """Whether the record is in the log, not in a snapshot."""
        self.timestamp: int | None = None
        self.record = ""

    def note(self, problem: str) -> None:
        if len(self.metadata.problems) < MAX_PROBLEMS:
            self.metadata.problems.append(problem)

    def at(self, problem: str) -> None:
        """Note a problem in the record being applied."""
        self.note(f"at offset {self.offset}: {problem}")

    @property
    def log_offset(self) -> int | None:
        """Offset of the record being applied; None in a snapshot."""
        return self.offset if self.in_log else None

    def note_newer(self, text: str) -> None:
        """Note that the record being applied is of a newer release than the newest known one: what it changes is not
        known."""
        if len(self.metadata.newer) < MAX_PROBLEMS:
            self.metadata.newer.setdefault(text, self.log_offset)
        self.at(text)

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
        before, after = (_as_fields(each, entity) for each in (old, new))
        change = Change(self.offset, self.timestamp, self.record, entity, name, action, differences(before, after))
        self.on_change(change)

    def find(self, values: dict[str, Any]) -> TopicImage | None:
        """Return the topic with the ID in `values`; None, with a problem noted, if there is no such topic."""
        topic = self.metadata.by_id.get(values["topicId"])
        if topic is None and not self.is_full:
            self.at(f"there is no topic with the ID {values['topicId']}")
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
