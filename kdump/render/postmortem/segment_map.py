"""Map of the segments: their regions in file order, colored by codec, producer, transaction or finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kdump.check.finding import SEVERITIES
from kdump.forensics.answers import HANGING, OPEN
from kdump.forensics.postmortem.facts import PartitionFacts, PostMortem, SegmentFacts
from kdump.forensics.postmortem.segment_strip import CONTROL, NO_BATCH, Cell, CellContent, coarser, joined
from kdump.format.count_text import count_text
from kdump.log.region import PADDING
from kdump.log.source import CHECKSUMS
from kdump.render.amounts import size_text
from kdump.render.postmortem import palette
from kdump.render.postmortem.labels import PageLabels
from kdump.render.postmortem.vega import LABELS, WIDTH, Chart, colour, tooltips, zoomable
from kdump.render.postmortem.vega import rows as rows_of

ROWS = 36
"""Maximum segments in one chart: as many as fit on a printed page."""
SEGMENTS = 120
"""Maximum segments that are drawn."""
CELLS = 6000
"""Maximum cells of all segments together."""
LEAST = 0.35
"""Minimum width of damage and findings, in percent of the row: three pixels, which are still visible."""
HEIGHT = 15

DAMAGE, ZEROS = "not a valid batch", "zeros"
VALID, UNVERIFIED, MARKERS = "valid", "checksum not verified", "marker"
OTHER, NOBODY = "other producers", "no producer"
OUTSIDE, UNKNOWN = "outside a transaction", "unknown"
BY = ("finding", "codec", "producer", "transaction")
TITLES = {
    "codec": "compression",
    "producer": "producer",
    "transaction": "transaction",
    "finding": "finding",
}


class SegmentMaps:
    """Draws the segments of partitions, those with errors first."""

    def __init__(self, made: PostMortem, names: PageLabels) -> None:
        self.names = names
        self.rows: list[tuple[PartitionFacts, SegmentFacts]] = []
        drawn = sorted((facts for facts in made.partitions if facts.segments), key=_worst)
        found = [(facts, segment) for facts in drawn for segment in facts.segments if segment.size]
        self.all = sum(facts.segmentCount for facts in made.partitions)
        self.rows = found if len(found) <= SEGMENTS else _chosen(drawn)
        self.max_cells = max(24, CELLS // max(1, len(self.rows)))
        self.producers = self._producers()
        self.valid = VALID if not made.totals.not_in_bundle[CHECKSUMS] else UNVERIFIED

    @property
    def first(self) -> str:
        """The map that is shown first: findings or, if there are none, codecs."""
        return "finding" if any(segment.marks for _, segment in self.rows) else "codec"

    @property
    def left_out(self) -> int:
        return self.all - len(self.rows)

    def _producers(self) -> dict[str, str]:
        sizes: Counter[int] = Counter()
        for _, segment in self.rows:
            for cell in segment.cells:
                if cell.look.codec not in NO_BATCH and cell.look.producer >= 0:
                    sizes[cell.look.producer] += cell.end - cell.start
        top = [f"producer {number}" for number, _ in sizes.most_common(len(palette.SERIES))]
        return palette.series(top, OTHER if len(sizes) > len(top) else "") | {NOBODY: palette.PALE}

    def charts(self, by: str) -> list[Chart]:
        """Draw the map by one of BY, as charts of one page each."""
        return [self._chart(by, number, self.rows[at : at + ROWS]) for number, at in enumerate(self._starts())]

    def _starts(self) -> range:
        return range(0, len(self.rows), ROWS)

    def _chart(self, by: str, number: int, rows: list[tuple[PartitionFacts, SegmentFacts]]) -> Chart:
        labels: list[str] = []
        data: list[dict[str, Any]] = []
        for facts, segment in rows:
            base = f" @{_base(segment, self.names)}" if segment.path != "-" else ""
            label = f"{self.names.of(facts)}{base}  {size_text(segment.size)}"
            while label in labels:
                label += "'"
            labels.append(label)
            data += [self._row(by, label, facts, segment, cell) for cell in self._cells(by, facts, segment)]
            if by == "finding":
                data += [
                    self._place(label, segment, mark.start, mark.end)
                    | {
                        "is": mark.severity,
                        "what": mark.code
                        + (f" and {count_text(mark.findings - 1, 'more finding')}" if mark.findings > 1 else ""),
                    }
                    for mark in sorted(segment.marks, key=lambda each: -SEVERITIES.index(each.severity))
                ]  # the worst is drawn last, so that it is visible
            if by == "transaction":
                data += [self._place(label, segment, *each[:2]) | each[2] for each in _unended(facts, segment)]
        used = {row["is"] for row in data}
        colours = {name: code for name, code in self._colours(by).items() if name in used}
        y, height = rows_of("segment", labels, HEIGHT + 4)
        y["axis"] |= {"labelPadding": 6, "minExtent": LABELS, "maxExtent": LABELS}
        spec = {
            "data": {"values": data},
            "width": WIDTH,
            "height": height,
            "params": zoomable(),
            "mark": {"type": "bar", "height": HEIGHT, "clip": True, "cornerRadius": 0},
            "encoding": {
                "y": y,
                "x": {
                    "field": "a",
                    "type": "quantitative",
                    "scale": {"domain": [0, 100], "nice": False},
                    "title": "% of the file",
                },
                "x2": {"field": "b"},
                "color": colour("is", colours),
                "tooltip": tooltips("segment", "bytes", "is", "what", "offsets", "batches", "records"),
            },
        }
        more = f"-{number + 1}" if len(self.rows) > ROWS else ""
        title = f"Segments by {TITLES[by]}"
        return Chart(f"map-{by}{more}", title, "", spec)

    def _cells(self, by: str, facts: PartitionFacts, segment: SegmentFacts) -> list[Cell]:
        """Return the segment's cells, with a bounded number; in the map of findings, adjacent valid cells are
        merged."""
        cells = coarser(segment.cells, self.max_cells)
        if by != "finding":
            return cells
        made: list[Cell] = []
        for cell in cells:
            if made and self._is(by, facts, made[-1].look) == self._is(by, facts, cell.look) == self.valid:
                made[-1] = joined(made[-1], cell)
            else:
                made.append(cell)
        return made

    def _colours(self, by: str) -> dict[str, str]:
        damage = {DAMAGE: palette.NO_BATCH, ZEROS: palette.PADDING}
        if by == "codec":
            return palette.CODEC | {MARKERS: palette.MARKER} | damage
        if by == "producer":
            return self.producers | damage
        if by == "transaction":
            state = {f"{name}": code for name, code in palette.STATE.items()}
            return {OUTSIDE: palette.PALE} | state | {UNKNOWN: palette.GREY} | damage
        return {self.valid: palette.PALE} | {DAMAGE: palette.GREY, ZEROS: palette.YELLOW} | palette.SEVERITY

    def _row(self, by: str, label: str, facts: PartitionFacts, segment: SegmentFacts, cell: Cell) -> dict[str, Any]:
        look = cell.look
        wide = look.codec in NO_BATCH
        row = self._place(label, segment, cell.start, cell.end, least=wide)
        row["is"] = self._is(by, facts, look)
        row["what"] = "" if by == "finding" and not wide else _what(facts, look)
        if cell.first is not None:
            row["offsets"] = f"{cell.first:,}..{cell.last:,}"
        row["batches"], row["records"] = f"{cell.batches:,}", f"{cell.records:,}"
        return row

    def _is(self, by: str, facts: PartitionFacts, look: CellContent) -> str:
        if look.codec in NO_BATCH:
            return ZEROS if look.codec == PADDING else DAMAGE
        if by == "finding":
            return self.valid
        if by == "codec":
            return MARKERS if look.codec == CONTROL else look.codec
        if by == "producer":
            name = f"producer {look.producer}"
            return NOBODY if look.producer < 0 else name if name in self.producers else OTHER
        if look.transaction is None:
            return OUTSIDE
        return facts.states.get(look.transaction, UNKNOWN)

    @staticmethod
    def _place(label: str, segment: SegmentFacts, start: int, end: int, *, least: bool = True) -> dict[str, Any]:
        size = max(1, segment.size)
        a, b = 100 * min(start, size) / size, 100 * min(end, size) / size
        if least and b - a < LEAST:
            a = min(a, 100 - LEAST)
            b = a + LEAST
        return {"segment": label, "a": round(a, 4), "b": round(b, 4), "bytes": f"{start:,}..{end - 1:,}"}


def _unended(facts: PartitionFacts, segment: SegmentFacts) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield where transactions without a marker begin, as bytes of the cell there and what is drawn, hanging ones last:
    the cell shows what takes most of its bytes."""
    rows = [row for row in facts.transactions if row.state in (OPEN, HANGING)]
    for row in sorted(rows, key=lambda row: row.state == HANGING):
        first = row.firstOffset
        for cell in segment.cells:
            if (
                first is not None
                and cell.first is not None
                and cell.last is not None
                and cell.first <= first <= cell.last
            ):
                what = f"transaction of producer {row.producerId}"
                yield cell.start, cell.end, {"is": row.state, "what": what, "offsets": f"{first:,}.."}
                break


def _worst(facts: PartitionFacts) -> tuple[int, int, int]:
    """Sort key: partitions with errors first, then with warnings, then with open transactions; otherwise in disk
    order."""
    errors, warnings, held, _ = facts.weight
    return -min(1, errors), -min(1, warnings), -min(1, held)


def _chosen(drawn: list[PartitionFacts]) -> list[tuple[PartitionFacts, SegmentFacts]]:
    """Return each partition's segments with findings and its newest segments, as many as there is room for."""
    room = max(1, SEGMENTS // max(1, len(drawn)))
    found: list[tuple[PartitionFacts, SegmentFacts]] = []
    for left, facts in zip(range(len(drawn), 0, -1), drawn):
        room = max(1, (SEGMENTS - len(found)) // left)
        marked = [each for each in facts.segments if any(mark.severity != "info" for mark in each.marks)][:room]
        others = [each for each in facts.segments if each not in marked]
        kept = marked + others[len(others) - (room - len(marked)) :] if room > len(marked) else marked
        found += [(facts, each) for each in facts.segments if each in kept and each.size]
    return found[:SEGMENTS]


def _base(segment: SegmentFacts, names: PageLabels) -> str:
    """Return the base offset in the file's name, without leading zeros."""
    stem = names.file_name(segment.path).partition(".")[0]
    return stem.lstrip("0") or "0" if stem.isdigit() else names.file_name(segment.path)[:30]


def _what(facts: PartitionFacts, look: CellContent) -> str:
    if look.codec in NO_BATCH:
        return "an invalid batch" if look.codec == "damaged" else look.codec
    words = ["markers" if look.codec == CONTROL else f"compression {look.codec}"]
    if look.producer >= 0:
        words.append(f"producer {look.producer}")
    if look.transaction is not None:
        words.append(f"transaction from offset {look.transaction[1]:,}: {facts.states.get(look.transaction, UNKNOWN)}")
    return ", ".join(words)
