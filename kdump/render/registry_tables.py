"""Table columns of `kdump registry`, and the styles of their rows."""

from __future__ import annotations

from typing import Any

from kdump.render.column_spec import ColumnSpec

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
