"""`kdump.records`: records for DuckDB, Polars, pandas and pyarrow, without a file. See docs/notebook.md."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.decode.record_decoder import DecodeOptions
from kdump.format.number_range import Range
from kdump.io import file_system
from kdump.io.errors import SourceError
from kdump.io.mounted_paths import takes_paths
from kdump.log.expression.parser import parse
from kdump.log.selection import Selection
from kdump.questions.export.run import Export, ExportQuery
from kdump.tables.arrow import ArrowBatch, ArrowSchema
from kdump.tables.c_data import schema_capsule, stream_capsule
from kdump.tables.declarations import RECORDS, TABLES
from kdump.tables.read_options import ReadOptions
from kdump.tables.record_rows import schema_fields

__all__ = ["Records", "records"]

MAX_FINDINGS = 1000
"""Maximum number of findings that are kept."""


class Records:
    """Rows of a table of a disk, which each consumer reads again: any that takes Arrow's PyCapsule interface, such as
    duckdb.sql("select … from r"), polars.DataFrame(r), pandas.DataFrame.from_arrow(r) and pyarrow.table(r).

    `findings` has what is wrong with what the last consumer has read so far (the first 1,000), `unread` what could not
    be read, and why; `rejected` has the rows of records that do not fit `schema_of` (the first 1,000)."""

    def __init__(self, query: ExportQuery, options: Options) -> None:
        self._query, self._options = query, options
        self.findings: list[Finding] = []
        self.unread: list[str] = []
        self.rejected: list[dict[str, Any]] = []

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self._schema)

    @property
    def _schema(self) -> ArrowSchema:
        return self._query.schema

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(self._schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows by Arrow's PyCapsule interface; they are read as the consumer asks for them, with the types
        that they have, whatever `requested_schema` is."""
        return stream_capsule(self._schema, self._batches())

    def _batches(self) -> Iterator[ArrowBatch]:
        export = Export(self._query, self._options)
        self.findings, self.unread, self.rejected = [], export.totals.unread, []
        export.on_rejected = self._rejected
        for item in export.rows():
            if isinstance(item, ArrowBatch):
                yield item
            elif len(self.findings) < MAX_FINDINGS:
                self.findings.append(item)

    def _rejected(self, row: dict[str, Any]) -> None:
        if len(self.rejected) < MAX_FINDINGS:
            self.rejected.append(row)

    def __repr__(self) -> str:
        paths = ", ".join(map(repr, self._query.reading.paths))
        return f"<kdump.Records {self._query.table.name} of {paths}: {len(self.columns)} columns>"


def _known(columns: Iterable[str] | None, known: list[str]) -> list[str]:
    """Return the columns, all by default; raise ValueError for an unknown one."""
    names = known if columns is None else [*columns]
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown column {unknown[0]!r}; known are {', '.join(known)}")
    return names


@takes_paths
def records(
    paths: str | Iterable[str],
    *,
    table: str = "records",
    columns: Iterable[str] | None = None,
    topics: Iterable[str] = (),
    partitions: Iterable[int] = (),
    offsets: tuple[int | None, int | None] | None = None,
    times: tuple[int | None, int | None] | None = None,
    where: str | None = None,
    committed: bool = False,
    control: bool = False,
    decode: bool = True,
    schemas: str | os.PathLike[str] | None = None,
    schema_of: str | None = None,
    options: Options | None = None,
) -> Records:
    """Return the records below `paths` (segments, partition directories, log directories, bundles), for a consumer of
    Arrow. Nothing is read before there is one.

    `table`: another one, such as batches or findings (docs/spark.md lists them). `columns`: only these, which saves
    time. `topics`, `partitions`, `offsets` and `times` (epoch ms; both inclusive, None leaves an end open) and `where`,
    an expression of kdump find, restrict records; empty ones restrict nothing. `committed`: only what a read_committed
    consumer receives; `control`: also control records. `decode`: also the columns keyDecoded, valueDecoded … as JSON,
    of which `schemas` sets the schemas as `kdump inspect --schemas` does. `schema_of`: in place of these, the fields of
    the newest schema of this topic as columns, of its records if there are no `topics`. `options`: limits, and how
    files are opened. Raises SourceError if a path does not exist, and ValueError for an unknown table or column, and
    for an invalid expression (ExpressionError)."""
    sources = tuple(paths)
    if table not in TABLES:
        raise ValueError(f"unknown table {table!r}; known are {', '.join(TABLES)}")
    of, fields = TABLES[table], None
    at = None if schemas is None else os.fspath(schemas)
    if schema_of is not None and of is RECORDS:
        fields = schema_fields(sources, schema_of, at)
        of = fields.table
    names = _known(columns, [each.name for each in (of.every_column if decode and fields is None else of.columns)])
    for path in sources:
        if "://" not in path and not file_system.lexists(path):
            raise SourceError.at(path, "no such file or directory")
    topic_names, numbers = frozenset(topics or (() if fields is None else (str(schema_of),))), frozenset(partitions)
    selection = Selection(offsets=offsets and Range(*offsets), times=times and Range(*times))
    reading = ReadOptions(
        of,
        sources,
        tuple(names),
        decode=DecodeOptions(schemas=at),
        where=None if where is None else parse(where),
        control=control,
        fields=fields,
    )
    query = ExportQuery(
        reading,
        selection,
        lambda name: not topic_names or name in topic_names,
        lambda number: not numbers or number in numbers,
        committed,
    )
    return Records(query, replace(options or Options(), now=int(time.time() * 1000)))
