"""The colours of charts and page, declared once: those of Okabe and Ito, which people with any colour blindness tell
apart, on light and on dark."""

from __future__ import annotations

ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, RED, GREY, PALE = "#0072b2", "#d55e00", "#6b7680", "#c3cad1"
"""Not their reddish purple: beside grey it is none to many. What must be told apart differs in lightness, too."""

INK, MUTED, LINE = "#1b2733", "#55626f", "#d5dbe1"
"""Text, less important text, and lines of charts: the page gives them others in the dark (see page.css)."""

SEVERITY = {"error": RED, "warning": ORANGE, "info": SKY}
STATE = {"committed": BLUE, "aborted": SKY, "open": ORANGE, "hanging": RED}
NO_BATCH = RED
"""Bytes that are no sound batch, in every chart."""
PADDING = YELLOW
CODEC = {"none": PALE, "gzip": ORANGE, "snappy": SKY, "lz4": GREEN, "zstd": BLUE}
MARKER = YELLOW
SERIES = (BLUE, ORANGE, SKY, YELLOW, GREEN)
"""Things without a colour of their own, the largest first; what is left is GREY."""


def series(names: list[str], other: str = "") -> dict[str, str]:
    """A colour for each of the first names, and one for `other`, if it is given."""
    chosen = dict(zip(names, SERIES))
    return chosen | ({other: GREY} if other else {})
