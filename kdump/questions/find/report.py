"""The output of `kdump find`: records as inspect shows them, with what each is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import tzinfo

from kdump.answer import Object, answer_object
from kdump.decode.record_decoder import RecordDecoder
from kdump.format.count_text import count_text, size_text
from kdump.io.errors import Located, is_about
from kdump.log.expression.terms import UNDECODED
from kdump.log.remote_files import tier
from kdump.questions.find.answer import Answer, Found, Match, NotSearched, SearchCoverage
from kdump.questions.find.coverage import LIMIT, AsBytes, NotThere
from kdump.questions.find.search_report import Names
from kdump.questions.inspect.columns import TableDecoder, record_columns
from kdump.render.decoded_values import lines
from kdump.render.escape import path_text, printable
from kdump.render.inspect_json import record_object
from kdump.render.record_template import compile_template, render
from kdump.render.redaction import Redaction, redacted_record
from kdump.render.sink import Sink
from kdump.render.state_tables import known_columns
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, check_names
from kdump.render.times import iso

MAX_LISTED = 20
"""Maximum number of lines about what was not searched."""
OF_RECORDS = ("offset", "timestamp", "key", "headers", "value")
"""Columns of the table of records that are shown by default."""


class FoundObjects:
    """Turns answers into JSON objects; `redaction`: what is replaced in them."""

    def __init__(self, redaction: Redaction | None) -> None:
        self.redaction = redaction

    def __call__(self, answer: Answer) -> Iterator[Object]:
        if isinstance(answer, Found):
            yield match_object(answer, self.redaction)
        elif self.redaction is None:
            yield answer_object(answer)
        else:
            yield answer_object(RedactedNames(self.redaction).coverage(answer))


def match_object(found: Found, redaction: Redaction | None = None) -> Object:
    """Return the JSON object of a match."""
    target, record = found.target, found.record
    if redaction is None:
        inner = record_object(target, record, found.reading)
    else:
        inner = redacted_record(redaction, target, record)
    out: Object = {"type": "match", "states": list(found.states)}
    if found.superseded_by is not None:
        out["supersededBy"] = found.superseded_by
    if found.goes is not None:
        out["goes"] = found.goes
        if found.goes_at is not None:
            out["goesAt"] = found.goes_at
    out["size"] = found.size
    if found.producer is not None:
        out["producerId"] = found.producer
    if found.is_transactional:
        out["isTransactional"] = True
    return out | {name: value for name, value in inner.items() if name != "type"}


class RedactedNames(Names):
    """The names in a search report, replaced."""

    def __init__(self, redaction: Redaction) -> None:
        self.redaction = redaction

    def path(self, path: str) -> str:
        return self.redaction.path(path)

    def topic(self, name: str) -> str:
        return self.redaction.topic(name)

    def question(self, expression: str) -> str:
        return self.redaction.payload(expression.encode()) or ""

    def reason(self, gap: NotSearched) -> str:
        if isinstance(gap.reason, NotThere):
            return NotThere.of(self.topic(gap.reason.topic))
        if isinstance(gap.reason, AsBytes) and gap.reason.why not in UNDECODED:
            return AsBytes.of(gap.reason.part, "does not decode")  # why: names of schemas, and what is in it
        names = self.redaction.names
        return gap.reason if names is None or not isinstance(gap.reason, Located) else names.located(gap.reason)

    def coverage(self, coverage: SearchCoverage) -> SearchCoverage:
        """Return what was searched, its names replaced."""
        gaps = [gap._replace(file=self.path(gap.file), reason=self.reason(gap)) for gap in coverage.notSearched]
        return coverage._replace(expression=self.question(coverage.expression), notSearched=gaps)


class FoundTable(Sink[Answer]):
    """A table of matches. `asked`: numbers of records that are shown because the expression asks for them; `names`: the
    columns that were chosen. Raises UnknownColumn."""

    streams = True

    def __init__(
        self, output: Output, zone: tzinfo, names: list[str] | None, *, full: bool, when: bool, asked: set[str]
    ) -> None:
        self.output = output
        self._has_notes = names is None
        cells: dict[str, Callable[[Found], str]] = {
            "partition": _partition,
            "states": lambda found: found.state,
            "tier": lambda found: tier(found.target.path) or "-",
            "goes": lambda found: _goes(found, zone),
            "supersededBy": lambda found: _text(found.superseded_by),
            "producerId": lambda found: _text(found.producer),
            "isTransactional": lambda found: "yes" if found.is_transactional else "no",
            "topic": lambda found: printable(found.target.topic or "-"),
            "file": lambda found: printable(path_text(found.target.path)),
        }
        _, known = known_columns(Match, zone, cells)
        has_tier = ["tier"] if tier("") is not None else []
        own = [known[name] for name in ("partition", "states", *has_tier, *["goes"][: int(when)])]
        self._found: Found | None = None
        decodes = TableDecoder(lambda record: self._found.reading if self._found else None)
        every = {column.name: column for column in record_columns(zone, None, full, decodes)}
        decoded = {"keyDecoded": "key", "valueDecoded": "value"}
        of_records = [_of_record(column) for name, column in every.items() if decoded.get(name, name) in OF_RECORDS]
        numbers = [known[name] for name in ("size", "producerId", "supersededBy", "isTransactional")]
        own += [column for column in numbers if column.name in asked]
        columns = [own[0], *of_records[:2], *own[1:], *of_records[2:]]
        if names is not None:
            own += numbers
            own += [known[name] for name in ("topic", "file", "tier")]
            chosen = {column.name: column for column in own}
            more = [name for name in names if name not in chosen]
            chosen |= dict(zip(more, map(_of_record, record_columns(zone, more, full, decodes))))
            check_names(names, chosen)
            columns = [chosen[name] for name in names]
        self.table = Table(columns, output, full=full, chosen=names is not None)

    def add(self, answer: Answer) -> None:
        if isinstance(answer, Found):
            self._found = answer
            self.table.add(answer, "bad" if answer.record.is_damaged else "")
            for line in lines(answer.reading) if self._has_notes and answer.reading else ():
                self.table.line(*line)

    def tick(self) -> None:
        self.table.tick()

    def end(self) -> None:
        self.table.flush()


def _of_record(column: Column) -> Column:
    """Return a column of records as one of matches."""
    cell = column.cell
    return column._replace(cell=lambda found: cell(found.record))


def _partition(found: Found) -> str:
    target = found.target
    return printable(path_text(target.path) if target.topic is None else f"{target.topic}-{target.partition}")


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def _goes(found: Found, zone: tzinfo) -> str:
    at = "" if not found.goes_at else f"{iso(found.goes_at, zone)} by "
    return at + (found.goes or "")


class FoundByTemplate(Sink[Answer]):
    """Records by a format string as in kcat. Raises TemplateError."""

    streams = True

    def __init__(self, output: Output, template: str, decoding: RecordDecoder) -> None:
        self.output = output
        self.parts = compile_template(template, decoding)

    def add(self, answer: Answer) -> None:
        if isinstance(answer, Found):
            self.output.write(render(self.parts, answer.target, answer.record, terminal=self.output.terminal))

    def tick(self) -> None:
        self.output.tick()


def coverage_lines(coverage: SearchCoverage, above: int = 0) -> Iterator[str]:
    """Yield the lines on what was searched, and what was not, file by file. `above`: how many gaps `coverage` lacks,
    because their lines were printed before."""
    gaps = coverage.notSearched
    batches = count_text(coverage.batches, "batch", "batches")
    searched = f"{size_text(coverage.bytes)} in {count_text(coverage.files, 'file')} ({batches})"
    if not coverage.matches:
        yield f"nothing matches in {'what could be searched: ' if gaps or above else ''}{searched}"
    else:
        yield f"{count_text(coverage.matches, 'record')} found; searched {searched}"
    rest = []
    if coverage.ruledOutFiles:
        rest.append(
            f"{size_text(coverage.ruledOutBytes)} in {count_text(coverage.ruledOutFiles, 'file')} ruled out by name"
        )
    others = f"{size_text(coverage.otherBytes)} in {count_text(coverage.otherFiles, 'file')} hold no records"
    rest += [others] if coverage.otherFiles else []
    if coverage.directories:
        rest.append(
            f"{size_text(coverage.directoryBytes)} of {count_text(coverage.directories, 'directory', 'directories')}"
        )
    yield f"of {coverage.totalBytes:,} bytes" + "".join(f"; {part}" for part in rest)
    if not gaps and not above:
        return
    missed = coverage.notSearchedBytes
    yield f"NOT SEARCHED: {size_text(missed)}, or only in part:" if missed else "NOT SEARCHED IN FULL:"
    if above:
        yield f"  {count_text(above, 'path')} in the lines above"
    listed = [gap for gap in gaps if gap.reason != LIMIT]
    for gap in listed[:MAX_LISTED]:
        yield f"  {_gap_line(gap)}"
    if len(listed) > MAX_LISTED:
        yield f"  … and {len(listed) - MAX_LISTED:,} more; --json lists all"
    limited = [gap.bytes for gap in gaps if gap.reason == LIMIT]
    if limited:
        yield f"  {size_text(sum(limited))} in {count_text(len(limited), 'file')}: {LIMIT}"


def _gap_line(gap: NotSearched) -> str:
    where = gap.file if gap.position is None else f"{gap.file} at byte {gap.position}"
    many = count_text(gap.records, "record") if gap.records else size_text(gap.bytes) if gap.bytes else ""
    parts = [where, many, gap.reason] if many else [where, gap.reason]
    return gap.reason if is_about(gap.reason, gap.file) else ": ".join(parts)
