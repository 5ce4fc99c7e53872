"""Charts of bytes and records over time, and over the offsets of a partition with its offset gaps."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdump.forensics.histograms import Histogram, of_time
from kdump.forensics.postmortem.facts import Gap, PartitionFacts, PostMortem, by_time
from kdump.format.count_text import count_text
from kdump.render.amounts import duration_text, size_text
from kdump.render.postmortem import palette
from kdump.render.postmortem.labels import PageLabels, short, utc_offset_text
from kdump.render.postmortem.vega import WIDTH, Chart, Spec, colour, tooltips, zoomable

BUCKETS = 200
"""Maximum bars of a chart."""
OTHERS = "other topics"
BYTES, RECORDS = "bytes", "records"
GAPS = {"damage": palette.NO_BATCH, "no damage next to it": palette.ORANGE, "compacted": palette.GREY}
HOUR = 3_600_000
CALENDAR_END = 253_402_300_800_000
"""The year 10000 in epoch ms: later times cannot be formatted as dates."""
FAR = 5
"""Maximum distant buckets that are listed."""


def facet(data: list[dict[str, Any]], x: Spec, inner: list[Spec], heights: int) -> Spec:
    """Combine two charts of the same width, bytes above records; zooming applies to both."""
    return {
        "data": {"values": data},
        "facet": {
            "row": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "sort": [BYTES, RECORDS],
                "header": {"labelAnchor": "start", "labelPadding": 2, "labelOrient": "top", "labelFontStyle": "italic"},
            }
        },
        "spacing": 8,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"width": WIDTH + 60, "height": heights, "encoding": {"x": x}, "layer": inner},
    }


def when(made: PostMortem) -> tuple[list[Bucket], list[Bucket], int]:
    """Return the times at which batches were written, those that are too distant to draw, and the step of the bucket
    widths."""
    total = by_time()
    for _, time in made.series:
        total.merge(time)
    found = buckets_of(total)
    kept, far = main_part([each for each in found if each.last < CALENDAR_END])
    return kept, [*far, *(each for each in found if each.last >= CALENDAR_END)], total.step


def over_time(made: PostMortem, names: PageLabels) -> tuple[list[Chart], list[str]]:
    """Draw bytes and records by the time of their batches, with one color per large topic: one chart for each period
    with data. Also returns text about what is too distant to draw."""
    kept, far, step = when(made)
    texts = [f"{count_text(each.records, 'record')} at {names.time(each.first)}" for each in far[:FAR]]
    texts += [f"and {len(far) - FAR} more times"] if len(far) > FAR else []
    texts += [f"{count_text(made.untimed, 'record')} without a timestamp"] if made.untimed else []
    charts = [_era(made, names, era, step) for era in eras(kept)] if kept else []
    for number, chart in enumerate(charts[1:]):
        chart.name += f"-{number + 2}"
    return charts, texts


def _era(made: PostMortem, labels: PageLabels, era: list[Bucket], step: int) -> Chart:
    first, last = era[0].first, era[-1].last
    while (last - first) // of_time(step) > BUCKETS:
        step += 1
    width = of_time(step)
    buckets = {each.topic: buckets_of(each.time) for each in made.series}
    sizes = sorted(made.series, key=lambda each: -sum(bucket.bytes for bucket in buckets[each.topic]))
    within = {each.topic for each in sizes if any(first <= bucket.first <= last for bucket in buckets[each.topic])}
    named = [each for each in sizes if each.topic is not None and each.topic in within][: len(palette.SERIES)]
    names = [short(labels.clean(each.topic or "")) for each in named]
    rows: dict[tuple[int, str], list[int]] = {}
    for each in sizes:
        name = names[named.index(each)] if each in named else OTHERS
        for bucket in buckets[each.topic]:
            if first <= bucket.first <= last:
                row = rows.setdefault((bucket.first // width, name), [0, 0])
                row[0] += bucket.bytes
                row[1] += bucket.records
    colours = palette.series(names, OTHERS if len(within) > len(named) else "")
    offset = labels.utc_offset(last)
    data = _stacked(rows, list(colours), width, labels, offset)
    x = {
        "field": "t",
        "type": "temporal",
        "scale": {"type": "utc", "nice": False},
        "title": utc_offset_text(offset),
        "axis": {"grid": False, "labelOverlap": "greedy", "tickCount": 8, "format": _time_format(last - first)},
    }
    bars = {
        "mark": {"type": "rect", "clip": True, "stroke": None},
        "params": zoomable(),
        "encoding": {
            "x2": {"field": "t2"},
            "y": _amount("y"),
            "y2": {"field": "y2"},
            "color": colour("topic", colours),
            "tooltip": tooltips("topic", "from", "upto", "size", "count"),
        },
    }
    spec = facet(data, x, [bars], 96)
    records = sum(each.records for each in era)
    title = f"{labels.second(first)} to {labels.second(last)}"
    caption = f"{count_text(records, 'record')}; a bar is {duration_text(width)} wide."
    return Chart("over-time", title, caption, spec, "spec", "Bytes and records, ")


def _time_format(span: int) -> str:
    """Return the tick format, so that the day or the hour is visible."""
    return "%H:%M:%S" if span < HOUR else "%m-%d %H:%M" if span < 72 * HOUR else "%Y-%m-%d"


def _stacked(
    rows: dict[tuple[int, str], list[int]], order: list[str], width: int, labels: PageLabels, offset: int
) -> list[dict[str, Any]]:
    """Return the bars; `offset`: what to add to UTC in ms, so that the axis, which is in UTC, shows the local time."""
    data: list[dict[str, Any]] = []
    base: dict[int, list[int]] = {}
    for (bucket, name), (size, records) in sorted(rows.items(), key=lambda row: (row[0][0], order.index(row[0][1]))):
        below = base.setdefault(bucket, [0, 0])
        start = bucket * width
        upto = start + width
        base_row = {"topic": name, "t": start + offset, "t2": upto + offset}
        base_row |= {"from": labels.time(start), "upto": labels.time(upto)}
        base_row |= {"size": size_text(size), "count": count_text(records, "record")}
        for number, (of, amount) in enumerate(((BYTES, size), (RECORDS, records))):
            data.append(base_row | {"of": of, "y": below[number], "y2": below[number] + amount})
            below[number] += amount
    return data


def _amount(field: str) -> Spec:
    axis = {"format": "~s", "tickCount": 3, "tickMinStep": 1, "title": None}
    return {"field": field, "type": "quantitative", "axis": axis}


def over_offsets(facts: PartitionFacts, name: str) -> tuple[Chart | None, list[str]]:
    """Draw the bytes and records of a partition by offset, with its offset gaps. Also returns text about what is too
    distant to draw."""
    kept, far = main_part(buckets_of(facts.offsets))
    texts = [f"{count_text(each.records, 'record')} at offsets from {each.first:,} on" for each in far[:FAR]]
    if not kept:
        return None, texts
    first, last = kept[0].first, kept[-1].last
    if facts.ended is not None and facts.ended.logEndOffset is not None:
        last = max(kept[-1].first, min(last, facts.ended.logEndOffset - 1))
    data = [row for each in _wider(kept, facts.offsets.width) for row in _bars(each, last)]
    gaps = [gap for gap in facts.gaps if gap.last >= first and gap.first <= last]
    for gap in gaps:
        data += [_gap(gap, facts, of) for of in (BYTES, RECORDS)]
    x = {"field": "a", "type": "quantitative", "title": "offset", "scale": {"domain": [first, last + 1], "nice": False}}
    x["axis"] = {"grid": False, "format": ",d", "tickMinStep": 1, "tickCount": 8}
    bars = {
        "transform": [{"filter": "datum.kind === 'bar'"}],
        "params": zoomable(),
        "mark": {"type": "rect", "color": palette.BLUE, "clip": True},
        "encoding": {
            "x2": {"field": "b"},
            "y": _amount("y"),
            "y2": {"datum": 0},
            "tooltip": tooltips("offsets", "size", "count"),
        },
    }
    layers = [bars]
    used = [kind for kind in GAPS if any(_kind(gap, facts) == kind for gap in gaps)]
    if gaps:
        colours = {f"gap: {kind}": GAPS[kind] for kind in used}
        layers.insert(
            0,
            {
                "transform": [{"filter": "datum.kind === 'gap'"}],
                "mark": {"type": "rect", "clip": True, "opacity": 0.55},
                "encoding": {
                    "x2": {"field": "b"},
                    "color": colour("gap", colours),
                    "tooltip": tooltips("gap", "offsets", "size"),
                },
            },
        )
    spec = facet(data, x, layers, 64)
    return Chart("over-offsets", name, "", spec, "spec", "Bytes and records over offsets: "), texts


def _wider(buckets: list[Bucket], width: int) -> list[Bucket]:
    """Merge buckets until there are at most BUCKETS."""
    span = buckets[-1].last - buckets[0].first + 1
    while span > width * BUCKETS:
        width *= 2
    made: dict[int, list[int]] = {}
    for each in buckets:
        row = made.setdefault(each.first // width, [0, 0])
        row[0] += each.bytes
        row[1] += each.records
    return [Bucket(at * width, (at + 1) * width - 1, size, records) for at, (size, records) in sorted(made.items())]


def _bars(bucket: Bucket, last: int) -> list[dict[str, Any]]:
    end = min(bucket.last, last)
    row = {"kind": "bar", "a": bucket.first, "b": end + 1, "offsets": f"{bucket.first:,}..{end:,}"}
    row |= {"size": size_text(bucket.bytes), "count": count_text(bucket.records, "record")}
    return [row | {"of": BYTES, "y": bucket.bytes}, row | {"of": RECORDS, "y": bucket.records}]


def _kind(gap: Gap, facts: PartitionFacts) -> str:
    return "damage" if gap.is_damage else "compacted" if facts.is_compacted else "no damage next to it"


def _gap(gap: Gap, facts: PartitionFacts, of: str) -> dict[str, Any]:
    row = {"kind": "gap", "of": of, "a": gap.first, "b": gap.last + 1, "offsets": f"{gap.first:,}..{gap.last:,}"}
    return row | {"gap": f"gap: {_kind(gap, facts)}", "size": count_text(gap.size, "offset")}


class Bucket(NamedTuple):
    """Bytes and records in first..last, both inclusive. `last` is the end of the bucket, even if no value reaches
    it."""

    first: int
    last: int
    bytes: int
    records: int


def buckets_of(histogram: Histogram) -> list[Bucket]:
    """Return the buckets in ascending order."""
    return [Bucket(first, first + histogram.width - 1, *amounts) for first, amounts in histogram]


SHARE = 100
"""An outlier contains at most 1/SHARE of all records. It is further from the rest than 10 times the width of the
rest."""


def main_part(buckets: list[Bucket]) -> tuple[list[Bucket], list[Bucket]]:
    """Return the buckets that belong together, and the few outliers that would make a chart of all unreadable: a
    timestamp in the year 2106, an offset with a flipped bit. `buckets` in order."""
    kept, far = list(buckets), []
    total = sum(each.records for each in kept)
    while len(kept) > 1:
        first, second, before, last = kept[0], kept[1], kept[-2], kept[-1]
        if _is_far(second.first - first.last, last.last - second.first, first.records, total):
            far.append(kept.pop(0))
        elif _is_far(last.first - before.last, before.last - first.first, last.records, total):
            far.append(kept.pop())
        else:
            break
    return kept, sorted(far)


def _is_far(away: int, rest: int, records: int, total: int) -> bool:
    return away > 10 * max(1, rest) and records * SHARE <= total


EMPTY = 0.8
"""Share of the whole range that the widest gaps must exceed for it to be split at them."""
MAX_ERAS = 4


def eras(buckets: list[Bucket]) -> list[list[Bucket]]:
    """Split `buckets` (in order) into at most MAX_ERAS parts, each for a chart of its own, if the gaps between them
    cover most of the range."""
    if len(buckets) < 2:
        return [buckets]
    span = buckets[-1].last - buckets[0].first
    gaps = sorted(((buckets[at].first - buckets[at - 1].last, at) for at in range(1, len(buckets))), reverse=True)
    for count in range(1, min(MAX_ERAS, len(buckets))):
        if sum(gap for gap, _ in gaps[:count]) > EMPTY * span:
            cuts = sorted(at for _, at in gaps[:count])
            return [buckets[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(buckets)])]
    return [buckets]
