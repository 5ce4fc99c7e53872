"""Table columns of `kdump retention`, and the styles of their rows."""

from __future__ import annotations

from typing import Any

from kdump.render.column_spec import ColumnSpec

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
NO_ZERO = ("deletableBytes", "heldBytes", "tombstones", "tombstonesDue", "markers", "markersDue", "emptyBatches")
"""Columns in which most rows have 0, which is therefore not shown."""


def retention_style(value: dict[str, Any]) -> str:
    """Return the style of a row."""
    if value["type"] == "retention":
        return {"held": "bad", "unknown": "torn"}.get(value["verdict"], "")
    if value["type"] == "retentionHold":
        return "bad" if value["isAgainstPolicy"] else "torn"
    return {"held": "bad", "unknown": "torn", "now": "dim"}.get(value["deletion"], "")
