"""Charts as SVG: bars over an axis, in labelled rows or by amount. The page and the separate files have the same
picture; page.js moves and zooms it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from html import escape
from textwrap import wrap
from typing import NamedTuple

from kdump.format.iso_time import EPOCH
from kdump.incident.report.html.palette import INK, LINE, MUTED
from kdump.render.style import width

TOTAL, RIGHT = 1080, 16
"""Width of a chart, and what it leaves free at the right for the last label of the axis, in pixels."""
LABEL_CHARS = 38
"""Characters in a line of a row label."""
CHAR, LINE_HEIGHT = 6.2, 12
"""Width of a character and height of a line, in pixels, as they are estimated."""
AMOUNTS = 50
"""Width of the labels of an axis of amounts."""
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
"""These fonts are equally wide, so that the charts fit wherever they are shown."""
OFFSET, AMOUNT, PERCENT, TIME = "offset", "amount", "percent", "time"
"""What an axis shows; times are epoch ms."""
BAR, THIN, BEHIND = "bar", "thin", "behind"
"""How a mark is drawn: a bar, a line, or an area of the whole height behind the bars."""
HOUR, DAY = 3_600_000, 86_400_000
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAYS = (1, 2, 7, 14, 30, 60, 120, 365, 730, 1825, 3650, 18250, 36500, 365_000, 3_650_000)
TIMES = (*(each * 1000 for each in SECONDS), *(each * DAY for each in DAYS))
"""Distances in ms between the times on an axis."""


class Mark(NamedTuple):
    """What is drawn from `a` to `b`, in a row, or from `low` to `high` where there are amounts. `kind`: a name of the
    legend, or a color; `tip`: what pointing at it shows, by name; empty values are not shown."""

    a: float
    b: float
    kind: str
    tip: Mapping[str, str] = {}
    row: int = 0
    low: float = 0
    high: float = 0
    shape: str = BAR


class Note(NamedTuple):
    """A text in a row (-1: above them) that begins at `at`, or (`is_end`) ends there."""

    at: float
    row: int
    text: str
    is_end: bool = False
    colour: str = INK


@dataclass
class Panel:
    """Marks over an axis from `first` to `last`: in `rows` with these labels or, if there are none, by amount, below a
    heading. `lines`: where a dashed line is drawn; `axis`: whether the axis has labels, and below them a title."""

    first: float
    last: float
    unit: str
    marks: list[Mark]
    title: str = ""
    rows: Sequence[str] = ()
    step: int = 19
    """Height of a row in pixels, if its label takes one line."""
    heading: str = ""
    height: int = 90
    notes: list[Note] = field(default_factory=list)
    lines: Sequence[float] = ()
    axis: bool = True


@dataclass
class Chart:
    """`name`: base name of its file, and its ID in the page; `kind`: prefix of the title in places where the page does
    not provide it; `colours`: the legend."""

    name: str
    title: str
    caption: str
    panels: list[Panel]
    colours: dict[str, str] = field(default_factory=dict)
    kind: str = ""


def svg(chart: Chart, *, alone: bool = False) -> str:
    """Return the chart as SVG text. `alone`: for a separate file, with a title and a background."""
    left = max(_left(panel) for panel in chart.panels)
    parts: list[str] = []
    y = 4.0
    if alone:
        bold = ' font-size="14" font-weight="bold"'
        parts += [_text(0, 18, chart.kind + chart.title, more=bold), _text(0, 36, chart.caption, MUTED)]
        y = 48
    y = _legend(parts, chart.colours, y)
    for panel in chart.panels:
        y = _panel(parts, panel, chart.colours, left, TOTAL - left - RIGHT, y)
    edge = 16 if alone else 0
    box = f"{-edge} {-edge} {TOTAL + 2 * edge} {y + 2 * edge:.0f}"
    size = f'width="{TOTAL + 2 * edge}" height="{y + 2 * edge:.0f}"'
    paper = f'<rect x="{-edge}" y="{-edge}" width="100%" height="100%" fill="white"/>' if alone else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}" font-family="{FONT}" font-size="11">'
    return "".join([head, paper, *parts, "</svg>"])


def _left(panel: Panel) -> float:
    if not panel.rows:
        return AMOUNTS
    return 8 + CHAR * min(LABEL_CHARS, max(map(width, panel.rows)))


def _text(x: float, y: float, text: str, colour: str = INK, *, anchor: str = "", more: str = "") -> str:
    more += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{more}>{escape(text)}</text>'


def _rect(x: float, y: float, wide: float, high: float, colour: str, inner: str = "", more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}"{more}>{inner}</rect>'


def _legend(parts: list[str], colours: dict[str, str], y: float) -> float:
    x = 0.0
    for name, colour in colours.items():
        needed = 26 + CHAR * width(name)
        if x and x + needed > TOTAL:
            x, y = 0, y + 16
        parts += [_rect(x, y, 11, 11, colour), _text(x + 16, y + 10, name)]
        x += needed
    return y + 20 if colours else y


def _panel(parts: list[str], panel: Panel, colours: dict[str, str], left: float, wide: float, y: float) -> float:
    """Add a panel from `y` on; return where it ends."""
    if panel.heading:
        parts.append(f'<g font-style="italic">{_text(left, y + 10, panel.heading)}</g>')
        y += 16
    y += 14 if any(note.row < 0 for note in panel.notes) else 0
    labels = [_lines(label) for label in panel.rows]
    heights = [max(panel.step, LINE_HEIGHT * len(lines) + 4) for lines in labels]
    tops = [float(sum(heights[:number])) for number in range(len(heights))]
    high = float(sum(heights) or panel.height)
    span = max(1e-9, panel.last - panel.first)
    most = max((mark.high for mark in panel.marks), default=0) or 1

    def place(at: float) -> float:
        return (at - panel.first) / span * wide

    shown = ticks(panel.first, panel.last, panel.unit)
    grid = [_rect(left + place(at), y, 1, high, LINE) for at, _ in shown] if panel.rows else []
    parts += [_rect(left, y + high, wide, 1, LINE), *grid]
    for lines, start, size in zip(labels, tops, heights):
        for number, line in enumerate(lines):
            at = y + start + size / 2 + 4 + LINE_HEIGHT * (number - (len(lines) - 1) / 2)
            parts.append(_text(left - 6, at, line, MUTED, anchor="end"))
    if not panel.rows:
        for at, text in ticks(0, most, AMOUNT, 3):
            above = y + high - at / most * high
            parts += [_rect(left, above, wide, 1, LINE), _text(left - 6, above + 4, text, MUTED, anchor="end")]
    view = f'x="{left:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" viewBox="0 0 {wide:.1f} {high:.1f}"'
    data = f'data-first="{panel.first}" data-last="{panel.last}" data-unit="{panel.unit}"'
    parts.append(f'<svg class="view" {view} preserveAspectRatio="none" {data}>')
    for mark in sorted(panel.marks, key=lambda mark: mark.shape != BEHIND):
        top, tall = (tops[mark.row] + 2, heights[mark.row] - 4.0) if panel.rows else (0.0, high)
        more = ' opacity="0.55"' if mark.shape == BEHIND else ""
        if mark.shape == THIN:
            top, tall = top + tall / 2 - 1, 2.0
        elif not panel.rows and mark.shape == BAR:
            top, tall = high - mark.high / most * high, (mark.high - mark.low) / most * high
        tip = escape("\n".join(f"{name}: {text}" for name, text in mark.tip.items() if text))
        inner = f"<title>{tip}</title>" if tip else ""
        long = max(0.4, place(mark.b) - place(mark.a))
        long -= 0.6 if panel.rows and long > 3 else 0  # so that one can tell it from the next one
        parts.append(_rect(place(mark.a), top, long, tall, colours.get(mark.kind, mark.kind), inner, more))
    parts += [_rect(place(at), 0, 1, high, MUTED, more=' class="line"') for at in panel.lines]
    parts.append("</svg>")
    for note in panel.notes:
        at = y - 3 if note.row < 0 else y + tops[note.row] + heights[note.row] / 2 + 4
        x = left + place(note.at) + (-5 if note.is_end else 5)
        text = _text(x, at, note.text, note.colour, anchor="end" if note.is_end else "")
        parts.append(f'<g class="note" pointer-events="none">{text}</g>')
    if not panel.axis:
        return y + high + 8
    axis = [_text(left + place(at), y + high + 14, text, MUTED, anchor="middle") for at, text in shown]
    parts.append(f'<g class="axis">{"".join(axis)}</g>')
    if panel.title:
        parts.append(_text(left + wide / 2, y + high + 30, panel.title, MUTED, anchor="middle"))
    return y + high + (38 if panel.title else 22)


def _lines(label: str) -> list[str]:
    """Break a row label into lines; it is never cut."""
    chars = LABEL_CHARS if width(label) == len(label) else LABEL_CHARS // 2
    return wrap(label, chars, break_on_hyphens=False) or [""]


def ticks(first: float, last: float, unit: str, count: int = 8) -> list[tuple[float, str]]:
    """Return at most `count` round values of an axis, with their labels."""
    span = max(last - first, 1e-9)
    if unit == TIME:
        step: float = next((distance for distance in TIMES if span / distance <= count), TIMES[-1])
    else:
        step = 10 ** max(0, len(str(int(span / count))) - 1)
        step = next((step * by for by in (1, 2, 5, 10) if span / (step * by) <= count), step * 10)
    start = -(-first // step) * step
    values = [start + number * step for number in range(int((last - start) // step) + 1)] if start <= last else []
    return [(value, _tick(value, unit, span)) for value in values[: 2 * count]]


def _tick(value: float, unit: str, span: float) -> str:
    if unit == AMOUNT:
        for power, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= power:
                return f"{value / power:g}{sign}"
    if unit != TIME:
        return f"{value:g}" if unit == PERCENT else f"{int(value):,}"
    try:
        time = EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return ""
    return time.strftime("%H:%M:%S" if span < HOUR else "%m-%d %H:%M" if span < 72 * HOUR else "%Y-%m-%d")


def used(colours: Mapping[str, str], marks: Iterable[Mark]) -> dict[str, str]:
    """Return the part of the legend that the marks need."""
    kinds = {mark.kind for mark in marks}
    return {name: colour for name, colour in colours.items() if name in kinds}


def unlike(label: str, labels: Sequence[str]) -> str:
    """Return a label for one more row, unlike those that there are."""
    while label in labels:
        label += "'"
    return label
