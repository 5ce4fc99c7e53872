"""Schemas of Kafka's own messages, and their fields in one version.

The schemas are package data (kdump/format/schemas, written by tools/condense_schemas.py). A schema is resolved once for
each version that occurs, into a SchemaStruct with the fields of that version; versioned_messages.py decodes with it.

Source: clients/src/main/resources/common/message/README.md, KIP-482 (flexible versions and tagged fields), and
org.apache.kafka.message.FieldSpec and MessageDataGenerator."""

from __future__ import annotations

import json
import pkgutil
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kdump.format.kafka_uuid import ZERO_UUID
from kdump.format.layout import ARRAY, BYTES, INT8, INT16, INT32, INT64, UINT32, Field, Wire
from kdump.format.varint import Bytes

_INT8 = struct.Struct(">b")

FOLDERS = (
    *("control", "group-coordinator", "transaction-coordinator", "share-coordinator"),
    *("metadata", "storage", "raft"),
)
"""Kafka's modules, whose messages are in a file each, in the order of display."""
UNSIGNED_VARINT = Wire("UNSIGNED_VARINT")
FIXED = {
    "bool": Wire("BOOLEAN", "?"),
    "int8": INT8,
    "int16": INT16,
    "uint16": Wire("UINT16", "H"),
    "uint32": UINT32,
    "int32": INT32,
    "int64": INT64,
    "float64": Wire("FLOAT64", "d"),
    "uuid": Wire("UUID", "16s"),
}
ZEROS = {"bool": False, "float64": 0.0, "uuid": ZERO_UUID}
EMPTY = {"string": "", "bytes": b"", "records": None}
"""Kafka's defaults if a schema has none; also 0 for integers, empty for arrays, the fields' defaults for structures."""


class Versions(NamedTuple):
    """A range of message versions, both ends inclusive; empty if lowest is above highest."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, versions: str) -> Versions:
        """Parse Kafka's notation: "3", "1-2", "0+", "none"."""
        if versions == "none":
            return cls(0, -1)
        if versions.endswith("+"):
            return cls(int(versions[:-1]), 0x7FFF)
        lowest, _, highest = versions.partition("-")
        return cls(int(lowest), int(highest or lowest))

    @property
    def each(self) -> range:
        return range(self.lowest, self.highest + 1)

    def hold(self, version: int) -> bool:
        return self.lowest <= version <= self.highest


class SchemaField(NamedTuple):
    """A field, or the element of an array, in one version. `path` is its place in the message, for errors.

    `kind` is the name of a fixed-size type, "string", "bytes", "records", "array" (of `element`) or "struct" (with the
    fields of `inner`). If `compact`, the length, or the null marker of a structure, is an unsigned varint; otherwise
    `head` reads it from `head_size` bytes. `head` also reads values of fixed size. `least` is the minimum bytes of a
    value, which limits a count before it is used."""

    name: str
    path: str
    kind: str
    field: Field
    least: int
    default: Callable[[], Any]
    nullable: bool = False
    compact: bool = False
    head: Callable[[Bytes, int], tuple[Any, ...]] = _INT8.unpack_from
    head_size: int = 1
    element: SchemaField | None = None
    inner: SchemaStruct | None = None
    tag: int | None = None


class SchemaStruct(NamedTuple):
    """One version of a message or structure: all fields as declared, and the same split into plain and tagged ones."""

    fields: tuple[SchemaField, ...]
    plain: tuple[SchemaField, ...]
    tagged: dict[int, SchemaField]
    foreign_tags: frozenset[int]
    """Tags of the schema that this version does not have. Kafka throws on them, but accepts tags of no schema."""
    flexible: bool

    @property
    def least(self) -> int:
        return sum(node.least for node in self.plain) + self.flexible

    def default(self) -> dict[str, Any]:
        return {node.name: node.default() for node in self.fields}


class MessageSchema:
    """The schema of a message. `apiKey` identifies it among those that share a log or topic; None for others. `about`:
    what it states."""

    def __init__(self, name: str, condensed: dict[str, Any]) -> None:
        self.name = name
        self.about: str = condensed.get("about", "")
        self.type: str = condensed["type"]
        self.apiKey: int | None = condensed.get("apiKey")
        self.valid = Versions.parse(condensed["validVersions"])
        self.flexible = Versions.parse(condensed["flexibleVersions"])
        self.fields: list[dict[str, Any]] = condensed["fields"]
        self.common: dict[str, list[dict[str, Any]]] = condensed.get("commonStructs", {})
        self._structs: dict[int, SchemaStruct] = {}

    def struct(self, version: int) -> SchemaStruct:
        """Return the fields of `version`, which must be valid."""
        if version not in self._structs:
            self._structs[version] = _Resolver(self, version).struct(self.fields, "")
        return self._structs[version]


@cache
def load_folder(name: str) -> dict[str, MessageSchema]:
    """Load the messages of one of Kafka's modules, by name; its file in kdump/format/schemas has the module's name."""
    data = pkgutil.get_data("kdump.format", f"schemas/{name}.json")
    assert data is not None
    return {message: MessageSchema(message, condensed) for message, condensed in json.loads(data).items()}


@cache
def by_api_key(folder: str, kind: str = "") -> dict[int, MessageSchema]:
    """Return the messages of a module that have an apiKey, by apiKey; with `kind`, only those of this type."""
    schemas = load_folder(folder).values()
    return {schema.apiKey: schema for schema in schemas if schema.apiKey is not None and kind in ("", schema.type)}


@cache
def load(message: str) -> MessageSchema:
    """Load the schema of a message by its Kafka name. Raises KeyError if kdump does not have it."""
    for name in FOLDERS:
        if message in (folder := load_folder(name)):
            return folder[message]
    raise KeyError(message)


class _Resolver:
    """Builds the SchemaStruct of one version of one schema.

    No Kafka structure contains itself, so the recursion ends, and no input can make a reader recurse deeper."""

    def __init__(self, schema: MessageSchema, version: int) -> None:
        self.schema, self.version = schema, version
        self.flexible = schema.flexible.hold(version)

    def holds(self, field: dict[str, Any], key: str, absent: str = "none") -> bool:
        return Versions.parse(field.get(key, absent)).hold(self.version)

    def struct(self, fields: list[dict[str, Any]], prefix: str) -> SchemaStruct:
        nodes = tuple(self.field(field, prefix) for field in fields if self.holds(field, "versions"))
        tagged = {node.tag: node for node in nodes if node.tag is not None}
        foreign = frozenset(field["tag"] for field in fields if "tag" in field) - tagged.keys()
        return SchemaStruct(nodes, tuple(node for node in nodes if node.tag is None), tagged, foreign, self.flexible)

    def field(self, field: dict[str, Any], prefix: str) -> SchemaField:
        # Kafka's JsonConverters lowercase only the first letter: kRaftVersion.
        name = field["name"][0].lower() + field["name"][1:]
        tag = field["tag"] if self.holds(field, "taggedVersions") else None
        node = self.node(field, field["type"], name, prefix + name, self.holds(field, "nullableVersions"))
        if node.kind == "struct" and tag is not None:
            node = node._replace(compact=True, field=node.field._replace(wire=UNSIGNED_VARINT))
        if "default" in field:
            node = node._replace(default=_always(field["default"]))
        return node._replace(tag=tag)

    def node(self, field: dict[str, Any], kind: str, name: str, path: str, nullable: bool) -> SchemaField:
        """Return the node for a value of type `kind`: of the field itself or of an element."""
        if kind in FIXED:
            code = struct.Struct(">" + FIXED[kind].code)
            shown = Field(FIXED[kind], "", name=name)
            zero = _always(ZEROS.get(kind, 0))
            return SchemaField(name, path, kind, shown, code.size, zero, head=code.unpack_from, head_size=code.size)
        if kind in EMPTY:
            # In Kafka, a single field may be flexible from a later version on than its message.
            compact = self.flexible and self.holds(field, "flexibleVersions", "0+")
            return self.counted(
                SchemaField(name, path, kind, Field(BYTES, ""), 0, _always(EMPTY[kind]), nullable, compact)
            )
        if kind.startswith("[]"):
            element = self.node(field, kind[2:], name, path + "[]", nullable=False)
            if element.least == 0:
                raise ValueError(f"{self.schema.name}.{path}: elements of 0 bytes, whose count would be unbounded")
            shown = Field(ARRAY, "number of elements that follow")
            return self.counted(
                SchemaField(name, path, "array", shown, 0, list, nullable, self.flexible, element=element)
            )
        inner = self.struct(self.schema.common.get(kind) or field.get("fields", []), path + ".")
        least = 1 if nullable else inner.least
        shown = Field(INT8, "-1 if the structure is null", name=name)
        return SchemaField(name, path, "struct", shown, least, inner.default, nullable, inner=inner)

    def counted(self, node: SchemaField) -> SchemaField:
        """Return the node with the attributes that its length prefix implies."""
        # Names as in the protocol guide: COMPACT_NULLABLE_STRING and so on.
        wire = ("COMPACT_" if node.compact else "") + ("NULLABLE_" if node.nullable else "") + node.kind.upper()
        node = node._replace(field=node.field._replace(wire=Wire(wire), name=node.name))
        if node.compact:
            return node._replace(least=1)
        length = struct.Struct(">h" if node.kind == "string" else ">i")
        return node._replace(least=length.size, head=length.unpack_from, head_size=length.size)


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value
