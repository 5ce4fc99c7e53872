"""Output of `kdump ls`: a few lines about each log directory, then a table of its partitions, topics or segments; or
the same as JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import partial

from kdump.answer import NAME, row_style
from kdump.cluster.directory_summary import LogDirectorySummary
from kdump.cluster.partition_summary import PartitionSummary
from kdump.cluster.segment_answer import ListedSegment, row_batches
from kdump.format.count_text import count_text, first_of, offsets_text
from kdump.questions.ls.answer import (
    FileSizes,
    ListedPartition,
    directory_answer,
    partition_answer,
)
from kdump.questions.ls.rows import LsRow
from kdump.questions.ls.run import DirectoryStart, Listed, LsPart, RowsEnd, row_answer
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import known_columns, named
from kdump.render.stdout import Output
from kdump.render.table import Column, Table
from kdump.render.times import iso

MORE = "+?"
"""Suffix of formats and codecs if the list may be incomplete."""
WIDE = 40
"""Width from which names are truncated on a narrow terminal."""


def _list_text(text: Callable[[Listed], str], row: Listed) -> str:
    return text(row) + MORE * row_batches(row).partial


def _notes(row: Listed) -> str:
    """Return what is unusual about a row."""
    words, batches = list[str](), row_batches(row)
    if isinstance(row, ListedPartition):
        if row.localLogStartOffset not in (None, row.logStartOffset):
            words.append(f"on this disk from {row.localLogStartOffset} on")
        if row.unreadableOffsets:
            lacks = offsets_text(row.unreadableOffsets)
            words.append(f"NOT READABLE, neither here nor in remote storage: {lacks}")
        if row.highWatermark is not None and row.logEndOffset is not None and row.highWatermark > row.logEndOffset:
            words.append("high watermark above the log end")
    words += [f"UNREADABLE: {path_text(error)}" for error in batches.errors[:1]]
    sizes = [] if batches.damage else [(batches.torn, "torn"), (batches.padding, "padding")]
    words += [f"DAMAGED: {batches.damage}"] if batches.damage else []
    if isinstance(row, ListedSegment):
        swaps = int(row.file.endswith(".swap"))
    else:
        sizes += [(row.sizes.deletedSize, ".deleted"), (row.sizes.unfinishedSize, "that a startup deletes")]
        swaps = row.sizes.swapSegments
    words += [f"{size_text(size)} {label}" for size, label in sizes if size]
    if swaps:
        words.append(f"{count_text(swaps, '.swap file')}: a startup completes the compaction")
    return printable("; ".join(words))


class LsReport(Sink[LsPart]):
    """Writes text with tables. `by_size`: the rows are sorted by size, and show all sizes."""

    def __init__(self, output: Output, *, zone: tzinfo, names: list[str] | None, full: bool, by_size: bool) -> None:
        self.output = output
        self.zone, self.names, self.full, self.by_size = zone, names, full, by_size
        self.table: Table | None = None
        self._begun = False
        self._widest = 0
        self._name = ""
        """Of the current row."""
        self._partial = False

    def _begin(self, title: str) -> None:
        if self._begun:
            self.output.line("")
        self._begun = True
        self.output.line(self.output.paint(printable(path_text(title)), "head"))

    def add(self, answer: LsPart) -> None:
        if isinstance(answer, LsRow):
            self._row(answer)
        elif isinstance(answer, RowsEnd):
            self._end(answer.shown, answer.of)
        elif isinstance(answer, DirectoryStart):
            self._directory(answer.facts, answer.rows)
        else:
            self._partition(answer.facts)

    def _directory(self, facts: LogDirectorySummary, rows: Iterable[LsRow]) -> None:
        self._begin(facts.directory.path)
        for line, style in directory_lines(facts, self.zone):
            self._text(line, style)
        self.output.tick()
        self._widest = max((len(path_text(row.name)) for row in rows), default=0)

    def _partition(self, facts: PartitionSummary) -> None:
        self._begin(facts.partition.path)
        for line in partition_lines(facts):
            self._text(line, "")

    def _text(self, text: str, style: str) -> None:
        for line in self.output.wrapped("  " + printable(text), 4):
            self.output.line(self.output.paint(line, style))

    def _row(self, row: LsRow) -> None:
        listed, self._name = row_answer(row), row.name
        self._partial = self._partial or row_batches(listed).partial
        if self.table is None:
            self.table = Table(self._columns(type(listed)), self.output, full=self.full, chosen=self.names is not None)
        self.table.add(listed, row_style(listed))

    def _columns(self, cls: type) -> list[Column]:
        """Return the columns for answers of this class. Raises UnknownColumn."""
        cells = {"notes": _notes, "name": lambda row: printable(self._name)}
        default, known = known_columns(cls, self.zone, cells, sorted_by="size" if self.by_size else "")
        for column in (known["formats"], known["compressions"]):
            known[column.name] = column._replace(cell=partial(_list_text, column.cell))
        # Names are known before the rows are read: the first rows do not have to guess how wide that column will be.
        name = known["name"]._replace(label=known["name"].label.ljust(self._widest))
        known["name"] = name._replace(least=20, cuts=NAME) if self._widest > WIDE else name
        return named(self.names, default, known)

    def tick(self) -> None:
        if self.table is not None:
            self.table.tick()

    def _end(self, shown: int, of: int) -> None:
        if self.table is not None:
            self.table.flush()
        if shown < of:
            self.output.line(self.output.paint(f"{shown:,} of {of:,} shown", "dim"))
        self.table, self._widest = None, 0
        self.output.tick()

    def end(self) -> None:
        if self._partial and (self.names is None or {"formats", "compressions"} & set(self.names)):
            note = f"{MORE}: not all headers were read: there may be more formats and codecs, and older records"
            self.output.line(self.output.paint(note, "dim"))


def directory_lines(facts: LogDirectorySummary, zone: tzinfo) -> list[tuple[str, str]]:
    """Return a few lines that describe a log directory, each with its style."""
    answer = directory_answer(facts)
    if answer.clusterId is None and answer.nodeId is None:
        lines = [("no meta.properties with cluster and node IDs", "")]
    else:
        directory = f", directory {answer.directoryId}" if answer.directoryId else ""
        version = f" (meta.properties version {answer.metaPropertiesVersion})"
        lines = [(f"cluster {answer.clusterId}, node {answer.nodeId}{directory}{version}", "")]
    written = f" {iso(answer.dated, zone)}" if answer.dated is not None else ""
    if answer.cleanShutdown:
        epoch = f", broker epoch {answer.brokerEpoch}" if answer.brokerEpoch else ""
        lines.append((f"clean shutdown: .kafka_cleanshutdown written{written}{epoch}", ""))
    elif answer.cleanShutdown is False:
        lines.append(
            (f"no clean shutdown: the broker is running or has crashed; last checkpoint written{written}", "torn")
        )
    counts = ((answer.topics, "topic"), (answer.partitions, "partition"), (answer.sizes.segments, "segment"))
    counted = ", ".join(count_text(*count) for count in counts)
    lines.append((f"{counted}: {size_text(answer.sizes.size)}{_other_sizes(answer.sizes)}", ""))
    if answer.broken:
        lines.append((f"damaged or unreadable: {first_of([*map(path_text, answer.broken)])}", "bad"))
    lists = (
        ("not live", [f"{each.name} ({size_text(each.size)})" for each in answer.notLive]),
        ("not named topic-partition", [*map(path_text, answer.unknown)]),
        ("not Kafka's files", [*map(path_text, answer.otherFiles)]),
        ("directory missing", [*map(path_text, answer.absent)]),
    )
    lines += [(f"{heading}: {first_of(names)}", "torn") for heading, names in lists if names]
    if answer.remoteCacheSize:
        lines.append((f"cached remote indexes: {size_text(answer.remoteCacheSize)}", ""))
    return lines


def partition_lines(facts: PartitionSummary) -> list[str]:
    """Return one or two lines that describe a partition directory."""
    sizes = partition_answer(facts).sizes
    lines = [f"{count_text(sizes.segments, 'segment')}: {size_text(sizes.size)}{_other_sizes(sizes)}"]
    checkpointed = {"log start": facts.log_start, "high watermark": facts.high_watermark}
    checkpointed["recovery point"] = facts.checkpoints.get("recovery-point-offset")
    offsets = ", ".join(f"{name} {offset}" for name, offset in checkpointed.items() if offset is not None)
    return lines + ([offsets] if offsets else [])


def _other_sizes(sizes: FileSizes) -> str:
    """Return the sizes of the files that are not segments."""
    others = f"; {size_text(sizes.besideSize)} of indexes and other files" if sizes.besideSize else ""
    others += f"; {size_text(sizes.deletedSize)} of .deleted files" if sizes.deletedSize else ""
    return others + (f"; {size_text(sizes.unfinishedSize)} that a startup deletes" if sizes.unfinishedSize else "")
