"""Charts of what `kdump stats` counts: batch fill, compression, and the top keys and producers."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from kdump.incident.report.html import palette
from kdump.incident.report.html.drawing import AMOUNT, THIN, Chart, Mark, Note, Panel, unlike
from kdump.incident.report.html.labels import PageLabels
from kdump.log.histograms import size_classes
from kdump.questions.stats.frequent_items import SpaceSaving
from kdump.questions.stats.totals import Stats, codecs_of
from kdump.render.amounts import size_text

TOP = 20
SHADES = {"stored": palette.BLUE, "unpacked": palette.PALE}


def batch_fill(stats: Stats) -> Chart | None:
    """Draw how many batches have how many records, and how many bytes."""
    if not stats.soundBatches:
        return None
    panels = [
        _histogram("records in a batch", stats.batchRecords, str),
        _histogram("bytes of a batch", stats.batchSizes, _brief),
    ]
    return Chart("batch-fill", "How full batches are", "", panels)


def _brief(size: int) -> str:
    """Format a power of two, or one less, briefly: 512, 64k, 1M."""
    for unit in ("", "k", "M"):
        if size < 1024:
            return f"{size}{unit}"
        size = round(size / 1024)
    return f"{size}G"


def _histogram(title: str, counts: array[int], show: Callable[[int], str]) -> Panel:
    labels: list[str] = []
    marks, notes = [], []
    for row, size_class in enumerate(size_classes(counts)):
        first, last = show(size_class.first), "" if size_class.last is None else show(size_class.last)
        labels.append(unlike(first if first == last else f"{first}..{last}", labels))
        tip = {title: f"{size_class.first:,}.." + ("" if size_class.last is None else f"{size_class.last:,}")}
        marks.append(Mark(0, size_class.amount, palette.BLUE, tip | {"batches": f"{size_class.amount:,}"}, row))
        notes.append(Note(size_class.amount, row, f"{size_class.amount:,}"))
    end = max((mark.b for mark in marks), default=1) * 1.1
    return Panel(0, end, AMOUNT, marks, "batches", labels, 17, heading=title, notes=notes)


def compression(stats: Stats) -> Chart | None:
    """Draw the stored and the decompressed bytes of records, by codec."""
    labels: list[str] = []
    marks, notes = [], []
    for name, codec in codecs_of(stats):
        unpacked = 0 if stats.unknown else codec.unpackedBytes
        ratio = f"{codec.ratio:.2f}× smaller" if name != "none" and unpacked and codec.ratio else ""
        common = {"codec": name, "batches": f"{codec.batches:,}", "records": f"{codec.records:,}", "ratio": ratio}
        for kind, amount in (("stored", codec.storedBytes), ("unpacked", unpacked)):
            if amount:
                label = size_text(amount) + (f", {ratio}" if kind == "stored" and ratio else "")
                marks.append(Mark(0, amount, kind, common | {kind: size_text(amount)}, len(labels)))
                notes.append(Note(amount, len(labels), label))
                labels.append(name if kind == "stored" or not codec.storedBytes else "")
    if not marks:
        return None
    highest = max(mark.b for mark in marks)
    panel = Panel(0, highest * 1.25, AMOUNT, marks, "bytes of records", labels, 15, notes=notes)
    return Chart("compression", "Effect of compression", "", [panel], SHADES)


def top_keys(stats: Stats, names: PageLabels) -> Chart | None:
    """Draw the keys with the most records, if none are missing because the records are not in a bundle."""
    rows = []
    if stats.unknown or stats.keyless:
        return None
    for item in stats.keys.top(TOP):
        topic, key = names.key_name(stats, item.item)
        rows.append((f"{topic}: {key}" if stats.topic is None else key, item))
    return _top("top-keys", "Keys with the most records", rows, stats.keys)


def top_producers(stats: Stats) -> Chart | None:
    """Draw the producers with the most records."""
    rows = [(f"producer {item.item}", item) for item in stats.producers.top(TOP) if item.times]
    return _top("top-producers", "Producers with the most records", rows, stats.producers)


def _top(name: str, title: str, rows: list[tuple[str, Any]], sketch: SpaceSaving) -> Chart | None:
    if not rows:
        return None
    labels: list[str] = []
    marks, notes = [], []
    for row, (label, item) in enumerate(rows):
        labels.append(unlike(label, labels))
        highest = item.times + sketch.error
        count = f"{item.times:,}" + (f"..{highest:,}" if sketch.error else "")
        share = f"{100 * item.times / sketch.total:.1f} %" if sketch.total else ""
        tip = {"name": label, "records": count, "size": size_text(item.weight), "share": share}
        marks.append(Mark(0, item.times, palette.BLUE, tip, row))
        if sketch.error:
            marks.append(Mark(item.times, highest, palette.MUTED, tip, row, shape=THIN))
        notes.append(Note(highest, row, count))
    last = max(mark.b for mark in marks) * 1.12
    panel = Panel(0, last, AMOUNT, marks, "records", labels, 18, notes=notes)
    caption = ""
    if sketch.error:
        caption = f"Counted in bounded memory: each count may be too low by up to {sketch.error:,}, as the lines show."
    return Chart(name, title, caption, [panel])
