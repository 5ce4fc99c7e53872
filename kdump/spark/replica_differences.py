"""Compares the replicas of partitions batch by batch: the table replica_differences has every stretch of offsets at
which they differ. Spark's SQL finds the batches that are not the same in all replicas, and sums them by stretch and
replica. Only partitions of which something was read again are compared again.

The checksum of a batch covers what follows it in the header, and the records, but not the base offset, length, leader
epoch and magic: intact replicas have the same checksum at the same offsets. There are two exceptions: compaction, which
rewrites batches on each broker independently, and damage. Replicas may start and end at different offsets, because
retention, DeleteRecords and replication do not progress in step."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from kdump.check.finding import ERROR, INFO, SEVERITIES, WARNING
from kdump.format.batch_header import BATCH_HEADER, COMPRESSION, MIN_RECORD_SIZE
from kdump.format.codec_table import MAX_EXPANSION
from kdump.format.legacy_message import MESSAGES
from kdump.spark.delta_tables import commit, write_rows
from kdump.spark.result_views import kept_views, view_tables
from kdump.spark.scan import ScanResult
from kdump.spark.scan_answer import ReplicaDifference
from kdump.spark.store import Store
from kdump.spark.units import ENDING, file_schema
from kdump.tables.declarations import REPLICA_DIFFERENCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POSSIBLE_RECORDS = f"""
  if(recordCount > 0 and (magic in {tuple(MESSAGES)} or
     bigint(recordCount) * {MIN_RECORD_SIZE} <= (size - {BATCH_HEADER.size}) *
     coalesce(get(array{MAX_EXPANSION}, attributes & {COMPRESSION.mask}), {max(MAX_EXPANSION)})), recordCount, 0)
"""
"""Of a row of the table batches, what Batch.possible_records is: 0 if it is unknown, negative, or more than it has room
for (kdump.format.batch_header.max_records)."""


DIVERGED, COMPACTED, DAMAGED, MISSING = "diverged", "compacted", "damaged", "missing"
MAX_COPIES = 63
"""Maximum number of replicas and copies of a partition that are compared: each has a bit of a long."""
OF_TOPICS = """
  select cluster, topic, partition, source, topicId,
         max(struct(copies, topicId)) over (partition by cluster, topic, partition).topicId as known
  from (select *, count(*) over (partition by cluster, topic, partition, topicId) as copies
        from (select cluster, topic, partition, source, max(topicId) as topicId from units
              where topicId is not null group by cluster, topic, partition, source))
"""
"""The topic ID of each directory, and the one that most with its name have: a topic may have been deleted and created
again while a broker was down, and the directory of the old one is no replica of the new one."""
NUMBERED = f"""
  select *, row_number() over (partition by cluster, topic, partition order by source) as number
  from (select cluster, topic, partition, source, any_value(broker) as broker, min(firstOffset) as first,
               max(lastOffset) as end
        from segments where state = 'live' and topic is not null and lastOffset is not null {{changed}}
        group by cluster, topic, partition, source) s
  where not exists (select 1 from ({OF_TOPICS}) i where i.cluster <=> s.cluster and i.topic = s.topic
                    and i.partition = s.partition and i.source = s.source and i.topicId <> i.known)
"""
REPLICAS = f"""
  select *, shiftleft(1L, cast(number - 1 as int)) as bit,
         count(*) over (partition by cluster, topic, partition) as copies
  from ({NUMBERED}) where number <= {MAX_COPIES}
"""
"""Each replica, with the range of its offsets and a bit of its own."""
ONLY_CHANGED = """
  and exists (select 1 from changed c where c.cluster <=> segments.cluster and c.topic = segments.topic
              and c.partition = segments.partition)
"""
RANGES = """
  select cluster, topic, partition, collect_list(struct(source, broker, first, end, bit)) as replicas
  from replicas where copies > 1 group by 1, 2, 3
"""
ROWS = f"""
  select r.cluster, r.topic, r.partition, r.source, r.bit, b.base, b.last, b.epoch, b.records, b.crc, b.valid,
         b.rewritten
  from (
    select cluster, topic, partition, source, coalesce(baseOffset, lastOffset) as base, lastOffset as last, crc,
           coalesce(crcValid, false) as valid, partitionLeaderEpoch as epoch, {POSSIBLE_RECORDS} as records,
           coalesce(hasDeleteHorizonMs, false) or coalesce(recordCount <= lastOffsetDelta, false) as rewritten
    from batches where state = 'live' and lastOffset is not null) b
  join replicas r
  on b.cluster <=> r.cluster and b.topic = r.topic and b.partition = r.partition and b.source = r.source
  where copies > 1
"""
"""The batches of partitions with several replicas. `rewritten`: the log cleaner has evidently rewritten it, with fewer
records than offsets, or a delete horizon."""
AT = """
  select a.*, {expected} as expected, isMixed or (present & {expected}) <> {expected} as isSuspect
  from (
    select cluster, topic, partition, base, bit_or(bit) as present, max(last) as reached,
           min(coalesce(crc, -1)) <> max(coalesce(crc, -1)) or min(last) <> max(last) or min(valid) <> max(valid)
           as isMixed, not min(valid) as isDamaged, max(rewritten) as isRewritten
    from rows group by 1, 2, 3, 4) a
  join ranges r on a.cluster <=> r.cluster and a.topic = r.topic and a.partition = r.partition
""".format(expected="aggregate(r.replicas, 0L, (bits, r) -> if(base between r.first and r.end, bits | r.bit, bits))")
"""What the replicas have at each offset: those with a batch (`present`), and those that reach over it (`expected`).
This is one row for all replicas, because nearly all batches are the same in each of them."""
AFFECTED = "select distinct cluster, topic, partition from at where isSuspect"
OF_AFFECTED = """
  left semi join affected f on x.cluster <=> f.cluster and x.topic = f.topic and x.partition = f.partition
"""
SUSPECTS = f"""
  select * from (
    select x.*, max(isRewritten) over (partition by cluster, topic, partition) as isCleaned,
           coalesce(max(reached) over (partition by cluster, topic, partition order by base
                                       rows between unbounded preceding and 1 preceding) >= base, false) as isInside
    from at x {OF_AFFECTED})
  where isSuspect
"""
"""Offsets at which they are not the same. `isInside`: a batch begins there inside another one."""
COMPARED = f"""
  select x.cluster, x.topic, x.partition, x.source, x.base, x.last, x.epoch, x.records, x.remaining, a.present,
         a.expected, a.isDamaged, a.isRewritten, a.isCleaned, a.isInside,
         bit_or(x.bit) over (partition by x.cluster, x.topic, x.partition, x.base, x.crc, x.last, x.valid)
         <> a.present as isUnlike
  from (
    select x.*, sum(records) over (partition by cluster, topic, partition, source order by base desc
                                   rows between unbounded preceding and current row) as remaining
    from rows x {OF_AFFECTED}) x
  join suspects a
  on x.cluster <=> a.cluster and x.topic = a.topic and x.partition = a.partition and x.base = a.base
"""
"""The batches there. `remaining`: records from there to the end of the replica (Spark takes quadratic time for a frame
that ends at `unbounded following`)."""
DIFFERENT = f"""
  select *, case when isDamaged then '{DAMAGED}' when isRewritten or (isCleaned and not isUnlike and not isInside)
            then '{COMPACTED}' else '{DIVERGED}' end as kind
  from compared where isUnlike or (present & expected) <> expected
"""
BEGUN = """
  select *, int(coalesce(
    base > cast(max(last) over (partition by cluster, topic, partition order by base, source
                                rows between unbounded preceding and 1 preceding) as decimal(20, 0)) + 1
    or kind <> lag(kind) over (partition by cluster, topic, partition order by base, source), true)) as begins
  from different
"""
STRETCHES = f"""
  select s.*, r.replicas from (
    select cluster, topic, partition, stretch, kind, source, bit_or(expected) as expected, min(base) as first,
           max(last) as last, sum(records) as records, max(remaining) as remaining, min_by(epoch, base) as epoch,
           bool_or(isUnlike or isInside) as isUnlike
    from (select *, if(kind = '{COMPACTED}', -1, sum(begins) over (partition by cluster, topic, partition
                       order by base, source rows between unbounded preceding and current row)) as stretch from begun)
    group by 1, 2, 3, 4, 5, 6) s
  join ranges r on s.cluster <=> r.cluster and s.topic = r.topic and s.partition = r.partition
  order by 1, 2, 3, 4, 5, 6
"""
"""What each replica has in each stretch of batches that are not the same in all replicas. What the log cleaner has
rewritten is one stretch."""


class ReplicaStretch(NamedTuple):
    """What one replica has in a stretch. `remaining`: its records from there to its end; `epoch`: leader epoch of its
    first batch there; None if it has none."""

    source: str
    broker: str | None
    end: int
    records: int = 0
    remaining: int = 0
    epoch: int | None = None

    @property
    def name(self) -> str:
        return self.source if self.broker is None else f"broker {self.broker}"


def replica_differences(
    spark: SparkSession, *, only_changed: bool = False, one_task: bool = False
) -> Iterator[ReplicaDifference]:
    """Yield the rows of the table replica_differences in order, computed from the views batches and segments, with
    `only_changed` for the partitions in the view changed (cluster, topic, partition). With `one_task`, first asks which
    partitions differ, and computes nothing else if none does."""
    replicas = REPLICAS.format(changed=ONLY_CHANGED if only_changed else "")
    parts = {"replicas": replicas, "ranges": RANGES, "rows": ROWS, "at": AT, "affected": AFFECTED}
    last = {"suspects": SUSPECTS, "compared": COMPARED, "different": DIFFERENT, "begun": BEGUN}
    if not one_task:
        yield from differences_of(spark.sql(_with(parts | last, STRETCHES)).toLocalIterator())
        return
    with kept_views(spark, parts):
        if spark.table("affected").take(1):
            yield from differences_of(spark.sql(_with(last, STRETCHES)).toLocalIterator())


def _with(parts: dict[str, str], sql: str) -> str:
    return f"with {', '.join(f'{name} as ({part})' for name, part in parts.items())} {sql}"


def not_compared(spark: SparkSession) -> list[str]:
    """Return a line for each partition with more than MAX_COPIES replicas and copies."""
    numbered = NUMBERED.format(changed="")
    partitions = spark.sql(
        f"select topic, partition, max(number) as number from ({numbered}) group by cluster, topic, partition "
        f"having number > {MAX_COPIES} order by topic, partition"
    )
    return [
        f"{row.topic}-{row.partition}: {row.number} replicas and copies, of which the first {MAX_COPIES} were compared"
        for row in partitions.toLocalIterator()
    ]


def differences_of(rows: Iterable[Any]) -> Iterator[ReplicaDifference]:
    """Yield a difference for each stretch, given the rows of STRETCHES, in order."""
    for (cluster, topic, partition, _), group in groupby(rows, key=lambda row: tuple(row[:4])):
        stretches = list(group)
        here = {row.source: row for row in stretches}
        expected = 0
        for row in stretches:
            expected |= row.expected
        replicas = [
            _in_replica(replica, here.get(replica.source))
            for replica in sorted(stretches[0].replicas, key=lambda replica: replica.source)
            if replica.bit & expected or replica.source in here
        ]
        kind = stretches[0].kind
        if kind == DIVERGED and not any(row.isUnlike for row in stretches):
            kind = MISSING
        first, last = min(row.first for row in stretches), max(row.last for row in stretches)
        yield _difference(cluster, topic, partition, kind, first, last, replicas)


def _in_replica(replica: Any, row: Any) -> ReplicaStretch:
    stretch = ReplicaStretch(replica.source, replica.broker, replica.end)
    return stretch if row is None else stretch._replace(records=row.records, remaining=row.remaining, epoch=row.epoch)


def _difference(
    cluster: str | None, topic: str, partition: int, kind: str, first: int, last: int, replicas: list[ReplicaStretch]
) -> ReplicaDifference:
    known = [each for each in replicas if each.epoch is not None and each.epoch >= 0]
    newest = max((each.epoch or 0 for each in known), default=0)
    earlier = [each for each in known if each.epoch != newest]
    is_truncated = kind == DIVERGED and bool(earlier)
    lost = None
    if kind == MISSING or is_truncated:
        lost = max([each.remaining for each in earlier] if is_truncated else [each.records for each in replicas])
    return ReplicaDifference(
        cluster=cluster,
        topic=topic,
        partition=partition,
        kind=kind,
        severity=_severity(kind, is_repaired=is_truncated and not lost),
        firstOffset=first,
        lastOffset=last,
        brokers=[each.broker for each in replicas],
        sources=[each.source for each in replicas],
        leaderEpochs=[each.epoch for each in replicas],
        records=[each.records for each in replicas],
        lost=lost,
        lastOffsets=[each.end for each in replicas],
        explanation=_explained(kind, first, replicas, [each for each in known if each.epoch == newest], earlier),
    )


def _severity(kind: str, *, is_repaired: bool) -> str:
    """Return `error` for records that are lost, by truncation or because a replica lacks them, and for what no broker
    repairs: damage, and divergence within one leader epoch, where the records that consumers read depend on which
    replica leads. `warning` for what a follower repairs without a loss (`is_repaired`), and for missing offsets, which
    the log cleaner may have removed. `info` for compaction."""
    if kind == COMPACTED:
        return INFO
    return WARNING if kind == MISSING or is_repaired else ERROR


def _explained(
    kind: str, first: int, replicas: list[ReplicaStretch], later: list[ReplicaStretch], earlier: list[ReplicaStretch]
) -> str:
    if kind == COMPACTED:
        return "the log cleaner has rewritten these batches; this is not damage"
    if kind == DAMAGED:
        return "the checksum of a batch there does not match; see the findings"
    if kind == MISSING:
        names = [replica.name for replica in replicas if replica.epoch is None]
        return f"{', '.join(names)} {'lacks' if len(names) == 1 else 'lack'} offsets between others that it has"
    if not earlier:
        return "all have the same leader epoch: there were two leaders at the same time, or a disk changed bytes"
    older = ", ".join(str(epoch) for epoch in sorted({replica.epoch or 0 for replica in earlier}))
    has = "has" if len(earlier) == 1 else "have"
    ahead, behind = (", ".join(replica.name for replica in some) for some in (later, earlier))
    return (
        f"leader epoch {later[0].epoch} in {ahead}, {older} in {behind}: after an unclean election, a follower"
        f" truncates its data of the earlier epoch; from offset {first} on, {behind} {has} data that the later leader"
        " never had"
    )


MAX_DIFFERENCES = 200
"""Maximum number of them in the summary."""
HELD = 4096
"""Maximum number of them that are held in memory to find the worst."""
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
    spark: SparkSession,
    store: Store,
    done: ScanResult,
    judge: Callable[[Iterator[ReplicaDifference]], Iterator[ReplicaDifference]],
    *,
    several: bool,
    one_task: bool = False,
) -> dict[str, Any]:
    """Write the table for a scan. Returns the fields of the summary that are about replicas: the worst differences, and
    how many there are. `judge` yields the differences as their records show them; `several`: whether there is more than
    one source; `one_task`: whether to read the table in one task. Raises StoreError."""
    name, since = REPLICA_DIFFERENCES.name, None
    if done.before is not None and name in done.before.versions:
        since = done.before.run
        view_tables(spark, store, done.before.versions, {name}, one_task=one_task)
        spark.sql(CHANGED.format(since=since)).createOrReplaceTempView("changed")
    differences: Iterator[ReplicaDifference] = iter(())
    if several:
        differences = judge(replica_differences(spark, only_changed=since is not None, one_task=one_task))
    counts = Counter[bool]()
    worst: list[ReplicaDifference] = []

    def rows() -> Iterator[dict[str, Any]]:
        for difference in _both(spark, differences) if since is not None else differences:
            counts[difference.kind == COMPACTED] += 1
            if difference.kind != COMPACTED:
                worst.append(difference)
            if len(worst) >= HELD:
                worst[:] = heapq.nsmallest(MAX_DIFFERENCES, worst, key=_order)
            yield difference._asdict()

    file = write_rows(store, REPLICA_DIFFERENCES, f"{done.run}{ENDING}", rows())
    done.versions[name] = commit(store, name, file_schema(REPLICA_DIFFERENCES), [file])
    return {
        "replicas": heapq.nsmallest(MAX_DIFFERENCES, worst, key=_order),
        "replicaDifferences": counts[False],
        "compactedReplicas": counts[True],
    }


def _both(spark: SparkSession, differences: Iterable[ReplicaDifference]) -> Iterator[ReplicaDifference]:
    """Yield the rows that are still true, and those that were found now."""
    for row in spark.sql(KEPT).toLocalIterator():
        yield ReplicaDifference(**row.asDict())
    yield from differences


def _order(row: ReplicaDifference) -> tuple[Any, ...]:
    return SEVERITIES.index(row.severity), row.cluster or "", row.topic, row.partition, row.firstOffset
