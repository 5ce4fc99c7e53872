"""The lag of groups in SQL: what the coordinators' logs say of groups (view `coordinators`), joined with the logs that
they read (table partitions) and the cluster's metadata (view `clusters`). The rules are those of kdump.cluster.lag."""

from __future__ import annotations

from kdump.cluster import lag
from kdump.spark.coordinator_logs import GROUP, OFFSET, SHARE
from kdump.spark.unit_sums import MAX_ROWS

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


def _format(text: str, value: str) -> str:
    before, after = text.split("{}")
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
VIEWS = {"topic_ids": TOPICS, "log_ends": ENDS, "commits": COMMITS}
"""Views that GROUPS reads, each of which may read those before it; the rows of `commits` are those of group_lag."""
