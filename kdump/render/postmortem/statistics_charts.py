"""Charts of what `kdump stats` counts: batch fill, compression, and the top keys and producers."""

from __future__ import annotations

from array import array
from typing import Any

from kdump.forensics.frequent_items import SpaceSaving
from kdump.forensics.histograms import size_classes
from kdump.forensics.stats import Stats, codecs_of
from kdump.format.count_text import count_text
from kdump.render.amounts import size_text
from kdump.render.postmortem import palette
from kdump.render.postmortem.labels import PageLabels
from kdump.render.postmortem.vega import WIDTH, Chart, Spec, colour, tooltips
from kdump.render.postmortem.vega import rows as rows_of

TOP = 20
HALF = 380
"""Width in pixels of each of two adjacent charts."""


def batch_fill(stats: Stats) -> Chart | None:
    """Draw how many batches have how many records, and how many bytes."""
    if not stats.soundBatches:
        return None
    sizes = (
        ("records in a batch, from", stats.batchRecords, str),
        ("bytes of a batch, from", stats.batchSizes, _brief),
    )
    charts = [_histogram(title, counts, show) for title, counts, show in sizes]
    return Chart("batch-fill", "How full batches are", "", {"hconcat": charts, "spacing": 40})


def _brief(size: int) -> str:
    """Format a power of two briefly: 512, 64k, 1M."""
    for unit in ("", "k", "M"):
        if size < 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}G"


def _histogram(title: str, counts: array[int], show: Any) -> Spec:
    data, labels = [], []
    for each in size_classes(counts):
        label = show(each.first)
        labels.append(label)
        upto = f"{each.first:,}.." + ("" if each.last is None else f"{each.last:,}")
        data.append(
            {
                "class": label,
                "batches": each.amount,
                "range": upto,
                "count": count_text(each.amount, "batch", "batches"),
            }
        )
    return {
        "data": {"values": data},
        "width": HALF,
        "height": 150,
        "mark": {"type": "bar", "color": palette.BLUE},
        "encoding": {
            "x": {"field": "class", "type": "nominal", "sort": labels, "title": title, "axis": {"labelAngle": 0}},
            "y": {"field": "batches", "type": "quantitative", "title": "batches", "axis": {"tickMinStep": 1}},
            "tooltip": tooltips("range", "count"),
        },
    }


def compression(stats: Stats) -> Chart | None:
    """Draw the stored and the decompressed bytes of records, by codec."""
    data: list[dict[str, Any]] = []
    for name, codec in codecs_of(stats):
        unpacked = 0 if stats.unknown else codec.unpackedBytes
        ratio = f"{codec.ratio:.2f}× smaller" if name != "none" and unpacked and codec.ratio else ""
        common = {"codec": name, "batches": f"{codec.batches:,}", "records": f"{codec.records:,}", "ratio": ratio}
        for is_stored, amount in ((True, codec.storedBytes), (False, unpacked)):
            if amount:
                kind = "stored" if is_stored else "unpacked"
                data.append(common | {"is": kind, "amount": amount, "size": size_text(amount), "label": ""})
                data[-1]["label"] = f"{size_text(amount)}" + (f", {ratio}" if is_stored and ratio else "")
    if not data:
        return None
    order = list(dict.fromkeys(row["codec"] for row in data))
    highest = max(row["amount"] for row in data)
    y = {"field": "codec", "type": "nominal", "sort": order, "title": None, "axis": {"domain": False, "ticks": False}}
    step = {"field": "is", "type": "nominal", "sort": ["stored", "unpacked"]}
    shared = {
        "y": y,
        "yOffset": step,
        "x": {
            "field": "amount",
            "type": "quantitative",
            "title": "bytes of records",
            "axis": {"format": "~s", "tickCount": 6},
            "scale": {"domain": [0, highest * 1.25], "nice": False},
        },
    }
    shades = {"stored": palette.BLUE, "unpacked": palette.PALE}
    layers = [
        {
            "mark": {"type": "bar"},
            "encoding": {
                "color": colour("is", shades),
                "tooltip": tooltips("codec", "is", "size", "batches", "records", "ratio"),
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 10},
            "encoding": {"text": {"field": "label", "type": "nominal"}},
        },
    ]
    spec = {
        "data": {"values": data},
        "width": WIDTH,
        "height": {"step": 15, "for": "offset"},
        "encoding": shared,
        "layer": layers,
    }
    return Chart("compression", "Effect of compression", "", spec)


def top_keys(stats: Stats, names: PageLabels) -> Chart | None:
    """Draw the keys with the most records, if none are missing because the records are not in a bundle."""
    rows = []
    if stats.unknown or stats.keyless:
        return None
    for each in stats.keys.top(TOP):
        topic, key = names.key_name(stats, each.item)
        rows.append((f"{topic}: {key}" if stats.topic is None else key, each))
    return _top("top-keys", "Keys with the most records", rows, stats.keys)


def top_producers(stats: Stats) -> Chart | None:
    """Draw the producers with the most records."""
    rows = [(f"producer {each.item}", each) for each in stats.producers.top(TOP) if each.times]
    return _top("top-producers", "Producers with the most records", rows, stats.producers)


def _top(name: str, title: str, rows: list[tuple[str, Any]], sketch: SpaceSaving) -> Chart | None:
    if not rows:
        return None
    data: list[dict[str, Any]] = []
    labels: list[str] = []
    for label, each in rows:
        while label in labels:
            label += "'"
        labels.append(label)
        highest = each.times + sketch.error
        caption = f"{each.times:,}" + (f"..{highest:,}" if sketch.error else "")
        share = f"{100 * each.times / sketch.total:.1f} %" if sketch.total else ""
        data.append({"name": label, "count": each.times, "most": highest, "label": caption, "records": caption})
        data[-1] |= {"size": size_text(each.weight), "share": share}
    y, height = rows_of("name", labels, 18)
    highest = max(row["most"] for row in data)
    x = {
        "field": "count",
        "type": "quantitative",
        "title": "records",
        "axis": {"format": "~s", "tickMinStep": 1, "tickCount": 8},
    }
    x["scale"] = {"domain": [0, highest * 1.12], "nice": False}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "color": palette.BLUE, "height": 12},
            "encoding": {"x": x, "tooltip": tooltips("name", "records", "size", "share")},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 10},
            "encoding": {"x": {"field": "most", "type": "quantitative"}, "text": {"field": "label", "type": "nominal"}},
        },
    ]
    if sketch.error:
        rule = {"type": "rule", "strokeWidth": 2}
        layers.insert(1, {"mark": rule, "encoding": {"x": {"field": "count"}, "x2": {"field": "most"}}})
    spec = {"data": {"values": data}, "width": WIDTH, "height": height, "encoding": {"y": y}, "layer": layers}
    caption = ""
    if sketch.error:
        caption = f"Counted in bounded memory: each count may be too low by up to {sketch.error:,}, as the lines show."
    return Chart(name, title, caption, spec)
