"""Sizes for people."""

from __future__ import annotations

import re

from kdump.format.count_text import plain_count


def size_text(count: int) -> str:
    """Format a number of bytes in the largest suitable unit: 563 bytes, 9.2 MiB."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return plain_count(count, "byte") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
"""Bytes of a unit, as users type them."""
SIZE = re.compile(r"^([0-9]{1,18})\s*([kmg]?)(?:i?b)?$", re.IGNORECASE)


def parse_size(typed: str) -> int | None:
    """Return a size in bytes as users type it (1048576, 512k, 64M, 1GiB); None if it is not one."""
    match = SIZE.match(typed)
    return int(match[1]) * SIZES[match[2].lower()] if match else None
