"""Sizes for people."""

from __future__ import annotations

from kdump.format.count_text import plain_count


def size_text(count: int) -> str:
    """Format a number of bytes in the largest suitable unit: 563 bytes, 9.2 MiB."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return plain_count(count, "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
