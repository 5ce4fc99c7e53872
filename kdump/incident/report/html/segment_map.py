"""Map of the segments: their regions in file order, colored by codec, producer, transaction or finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdump.check.finding import SEVERITIES
from kdump.format.count_text import count_text
from kdump.incident.report.facts import PartitionFacts, PostMortem, SegmentFacts
from kdump.incident.report.html import palette
from kdump.incident.report.html.drawing import PERCENT, Chart, Mark, Panel, unlike, used
from kdump.incident.report.html.labels import PageLabels
from kdump.incident.report.segment_strip import CONTROL, NO_BATCH, Cell, CellContent, coarser, joined
from kdump.io.source import CHECKSUMS
from kdump.log.region import PADDING
from kdump.questions.transactions.answer import HANGING, OPEN
from kdump.render.amounts import size_text

ROWS = 36
"""Maximum segments in one chart: as many as fit on a printed page."""
SEGMENTS = 120
"""Maximum segments that are drawn."""
CELLS = 6000
"""Maximum cells of all segments together."""
LEAST = 0.35
"""Minimum width of damage and findings, in percent of the row: three pixels, which are still visible."""
DAMAGE, ZEROS = "not a valid batch", "zeros"
VALID, UNVERIFIED, MARKERS = "valid", "checksum not verified", "marker"
OTHER, NOBODY = "other producers", "no producer"
OUTSIDE, UNKNOWN = "outside a transaction", "unknown"
BY = ("finding", "codec", "producer", "transaction")
TITLES = {"codec": "compression", "producer": "producer", "transaction": "transaction", "finding": "finding"}


class SegmentMaps:
    """Draws the segments of partitions, those with errors first."""

    def __init__(self, made: PostMortem, names: PageLabels) -> None:
        self.names = names
        self.rows: list[tuple[PartitionFacts, SegmentFacts]] = []
        drawn = sorted((facts for facts in made.partitions if facts.segments), key=_worst)
        segments = [(facts, segment) for facts in drawn for segment in facts.segments if segment.size]
        self.all = sum(facts.segmentCount for facts in made.partitions)
        self.rows = segments if len(segments) <= SEGMENTS else _chosen(drawn)
        self.max_cells = max(24, CELLS // max(1, len(self.rows)))
        self.producers = self._producers()
        self.valid = VALID if not made.totals.withheld[CHECKSUMS] else UNVERIFIED

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
        return [self._chart(by, number, self.rows[start : start + ROWS]) for number, start in enumerate(self._starts())]

    def _starts(self) -> range:
        return range(0, len(self.rows), ROWS)

    def _chart(self, by: str, number: int, rows: list[tuple[PartitionFacts, SegmentFacts]]) -> Chart:
        labels: list[str] = []
        marks: list[Mark] = []
        for row, (facts, segment) in enumerate(rows):
            base = f" @{_base(segment, self.names)}" if segment.path != "-" else ""
            labels.append(unlike(f"{self.names.of(facts)}{base}  {size_text(segment.size)}", labels))
            marks += [self._mark(by, row, facts, segment, cell) for cell in self._cells(by, facts, segment)]
            if by == "finding":  # the worst is drawn last, so that it is visible
                for mark in sorted(segment.marks, key=lambda mark: -SEVERITIES.index(mark.severity)):
                    more = f" and {count_text(mark.findings - 1, 'more finding')}" if mark.findings > 1 else ""
                    tip = {"finding": f"{mark.severity} {mark.code}{more}"}
                    marks.append(_place(row, segment, mark.start, mark.end, mark.severity, tip))
            if by == "transaction":
                marks += [_place(row, segment, *place) for place in _unended(facts, segment)]
        more = f"-{number + 1}" if len(self.rows) > ROWS else ""
        panel = Panel(0, 100, PERCENT, marks, "% of the file", labels)
        return Chart(f"map-{by}{more}", f"Segments by {TITLES[by]}", "", [panel], used(self._colours(by), marks))

    def _cells(self, by: str, facts: PartitionFacts, segment: SegmentFacts) -> list[Cell]:
        """Return the segment's cells, with a bounded number; adjacent ones that look the same are merged."""
        made: list[Cell] = []
        for cell in coarser(segment.cells, self.max_cells):
            before = made[-1].look if made else None
            is_same = before is not None and self._is(by, facts, before) == self._is(by, facts, cell.look)
            if is_same and before is not None and _what(by, before) == _what(by, cell.look):
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

    def _mark(self, by: str, row: int, facts: PartitionFacts, segment: SegmentFacts, cell: Cell) -> Mark:
        kind = self._is(by, facts, cell.look)
        tip = {by if by != "finding" else "is": kind, "what": _what(by, cell.look)}
        tip["offsets"] = "" if cell.first is None else f"{cell.first:,}..{cell.last:,}"
        tip |= {"batches": f"{cell.batches:,}", "records": f"{cell.records:,}"}
        return _place(row, segment, cell.start, cell.end, kind, tip, least=cell.look.codec in NO_BATCH)

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


def _place(
    row: int, segment: SegmentFacts, start: int, end: int, kind: str, tip: dict[str, str], *, least: bool = True
) -> Mark:
    """Return the mark of bytes of a segment; `least`: one that is visible however few they are."""
    size = max(1, segment.size)
    a, b = 100 * min(start, size) / size, 100 * min(end, size) / size
    if least and b - a < LEAST:
        a = min(a, 100 - LEAST)
        b = a + LEAST
    return Mark(a, b, kind, {"bytes": f"{start:,}..{end - 1:,}", **tip}, row)


def _unended(facts: PartitionFacts, segment: SegmentFacts) -> Iterator[tuple[int, int, str, dict[str, str]]]:
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
                tip = {"transaction": f"{row.state}: producer {row.producerId}", "offsets": f"{first:,}.."}
                yield cell.start, cell.end, row.state, tip
                break


def _worst(facts: PartitionFacts) -> tuple[int, int, int]:
    """Sort key: partitions with errors first, then with warnings, then with open transactions; otherwise in disk
    order."""
    errors, warnings, held, _ = facts.weight
    return -min(1, errors), -min(1, warnings), -min(1, held)


def _chosen(drawn: list[PartitionFacts]) -> list[tuple[PartitionFacts, SegmentFacts]]:
    """Return each partition's segments with findings and its newest segments, as many as there is room for."""
    most = max(1, SEGMENTS // max(1, len(drawn)))
    chosen: list[tuple[PartitionFacts, SegmentFacts]] = []
    for left, facts in zip(range(len(drawn), 0, -1), drawn):
        most = max(1, (SEGMENTS - len(chosen)) // left)
        marked = [each for each in facts.segments if any(mark.severity != "info" for mark in each.marks)][:most]
        others = [each for each in facts.segments if each not in marked]
        kept = marked + others[len(others) - (most - len(marked)) :] if most > len(marked) else marked
        chosen += [(facts, each) for each in facts.segments if each in kept and each.size]
    return chosen[:SEGMENTS]


def _base(segment: SegmentFacts, names: PageLabels) -> str:
    """Return the base offset in the file's name, without leading zeros."""
    stem = names.file_name(segment.path).partition(".")[0]
    return stem.lstrip("0") or "0" if stem.isdigit() else names.file_name(segment.path)[:30]


def _what(by: str, look: CellContent) -> str:
    """Return what pointing at a cell tells besides the color."""
    if look.codec in NO_BATCH:
        return "an invalid batch" if look.codec == "damaged" else look.codec
    if by != "transaction" or look.transaction is None:
        return ""
    return f"producer {look.producer}, from offset {look.transaction[1]:,}"
