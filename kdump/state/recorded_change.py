"""What one record of a coordinator's log, of the metadata log, or of a topic of a registry or Connect changed."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, OFFSET, Doc, PathText, Shown, answer


class ChangedField(NamedTuple):
    """A field that a record changed; None for a value that did not exist before, or does not exist any more."""

    name: str
    old: Any
    new: Any


@answer("change")
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
        Shown("group", 8, least=10),
    ]
    entity: Annotated[
        str,
        Doc(
            "kind of object that it changed: offset, group, member, shareState; topic, partition, broker, config …; "
            "schema; connector, commit, taskStatus, sourceOffset …"
        ),
        Shown(rank=4),
    ]
    name: Annotated[str, Doc("name of the object"), Shown(least=12)]
    action: Annotated[
        str, Doc("created, changed, removed; pending or aborted in a transaction; ignored by a registry"), Shown(rank=7)
    ]
    fields: Annotated[
        tuple[ChangedField, ...],
        Doc("changed fields, or all fields of a new or removed object, each {…}"),
        Shown(least=14),
    ]
