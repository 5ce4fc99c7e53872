"""What SQL computes from the tables of a result: the tables partitions, open_transactions and group_lag, which are
written again after each scan, and lists of the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from kdump.cluster import lag
from kdump.spark.coordinator_logs import GROUP, OFFSET, SHARE
from kdump.spark.delta_tables import TableFile, commit
from kdump.spark.result_views import view_tables
from kdump.spark.scan import ScanResult
from kdump.spark.scan_answer import (
    DirtyPartition,
    FleetGroup,
    FleetProducer,
    FleetTransaction,
    FrequentKey,
    OverdueTopic,
)
from kdump.spark.store import Store
from kdump.spark.unit_sums import MAX_ROWS, MAX_TEXTS
from kdump.spark.units import file_schema
from kdump.state.unknown_offsets import CHECKPOINT_OF
from kdump.tables.arrow import FIRST, LAST
from kdump.tables.declarations import GROUP_LAG, OPEN_TRANSACTIONS, PARTITIONS, SparkColumn, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OWNER = "cluster, if(cluster is null, source, null) as source"
"""The columns that name the owner of a log: its cluster, or the log directory if cluster.id is missing."""
ENDS = f"""
  select {OWNER}, topic, partition, max_by(logStartOffset, logEndOffset) as logStartOffset,
         max(logEndOffset + greatest(0, logStartOffset - logEndOffset)) as logEndOffset,
         max_by(highWatermark, logEndOffset) as highWatermark
  from partitions where source is not null and copyOf is null and state = 'live' group by 1, 2, 3, 4
"""
"""Of the replicas of a partition, the one that reaches furthest."""
TOPICS = f"select {OWNER}, topic, any_value(topicId) as topicId from clusters group by 1, 2, 3"
DELETED = f"""
  select distinct {OWNER}, topic from partitions where source is not null and copyOf is null and state = 'delete'
"""


def _text(value: str) -> str:
    """Return a string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _format(template: str, value: str) -> str:
    before, after = template.split("{}")
    return f"concat({_text(before)}, {value}, {_text(after)})"


def _least_zero(value: str) -> str:
    return f"if({value} < 0, 0, {value})"  # of null, null


OUT_OF_RANGE = f"""
  case when offset < logStartOffset then {_format(lag.BELOW_START, "logStartOffset - offset")}
       when offset > logEndOffset then {_format(lag.ABOVE_END, "offset - logEndOffset")} else '' end
"""
MISSING = f"""
  case when hasTopic and topicId is not null and knownId <> topicId then {_text(lag.OTHER_TOPIC)}
       when hasTopic and not isAssigned then {_text(lag.NO_PARTITION)} when hasTopic or isHere then ''
       when isDeleted then {_text(lag.TOPIC_DELETED)} when hasMetadata then {_text(lag.TOPIC_UNKNOWN)} else '' end
"""
COMMITS = f"""
  select p.*, if({MISSING} <> '', {MISSING}, coalesce({OUT_OF_RANGE}, '')) as remark,
         {_least_zero("logEndOffset - offset")} as lag
  from (
    select c.*, t.topic is not null as hasTopic, t.topicId as knownId, a.partition is not null as isAssigned,
           e.partition is not null as isHere, d.topic is not null as isDeleted, m.known is not null as hasMetadata,
           e.logStartOffset, e.logEndOffset, e.highWatermark
    from (select * from coordinators where kind = '{OFFSET}') c
    left join topic_ids t on c.cluster <=> t.cluster and c.source <=> t.source and c.topic = t.topic
    left join clusters a on c.cluster <=> a.cluster and c.source <=> a.source and c.topic = a.topic
         and c.partition = a.partition
    left join log_ends e on c.cluster <=> e.cluster and c.source <=> e.source and c.topic = e.topic
         and c.partition = e.partition
    left join ({DELETED}) d on c.cluster <=> d.cluster and c.source <=> d.source and c.topic = d.topic
    left join (select distinct cluster, source, true as known from clusters) m
         on c.cluster <=> m.cluster and c.source <=> m.source) p
"""
SHARES = f"""
  select cluster, source, groupId, case when known and name is null or offset < 0 then null
         else {_least_zero("logEndOffset - offset - greatest(0, done)")} end as lag,
         case when offset < 0 then '' when known and name is null then {_text(lag.TOPIC_UNKNOWN)}
         else coalesce({OUT_OF_RANGE}, '') end as remark
  from (
    select c.*, t.topic as name, m.known, e.logStartOffset, e.logEndOffset
    from (select * from coordinators where kind = '{SHARE}') c
    left join topic_ids t on c.cluster <=> t.cluster and c.source <=> t.source and c.topicId = t.topicId
    left join log_ends e on c.cluster <=> e.cluster and c.source <=> e.source and t.topic = e.topic
         and c.partition = e.partition
    left join (select distinct cluster, source, true as known from clusters) m
         on c.cluster <=> m.cluster and c.source <=> m.source)
"""
"""Of share groups, what the totals of a group need. That a share has not started is no remark there."""
GROUPS = f"""
  select g.cluster, g.groupId, g.groupType, g.state, cast(sum(p.lag) as bigint) as lag,
         cast(count(p.groupId) - count(p.lag) as bigint) as lagUnknown, count_if(p.remark <> '') as remarks
  from (
    select cluster, source, groupId, max_by(groupType, coordinator) as groupType,
           max_by(state, coordinator) as state
    from coordinators where kind = '{GROUP}' group by 1, 2, 3) g
  left join (
    select cluster, source, groupId, lag, remark from commits
    union all select cluster, source, groupId, lag, remark from ({SHARES})) p
  on g.cluster <=> p.cluster and g.source <=> p.source and g.groupId = p.groupId
  group by g.cluster, g.source, g.groupId, g.groupType, g.state
  order by coalesce(lag, 0) desc, groupId limit {MAX_ROWS}
"""
"""The groups that lag most."""
LAG_VIEWS = {"topic_ids": TOPICS, "log_ends": ENDS, "commits": COMMITS}
"""Views that GROUPS reads, each of which may read those before it; the rows of `commits` are those of group_lag."""


IDENTITY = "u.cluster, u.broker, u.logDirectory, u.source, u.copyOf, u.identifiedBy, u.topic, u.partition, u.state"


def _checkpointed(alias: str, checkpoint: str) -> str:
    """Return the join with the offsets that a checkpoint states."""
    return f"""
  left join (select source, topic, partition, max(offset) as offset from checkpoints
             where checkpoint = '{checkpoint}-checkpoint' group by source, topic, partition) {alias}
       on u.source = {alias}.source and u.topic = {alias}.topic and u.partition = {alias}.partition
       and u.state = 'live'"""


REPLICAS = f"""
  select {IDENTITY}, a.topicId, a.leader, a.leaderEpoch as partitionLeaderEpoch, a.replicas, a.isr,
         a.eligibleLeaderReplicas, a.retentionMs, greatest(u.logStartOffset, s.offset) as logStartOffset,
         {", ".join(f"{key}.offset as {key}" for key in CHECKPOINT_OF)}, u.lastStableOffset, u.logEndOffset,
         max(u.logEndOffset) over (partition by u.cluster, u.topic, u.partition, u.state) - u.logEndOffset as behind,
         u.segments, u.size, u.batches, u.records, u.oldest as oldestTimestamp, u.newest as newestTimestamp
  from units u
  left join clusters a on u.cluster <=> a.cluster and coalesce(a.source, u.source) = u.source
       and u.topic = a.topic and u.partition = a.partition and u.state = 'live'
  {_checkpointed("s", "log-start-offset")}
  {" ".join(_checkpointed(key, checkpoint) for key, checkpoint in CHECKPOINT_OF.items())}
  where u.size is not null and u.partition is not null and u.key like 'unit-%'
"""
ABSENT = """
  select cluster, topic, topicId, partition, max_by(struct(*), leaderEpoch) as a from clusters c
  where not exists (select 1 from units u where u.cluster <=> c.cluster and u.topic = c.topic
                    and u.partition = c.partition and u.state = 'live' and u.key like 'unit-%')
  group by cluster, topic, topicId, partition
"""
"""Partitions of the metadata that no disk of the cluster has. Disks without cluster.id may all be of one cluster."""
FROM_METADATA = ("leader", "replicas", "isr", "eligibleLeaderReplicas", "retentionMs")


def _partitions() -> str:
    """Return REPLICAS and ABSENT in SQL, the latter with null for all that a log directory shows."""
    names = [column.name for column in PARTITIONS.columns if not column.of]
    values = dict.fromkeys(names, "null") | {name: name for name in ("cluster", "topic", "topicId", "partition")}
    values |= {name: f"a.{name}" for name in FROM_METADATA} | {"partitionLeaderEpoch": "a.leaderEpoch"}
    absent = ", ".join(f"{value} as {name}" for name, value in values.items())
    return f"select {', '.join(names)} from ({REPLICAS}) union all select {absent} from ({ABSENT})"


OPEN = f"""
  select {IDENTITY}, u.unit, u.o.*, t.transactionalId, t.coordinatorState
  from (select *, explode(open) as o from units) u
  left join (
    select cluster, source, producerId, max_by(transactionalId, recordOffset) as transactionalId,
           max_by(state, recordOffset) as coordinatorState
    from (
      select {OWNER}, transactionalId, max_by(producerId, recordOffset) as producerId,
             max_by(state, recordOffset) as state, max_by(tombstone, recordOffset) as tombstone,
             max(recordOffset) as recordOffset
      from transactions where transactionalId is not null and problem is null group by 1, 2, 3)
    where not tombstone and producerId >= 0 group by 1, 2, 3) t
  on u.cluster <=> t.cluster and coalesce(t.source, u.source) = u.source and u.o.producerId = t.producerId
"""
"""With what the newest record of a transactional ID with that producer ID says."""
VIEWS = {"opened": OPEN, **LAG_VIEWS}
"""Views that the last two tables and the lists of the summary read, each of which may read those before it."""


def derive_partitions(spark: SparkSession, store: Store, done: ScanResult, *, one_task: bool = False) -> None:
    """Write the table partitions, from the views of the units' entries and of the clusters' metadata, and create its
    view. Raises StoreError, or what Spark raises."""
    _write(spark, store, done, PARTITIONS, f"({_partitions()})")
    view_tables(spark, store, done.versions, {PARTITIONS.name}, one_task=one_task)


def derive_others(spark: SparkSession, store: Store, done: ScanResult) -> None:
    """Write the tables open_transactions and group_lag from VIEWS. Raises StoreError, or what Spark raises."""
    _write(spark, store, done, OPEN_TRANSACTIONS, "opened")
    _write(spark, store, done, GROUP_LAG, "commits")


def _write(spark: SparkSession, store: Store, done: ScanResult, table: SparkTable, rows: str) -> None:
    """Spark writes a directory of files, which become those of the table."""
    frame = spark.sql(f"select {', '.join(map(_value, table.columns))} from {rows}")
    writer = frame.coalesce(1).write.mode("overwrite").option("compression", "zstd")
    directory = f"{table.name}/{done.run}"
    writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(store.path(directory))
    files = []
    for name in store.list(directory):
        if name.startswith("part-"):
            with store.open(f"{directory}/{name}") as file:
                rows_there = pq.ParquetFile(file).metadata.num_rows
                files.append(TableFile(f"{done.run}/{name}", file.seek(0, 2), rows_there))
    done.versions[table.name] = commit(store, table.name, file_schema(table), files)


def _value(column: SparkColumn) -> str:
    """Return the column in SQL; a timestamp is computed from epoch ms."""
    if not column.of:
        return f"`{column.name}`"
    return f"if(`{column.of}` between {FIRST} and {LAST}, timestamp_millis(`{column.of}`), null) as `{column.name}`"


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
    """Return fields of the summary (kdump.spark.scan_answer.FleetSummary) by name."""
    return {
        "openTransactions": [FleetTransaction(**row) for row in rows(spark, OPENED)],
        "groups": [FleetGroup(**row) for row in rows(spark, GROUPS)],
        "producers": [FleetProducer(**row) for row in rows(spark, PRODUCERS)],
        "keys": [FrequentKey(**row) for row in rows(spark, KEYS)] if records else [],
        "retention": [OverdueTopic(**row) for row in rows(spark, RETENTION)],
        "compaction": [DirtyPartition(**row) for row in rows(spark, COMPACTION)],
    }
