"""The parts of an expression, and what they are asked about: a record, or the header of a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from kdump.log.expression.comparison import INTEGERS, Comparison, FieldsOfText, at_path, leaves
from kdump.log.file_kinds import KRAFT_SNAPSHOT
from kdump.log.paths import Target
from kdump.log.record import Record
from kdump.log.region import Batch

NO, MAYBE, YES = 0, 1, 2
"""Answers: not, not known, yes. `and` is the smaller of two, `or` the larger."""
NUMBERS = ("offset", "time", "partition", "producer", "size")
"""Fields that are numbers of the record or of its batch."""
PARTS = ("key", "value")
NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
NOT_DECODED = "not text, and nothing here decodes it"
OVERLONG = "JSON of more than 8 MiB"
NO_JSON = "begins like JSON, and is none"
BINARY = "not text"
UNDECODED = (NOT_DECODED, OVERLONG, NO_JSON, BINARY)
"""Why bytes alone could be compared, if a decoder does not say why."""
LARGEST_JSON = 8 * 1024 * 1024
"""Size in bytes of the largest value that is parsed as JSON."""


class DecodedPart(Protocol):
    """A decoded key or value (kdump.decode.decoder_interface.DecodedPart)."""

    @property
    def value(self) -> Any: ...
    @property
    def message(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def is_decoded(self) -> bool: ...


class Decoded(Protocol):
    """A decoded record (kdump.decode.decoder_interface.DecodedRecord)."""

    @property
    def key(self) -> DecodedPart: ...
    @property
    def value(self) -> DecodedPart: ...


class Decoders(Protocol):
    """What is known of a record besides its bytes. RecordDecoder is one that does not know what was aborted."""

    def read(self, target: Target, record: Record) -> Decoded | None: ...
    def is_aborted(self, target: Target, batch: Batch) -> bool | None:
        """Return whether a transactional batch belongs to an aborted transaction; None if that is not known."""
        ...


class NoDecoders:
    """Nothing is known besides the bytes."""

    def read(self, target: Target, record: Record) -> None:
        return None

    def is_aborted(self, target: Target, batch: Batch) -> None:
        return None


NO_DECODERS = NoDecoders()


class FileFacts:
    """The names of a file: topic and partition."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def number(self, name: str) -> tuple[int | None, int | None] | None:
        """Return the range of a number; an end is None if it is not known, the whole if there is no such number."""
        is_snapshot = self.target.kind is KRAFT_SNAPSHOT and self.target.partition is None
        number = 0 if is_snapshot else self.target.partition
        return (number, number) if name == "partition" else (None, None)

    def flag(self, name: str) -> int:
        return MAYBE

    def content(self, term: Content) -> int:
        return MAYBE


class BatchFacts(FileFacts):
    """What the header of a batch shows of its records: numbers as ranges."""

    def __init__(self, target: Target, batch: Batch, decoders: Decoders = NO_DECODERS) -> None:
        super().__init__(target)
        self.batch, self.decoders = batch, decoders

    def number(self, name: str) -> tuple[int | None, int | None] | None:
        batch = self.batch
        if name == "offset":
            return batch.baseOffset, batch.lastOffset
        if name == "partition":
            return super().number(name)
        if name == "producer":
            return None if batch.producerId is None else (batch.producerId, batch.producerId)
        if name == "size":
            return 0, None if batch.is_compressed else batch.size
        newest = batch.maxTimestamp
        if newest is None:
            return None
        return (newest if batch.timestampType == "LogAppendTime" else None), newest

    def flag(self, name: str) -> int:
        batch = self.batch
        if name == "isControl":
            return YES if batch.isControlBatch else NO
        if not batch.isTransactional:
            return NO
        if name == "isTransactional":
            return YES
        is_aborted = self.decoders.is_aborted(self.target, batch)
        return MAYBE if is_aborted is None else YES if is_aborted else NO

    def content(self, term: Content) -> int:
        """Return MAYBE, unless there is no record. (A record count of 0 in a batch that is not empty is damage.)"""
        batch = self.batch
        if term.name == "header" and batch.format.is_message:
            return NO
        is_empty = batch.recordCount == 0 and not batch.format.is_message
        return NO if is_empty and batch.size <= batch.format.header.size else MAYBE


class RecordFacts(BatchFacts):
    """A record. `undecoded`: why parts of it could be compared as bytes only."""

    def __init__(self, target: Target, record: Record, decoders: Decoders = NO_DECODERS) -> None:
        super().__init__(target, record.batch, decoders)
        self.record = record
        self.undecoded: dict[str, str] = {}
        self._decoded: Decoded | None = None
        self._is_read = False

    def number(self, name: str) -> tuple[int | None, int | None] | None:
        record = self.record
        if name == "offset":
            return record.offset, record.offset
        if name == "time":
            return None if record.timestamp is None else (record.timestamp, record.timestamp)
        if name == "size":
            size = record.end - record.start
            return size, size
        return super().number(name)

    def content(self, term: Content) -> int:
        test, name = term.test, term.name
        if name == "header":
            return self._headers(term)
        if name != "any":
            return self._part(term, name)
        answer = max(self._part(term, part) for part in PARTS)
        return answer if answer == YES else max(answer, self._headers(Content("header", (), test)))

    def _headers(self, term: Content) -> int:
        test, answer = term.test, NO
        for key, value in self.record.headers:
            if term.path and key != term.path[0].encode("utf-8", "surrogateescape"):
                continue
            if test.operator == "exists" or (not term.path and test.of_bytes(key)):
                return YES
            if value is None or test.literal is None:
                found = value is test.literal and bool(term.path)
            else:
                found = test.of_bytes(value)
                if not found and not test.is_raw and not _is_text(value) and len(value) not in INTEGERS:
                    self.undecoded["headers"] = BINARY
                    answer = MAYBE
            if found:
                return YES
        return answer

    def _part(self, term: Content, part: str) -> int:
        test = term.test
        data = self.record.key if part == "key" else self.record.value
        if data is None or (test.literal is None and not term.path):
            # null has no text, and none of its fields is null
            return YES if data is test.literal and not term.path and term.name != "any" else NO
        if not term.path:
            if test.of_bytes(data):
                return YES
            if test.is_raw:
                return NO
        answer = NO
        decoded = self._read()
        reading: DecodedPart | None = None if decoded is None else getattr(decoded, part)
        problem = "" if reading is None else reading.problem or ("" if reading.is_decoded else reading.note)
        values: list[Any] = []
        if reading is not None and reading.is_decoded:
            values = _roots(reading)[: None if term.path else 1]
        elif not problem:
            value, problem = _own_value(data, term)
            values = [] if value is None else [value]
        if problem and not self.record.is_control:
            self.undecoded[part] = problem
            answer = MAYBE
        for value in values:
            if term.path:
                if any(map(test.of_value, at_path(value, term.path))):
                    return YES
            elif any(map(test.of_scalar, leaves(value) if _is_anywhere(term) else (value,))):
                return YES
        return answer

    def _read(self) -> Decoded | None:
        if not self._is_read:
            self._decoded, self._is_read = self.decoders.read(self.target, self.record), True
        return self._decoded


def _is_anywhere(term: Content) -> bool:
    """Return whether a value within a decoded key or value is enough."""
    return term.name == "any" or term.test.operator in ("in", "~")


def _roots(reading: DecodedPart) -> list[Any]:
    """Return where paths begin in a decoded value: in what its schema describes, and in what frames that."""
    value = reading.value
    is_framed = isinstance(value, dict) and "data" in value and (bool(reading.message) or "magic" in value)
    return [value["data"], value] if is_framed else [value]


def _is_text(data: bytes) -> bool:
    try:
        return NOT_TEXT.search(data.decode()) is None
    except UnicodeDecodeError:
        return False


def _own_value(data: bytes, term: Content) -> tuple[Any, str]:
    """Return the value of bytes that no decoder knows, if they are JSON, and why they could not be read."""
    if not _is_text(data):
        # Bytes of the size of a number are one: text would be longer, and framed data, too.
        return None, "" if len(data) in INTEGERS else NOT_DECODED
    if data.lstrip()[:1] not in (b"{", b"[", b'"'):
        return None, ""
    if len(data) > LARGEST_JSON:
        return None, OVERLONG if _may_hold(data, term) else ""
    try:
        return json.loads(data), ""
    except (ValueError, RecursionError):
        return None, NO_JSON if _may_hold(data, term) else ""


def _may_hold(data: bytes, term: Content) -> bool:
    """Return whether text that begins like JSON, and is none, may have what is looked for: it is searched as it is."""
    if data.lstrip()[:1] == b'"':
        return False
    return b"\\" in data or (bool(term.path) and any(True for _ in term.fields.positions(data)))


Facts = FileFacts


class Term(Protocol):
    """Part of an expression. `cost`: terms of a lower one are asked first."""

    @property
    def cost(self) -> int: ...
    def truth(self, facts: Facts) -> int: ...
    def parts(self) -> Iterator[Term]:
        """Yield it, and what it consists of."""
        ...


class _Leaf:
    cost = 0

    def parts(self) -> Iterator[Any]:
        yield self


@dataclass(frozen=True)
class Flag(_Leaf):
    """isControl, isTransactional or isAborted."""

    name: str

    def truth(self, facts: Facts) -> int:
        return facts.flag(self.name)


@dataclass(frozen=True)
class Numeric(_Leaf):
    """A comparison of one of NUMBERS with low..high, both ends inclusive; None: open."""

    name: str
    low: int | None
    high: int | None

    def truth(self, facts: Facts) -> int:
        known = facts.number(self.name)
        if known is None:
            return NO
        first, last = known
        above = NO if _less(last, self.low) else YES if self.low is None or _at_least(first, self.low) else MAYBE
        below = NO if _less(self.high, first) else YES if self.high is None or _at_least(self.high, last) else MAYBE
        return min(above, below)


def _less(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left < right


def _at_least(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left >= right


@dataclass(frozen=True)
class Topic(_Leaf):
    """A comparison of the topic's name."""

    test: Comparison

    def truth(self, facts: Facts) -> int:
        name = facts.target.topic_name
        is_met = self.test.of_scalar(facts.target.topic if name is None else name)
        return YES if is_met else MAYBE if name is None else NO


@dataclass(frozen=True)
class Content(_Leaf):
    """A comparison of key, value, header or any of them. `path`: into the decoded value, or the name of the header."""

    name: str
    path: tuple[str, ...]
    test: Comparison

    @property
    def cost(self) -> int:  # type: ignore[override]
        return {"key": 1, "header": 2, "value": 3, "any": 4}[self.name] + 4 * bool(self.path and self.name in PARTS)

    @cached_property
    def fields(self) -> FieldsOfText:
        """The fields of text that its path may end at."""
        return FieldsOfText(self.path[-1], self.test)

    def truth(self, facts: Facts) -> int:
        return facts.content(self)


def _is_of_decoded(term: Content) -> bool:
    return term.name != "header" and not term.test.is_raw and bool(term.path or term.test.literal is not None)


@dataclass(frozen=True)
class Not:
    term: Term

    @property
    def cost(self) -> int:
        return self.term.cost

    def truth(self, facts: Facts) -> int:
        return YES - self.term.truth(facts)

    def parts(self) -> Iterator[Term]:
        yield self
        yield from self.term.parts()


@dataclass(frozen=True)
class Several:
    """Terms joined by and (`is_all`) or by or."""

    terms: tuple[Term, ...]
    is_all: bool

    @cached_property
    def cost(self) -> int:
        return max(term.cost for term in self.terms)

    @cached_property
    def _in_order(self) -> list[Term]:
        return sorted(self.terms, key=lambda term: term.cost)

    def truth(self, facts: Facts) -> int:
        answer, stop = (YES, NO) if self.is_all else (NO, YES)
        for term in self._in_order:
            truth = term.truth(facts)
            answer = min(answer, truth) if self.is_all else max(answer, truth)
            if answer == stop:
                break
        return answer

    def parts(self) -> Iterator[Term]:
        yield self
        for term in self.terms:
            yield from term.parts()


@dataclass(frozen=True)
class Needs:
    """What an expression looks at: `keys`, `values` and `headers` as bytes; `decoded`: as decoded, too; `aborted`:
    which transactions were aborted. If all are False, headers of batches and numbers of records are enough."""

    keys: bool
    values: bool
    headers: bool
    decoded: bool
    aborted: bool

    @property
    def content(self) -> bool:
        return self.keys or self.values or self.headers


@dataclass(frozen=True)
class Expression:
    """A condition on records; `text` is what was parsed."""

    term: Term
    text: str = field(default="", compare=False)

    @cached_property
    def contents(self) -> list[Content]:
        """Its comparisons of keys, values and headers."""
        return [term for term in self.term.parts() if isinstance(term, Content)]

    @cached_property
    def needs(self) -> Needs:
        contents = self.contents
        names = {term.name for term in contents}
        return Needs(
            keys=not names.isdisjoint(("key", "any")),
            values=not names.isdisjoint(("value", "any")),
            headers=not names.isdisjoint(("header", "any")),
            decoded=any(map(_is_of_decoded, contents)),
            aborted=any(isinstance(term, Flag) and term.name == "isAborted" for term in self.term.parts()),
        )

    @cached_property
    def numbers(self) -> set[str]:
        """The numbers that it asks for, by the keys of a match in JSON."""
        names = {term.name for term in self.term.parts() if isinstance(term, Numeric)}
        return {"producerId" if name == "producer" else name for name in names}

    @cached_property
    def topics(self) -> set[str]:
        """The topics that it names in order to look into them."""
        return set(_topics(self.term, True))

    @cached_property
    def conjuncts(self) -> tuple[Term, ...]:
        """The terms that must all be met."""
        return self.term.terms if isinstance(self.term, Several) and self.term.is_all else (self.term,)

    def batch(self, target: Target, batch: Batch, decoders: Decoders = NO_DECODERS) -> int:
        """Return NO, MAYBE or YES for all records of a batch, by its header alone."""
        return self.term.truth(BatchFacts(target, batch, decoders))

    def truth(self, facts: RecordFacts) -> int:
        """Return NO, MAYBE or YES for a record; MAYBE: something it asks for is not known."""
        return self.term.truth(facts)

    def matches(self, target: Target, record: Record, decoders: Decoders = NO_DECODERS) -> bool:
        """Return True if a record certainly matches."""
        return self.truth(RecordFacts(target, record, decoders)) == YES


def _topics(term: Term, is_asked: bool) -> Iterator[str]:
    """Yield the topics that a term compares with. `is_asked`: whether it is to be true."""
    if isinstance(term, Not):
        yield from _topics(term.term, not is_asked)
    elif isinstance(term, Several):
        for each in term.terms:
            yield from _topics(each, is_asked)
    elif isinstance(term, Topic) and is_asked and term.test.operator == "==":
        yield term.test.data.decode("utf-8", "surrogateescape")


def all_of(terms: list[Term]) -> Expression | None:
    """Return the expression that all of these are true; None if there are none."""
    return None if not terms else Expression(terms[0] if len(terms) == 1 else Several(tuple(terms), True))


def one_of_keys(keys: Iterable[bytes]) -> Expression:
    """Return the expression that the key has exactly these bytes, or one of them."""
    terms = [Content("key", (), Comparison("==", key, is_raw=True)) for key in keys]
    return Expression(terms[0] if len(terms) == 1 else Several(tuple(terms), False))
