"""Answers of `kdump registry`: versions of subjects, settings, and the IDs that records carry."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, OFFSET, TEXT, Cell, Doc, PathText, Shown, answer, of_fact
from kdump.state.schema_registry import HARD_DELETED, IGNORED, SchemaVersion, Setting
from kdump.state.value_texts import references_text

RegistrySource = Annotated[PathText, Doc("partition directory of the registry's topic, or the path that was passed")]


def _style(value: RegisteredVersion) -> str:
    return "dim" if value.state in ("softDeleted", "hardDeleted", "ignored") else ""


@answer("schemaVersion", _style)
class RegisteredVersion(NamedTuple):
    """A version of a subject. The keys down to deleted are the registry's own."""

    subject: Annotated[
        str,
        Doc("subject, with its context if that is not the default one: :.emea:orders-value"),
        Shown(least=16, cuts=NAME),
    ]
    version: Annotated[int, Doc("version"), Shown()]
    id: Annotated[int, Doc("ID of the schema, unique in its context"), Shown()]
    guid: Annotated[str, Doc("GUID: hash of the text, references, metadata and rules")]
    schemaType: Annotated[str, Doc("AVRO, JSON, PROTOBUF …"), Shown("type", 8)]
    schema: Annotated[str, Doc("text of the schema")]
    references: Annotated[
        list[dict[str, Any]],
        Doc("referenced versions: name, subject, version"),
        Shown(rank=4, least=12, after="state"),
        Cell(references_text),
    ]
    metadata: Annotated[dict[str, Any] | None, Doc("metadata: tags, properties, sensitive", optional=True)]
    ruleSet: Annotated[dict[str, Any] | None, Doc("rules: migrationRules, domainRules, encodingRules", optional=True)]
    deleted: Annotated[bool, Doc("whether it is deleted")]
    state: Annotated[
        str,
        Doc(
            "live; softDeleted: still resolved by its ID; hardDeleted: only its record is left; ignored: its ID was "
            "that of another schema already"
        ),
        Shown(),
    ]
    context: Annotated[str, Doc("context of the subject; . is the default one")]
    source: RegistrySource
    offset: Annotated[int, Doc("offset of its record", OFFSET), Shown(rank=5)]
    timestamp: Annotated[int | None, Doc("timestamp of its record", EPOCH_MS), Shown("time", 5, after="removedAt")]
    removedAt: Annotated[
        int | None,
        Doc("offset of the record that deleted it for good; null if none in this log did", OFFSET),
        Shown("removed at", 5),
    ]


@answer("registrySetting")
class RegistrySetting(NamedTuple):
    """A setting of the registry."""

    kind: Annotated[str, Doc("config (compatibility …), mode, context or association"), Shown()]
    subject: Annotated[str | None, Doc("subject or context that it applies to; null: all"), Shown(least=16, cuts=NAME)]
    value: Annotated[dict[str, Any], Doc("the value, as it is in the log"), Shown(least=36)]
    source: RegistrySource
    offset: Annotated[int, Doc("offset of its record", OFFSET), Shown(rank=5)]
    timestamp: Annotated[int | None, Doc("timestamp of its record", EPOCH_MS), Shown("time", 6)]


def _usage_style(value: SchemaUsage) -> str:
    return "" if value.state != "none" else "dim" if value.doubt else "bad"


@answer("schemaUsage", _usage_style)
class SchemaUsage(NamedTuple):
    """Records of a partition whose keys or values carry the same schema ID. Whether bytes are an ID cannot be told from
    them alone: `doubt` says what speaks against it."""

    topic: Annotated[str, Doc("topic"), Shown(least=12, cuts=NAME)]
    partition: Annotated[int, Doc("partition"), Shown()]
    part: Annotated[str, Doc("key or value"), Shown()]
    id: Annotated[int | None, Doc("schema ID; null if the records carry a GUID"), Shown()]
    guid: Annotated[str | None, Doc("GUID; null if the records carry an ID"), Shown(rank=2, least=13)]
    where: Annotated[str, Doc("prefix: first bytes of the key or value; header: __key_schema_id, __value_schema_id")]
    state: Annotated[
        str, Doc("live, softDeleted, hardDeleted (only its record is left), none (no schema is left)"), Shown()
    ]
    contexts: Annotated[list[str], Doc("contexts in which the registry resolves it")]
    subjects: Annotated[
        list[str], Doc("subjects with this schema, in these contexts; at most 10"), Shown(rank=6, least=16, cuts=NAME)
    ]
    records: Annotated[int, Doc("number of records"), Shown(rank=7)]
    firstOffset: Annotated[int, Doc("lowest offset", OFFSET), Shown("first", 5)]
    lastOffset: Annotated[int, Doc("highest offset", OFFSET), Shown("last", 5)]
    firstTimestamp: Annotated[int | None, Doc("lowest timestamp", EPOCH_MS), Shown("from", 4)]
    lastTimestamp: Annotated[int | None, Doc("highest timestamp", EPOCH_MS), Shown("to", 4)]
    doubt: Annotated[
        str | None,
        Doc("why these may not be records with this schema; null if nothing suggests it"),
        Shown(least=20, cuts=TEXT),
    ]
    source: Annotated[PathText, Doc("partition directory")]


def version_answer(source: str, version: SchemaVersion) -> RegisteredVersion:
    value = version.value
    metadata, rules = value.get("metadata"), value.get("ruleSet")
    return of_fact(
        RegisteredVersion,
        version,
        schemaType=version.schema_type,
        schema=version.text,
        metadata=metadata if isinstance(metadata, dict) else None,
        ruleSet=rules if isinstance(rules, dict) else None,
        deleted=version.state not in ("live", IGNORED),
        source=source,
        removedAt=version.removed_at if version.state == HARD_DELETED else None,
    )


def setting_answer(source: str, setting: Setting) -> RegistrySetting:
    return RegistrySetting(setting.kind, setting.name, setting.value, source, setting.offset, setting.timestamp)
