"""Tables of the state's JSON objects: their columns, and the styles of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any

from kdump.answer import ANSWERS, Key, answer_keys, answer_object, answer_type
from kdump.forensics.cluster_answer import ClusterAcl, ClusterToken
from kdump.render import forensic_tables as forensic
from kdump.render.escape import path_text, printable
from kdump.render.forensic_tables import (
    CONNECT_TABLES,
    FORENSIC_TABLES,
    NO_ZERO_RETENTION,
    REGISTRY_TABLES,
    RETENTION_TABLES,
    ColumnSpec,
    connect_style,
    forensic_style,
    registry_style,
    retention_style,
)
from kdump.render.sink import Sink, is_problem, objects_of
from kdump.render.state_cells import cell
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, check_names

Object = dict[str, Any]


LEAST = {"resourceName": 12, "principal": 12}
TABLES: dict[str, tuple[ColumnSpec, ...]] = {
    "group": (
        ColumnSpec("groupId", "group", least=20),
        ColumnSpec("groupType", "type", 6),
        ColumnSpec("state"),
        ColumnSpec("epoch", "", 3),
        ColumnSpec("protocol", "", 2),
        ColumnSpec("members", "", 8),
        ColumnSpec("partitions", "", 5),
        ColumnSpec("lag", "", 8),
        ColumnSpec("recordsBehind", "records behind", 2),
        ColumnSpec("lagUnknown", "", 1),
        ColumnSpec("remarks", "", 7),
        ColumnSpec("pending", "", 6),
        ColumnSpec("lastCommit", "last commit", 4),
    ),
    "groupMember": (
        ColumnSpec("groupId", "group", least=16),
        ColumnSpec("memberId", "member", least=16),
        ColumnSpec("instanceId", "instance", 6, 10),
        ColumnSpec("clientId", "client", 8, 12),
        ColumnSpec("clientHost", "host", 8),
        ColumnSpec("memberEpoch", "epoch", 4),
        ColumnSpec("state", "", 4),
        ColumnSpec("subscribedTopicNames", "subscribed", 3, 12),
        ColumnSpec("subscribedTopicRegex", "regex", 3, 8),
        ColumnSpec("assigned", "", 7, 16),
        ColumnSpec("revoking", "", 6, 12),
        ColumnSpec("target", "", 2, 16),
    ),
    "groupOffset": (
        ColumnSpec("groupId", "group", least=12),
        ColumnSpec("topic", "", 9, 12),
        ColumnSpec("partition", ""),
        ColumnSpec("offset"),
        ColumnSpec("lag", "", 8),
        ColumnSpec("recordsBehind", "records behind", 2),
        ColumnSpec("logStartOffset", "log start", 4),
        ColumnSpec("logEndOffset", "log end", 6),
        ColumnSpec("highWatermark", "high watermark", 1),
        ColumnSpec("leaderEpoch", "", 1),
        ColumnSpec("pending", "", 7),
        ColumnSpec("commitTimestamp", "committed", 3),
        ColumnSpec("metadata", "", 2, 10),
        ColumnSpec("remark", "", 7, 24),
    ),
    "groupShare": (
        ColumnSpec("groupId", "group", least=12),
        ColumnSpec("topic", "", 9, 12),
        ColumnSpec("partition", ""),
        ColumnSpec("startOffset", "start"),
        ColumnSpec("lag", "", 8),
        ColumnSpec("logStartOffset", "log start", 4),
        ColumnSpec("logEndOffset", "log end", 6),
        ColumnSpec("deliveryCompleteCount", "complete above", 2),
        ColumnSpec("stateEpoch", "", 1),
        ColumnSpec("leaderEpoch", "", 1),
        ColumnSpec("remark", "", 7, 24),
    ),
    "change": (
        ColumnSpec("offset", "", 6),
        ColumnSpec("timestamp", "time"),
        ColumnSpec("record", "", 3, 14),
        ColumnSpec("groupId", "group", 8, 10),
        ColumnSpec("entity", "", 4),
        ColumnSpec("name", "", 9, 12),
        ColumnSpec("action", "", 7),
        ColumnSpec("fields", "", 9, 18),
    ),
    "clusterVoter": (
        ColumnSpec("voterId", "voter"),
        ColumnSpec("isLeader", "leader"),
        ColumnSpec("voterDirectoryId", "directory", 2),
        ColumnSpec("endpoints", "", 5, 20),
    ),
    "clusterController": (
        ColumnSpec("controllerId", "controller"),
        ColumnSpec("endPoints", "endpoints", 5, 20),
        ColumnSpec("incarnationId", "", 2),
        ColumnSpec("features", "", 1, 20),
    ),
    "clusterBroker": (
        ColumnSpec("brokerId", "broker"),
        ColumnSpec("state"),
        ColumnSpec("rack", "", 5),
        ColumnSpec("leaders", "", 7),
        ColumnSpec("replicas", "", 6),
        ColumnSpec("outOfSync", "out of sync", 6),
        ColumnSpec("brokerEpoch", "epoch", 2),
        ColumnSpec("endPoints", "endpoints", 5, 20),
        ColumnSpec("logDirs", "", 1, 22),
    ),
    "clusterFeature": (
        ColumnSpec("name", "feature"),
        ColumnSpec("featureLevel", "level"),
        ColumnSpec("release", "", 5),
    ),
    "clusterTopic": (
        ColumnSpec("topic", "", 9, 16),
        ColumnSpec("topicId", "", 2),
        ColumnSpec("partitions"),
        ColumnSpec("replicationFactor", "replicas", 7),
        ColumnSpec("offline", "", 8),
        ColumnSpec("underReplicated", "under-replicated", 8),
        ColumnSpec("underMinIsr", "under-min-isr", 6),
        ColumnSpec("reassigning", "", 6),
        ColumnSpec("configs", "", 4, 24),
    ),
    "clusterPartition": (
        ColumnSpec("topic", "", 9, 16),
        ColumnSpec("partition", ""),
        ColumnSpec("leader"),
        ColumnSpec("leaderEpoch", "epoch", 4),
        ColumnSpec("isr"),
        ColumnSpec("replicas", "", 8),
        ColumnSpec("addingReplicas", "adding", 6),
        ColumnSpec("removingReplicas", "removing", 6),
        ColumnSpec("eligibleLeaderReplicas", "elr", 5),
        ColumnSpec("lastKnownElr", "last known elr", 3),
        ColumnSpec("state", "", 9, 10),
    ),
    "clusterConfig": (
        ColumnSpec("resourceType", "of"),
        ColumnSpec("resourceName", "resource", 9, 12),
        ColumnSpec("name"),
        ColumnSpec("value", "", 9, 16),
    ),
    "clusterQuota": (ColumnSpec("entity", "", 9, 16), ColumnSpec("name", "quota"), ColumnSpec("value")),
    "clusterAcl": tuple(
        ColumnSpec(key.name, "", 1) if key.name == "id" else ColumnSpec(key.name, least=LEAST.get(key.name))
        for key in answer_keys(ClusterAcl)
    ),
    "clusterScram": (ColumnSpec("name", "user"), ColumnSpec("mechanism"), ColumnSpec("iterations")),
    "clusterToken": tuple(
        ColumnSpec(key.name) if key.name == "tokenId" else ColumnSpec(key.name, "", 5)
        for key in answer_keys(ClusterToken)
    ),
    **FORENSIC_TABLES,
    **RETENTION_TABLES,
    **REGISTRY_TABLES,
    **CONNECT_TABLES,
}
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
    if kind in REGISTRY_TABLES:
        return registry_style(value)
    if kind in CONNECT_TABLES:
        return connect_style(value)
    if kind in FORENSIC_TABLES:
        return forensic_style(value)
    if kind == "change" and _moved_back(value):
        return "torn"
    return "dim" if value.get("action") == "aborted" else ""


def columns(kind: str, zone: tzinfo, names: list[str] | None = None, without: tuple[str, ...] = ()) -> list[Column]:
    """Return the columns of a table of such objects: the default ones, or those in `names`. Raises UnknownColumn."""
    keys = {key.name: key for key in answer_keys(ANSWERS[kind])}
    if names is None:
        return [_column(keys[each.name], zone, each) for each in TABLES[kind] if each.name not in without]
    check_names(names, keys)
    usual = {each.name: each for each in TABLES[kind]}
    return [_column(keys[name], zone, usual.get(name, ColumnSpec(name))) for name in names]


def _column(key: Key, zone: tzinfo, shown: ColumnSpec) -> Column:
    text = partial(_text, key, zone)
    right = key.type.startswith("number") and key.unit != "epoch ms"
    return Column(key.name, shown.label or key.name, text, right, shown.rank, shown.least, shown.cuts)


def _text(key: Key, zone: tzinfo, value: Object) -> str:
    shown = value[key.name]
    if (shown == 0 and key.name in NO_ZERO) or (shown == -1 and key.name in NO_MINUS_ONE):
        return ""
    if key.name == "fields":
        return _moved_back(value) + cell(key, shown, zone)
    return "none" if key.name == "isr" and not shown else cell(key, shown, zone)


def _moved_back(value: Object) -> str:
    """Return a remark on a committed offset that went back, which is what one looks for in a history."""
    if value.get("entity") != "offset" or value.get("action") != "changed":
        return ""
    old, new = next(((each["old"], each["new"]) for each in value["fields"] if each["name"] == "offset"), (None, None))
    return f"BACK by {old - new}: " if isinstance(old, int) and isinstance(new, int) and new < old else ""


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

    def write_summary(self, kind: str, values: Sequence[Object]) -> None:
        """Write a whole table of partitions; their source is a column only if there are several."""
        several = len({value["source"] for value in values}) > 1
        self.write(kind, values, () if several else ("source",))

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

    def add(self, answer: Any) -> None:
        for value in objects_of(answer):
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


class HeadedTables(TableRows):
    """The same for several logs, each below a heading with its path."""

    def __init__(self, output: Output, tables: StateTables) -> None:
        super().__init__(output, tables)
        self._begun = False

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.end()
        head = self.output.paint(printable(path_text(name)) + ":", "head")
        self.output.line(("\n" if self._begun else "") + head)
        self._begun, self.written = True, False


class OneTable(Sink[Any]):
    """Writes a single table of all answers of one class. Counts the findings and other problems that are left out, and
    passes their number to `on_left_out` at the end. Raises UnknownColumn."""

    def __init__(self, tables: StateTables, row: type, on_left_out: Callable[[int], None]) -> None:
        self.row = row
        self.on_left_out = on_left_out
        self._table = tables.open(answer_type(row))
        self._problems = 0

    def add(self, answer: Any) -> None:
        value = answer_object(answer)
        if isinstance(answer, self.row):
            self._table.add(value, style(value))
        else:
            self._problems += is_problem(value)

    def end(self) -> None:
        self._table.flush()
        if self._problems:
            self.on_left_out(self._problems)
