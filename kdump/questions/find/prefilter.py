"""Which records an expression cannot match, by their bytes: what it looks for would be in them as text or, in Avro, as
the schema encodes it. The others are decoded."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable
from typing import Any

from kdump.core.column_numbers import (
    AVRO_ARRAY,
    AVRO_BOOLEAN,
    AVRO_BYTES,
    AVRO_ENUM,
    AVRO_FIXED,
    AVRO_MAP,
    AVRO_NULL,
    AVRO_RECORD,
    AVRO_SAME,
    AVRO_STRING,
    AVRO_UNION,
    AVRO_VARINT,
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
from kdump.decode.known_schemas import KnownSchemas
from kdump.decode.record_decoder import KeyValueDecoder
from kdump.decode.registry_decoder import SchemaSource
from kdump.format.varint import varint
from kdump.log.expression.comparison import Comparison, number_of, plain_number
from kdump.log.expression.terms import Content, Expression, Several, Term

PARTS = {"key": IN_KEYS, "value": IN_VALUES, "header": IN_HEADERS, "any": IN_KEYS | IN_VALUES | IN_HEADERS}
MAX_SCHEMAS = 1000
"""Number of schemas in a registry up to which they are prepared."""
SIZES = {"float": 4, "double": 8}
OF_NUMBERS = re.compile(r"[-+0-9.:TeEaINfty]*")
"""Text that a number, a date or a time may contain."""
FRAME = ("magic", "schemaId", "guid", "subject", "version")
"""Fields of a decoded value that are not of its schema."""


def needles_of(test: Comparison) -> list[bytes]:
    """Return bytes of which text that meets the comparison has one; empty if that cannot be known."""
    if test.operator not in ("==", "in") or test.literal is None or not test.data:
        return []
    if test.operator == "in":
        return [test.data]
    number = plain_number(test.literal)
    return [test.data] if number is None else [number.encode(), *(data for data in test.encodings if data != test.data)]


class _Program:
    """Turns an Avro schema into the program of core.record_search, and notes the types at a path. Raises ValueError for
    what it does not know."""

    def __init__(self, path: tuple[str, ...] | None) -> None:
        self.numbers = array("q")
        self.leaves: set[str] = set()
        """Types at the path, or of all values if it is None."""
        self.symbols: list[str] = []
        self._path = path
        self._named: dict[str, int] = {}

    def add(self, schema: Any, path: tuple[str, ...] | None, depth: int = 0) -> int:
        """Add the nodes of a schema and return the number of the first. `path`: from here on; None: it is elsewhere."""
        if depth > 50 or len(self.numbers) > 10_000:
            raise ValueError(depth)
        start = len(self.numbers)
        if isinstance(schema, list):
            self.numbers.extend((AVRO_UNION, len(schema), *[0] * len(schema)))
            for number, branch in enumerate(schema):
                self.numbers[start + 2 + number] = self.add(branch, path, depth + 1)
            return start
        kind = schema.get("type") if isinstance(schema, dict) else schema
        if isinstance(kind, (dict, list)):
            return self.add(kind, path, depth + 1)
        kind = str(kind)
        is_leaf = path == () or self._path is None
        if isinstance(schema, dict) and "logicalType" in schema and is_leaf:
            raise ValueError(schema["logicalType"])
        if kind in ("record", "array", "map") or kind in self._named:
            return self._nested(schema, kind, path, depth, start)
        if is_leaf:
            self.leaves.add(kind)
        if kind == "enum" and is_leaf:
            self.symbols += schema["symbols"]
        if kind == "enum":
            self.numbers.extend((AVRO_ENUM, len(schema["symbols"])))
        elif kind in ("fixed", *SIZES):
            size = schema["size"] if kind == "fixed" else SIZES[kind]
            self.numbers.extend((AVRO_FIXED, size))
        else:
            codes = {"null": AVRO_NULL, "boolean": AVRO_BOOLEAN, "bytes": AVRO_BYTES, "string": AVRO_STRING}
            codes |= dict.fromkeys(("int", "long"), AVRO_VARINT)
            self.numbers.append(codes[kind])  # KeyError: a name that is not known
        return start

    def _nested(self, schema: Any, kind: str, path: tuple[str, ...] | None, depth: int, start: int) -> int:
        if kind in self._named and not isinstance(schema, dict):
            if path:
                raise ValueError(kind)  # its leaves were looked at under another path
            self.numbers.extend((AVRO_SAME, self._named[kind]))
        elif kind == "record":
            fields = schema["fields"]
            self._named[schema["name"]] = start
            self.numbers.extend((AVRO_RECORD, len(fields), *[0] * len(fields)))
            for number, field in enumerate(fields):
                below = path[1:] if path and path[0] == field["name"] else None
                self.numbers[start + 2 + number] = self.add(field["type"], below, depth + 1)
        else:
            self.numbers.extend((AVRO_ARRAY if kind == "array" else AVRO_MAP, 0))
            below = path if kind == "array" else path[1:] if path else None
            item = schema["items" if kind == "array" else "values"]
            self.numbers[start + 1] = self.add(item, below, depth + 1)
        return start


def avro_needles(program: _Program, test: Comparison, *, anywhere: bool) -> list[bytes]:
    """Return bytes of which a value of the schema that meets the comparison has one. Raises ValueError if that cannot
    be known."""
    leaves, found = program.leaves - {"null"}, needles_of(test)
    if not found:
        raise ValueError(test.operator)
    if test.operator == "in":
        of_numbers = leaves - {"string", "bytes", "fixed", "enum", "boolean"}
        if of_numbers and OF_NUMBERS.fullmatch(str(test.literal)):
            raise ValueError(test.literal)
        if any(str(test.literal) in symbol for symbol in (*program.symbols, "true", "false")):
            raise ValueError(test.literal)
        return found
    number = plain_number(test.literal)
    if str(test.literal) in program.symbols or (leaves & {"boolean", "bytes", "fixed"} and not anywhere):
        raise ValueError(test.literal)
    if number is None:
        return found
    value = number_of(number)
    if leaves & {"int", "long"} and isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        found.append(varint(value))
    for code, kind in (("<f", "float"), ("<d", "double")):
        if kind in leaves:
            found.append(struct.pack(code, float(number)))
    return found


def schemas_of(decoder: Decoder | None) -> SchemaSource | None:
    """Return the schemas of a decoder that decodes nothing but keys and values with schema IDs."""
    return decoder.schemas if isinstance(decoder, KeyValueDecoder) else None


class Prefilter:
    """Rules records out of the files of one decoder. `keep` keeps those that may match."""

    def __init__(self, expression: Expression, decoder: Decoder | None, mirrored: str) -> None:
        self.checks: list[Callable[[RecordColumns], list[int]]] = []
        source = schemas_of(decoder)
        known = source.known() if source is not None else None
        self.is_known = decoder is None or (source is not None and not source.is_named and not mirrored)
        for term in expression.conjuncts if self.is_known else ():
            made = self._check(term, known)
            if made is not None:
                self.checks.append(made)

    def keep(self, columns: RecordColumns) -> None:
        """Keep only the records that may match."""
        for check in self.checks:
            if not len(columns):
                return
            keep_rows(columns, check(columns))

    def _check(self, term: Term, known: KnownSchemas | None) -> Callable[[RecordColumns], list[int]] | None:
        """Return what finds the records that a term may be true for; None if all may."""
        contents = list(term.terms) if isinstance(term, Several) and not term.is_all else [term]
        found: list[Content] = [
            each for each in contents if isinstance(each, Content) and each.test.literal is not None
        ]
        if len(found) < len(contents):
            return None
        if len(found) == 1 and _is_scanned(found[0]):
            return _FieldScan(found[0])
        parts, needles, of_number = 0, [], False
        for content in found:
            if not needles_of(content.test):
                return None
            parts |= PARTS[content.name]
            needles += needles_of(content.test)
            of_number = of_number or plain_number(content.test.literal) is not None
        programs, more = _programs(found, known)
        wanted = list(dict.fromkeys(needles + more))
        return lambda columns: candidate_rows(columns, parts, wanted, of_number, programs)


def _programs(found: list[Content], known: KnownSchemas | None) -> tuple[dict[int, array[int]], list[bytes]]:
    """Return the programs of the Avro schemas in a registry by which none of the comparisons is met without certain
    bytes, by ID, and those bytes."""
    programs: dict[int, array[int]] = {}
    needles: list[bytes] = []
    schemas = [] if known is None else list(known.avro_schemas())
    for number, schema in schemas if len(schemas) <= MAX_SCHEMAS else ():
        try:
            of_this: list[bytes] = []
            for content in found:
                anywhere = content.name == "any" or content.test.operator in ("in", "~")
                if content.path and content.path[0] in FRAME:
                    raise ValueError(content.path)
                program = _Program(None if anywhere else content.path)
                program.add(schema, content.path)
                of_this += avro_needles(program, content.test, anywhere=anywhere)
            programs[number] = program.numbers
            needles += of_this
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue  # values of this schema are decoded
    return programs, needles


def _is_scanned(content: Content) -> bool:
    return content.name == "value" and bool(content.path) and content.test.operator in ("<", "<=", ">", ">=", "~")


class _FieldScan:
    """Finds records with a field of JSON, wherever it is, whose value meets a comparison."""

    def __init__(self, content: Content) -> None:
        self.fields = content.fields

    def __call__(self, columns: RecordColumns) -> list[int]:
        rows = set(candidate_rows(columns, IN_VALUES, [], False, {}))
        block, row = columns.block, 0
        for hit in self.fields.positions(bytes(columns.data)):
            while row < len(columns) and block[row * RECORD_WIDTH + RECORD_END] <= hit:
                row += 1
            if row < len(columns) and block[row * RECORD_WIDTH + RECORD_START] <= hit:
                rows.add(row)
        return sorted(rows)
