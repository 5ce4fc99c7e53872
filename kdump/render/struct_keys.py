"""The JSON objects of `kdump schema`: every key declared once; and the objects, from structures and their fields."""

from __future__ import annotations

from typing import Any

from kdump.answer import Key
from kdump.format.layout import Bits
from kdump.format.schema import Versions
from kdump.format.struct_fields import NOT_GIVEN, Row
from kdump.format.structs import Named

Object = dict[str, Any]

STRUCT_KEYS = (
    Key("name", "string", "", "of the layout, or Kafka's of the message"),
    Key("group", "string", "", "the heading it stands under"),
    Key("kind", "string", "", "layout: has one form; message: has versions, as Kafka's schema says"),
    Key("source", "string", "", "section of the documentation, Kafka's class, or its schema"),
    Key("about", "string", "", "what it is, or where it stands"),
    Key("size", "number or null", "bytes", "null if the bytes themselves tell it"),
    Key("apiKey", "number or null", "", "number of a message among those of its topic"),
    Key("validVersions", "string or null", "", "of a message, in Kafka's notation: 0-4"),
    Key("flexibleVersions", "string or null", "", "versions with compact lengths and tagged fields (KIP-482); none"),
)
FIELD_KEYS = (
    Key("struct", "string", "", "the structure"),
    Key("name", "string", "", "of the field"),
    Key("depth", "number", "", "how deep it is nested: 0, 1 …"),
    Key("fieldType", "string", "", "as the protocol guide names it; in some versions another"),
    Key("position", "number or null", "byte of the structure", "null if it depends on what is in front"),
    Key("size", "number or null", "bytes", "null if the bytes themselves tell it"),
    Key("unit", "string", "", "how a person reads the number: epoch ms, bytes, offset, crc, hex"),
    Key("meaning", "string", "", "what it says; of a message's field what it names, if Kafka says so: topicName"),
    Key("bits", "array", "", "of {name, shift, width, about, meanings}: bit fields, lowest first"),
    Key("versions", "string or null", "", "of a message: those that have the field, 3+"),
    Key("nullableVersions", "string or null", "", "those in which it may be null"),
    Key("tag", "number or null", "", "of a tagged field"),
    Key("taggedVersions", "string or null", "", "those in which it is tagged"),
    Key("default", "any", "", "where the schema gives one", True),
)
STRUCT_TYPES = {"struct": STRUCT_KEYS, "structField": FIELD_KEYS}


def struct_object(struct: Named) -> Object:
    schema = struct.schema
    return {
        "type": "struct",
        "name": struct.name,
        "group": struct.group,
        "kind": "message" if schema else "layout",
        "source": struct.source,
        "about": struct.about,
        "size": struct.size,
        "apiKey": schema.apiKey if schema else None,
        "validVersions": versions_text(schema.valid) if schema else None,
        "flexibleVersions": versions_text(schema.flexible) if schema else None,
    }


def versions_text(versions: Versions) -> str:
    """In Kafka's notation."""
    low, high = versions
    if low > high:
        return "none"
    return str(low) if low == high else f"{low}+" if high == Versions.parse("0+").highest else f"{low}-{high}"


def field_object(struct: Named, row: Row) -> Object:
    out: Object = {
        "type": "structField",
        "struct": struct.name,
        "name": row.name,
        "depth": row.depth,
        "fieldType": row.type,
        "position": row.position,
        "size": row.size,
        "unit": row.unit,
        "meaning": row.meaning,
        "bits": [_bits(bits) for bits in row.bits],
        "versions": row.versions or None,
        "nullableVersions": row.nullable or None,
        "tag": row.tag,
        "taggedVersions": row.tagged or None,
    }
    if row.default is not NOT_GIVEN:
        out["default"] = row.default
    return out


def _bits(bits: Bits) -> Object:
    meanings = {str(number): text for number, text in bits.meanings.items()}
    return {"name": bits.name, "shift": bits.shift, "width": bits.width, "about": bits.about, "meanings": meanings}
