"""The output of `kdump inspect`: one view per format, all with the same methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from kdump import jsonl
from kdump.answer import Object, answer_object
from kdump.check.finding import Finding
from kdump.check.rules.records import noted_and_count_findings, with_findings
from kdump.decode.decoder_interface import DecodedRecord
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.count_text import plain_count
from kdump.io.window import Window
from kdump.log.entries import Entry
from kdump.log.inspect_answer import ENTRIES, InspectedBatch, InspectedRecord
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, BatchRun, Region
from kdump.questions.inspect.columns import DECODED, TableDecoder, columns_of, header_pieces, refuse_unknown
from kdump.questions.inspect.options import InspectOptions
from kdump.render.decoded_values import lines
from kdump.render.escape import LARGE, bytes_text_pieces, path_text, printable
from kdump.render.inspect_json import batch_object, entry_object, log_keys, record_line, record_object, region_object
from kdump.render.line_parts import DecodedLines
from kdump.render.record_template import Part, render
from kdump.render.sink import CsvRows
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, problem_line

if TYPE_CHECKING:
    from kdump.render.redaction import Redaction

NARROW = 180
"""Terminal columns below which decoded values of Kafka's own records are written below their rows."""
MAX_VALUE_LINES = 4
"""Approximate maximum number of lines of such a value."""


class View:
    """`batch` receives the selected records of the batch, and returns the number of rows written."""

    output: Output

    def file(self, target: Target) -> None:
        """Begin the next file."""

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        raise NotImplementedError

    def entry(self, target: Target, entry: Entry) -> int:
        """Write an entry of a file without batches; return the number of rows."""
        return 0

    def finding(self, finding: Finding) -> None:
        raise NotImplementedError

    def of_batch(self, target: Target, reading: Reading[Batch]) -> int:
        """Write the findings about a batch whose row has been written; return the number of rows."""
        for finding in noted_and_count_findings(target, reading):
            self.finding(finding)
        return 1

    def region(self, target: Target, region: Region, window: Window) -> None:
        """Write bytes that are not a batch or an entry."""
        raise NotImplementedError

    def begin(self, target: Target) -> None:
        """Called when the file has been opened, and its kind is known."""

    def batch_run(self, target: Target, run: BatchRun) -> None:
        """Write many batches; only for a view that has set `whole_runs` of the scan."""
        raise NotImplementedError

    def tick(self) -> None:
        """Called now and then while there is nothing to write."""
        self.output.tick()

    def drain(self) -> None:
        """Wait until what is being written in other threads has been written."""

    def end(self) -> None:
        """Called when everything has been written."""
        self.output.flush()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was shown, after `end`."""
        return self.output.is_empty


class TableView(View):
    """A table of batches, of records, or of the entries of another kind of file. Raises UnknownColumn for a name in
    `names` that no table has; the methods raise it for a name that their own table does not have."""

    def __init__(self, output: Output, options: InspectOptions, decoding: RecordDecoder, *, titles: bool) -> None:
        self.output, self.records, self.decoding = output, options.of_records, decoding
        self.names, self.full, self.zone = options.output.names, options.output.full, options.output.zone
        self.titles = titles
        self.shows_decoded = self.names is None or not {"key", "value", *DECODED}.isdisjoint(self.names)
        self.target: Target | None = None
        self._is_plain = False
        """Whether nothing is decoded of the current record."""
        self.below: Column | None = None
        """The column that is written below each row instead of in it."""
        self._title = ""
        """Line to write before the first one about the current file: nothing is written about a file without any."""
        self.table: Table | None = None
        self.type = ""
        """Type of the JSON objects in `table`."""
        refuse_unknown(self.names)

    def file(self, target: Target) -> None:
        self.target = target
        if self.titles:
            if self.table is not None:
                self.table.flush()
                self.table = None
            self._title = printable(path_text(target.path)) + ":"

    def _for(self, type_name: str) -> Table:
        """Return the table for objects of this type; ends the table of another type."""
        if self.table is None or type_name != self.type:
            if self.table is not None:
                self.table.flush()
            full = self.full or self.output.width is None
            decodes = self._decodes()
            narrow = self.names is None and not full and (self.output.width or 0) < NARROW
            if decodes and decodes.is_wide and narrow:
                decodes = decodes._replace(is_stacked=True)
            columns = columns_of(type_name, self.zone, self.names, full, decodes, self._file)
            self.below = columns.pop() if type_name == "record" and decodes and decodes.is_stacked else None
            before, self.table = self.table, Table(columns, self.output, full=self.full, chosen=self.names is not None)
            self.table.title, self._title = self._title or (before.title if before is not None else ""), ""
            self.type = type_name
        return self.table

    def _file(self) -> Object:
        return log_keys(self.target) if self.target is not None else {}

    def _decodes(self) -> TableDecoder | None:
        """Return the decoder for the records of the current file; None if there is none."""
        target, decoding = self.target, self.decoding
        decoder = decoding.decoder(target) if target is not None else None
        if decoder is None:
            return None

        def read(record: Record) -> DecodedRecord | None:
            if self._is_plain:
                return None
            assert self.target is not None
            return decoding.read(self.target, record)

        return TableDecoder(read, decoder.is_keyless, decoder.is_wide)

    @property
    def _current(self) -> Table:
        return self.table or self._for("record" if self.records else "batch")

    def entry(self, target: Target, entry: Entry) -> int:
        if not entry.type:
            if entry.what in ("version", "count") and self.names is None:
                number = printable(bytes(entry.data).decode("utf-8", "replace").strip())
                self._title += f" version {number}" if entry.what == "version" else f", count {number}"
                self._title = self._title.lstrip()
            return 0
        self._for(entry.type).add(entry)
        return 1

    def finding(self, finding: Finding) -> None:
        self._current.line(problem_line(finding.code, finding.position, finding.message), "bad")

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        batch, self.target = reading.batch, target
        if not self.records:
            self._for("batch").add(batch, "" if batch.crcValid else "bad")
            return self.of_batch(target, reading)
        table = self._for("record")
        decoding = self.decoding if self.shows_decoded and self.decoding.decoder(target) else None
        rows = 0
        for record in with_findings(target, reading, records, self.finding):
            self._add(table, record, "bad" if record.is_damaged else "control" if record.is_control else "")
            decoded = decoding.read(target, record) if decoding else None
            if self.below:
                self._value_below(table, self.below, record)
            for line, line_style in lines(decoded) if decoded else ():
                table.line(line, line_style)
            rows += 1
        return rows

    def record(self, target: Target, record: Record, reading: DecodedRecord | None = None) -> None:
        """Write one record of a valid batch of which nothing is decoded."""
        table = self._for("record")
        self._is_plain = True
        self._add(table, record)
        self._is_plain = False

    def _add(self, table: Table, record: Record, style: str = "") -> None:
        long = {}
        if record.end - record.start > LARGE and table.room is None:
            cells = ((i, self._long(record, column.name)) for i, column in enumerate(table.columns))
            long = {i: pieces for i, pieces in cells if pieces is not None}
        if long:
            table.add_long(record, long, style)
        else:
            table.add(record, style)

    @staticmethod
    def _long(record: Record, name: str) -> Iterator[str] | None:
        """Pieces of the cell in the column of that name, if it is long."""
        if name == "headers" and record.header_count and record.end - record.header_start > LARGE:
            return header_pieces(record)
        start, size = record.key_start, record.keySize
        if name == "value":
            start, size = record.value_start, record.valueSize
        if name not in ("key", "value") or size <= LARGE or record.is_control:
            return None
        return bytes_text_pieces(memoryview(record.data)[start : start + size])

    def _value_below(self, table: Table, column: Column, record: Record) -> None:
        """Write the value in lines of its own, because the terminal has no room for it next to the key."""
        width = self.output.width or NARROW
        value = column.cell(record)
        if value:
            most = MAX_VALUE_LINES * (width - 10)
            table.line("      " + (value if len(value) <= most else value[: most - 1] + "…"))

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.target = target
        line = f"{region.kind}: {plain_count(region.size, 'byte')} at {region.position}..{region.end - 1}"
        if region.claimed is not None and region.kind == "torn":
            line += f", offset {region.claimed[0]}"
        self._current.line(f"{line}: {region.reason}" if region.reason else line, region.kind)

    def tick(self) -> None:
        if self.table is not None:
            self.table.tick()

    def end(self) -> None:
        if self.table is not None:
            self.table.flush()
        self.output.flush()


class JsonView(View):
    """JSON Lines: batches, or records."""

    def __init__(self, output: Output, *, records: bool, decoding: RecordDecoder | None = None) -> None:
        self.output, self.records, self.decoding = output, records, decoding
        self.decoded_lines = DecodedLines()

    def entry(self, target: Target, entry: Entry) -> int:
        if not entry.type:
            return 0
        self._write(entry_object(target, entry))
        return 1

    def finding(self, finding: Finding) -> None:
        self._write(answer_object(finding))

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        if not self.records:
            self._write(batch_object(target, reading.batch))
            return self.of_batch(target, reading)
        rows = 0
        decoding = self.decoding if self.decoding and self.decoding.decoder(target) else None
        for record in with_findings(target, reading, records, self.finding):
            self._record(target, record, decoding)
            rows += 1
        return rows

    def region(self, target: Target, region: Region, window: Window) -> None:
        self._write(region_object(target, region))

    def _record(self, target: Target, record: Record, decoding: RecordDecoder | None) -> None:
        self.record(target, record, decoding.read(target, record) if decoding else None)

    def record(self, target: Target, record: Record, reading: DecodedRecord | None = None) -> None:
        """Write one record with what is decoded of it."""
        if record.end - record.start > LARGE:
            for part in record_line(target, record, reading):
                self.output.write(part)
        elif reading is not None and (line := self.decoded_lines.line(target, record, reading)) is not None:
            self.output.write(line)
        else:
            self._write(record_object(target, record, reading))

    def _write(self, answer: Object) -> None:
        self.output.line(jsonl.line(answer))


PATHS = ("file", "source")
"""Keys whose values are paths."""


class RedactedView(JsonView):
    """JSON Lines in which the redaction replaces what it applies to. Nothing is decoded."""

    def __init__(self, output: Output, redaction: Redaction, *, records: bool) -> None:
        from kdump.render.redaction import redacted_record

        super().__init__(output, records=records)
        self.redaction, self._redacted = redaction, redacted_record

    def _record(self, target: Target, record: Record, decoding: RecordDecoder | None) -> None:
        super()._write(self._redacted(self.redaction, target, record))

    def _write(self, answer: Object) -> None:
        for name in PATHS:
            if name in answer:
                answer[name] = self.redaction.path(answer[name])
        if isinstance(answer.get("topic"), str):
            answer["topic"] = self.redaction.topic(answer["topic"])
        if isinstance(answer.get("name"), str) and isinstance(answer.get("value"), str):
            answer["name"], answer["value"] = self.redaction.property(answer["name"], answer["value"])
        super()._write(answer)


class RowsView(View):
    """A view whose output has no place for damage: `complain` reports it."""

    complain: Complain

    def finding(self, finding: Finding) -> None:
        self.complain(f"{path_text(finding.file)}: {finding.code} at byte {finding.position}: {finding.message}")

    def region(self, target: Target, region: Region, window: Window) -> None:
        self.complain(f"{path_text(target.path)}: {region.kind} at byte {region.position}: {region.reason}")


class CsvView(RowsView):
    """CSV: batches, records, or the entries of another kind of file. Raises UnknownColumn, and OtherColumns for a file
    of another kind than the first."""

    def __init__(self, output: Output, options: InspectOptions, complain: Complain, decoding: RecordDecoder) -> None:
        self.output, self.records, self.complain, self.decoding = output, options.of_records, complain, decoding
        of_batches = InspectedRecord if self.records else InspectedBatch
        self.rows = CsvRows(output, (of_batches, *ENTRIES), options.output.names, lambda count: None)

    def entry(self, target: Target, entry: Entry) -> int:
        if not entry.type:
            return 0
        self.rows.add(entry_object(target, entry))
        return 1

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        if not self.records:
            self.rows.add(batch_object(target, reading.batch))
            return self.of_batch(target, reading)
        rows = 0
        decoding = self.decoding if self.decoding.decoder(target) is not None else None
        for record in with_findings(target, reading, records, self.finding):
            self.rows.add(record_object(target, record, decoding.read(target, record) if decoding else None))
            rows += 1
        return rows

    def end(self) -> None:
        self.rows.end()
        self.output.flush()

    @property
    def is_empty(self) -> bool:
        return self.rows.is_empty


class HexView(View):
    """Annotated hexdumps. A row is a batch or, if `records`, a record."""

    def __init__(self, output: Output, options: InspectOptions, decoding: RecordDecoder, *, titles: bool) -> None:
        from kdump.render.hexdump import Hexdump

        self.output = output
        self.dump = Hexdump(output, full=options.output.full, zone=options.output.zone, decoding=decoding)
        self.records, self.titles = options.of_records, titles
        self._title = ""
        """As in TableView."""

    def file(self, target: Target) -> None:
        if self.titles:
            self._title = printable(path_text(target.path)) + ":"

    def _begin(self) -> None:
        """Write the title of the current file, unless it has been written."""
        if self._title:
            self.output.line(self.dump.paint(self._title, "head"))
            self._title = ""

    def entry(self, target: Target, entry: Entry) -> int:
        self._begin()
        self.dump.entry(entry)
        return 1 if entry.type else 0

    def finding(self, finding: Finding) -> None:
        self._begin()
        self.dump.finding(finding)

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        rows = 0

        def counted() -> Iterable[Record]:
            nonlocal rows
            for record in records:
                rows += 1
                yield record

        self._begin()
        self.dump.target = target
        reading.note(*self.dump.batch(reading.batch, counted()).problems)
        return rows if self.records else 1

    def region(self, target: Target, region: Region, window: Window) -> None:
        self._begin()
        self.dump.region(region, window)


class TemplateView(RowsView):
    """Records by a format string. With `decoding`, it complains of the number of records that did not decode, once at
    the end."""

    def __init__(
        self, output: Output, parts: list[bytes | Part], complain: Complain, decoding: RecordDecoder | None = None
    ) -> None:
        self.output, self.parts, self.complain, self.decoding = output, parts, complain, decoding
        self.undecoded = 0
        self.first = ""
        """Position and problem of the first of them."""

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        rows = 0
        for record in with_findings(target, reading, records, self.finding):
            self.output.write(render(self.parts, target, record, terminal=self.output.terminal))
            self._decoded(target, record)
            rows += 1
        return rows

    def _decoded(self, target: Target, record: Record) -> None:
        reading = self.decoding.read(target, record) if self.decoding else None
        problem = reading and (reading.key.problem or reading.value.problem)
        if problem:
            self.undecoded += 1
            self.first = self.first or f"{path_text(target.path)}, offset {record.offset}: {problem}"

    def end(self) -> None:
        self.output.flush()
        if self.undecoded:
            some = "1 record does" if self.undecoded == 1 else f"{plain_count(self.undecoded, 'record')} do"
            self.complain(f"{some} not decode, the first at {self.first}")


class Complain(Protocol):
    """Prints a line for the user, outside the output."""

    def __call__(self, text: str) -> None: ...
