"""Table columns of `kdump transactions` and `kdump producers`, and the styles of their rows."""

from __future__ import annotations

from typing import Any

from kdump.render.shown import Shown

FORENSIC_TABLES: dict[str, tuple[Shown, ...]] = {
    "transaction": (
        Shown("firstOffset", "first"),
        Shown("lastOffset", "last"),
        Shown("records", "", 6),
        Shown("transactionalId", "transactional ID", 7),
        Shown("producerId", "producer"),
        Shown("producerEpoch", "epoch", 8),
        Shown("state"),
        Shown("markerOffset", "marker", 8),
        Shown("begun", "", 5),
        Shown("ended", "", 4),
        Shown("inTxnIndex", "in .txnindex", 3),
        Shown("remarks", "", 8, 24),
    ),
    "transactionPartition": (
        Shown("topic"),
        Shown("partition"),
        Shown("committed"),
        Shown("aborted"),
        Shown("open"),
        Shown("hanging", "", 8),
        Shown("logStartOffset", "log start", 4),
        Shown("lastStableOffset", "last stable"),
        Shown("logEndOffset", "log end", 7),
        Shown("highWatermark", "high watermark", 2),
        Shown("heldBy", "blocked by producer", 6),
        Shown("damages", "damaged", 5),
    ),
    "transactionCoordinator": (
        Shown("transactionalId", "transactional ID"),
        Shown("producerId", "producer"),
        Shown("producerEpoch", "epoch"),
        Shown("state"),
        Shown("transactionTimeoutMs", "timeout ms", 4),
        Shown("transactionStartTimestampMs", "started", 6),
        Shown("transactionLastUpdateTimestampMs", "updated", 3),
        Shown("path", "in", 1),
        Shown("offset", "", 2),
        Shown("partitions", "", 7, 16),
    ),
    "transactionDifference": (
        Shown("transactionalId", "transactional ID"),
        Shown("producerId", "producer"),
        Shown("offset"),
        Shown("message", least=24),
    ),
    "producer": (
        Shown("producerId", "producer"),
        Shown("transactionalId", "transactional ID", 7),
        Shown("state"),
        Shown("epoch"),
        Shown("batches", "", 5),
        Shown("records", "", 6),
        Shown("firstOffset", "first", 6),
        Shown("lastDataOffset", "last", 8),
        Shown("lastSequence", "last sequence", 7),
        Shown("currentTxnFirstOffset", "open from", 8),
        Shown("commits", "", 4),
        Shown("aborts", "", 4),
        Shown("gaps", "", 8),
        Shown("duplicates", "", 8),
        Shown("fenced", "", 8),
        Shown("epochStarts", "odd epoch starts", 7),
        Shown("lastBatchTimestamp", "last written", 5),
        Shown("inSnapshot", "in snapshot", 3),
        Shown("remarks", "", 6, 24),
    ),
    "producerPartition": (
        Shown("topic"),
        Shown("partition"),
        Shown("producers"),
        Shown("live"),
        Shown("expired", "", 7),
        Shown("unknown", "", 6),
        Shown("snapshotOnly", "only in snapshot", 5),
        Shown("gaps", "", 8),
        Shown("duplicates", "", 8),
        Shown("fenced", "", 8),
        Shown("epochStarts", "odd epoch starts", 7),
        Shown("logEndOffset", "log end", 4),
        Shown("stateOffset", "snapshot", 3),
        Shown("damages", "damaged", 5),
    ),
    "producerEvent": (
        Shown("offset"),
        Shown("timestamp", "time", 6),
        Shown("producerId", "producer"),
        Shown("transactionalId", "transactional ID", 5),
        Shown("producerEpoch", "epoch"),
        Shown("event"),
        Shown("baseSequence", "sequence", 7),
        Shown("lastSequence", "to", 7),
        Shown("position", "at byte", 3),
        Shown("message", "", 9, 24),
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
