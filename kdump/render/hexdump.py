"""Annotated hexdump: position, bytes, ASCII, name, value and meaning of each field."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timezone, tzinfo
from itertools import zip_longest
from typing import Any

from kdump.check.finding import Finding
from kdump.check.rules.records import decoded_findings, header_findings
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.batch_formats import FORMATS, LARGEST_HEADER, NEWEST, format_of
from kdump.format.batch_header import MAGIC_POSITION
from kdump.format.control_record import control_spans
from kdump.format.count_text import plain_count
from kdump.format.errors import DecodeError
from kdump.format.layout import LARGE, Layout, Span
from kdump.format.legacy_message import MESSAGES
from kdump.format.record import RECORD
from kdump.format.varint import Bytes
from kdump.io.errors import SourceError
from kdump.io.source import BYTES
from kdump.io.window import Window
from kdump.log.batch_records import unpacked
from kdump.log.entries import Entry
from kdump.log.legacy_records import value_bounds
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import JUNK, PADDING, Batch, DefaultRecordBatch, Defect, LegacyRecordBatch, Region
from kdump.render.decoded_values import lines
from kdump.render.escape import printable
from kdump.render.field_meanings import (
    OF_RECORDS,
    BatchFieldMeanings,
    FieldMeaning,
    MessageFieldMeanings,
    RecordFieldMeanings,
    bit_words,
    general,
    title,
)
from kdump.render.stdout import Output
from kdump.render.style import painter
from kdump.render.times import iso

CUT = 64
"""Number of bytes that are shown of a key, a value or junk of more than twice as many, unless everything is shown."""
LARGEST_BROKEN = 64 * 1024
"""Maximum number of bytes of a record, before the point at which decoding fails, that are read again to show them."""
NAME = 20
VALUE = 14
WIDE = 140
"""Terminal columns from which a line has room for 16 bytes and the words next to them."""


class Hexdump:
    """Writes batches and regions as annotated bytes. Positions are in the file; those marked + are in a decompressed
    payload, which has its own address space."""

    def __init__(
        self, output: Output, *, full: bool = False, zone: tzinfo = timezone.utc, decoding: RecordDecoder | None = None
    ) -> None:
        self.output, self.decoding = output, decoding
        self.target: Target | None = None
        """The current file."""
        self.full, self.zone = full, zone
        self.paint = painter(output.colour)
        self.room = output.width
        self.per_line = 16 if self.room is None or self.room >= WIDE else 8
        self.left = 11 + 3 * self.per_line + 1 + self.per_line + 2

    def region(self, region: Region, window: Window) -> None:
        """Write bytes that are not a batch: the fields of a torn header, or the first bytes."""
        head = (
            f"{region.kind} at {region.position}..{region.end - 1} ({plain_count(region.size, 'byte')}"
            f"): {region.reason}"
        )
        self._text(head, region.kind)
        if region.kind == PADDING:
            self.output.line("")
            return
        try:
            data = bytes(window.view(region.position, min(region.size, LARGEST_HEADER)))
            layout = self._layout_of(region, data)
            rest = self._walk(layout, data[: layout.size], region.position) if layout else 0
            limit = region.size - rest if self.full else CUT
            for piece in window.chunks(region.position + rest, min(limit, region.size - rest)):
                self._bytes(region.position + rest, bytes(piece), "", FieldMeaning(""))
                rest += len(piece)
            if rest < region.size:
                self._text(f"{'':11}… {plain_count(region.size - rest, 'more byte')} (--full)", "dim")
        except SourceError:
            why = "they are not in the bundle" if BYTES in window.source.lacks else "a stream cannot be read twice"
            self._text(f"{'':11}these bytes cannot be shown: {why}", "dim")
        self.output.line("")

    def batch(self, batch: Batch, chosen: Iterable[Record]) -> Reading[Batch]:
        """Write the header, then the selected records. Returns what decoding the batch has found."""
        self._text(title(batch), "head")
        reading = Reading(batch)
        wrong = self._examined(reading)
        words = BatchFieldMeanings(batch, self.zone, reading.problems, wrong)
        self._labels()
        if isinstance(batch, DefaultRecordBatch):
            data = b"".join(batch.chunks(0, batch.headerSize))
            self._walk(batch.layout, data, batch.position, words)
            self._payload_title(batch, batch.headerSize, batch.payload_size)
        elif isinstance(batch, LegacyRecordBatch) and batch.is_compressed:
            self._wrapper(batch, words)
        elif isinstance(batch, LegacyRecordBatch) and not self._valid_message(reading):
            self.output.line("")
            return reading
        self._records(reading, chosen, words)
        self.output.line("")
        return reading

    def _examined(self, reading: Reading[Batch]) -> dict[str, str]:
        """Decode the batch once before it is shown, so that its problems are known when its header is shown. Return
        what the findings about it say of fields of its header."""
        batch = reading.batch
        target = self.target or Target("", None, None, None)
        found = [*header_findings(target, batch)]
        of_records = [*decoded_findings(target, reading, keyed=False)]
        found += of_records if batch.crcValid else []
        return {finding.wrong_field: finding.message for finding in reversed(found) if finding.wrong_field}

    def entry(self, entry: Entry) -> None:
        """Write an entry of an index, a snapshot or a checkpoint, or the bytes around the entries."""
        if entry.layout is not None:
            for span in entry.layout.walk(entry.data, 0, entry.size):
                self._span(span, entry.data, entry.position, self._general)
            names = entry.layout.names
            values = ", ".join(f"{key} {value}" for key, value in entry.values.items() if key not in names)
            if values:
                self._text(f"{'':11}{values}", "dim")
            return
        if entry.size:
            values = ", ".join(f"{key} {printable(str(value))}" for key, value in entry.values.items())
            self._bytes(entry.position, entry.data, entry.what, FieldMeaning("", values))
        elif entry.values:
            self._text(f"{'':11}" + " ".join(printable(str(value)) for value in entry.values.values()), "")

    def finding(self, finding: Finding) -> None:
        self._text(f"! {finding.code}: {finding.message}", "bad")

    def _labels(self) -> None:
        names = f"{'position':>10} {'bytes':{3 * self.per_line}} {'ascii':{self.per_line}}  field"
        self.output.line(self.paint(names, "dim"))

    def _wrapper(self, batch: LegacyRecordBatch, words: BatchFieldMeanings) -> None:
        layout = MESSAGES[batch.magic]
        end = layout.size
        with suppress(DecodeError):
            bounds = value_bounds(batch)
            end = bounds.valuePosition
            data = b"".join(batch.chunks(0, end))
            spans = layout.walk(data, 0, end)
            with suppress(DecodeError):
                for span in spans:
                    self._span(span, data, batch.position, words)
            self._payload_title(batch, end, bounds.valueSize)
            return
        self._walk(layout, b"".join(batch.chunks(0, end)), batch.position, words)

    def _payload_title(self, batch: Batch, start: int, size: int) -> None:
        if not batch.is_compressed or size <= 0:
            return
        first = batch.position + start
        self._text(
            f"payload: {plain_count(size, 'byte')}"
            f" of {batch.compression} at {first}..{first + size - 1}. From here on, positions "
            f"marked + are in the decompressed payload.",
            "note",
        )

    def _records(self, reading: Reading[Batch], chosen: Iterable[Record], words: BatchFieldMeanings) -> None:
        expected = 0
        for record in chosen:
            self._skipped(record.index - expected)
            expected = record.index + 1
            self._record(record)
        if not reading.problems:
            self._skipped(reading.batch.possible_records - expected)
        for problem in reading.problems:
            if problem.struct in OF_RECORDS or problem.field not in words.marked:  # else it is reported at the field
                where = f"+{problem.position}" if problem.space else str(problem.position)
                self._text(f"! {problem.struct}.{problem.field} at {where}: {problem.reason}", "bad")
                if problem.struct in OF_RECORDS:
                    self._broken_record(reading, problem)
        structs = [problem.struct for problem in reading.problems]
        of_count = isinstance(reading.batch, DefaultRecordBatch) and "RecordBatch" in structs
        if of_count and not set(OF_RECORDS).intersection(structs):
            self._left_over(reading.batch, reading.decoded_to, reading.batch.is_compressed)

    def _skipped(self, count: int) -> None:
        if count > 0:
            self._text(f"… {count} {'record' if count == 1 else 'records'} not selected", "dim")

    @staticmethod
    def _layout_of(region: Region, data: bytes) -> Layout[Any] | None:
        """Return the layout of a torn or implausible header; None for bytes that do not begin with a header."""
        if region.kind == JUNK and region.claimed is None:
            return None
        return format_of(data[MAGIC_POSITION] if len(data) > MAGIC_POSITION else NEWEST).header

    def _valid_message(self, reading: Reading[Batch]) -> bool:
        """Return True if the body of a single message is valid, so that it is shown like a record; otherwise write its
        header and what is wrong."""
        batch = reading.batch
        assert isinstance(batch, LegacyRecordBatch)
        with suppress(DecodeError):
            value_bounds(batch)
            return True
        layout = MESSAGES[batch.magic]
        words = BatchFieldMeanings(batch, self.zone, reading.problems)
        rest = self._walk(layout, b"".join(batch.chunks(0, layout.size)), batch.position, words)
        self._rest(batch, rest)
        self._records(reading, (), words)
        return False

    def _broken_record(self, reading: Reading[Batch], problem: Defect) -> None:
        """Write the record at which decoding stopped: its fields as far as they are valid, then the bytes at that
        point."""
        batch, start = reading.batch, reading.decoded_to
        if not 0 <= problem.position - start < LARGEST_BROKEN:
            start = problem.position
        size = problem.position - start + CUT
        if problem.space:
            data = unpacked(batch, start, size)
        else:
            data = b"".join(batch.chunks(start - batch.position, size))
        end = problem.position - start
        inner = bool(problem.space)
        with suppress(DecodeError):
            for span in RECORD.walk(data, 0, len(data)):
                if span.position + span.size > end:
                    break
                self._span(span, data, start, self._general, inner)
        rest = FieldMeaning("", "", f"decoding stops here: {problem.reason}")
        row = data[end : end + self.per_line]
        self._bytes(problem.position, row, problem.field, rest, inner)
        self._left_over(batch, problem.position + len(row), inner)

    def _left_over(self, batch: Batch, position: int, inner: bool) -> None:
        """Write the bytes from a position on at which decoding stopped; `inner`: of the payload."""
        if inner:
            self._bytes(position, unpacked(batch, position, LARGEST_BROKEN), "", FieldMeaning(""), inner)
        else:
            self._rest(batch, position - batch.position)

    def _rest(self, batch: Batch, start: int) -> None:
        """Write the bytes of a batch from `start` on, which belong to no field."""
        limit = batch.size - start if self.full or batch.size - start <= 2 * CUT else CUT
        for piece in batch.chunks(start, max(0, limit)):
            self._bytes(batch.position + start, bytes(piece), "", FieldMeaning(""))
            start += len(piece)
        if start < batch.size:
            self._text(f"{'':11}… {plain_count(batch.size - start, 'more byte')} (--full)", "dim")

    def _record(self, record: Record) -> None:
        inner, is_message = record.batch.is_compressed, FORMATS[record.magic].is_message
        base = record.space_position
        if not is_message or inner:
            offset = "?" if record.offset is None else record.offset
            self._text(f"record {record.index}: offset {offset}, {_when(record, self.zone)}", "head")
        words = (
            RecordFieldMeanings(record, self.zone)
            if not is_message or inner
            else BatchFieldMeanings(record.batch, self.zone, record.batch.problems)
        )
        layout: Layout[Any] = MESSAGES[record.magic] if is_message else RECORD
        data: Bytes = record.raw if record.end - record.start <= LARGE else memoryview(record.data)
        data = data[record.start : record.end] if isinstance(data, memoryview) else data
        parts: dict[str, tuple[list[Span], Callable[[Span], FieldMeaning]]] = {}
        reading = None
        decoder = self.decoding.decoder(self.target) if self.decoding and self.target else None
        if record.is_control:
            keys, values = control_spans(record.key, record.value)
            parts = {"key": (keys, self._general), "value": (values, self._general)}
        elif self.decoding and self.target and decoder:
            reading = self.decoding.read(self.target, record)
            assert reading is not None
            keys, values = decoder.spans(record)
            parts["key"] = (keys, MessageFieldMeanings(reading.key, reading.names, self.zone))
            parts["value"] = (values, MessageFieldMeanings(reading.value, reading.names, self.zone))
        for span in layout.walk(data, 0, len(data)):
            inside, part_words = parts.get(span.field.name, ([], self._general))
            if not inside:
                if span.size or span.value is not None:
                    self._span(span, data, base, words, inner)
                continue
            for part in inside:
                self._part(part, span, data, base, part_words, inner)
        for line, style in lines(reading) if reading else ():
            self._text(line, style)

    def _part(
        self, part: Span, of: Span, data: Bytes, base: int, words: Callable[[Span], FieldMeaning], inner: bool
    ) -> None:
        """Write a field inside a key or value; `of` is the span of that key or value."""
        named = part.field._replace(name=f"{of.field.name}.{part.field.name}")
        moved = part._replace(position=of.position + part.position, field=named)
        self._span(moved, data, base, lambda _: words(part), inner)

    def _general(self, span: Span) -> FieldMeaning:
        return general(span, self.zone)

    def _walk(
        self, layout: Layout[Any], data: bytes, base: int, words: Callable[[Span], FieldMeaning] | None = None
    ) -> int:
        """Write the fields of a structure, as far as they are valid; return the number of bytes that they take up."""
        end = 0
        with suppress(DecodeError):
            for span in layout.walk(data, 0, len(data)):
                self._span(span, data, base, words or self._general)
                end = span.position + span.size
        return end

    def _span(
        self, span: Span, data: Bytes, base: int, words: Callable[[Span], FieldMeaning], inner: bool = False
    ) -> None:
        own = data[span.position : span.position + span.size]
        self._bytes(base + span.position, own, "  " * span.depth + span.field.name, words(span), inner)
        if span.field.name == "attributes" and isinstance(span.value, int):
            for bits in span.field.bits:
                last = bits.shift + bits.width - 1
                place = f"  bit {last}" if bits.width == 1 else f"  bits {bits.shift}-{last}"
                self._bytes(0, b"", place, bit_words(bits, span.value))

    def _bytes(self, position: int, data: Bytes, name: str, words: FieldMeaning, inner: bool = False) -> None:
        """Write the lines of one field: bytes and ASCII on the left, words on the right, with as many lines as each
        needs."""
        mark = "!" if words.wrong else " "
        nothing = ("", "", "")
        for left, right in zip_longest(self._rows(position, data, inner), self._words(name, words)):
            place, hexes, text = left or nothing
            start = f"{place:>10}{mark}{hexes:{3 * self.per_line}} {text:{self.per_line}}  "
            mark = " "
            if words.wrong:
                start = self.paint(start, "bad")
            self.output.line((start + (right or "")).rstrip())

    def _rows(self, position: int, data: Bytes, inner: bool) -> Iterator[tuple[str, str, str]]:
        cut_at = len(data) if self.full or len(data) <= 2 * CUT else CUT
        for at in range(0, cut_at, self.per_line):
            row = data[at : at + self.per_line]
            place = f"+{position + at}" if inner else str(position + at)
            letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
            yield place, row.hex(" "), letters
        if cut_at < len(data):
            yield "", f"… {plain_count(len(data) - cut_at, 'more byte')} (--full)", ""

    def _words(self, name: str, words: FieldMeaning) -> Iterator[str]:
        """Yield the right-hand side: name, value and meaning in columns if there is room, else as running text."""
        paint = self.paint
        wrong = f"WRONG: {words.wrong}" if words.wrong else ""
        room = None if self.room is None else max(20, self.room - self.left)
        if room is None or room >= 70:
            label, value = f"{name:{NAME}} ", f"{words.value:{VALUE}} "
            indent = len(label) + len(value)
            tail = "; ".join(filter(None, (words.meaning, wrong)))
            lines = [tail] if room is None else textwrap.wrap(tail, max(20, room - indent)) or [""]
            for i, line in enumerate(lines):
                start = paint(label, "name") + value if i == 0 else " " * indent
                yield start + (paint(line, "bad") if words.wrong else line)
            return
        heading = f"{name} {words.value}".rstrip()
        heading = "  ".join(filter(None, (heading, words.meaning)))
        for i, line in enumerate(textwrap.wrap(heading, room, subsequent_indent="  ")):
            yield paint(name, "name") + line[len(name) :] if i == 0 and line.startswith(name) else line
        for line in textwrap.wrap(wrong, room - 2):
            yield "  " + paint(line, "bad")

    def _text(self, text: str, style: str) -> None:
        for line in [text] if self.room is None else textwrap.wrap(text, self.room, subsequent_indent="  "):
            self.output.line(self.paint(line, style))


def _when(record: Record, zone: tzinfo) -> str:
    return "no timestamp" if record.timestamp is None else iso(record.timestamp, zone)
