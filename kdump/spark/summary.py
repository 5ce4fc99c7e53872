"""Summary of a fleet, from the tables of a scan and from the coordinators' logs on its disks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kdump.answer import Object, answer_keys, answer_object
from kdump.check.finding import SEVERITIES, Finding
from kdump.forensics.scan_answer import (
    DiskCopy,
    FleetProducer,
    FleetSummary,
    FrequentKey,
    ReplicaDifference,
    ScannedBroker,
    ScannedUnits,
)
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, MAX_EXPANSION, MIN_RECORD_SIZE
from kdump.spark.compare_replicas import COMPACTED
from kdump.spark.coordinators import lagging_groups, open_transactions
from kdump.spark.result import compare_replicas, open_result, put_replicas, view
from kdump.spark.scan import ScanOptions
from kdump.spark.scan_result import ScanResult
from kdump.spark.store import Store
from kdump.spark.tables import REPLICAS
from kdump.spark.unit_totals import sum_units

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_ROWS = 20
"""Maximum rows of a list in the summary; the tables have all of them."""
MAX_FINDINGS = 2000
"""Maximum number of findings to print."""

POSSIBLE = f"""
  if(magic < 2 or recordCount * {MIN_RECORD_SIZE} <= (size - {BATCH_HEADER.size}) *
     coalesce(get(array{MAX_EXPANSION}, attributes & {COMPRESSION.mask}), {max(MAX_EXPANSION)}), recordCount, 0)
"""
"""The batch's number of records; 0 if it has no room for as many (kdump.format.batch_header.max_records)."""
PRODUCERS = f"""
  select producerId, count(distinct producerEpoch) as epochs, count(distinct topic) as topics,
         count(distinct topic, partition) as partitions, count(*) as batches,
         cast(sum({POSSIBLE}) as bigint) as records, cast(sum(size) as bigint) as bytes,
         min(maxTimestamp) as first, max(maxTimestamp) as last,
         round(try_divide(sum({POSSIBLE}) * 1000, max(maxTimestamp) - min(maxTimestamp)), 1) as recordsPerSecond
  from batches where copyOf is null and state = 'live' and producerId >= 0 and not isControlBatch and crcValid
  group by cluster, producerId order by records desc, producerId limit {{max_rows}}
"""
KEYS = """
  select topic, decode(key, 'UTF-8') as key, records, round(records / total, 3) as share from (
    select topic, key, count(*) as records, sum(count(*)) over (partition by topic) as total
    from records where copyOf is null and state = 'live' and key is not null and not isControlBatch group by topic, key)
  where records > 1 order by records desc, topic, key limit {max_rows}
"""


def summarize(spark: SparkSession, options: ScanOptions, store: Store, done: ScanResult, began: float) -> Object:
    """Return the object of summary.json; `began` is the start by time.monotonic. Creates views of the tables in the
    session, and writes the table replicas."""
    open_result(spark, store)
    places = Counter((entry.get("cluster"), entry["topic"], entry["partition"]) for entry in done.entries)
    several = any(count > 1 for (_, topic, _), count in places.items() if topic is not None)
    found = compare_replicas(spark) if several else []
    put_replicas(store, found)
    view(spark, store, REPLICAS)
    own = [entry for entry in done.entries if entry.get("copyOf") is None]
    total = Counter[str]()
    for entry in own:
        total.update({name: entry["totals"][name] for name in COUNTS})
    severities, codes = Counter[str](), Counter[str]()
    for entry in done.entries:
        severities.update(entry["totals"]["findings"])
        codes.update(entry["codes"])
    sums = sum_units(own, MAX_ROWS)
    return answer_object(
        FleetSummary(
            paths=list(options.paths),
            out=store.root,
            tables=[*options.tables, *(["records"] if options.records else []), "replicas"],
            brokers=_brokers(done),
            copies=[
                DiskCopy(each.place.path, each.identity.copyOf)
                for each in done.fleet.found
                if each.identity.copyOf is not None
            ],
            **{name: total[name] for name in COUNTS},
            findings={severity: severities[severity] for severity in SEVERITIES},
            codes=dict(sorted(codes.items())),
            unread=[text for _, text in done.fleet.unreadable]
            + [t for e in done.entries for t in e["totals"]["unread"]],
            notes=[text for entry in done.entries for text in entry["totals"]["notes"]],
            replicas=[ReplicaDifference(**each) for each in found if each["kind"] != COMPACTED],
            compactedReplicas=sum(each["kind"] == COMPACTED for each in found),
            openTransactions=open_transactions(done),
            groups=lagging_groups(done.fleet, done.check.limits)[:MAX_ROWS],
            topics=sums.topics,
            producers=[FleetProducer(**row) for row in rows(spark, PRODUCERS)],
            keys=[FrequentKey(**row) for row in rows(spark, KEYS)] if options.records else [],
            formats=sums.formats,
            fill=sums.fill,
            timestamps=sums.timestamps,
            retention=sums.retention,
            compaction=sums.compaction,
            units=ScannedUnits(done.read, done.continued, done.kept, done.gone),
            seconds=round(time.monotonic() - began, 3),
        )
    )


COUNTS = ("partitions", "files", "bytes", "batches", "records")


def rows(spark: SparkSession, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query by the names of their columns."""
    found = spark.sql(sql.format(max_rows=MAX_ROWS) if "{max_rows}" in sql else sql).collect()
    return [row.asDict(recursive=True) for row in found]


def info_counts(done: ScanResult) -> Counter[str]:
    """Return the number of informational findings by code."""
    found = Counter[str]()
    for entry in done.entries:
        found.update(entry["infos"])
    return found


def _brokers(done: ScanResult) -> list[ScannedBroker]:
    by: dict[tuple[str | None, str | None], list[str]] = {}
    for each in done.fleet.found:
        by.setdefault((each.identity.cluster, each.identity.broker), []).append(each.place.path)
    return [ScannedBroker(cluster, broker, sources) for (cluster, broker), sources in sorted(by.items(), key=str)]


def units_with_findings(spark: SparkSession, done: ScanResult) -> Iterator[tuple[str, list[Finding]]]:
    """Yield every unit with its errors and warnings, at most MAX_FINDINGS of them in total."""
    names = [key.name for key in answer_keys(Finding)]
    columns = ", ".join(f"`{name}`" for name in names)
    unread = "code = 'unreadable-bytes' and size = 0"
    found = spark.sql(
        f"select {columns} from findings where severity <> 'info' and not ({unread})"
        f" order by case severity when 'error' then 0 else 1 end, source, file, position limit {MAX_FINDINGS}"
    ).collect()
    by_place: dict[str, list[Finding]] = {}
    for row in found:
        by_place.setdefault(row["file"].rpartition("/")[0], []).append(Finding(**row.asDict()))
    for entry in sorted(done.entries, key=lambda entry: entry["unit"]):
        own = by_place.pop(entry["unit"], [])
        own += by_place.pop(entry["unit"].rpartition("/")[0], []) if entry["unit"].endswith(".log") else []
        yield entry["unit"], sorted(own, key=lambda finding: (finding.file, finding.position))
    yield from by_place.items()
