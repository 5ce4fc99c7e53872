"""Views whose rows Spark keeps, so that queries that read them several times have small plans. For small tables,
planning takes longer than computing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def kept_views(spark: SparkSession, queries: Mapping[str, str], *, keep: bool = True) -> Iterator[None]:
    """Create a view of each query, which may read those before it. Their rows are kept as long as this context, unless
    `keep` is False: then a query that reads a view computes it."""
    frames = []
    try:
        for name, sql in queries.items():
            frame = spark.sql(sql)
            if keep:
                frames.append(frame.cache())
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for frame in reversed(frames):
            frame.unpersist()
