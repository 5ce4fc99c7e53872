"""The annotated hexdump as lines that know their field: the output of kdump.render.hexdump, kept instead of printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timezone, tzinfo
from typing import NamedTuple

from kdump.check.finding import Finding
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.batch_header import BATCH_HEADER
from kdump.format.varint import Bytes
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch
from kdump.render.field_meanings import BatchFieldMeanings, FieldMeaning
from kdump.render.field_meanings import title as batch_title
from kdump.render.hexdump import WIDE, Hexdump
from kdump.render.stdout import Output
from kdump.render.style import cut
from kdump.render.style_marks import mark_style, split_styles

SHOWN = 16
"""Maximum number of bytes of a field that its row shows."""
HEADER = -1
"""Stands for the batch header in place of a record's index."""


class HexField(NamedTuple):
    """A field in a dump. `record`: index of its record, or HEADER; `inner`: whether `position` is a position in the
    decompressed payload."""

    name: str
    position: int
    size: int
    value: str
    meaning: str
    wrong: str
    record: int
    inner: bool
    data: bytes


class HexLine(NamedTuple):
    """Text parts, each with the name of its style. `field`: number of the field that the line is about; `record`: index
    of the record, or HEADER."""

    parts: tuple[tuple[str, str], ...]
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


class CapturedLines(Output):
    """Output that is kept as lines."""

    def __init__(self, width: int) -> None:
        self.terminal = True
        self.columns = width
        self.lines: list[HexLine] = []
        self.field: int | None = None
        self.record = HEADER

    @property
    def colour(self) -> bool:
        return False

    @property
    def width(self) -> int | None:
        return max(20, self.columns)

    def line(self, text: str) -> None:
        self.lines.append(HexLine(split_styles(text), self.field, self.record))


class AnnotatedDump(Hexdump):
    """Writes the dump and collects its fields."""

    def __init__(
        self, width: int, *, full: bool = False, zone: tzinfo = timezone.utc, decoding: RecordDecoder | None = None
    ) -> None:
        self.captured = CapturedLines(width)
        super().__init__(self.captured, full=full, zone=zone, decoding=decoding)
        self.paint = mark_style
        self.fields: list[HexField] = []
        self.brief = width < WIDE
        """Whether each field takes only one line, because the screen is narrow."""

    def add_finding(self, finding: Finding) -> None:
        """Write a finding in these bytes, with its impact."""
        self._text(f"! {finding.code} at {finding.position}: {finding.message}", "bad")
        if finding.consequence:
            self._text(f"  impact: {finding.consequence}", "torn")
        self.captured.line("")

    def text(self, text: str, style: str = "") -> None:
        self._text(text, style)

    def records_of(self, batch: Batch, chosen: Iterable[Record]) -> None:
        """Write the header, then these records."""
        self.batch(batch, chosen)
        self.captured.record, self.captured.field = HEADER, None

    def header_of(self, batch: Batch, why: str) -> None:
        """Write the header alone, of a batch whose records are not there; `why` says so."""
        self._text(batch_title(batch), "head")
        if isinstance(batch, DefaultRecordBatch):
            self._labels()
            data = BATCH_HEADER.struct.pack(*batch.stored_header)
            self._walk(BATCH_HEADER, data, batch.position, BatchFieldMeanings(batch, self.zone))
        self._text(why, "dim")

    def dump(self, title: str, shown: tuple[int, int] = (0, -1)) -> HexDump:
        return HexDump(title, self.captured.lines, self.fields, shown)

    def _record(self, record: Record) -> None:
        self.captured.record = record.index
        super()._record(record)
        self.captured.record = HEADER

    def _bytes(self, position: int, data: Bytes, name: str, words: FieldMeaning, inner: bool = False) -> None:
        is_bit = name.startswith("  bit")  # part of the previous field
        if is_bit and self.brief:
            return
        if not is_bit:
            captured = self.captured
            captured.field = len(self.fields)
            label = name.strip() or "bytes"
            size = len(data)
            self.fields.append(HexField(label, position, size, *words, captured.record, inner, bytes(data[:SHOWN])))
        super()._bytes(position, data, name, words, inner)

    def _words(self, name: str, words: FieldMeaning) -> Iterator[str]:
        lines = super()._words(name, words)
        if not self.brief or words.wrong:
            yield from lines
            return
        room = max(20, (self.room or 0) - self.left) - 1
        heading = "  ".join(filter(None, (f"{name} {words.value}".rstrip(), words.meaning)))
        heading = cut(heading, room)
        yield self.paint(heading[: len(name)], "name") + heading[len(name) :]

    def _text(self, text: str, style: str) -> None:
        self.captured.field = None
        super()._text(text.replace("(--full shows them)", "(--full)").replace("(--full)", "(x shows them)"), style)
