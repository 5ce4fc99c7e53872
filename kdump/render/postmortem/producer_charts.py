"""Charts of transactions, as bars from their first offset to their marker, and of producers with their epochs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kdump.forensics.answers import HANGING, OPEN, Transaction
from kdump.forensics.postmortem.facts import PartitionFacts
from kdump.format.count_text import count_text
from kdump.format.numbers import parse_long
from kdump.render.amounts import duration_text, size_text
from kdump.render.postmortem import palette
from kdump.render.postmortem.labels import PageLabels, short
from kdump.render.postmortem.vega import WIDTH, Chart, Spec, colour, tooltips, zoomable
from kdump.render.postmortem.vega import rows as rows_of

ROWS = 30
"""Maximum producers in one chart."""
FITS = "datum.share * width > 52"
"""Whether a bar is wide enough for its label: a Vega expression, because the page draws charts in any width."""
STEP = 20
BREAKS = {
    "sequence-gap": "sequence gap",
    "sequence-duplicate": "repeated sequence",
    "sequence-epoch-start": "epoch not starting with 0",
    "producer-epoch-decreased": "older epoch",
}
"""Findings that are drawn at their offset in the producer chart."""

BREAK = {
    "type": "point",
    "shape": "triangle-down",
    "filled": True,
    "size": 110,
    "yOffset": -5,
    "opacity": 1,
    "fill": palette.RED,
    "stroke": "white",
    "strokeWidth": 1.5,
}


def _offsets_axis(first: int, last: int) -> Spec:
    return {
        "type": "quantitative",
        "title": "offset",
        "scale": {"domain": [first, last], "nice": False},
        "axis": {"format": ",d", "tickMinStep": 1, "tickCount": 8},
    }


def _end(facts: PartitionFacts, *others: int) -> int:
    end = facts.ended.logEndOffset if facts.ended else None
    return max(end or 0, (facts.stats.lastOffset or 0) + 1, *others)


def transactions(facts: PartitionFacts, names: PageLabels) -> Chart | None:
    """Draw the transactions of a partition; those without a marker extend to the log end offset."""
    rows = [row for row in facts.transactions if row.firstOffset is not None or row.markerOffset is not None]
    if not rows:
        return None
    sizes = Counter({row.producerId: 0 for row in rows})
    for row in rows:
        sizes[row.producerId] += 1_000_000 if row.state in (OPEN, HANGING) else 1
    kept = {number for number, _ in sizes.most_common(ROWS)}
    rows = sorted((row for row in rows if row.producerId in kept), key=_first)
    end = _end(facts, *(row.markerOffset or 0 for row in rows))
    first = min(_first(row) for row in rows)
    labels = list(dict.fromkeys(_who(row, names) for row in rows))
    data = [_bar(row, names, first, end) for row in rows]
    y, height = rows_of("who", labels, STEP)
    used = {row["state"] for row in data}
    colours = {state: code for state, code in palette.STATE.items() if state in used}
    bars = {
        "params": zoomable(),
        "mark": {"type": "bar", "height": STEP - 7, "clip": True, "stroke": "white", "strokeWidth": 0.6},
        "encoding": {
            "x": {"field": "a", **_offsets_axis(first, end)},
            "x2": {"field": "b"},
            "color": colour("state", colours),
            "tooltip": tooltips("who", "state", "offsets", "records", "size", "took", "epoch", "marker"),
        },
    }
    layers: list[Spec] = [bars]
    if used & {OPEN, HANGING}:
        layers.append(
            {
                "transform": [{"filter": "datum.open && datum.late"}],
                "mark": {"type": "text", "text": "no marker →", "align": "right", "dx": -4, "fontSize": 11},
                "encoding": {"x": {"field": "a", "type": "quantitative"}},
            }
        )
    layers += _stable(facts, first, end)
    spec = {"data": {"values": data}, "width": WIDTH, "height": height, "encoding": {"y": y}, "layer": layers}
    return Chart("transactions", names.of(facts), _caption(facts, len(rows)), spec, kind="Transactions: ")


def _first(row: Transaction) -> int:
    return row.firstOffset if row.firstOffset is not None else row.markerOffset or 0


def _who(row: Transaction, names: PageLabels) -> str:
    name = short(names.clean(row.transactionalId), 34) if row.transactionalId is not None else ""
    return f"{name} ({row.producerId})" if name else f"producer {row.producerId}"


def _bar(row: Transaction, names: PageLabels, first: int, end: int) -> dict[str, Any]:
    is_open = row.markerOffset is None and row.state in (OPEN, HANGING)
    marker = row.markerOffset if row.markerOffset is not None else row.lastOffset or 0
    upto = end if is_open else marker + 1
    took = row.ended - row.begun if row.ended is not None and row.begun is not None else row.age
    return {
        "who": _who(row, names),
        "a": _first(row),
        "b": upto,
        "state": row.state,
        "open": is_open,
        "late": _first(row) - first > (end - first) / 8,
        "offsets": f"{_first(row):,}.." + ("" if is_open else f"{marker:,}"),
        "records": f"{row.records:,}",
        "size": size_text(row.bytes),
        "took": duration_text(took) + (" so far" if is_open else ""),
        "epoch": str(row.producerEpoch if row.producerEpoch is not None else "?"),
        "marker": "none" if row.markerOffset is None else f"at offset {row.markerOffset:,}",
    }


def _stable(facts: PartitionFacts, first: int, end: int) -> list[Spec]:
    """Draw the last stable offset, if it is below the log end offset: read_committed consumers stop there."""
    stable = facts.ended.lastStableOffset if facts.ended else None
    if stable is None or not first <= stable < end:
        return []
    here = {"values": [{"at": stable, "label": f"last stable offset {stable:,}"}]}
    x = {"field": "at", "type": "quantitative"}
    near_end = (stable - first) * 2 > end - first
    text = {"type": "text", "align": "right" if near_end else "left", "baseline": "bottom", "dx": -4 if near_end else 4}
    return [
        {"data": here, "mark": {"type": "rule", "strokeDash": [5, 3], "clip": True}, "encoding": {"x": x, "y": None}},
        {
            "data": here,
            "mark": text | {"dy": -3, "fontSize": 11},
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "label", "type": "nominal"}},
        },
    ]


def _caption(facts: PartitionFacts, drawn: int) -> str:
    ended = facts.ended
    if ended is None:
        return ""
    counts = [(name, getattr(ended, name)) for name in ("committed", "aborted", "open", "hanging")]
    words = ", ".join(f"{count:,} {name}" for name, count in counts if count)
    total = sum(count for _, count in counts)
    text = f"{words}." if words else ""
    if total > drawn:
        text += f" The {drawn:,} that are drawn are those without a marker and the longest."
    if ended.lastStableOffset is not None and ended.logEndOffset and ended.lastStableOffset < ended.logEndOffset:
        hidden = ended.logEndOffset - ended.lastStableOffset
        text += f" Consumers with read_committed stop at offset {ended.lastStableOffset:,}, {hidden:,} before the end."
    return text


def producers(facts: PartitionFacts, names: PageLabels) -> Chart | None:
    """Draw the producers of a partition, with one bar per epoch from its first to its last offset."""
    sizes: Counter[int] = Counter()
    for row in facts.producers:
        sizes[row.producerId] += row.bytes
    broken = {code for _, code in facts.codes} & set(BREAKS)
    kept = {number for number, _ in sizes.most_common(ROWS)}
    rows = [row for row in facts.producers if row.producerId in kept]
    if not rows:
        return None
    whose = _whose(facts, names)
    end = _end(facts, *(row.last for row in rows))
    first = min(row.first for row in rows)
    labels = list(dict.fromkeys(whose.get(row.producerId, f"producer {row.producerId}") for row in rows))
    order: dict[int, list[int]] = {}
    for row in rows:
        order.setdefault(row.producerId, []).append(row.epoch)
    data = [
        {
            "who": whose.get(row.producerId, f"producer {row.producerId}"),
            "a": row.first,
            "b": max(row.last + 1, row.first + 1),
            "nth": str(order[row.producerId].index(row.epoch) % len(palette.SERIES)),
            "label": f"epoch {row.epoch}",
            "share": (row.last - row.first + 1) / max(1, end - first),
            "epoch": f"{row.epoch}",
            "offsets": f"{row.first:,}..{row.last:,}",
            "records": f"{row.records:,} in {count_text(row.batches, 'batch', 'batches')}",
            "size": size_text(row.bytes),
        }
        for row in rows
    ]
    y, height = rows_of("who", labels, STEP)
    shades = colour("nth", {str(number): code for number, code in enumerate(palette.SERIES)}) | {"legend": None}
    layers: list[Spec] = [
        {
            "params": zoomable(),
            "mark": {"type": "bar", "height": STEP - 6, "clip": True},
            "encoding": {
                "x": {"field": "a", **_offsets_axis(first, end)},
                "x2": {"field": "b"},
                "color": shades,
                "tooltip": tooltips("who", "epoch", "offsets", "records", "size"),
            },
        },
        {
            "transform": [{"filter": FITS}],
            "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 10, "clip": True},
            "encoding": {
                "x": {"field": "a", "type": "quantitative"},
                "text": {"field": "label", "type": "nominal"},
                "color": {
                    "condition": {"test": "datum.nth === '0' || datum.nth === '4'", "value": "#ffffff"},
                    "value": "#000000",
                },
            },
        },
    ]
    breaks = _breaks(facts, whose, names) if broken else []
    if breaks:
        layers.append(
            {
                "data": {"values": breaks},
                "mark": BREAK,
                "encoding": {
                    "x": {"field": "at", "type": "quantitative"},
                    "tooltip": tooltips("who", "what", "offset", "message"),
                },
            }
        )
    spec = {"data": {"values": data}, "width": WIDTH, "height": height, "encoding": {"y": y}, "layer": layers}
    caption = "Triangles mark batches with a sequence or epoch error." if breaks else ""
    if len(sizes) > ROWS:
        caption += f" Only the {ROWS} of {len(sizes):,} with the most bytes are drawn."
    return Chart("producers", names.of(facts), caption, spec, kind="Producers and their epochs: ")


def _whose(facts: PartitionFacts, names: PageLabels) -> dict[int, str]:
    """Return the labels of producers with a transactional ID, by producer ID."""
    return {row.producerId: _who(row, names) for row in facts.transactions if row.transactionalId is not None}


def _breaks(facts: PartitionFacts, whose: dict[int, str], names: PageLabels) -> list[dict[str, Any]]:
    rows = []
    for finding in facts.findings:
        if finding.code not in BREAKS or finding.offset is None:
            continue
        number = parse_long(finding.message.partition(":")[0].removeprefix("producer "))
        who = whose.get(number, f"producer {number}") if number is not None and number >= 0 else None
        if who is not None:
            row = {"who": who, "at": finding.offset, "offset": f"{finding.offset:,}"}
            rows.append(row | {"what": BREAKS[finding.code], "message": short(names.clean(finding.message), 120)})
    return rows
