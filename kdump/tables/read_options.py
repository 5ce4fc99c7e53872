"""What a table is read from, and how: options, and the input of a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.decode.record_decoder import DecodeOptions
from kdump.io.run import Limits
from kdump.io.window import DEFAULT_SIZE
from kdump.log.expression.terms import Expression
from kdump.query import FindingOptions
from kdump.tables.declarations import RECORDS, SparkColumn, SparkTable
from kdump.tables.disk_identity import DiskIdentity

if TYPE_CHECKING:
    from kdump.decode.schema_columns import ColumnDecoder

OPENING = 256 * 1024
"""Minimum size in bytes that a file counts as, because opening it costs as much as reading that many."""


@dataclass
class TaskItem:
    """One thing to read. `input` depends on the table; `size` in bytes; `state` of its partition directory."""

    input: Any
    identity: DiskIdentity
    size: int
    state: str | None = None


def packed(pieces: Iterable[TaskItem], max_bytes: int, parallelism: int) -> Iterator[list[TaskItem]]:
    """Group the pieces, in order, into parts of at most `max_bytes` bytes, or at most an equal share for each of
    `parallelism` tasks, whichever is less. A larger piece is a part of its own."""
    every = list(pieces)
    share = sum(max(piece.size, OPENING) for piece in every) // max(1, parallelism) + 1
    limit = max(1, min(max_bytes, share))
    held: list[TaskItem] = []
    size = 0
    for piece in every:
        counts = max(piece.size, min(OPENING, limit))
        if held and size + counts > limit:
            yield held
            held, size = [], 0
        held.append(piece)
        size += counts
    if held:
        yield held


def largest_first(pieces: Iterable[TaskItem], max_bytes: int, parallelism: int) -> Iterator[list[TaskItem]]:
    """Like `packed`, largest piece first: for pieces that cannot be divided and whose order does not matter."""
    return packed(sorted(pieces, key=lambda piece: -piece.size), max_bytes, parallelism)


SPLIT = 64 * 1024 * 1024


class OptionError(ValueError):
    """Raised for an invalid option; the message names it."""


class SchemaFields(NamedTuple):
    """The fields of a schema, as columns of records. `names`: of the fields, by those of the columns."""

    decoder: ColumnDecoder
    names: dict[str, str]

    @classmethod
    def of(cls, decoder: ColumnDecoder) -> SchemaFields:
        """Return the fields of a decoder's schema. One that has the name of another column begins with value_."""
        taken = {column.name.lower() for column in RECORDS.every_column}
        names: dict[str, str] = {}
        for column in decoder.columns:
            name = column.name
            while name.lower() in taken:
                name = f"value_{name}"
            taken.add(name.lower())
            names[name] = column.name
        return cls(decoder, names)

    @property
    def table(self) -> SparkTable:
        """The table records, with the fields as columns."""
        own = (SparkColumn(name, column.type) for name, column in zip(self.names, self.decoder.columns))
        return RECORDS._replace(columns=(*RECORDS.columns, *own))


@dataclass(frozen=True)
class ReadOptions:
    """What to read, and how. Sizes in bytes, times in ms. In records: `decode` sets how keys and values are decoded,
    `where` the condition that they meet, `control` whether control records are among them, and `fields` the columns of
    their values; those that do not fit are rejected."""

    table: SparkTable
    paths: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    split_bytes: int = SPLIT
    parallelism: int = 1
    broker: str | None = None
    brokers: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    findings: FindingOptions = FindingOptions()
    now: int | None = None
    window: int = DEFAULT_SIZE
    decode: DecodeOptions = field(default_factory=DecodeOptions)
    where: Expression | None = None
    control: bool = True
    fields: SchemaFields | None = None
