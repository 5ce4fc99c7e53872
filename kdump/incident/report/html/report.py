"""`kdump.report`: reads the given paths, and writes the page, one self-contained HTML file, and its charts. page.html
and page.css have the appearance, page.js the behavior."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from typing import Any

from kdump.check.engine.units import CheckUnit
from kdump.check.finding import ERROR, INFO, SEVERITIES, WARNING
from kdump.check.options import Options
from kdump.extras import how_to_install
from kdump.format.count_text import count_text, first_of, plain_count
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.incident.report.html.charts import ChartSet, draw_charts
from kdump.incident.report.html.drawing import Chart, svg
from kdump.incident.report.html.finding_evidence import ExplainedFindings, FindingsSection, evidence
from kdump.incident.report.html.labels import PageLabels, clean
from kdump.incident.report.html.query import ReportQuery
from kdump.incident.report.html.throughput_charts import when
from kdump.incident.report.run import postmortem
from kdump.io.errors import SourceError
from kdump.io.fault_tolerant import careful_source
from kdump.log.output_directory import OutputDirectory, OutputFile
from kdump.query import offered
from kdump.questions.transactions.answer import HANGING, OPEN
from kdump.render.amounts import size_text
from kdump.render.findings_report import incomplete, newer, totals_text, verdict
from kdump.version import __version__

__all__ = ["ReportFiles", "report"]

STYLES = {"bad": "bad", "torn": "warn", "name": "intact"}
"""CSS class for the style of the verdict."""
ROWS = 1000
"""Maximum partitions in the table."""
GAPS = 40
SHORT = 6
"""Maximum findings that are listed, one line each, below the verdict."""
UNREAD = 50


def page(made: PostMortem, drawn: ChartSet, section: FindingsSection, names: PageLabels, title: str) -> str:
    """Return the page as HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("kdump.incident.report.html", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count_text"] = count_text
    own = files("kdump.incident.report.html").joinpath("page")
    script = own.joinpath("page.js").read_text("utf-8")

    def picture(chart: Chart) -> Markup:
        return Markup(svg(chart))

    return environment.get_template("page.html").render(
        title=title,
        version=__version__,
        script=Markup(script),
        hash=_hash(script),
        style=Markup(own.joinpath("page.css").read_text("utf-8")),
        picture=picture,
        drawn=drawn,
        findings=section,
        **_context(made, section, names),
    )


def _hash(script: str) -> str:
    """Return the hash that lets the page's Content-Security-Policy run a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _context(made: PostMortem, section: FindingsSection, names: PageLabels) -> dict[str, Any]:
    counts, totals = made.totals.findings, made.totals
    word, style = verdict(counts[ERROR], counts[WARNING], totals)
    hit = sum(1 for each in (*made.partitions, *made.others) if each.severities[ERROR] or each.severities[WARNING])
    places = len(made.partitions) + len(made.others)
    severities = [count_text(counts[name], name) for name in (ERROR, WARNING) if counts[name]]
    where = f" in {hit} of {plain_count(places, 'place')}" if severities and places > 1 else ""
    rows = sorted(made.partitions, key=lambda facts: tuple(-number for number in facts.weight[:3]))
    return {
        "word": word,
        "tone": STYLES[style],
        "details": names.clean(
            "; ".join(filter(None, [", ".join(severities) + where, *newer(made.newer), *incomplete(totals)]))
        ),
        "first": [each for each in section.explained if each.finding.severity != INFO][:SHORT],
        "more": sum(each.finding.severity != INFO for each in section.explained[SHORT:]),
        "incomplete": [names.clean(text) for text in incomplete(totals)],
        "held": list(_held(made, names)),
        "tiles": list(_tiles(made, names)),
        "when": names.time(made.began),
        "today": names.second(made.began)[:10],
        "paths": [names.clean(path) for path in made.paths],
        "directories": [_directory(each, names) for each in made.directories],
        "checked": totals_text(totals, made.seconds),
        "rows": [_row(facts, names) for facts in rows[:ROWS]],
        "left": max(0, len(rows) - ROWS),
        "gaps": _gaps(made, names),
        "gap_count": sum(facts.gapCount for facts in made.partitions),
        "differences": [
            f"{names.of(facts)}: {names.clean(each.message)} (producer {each.producerId}, epoch {each.producerEpoch})"
            for facts in made.partitions
            for each in facts.differences
        ][:GAPS],
        "unread": [names.error(line) for line in totals.unread[:UNREAD]],
        "unread_more": max(0, len(totals.unread) - UNREAD),
        "notes": [names.clean(line) for line in totals.notes[:UNREAD]]
        + [names.clean(line) for facts in made.partitions for line in facts.notes][:UNREAD],
        "groups": _by_severity(section),
    }


def _by_severity(section: FindingsSection) -> list[tuple[str, list[ExplainedFindings]]]:
    of = {name: [each for each in section.explained if each.finding.severity == name] for name in SEVERITIES}
    return [*of.items()]


def _tiles(made: PostMortem, names: PageLabels) -> Iterator[tuple[str, str, str]]:
    """Yield the key figures: label, number and details."""
    stats, totals = made.stats, made.totals
    yield "partitions", f"{totals.partitions or len(made.partitions):,}", count_text(stats.files, "segment")
    yield "bytes", size_text(stats.bytes), "of segments"
    yield "records", f"{totals.records:,}", "in " + count_text(totals.batches, "batch", "batches")
    times, far, _ = when(made)
    if times:
        more = f"; {count_text(sum(each.records for each in far), 'record')} far away" if far else ""
        yield (
            "last written",
            names.second(times[-1].first)[:10],
            f"{_spaced(times[0].first, names)} to {_spaced(times[-1].last, names)}{more}",
        )
    ended = [facts.ended for facts in made.partitions if facts.ended is not None]
    pending = {name: sum(getattr(each, name) for each in ended) for name in (OPEN, HANGING)}
    done = sum(each.committed + each.aborted for each in ended)
    if done or any(pending.values()):
        states = ", ".join(f"{count:,} {name}" for name, count in pending.items() if count) or "none open"
        yield "transactions", f"{done + sum(pending.values()):,}", states
    ratio = stats.ratio
    if ratio is not None and not stats.unknown:
        yield "compression", f"{ratio:.2f}×", "for compressed batches"


def _spaced(milliseconds: int, names: PageLabels) -> str:
    """Format a time with a space between date and time, so that it can wrap."""
    return names.second(milliseconds).replace("T", " ")


def _held(made: PostMortem, names: PageLabels) -> Iterator[str]:
    """Yield a text for each partition in which read_committed consumers cannot reach the end."""
    for facts in made.partitions:
        ended = facts.ended
        if ended is None or ended.lastStableOffset is None or ended.logEndOffset is None:
            continue
        hidden = ended.logEndOffset - ended.lastStableOffset
        if hidden > 0 and ended.heldBy is not None:
            state = "hanging" if ended.hanging else "open"
            sentence = f"{names.of(facts)}: consumers with read_committed stop at offset {ended.lastStableOffset:,}, "
            yield sentence + f"{hidden:,} before the end: a transaction of producer {ended.heldBy} is {state}"


def _directory(directory: Any, names: PageLabels) -> str:
    identity = directory.identity
    words = [names.clean(directory.path)]
    words += [f"cluster {names.clean(identity['cluster.id'])}"] if "cluster.id" in identity else []
    words += [f"node {names.clean(identity['node.id'])}"] if "node.id" in identity else []
    ends = {True: "shut down cleanly", False: "no clean shutdown: the broker is running or has crashed"}
    words += [ends[directory.clean]] if directory.clean is not None else []
    return ", ".join(words)


def _row(facts: PartitionFacts, names: PageLabels) -> dict[str, str]:
    """Return a row of the table of partitions."""
    stats = facts.stats
    worst = next((name for name in (ERROR, WARNING, INFO) if facts.severities[name]), "")
    counts = ", ".join(count_text(facts.severities[name], name) for name in (ERROR, WARNING) if facts.severities[name])
    first, last = stats.firstOffset, stats.lastOffset
    ended = facts.ended
    held = f"{ended.open + ended.hanging:,}" if ended and ended.open + ended.hanging else ""
    codecs = ", ".join(sorted(stats.codecs, key=lambda name: -stats.codecs[name].storedBytes))
    oldest, newest = ("" if each is None else _spaced(each, names) for each in (stats.oldest, stats.newest))
    return {
        "name": names.of(facts),
        "state": facts.state,
        "segments": f"{facts.segmentCount:,}",
        "size": size_text(stats.bytes),
        "batches": f"{stats.batches:,}",
        "records": f"{stats.records:,}",
        "offsets": "" if first is None else f"{first:,}..{last:,}",
        "oldest": oldest,
        "newest": newest,
        "codecs": codecs,
        "severity": worst,
        "findings": counts or (count_text(facts.severities[INFO], "note") if facts.severities[INFO] else ""),
        "held": held,
    }


def _gaps(made: PostMortem, names: PageLabels) -> list[tuple[str, str, str, str]]:
    """Return partition, offsets, size and reason of each offset gap: gaps at damage first, then the largest."""
    gaps = [(facts, gap) for facts in made.partitions for gap in facts.gaps]
    gaps.sort(key=lambda each: (not each[1].is_damage, each[0].is_compacted, -each[1].size))
    rows = []
    for facts, gap in gaps[:GAPS]:
        why = "damaged bytes there" if gap.is_damage else "the topic is compacted" if facts.is_compacted else ""
        where = f"{gap.first:,}..{gap.last:,}" if gap.size > 1 else f"{gap.first:,}"
        rows.append((names.of(facts), where, f"{gap.size:,}", why or "no damage next to it"))
    return rows


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


def answers(query: ReportQuery) -> ReportFiles:
    """Write a post-mortem page for `paths` to the new file `out`, and its charts as files of `chart_format` (png or
    svg) into the new directory `charts`.

    `paths`: segments, partition directories, log directories, or directories above them. `zone`: for all times.
    `redaction`: replaces keys and, if it has names, names, and shows no bytes of records. `jobs`: number of CPU cores
    to use; `max_rate`: bytes per second that they read together. `run.show` is called with the name of each step after
    reading.

    Raises OutputError if the output cannot be written, if possible before anything is read. Raises SourceError if the
    packages for drawing are missing, or if nothing could be read; a path that cannot be read is passed to
    `run.unreadable`. Raises ValueError for an unknown `chart_format`."""
    named, charts, chart_format = list(query.paths), query.charts, query.chart_format
    _require("jinja2", "report")  # before a disk is read
    if charts is not None and chart_format == "png":
        _require("vl_convert", "charts")
    page_file = OutputFile(query.out, named)
    directory = OutputDirectory(charts, named) if charts is not None else None
    options = Options.given(query.run, now=round(time.time() * 1000), open_source=careful_source)

    def is_selected(unit: CheckUnit) -> bool:
        place = unit.partition or unit.target
        return place is None or place.topic is None or query.of_topic(place.topic)

    made = postmortem(named, options, is_selected=is_selected, jobs=query.jobs, max_rate=query.max_rate)
    if not made.totals.files and not made.stats.files:
        raise SourceError((made.totals.unread or ["nothing was read"])[0])
    options.show("drawing")
    names = PageLabels(made, query.redaction, query.zone)
    drawn = draw_charts(made, names)
    section = evidence(made, names, options)
    html = page(made, drawn, section, names, clean(query.title) if query.title else _title(made, names)).encode(
        "utf-8", "backslashreplace"
    )
    written: list[str] = []
    if directory is not None:
        options.show("writing charts")
        written = [_picture(directory, chart, chart_format) for chart in drawn.charts]
    with page_file.writing() as file:
        file.write(html)
    return ReportFiles(query.out, len(html), written, made, names)


report = offered("report", ReportQuery, answers)


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
