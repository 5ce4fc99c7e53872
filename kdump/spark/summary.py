"""What a fleet says as a whole: out of the tables of a scan, and out of what the coordinators of its disks have."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kdump.check.catalogue import SEVERITIES
from kdump.check.finding import Finding
from kdump.render.escape import path_text
from kdump.render.objects import FINDING_KEYS
from kdump.spark.coordination import groups_behind, open_transactions, retention_of
from kdump.spark.result import compare_replicas, open_result, view
from kdump.spark.scan import Scanned, ScanOptions
from kdump.spark.store import Store
from kdump.spark.tables import REPLICAS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 20
"""Of a list that goes on in the tables."""
TOLD = 2000
"""Findings that are told."""

TOPICS = """
  select topic, count(*) as partitions, cast(sum(bytes) as bigint) as bytes, cast(sum(records) as bigint) as records,
         max(bytes) as largest, round(try_divide(max(bytes) * count(*), sum(bytes)), 2) as skew
  from (select broker, source, topic, partition, sum(size) as bytes, sum(records) as records from segments
        where copyOf is null and state = 'live' and topic is not null group by broker, source, topic, partition)
  group by topic order by bytes desc, topic limit {most}
"""
PRODUCERS = """
  select producerId, count(distinct producerEpoch) as epochs, count(distinct topic) as topics,
         count(distinct topic, partition) as partitions, count(*) as batches,
         cast(sum(recordCount) as bigint) as records, cast(sum(size) as bigint) as bytes,
         min(maxTimestamp) as first, max(maxTimestamp) as last,
         round(try_divide(sum(recordCount) * 1000, max(maxTimestamp) - min(maxTimestamp)), 1) as recordsPerSecond
  from batches where copyOf is null and state = 'live' and producerId >= 0 and not isControlBatch and crcValid
  group by cluster, producerId order by records desc, producerId limit {most}
"""
FORMATS = """
  select magic, compression, count(*) as batches, cast(sum(recordCount) as bigint) as records,
         cast(sum(size) as bigint) as bytes
  from batches where copyOf is null and state = 'live' group by magic, compression order by bytes desc
"""
FILL = """
  select topic, count(*) as batches, round(avg(size), 1) as bytesPerBatch, round(avg(recordCount), 1) as recordsPerBatch
  from batches where copyOf is null and state = 'live' and topic is not null and not coalesce(isControlBatch, false)
  group by topic having count(*) >= 10 order by bytesPerBatch, topic limit {most}
"""
KEYS = """
  select topic, decode(key, 'UTF-8') as key, records, round(records / total, 3) as share from (
    select topic, key, count(*) as records, sum(count(*)) over (partition by topic) as total
    from records where copyOf is null and state = 'live' and key is not null and not isControlBatch group by topic, key)
  where records > 1 order by records desc, topic, key limit {most}
"""
COMPACTION = """
  select s.topic, s.partition, cast(sum(if(s.baseOffset >= c.offset, s.size, 0)) as bigint) as dirtyBytes,
         cast(sum(s.size) as bigint) as bytes, round(try_divide(dirtyBytes, bytes), 3) as ratio
  from segments s join checkpoints c on c.checkpoint = 'cleaner-offset-checkpoint' and c.source = s.source
       and c.topic = s.topic and c.partition = s.partition
       join (select source, topic, partition, max(baseOffset) as active from segments
             group by source, topic, partition) a
       on a.source = s.source and a.topic = s.topic and a.partition = s.partition
  where s.copyOf is null and s.state = 'live' and s.baseOffset < a.active
  group by s.source, s.topic, s.partition having dirtyBytes > 0
  order by dirtyBytes desc, s.topic, s.partition limit {most}
"""
RETENTION = """
  select s.topic, count(*) as segments, cast(sum(s.size) as bigint) as bytes, min(r.retentionMs) as retentionMs
  from segments s join retention r on r.topic = s.topic and r.cluster <=> s.cluster
       join (select source, topic, partition, max(baseOffset) as active, max(newestTimestamp) as newest from segments
             group by source, topic, partition) a
       on a.source = s.source and a.topic = s.topic and a.partition = s.partition
  where s.copyOf is null and s.state = 'live' and s.baseOffset < a.active
        and s.newestTimestamp < a.newest - r.retentionMs
  group by s.topic order by bytes desc, s.topic limit {most}
"""
TIMES = """
  select count_if(maxTimestamp < 0 and recordCount > 0) as negative, min(nullif(baseTimestamp, -1)) as oldest,
         max(maxTimestamp) as newest
  from batches where copyOf is null and state = 'live' and crcValid and not coalesce(hasDeleteHorizonMs, false)
"""


def summarize(spark: SparkSession, options: ScanOptions, store: Store, done: Scanned, began: float) -> dict[str, Any]:
    """The object of summary.json; `began` is when, by time.monotonic. Leaves the views of the tables in the session, and
    writes the table replicas."""
    open_result(spark, store)
    places = Counter((entry.get("cluster"), entry["topic"], entry["partition"]) for entry in done.entries)
    if any(count > 1 for (_, topic, _), count in places.items() if topic is not None):
        found = compare_replicas(spark)
    else:
        found = spark.createDataFrame([], REPLICAS.ddl())
    found.coalesce(1).write.mode("overwrite").parquet(store.path("replicas"))
    view(spark, store, REPLICAS)
    own = [entry for entry in done.entries if entry.get("copyOf") is None]
    retention = retention_of(done.fleet)
    spark.createDataFrame(retention, "cluster string, topic string, retentionMs bigint").createOrReplaceTempView(
        "retention"
    )
    replicas = rows(spark, "select * from replicas where kind <> 'compacted' order by cluster, topic, partition")
    compacted = rows(spark, "select count(*) as n from replicas where kind = 'compacted'")
    total = Counter[str]()
    for entry in own:
        total.update({name: entry["totals"][name] for name in COUNTS})
    severities, codes = Counter[str](), Counter[str]()
    for entry in done.entries:
        severities.update(entry["totals"]["findings"])
        codes.update(entry["codes"])
    (times,) = rows(spark, TIMES)
    return {
        "type": "scan",
        "paths": [path_text(path) for path in options.paths],
        "out": store.root,
        "tables": [*options.tables, *(["records"] if options.records else []), "replicas"],
        "brokers": _brokers(done),
        "copies": [
            {"source": path_text(each.place.path), "copyOf": each.identity.copyOf}
            for each in done.fleet.found
            if each.identity.copyOf is not None
        ],
        **{name: total[name] for name in COUNTS},
        "findings": {severity: severities[severity] for severity in SEVERITIES},
        "codes": dict(sorted(codes.items())),
        "unread": [text for _, text in done.fleet.refused] + [t for e in done.entries for t in e["totals"]["unread"]],
        "notes": [path_text(text) for entry in done.entries for text in entry["totals"]["notes"]],
        "replicas": replicas,
        "compactedReplicas": compacted[0]["n"],
        "openTransactions": open_transactions(done),
        "groups": groups_behind(done.fleet, done.check.limits)[:MOST],
        "topics": rows(spark, TOPICS),
        "producers": rows(spark, PRODUCERS),
        "keys": rows(spark, KEYS) if options.records else [],
        "formats": rows(spark, FORMATS),
        "fill": rows(spark, FILL),
        "timestamps": {"future": codes["timestamp-in-future"], **times},
        "retention": rows(spark, RETENTION),
        "compaction": rows(spark, COMPACTION),
        "units": {"read": done.read, "kept": done.kept, "gone": done.gone},
        "seconds": round(time.monotonic() - began, 3),
    }


COUNTS = ("partitions", "files", "bytes", "batches", "records")


def rows(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    """What a query gives, as JSON has it."""
    found = spark.sql(sql.format(most=MOST) if "{most}" in sql else sql).collect()
    return [row.asDict(recursive=True) for row in found]


def infos(done: Scanned) -> Counter[str]:
    """How many findings there are of each code that are no more than info."""
    found = Counter[str]()
    for entry in done.entries:
        found.update(entry["infos"])
    return found


def _brokers(done: Scanned) -> list[dict[str, Any]]:
    by: dict[tuple[str | None, str | None], list[str]] = {}
    for each in done.fleet.found:
        by.setdefault((each.identity.cluster, each.identity.broker), []).append(path_text(each.place.path))
    return [
        {"cluster": cluster, "broker": broker, "sources": sources}
        for (cluster, broker), sources in sorted(by.items(), key=str)
    ]


def told(spark: SparkSession, done: Scanned) -> Iterator[tuple[str, list[Finding]]]:
    """Every unit, and those of its findings that are more than info: not more of them than a person reads."""
    names = [key.name for key in FINDING_KEYS]
    found = spark.sql(
        f"select {', '.join(f'`{name}`' for name in names)} from findings where severity <> 'info'"
        f" order by case severity when 'error' then 0 else 1 end, source, file, position limit {TOLD}"
    ).collect()
    by_place: dict[str, list[Finding]] = {}
    for row in found:
        by_place.setdefault(row["file"].rpartition("/")[0], []).append(Finding(**row.asDict()))
    for entry in sorted(done.entries, key=lambda entry: entry["unit"]):
        own = by_place.pop(entry["unit"], [])
        own += by_place.pop(entry["unit"].rpartition("/")[0], []) if entry["unit"].endswith(".log") else []
        yield entry["unit"], sorted(own, key=lambda finding: (finding.file, finding.position))
    yield from by_place.items()
