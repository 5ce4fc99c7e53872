"""A moment of a log, and what a record changed at its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Moment(NamedTuple):
    """The last offset that counts, or the last ms since the epoch; both None: the end of the log."""

    offset: int | None = None
    time: int | None = None

    def is_before(self, offset: int | None, timestamp: int | None) -> bool:
        """Whether a record is behind the moment. By time, the first record that is later ends what counts, as in
        Kafka's own search for the offset of a time: those behind it do not count, even where a clock went back."""
        if self.offset is not None:
            return offset is None or offset > self.offset
        return self.time is not None and timestamp is not None and timestamp > self.time


class Change(NamedTuple):
    """What one record changed.

    `record` is Kafka's name for its type; `entity` and `name` are what it changed (a topic, a member of a group …),
    `group` and `partition` (of __consumer_offsets) are None in the cluster's metadata. `action` is created, changed,
    removed, pending (in a transaction that has not ended) or aborted. `fields` has old and new by name: those that
    differ; all that say something where the entity is new or gone. Timestamps are epoch ms.
    """

    offset: int
    timestamp: int | None
    record: str
    entity: str
    name: str
    action: str
    fields: dict[str, tuple[Any, Any]]
    group: str | None = None
    partition: int | None = None


Told = Callable[[Change], None]

SAYS_NOTHING: tuple[Any, ...] = (None, "", (), {})
"""Values that a new entity has in a field without saying anything by it."""


def differences(old: Any, new: Any) -> dict[str, tuple[Any, Any]]:
    """Old and new by field, for two NamedTuples or dicts, either of them None."""
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
