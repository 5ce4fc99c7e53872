"""Structures as tables: the list of all, and the fields of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

from kdump.format.layout import Bits
from kdump.format.struct_fields import NOT_GIVEN, Row
from kdump.format.structs import Named
from kdump.render.escape import printable
from kdump.render.output import Output
from kdump.render.struct_keys import versions_text
from kdump.render.style import cut, painter
from kdump.render.table import Column, Table


def write_list(output: Output, structs: Iterable[Named]) -> None:
    """All structures, one line each, under their headings."""
    paint = painter(output.colour)
    found = list(structs)
    widest = max(len(each.name) for each in found)
    for number, (group, members) in enumerate(groupby(found, key=lambda each: each.group)):
        output.line(("\n" if number else "") + paint(group, "head"))
        for each in members:
            line = f"  {each.name:{widest}}  {_extent(each):14}  {each.about if each.schema else each.source}"
            line = line.rstrip()
            output.line(line if output.width is None else cut(line, output.width))
    output.flush()


def _extent(struct: Named) -> str:
    if struct.schema is not None:
        valid = versions_text(struct.schema.valid)
        return f"version {valid}" if valid.isdigit() else f"versions {valid}"
    return "any size" if struct.size is None else f"{struct.size} bytes"


def write_struct(output: Output, struct: Named, rows: Iterable[Row], version: int | None) -> None:
    """One structure: what it is, and its fields; of a message those of one `version`, or of all."""
    paint = painter(output.colour)
    output.line(paint(f"{struct.name}: {_title(struct, version)}", "head"))
    texts = [struct.about, f"source: {struct.source}"] if struct.about else [f"source: {struct.source}"]
    table = Table([Column("", "", str, least=20)], output)  # wraps as the table below does
    for text in texts:
        table.line(text, "dim")
    output.line("")
    found = list(rows)
    if not found:
        output.line("no fields")
        output.flush()
        return
    merged = struct.schema is not None and version is None
    fields = Table(_columns(found, merged=merged), output)
    for number, row in enumerate(found):
        fields.add((row, found[number - 1] if number else None))
        for bits in row.bits:
            fields.add((bits, row))
    fields.flush()
    output.flush()


def _title(struct: Named, version: int | None) -> str:
    schema = struct.schema
    if schema is None:
        return "its fields tell its size" if struct.size is None else f"{struct.size} bytes"
    flexible = versions_text(schema.flexible)
    if version is not None:
        kind = "flexible" if schema.flexible.hold(version) else "not flexible"
        return f"version {version} of {versions_text(schema.valid)}, {kind}"
    return f"{_extent(struct)}, flexible {flexible}"


Cells = tuple["Row | Bits", "Row | None"]
"""A field, or bits of the one behind it; and the field in front of it."""


def _columns(rows: list[Row], *, merged: bool) -> list[Column]:
    """Columns that no row has anything for are left out."""
    columns = [
        Column("position", "position", _position, right=True, rank=6),
        Column("size", "size", lambda cells: _of(cells, "size"), right=True, rank=5),
        Column("type", "type", _type, rank=8),
        Column("name", "field", _name),
        Column("versions", "versions", lambda cells: _of(cells, "versions") if merged else "", rank=7),
        Column("nullable", "nullable", lambda cells: _nullable(cells, merged), rank=6),
        Column("tag", "tag", _tag, rank=6),
        Column("default", "default", _default, rank=4),
        Column("unit", "unit", lambda cells: _of(cells, "unit"), rank=1),
        Column("meaning", "meaning", _meaning, rank=7, least=24),
    ]
    if merged or all(row.position is None for row in rows):
        columns = columns[2:] if merged else columns[1:]
    return columns


def _of(cells: Cells, name: str) -> str:
    value = getattr(cells[0], name, None) if isinstance(cells[0], Row) else None
    return "" if value is None else str(value)


def _position(cells: Cells) -> str:
    row, before = cells
    if isinstance(row, Bits):
        return ""
    if row.position is not None:
        return str(row.position)
    return f"behind {before.name}" if isinstance(before, Row) and before.depth == row.depth else ""


def _type(cells: Cells) -> str:
    row = cells[0]
    if isinstance(row, Row):
        return row.type
    return f"  bit {row.shift}" if row.width == 1 else f"  bits {row.shift}-{row.shift + row.width - 1}"


def _name(cells: Cells) -> str:
    row, before = cells
    depth = row.depth if isinstance(row, Row) else before.depth + 1 if before is not None else 1
    return "  " * depth + row.name


def _nullable(cells: Cells, merged: bool) -> str:
    row = cells[0]
    if not isinstance(row, Row) or not row.nullable:
        return ""
    return row.nullable if merged else "yes" if "NULLABLE" in row.type else ""


def _tag(cells: Cells) -> str:
    row = cells[0]
    if not isinstance(row, Row) or row.tag is None:
        return ""
    return f"{row.tag} ({row.tagged})" if row.tagged and row.tagged != row.versions else str(row.tag)


def _default(cells: Cells) -> str:
    row = cells[0]
    if not isinstance(row, Row) or row.default is NOT_GIVEN:
        return ""
    return printable(json.dumps(row.default, ensure_ascii=False))


def _meaning(cells: Cells) -> str:
    row = cells[0]
    if isinstance(row, Row):
        return row.meaning
    values = ", ".join(f"{number} {text}" for number, text in row.meanings.items())
    # Where only the 1 has a name, that is the name of the bit again.
    told = values if len(row.meanings) > 1 or not row.about else ""
    return f"{row.about} ({told})" if row.about and told else row.about or told
