"""The data source as Spark sees it: format("kdump"), or a table in its catalog: CREATE TABLE … USING kdump OPTIONS (…).

Spark passes the options of a table to a Python data source when the table is created, but not when it is read: then
there are only the columns (PythonTable, PythonScanBuilder in Spark 4.3). So they are kept in the comment on the first
column."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdump.decode.record_decoder import DecodeOptions
from kdump.query import ADDS, FindingOptions, LimitOptions
from kdump.tables.declarations import TABLES
from kdump.tables.filters import pushed_filters
from kdump.tables.read_options import SPLIT, OptionError, ReadOptions, TaskItem
from kdump.tables.table_read import TableRead

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class ReadTask(InputPartition):
    """The pieces that one task reads, in order."""

    def __init__(self, pieces: Sequence[TaskItem]) -> None:
        super().__init__(len(pieces))
        self.pieces = pieces


def rows_for_spark(reading: TableRead, task: ReadTask, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, with the columns of the schema."""
    from kdump.spark.arrow import PER_MS
    from kdump.tables.arrow import arrow_schema
    from kdump.tables.as_pyarrow import as_pyarrow

    wanted = to_arrow_schema(schema, timezone="UTC")
    for batch in reading.read(task.pieces, arrow_schema(reading.options.table, wanted.names, PER_MS)):
        yield as_pyarrow(batch, wanted)


UNITS = {"size": "bytes", "time": "ms"}


def _name(declared: Field[Any]) -> str:
    """Return the name that an option of commands has here."""
    return re.sub("_(.)", lambda match: match[1].upper(), declared.name)


def _about(options: type, where: str = "") -> dict[str, str]:
    """Return options of commands, by their names here, with what they do; `where` begins these texts."""
    found = {}
    for each in fields(options):
        more = each.metadata[ADDS].more
        text, _, default = more["help"].partition(".  ")
        text = re.sub(r"\bthis( much)?\b", f"this many {UNITS[more['type']]}", f"{text[0].lower()}{text[1:]}")
        found[_name(each)] = f"{where}{text}  {default if each.default is None else [each.default]}"
    return found


ABOUT = {
    "table": "read this table: " + ", ".join(TABLES),
    "path": "read this path, if load() is called without one",
    "paths": "read these paths, a JSON array of strings; set by load([…])",
    "columns": "return only these columns, separated by commas; like .schema(…), but without types",
    "schemas": "in records, decode keys and values by the schemas at this path, as `kdump inspect --schemas` does"
    "  [those of the registry on the same disk]",
    "splitBytes": f"read at most this many bytes of a segment, or of small files together, in one task  [{SPLIT}]",
    "parallelism": "spread small files over at least this many tasks  [cores of the driver's machine]",
    "broker": "set the broker of paths that have no meta.properties",
    "brokers": "the same for several paths, a JSON object of path to broker; the longest matching path applies",
    "storageOptions": "pass these settings of an object store to fsspec, a JSON object; for S3: endpoint_url, anon, …",
    **_about(LimitOptions),
    **_about(FindingOptions, "in findings, "),
    "now": "in findings, use this as the current time, in epoch ms  [current time]",
}


def parse(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of one read. Raises OptionError."""
    named = {name.lower(): value for name, value in given.items()}
    unknown = sorted(name for name in given if name.lower() not in {known.lower() for known in ABOUT})
    if unknown:
        raise OptionError(f"kdump has no option {unknown[0]!r}; its options are {', '.join(ABOUT)}")
    name = named.get("table")
    if name not in TABLES:
        problem = "no table is set" if name is None else f"there is no table {name!r}"
        raise OptionError(f'{problem}; use .option("table", T) with T one of {", ".join(TABLES)}')
    table = TABLES[name]
    columns = None
    if "columns" in named:
        columns = tuple(part.strip() for part in named["columns"].split(",") if part.strip())
        known = [column.name for column in table.every_column]
        for column in columns:
            if column not in known:
                raise OptionError(f"table {name} has no column {column!r}; its columns are {', '.join(known)}")
    return ReadOptions(
        table,
        _paths(named),
        columns,
        _number(named, "splitBytes", SPLIT) or SPLIT,
        _number(named, "parallelism", None) or os.cpu_count() or 1,
        named.get("broker"),
        _texts(named, "brokers"),
        _object(named, "storageOptions"),
        _filled(LimitOptions, named).limits,
        _filled(FindingOptions, named),
        _number(named, "now", None),
        decode=DecodeOptions(schemas=named.get("schemas")),
    )


def _filled(options: type[T], named: Mapping[str, str]) -> T:
    """Return the options of commands. Raises OptionError."""
    usual: Any = options()
    return options(**{each.name: _number(named, _name(each), getattr(usual, each.name)) for each in fields(usual)})


def _paths(named: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in named:
        try:
            paths = json.loads(named["paths"])
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise OptionError("option paths is not a JSON array of strings")
        return tuple(paths)
    if "path" in named:
        return (named["path"],)
    raise OptionError("no path is set; use .load(PATH) or .load([PATH, …])")


def _number(named: Mapping[str, str], name: str, default: int | None) -> int | None:
    given = named.get(name.lower())
    if given is None:
        return default
    try:
        value = int(given)
    except ValueError:
        value = -1
    least = 1 if name in ("splitBytes", "maxDecompressedSize") else 0
    if value < least:
        raise OptionError(f"option {name}: {given!r} is not valid; use a whole number of at least {least}")
    return value


def _object(named: Mapping[str, str], name: str) -> dict[str, Any]:
    try:
        value = json.loads(named.get(name.lower(), "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(f"option {name} is not a JSON object")
    return value


def _texts(named: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: str(value) for key, value in _object(named, name).items()}


class KdumpSource(DataSource):
    """Takes the options of kdump.spark.data_source. An invalid option raises an error; problems on the disks
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
