"""Columns of plain text for the reference pages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 118


def columns(rows: Sequence[Sequence[str]], right: int = 0) -> list[str]:
    """Return the lines of a table: the first `right` columns are numbers, an empty column is left out, and the last one
    is wrapped. Each row begins a line."""
    widths = [max((len(row[number]) for row in rows), default=0) for number in range(len(rows[0]) - 1)] if rows else []
    kept = [(number, width) for number, width in enumerate(widths) if width]
    left = sum(width + 2 for _, width in kept)
    lines = []
    for row in rows:
        start = "".join(
            f"{row[number].rjust(width) if number < right else row[number].ljust(width)}  " for number, width in kept
        )
        said = textwrap.wrap(row[-1], max(WIDTH - left, 40), break_on_hyphens=False) or [""]
        lines += ["\n".join([f"{start}{said[0]}".rstrip(), *(" " * left + more for more in said[1:])])]
    return lines


def block(lines: Sequence[str]) -> str:
    """Return lines as they are in Markdown."""
    return "\n".join(["```text", *lines, "```"])
