"""Charts of bytes and records over time, and over the offsets of a partition with its offset gaps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdump.format.count_text import count_text
from kdump.incident.report.facts import Gap, PartitionFacts, PostMortem, by_time
from kdump.incident.report.html import palette
from kdump.incident.report.html.drawing import BEHIND, OFFSET, TIME, Chart, Mark, Panel, used
from kdump.incident.report.html.labels import LONGEST, PageLabels, utc_offset_text
from kdump.log.histograms import Histogram, of_time
from kdump.render.amounts import duration_text, size_text
from kdump.render.style import cut_middle

BUCKETS = 200
"""Maximum bars of a chart."""
OTHERS = "other topics"
BYTES, RECORDS = "bytes", "records"
GAPS = {"gap: damage": palette.NO_BATCH, "gap: no damage next to it": palette.ORANGE, "gap: compacted": palette.GREY}
CALENDAR_END = 253_402_300_800_000
"""The year 10000 in epoch ms: later times cannot be formatted as dates."""
FAR = 5
"""Maximum distant buckets that are listed."""


def bytes_and_records(
    first: int, last: int, unit: str, title: str, marks: tuple[list[Mark], list[Mark]], height: int
) -> list[Panel]:
    """Return two panels over the same axis: bytes above records."""
    return [
        Panel(first, last, unit, marks[0], heading=BYTES, height=height, axis=False),
        Panel(first, last, unit, marks[1], title, heading=RECORDS, height=height),
    ]


def when(made: PostMortem) -> tuple[list[Bucket], list[Bucket], int]:
    """Return the times at which batches were written, those that are too distant to draw, and the step of the bucket
    widths."""
    total = by_time()
    for _, time in made.series:
        total.merge(time)
    buckets = buckets_of(total)
    kept, far = main_part([bucket for bucket in buckets if bucket.last < CALENDAR_END])
    return kept, [*far, *(bucket for bucket in buckets if bucket.last >= CALENDAR_END)], total.step


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
    names = [cut_middle(labels.clean(each.topic or ""), LONGEST) for each in named]
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
    marks = _stacked(rows, list(colours), width, labels, offset)
    start, end = first // width * width + offset, (last // width + 1) * width + offset
    panels = bytes_and_records(start, end, TIME, utc_offset_text(offset), marks, 96)
    records = sum(each.records for each in era)
    title = f"{labels.second(first)} to {labels.second(last)}"
    caption = f"{count_text(records, 'record')}; a bar is {duration_text(width)} wide."
    return Chart("over-time", title, caption, panels, colours, "Bytes and records, ")


def _stacked(
    rows: dict[tuple[int, str], list[int]], order: list[str], width: int, labels: PageLabels, offset: int
) -> tuple[list[Mark], list[Mark]]:
    """Return the bars; `offset`: what to add to UTC in ms, so that the axis, which is in UTC, shows the local time."""
    marks: tuple[list[Mark], list[Mark]] = ([], [])
    base: dict[int, list[int]] = {}
    for (bucket, name), amounts in sorted(rows.items(), key=lambda row: (row[0][0], order.index(row[0][1]))):
        below = base.setdefault(bucket, [0, 0])
        start, upto = bucket * width, (bucket + 1) * width
        tip = {"topic": name, "from": labels.time(start), "upto": labels.time(upto)}
        tip |= {"size": size_text(amounts[0]), "count": count_text(amounts[1], "record")}
        for number, amount in enumerate(amounts):
            high = below[number] + amount
            marks[number].append(Mark(start + offset, upto + offset, name, tip, low=below[number], high=high))
            below[number] = high
    return marks


def over_offsets(facts: PartitionFacts, name: str) -> tuple[Chart | None, list[str]]:
    """Draw the bytes and records of a partition by offset, with its offset gaps. Also returns text about what is too
    distant to draw."""
    kept, far = main_part(buckets_of(facts.offsets))
    texts = [f"{count_text(bucket.records, 'record')} at offsets from {bucket.first:,} on" for bucket in far[:FAR]]
    if not kept:
        return None, texts
    first, last = kept[0].first, kept[-1].last
    if facts.ended is not None and facts.ended.logEndOffset is not None:
        last = max(kept[-1].first, min(last, facts.ended.logEndOffset - 1))
    marks: tuple[list[Mark], list[Mark]] = ([], [])
    for bucket in _wider(kept, facts.offsets.width):
        end = min(bucket.last, last)
        tip = {"offsets": f"{bucket.first:,}..{end:,}", "size": size_text(bucket.bytes)}
        tip["count"] = count_text(bucket.records, "record")
        for number, amount in enumerate((bucket.bytes, bucket.records)):
            marks[number].append(Mark(bucket.first, end + 1, palette.BLUE, tip, high=amount))
    gaps = [gap for gap in facts.gaps if gap.last >= first and gap.first <= last]
    for both in marks:
        both += _gaps(gaps, facts)
    panels = bytes_and_records(first, last + 1, OFFSET, "offset", marks, 64)
    kind = "Bytes and records over offsets: "
    return Chart("over-offsets", name, "", panels, used(GAPS, marks[0]), kind), texts


def _gaps(gaps: list[Gap], facts: PartitionFacts) -> Iterator[Mark]:
    for gap in gaps:
        why = "damage" if gap.is_damage else "compacted" if facts.is_compacted else "no damage next to it"
        tip = {"gap": why, "offsets": f"{gap.first:,}..{gap.last:,}", "size": count_text(gap.size, "offset")}
        yield Mark(gap.first, gap.last + 1, f"gap: {why}", tip, shape=BEHIND)


def _wider(buckets: list[Bucket], width: int) -> list[Bucket]:
    """Merge buckets until there are at most BUCKETS."""
    span = buckets[-1].last - buckets[0].first + 1
    while span > width * BUCKETS:
        width *= 2
    made: dict[int, list[int]] = {}
    for bucket in buckets:
        row = made.setdefault(bucket.first // width, [0, 0])
        row[0] += bucket.bytes
        row[1] += bucket.records
    return [Bucket(at * width, (at + 1) * width - 1, size, records) for at, (size, records) in sorted(made.items())]


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
    total = sum(bucket.records for bucket in kept)
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
