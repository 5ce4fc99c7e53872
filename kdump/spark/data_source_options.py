"""Options of the data source, which Spark passes as text."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from kdump.decode.record_decoder import DecodeOptions
from kdump.io.run import DEFAULT_MAX_DECOMPRESSED, Limits
from kdump.tables.declarations import TABLES
from kdump.tables.read_options import SPLIT, OptionError, ReadOptions

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
    "maxBatchSize": "treat batches longer than this many bytes as damaged",
    "maxDecompressedSize": f"decompress at most this many bytes of each batch  [{DEFAULT_MAX_DECOMPRESSED}]",
    "transactionTimeout": "in findings, warn about transactions open for longer than this many ms  [900000]",
    "maxMessageBytes": "in findings, warn about batches larger than this  [the topic's max.message.bytes, if known]",
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
    limits = Limits(
        _number(named, "maxBatchSize", None), _number(named, "maxDecompressedSize", None) or DEFAULT_MAX_DECOMPRESSED
    )
    return ReadOptions(
        table,
        _paths(named),
        columns,
        _number(named, "splitBytes", SPLIT) or SPLIT,
        _number(named, "parallelism", None) or os.cpu_count() or 1,
        named.get("broker"),
        _texts(named, "brokers"),
        _object(named, "storageOptions"),
        limits,
        _number(named, "transactionTimeout", 900_000) or 0,
        _number(named, "maxMessageBytes", None),
        _number(named, "now", None),
        decode=DecodeOptions(schemas=named.get("schemas")),
    )


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
    least = 1 if name == "splitBytes" else 0
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
