"""Schemas of the tables as Spark has them."""

from __future__ import annotations

import pyarrow as pa

from kdump.tables import arrow
from kdump.tables.as_pyarrow import as_schema
from kdump.tables.declarations import SparkTable

PER_MS = 1000
"""Spark's timestamps are in microseconds."""


def arrow_schema(table: SparkTable) -> pa.Schema:
    """Return the schema with all columns of a table."""
    return as_schema(arrow.arrow_schema(table, per_ms=PER_MS))
