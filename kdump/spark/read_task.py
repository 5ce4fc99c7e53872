"""Tasks of Spark, and their rows as it wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kdump.tables.read_task import TaskItem
from kdump.tables.table_read import TableRead

if TYPE_CHECKING:
    import pyarrow as pa


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
