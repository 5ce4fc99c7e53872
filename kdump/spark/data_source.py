"""The data source as Spark sees it: format("kdump"), or a table in its catalog: CREATE TABLE … USING kdump OPTIONS (…).

Spark passes the options of a table to a Python data source when the table is created, but not when it is read: then
there are only the columns (PythonTable, PythonScanBuilder in Spark 4.3). So they are kept in the comment on the first
column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kdump.spark.data_source_options import parse
from kdump.spark.read_task import ReadTask, rows_for_spark
from kdump.tables.filters import pushed_filters
from kdump.tables.read_options import OptionError, ReadOptions
from kdump.tables.table_read import TableRead

if TYPE_CHECKING:
    import pyarrow as pa


class KdumpSource(DataSource):
    """Takes the options of kdump.spark.data_source_options. An invalid option raises an error; problems on the disks
    never do."""

    @classmethod
    def name(cls) -> str:
        return "kdump"

    def schema(self) -> str:
        of_table = options_of_table(self.options)
        options = parse(self.options if of_table is None else of_table)
        return options.table.ddl(options.columns, "" if of_table is None else remark(of_table))

    def reader(self, schema: StructType) -> DataSourceReader:
        return KdumpReader(_given(self.options, schema), schema)


class KdumpReader(DataSourceReader):
    """Plans the tasks on the driver, and reads in them."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.reading = TableRead(options)
        self.schema = schema
        _check(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        return list(map(ReadTask, self.reading.parts()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ReadTask):  # without any parts, Spark passes a partition of its own
            yield from rows_for_spark(self.reading, partition, self.schema)


class PushingReader(KdumpReader):
    """Also accepts filters. Spark rejects such a reader if filter pushdown is disabled in the session."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self.reading.filters = pushed_filters(filters)
        return filters  # Spark has to apply them again


class PushingSource(KdumpSource):
    """The data source for sessions with filter pushdown."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return PushingReader(_given(self.options, schema), schema)


def _given(options: Mapping[str, str], schema: StructType) -> ReadOptions:
    """Return the options of a read: those given, before those of a table in Spark's catalog. Raises OptionError."""
    return parse(options_in(schema) | {name.lower(): value for name, value in options.items()})


def _check(options: ReadOptions, schema: StructType) -> None:
    """Raise OptionError for a .schema(…) that does not fit the table."""
    for field in schema.fields:
        try:
            column = options.table.column(field.name)
        except KeyError:
            names = ", ".join(column.name for column in options.table.every_column)
            raise OptionError(
                f"table {options.table.name} has no column {field.name!r}; its columns are {names}"
            ) from None
        if field.dataType.simpleString() != column.type:
            name = field.dataType.simpleString()
            raise OptionError(f"column {field.name} of table {options.table.name} has type {column.type}, not {name}")


PREFIX = "option."
"""Prefix of the options among a table's properties (TableCatalog.OPTION_PREFIX in Spark)."""
MARK = " kdump options: "
"""Comes between the comment on the first column and the options."""


def options_of_table(given: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options among the properties that Spark passes when a table is created; None for those of a read.
    LOCATION is the path. Raises OptionError for one that a catalog must not have."""
    properties = {name.lower(): value for name, value in given.items()}
    options = {name[len(PREFIX) :]: value for name, value in properties.items() if name.startswith(PREFIX)}
    if not options and "location" not in properties:
        return None
    if "location" in properties and not {"path", "paths"} & options.keys():
        options["path"] = properties["location"]
    if options.get("path", "").startswith("file:/"):
        options["path"] = unquote(urlsplit(options["path"]).path)
    if "storageoptions" in options:
        raise OptionError("storageOptions may contain secrets, which a catalog shows: set them in the environment")
    return options


def remark(options: Mapping[str, str]) -> str:
    """Return what to add to the comment on the first column."""
    return MARK + json.dumps(options, sort_keys=True)


def options_in(schema: StructType) -> dict[str, str]:
    """Return the options in the `remark` on the first column; none if it has none."""
    comment = schema.fields[0].metadata.get("comment", "") if schema.fields else ""
    options: dict[str, str] = json.loads(comment.partition(MARK)[2] or "{}")
    return options
