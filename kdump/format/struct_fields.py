"""Fields of a structure as rows: of a layout as declared, of a message as the decoder resolves each version, so that
the description matches what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kdump.format.layout import ARRAY, BYTES, Bits, Field
from kdump.format.schema import FIXED, MessageSchema, SchemaField, SchemaStruct
from kdump.format.structs import NamedStruct
from kdump.format.versioned_messages import TAG_COUNT

NOT_GIVEN = object()


class StructField(NamedTuple):
    """A field. `depth` is its nesting depth; `position` (from the start of the structure) and `size` are in bytes, None
    if they depend on the data. Versions are in Kafka's notation, empty in a layout. `default` is NOT_GIVEN if the
    schema has none."""

    name: str
    depth: int
    type: str
    position: int | None = None
    size: int | None = None
    unit: str = ""
    meaning: str = ""
    bits: tuple[Bits, ...] = ()
    versions: str = ""
    nullable: str = ""
    tag: int | None = None
    tagged: str = ""
    default: Any = NOT_GIVEN


def rows(struct: NamedStruct, version: int | None = None) -> Iterator[StructField]:
    """Yield the fields of a structure in the order of their bytes. For a message: the fields of all versions in the
    order of the schema, or those of `version`, which must be valid."""
    if struct.text_fields:
        for field in struct.text_fields:
            yield StructField(field.name, 0, field.type, meaning=field.meaning)
    elif struct.schema is None:
        yield from _layout_rows(struct.fields, struct.positions, 0)
    elif version is None:
        yield from _Merged(struct.schema).rows()
    else:
        yield from _version_rows(struct.schema, version)


def _layout_rows(fields: tuple[Field, ...], positions: dict[str, int], depth: int) -> Iterator[StructField]:
    for number, field in enumerate(fields):
        kind = field.wire.name
        if field.wire in (BYTES, ARRAY):
            kind += f"[{field.sized_by}]" + (f" of {field.of.name}" if field.of else "")
        position = positions.get(field.name, 0 if not number and not depth else None) if not depth else None
        size = field.wire.size
        yield StructField(field.name, depth, kind, position, size, field.unit, field.meaning, field.bits)
        if field.of is not None:
            yield from _layout_rows(field.of.fields, {}, depth + 1)


def type_name(node: SchemaField, declared: str) -> str:
    """Return the type as the protocol guide names it; structures have the names that the schema declares."""
    if node.element is not None:
        return f"{node.field.wire.name} of {type_name(node.element, declared.removeprefix('[]'))}"
    if node.inner is not None:
        return f"NULLABLE {declared}" if node.nullable else declared
    return node.field.wire.name


def _inner(node: SchemaField) -> SchemaStruct | None:
    """Return the structure in a field or in the elements of its array, None if there is none."""
    while node.element is not None:
        node = node.element
    return node.inner


def _declared_fields(schema: MessageSchema, field: dict[str, Any]) -> list[dict[str, Any]]:
    kind = field["type"].replace("[]", "")
    return schema.common.get(kind) or field.get("fields", [])


def _name(field: dict[str, Any]) -> str:
    name: str = field["name"]
    return name[0].lower() + name[1:]


def _version_rows(schema: MessageSchema, version: int) -> Iterator[StructField]:
    yield from _struct_rows(schema, schema.struct(version), schema.fields, 0, 0)


def _struct_rows(
    schema: MessageSchema, struct: SchemaStruct, declared: list[dict[str, Any]], depth: int, position: int | None
) -> Iterator[StructField]:
    by_name = {_name(field): field for field in declared}
    for node in struct.plain:
        field = by_name[node.name]
        size = node.head_size if node.kind in FIXED else None
        yield _node_row(node, field, depth, position, size)
        inner = _inner(node)
        if inner is not None:
            yield from _struct_rows(schema, inner, _declared_fields(schema, field), depth + 1, None)
        position = position + size if position is not None and size is not None else None
    if struct.flexible:
        yield StructField(TAG_COUNT.name, depth, TAG_COUNT.wire.name, position, meaning=TAG_COUNT.meaning)
        for _, node in sorted(struct.tagged.items()):
            field = by_name[node.name]
            yield _node_row(node, field, depth + 1, None, None)
            inner = _inner(node)
            if inner is not None:
                yield from _struct_rows(schema, inner, _declared_fields(schema, field), depth + 2, None)


def _node_row(
    node: SchemaField, field: dict[str, Any], depth: int, position: int | None, size: int | None
) -> StructField:
    return StructField(
        node.name,
        depth,
        type_name(node, field["type"]),
        position,
        size,
        meaning=field.get("entityType", ""),
        versions=field["versions"],
        nullable=field.get("nullableVersions", ""),
        tag=node.tag,
        tagged=field.get("taggedVersions", ""),
        default=field.get("default", NOT_GIVEN),
    )


class _Merged:
    """All versions of a message, merged into one list of fields."""

    def __init__(self, schema: MessageSchema) -> None:
        self.schema = schema
        self.versions = range(schema.valid.lowest, schema.valid.highest + 1)

    def rows(self) -> Iterator[StructField]:
        structs = {version: self.schema.struct(version) for version in self.versions}
        yield from self._rows(structs, self.schema.fields, 0)

    def _rows(
        self, structs: dict[int, SchemaStruct], declared: list[dict[str, Any]], depth: int
    ) -> Iterator[StructField]:
        for field in declared:
            name = _name(field)
            # A name may be declared twice, for different versions.
            nodes = {
                version: node
                for version, struct in structs.items()
                for node in struct.fields
                if node.name == name and _holds(field, version)
            }
            if not nodes:
                continue
            newest = nodes[max(nodes)]
            row = _node_row(newest, field, depth, None, newest.head_size if newest.kind in FIXED else None)
            kinds = {version: type_name(node, field["type"]) for version, node in nodes.items()}
            yield row._replace(
                type=self._by_version(kinds),
                versions=self.text(set(nodes)),
                nullable=self.text({version for version, node in nodes.items() if node.nullable}),
                tag=field.get("tag"),
                tagged=self.text({version for version, node in nodes.items() if node.tag is not None}),
            )
            inner = {version: below for version, node in nodes.items() if (below := _inner(node)) is not None}
            if inner:
                yield from self._rows(inner, _declared_fields(self.schema, field), depth + 1)

    def _by_version(self, kinds: dict[int, str]) -> str:
        distinct = list(dict.fromkeys(kinds.values()))
        if len(distinct) == 1:
            return distinct[0]
        return ", ".join(
            f"{kind} ({self.text({version for version, other in kinds.items() if other == kind})})" for kind in distinct
        )

    def text(self, versions: set[int]) -> str:
        """Return versions in Kafka's notation, relative to the valid ones: 0+, 1-2, 3; empty for none."""
        if not versions:
            return ""
        low, high = min(versions), max(versions)
        if high == self.versions[-1]:
            return f"{low}+"
        return str(low) if low == high else f"{low}-{high}"


def _holds(field: dict[str, Any], version: int) -> bool:
    from kdump.format.schema import Versions

    return Versions.parse(field["versions"]).hold(version)
