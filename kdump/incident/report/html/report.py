"""`kdump.report`: reads the given paths, and writes the page and its charts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timezone, tzinfo
from importlib import import_module
from typing import Any

from kdump.check.engine.units import CheckUnit
from kdump.check.options import Options
from kdump.extras import how_to_install
from kdump.format.count_text import first_of
from kdump.incident.report.facts import PostMortem
from kdump.incident.report.html.charts import draw_charts
from kdump.incident.report.html.drawing import Chart, svg
from kdump.incident.report.html.finding_evidence import evidence
from kdump.incident.report.html.labels import PageLabels, clean
from kdump.incident.report.html.page import page
from kdump.incident.report.run import postmortem
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.io.mounted_paths import takes_paths
from kdump.io.run import Run
from kdump.log.output_directory import OutputDirectory, OutputError, OutputFile
from kdump.render.redaction import Redaction

FORMATS = ("png", "svg")


@dataclass
class ReportFiles:
    """What was written: the page `out` of `size` bytes, and the paths of the `charts`. `facts` is the data on the
    page."""

    out: str
    size: int
    charts: list[str]
    facts: PostMortem
    labels: PageLabels = field(repr=False)
    """How the page names what is in `facts`."""


@takes_paths
def report(
    paths: str | Iterable[str],
    out: str,
    *,
    charts: str | None = None,
    chart_format: str = "png",
    title: str | None = None,
    options: Run | None = None,
    zone: tzinfo = timezone.utc,
    redaction: Redaction | None = None,
    topics: Callable[[str], bool] = lambda name: True,
    jobs: int | None = None,
    max_rate: int | None = None,
) -> ReportFiles:
    """Write a post-mortem page for `paths` to the new file `out`, and its charts as files of `chart_format` (png or
    svg) into the new directory `charts`.

    `paths`: segments, partition directories, log directories, or directories above them. `title`: the title of the
    page. `zone`: for all times. `redaction`: replaces keys and, if it has names, names, and shows no bytes of records.
    `topics` selects partitions by topic name. `jobs`: number of CPU cores to use; `max_rate`: bytes per second that
    they read together. `options.show` is called with the name of each step after reading.

    Raises OutputError if the output cannot be written, if possible before anything is read. Raises SourceError if the
    packages for drawing are missing, or if nothing could be read; a path that cannot be read is passed to
    `options.unreadable`. Raises ValueError for an unknown `chart_format`.
    """
    if chart_format not in FORMATS:
        raise ValueError(f"unknown format {chart_format!r}; known are {', '.join(FORMATS)}")
    named = list(paths)
    _require("jinja2", "report")  # before a disk is read
    if charts is not None and chart_format == "png":
        _require("vl_convert", "charts")
    page_file = OutputFile(out, named)
    directory = OutputDirectory(charts, named) if charts is not None else None
    options = Options.given(options, now=round(time.time() * 1000), open_source=careful_source)
    made = postmortem(
        named,
        options,
        is_selected=lambda unit: _is_of(unit, topics),
        jobs=jobs,
        max_rate=max_rate,
    )
    if not made.totals.files and not made.stats.files:
        raise SourceError((made.totals.unread or ["nothing was read"])[0])
    options.show("drawing")
    names = PageLabels(made, redaction, zone)
    drawn = draw_charts(made, names)
    section = evidence(made, names, options)
    html = page(made, drawn, section, names, clean(title) if title else _title(made, names)).encode(
        "utf-8", "backslashreplace"
    )
    written: list[str] = []
    if directory is not None:
        options.show("writing charts")
        written = [_picture(directory, chart, chart_format) for chart in drawn.charts]
    with page_file.writing() as file:
        file.write(html)
    return ReportFiles(out, len(html), written, made, names)


def _is_of(unit: CheckUnit, topics: Callable[[str], bool]) -> bool:
    place = unit.partition or unit.target
    return place is None or place.topic is None or topics(place.topic)


def _title(made: PostMortem, labels: PageLabels) -> str:
    names = [labels.base_name(path) for path in made.paths]
    return f"Post-mortem: {first_of(names, 3)}"


def _require(module: str, extra: str) -> Any:
    """Return a module that only reports need. Raises SourceError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        what = "kdump report needs" if extra == "report" else "charts as PNG need (--chart-format svg does not)"
        raise SourceError(f"{what} {error.name}, which is not installed: {how_to_install(extra)}") from None


def _picture(directory: OutputDirectory, chart: Chart, chart_format: str) -> str:
    drawn = svg(chart, alone=True)
    data = _require("vl_convert", "charts").svg_to_png(drawn, scale=2) if chart_format == "png" else drawn.encode()
    name = f"{chart.name}.{chart_format}"
    directory.write(name, data)
    return directory.path(name)


__all__ = ["FORMATS", "OutputError", "ReportFiles", "report"]
