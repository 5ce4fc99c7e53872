"""The columns of what `kdump transactions` and `kdump producers` show, and how their rows are marked."""

from __future__ import annotations

from typing import Any

from kdump.render.shown import Shown

FORENSIC_TABLES: dict[str, tuple[Shown, ...]] = {
    "transaction": (
        Shown("firstOffset", "first"),
        Shown("lastOffset", "last"),
        Shown("records", "", 6),
        Shown("transactionalId", "transactional id", 7, 12),
        Shown("producerId", "producer"),
        Shown("producerEpoch", "epoch", 8),
        Shown("state"),
        Shown("markerOffset", "marker", 8),
        Shown("begun", "", 5),
        Shown("ended", "", 4),
        Shown("inTxnIndex", "in .txnindex", 3),
        Shown("remarks", "", 6, 24),
    ),
    "transactionPartition": (
        Shown("topic", "", 9, 12),
        Shown("partition"),
        Shown("committed"),
        Shown("aborted"),
        Shown("open"),
        Shown("hanging", "", 8),
        Shown("logStartOffset", "log start", 4),
        Shown("lastStableOffset", "last stable"),
        Shown("logEndOffset", "log end", 7),
        Shown("highWatermark", "high watermark", 2),
        Shown("heldBy", "held by producer", 6),
        Shown("damages", "damaged", 5),
    ),
    "transactionCoordinator": (
        Shown("transactionalId", "transactional id", least=12),
        Shown("producerId", "producer"),
        Shown("producerEpoch", "epoch"),
        Shown("state"),
        Shown("transactionTimeoutMs", "timeout ms", 4),
        Shown("transactionStartTimestampMs", "started", 6),
        Shown("transactionLastUpdateTimestampMs", "updated", 3),
        Shown("partitions", "", 7, 16),
        Shown("path", "in", 1),
        Shown("offset", "", 2),
    ),
    "transactionDifference": (
        Shown("transactionalId", "transactional id", least=12),
        Shown("producerId", "producer"),
        Shown("offset"),
        Shown("message", least=24),
    ),
}
"""The columns that are shown unless others are asked for."""
NO_ZERO = ("hanging", "damages")
"""Where zero is what most rows have, and says nothing."""


def forensic_style(value: dict[str, Any]) -> str:
    """How a row is marked."""
    if value["type"] == "transaction":
        return {"aborted": "dim", "open": "torn", "hanging": "bad"}.get(value["state"], "")
    if value["type"] == "transactionPartition":
        return "bad" if value["hanging"] else "torn" if value["open"] or value["damages"] else ""
    return "torn" if value.get("age") is not None else ""
