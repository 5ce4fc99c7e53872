"""Tables of a result that are derived from the others in SQL, and written anew after each scan: partitions and
open_transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdump.spark.arrow import FIRST, LAST
from kdump.spark.result import view, view_clusters, view_entries
from kdump.spark.store import Store
from kdump.spark.tables import OPEN_TRANSACTIONS, PARTITIONS, SparkColumn, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDENTITY = "u.cluster, u.broker, u.logDirectory, u.source, u.copyOf, u.identifiedBy, u.topic, u.partition, u.state"
CHECKPOINTED = """
  (select source, topic, partition, max(offset) as offset from checkpoints
   where checkpoint = '{0}-checkpoint' group by source, topic, partition)
"""
REPLICAS = f"""
  select {IDENTITY}, a.topicId, a.leader, a.leaderEpoch as partitionLeaderEpoch, a.replicas, a.isr,
         a.eligibleLeaderReplicas, a.retentionMs, greatest(u.logStartOffset, s.offset) as logStartOffset,
         h.offset as highWatermark, u.lastStableOffset, u.logEndOffset,
         max(u.logEndOffset) over (partition by u.cluster, u.topic, u.partition, u.state) - u.logEndOffset as behind,
         u.segments, u.size, u.batches, u.records, u.oldest as oldestTimestamp, u.newest as newestTimestamp
  from units u
  left join clusters a on u.cluster <=> a.cluster and coalesce(a.source, u.source) = u.source
       and u.topic = a.topic and u.partition = a.partition and u.state = 'live'
  left join {CHECKPOINTED.format("log-start-offset")} s
       on u.source = s.source and u.topic = s.topic and u.partition = s.partition and u.state = 'live'
  left join {CHECKPOINTED.format("replication-offset")} h
       on u.source = h.source and u.topic = h.topic and u.partition = h.partition and u.state = 'live'
  where u.size is not null and u.partition is not null and u.key like 'unit-%'
"""
OPEN = f"""
  select {IDENTITY}, u.o.*, t.transactionalId, t.state as coordinatorState
  from (select *, explode(open) as o from units) u
  left join (
    select cluster, if(cluster is null, source, null) as source, producerId,
           max_by(transactionalId, recordOffset) as transactionalId, max_by(state, recordOffset) as state
    from transactions where producerId >= 0 group by 1, 2, 3) t
  on u.cluster <=> t.cluster and coalesce(t.source, u.source) = u.source and u.o.producerId = t.producerId
"""
QUERIES: tuple[tuple[SparkTable, str], ...] = ((PARTITIONS, REPLICAS), (OPEN_TRANSACTIONS, OPEN))


def derive_tables(spark: SparkSession, store: Store) -> None:
    """Write the tables, from the views of the others. Raises what Spark raises."""
    view_entries(spark, store)
    view_clusters(spark, store)
    for table, sql in QUERIES:
        frame = spark.sql(f"select {', '.join(map(_value, table.columns))} from ({sql})")
        writer = frame.coalesce(1).write.mode("overwrite").option("compression", "zstd")
        writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(store.path(table.name))
        view(spark, store, table)


def _value(column: SparkColumn) -> str:
    """Return the column in SQL; a timestamp is computed from epoch ms."""
    if not column.of:
        return f"`{column.name}`"
    return f"if(`{column.of}` between {FIRST} and {LAST}, timestamp_millis(`{column.of}`), null) as `{column.name}`"
