"""A chart: a Vega-Lite specification, which the page draws and vl-convert renders without a browser."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
from typing import Any

from kdump.extras import how_to_install
from kdump.log.errors import SourceError
from kdump.render.postmortem.palette import INK, LINE, MUTED
from kdump.render.style import width

Spec = dict[str, Any]
WIDTH = 820
"""Width of the plot in pixels, without its labels."""
LABELS = 230
"""Maximum width of row labels in pixels."""
LABEL_CHARS = 38
"""Characters in a line of a row label: about LABELS pixels."""
LINE_HEIGHT = 12
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
"""These fonts are equally wide, so that the charts fit wherever they are shown."""

CONFIG: Spec = {
    "background": None,
    "font": FONT,
    "view": {"stroke": LINE},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": LABELS,
        "labelSeparation": 5,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "orient": "top",
        "titleFontWeight": "normal",
        "symbolType": "square",
        "symbolStrokeWidth": 0,
        "labelLimit": 200,
        "columns": 8,
    },
    "header": {"labelColor": INK, "titleColor": MUTED},
    "title": {"color": INK, "anchor": "start", "fontSize": 14, "subtitleColor": MUTED},
    "text": {"color": INK},
    "rule": {"color": MUTED},
    "aria": False,
}


@dataclass
class Chart:
    """`name`: base name of its file, and its ID in the page; `view`: the part of the specification that takes the width
    of the page: empty for the whole, `spec` for the inside of a facet."""

    name: str
    title: str
    caption: str
    spec: Spec
    view: str = ""
    kind: str = ""
    """Prefix of the title in places where the page does not provide it."""


def rows(field: str, labels: list[str], step: int) -> tuple[Spec, Spec]:
    """Return the y encoding for rows with these labels, in this order, and the height of a row in pixels: at least
    `step`. A long label is broken into lines, and never cut. (page.js breaks it again if there is less room.)"""
    longest = max(map(width, labels), default=0)
    chars = LABEL_CHARS if longest == max(map(len, labels), default=0) else LABEL_CHARS // 2
    lines = max(1, -(-longest // chars))
    axis: Spec = {"domain": False, "ticks": False, "labelLineHeight": LINE_HEIGHT}
    if lines > 1:
        parts = ", ".join(f"slice(datum.label, {n * chars}, {(n + 1) * chars})" for n in range(lines))
        axis |= {"labelExpr": f"length(datum.label) > {chars} ? [{parts}] : datum.label", "labelLimit": 0}
    y = {"field": field, "type": "nominal", "sort": labels, "title": None, "axis": axis}
    return y, {"step": max(step, LINE_HEIGHT * lines + 4)}


def colour(field: str, colours: dict[str, str], title: str | None = None) -> Spec:
    """Return the color encoding of a category."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "title": title}


def tooltips(*names: str) -> list[Spec]:
    """Return the tooltip encoding: fields of the data, under their own names."""
    return [{"field": name, "type": "nominal"} for name in names]


def zoomable() -> list[Spec]:
    """Return the parameter for moving and zooming: dragging moves the chart, the wheel with Ctrl, Shift or Meta zooms,
    a double click resets it. Without a key the wheel scrolls the page."""
    wheel = "wheel![event.ctrlKey || event.shiftKey || event.metaKey]"
    select = {"type": "interval", "encodings": ["x"], "zoom": wheel}
    return [{"name": "zoom", "select": select, "bind": "scales"}]


def complete(chart: Chart, *, alone: bool = False) -> Spec:
    """Return the whole specification. `alone`: for a separate file, with a title and a background."""
    spec: Spec = {"config": CONFIG, **chart.spec}
    if alone:
        spec["config"] = CONFIG | {"background": "white"}
        spec["title"] = {"text": chart.kind + chart.title, "subtitle": chart.caption, "offset": 12}
        spec["padding"] = 16
    return spec


ADDRESSES = 80 << 30
"""Bytes of address space with which V8, the engine of vl-convert, starts reliably; it does not use that much memory.
With too little it ends the process."""


@cache
def converter() -> Any:
    """Return vl-convert. Raises SourceError if it, or jinja2, is not installed, or if a limit would keep it from
    starting."""
    limit = getrlimit(RLIMIT_AS)[0]
    if limit != RLIM_INFINITY and limit < ADDRESSES:
        need = f"the charts of a report need {ADDRESSES >> 30} GiB of address space"
        raise SourceError(f"not enough memory: {need}, and ulimit -v is {limit >> 20} MiB")
    try:
        import jinja2  # noqa: F401  the page needs it: fail before a disk is read
        import vl_convert
    except ImportError as error:
        raise SourceError(
            f"kdump report needs {error.name}, which is not installed: {how_to_install('report')}"
        ) from None
    return vl_convert


def svg(chart: Chart, *, alone: bool = False) -> str:
    """Return the chart as SVG text. The IDs that it defines are unique in the page."""
    drawn: str = converter().vegalite_to_svg(complete(chart, alone=alone))
    return re.sub(r'(id="|url\(#)((?:clip|gradient_)\d+)', rf"\1{chart.name}-\2", drawn)


def png(chart: Chart) -> bytes:
    """Return the chart as a PNG image, with twice the nominal resolution."""
    drawn: bytes = converter().vegalite_to_png(complete(chart, alone=True), scale=2)
    return drawn


@cache
def javascript() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, which sets window.vegaEmbed."""
    bundle: str = converter().javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return re.sub(r"<(?=/script|!--)", r"\\x3c", bundle, flags=re.IGNORECASE)  # either would break the enclosing script


def embedded(value: Any) -> str:
    """Return JSON that can be part of a script in a page: nothing in it ends the script, or a line of it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
