"""Options of the data source, which Spark passes as text."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kdump.log.region import DEFAULT_MAX_DECOMPRESSED, Limits
from kdump.log.window import DEFAULT_SIZE
from kdump.spark.tables import TABLES, Table

SPLIT = 64 * 1024 * 1024

ABOUT = {
    "table": "which table: " + ", ".join(TABLES),
    "path": "where to read, if load() is called without it",
    "paths": "several of them, a JSON array of strings; load([…]) sets it",
    "columns": "the columns wanted, by comma; as .schema(…) does, without the types",
    "splitBytes": f"bytes of a segment that a task reads at most, and of small files together  [{SPLIT}]",
    "parallelism": "tasks that small files are spread over at least  [cores of the driver's machine]",
    "broker": "broker of the paths that have no meta.properties",
    "brokers": "the same for several, a JSON object: path to broker; the longest that a path begins with counts",
    "storageOptions": "what fsspec is to know of a store, a JSON object; for s3: endpoint_url, anon …",
    "maxBatchSize": "believe no batch length above this, bytes",
    "maxDecompressedSize": f"decompress no more of a batch than this, bytes  [{DEFAULT_MAX_DECOMPRESSED}]",
    "transactionTimeout": "ms after which an open transaction is old (findings)  [900000]",
    "maxBytesPerTrigger": "of a stream: begin no batch in a micro-batch beyond so many bytes, shared by the partitions",
    "maxMessageBytes": "warn of larger batches (findings)  [the topic's, where it is known]",
    "now": "epoch ms that findings take for the present  [the clock]",
}


class OptionError(ValueError):
    """Raised for an invalid option; the message names it."""


@dataclass(frozen=True)
class ReadOptions:
    """What to read, and how. Sizes in bytes, times in ms."""

    table: Table
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
    max_bytes_per_trigger: int | None = None
    window: int = DEFAULT_SIZE


def parse(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of one read. Raises OptionError."""
    named = {name.lower(): value for name, value in given.items()}
    unknown = sorted(name for name in given if name.lower() not in {known.lower() for known in ABOUT})
    if unknown:
        raise OptionError(f"kdump has no option {unknown[0]!r}: {', '.join(ABOUT)}")
    name = named.get("table")
    if name not in TABLES:
        said = "which table? " if name is None else f"there is no table {name!r}. "
        raise OptionError(f'{said}.option("table", T) with T one of {", ".join(TABLES)}')
    table = TABLES[name]
    columns = None
    if "columns" in named:
        columns = tuple(part.strip() for part in named["columns"].split(",") if part.strip())
        known = [column.name for column in table.columns]
        for column in columns:
            if column not in known:
                raise OptionError(f"table {name} has no column {column!r}: {', '.join(known)}")
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
        _number(named, "maxBytesPerTrigger", None),
    )


def _paths(named: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in named:
        try:
            paths = json.loads(named["paths"])
        except ValueError:
            paths = None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise OptionError("option paths is no JSON array of strings")
        return tuple(paths)
    if "path" in named:
        return (named["path"],)
    raise OptionError("where to? .load(PATH), or .load([PATH, …])")


def _number(named: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = named.get(name.lower())
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0 or (value == 0 and name in ("splitBytes", "maxBytesPerTrigger")):
        raise OptionError(f"option {name}: {text!r} is no number that it can be")
    return value


def _object(named: Mapping[str, str], name: str) -> dict[str, Any]:
    try:
        value = json.loads(named.get(name.lower(), "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(f"option {name} is no JSON object")
    return value


def _texts(named: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: str(value) for key, value in _object(named, name).items()}
