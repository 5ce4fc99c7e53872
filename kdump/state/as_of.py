"""A point in a log (offset or time), and the changes that single records make."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

FIRST_TIME = 10**12


class AsOf(NamedTuple):
    """Last offset or last time (epoch ms) that is included; if both are None, the end of the log."""

    offset: int | None = None
    time: int | None = None

    @classmethod
    def of(cls, number: int | AsOf | None) -> AsOf:
        """Return the moment of an offset or, from 13 digits on, a time: no log has that many records."""
        if number is None or isinstance(number, AsOf):
            return number or cls()
        return cls(time=number) if number >= FIRST_TIME else cls(offset=number)

    def is_before(self, offset: int | None, timestamp: int | None) -> bool:
        """Return True if a record is after the moment. By time, the first such record ends what is included, as in
        Kafka's own lookup by timestamp: the records after it do not count even if their timestamps are lower."""
        if self.offset is not None:
            return offset is None or offset > self.offset
        return self.time is not None and timestamp is not None and timestamp > self.time


class AskedAsOf:
    """A query with the field `as_of`: an offset, a time in epoch ms, or neither."""

    as_of: int | AsOf | None

    @cached_property
    def moment(self) -> AsOf:
        return AsOf.of(self.as_of)


class OffsetOfSeveralLogs(ValueError):
    """The moment is an offset, and there are several logs."""

    def __init__(self) -> None:
        super().__init__("an offset applies to a single log; pass one, or use a time")


class Change(NamedTuple):
    """A change made by one record.

    `record`: Kafka's name of the record's type; `entity` and `name`: what it changed (a topic, a group member …);
    `group` and `partition` (of the coordinator's topic): None for cluster metadata. `action`: created, changed,
    removed, pending (in an open transaction) or aborted. `fields`: (old, new) by field name, for fields that differ;
    for an entity that was created or removed, all fields that are not empty. Timestamps are epoch ms."""

    offset: int
    timestamp: int | None
    record: str
    entity: str
    name: str
    action: str
    fields: dict[str, tuple[Any, Any]]
    group: str | None = None
    partition: int | None = None


ChangeListener = Callable[[Change], None]

SAYS_NOTHING: tuple[Any, ...] = (None, "", (), {})
"""Values that count as empty in an entity that is created or removed."""


def differences(old: Any, new: Any) -> dict[str, tuple[Any, Any]]:
    """Return (old, new) by name for each field in which two NamedTuples or dicts differ; either may be None."""
    before, after = _fields(old), _fields(new)
    names = {**before, **after}
    return {
        name: (before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
        and not ((old is None or new is None) and before.get(name) in SAYS_NOTHING and after.get(name) in SAYS_NOTHING)
    }


def _fields(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    fields: dict[str, Any] = value if isinstance(value, dict) else value._asdict()
    return fields
