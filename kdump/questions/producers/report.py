"""Output of `kdump producers` for people: the producers of each partition, or what happened to them, in order."""

from __future__ import annotations

from typing import Any

from kdump.answer import answer_object
from kdump.check.finding import Finding
from kdump.format.count_text import count_text
from kdump.questions.producers.answer import PartitionProducers, Producer, ProducerEvent
from kdump.questions.summary_lines import SummaryLines, file_text, place_text
from kdump.render.amounts import duration_text
from kdump.render.sink import Sink
from kdump.render.state_tables import StateTables, style
from kdump.render.stdout import Output
from kdump.render.table import Table

BREAKS = (
    ("gaps", "gap", "gaps"),
    ("duplicates", "duplicate", "duplicates"),
    ("fenced", "fenced batch", "fenced batches"),
    ("epochStarts", "odd epoch start", "odd epoch starts"),
)


class ProducerReport(Sink[Any]):
    """Receives the answers as they come. If `lists`, or if the first partition was named by the user, each producer is
    a row; else each partition with producers is."""

    def __init__(self, output: Output, tables: StateTables, *, lists: bool) -> None:
        self.output = output
        self.tables = tables
        self.lines = SummaryLines(output)
        self.rows: Table | None = None
        self.shown = 0
        self.lists = lists
        self._begun = False
        self._summary: list[PartitionProducers] = []

    def part(self, name: str, *, was_named: bool = False) -> None:
        self.lists = self.lists or (was_named and not self._begun)
        self._begun = True

    def add(self, answer: Any) -> None:
        if isinstance(answer, (Producer, ProducerEvent)):
            if not self.lists:
                return
            value = answer_object(answer)
            if self.rows is None:
                if self.shown:
                    self.output.line("")
                self.rows = self.tables.open(value["type"])
                self.shown += 1
            self.rows.add(value, style(value))
        elif isinstance(answer, PartitionProducers):
            self._partition(answer)
        elif isinstance(answer, Finding):
            self.lines.keep_finding(answer)

    def _partition(self, partition: PartitionProducers) -> None:
        if not self.lists:
            if partition.producers:
                self._summary.append(partition)
            return
        if self.rows is not None:
            self.rows.flush()
            self.rows = None
            self.output.line("")
        elif self.lines.waiting and self.shown:
            self.output.line("")
        if partition.producers and self.shown:
            self._totals(partition)
        self.shown += self.lines.write()

    def _totals(self, partition: PartitionProducers) -> None:
        name = place_text(partition)
        count = partition.producers
        line = f"{name}: {count_text(count, 'producer')}"
        parts = [
            f"{getattr(partition, word):,} {word}"
            for word in ("live", "expired", "unknown")
            if getattr(partition, word)
        ]
        line += f": {', '.join(parts)}" if parts else ""
        for key, one, more in BREAKS:
            number = getattr(partition, key)
            line += f"; {count_text(number, one, more)}" if number else ""
        self.lines.text(line, name)
        if partition.stateOffset is not None:
            line = f"  at startup, a broker loads {file_text(partition.stateFrom)}"
            if partition.logEndOffset is not None and partition.logEndOffset > partition.stateOffset:
                line += f" and replays offsets {partition.stateOffset}..{partition.logEndOffset - 1}"
        elif partition.stateFrom == "log":
            line = _replay(partition)
        else:
            line = "  these files do not contain a broker's producer state" if partition.unknown else ""
        if line:
            self.lines.text(line)
        if partition.expired:
            self.lines.text(f"  expired: idle for {duration_text(partition.producerIdExpirationMs)} or more")
        self.lines.damages(partition.damages)

    def end(self) -> None:
        """Write what has waited for the end: the table of partitions, and the findings in them."""
        if self.lists:
            return
        if self._summary:
            self.shown += 1
            self.tables.write_summary("producerPartition", [*map(answer_object, self._summary)])
        if self.lines.waiting and self.shown:
            self.output.line("")
        self.shown += self.lines.write()


def _replay(partition: PartitionProducers) -> str:
    """Return what a broker does at startup without a snapshot that it can load."""
    start, end = partition.logStartOffset, partition.logEndOffset
    if start and end is not None and start >= end:
        return (
            f"  at startup, a broker replays nothing: the log starts at its end, {end}, and there is no newer .snapshot"
        )
    if start:
        return f"  at startup, a broker replays the log from offset {start}: there is no valid .snapshot above it"
    return "  at startup, a broker replays the whole log: there is no valid .snapshot"
