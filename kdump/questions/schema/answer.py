"""Answers of `kdump schema`: structures and their fields (found by kdump.format.structs)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from kdump.answer import ABSENT, BYTES, Doc, answer, of_fact
from kdump.format.layout import Bits
from kdump.format.schema import Versions
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import NamedStruct


@answer("struct")
class StructAnswer(NamedTuple):
    """A layout, or a Kafka message."""

    name: Annotated[str, Doc("name of the layout, or Kafka's name of the message")]
    group: Annotated[str, Doc("heading under which it is listed")]
    kind: Annotated[
        str, Doc("layout (has one form), text (a text file) or message (has versions, from Kafka's schema)")
    ]
    source: Annotated[str, Doc("section of the documentation, Kafka's class, or Kafka's schema")]
    about: Annotated[str, Doc("description, or where it occurs")]
    size: Annotated[int | None, Doc("size; null if it varies", BYTES)]
    apiKey: Annotated[int | None, Doc("number of the message among those of its topic")]
    validVersions: Annotated[str | None, Doc("valid versions of a message, in Kafka's notation: 0-4")]
    flexibleVersions: Annotated[str | None, Doc("versions with compact lengths and tagged fields (KIP-482), or none")]


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

    struct: Annotated[str, Doc("name of the structure")]
    name: Annotated[str, Doc("name of the field")]
    depth: Annotated[int, Doc("nesting depth: 0, 1 …")]
    fieldType: Annotated[str, Doc("type, as in the protocol guide; it may be different in some versions")]
    position: Annotated[int | None, Doc("position; null if it depends on the fields before", "byte of the structure")]
    size: Annotated[int | None, Doc("size; null if it varies", BYTES)]
    unit: Annotated[str, Doc("unit or notation of the number: epoch ms, bytes, offset, crc, hex")]
    meaning: Annotated[
        str, Doc("description; for a message's field the kind of entity that Kafka's schema gives, such as topicName")
    ]
    bits: Annotated[tuple[BitsOfField, ...], Doc("bit fields, lowest first, each {…}")]
    versions: Annotated[str | None, Doc("versions of a message that have the field, such as 3+")]
    nullableVersions: Annotated[str | None, Doc("versions in which it may be null")]
    tag: Annotated[int | None, Doc("tag of a tagged field")]
    taggedVersions: Annotated[str | None, Doc("versions in which it is tagged")]
    default: Annotated[Any, Doc("default value, if the schema has one", optional=True)]


def struct_answer(struct: NamedStruct) -> StructAnswer:
    schema = struct.schema
    return of_fact(
        StructAnswer,
        struct,
        kind="message" if schema else "text" if struct.text_fields else "layout",
        apiKey=schema.apiKey if schema else None,
        validVersions=versions_text(schema.valid) if schema else None,
        flexibleVersions=versions_text(schema.flexible) if schema else None,
    )


def versions_text(versions: Versions) -> str:
    """Return the versions in Kafka's notation."""
    low, high = versions
    if low > high:
        return "none"
    return str(low) if low == high else f"{low}+" if high == Versions.parse("0+").highest else f"{low}-{high}"


def _field_answer(struct: NamedStruct, row: StructField) -> FieldAnswer:
    return of_fact(
        FieldAnswer,
        row,
        struct=struct.name,
        fieldType=row.type,
        bits=tuple(_bits(bits) for bits in row.bits),
        versions=row.versions or None,
        nullableVersions=row.nullable or None,
        taggedVersions=row.tagged or None,
        default=ABSENT if row.default is NOT_GIVEN else row.default,
    )


def schema_answers(struct: NamedStruct, version: int | None) -> Iterator[StructAnswer | FieldAnswer]:
    """Yield the answer of a structure, then those of its fields; of a message, those of one `version`, or of all."""
    yield struct_answer(struct)
    for row in rows(struct, version):
        yield _field_answer(struct, row)


def _bits(bits: Bits) -> BitsOfField:
    meanings = {str(number): meaning for number, meaning in bits.meanings.items()}
    return BitsOfField(bits.name, bits.shift, bits.width, bits.about, meanings)
