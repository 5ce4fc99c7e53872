"""What one record of a coordinator's log, of the metadata log, or of a topic of a registry or Connect changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, OFFSET, Cell, Doc, PathText, Shown, answer, of_fact
from kdump.state.as_of import Change
from kdump.state.groups import Assigned
from kdump.state.secrets import HIDDEN, is_secret
from kdump.state.value_texts import changes_text, moved_back


class ChangedField(NamedTuple):
    """A field that a record changed; None for a value that did not exist before, or does not exist any more."""

    name: str
    old: Any
    new: Any


def _style(value: RecordedChange) -> str:
    return "torn" if moved_back(value) else "dim" if value.action == "aborted" else ""


@answer("change", _style)
class RecordedChange(NamedTuple):
    """What one record of a coordinator's log, of the metadata log, or of a topic of a registry or Connect changed."""

    source: Annotated[PathText, Doc("log that contains the record")]
    offset: Annotated[int, Doc("offset of the record", OFFSET), Shown(rank=5)]
    timestamp: Annotated[int | None, Doc("timestamp of the record", EPOCH_MS), Shown("time")]
    record: Annotated[
        str,
        Doc("type of the record: Kafka's name of the message, or COMMIT and ABORT for markers"),
        Shown(rank=3, least=14),
    ]
    groupId: Annotated[
        str | None,
        Doc("group ID; null in the cluster's metadata, in a registry and in Connect"),
        Shown("group", 8, least=10, cuts=NAME),
    ]
    entity: Annotated[
        str,
        Doc(
            "kind of object that it changed: offset, group, member, shareState; topic, partition, broker, config …; "
            "schema; connector, commit, taskStatus, sourceOffset …"
        ),
        Shown(rank=4),
    ]
    name: Annotated[str, Doc("name of the object"), Shown(least=12, cuts=NAME)]
    action: Annotated[
        str, Doc("created, changed, removed; pending or aborted in a transaction; ignored by a registry"), Shown(rank=7)
    ]
    fields: Annotated[
        tuple[ChangedField, ...],
        Doc("changed fields, or all fields of a new or removed object, each {…}"),
        Shown(least=14),
        Cell(changes_text, moved_back),
    ]


def change_answer(
    source: str, change: Change, *, show_secrets: bool = False, topic_name: Callable[[str], str] = str
) -> RecordedChange:
    """Return a change in the log `source`; secret configs are hidden. `topic_name` returns the name of a topic ID."""
    fields = []
    for name, (old, new) in change.fields.items():
        if change.entity == "config" and not show_secrets and is_secret(name):
            old, new = (HIDDEN if value is not None else None for value in (old, new))
        fields.append(ChangedField(name, _named(old, topic_name), _named(new, topic_name)))
    return of_fact(RecordedChange, change, source=source, groupId=change.group, fields=tuple(fields))


def _named(value: Any, topic_name: Callable[[str], str]) -> Any:
    if isinstance(value, tuple) and value and isinstance(value[0], Assigned):
        value = tuple(partition._replace(topic=topic_name(partition.topic)) for partition in value)
    return plain(value)


def plain(value: Any) -> Any:
    """Convert NamedTuples to objects and tuples to lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
