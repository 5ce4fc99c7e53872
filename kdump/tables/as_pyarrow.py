"""Schemas and record batches of the tables (kdump.tables.arrow) as those of pyarrow."""

from __future__ import annotations

import pyarrow as pa

from kdump.tables.arrow import ArrowBatch, ArrowSchema
from kdump.tables.c_data import batch_capsules, schema_capsule


class _Schema:
    def __init__(self, schema: ArrowSchema) -> None:
        self.schema = schema

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(self.schema)


class _Batch:
    def __init__(self, batch: ArrowBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return batch_capsules(self.batch)


def as_schema(schema: ArrowSchema) -> pa.Schema:
    """Return the schema as pyarrow's."""
    return pa.schema(_Schema(schema))


def as_pyarrow(batch: ArrowBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the record batch as pyarrow's, with this schema of the same types."""
    return pa.RecordBatch.from_arrays(pa.record_batch(_Batch(batch)).columns, schema=schema)
