"""What the panes show, as lines: the annotated hexdump, the table and the tree. The first two are the output of
kdump.render.hexdump and kdump.render.table, kept instead of printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timezone, tzinfo
from typing import Annotated, NamedTuple

from kdump.answer import TEXT, VALUE, Doc, Shown, columns
from kdump.browse.listings import BrowseRow, Level
from kdump.check.finding import Finding
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.varint import Bytes
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.render.field_meanings import BatchFieldMeanings, FieldMeaning
from kdump.render.field_meanings import title as batch_title
from kdump.render.hexdump import WIDE, Hexdump
from kdump.render.style import cut
from kdump.render.style import width as width_of
from kdump.render.style_marks import CapturedOutput, Parts, mark_style
from kdump.render.table import Column, Table, TableRow

SHOWN = 16
"""Maximum number of bytes of a field that its row shows."""
HEADER = -1
"""Stands for the batch header in place of a record's index."""
LEAVES = ("field", "note")
"""Types of rows without contents."""


@columns(
    meaning=Shown(
        least=12, cell=lambda each: f"WRONG: {each.wrong}; " * bool(each.wrong) + each.meaning, after="value"
    ),
    position=Shown(rank=5, cell=lambda field: "+" * field.inner + str(field.position), after="meaning", right=True),
    bytes=Shown(rank=1, least=12, cell=lambda field: field.data.hex(" ")),
)
class HexField(NamedTuple):
    """A field in a dump. `record`: index of its record, or HEADER; `inner`: whether `position` is a position in the
    decompressed payload."""

    name: Annotated[str, Doc(), Shown("field")]
    position: int
    size: Annotated[int, Shown(rank=3, after="position")]
    value: Annotated[str, Shown(rank=8)]
    meaning: str
    wrong: str
    record: int
    inner: bool
    data: bytes


class HexLine(NamedTuple):
    """Text parts, each with the name of its style. `field`: number of the field that the line is about; `record`: index
    of the record, or HEADER."""

    parts: Parts
    field: int | None = None
    record: int = HEADER

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)


class HexDump(NamedTuple):
    """The dump of an item's bytes. `shown`: indexes of the first and the last record in it."""

    title: str
    lines: list[HexLine]
    fields: list[HexField]
    shown: tuple[int, int] = (0, -1)


class AnnotatedDump(Hexdump):
    """Writes the dump and collects its lines and fields. `at_field`, `at_record`: what the next lines are about."""

    def __init__(
        self, width: int, *, full: bool = False, zone: tzinfo = timezone.utc, decoding: RecordDecoder | None = None
    ) -> None:
        self.lines: list[HexLine] = []
        self.at_field: int | None = None
        self.at_record = HEADER
        super().__init__(CapturedOutput(max(20, width), self._keep), full=full, zone=zone, decoding=decoding)
        self.paint = mark_style
        self.fields: list[HexField] = []
        self.brief = width < WIDE
        """Whether each field takes only one line, because the screen is narrow."""

    def _keep(self, parts: Parts) -> None:
        self.lines.append(HexLine(parts, self.at_field, self.at_record))

    def add_finding(self, finding: Finding) -> None:
        """Write a finding in these bytes, with its impact."""
        self._text(f"! {finding.code} at {finding.position}: {finding.message}", "bad")
        if finding.consequence:
            self._text(f"  impact: {finding.consequence}", "torn")
        self.output.line("")

    def text(self, line: str, style: str = "") -> None:
        self._text(line, style)

    def records_of(self, batch: Batch, chosen: Iterable[Record]) -> None:
        """Write the header, then these records."""
        self.batch(batch, chosen)
        self.at_record, self.at_field = HEADER, None

    def header_of(self, batch: Batch, why: str) -> None:
        """Write the header alone, of a batch whose records are not there; `why` says so."""
        self._text(batch_title(batch), "head")
        if isinstance(batch, DefaultRecordBatch):
            self._labels()
            words = BatchFieldMeanings(batch, self.zone, batch.problems)
            self._walk(batch.layout, batch.stored_header.packed(), batch.position, words)
        self._text(why, "dim")

    def dump(self, title: str, shown: tuple[int, int] = (0, -1)) -> HexDump:
        return HexDump(title, self.lines, self.fields, shown)

    def _record(self, record: Record) -> None:
        self.at_record = record.index
        super()._record(record)
        self.at_record = HEADER

    def _bytes(self, position: int, data: Bytes, name: str, words: FieldMeaning, inner: bool = False) -> None:
        is_bit = name.startswith("  bit")  # part of the previous field
        if is_bit and self.brief:
            return
        if not is_bit:
            self.at_field = len(self.fields)
            label = name.strip() or "bytes"
            size = len(data)
            self.fields.append(HexField(label, position, size, *words, self.at_record, inner, bytes(data[:SHOWN])))
        super()._bytes(position, data, name, words, inner)

    def _words(self, name: str, words: FieldMeaning) -> Iterator[str]:
        lines = super()._words(name, words)
        if not self.brief or words.wrong:
            yield from lines
            return
        columns = max(20, (self.room or 0) - self.left) - 1
        heading = "  ".join(filter(None, (f"{name} {words.value}".rstrip(), words.meaning)))
        heading = cut(heading, columns)
        yield self.paint(heading[: len(name)], "name") + heading[len(name) :]

    def _text(self, line: str, style: str) -> None:
        self.at_field = None
        super()._text(line.replace("(--full shows them)", "(--full)").replace("(--full)", "(x shows them)"), style)


def table(columns: list[Column], rows: list[BrowseRow], width: int) -> tuple[HexLine, list[HexLine]]:
    """Return the header line and one line per row, fitted to `width` terminal columns; all rows determine the widths of
    the columns."""
    shown: list[HexLine] = []
    columns = [column._replace(cuts=VALUE) if column.cuts == TEXT else column for column in columns]  # one line per row
    laid = Table(columns, CapturedOutput(max(20, width), lambda parts: shown.append(HexLine(parts))))
    laid.paint = mark_style
    made = [TableRow(list(row.cells), row.style) for row in rows if not row.text]
    laid.flush(made)
    for table_row in made:
        laid._write(table_row)
    ready = iter(shown)
    head = next(ready, HexLine(()))
    lines = [HexLine(((cut(row.text, width), row.style),)) if row.text else next(ready) for row in rows]
    return head, lines


def tree(levels: list[Level], title: str, width: int) -> tuple[list[HexLine], list[tuple[int, int]]]:
    """Return the lines of the tree, and the level and row number of each. An ellipsis has a number outside the level's
    rows; the top line has (-1, 0)."""
    lines, places = [HexLine(((cut(title, width), "head"),))], [(-1, 0)]
    _branch(levels, 0, width, lines, places)
    return lines, places


def _branch(levels: list[Level], depth: int, width: int, lines: list[HexLine], places: list[tuple[int, int]]) -> None:
    level = levels[depth]
    inner = depth + 1 < len(levels)
    indent = " " * (depth + 1)
    if not level.first:
        lines.append(HexLine(((f"{indent}  …", "dim"),)))
        places.append((depth, -1))
    for number, row in enumerate(level.rows):
        is_open = inner and number == level.cursor
        mark = "▾ " if is_open else "  " if row.type in LEAVES else "▸ "
        lines.append(HexLine(((cut(f"{indent}{mark}{row.label}", width), row.style),)))
        places.append((depth, number))
        if is_open:
            _branch(levels, depth + 1, width, lines, places)
    if not level.last:
        lines.append(HexLine(((f"{indent}  …", "dim"),)))
        places.append((depth, len(level.rows)))


def wrapped(text: str, width: int) -> list[str]:
    """Break text into lines at any column, so that joining the lines restores it: for JSON and commands."""
    parts = []
    for line in text.split("\n"):
        start = used = 0
        if line.isascii():
            start = max(0, len(line) - 1) // width * width
            parts += [line[column : column + width] for column in range(0, start, width)]
        else:
            for column, letter in enumerate(line):
                own = width_of(letter)
                if used + own > width and column > start:
                    parts.append(line[start:column])
                    start, used = column, 0
                used += own
        parts.append(line[start:])
    return parts
