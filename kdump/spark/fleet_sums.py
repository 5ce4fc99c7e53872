"""Lists of the summary of a scan that are computed in SQL, over the views of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdump.forensics.scan_answer import (
    DirtyPartition,
    FleetGroup,
    FleetProducer,
    FleetTransaction,
    FrequentKey,
    OverdueTopic,
)
from kdump.spark.group_lag import GROUPS
from kdump.spark.unit_sums import MAX_ROWS, MAX_TEXTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIVE = "copyOf is null and state = 'live'"

CLOSED = f"""
  select *, max(newestTimestamp) over p as newest, baseOffset = max(baseOffset) over p as is_active
  from segments where {LIVE} window p as (partition by source, topic, partition)
"""
"""Live segments, with what is known about the others of their partitions."""
RETENTION = f"""
  select s.topic, count(*) as segments, sum(size) as bytes, max(retentionMs) as retentionMs
  from ({CLOSED}) s join (select distinct cluster, source, topic, retentionMs from clusters) r
  on s.topic = r.topic and s.cluster <=> r.cluster and (r.source is null or s.source = r.source)
  where not is_active and newestTimestamp < newest - retentionMs
  group by s.topic order by bytes desc, s.topic limit {MAX_ROWS}
"""
COMPACTION = f"""
  select s.topic, s.partition, s.source, sum(case when baseOffset >= c.offset then size else 0 end) as dirtyBytes,
         sum(size) as bytes, round(try_divide(dirtyBytes, sum(size)), 3) as ratio
  from ({CLOSED}) s join (
    select source, topic, partition, max(offset) as offset from checkpoints
    where checkpoint = 'cleaner-offset-checkpoint' group by 1, 2, 3) c
  on s.source = c.source and s.topic = c.topic and s.partition = c.partition
  where not is_active group by 1, 2, 3 having dirtyBytes > 0 order by dirtyBytes desc, 1, 2, 3 limit {MAX_ROWS}
"""
PRODUCERS = f"""
  select producerId, count(distinct producerEpoch) as epochs, count(distinct topic) as topics,
         count(distinct topic, partition) as partitions, cast(sum(batches) as bigint) as batches,
         cast(sum(records) as bigint) as records, cast(sum(size) as bigint) as bytes,
         min(firstTimestamp) as first, max(lastTimestamp) as last,
         round(try_divide(sum(records) * 1000, try_subtract(last, first)), 1) as recordsPerSecond
  from producers where {LIVE}
  group by cluster, producerId order by records desc, producerId limit {MAX_ROWS}
"""
KEYS = f"""
  select topic, decode(key, 'UTF-8') as key, records, round(records / total, 3) as share from (
    select topic, key, count(*) as records, sum(count(*)) over (partition by topic) as total
    from records where {LIVE} and key is not null and not isControlBatch group by topic, key)
  where records > 1 order by records desc, topic, key limit {MAX_ROWS}
"""
OPENED = f"""
  select cluster, topic, partition, unit as source, producerId, producerEpoch, firstOffset, timestamp, records,
         transactionalId, coordinatorState as state
  from opened where copyOf is null order by timestamp, topic, partition, unit, producerId limit {MAX_TEXTS}
"""


def rows(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query by the names of their columns."""
    return [row.asDict(recursive=True) for row in spark.sql(sql).collect()]


def fleet_sums(spark: SparkSession, *, records: bool) -> dict[str, Any]:
    """Return fields of the summary (kdump.forensics.scan_answer.FleetSummary) by name."""
    return {
        "openTransactions": [FleetTransaction(**row) for row in rows(spark, OPENED)],
        "groups": [FleetGroup(**row) for row in rows(spark, GROUPS)],
        "producers": [FleetProducer(**row) for row in rows(spark, PRODUCERS)],
        "keys": [FrequentKey(**row) for row in rows(spark, KEYS)] if records else [],
        "retention": [OverdueTopic(**row) for row in rows(spark, RETENTION)],
        "compaction": [DirtyPartition(**row) for row in rows(spark, COMPACTION)],
    }
