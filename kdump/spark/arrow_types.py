"""Arrow types of the tables, as Spark derives them from their DDL."""

from __future__ import annotations

import pyarrow as pa

from kdump.spark.tables import SparkTable


def _list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": _list(pa.int32()),
    "array<bigint>": _list(pa.int64()),
    "array<string>": _list(pa.string()),
    "array<struct<key:binary,value:binary>>": _list(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    "array<struct<topic:string,partitions:array<int>>>": _list(
        pa.struct([("topic", pa.string()), ("partitions", _list(pa.int32()))])
    ),
    "struct<type:string,version:int,coordinatorEpoch:int,value:string>": pa.struct(
        [("type", pa.string()), ("version", pa.int32()), ("coordinatorEpoch", pa.int32()), ("value", pa.string())]
    ),
}


def arrow_schema(table: SparkTable) -> pa.Schema:
    """Return the schema with all columns of a table."""
    return pa.schema([(column.name, TYPES[column.type]) for column in table.columns])


def spark_type(kind: pa.DataType) -> str:
    """Return the type in Spark's DDL."""
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    return next((name for name, known in TYPES.items() if known == kind), "double")
