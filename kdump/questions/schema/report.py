"""Prints structures as tables: the list of all, and the fields of one."""

from __future__ import annotations

import json
from itertools import groupby
from textwrap import wrap
from typing import NamedTuple

from kdump.format.count_text import plain_count
from kdump.format.layout import Bits
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import NamedStruct
from kdump.questions.schema.answer import versions_text
from kdump.render.escape import printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.style import cut
from kdump.render.table import GAP, Column, Table

ROOM = 24
"""Columns of the terminal reserved for meanings; less important columns are omitted to make room."""


class StructList(Sink[NamedStruct]):
    """Writes all structures, one line each, under the headings of their groups."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self._found: list[NamedStruct] = []

    def add(self, answer: NamedStruct) -> None:
        self._found.append(answer)

    def end(self) -> None:
        output = self.output
        paint = output.paint
        widest = max(len(struct.name) for struct in self._found)
        for number, (group, members) in enumerate(groupby(self._found, key=lambda struct: struct.group)):
            output.line(("\n" if number else "") + paint(group, "head"))
            for struct in members:
                about = struct.about if struct.schema else struct.source
                line = f"  {struct.name:{widest}}  {_extent(struct):14}  {about}".rstrip()
                output.line(line if output.width is None else cut(line, output.width))


def _extent(struct: NamedStruct) -> str:
    if struct.schema is not None:
        valid = versions_text(struct.schema.valid)
        return f"version {valid}" if valid.isdigit() else f"versions {valid}"
    return "any size" if struct.size is None else plain_count(struct.size, "byte")


class StructReport(Sink[NamedStruct]):
    """Writes one structure: its description and its fields; of a message, those of one `version`, or of all."""

    def __init__(self, output: Output, version: int | None) -> None:
        self.output, self.version = output, version

    def add(self, answer: NamedStruct) -> None:
        struct, output, version = answer, self.output, self.version
        paint = output.paint
        output.line(paint(f"{struct.name}: {_title(struct, version)}", "head"))
        texts = [struct.about, f"source: {struct.source}"] if struct.about else [f"source: {struct.source}"]
        table = Table([Column("", "", str, least=20)], output)  # wraps like the table below
        for text in texts:
            table.line(text, "dim")
        output.line("")
        shown = list(rows(struct, version))
        if not shown:
            output.line("no fields")
            return
        merged = struct.schema is not None and version is None
        lines: list[Cells] = []
        for number, row in enumerate(shown):
            lines.append(Cells(row, shown[number - 1] if number else None, row.meaning))
            lines += [Cells(bits, row, _bits_meaning(bits)) for bits in row.bits]
        columns, width_left = _fitting(_columns(merged=merged), lines, output.width)
        fields = Table(columns, output, chosen=True)
        for line in lines:
            is_long = width_left is not None and len(line.meaning) > width_left
            first, *rest = wrap(line.meaning, width_left or 0) if is_long else [line.meaning]
            fields.add(line._replace(meaning=first))
            for continuation in rest:
                fields.add(Cells(None, None, continuation))
        fields.flush()


def _title(struct: NamedStruct, version: int | None) -> str:
    schema = struct.schema
    if struct.text_fields:
        return "text"
    if schema is None:
        return "variable size" if struct.size is None else plain_count(struct.size, "byte")
    flexible = versions_text(schema.flexible)
    if version is not None:
        kind = "flexible" if schema.flexible.hold(version) else "not flexible"
        return f"version {version} of {versions_text(schema.valid)}, {kind}"
    return f"{_extent(struct)}, flexible {flexible}"


class Cells(NamedTuple):
    """A line of the table: a field and the field before it; bits and their field; or the continuation of a meaning."""

    item: StructField | Bits | None
    before: StructField | None
    meaning: str


def _columns(*, merged: bool) -> list[Column]:
    columns = [
        Column("position", "position", _position, right=True, rank=6),
        Column("size", "size", lambda cells: _of(cells, "size"), right=True, rank=5),
        Column("type", "type", _type),
        Column("name", "field", _name),
        Column("versions", "versions", lambda cells: _of(cells, "versions") if merged else "", rank=7),
        Column("nullable", "nullable", lambda cells: _nullable(cells, merged), rank=6),
        Column("tag", "tag", _tag, rank=6),
        Column("default", "default", _default, rank=4),
        Column("unit", "unit", lambda cells: _of(cells, "unit"), rank=1),
        Column("meaning", "meaning", lambda cells: cells.meaning),
    ]
    return columns[2:] if merged else columns


def _fitting(columns: list[Column], lines: list[Cells], width: int | None) -> tuple[list[Column], int | None]:
    """Return the columns that are not empty, as many as leave room for meanings; and that room, None for a pipe."""
    columns = [column for column in columns if any(column.cell(line) for line in lines)]
    if width is None or columns[-1].name != "meaning":
        return columns, None
    longest = min(ROOM, max(len(line.meaning) for line in lines))
    while True:
        taken = [max(len(column.label), *(len(column.cell(line)) for line in lines)) for column in columns[:-1]]
        width_left = width - sum(taken) - len(GAP) * len(taken)
        lowest = min(columns, key=lambda column: column.rank)
        if width_left >= longest or lowest.rank == 9:
            return columns, max(width_left, 20)
        columns.remove(lowest)


def _of(cells: Cells, name: str) -> str:
    value = getattr(cells.item, name, None) if isinstance(cells.item, StructField) else None
    return "" if value is None else str(value)


def _position(cells: Cells) -> str:
    row, before, _ = cells
    if not isinstance(row, StructField):
        return ""
    if row.position is not None:
        return str(row.position)
    return f"after {before.name}" if isinstance(before, StructField) and before.depth == row.depth else ""


def _type(cells: Cells) -> str:
    row = cells.item
    if row is None or isinstance(row, StructField):
        return row.type if row else ""
    return f"  bit {row.shift}" if row.width == 1 else f"  bits {row.shift}-{row.shift + row.width - 1}"


def _name(cells: Cells) -> str:
    row, before, _ = cells
    if row is None:
        return ""
    depth = row.depth if isinstance(row, StructField) else before.depth + 1 if before is not None else 1
    return "  " * depth + row.name


def _nullable(cells: Cells, merged: bool) -> str:
    row = cells.item
    if not isinstance(row, StructField) or not row.nullable:
        return ""
    return row.nullable if merged else "yes" if "NULLABLE" in row.type else ""


def _tag(cells: Cells) -> str:
    row = cells.item
    if not isinstance(row, StructField) or row.tag is None:
        return ""
    return f"{row.tag} ({row.tagged})" if row.tagged and row.tagged != row.versions else str(row.tag)


def _default(cells: Cells) -> str:
    row = cells.item
    if not isinstance(row, StructField) or row.default is NOT_GIVEN:
        return ""
    return printable(json.dumps(row.default, ensure_ascii=False))


def _bits_meaning(bits: Bits) -> str:
    values = ", ".join(f"{number} {meaning}" for number, meaning in bits.meanings.items())
    # If only the 1 has a name, it repeats the name of the bit.
    meaning = values if len(bits.meanings) > 1 or not bits.about else ""
    return f"{bits.about} ({meaning})" if bits.about and meaning else bits.about or meaning
