"""Charts of transactions, as bars from their first offset to their marker, and of producers with their epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdump.incident.report.facts import PartitionFacts
from kdump.incident.report.html import palette
from kdump.incident.report.html.drawing import OFFSET, Chart, Mark, Note, Panel, used
from kdump.incident.report.html.labels import PageLabels
from kdump.questions.transactions.answer import HANGING, OPEN, Transaction
from kdump.render.amounts import duration_text, size_text
from kdump.render.style import cut_middle

ROWS = 30
"""Maximum producers in one chart."""
FITS = 0.07
"""Part of the axis that the bar of an epoch takes at least, if its label is drawn in it."""
STEP = 20
BREAKS = {
    "sequence-gap": "sequence gap",
    "sequence-duplicate": "repeated sequence",
    "sequence-epoch-start": "epoch not starting with 0",
    "producer-epoch-decreased": "older epoch",
}
"""Findings that are drawn at their offset in the producer chart."""


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
    marks = [_bar(row, labels.index(_who(row, names)), end) for row in rows]
    notes = [
        Note(mark.a, mark.row, "no marker →", is_end=True)
        for row, mark in zip(rows, marks)
        if _is_open(row) and mark.a - first > (end - first) / 8
    ]
    lines = []
    stable = facts.ended.lastStableOffset if facts.ended else None
    if stable is not None and first <= stable < end:  # read_committed consumers stop there
        lines.append(stable)
        is_late = (stable - first) * 2 > end - first
        notes.append(Note(stable, -1, f"last stable offset {stable:,}", is_late))
    panel = Panel(first, end, OFFSET, marks, "offset", labels, STEP, notes=notes, lines=lines)
    caption = _caption(facts, len(rows))
    return Chart("transactions", names.of(facts), caption, [panel], used(palette.STATE, marks), "Transactions: ")


def _first(row: Transaction) -> int:
    return row.firstOffset if row.firstOffset is not None else row.markerOffset or 0


def _who(row: Transaction, names: PageLabels) -> str:
    name = cut_middle(names.clean(row.transactionalId), 34) if row.transactionalId is not None else ""
    return f"{name} ({row.producerId})" if name else f"producer {row.producerId}"


def _is_open(row: Transaction) -> bool:
    return row.markerOffset is None and row.state in (OPEN, HANGING)


def _bar(row: Transaction, number: int, end: int) -> Mark:
    marker = row.markerOffset if row.markerOffset is not None else row.lastOffset or 0
    took = row.ended - row.begun if row.ended is not None and row.begun is not None else row.age
    tip = {
        "state": row.state,
        "offsets": f"{_first(row):,}.." + ("" if _is_open(row) else f"{marker:,}"),
        "records": f"{row.records:,}",
        "size": size_text(row.bytes),
        "took": duration_text(took) + (" so far" if _is_open(row) else ""),
        "epoch": str(row.producerEpoch if row.producerEpoch is not None else "?"),
        "marker": "none" if row.markerOffset is None else f"at offset {row.markerOffset:,}",
    }
    return Mark(_first(row), end if _is_open(row) else marker + 1, row.state, tip, number)


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
    marks, notes = [], []
    for row in rows:
        epochs = order.setdefault(row.producerId, [])
        colour = palette.SERIES[len(epochs) % len(palette.SERIES)]
        epochs.append(row.epoch)
        number = labels.index(whose.get(row.producerId, f"producer {row.producerId}"))
        tip = {"epoch": f"{row.epoch}", "offsets": f"{row.first:,}..{row.last:,}"}
        tip |= {"records": f"{row.records:,}", "batches": f"{row.batches:,}", "size": size_text(row.bytes)}
        marks.append(Mark(row.first, max(row.last, row.first) + 1, colour, tip, number))
        if row.last - row.first > FITS * (end - first):
            ink = "#ffffff" if colour in (palette.BLUE, palette.GREEN) else "#000000"
            notes.append(Note(row.first, number, f"epoch {row.epoch}", colour=ink))
    breaks = list(_breaks(facts, whose, names, labels, (end - first) / 250)) if broken else []
    caption = "Red lines mark batches with a sequence or epoch error." if breaks else ""
    if len(sizes) > ROWS:
        caption += f" Only the {ROWS} of {len(sizes):,} with the most bytes are drawn."
    panel = Panel(first, end, OFFSET, [*marks, *breaks], "offset", labels, STEP, notes=notes)
    return Chart("producers", names.of(facts), caption, [panel], kind="Producers and their epochs: ")


def _whose(facts: PartitionFacts, names: PageLabels) -> dict[int, str]:
    """Return the labels of producers with a transactional ID, by producer ID."""
    return {row.producerId: _who(row, names) for row in facts.transactions if row.transactionalId is not None}


def _breaks(
    facts: PartitionFacts, whose: dict[int, str], names: PageLabels, labels: list[str], size: float
) -> Iterator[Mark]:
    for finding in facts.findings:
        number = finding.producer_id
        if finding.code not in BREAKS or finding.offset is None or number is None:
            continue
        who = whose.get(number, f"producer {number}")
        if who in labels:
            tip = {"what": BREAKS[finding.code], "offset": f"{finding.offset:,}"}
            tip["message"] = cut_middle(names.clean(finding.message), 120)
            yield Mark(finding.offset, finding.offset + size, palette.RED, tip, labels.index(who))
