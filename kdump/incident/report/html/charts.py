"""Selects and creates the charts, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kdump.format.count_text import count_text
from kdump.incident.report.facts import PartitionFacts, PostMortem
from kdump.incident.report.html import producer_charts, segment_map, statistics_charts, throughput_charts
from kdump.incident.report.html.drawing import Chart
from kdump.incident.report.html.labels import PageLabels

FOCUS = 6
"""Maximum partitions that have their own chart of one kind."""


@dataclass
class ChartSet:
    """The charts by section of the page, and the text next to them."""

    maps: dict[str, list[Chart]] = field(default_factory=dict)
    map_first: str = ""
    map_text: str = ""
    time: list[Chart] = field(default_factory=list)
    time_text: list[str] = field(default_factory=list)
    offsets: list[Chart] = field(default_factory=list)
    offsets_text: list[str] = field(default_factory=list)
    transactions: list[Chart] = field(default_factory=list)
    transactions_omitted: int = 0
    producers: list[Chart] = field(default_factory=list)
    producers_omitted: int = 0
    batches: list[Chart] = field(default_factory=list)
    keys: list[Chart] = field(default_factory=list)

    @property
    def charts(self) -> list[Chart]:
        """All charts."""
        maps = [chart for charts in self.maps.values() for chart in charts]
        return [*maps, *self.time, *self.offsets, *self.transactions, *self.producers, *self.batches, *self.keys]


def draw_charts(made: PostMortem, names: PageLabels) -> ChartSet:
    """Create the charts of everything for which there is data."""
    drawn = ChartSet()
    strips = segment_map.SegmentMaps(made, names)
    if strips.rows:
        drawn.maps = {by: strips.charts(by) for by in segment_map.BY}
        drawn.map_first = strips.first
        if strips.left_out:
            drawn.map_text = (
                f"{len(strips.rows):,} of {count_text(strips.all, 'segment')} are drawn: no empty ones, and if there "
            )
            drawn.map_text += "are many, those with findings and the newest."
    drawn.time, drawn.time_text = throughput_charts.over_time(made, names)
    everything = [facts for facts in made.partitions if facts.segments]
    for facts in _focus(everything, lambda facts: facts.stats.soundBatches > 1):
        chart, note = throughput_charts.over_offsets(facts, names.of(facts))
        drawn.offsets += [chart] if chart is not None else []
        drawn.offsets_text += [f"{names.of(facts)}: {far} are too far away to be drawn" for far in note]
    with_transactions = [facts for facts in everything if facts.transactions]
    chosen = _focus(with_transactions, lambda facts: True)
    drawn.transactions = _made(producer_charts.transactions, chosen, names)
    drawn.transactions_omitted = len(with_transactions) - len(chosen)
    with_producers = [facts for facts in everything if facts.producers]
    chosen = _focus(with_producers, lambda facts: True, by_producers=True)
    drawn.producers = _made(producer_charts.producers, chosen, names)
    drawn.producers_omitted = len(with_producers) - len(chosen)
    stats = made.stats
    drawn.batches = [
        each for each in (statistics_charts.batch_fill(stats), statistics_charts.compression(stats)) if each is not None
    ]
    tops = (statistics_charts.top_keys(stats, names), statistics_charts.top_producers(stats))
    drawn.keys = [each for each in tops if each is not None]
    for charts in (drawn.offsets, drawn.transactions, drawn.producers):
        for number, each in enumerate(charts):
            each.name = f"{each.name}-{number + 1}"
    return drawn


def _focus(
    partitions: list[PartitionFacts], is_selected: Callable[[PartitionFacts], bool], *, by_producers: bool = False
) -> list[PartitionFacts]:
    """Return the most interesting partitions: those with findings, then those with most of what is drawn."""
    selected = [facts for facts in partitions if is_selected(facts)]

    def weight(facts: PartitionFacts) -> tuple[int, ...]:
        errors, warnings, held, size = facts.weight
        if by_producers:
            breaks = sum(count for (_, code), count in facts.codes.items() if code in producer_charts.BREAKS)
            return min(1, errors), breaks, facts.producerCount, size
        return errors, warnings, held, min(1, facts.gapCount), size

    return sorted(selected, key=weight, reverse=True)[:FOCUS]


def _made(
    make: Callable[[PartitionFacts, PageLabels], Chart | None], chosen: list[PartitionFacts], names: PageLabels
) -> list[Chart]:
    charts = (make(facts, names) for facts in chosen)
    return [chart for chart in charts if chart is not None]
