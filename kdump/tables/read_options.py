"""What a table is read from, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.decode.record_decoder import DecodeOptions
from kdump.io.run import Limits
from kdump.io.window import DEFAULT_SIZE
from kdump.log.expression.terms import Expression
from kdump.tables.declarations import RECORDS, SparkColumn, SparkTable

if TYPE_CHECKING:  # needs fastavro or protobuf
    from kdump.decode.schema_columns import ColumnDecoder

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
    transaction_timeout: int = 900_000
    max_message_bytes: int | None = None
    now: int | None = None
    window: int = DEFAULT_SIZE
    decode: DecodeOptions = field(default_factory=DecodeOptions)
    where: Expression | None = None
    control: bool = True
    fields: SchemaFields | None = None
