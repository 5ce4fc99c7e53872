"""The table replica_differences of a result, brought up to date: only partitions of which something was read again are
compared again."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdump.check.finding import SEVERITIES
from kdump.forensics.scan_answer import ReplicaDifference
from kdump.spark.arrow_types import arrow_schema
from kdump.spark.packs import ENDING, hidden
from kdump.spark.replica_differences import COMPACTED, replica_differences
from kdump.spark.result import view
from kdump.spark.store import Store
from kdump.spark.tables import REPLICA_DIFFERENCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4096
"""Rows that are held in memory until they are written."""
MAX_DIFFERENCES = 200
"""Maximum number of them in the summary."""
CHANGED = """
  select distinct cluster, topic, partition from units where topic is not null and run > '{since}'
  union
  select d.cluster, d.topic, d.partition from replica_differences d
  left join (select cluster, topic, partition, collect_set(source) as live from units
             where state = 'live' and key like 'unit-%' group by cluster, topic, partition) l
  on d.cluster <=> l.cluster and d.topic = l.topic and d.partition = l.partition
  where size(array_except(d.sources, coalesce(l.live, array()))) > 0
"""
"""Partitions of which a unit was read after the scan `since`, and those that have lost a replica."""
KEPT = """
  select * from replica_differences d
  where not exists (select 1 from changed c where c.cluster <=> d.cluster and c.topic = d.topic
                    and c.partition = d.partition)
"""


def update_differences(
    spark: SparkSession, store: Store, run: str, since: str | None, *, several: bool, one_task: bool = False
) -> dict[str, Any]:
    """Write the table for the scan `run`. Returns the fields of the summary that are about replicas: the worst
    differences, and how many there are. `since`: the scan for which it was last written, None if there is none;
    `several`: whether there is more than one source; `one_task`: whether to read the table in one task. Raises
    StoreError."""
    if since is not None:
        view(spark, store, REPLICA_DIFFERENCES, one_task=one_task)
        spark.sql(CHANGED.format(since=since)).createOrReplaceTempView("changed")
    found: Iterator[ReplicaDifference] = iter(())
    if several:
        found = replica_differences(spark, only_changed=since is not None, one_task=one_task)
    name = f"{REPLICA_DIFFERENCES.name}/{run}{ENDING}"
    with store.writing(name if store.is_remote else hidden(name)) as file:
        sums = _written(file, _both(spark, found) if since is not None else found)
    if not store.is_remote:
        store.rename(hidden(name), name)
    for other in store.list(REPLICA_DIFFERENCES.name):
        if other != f"{run}{ENDING}" and (other.endswith(ENDING) or other.startswith(".")):
            store.remove(f"{REPLICA_DIFFERENCES.name}/{other}")
    return sums


def _both(spark: SparkSession, found: Iterable[ReplicaDifference]) -> Iterator[ReplicaDifference]:
    """Yield the rows that are still true, and those that were found now."""
    for row in spark.sql(KEPT).toLocalIterator():
        yield ReplicaDifference(**row.asDict())
    yield from found


def _written(file: Any, rows: Iterable[ReplicaDifference]) -> dict[str, Any]:
    """Write the rows, and return the fields of the summary."""
    schema = arrow_schema(REPLICA_DIFFERENCES)
    held: list[dict[str, Any]] = []
    counts = Counter[bool]()

    def written(writer: pq.ParquetWriter) -> Iterator[ReplicaDifference]:
        """Yield the rows that are not due to compaction, after they were written."""
        for row in rows:
            held.append(row._asdict())
            if len(held) >= ROWS:
                writer.write_table(pa.Table.from_pylist(held, schema))
                held.clear()
            counts[row.kind == COMPACTED] += 1
            if row.kind != COMPACTED:
                yield row
        writer.write_table(pa.Table.from_pylist(held, schema))

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        worst = heapq.nsmallest(MAX_DIFFERENCES, written(writer), key=_order)
    return {"replicas": worst, "replicaDifferences": counts[False], "compactedReplicas": counts[True]}


def _order(row: ReplicaDifference) -> tuple[Any, ...]:
    return SEVERITIES.index(row.severity), row.cluster or "", row.topic, row.partition, row.firstOffset
