"""Table columns of `kdump retention`, and the styles of their rows."""

from __future__ import annotations

from typing import Any

from kdump.render.shown import Shown

RETENTION_TABLES: dict[str, tuple[Shown, ...]] = {
    "retentionSegment": (
        Shown("baseOffset", "base"),
        Shown("lastOffset", "last", 5),
        Shown("size", "bytes", 7),
        Shown("records", "", 2),
        Shown("largestTimestamp", "largest timestamp"),
        Shown("timestampFrom", "from", 4),
        Shown("deletion"),
        Shown("deletesAt", "due at", 8),
        Shown("deletionRule", "by", 5),
        Shown("deletesAfterBytes", "or after bytes", 5),
        Shown("waitsFor", "waits for", 4),
        Shown("blockedBy", "kept by", 6),
        Shown("compaction"),
        Shown("uncleanableBecause", "because", 8),
        Shown("cleanableAt", "cleanable at", 7),
        Shown("tombstones", "", 6),
        Shown("tombstonesDue", "due", 5),
        Shown("markers", "", 5),
        Shown("markersDue", "markers due", 4),
        Shown("emptyBatches", "empty", 2),
    ),
    "retentionHold": (
        Shown("source", "in", 7, 12),
        Shown("topic", "", 9, 12),
        Shown("partition"),
        Shown("hold"),
        Shown("keeps", "", 6),
        Shown("segments"),
        Shown("bytes"),
        Shown("position", "at byte", 7),
        Shown("offset"),
        Shown("timestamp", "", 6),
        Shown("until", "", 8),
        Shown("message", "", 5, 24),
    ),
    "retention": (
        Shown("source", "in", 7, 12),
        Shown("topic", "", 9, 12),
        Shown("partition"),
        Shown("verdict"),
        Shown("cleanupPolicy", "policy"),
        Shown("segments"),
        Shown("bytes"),
        Shown("deletableBytes", "due now", 8),
        Shown("heldBytes", "held", 8),
        Shown("nextDeletionAt", "next due at", 7),
        Shown("cleanBytes", "clean", 3),
        Shown("cleanableBytes", "cleanable", 4),
        Shown("dirtyRatio", "dirty ratio", 6),
        Shown("wouldClean", "would clean", 6),
        Shown("tombstones", "", 4),
        Shown("tombstonesDue", "due", 3),
        Shown("damages", "damaged", 5),
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
