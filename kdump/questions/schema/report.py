"""Prints structures as tables: the list of all, and the fields of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap
from typing import Annotated, NamedTuple

from kdump.answer import Shown
from kdump.format.count_text import plain_count
from kdump.format.layout import Bits
from kdump.format.struct_fields import NOT_GIVEN, StructField, rows
from kdump.format.structs import NamedStruct
from kdump.questions.schema.answer import versions_text
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
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
        for text in texts:
            output.text(text, style="dim")
        output.line("")
        shown = list(rows(struct, version))
        if not shown:
            output.line("no fields")
            return
        merged = struct.schema is not None and version is None
        lines = [*_lines(shown, merged=merged)]
        columns, width_left = _fitting(table_columns(FieldLine)[2 if merged else 0 :], lines, output.width)
        fields = Table(columns, output, chosen=True)
        for line in lines:
            is_long = width_left is not None and len(line.meaning) > width_left
            first, *rest = wrap(line.meaning, width_left or 0) if is_long else [line.meaning]
            fields.add(line._replace(meaning=first))
            for continuation in rest:
                fields.add(FieldLine(meaning=continuation))
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


class FieldLine(NamedTuple):
    """A line of the table: a field, bits of one, or the continuation of a meaning."""

    position: Annotated[str, Shown(rank=6, right=True)] = ""
    size: Annotated[str, Shown(rank=5, right=True)] = ""
    type: Annotated[str, Shown()] = ""
    name: Annotated[str, Shown("field")] = ""
    versions: Annotated[str, Shown(rank=7)] = ""
    nullable: Annotated[str, Shown(rank=6)] = ""
    tag: Annotated[str, Shown(rank=6)] = ""
    default: Annotated[str, Shown(rank=4)] = ""
    unit: Annotated[str, Shown(rank=1)] = ""
    meaning: Annotated[str, Shown()] = ""


def _lines(fields: list[StructField], *, merged: bool) -> Iterator[FieldLine]:
    """Yield a line for each field, and for its bits; `merged`: of all versions of a message."""
    before: StructField | None = None
    for field in fields:
        after = f"after {before.name}" if before is not None and before.depth == field.depth else ""
        is_tagged = field.tagged and field.tagged != field.versions
        yield FieldLine(
            after if field.position is None else str(field.position),
            "" if field.size is None else str(field.size),
            field.type,
            "  " * field.depth + field.name,
            field.versions * merged,
            field.nullable if merged else "yes" * bool(field.nullable and "NULLABLE" in field.type),
            "" if field.tag is None else f"{field.tag} ({field.tagged})" if is_tagged else str(field.tag),
            "" if field.default is NOT_GIVEN else json.dumps(field.default, ensure_ascii=False),
            field.unit,
            field.meaning,
        )
        for bits in field.bits:
            kind = f"  bit {bits.shift}" if bits.width == 1 else f"  bits {bits.shift}-{bits.shift + bits.width - 1}"
            yield FieldLine(type=kind, name="  " * (field.depth + 1) + bits.name, meaning=_bits_meaning(bits))
        before = field


def _fitting(columns: list[Column], lines: list[FieldLine], width: int | None) -> tuple[list[Column], int | None]:
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


def _bits_meaning(bits: Bits) -> str:
    values = ", ".join(f"{number} {meaning}" for number, meaning in bits.meanings.items())
    # If only the 1 has a name, it repeats the name of the bit.
    meaning = values if len(bits.meanings) > 1 or not bits.about else ""
    return f"{bits.about} ({meaning})" if bits.about and meaning else bits.about or meaning
