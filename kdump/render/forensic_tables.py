"""Table columns of `kdump transactions`, `producers`, `registry`, `connect` and `retention`, and the styles of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.render.table import NAME, PATH, TEXT, VALUE


class ColumnSpec(NamedTuple):
    """A column of a table: the key, and the same fields as in Column."""

    name: str
    label: str = ""
    rank: int = 9
    least: int | None = None

    @property
    def cuts(self) -> str:
        """How cells are shortened; the key decides, so that all tables do the same."""
        return NAME if self.name in NAMES else PATH if self.name in PATHS else TEXT if self.name in TEXTS else VALUE


NAMES = frozenset(
    (
        *("groupId", "memberId", "instanceId", "topic", "transactionalId", "name", "entity", "resourceName"),
        *("principal", "tokenId", "subject", "subjects", "connector", "group"),
    )
)
PATHS = frozenset(("source", "path", "file"))
TEXTS = frozenset(("message", "remark", "remarks", "doubt"))
"""Keys whose values identify what a row is about, and keys of our own sentences."""


FORENSIC_TABLES: dict[str, tuple[ColumnSpec, ...]] = {
    "transaction": (
        ColumnSpec("firstOffset", "first"),
        ColumnSpec("lastOffset", "last"),
        ColumnSpec("records", "", 6),
        ColumnSpec("transactionalId", "transactional ID", 7),
        ColumnSpec("producerId", "producer"),
        ColumnSpec("producerEpoch", "epoch", 8),
        ColumnSpec("state"),
        ColumnSpec("markerOffset", "marker", 8),
        ColumnSpec("begun", "", 5),
        ColumnSpec("ended", "", 4),
        ColumnSpec("inTxnIndex", "in .txnindex", 3),
        ColumnSpec("remarks", "", 8, 24),
    ),
    "transactionPartition": (
        ColumnSpec("source", "in", least=12),
        ColumnSpec("topic"),
        ColumnSpec("partition"),
        ColumnSpec("committed"),
        ColumnSpec("aborted"),
        ColumnSpec("open"),
        ColumnSpec("hanging", "", 8),
        ColumnSpec("logStartOffset", "log start", 4),
        ColumnSpec("lastStableOffset", "last stable"),
        ColumnSpec("logEndOffset", "log end", 7),
        ColumnSpec("highWatermark", "high watermark", 2),
        ColumnSpec("heldBy", "blocked by producer", 6),
        ColumnSpec("damages", "damaged", 5),
    ),
    "transactionCoordinator": (
        ColumnSpec("transactionalId", "transactional ID"),
        ColumnSpec("producerId", "producer"),
        ColumnSpec("producerEpoch", "epoch"),
        ColumnSpec("state"),
        ColumnSpec("transactionTimeoutMs", "timeout ms", 4),
        ColumnSpec("transactionStartTimestampMs", "started", 6),
        ColumnSpec("transactionLastUpdateTimestampMs", "updated", 3),
        ColumnSpec("path", "in", 1),
        ColumnSpec("offset", "", 2),
        ColumnSpec("partitions", "", 7, 16),
    ),
    "transactionDifference": (
        ColumnSpec("transactionalId", "transactional ID"),
        ColumnSpec("producerId", "producer"),
        ColumnSpec("offset"),
        ColumnSpec("message", least=24),
    ),
    "producer": (
        ColumnSpec("producerId", "producer"),
        ColumnSpec("transactionalId", "transactional ID", 7),
        ColumnSpec("state"),
        ColumnSpec("epoch"),
        ColumnSpec("batches", "", 5),
        ColumnSpec("records", "", 6),
        ColumnSpec("firstOffset", "first", 6),
        ColumnSpec("lastDataOffset", "last", 8),
        ColumnSpec("lastSequence", "last sequence", 7),
        ColumnSpec("currentTxnFirstOffset", "open from", 8),
        ColumnSpec("commits", "", 4),
        ColumnSpec("aborts", "", 4),
        ColumnSpec("gaps", "", 8),
        ColumnSpec("duplicates", "", 8),
        ColumnSpec("fenced", "", 8),
        ColumnSpec("epochStarts", "odd epoch starts", 7),
        ColumnSpec("lastBatchTimestamp", "last written", 5),
        ColumnSpec("inSnapshot", "in snapshot", 3),
        ColumnSpec("remarks", "", 6, 24),
    ),
    "producerPartition": (
        ColumnSpec("source", "in", least=12),
        ColumnSpec("topic"),
        ColumnSpec("partition"),
        ColumnSpec("producers"),
        ColumnSpec("live"),
        ColumnSpec("expired", "", 7),
        ColumnSpec("unknown", "", 6),
        ColumnSpec("snapshotOnly", "only in snapshot", 5),
        ColumnSpec("gaps", "", 8),
        ColumnSpec("duplicates", "", 8),
        ColumnSpec("fenced", "", 8),
        ColumnSpec("epochStarts", "odd epoch starts", 7),
        ColumnSpec("logEndOffset", "log end", 4),
        ColumnSpec("stateOffset", "snapshot", 3),
        ColumnSpec("damages", "damaged", 5),
    ),
    "producerEvent": (
        ColumnSpec("offset"),
        ColumnSpec("timestamp", "time", 6),
        ColumnSpec("producerId", "producer"),
        ColumnSpec("transactionalId", "transactional ID", 5),
        ColumnSpec("producerEpoch", "epoch"),
        ColumnSpec("event"),
        ColumnSpec("baseSequence", "sequence", 7),
        ColumnSpec("lastSequence", "to", 7),
        ColumnSpec("position", "at byte", 3),
        ColumnSpec("message", "", 9, 24),
    ),
}
"""The default columns."""
NO_ZERO = (
    "hanging",
    "damages",
    "gaps",
    "duplicates",
    "fenced",
    "epochStarts",
    "commits",
    "aborts",
    "snapshotOnly",
    "unknown",
    "expired",
)
"""Columns in which most rows have 0, which is therefore not shown."""
NO_MINUS_ONE = ("lastSequence", "baseSequence", "currentTxnFirstOffset")
"""Columns in which -1 is Kafka's "none", which is therefore not shown."""
BROKEN = ("gap", "duplicate", "fenced", "epochStart")


def forensic_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "transaction":
        return {"aborted": "dim", "open": "torn", "hanging": "bad"}.get(value["state"], "")
    if value["type"] == "transactionPartition":
        return "bad" if value["hanging"] else "torn" if value["open"] or value["damages"] else ""
    if value["type"] in ("producer", "producerPartition"):
        if value["gaps"] or value["duplicates"] or value["fenced"] or value["epochStarts"]:
            return "bad"
        if value["type"] == "producerPartition":
            return "torn" if value["damages"] else ""
        open_from = value["currentTxnFirstOffset"]
        return "torn" if open_from is not None and open_from >= 0 else "" if value["state"] == "live" else "dim"
    if value["type"] == "producerEvent":
        return "bad" if value["event"] in BROKEN else "control" if value["event"] in ("COMMIT", "ABORT") else ""
    return "torn" if value.get("age") is not None else ""


REGISTRY_TABLES: dict[str, tuple[ColumnSpec, ...]] = {
    "schemaVersion": (
        ColumnSpec("subject", least=16),
        ColumnSpec("version"),
        ColumnSpec("id"),
        ColumnSpec("schemaType", "type", 8),
        ColumnSpec("state"),
        ColumnSpec("references", "", 4, 12),
        ColumnSpec("offset", "", 5),
        ColumnSpec("removedAt", "removed at", 6),
        ColumnSpec("timestamp", "time", 6),
    ),
    "registrySetting": (
        ColumnSpec("kind"),
        ColumnSpec("subject", least=16),
        ColumnSpec("value", "", 9, 16),
        ColumnSpec("offset", "", 5),
        ColumnSpec("timestamp", "time", 6),
    ),
    "schemaUsage": (
        ColumnSpec("topic", least=12),
        ColumnSpec("partition", ""),
        ColumnSpec("part"),
        ColumnSpec("id"),
        ColumnSpec("guid", "", 2, 13),
        ColumnSpec("state"),
        ColumnSpec("subjects", least=16),
        ColumnSpec("records"),
        ColumnSpec("firstOffset", "first"),
        ColumnSpec("lastOffset", "last"),
        ColumnSpec("firstTimestamp", "from", 4),
        ColumnSpec("lastTimestamp", "to", 4),
        ColumnSpec("doubt", "", 7, 24),
    ),
}


def registry_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "schemaUsage":
        return "dim" if value["doubt"] and value["state"] == "none" else "bad" if value["state"] == "none" else ""
    return "dim" if value.get("state") in ("softDeleted", "hardDeleted", "ignored") else ""


RETENTION_TABLES: dict[str, tuple[ColumnSpec, ...]] = {
    "retentionSegment": (
        ColumnSpec("baseOffset", "base"),
        ColumnSpec("lastOffset", "last", 5),
        ColumnSpec("size", "bytes", 7),
        ColumnSpec("records", "", 2),
        ColumnSpec("largestTimestamp", "largest timestamp"),
        ColumnSpec("timestampFrom", "from", 4),
        ColumnSpec("deletion"),
        ColumnSpec("deletesAt", "due at", 8),
        ColumnSpec("deletionRule", "by", 5),
        ColumnSpec("deletesAfterBytes", "or after bytes", 5),
        ColumnSpec("waitsFor", "waits for", 4),
        ColumnSpec("blockedBy", "kept by", 6),
        ColumnSpec("compaction"),
        ColumnSpec("uncleanableBecause", "because", 8),
        ColumnSpec("cleanableAt", "cleanable at", 7),
        ColumnSpec("tombstones", "", 6),
        ColumnSpec("tombstonesDue", "due", 5),
        ColumnSpec("markers", "", 5),
        ColumnSpec("markersDue", "markers due", 4),
        ColumnSpec("emptyBatches", "empty", 2),
    ),
    "retentionHold": (
        ColumnSpec("source", "in", least=12),
        ColumnSpec("topic", "", 9, 12),
        ColumnSpec("partition"),
        ColumnSpec("hold"),
        ColumnSpec("keeps", "", 6),
        ColumnSpec("segments"),
        ColumnSpec("bytes"),
        ColumnSpec("position", "at byte", 7),
        ColumnSpec("offset"),
        ColumnSpec("timestamp", "", 6),
        ColumnSpec("until", "", 8),
        ColumnSpec("message", "", 5, 24),
    ),
    "retention": (
        ColumnSpec("source", "in", least=12),
        ColumnSpec("topic", "", 9, 12),
        ColumnSpec("partition"),
        ColumnSpec("verdict"),
        ColumnSpec("cleanupPolicy", "policy"),
        ColumnSpec("segments"),
        ColumnSpec("bytes"),
        ColumnSpec("deletableBytes", "due now", 8),
        ColumnSpec("heldBytes", "held", 8),
        ColumnSpec("nextDeletionAt", "next due at", 7),
        ColumnSpec("cleanBytes", "clean", 3),
        ColumnSpec("cleanableBytes", "cleanable", 4),
        ColumnSpec("dirtyRatio", "dirty ratio", 6),
        ColumnSpec("wouldClean", "would clean", 6),
        ColumnSpec("tombstones", "", 4),
        ColumnSpec("tombstonesDue", "due", 3),
        ColumnSpec("damages", "damaged", 5),
    ),
}
"""The default columns."""
NO_ZERO_RETENTION = (
    "deletableBytes",
    "heldBytes",
    "tombstones",
    "tombstonesDue",
    "markers",
    "markersDue",
    "emptyBatches",
)
"""Columns in which most rows have 0, which is therefore not shown."""


def retention_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "retention":
        return {"held": "bad", "unknown": "torn"}.get(value["verdict"], "")
    if value["type"] == "retentionHold":
        return "bad" if value["isAgainstPolicy"] else "torn"
    return {"held": "bad", "unknown": "torn", "now": "dim"}.get(value["deletion"], "")


CONNECT_TABLES: dict[str, tuple[ColumnSpec, ...]] = {
    "connector": (
        ColumnSpec("connectCluster", "topics", 3),
        ColumnSpec("name", "connector", least=12),
        ColumnSpec("connectorType", "type", 6),
        ColumnSpec("targetState", "target", 7),
        ColumnSpec("state"),
        ColumnSpec("tasks", "", 7),
        ColumnSpec("deleted", "", 5),
        ColumnSpec("removedTime", "removed", 4),
        ColumnSpec("timestamp", "config of", 4),
        ColumnSpec("remarks", "", 8, 24),
        ColumnSpec("config", "", 9, 24),
    ),
    "connectorTask": (
        ColumnSpec("connectCluster", "topics", 3),
        ColumnSpec("connector", "", 9, 12),
        ColumnSpec("task"),
        ColumnSpec("state"),
        ColumnSpec("committed"),
        ColumnSpec("workerId", "worker", 5),
        ColumnSpec("generation", "", 3),
        ColumnSpec("timestamp", "config of", 4),
    ),
    "connectorOffset": (
        ColumnSpec("connectCluster", "topics", 3),
        ColumnSpec("connector", "", 9, 12),
        ColumnSpec("partition", "", 9, 20),
        ColumnSpec("offset", "", 9, 12),
        ColumnSpec("state"),
        ColumnSpec("timestamp", "time", 5),
        ColumnSpec("removedTime", "removed", 4),
    ),
    "mirrorCheckpoint": (
        ColumnSpec("sourceClusterAlias", "from", 6),
        ColumnSpec("group", "", 9, 12),
        ColumnSpec("topic", least=12),
        ColumnSpec("partition", ""),
        ColumnSpec("upstreamOffset", "upstream"),
        ColumnSpec("offset"),
        ColumnSpec("committedOffset", "committed here", 8),
        ColumnSpec("timestamp", "time", 5),
    ),
}


def connect_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value.get("deleted") or value.get("state") in ("deleted", "connectorDeleted", "unknownConnector"):
        return "dim"
    return "bad" if value.get("state") == "FAILED" else "torn" if value.get("remarks") else ""
