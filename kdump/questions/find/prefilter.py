"""Which records an expression cannot match, by their bytes: what it looks for would be in them as text or as a schema
encodes it. The others are decoded."""

from __future__ import annotations

from collections.abc import Callable

from kdump.core.column_numbers import (
    IN_HEADERS,
    IN_KEYS,
    IN_VALUES,
    RECORD_END,
    RECORD_START,
    RECORD_WIDTH,
)
from kdump.core.record_columns import RecordColumns, keep_rows
from kdump.core.record_search import candidate_rows
from kdump.decode.decoder_interface import Decoder
from kdump.decode.record_decoder import schemas_of
from kdump.log.expression.comparison import plain_number
from kdump.log.expression.terms import Content, Expression, Several, Term
from kdump.questions.find.schema_programs import Programs, needles_of

PARTS = {"key": IN_KEYS, "value": IN_VALUES, "header": IN_HEADERS, "any": IN_KEYS | IN_VALUES | IN_HEADERS}
Check = Callable[[RecordColumns], list[int]]


class Prefilter:
    """Rules records out of the files of one decoder. `keep` keeps those that may match."""

    def __init__(self, expression: Expression, decoder: Decoder | None, mirrored: str) -> None:
        self.checks: list[Check] = []
        source = schemas_of(decoder)
        self._known = source.known() if source is not None else None
        is_known = decoder is None or (source is not None and not source.is_named and not mirrored)
        for term in expression.conjuncts if is_known else ():
            made = self._check(term)
            if made is not None:
                self.checks.append(made)

    def keep(self, columns: RecordColumns) -> None:
        """Keep only the records that may match."""
        for check in self.checks:
            if not len(columns):
                return
            keep_rows(columns, check(columns))

    def _check(self, term: Term) -> Check | None:
        """Return what finds the records that a term may be true for; None if all may."""
        contents = list(term.terms) if isinstance(term, Several) and not term.is_all else [term]
        found = [each for each in contents if isinstance(each, Content) and each.test.literal is not None]
        if len(found) < len(contents):
            return None
        if len(found) == 1 and _is_scanned(found[0]):
            return _FieldScan(found[0])
        parts, needles = 0, list[bytes]()
        for content in found:
            own = needles_of(content.test)
            if not own:
                return None
            parts |= PARTS[content.name]
            needles += own
        of_number = any(plain_number(content.test.literal) is not None for content in found)
        programs = Programs(self._known, found, needles)
        return lambda columns: candidate_rows(columns, parts, needles, of_number, programs.of, programs.digits)


def _is_scanned(content: Content) -> bool:
    return content.name == "value" and bool(content.path) and content.test.operator in ("<", "<=", ">", ">=", "~")


class _FieldScan:
    """Finds records with a field of JSON, wherever it is, whose value meets a comparison."""

    def __init__(self, content: Content) -> None:
        self.fields = content.fields
        self._no_programs = Programs(None, [], [])

    def __call__(self, columns: RecordColumns) -> list[int]:
        rows = set(candidate_rows(columns, IN_VALUES, [], False, self._no_programs.of, None))
        block, row = columns.block, 0
        for hit in self.fields.positions(bytes(columns.data)):
            while row < len(columns) and block[row * RECORD_WIDTH + RECORD_END] <= hit:
                row += 1
            if row < len(columns) and block[row * RECORD_WIDTH + RECORD_START] <= hit:
                rows.add(row)
        return sorted(rows)
