"""Tables of the state's JSON objects: their columns, and the styles of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import partial
from typing import Any

from kdump.answer import ANSWERS, Key, answer_keys, answer_object, answer_type
from kdump.forensics.cluster import ClusterAcl, ClusterToken
from kdump.render import forensic_tables as forensic
from kdump.render.forensic_tables import FORENSIC_TABLES, forensic_style
from kdump.render.output import Output
from kdump.render.retention_tables import NO_ZERO as NO_ZERO_RETENTION
from kdump.render.retention_tables import RETENTION_TABLES, retention_style
from kdump.render.shown import Shown
from kdump.render.sink import Sink, is_problem, objects_of
from kdump.render.state_cells import cell
from kdump.render.table import Column, Table, UnknownColumn

Object = dict[str, Any]


TABLES: dict[str, tuple[Shown, ...]] = {
    "group": (
        Shown("groupId", "group", least=20),
        Shown("groupType", "type", 6),
        Shown("state"),
        Shown("epoch", "", 3),
        Shown("protocol", "", 2),
        Shown("members", "", 8),
        Shown("partitions", "", 5),
        Shown("lag", "", 8),
        Shown("lagUnknown", "", 1),
        Shown("remarks", "", 7),
        Shown("pending", "", 6),
        Shown("lastCommit", "last commit", 4),
    ),
    "groupMember": (
        Shown("groupId", "group", 5, 16),
        Shown("memberId", "member", least=16),
        Shown("instanceId", "instance", 6, 10),
        Shown("clientId", "client", 8, 12),
        Shown("clientHost", "host", 8),
        Shown("memberEpoch", "epoch", 4),
        Shown("state", "", 4),
        Shown("subscribedTopicNames", "subscribed", 3, 12),
        Shown("subscribedTopicRegex", "regex", 3, 8),
        Shown("assigned", "", 7, 16),
        Shown("revoking", "", 6, 12),
        Shown("target", "", 2, 16),
    ),
    "groupOffset": (
        Shown("groupId", "group", 5, 12),
        Shown("topic", "", 9, 12),
        Shown("partition", ""),
        Shown("offset"),
        Shown("lag", "", 8),
        Shown("logStartOffset", "log start", 4),
        Shown("logEndOffset", "log end", 6),
        Shown("highWatermark", "high watermark", 1),
        Shown("leaderEpoch", "", 1),
        Shown("pending", "", 7),
        Shown("commitTimestamp", "committed", 3),
        Shown("metadata", "", 2, 10),
        Shown("remark", "", 7, 24),
    ),
    "groupShare": (
        Shown("groupId", "group", 5, 12),
        Shown("topic", "", 9, 12),
        Shown("partition", ""),
        Shown("startOffset", "start"),
        Shown("lag", "", 8),
        Shown("logStartOffset", "log start", 4),
        Shown("logEndOffset", "log end", 6),
        Shown("deliveryCompleteCount", "complete above", 2),
        Shown("stateEpoch", "", 1),
        Shown("leaderEpoch", "", 1),
        Shown("remark", "", 7, 24),
    ),
    "change": (
        Shown("offset"),
        Shown("timestamp", "time", 8),
        Shown("record", "", 3, 14),
        Shown("groupId", "group", 7, 10),
        Shown("entity", "", 5),
        Shown("name", "", 9, 12),
        Shown("action"),
        Shown("fields", "", 9, 20),
    ),
    "clusterVoter": (Shown("voterId", "voter"), Shown("isLeader", "leader"), Shown("voterDirectoryId", "directory", 2),
                     Shown("endpoints", "", 5, 20)),
    "clusterController": (Shown("controllerId", "controller"), Shown("endPoints", "endpoints", 5, 20),
                          Shown("incarnationId", "", 2), Shown("features", "", 1, 20)),
    "clusterBroker": (
        Shown("brokerId", "broker"),
        Shown("state"),
        Shown("rack", "", 5),
        Shown("leaders", "", 7),
        Shown("replicas", "", 6),
        Shown("outOfSync", "out of sync", 6),
        Shown("brokerEpoch", "epoch", 2),
        Shown("endPoints", "endpoints", 5, 20),
        Shown("logDirs", "", 1, 22),
    ),
    "clusterFeature": (Shown("name", "feature"), Shown("featureLevel", "level"), Shown("release", "", 5)),
    "clusterTopic": (
        Shown("topic", "", 9, 16),
        Shown("topicId", "", 2),
        Shown("partitions"),
        Shown("replicationFactor", "replicas", 7),
        Shown("offline", "", 8),
        Shown("underReplicated", "under-replicated", 8),
        Shown("underMinIsr", "under-min-isr", 6),
        Shown("reassigning", "", 6),
        Shown("configs", "", 4, 24),
    ),
    "clusterPartition": (
        Shown("topic", "", 9, 16),
        Shown("partition", ""),
        Shown("leader"),
        Shown("leaderEpoch", "epoch", 4),
        Shown("isr"),
        Shown("replicas", "", 8),
        Shown("addingReplicas", "adding", 6),
        Shown("removingReplicas", "removing", 6),
        Shown("eligibleLeaderReplicas", "elr", 5),
        Shown("lastKnownElr", "last known elr", 3),
        Shown("state", "", 9, 10),
    ),
    "clusterConfig": (Shown("resourceType", "of", 5), Shown("resourceName", "resource", 9, 12), Shown("name"),
                      Shown("value", "", 9, 16)),
    "clusterQuota": (Shown("entity", "", 9, 16), Shown("name", "quota"), Shown("value")),
    "clusterAcl": tuple(Shown(key.name, "", 1 if key.name == "id" else 8) for key in answer_keys(ClusterAcl)),
    "clusterScram": (Shown("name", "user"), Shown("mechanism"), Shown("iterations")),
    "clusterToken": tuple(Shown(key.name, "", 5) for key in answer_keys(ClusterToken)),
    **FORENSIC_TABLES,
    **RETENTION_TABLES,
}  # fmt: skip
"""Default columns."""

BAD = ("offline", "under-min-isr")
NO_ZERO: tuple[str, ...] = (
    *forensic.NO_ZERO,
    *NO_ZERO_RETENTION,
    "remarks",
    "pending",
    "lagUnknown",
    "reassigning",
    "offline",
    "underReplicated",
    "underMinIsr",
    "outOfSync",
)
"""Columns in which 0, the usual value, is not shown."""
NO_MINUS_ONE = ("epoch", "deliveryCompleteCount", "stateEpoch", *forensic.NO_MINUS_ONE)
"""Columns in which -1, Kafka's value for none, is not shown."""


def style(value: Object) -> str:
    """Return the style of a row."""
    kind = value["type"]
    if kind in ("groupOffset", "groupShare"):
        return "bad" if value["remark"] and value.get("startOffset") != -1 else ""
    if kind == "group":
        return "torn" if value["remarks"] else ""
    if kind == "clusterPartition":
        return "" if not value["state"] else "bad" if any(word in value["state"] for word in BAD) else "torn"
    if kind == "clusterTopic":
        return "bad" if value["offline"] else "torn" if value["underReplicated"] or value["underMinIsr"] else ""
    if kind == "clusterBroker":
        return "" if value["state"] == "active" else "torn"
    if kind in RETENTION_TABLES:
        return retention_style(value)
    if kind in FORENSIC_TABLES:
        return forensic_style(value)
    return "dim" if value.get("action") == "aborted" else ""


def columns(kind: str, zone: tzinfo, names: list[str] | None = None, without: tuple[str, ...] = ()) -> list[Column]:
    """Return the columns of a table of such objects: the default ones, or those in `names`. Raises UnknownColumn."""
    keys = {key.name: key for key in answer_keys(ANSWERS[kind])}
    if names is None:
        return [_column(keys[each.name], zone, each) for each in TABLES[kind] if each.name not in without]
    for name in names:
        if name not in keys:
            raise UnknownColumn(f"unknown column {name!r}; known are {', '.join(keys)}")
    usual = {each.name: each for each in TABLES[kind]}
    return [_column(keys[name], zone, usual.get(name, Shown(name))) for name in names]


def _column(key: Key, zone: tzinfo, shown: Shown) -> Column:
    text = partial(_text, key, zone)
    right = key.type.startswith("number") and key.unit != "epoch ms"
    return Column(key.name, shown.label or key.name, text, right, shown.rank, shown.least)


def _text(key: Key, zone: tzinfo, value: Object) -> str:
    shown = value[key.name]
    if (shown == 0 and key.name in NO_ZERO) or (shown == -1 and key.name in NO_MINUS_ONE):
        return ""
    return "none" if key.name == "isr" and not shown else cell(key, shown, zone)


class StateTables:
    """Writes tables of objects to an output, one after the other. Raises UnknownColumn."""

    def __init__(self, output: Output, zone: tzinfo, names: list[str] | None, full: bool) -> None:
        self.output = output
        self.zone = zone
        self.names = names
        self.full = full

    def open(self, kind: str, without: tuple[str, ...] = ()) -> Table:
        """Return a table for such objects, without the default columns in `without`."""
        shown = columns(kind, self.zone, self.names, without)
        return Table(shown, self.output, full=self.full, chosen=self.names is not None)

    def write(self, kind: str, values: Iterable[Object], without: tuple[str, ...] = ()) -> int:
        """Write a whole table, or nothing if there are no rows. Return the number of rows."""
        table = self.open(kind, without)
        rows = 0
        for value in values:
            table.add(value, style(value))
            rows += 1
        if rows:
            table.flush()
        return rows


class TableRows(Sink[Any]):
    """Writes tables, each for adjacent answers of one type."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        self.output = output
        self.tables = tables
        self.written = False
        """Whether something has been written that a blank line separates from the next table."""
        self._table: Table | None = None
        self._type = ""

    def add(self, found: Any) -> None:
        for value in objects_of(found):
            if self._table is None or value["type"] != self._type:
                self.end()
                if self.written:
                    self.output.line("")
                self._table, self._type, self.written = self.tables.open(value["type"]), value["type"], True
            self._table.add(value, style(value))

    def tick(self) -> None:
        if self._table is not None:
            self._table.tick()

    def end(self) -> None:
        if self._table is not None:
            self._table.flush()
            self._table = None


class OneTable(Sink[Any]):
    """Writes a single table of all answers of one class. Counts the findings and other problems that are left out, and
    passes their number to `left_out` at the end. Raises UnknownColumn."""

    def __init__(self, tables: StateTables, row: type, left_out: Callable[[int], None]) -> None:
        self.row = row
        self.left_out = left_out
        self._table = tables.open(answer_type(row))
        self._problems = 0

    def add(self, found: Any) -> None:
        value = answer_object(found)
        if isinstance(found, self.row):
            self._table.add(value, style(value))
        else:
            self._problems += is_problem(value)

    def end(self) -> None:
        self._table.flush()
        if self._problems:
            self.left_out(self._problems)
