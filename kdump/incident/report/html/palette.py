"""Colors of charts and page, declared once: the palette of Okabe and Ito, which people with any kind of color blindness
can distinguish, on light and on dark backgrounds."""

from __future__ import annotations

from kdump.format.codec_table import ALL_NAMES

ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, RED, GREY, PALE = "#0072b2", "#d55e00", "#6b7680", "#c3cad1"
"""Excludes the palette's reddish purple: next to grey, many people cannot distinguish it. Colors that must be
distinguished also differ in lightness."""

INK, MUTED, LINE = "#1b2733", "#55626f", "#d5dbe1"
"""Text, less important text, and lines of charts; page.css replaces them in dark mode."""

SEVERITY = {"error": RED, "warning": ORANGE, "info": SKY}
STATE = {"committed": BLUE, "aborted": SKY, "open": ORANGE, "hanging": RED}
NO_BATCH = RED
"""Bytes that are not a valid batch, in every chart."""
PADDING = YELLOW
CODEC = dict(zip(ALL_NAMES, (PALE, ORANGE, SKY, GREEN, BLUE, GREY, GREY, GREY)))
MARKER = YELLOW
SERIES = (BLUE, ORANGE, SKY, YELLOW, GREEN)
"""Colors for items that have no fixed color, the largest first; the rest is GREY."""


def series(names: list[str], other: str = "") -> dict[str, str]:
    """Assign a color to each of the first names, and one to `other`, if it is given."""
    chosen = dict(zip(names, SERIES))
    return chosen | ({other: GREY} if other else {})
