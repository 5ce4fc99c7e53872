"""Answers of `kdump schema`: structures and their fields (found by kdump.format.structs)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from kdump.answer import BYTES, Doc, answer


@answer("struct")
class StructAnswer(NamedTuple):
    """A layout, or a Kafka message."""

    name: Annotated[str, Doc("of the layout, or Kafka's of the message")]
    group: Annotated[str, Doc("the heading it stands under")]
    kind: Annotated[str, Doc("layout: has one form; message: has versions, as Kafka's schema says")]
    source: Annotated[str, Doc("section of the documentation, Kafka's class, or its schema")]
    about: Annotated[str, Doc("what it is, or where it stands")]
    size: Annotated[int | None, Doc("null if the bytes themselves tell it", BYTES)]
    apiKey: Annotated[int | None, Doc("number of a message among those of its topic")]
    validVersions: Annotated[str | None, Doc("of a message, in Kafka's notation: 0-4")]
    flexibleVersions: Annotated[str | None, Doc("versions with compact lengths and tagged fields (KIP-482); none")]


class BitsOfField(NamedTuple):
    """A bit field inside a field."""

    name: str
    shift: int
    width: int
    about: str
    meanings: dict[str, str]


@answer("structField")
class FieldAnswer(NamedTuple):
    """A field of a structure."""

    struct: Annotated[str, Doc("the structure")]
    name: Annotated[str, Doc("of the field")]
    depth: Annotated[int, Doc("how deep it is nested: 0, 1 …")]
    fieldType: Annotated[str, Doc("as the protocol guide names it; in some versions another")]
    position: Annotated[int | None, Doc("null if it depends on what is in front", "byte of the structure")]
    size: Annotated[int | None, Doc("null if the bytes themselves tell it", BYTES)]
    unit: Annotated[str, Doc("how a person reads the number: epoch ms, bytes, offset, crc, hex")]
    meaning: Annotated[str, Doc("what it says; of a message's field what it names, if Kafka says so: topicName")]
    bits: Annotated[tuple[BitsOfField, ...], Doc("of {…}: bit fields, lowest first")]
    versions: Annotated[str | None, Doc("of a message: those that have the field, 3+")]
    nullableVersions: Annotated[str | None, Doc("those in which it may be null")]
    tag: Annotated[int | None, Doc("of a tagged field")]
    taggedVersions: Annotated[str | None, Doc("those in which it is tagged")]
    default: Annotated[Any, Doc("where the schema gives one", optional=True)]
