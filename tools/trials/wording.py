"""Shortens log lines and lists of offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable

LINES = 12


def shape(line: str) -> str:
    """Return a line without numbers, IDs and paths, to compare the lines of two startups."""
    return re.sub(r"\d+|[A-Za-z0-9_-]{22}", "#", re.sub(r"…/\S*", "…", line))


def once(lines: Iterable[str]) -> list[str]:
    """Return the first line of each shape, at most LINES."""
    found: dict[str, str] = {}
    for line in lines:
        found.setdefault(shape(line), line.strip()[:600])
    return list(found.values())[:LINES]


def ranges(numbers: list[int]) -> str:
    """Return ascending numbers as ranges: 1..3,7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    text = ",".join("..".join(map(str, part)) for part in parts[:8])
    return text + (",…" if len(parts) > 8 else "")
