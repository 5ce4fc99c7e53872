"""Builds the JSON objects of `kdump schema` from structures and their fields."""

from __future__ import annotations

from collections.abc import Iterator

from kdump.answer import ABSENT, Object, answer_object
from kdump.forensics.schema_answer import BitsOfField, FieldAnswer, StructAnswer
from kdump.format.layout import Bits
from kdump.format.schema import Versions
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import NamedStruct


def struct_object(struct: NamedStruct) -> Object:
    schema = struct.schema
    return answer_object(
        StructAnswer(
            name=struct.name,
            group=struct.group,
            kind="message" if schema else "text" if struct.text_fields else "layout",
            source=struct.source,
            about=struct.about,
            size=struct.size,
            apiKey=schema.apiKey if schema else None,
            validVersions=versions_text(schema.valid) if schema else None,
            flexibleVersions=versions_text(schema.flexible) if schema else None,
        )
    )


def versions_text(versions: Versions) -> str:
    """Return the versions in Kafka's notation."""
    low, high = versions
    if low > high:
        return "none"
    return str(low) if low == high else f"{low}+" if high == Versions.parse("0+").highest else f"{low}-{high}"


def field_object(struct: NamedStruct, row: StructField) -> Object:
    return answer_object(
        FieldAnswer(
            struct=struct.name,
            name=row.name,
            depth=row.depth,
            fieldType=row.type,
            position=row.position,
            size=row.size,
            unit=row.unit,
            meaning=row.meaning,
            bits=tuple(_bits(bits) for bits in row.bits),
            versions=row.versions or None,
            nullableVersions=row.nullable or None,
            tag=row.tag,
            taggedVersions=row.tagged or None,
            default=ABSENT if row.default is NOT_GIVEN else row.default,
        )
    )


def schema_objects(struct: NamedStruct, version: int | None) -> Iterator[Object]:
    """Yield the object of a structure, then those of its fields; of a message, those of one `version`, or of all."""
    yield struct_object(struct)
    for row in rows(struct, version):
        yield field_object(struct, row)


def _bits(bits: Bits) -> BitsOfField:
    meanings = {str(number): text for number, text in bits.meanings.items()}
    return BitsOfField(bits.name, bits.shift, bits.width, bits.about, meanings)
