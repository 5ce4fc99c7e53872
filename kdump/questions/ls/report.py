"""Output of `kdump ls`: a few lines about each log directory, then a table of its partitions, topics or segments; or
the same as JSON Lines. Table rows are made from the JSON objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any, NamedTuple

from kdump.answer import ANSWERS, BYTES, EPOCH_MS, NAME, TEXT, Key, Object, Shown, answer_keys, shown_keys
from kdump.cluster.directory_summary import LogDirectorySummary
from kdump.cluster.partition_summary import PartitionSummary
from kdump.cluster.segment_answer import segment_object
from kdump.format.count_text import count_text, first_of, offsets_text
from kdump.questions.ls.answer import directory_object, partition_object, topic_object, whole_size
from kdump.questions.ls.rows import LsRow
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, check_names, wrapped
from kdump.render.times import iso

MORE = "+?"
"""Suffix of formats and codecs if the list may be incomplete."""
WIDE = 40
"""Width from which names are truncated on a narrow terminal."""


def ls_columns(
    type_name: str, zone: tzinfo, names: list[str] | None, widest: int = 0, *, by_size: bool = False
) -> list[Column]:
    """Return the columns for objects of this type: the default ones, with all sizes if `by_size`, or those named.
    Raises UnknownColumn."""
    keys = answer_keys(ANSWERS[type_name])
    columns = {key.name: _column(key, zone) for key in keys}
    # Names are known before the rows are read: the first rows do not have to guess how wide that column will be.
    columns["name"] = Column("name", ROWS[type_name].ljust(widest), lambda row: printable(str(row["name"])))
    if widest > WIDE:
        columns["name"] = columns["name"]._replace(least=20, cuts=NAME)
    columns["notes"] = Column("notes", "notes", _notes, rank=8, least=30, cuts=TEXT)
    if names is None:
        shown = shown_keys(ANSWERS[type_name], "size" if by_size else "")
        return [columns[name] for name in ("name", *(key.name for key in shown), "notes")]
    check_names(names, columns)
    return [columns[name] for name in names]


ROWS = {"logDirectory": "directory", "partitionLog": "partition", "topicLogs": "topic", "logSegment": "segment"}


def _column(key: Key, zone: tzinfo) -> Column:
    show: Callable[[Any], str] = _text
    if key.unit == BYTES:
        show = size_text
    elif key.unit == EPOCH_MS:
        show = lambda value: iso(value, zone)  # noqa: E731
    more = MORE if key.name in ("formats", "compressions") else ""

    def cell(fields: Object) -> str:
        value = fields.get(key.name)
        shown_value = "-" if value is None else show(value)
        return shown_value + more if fields["partial"] else shown_value

    shown = key.shown or Shown()
    right = key.type.startswith("number") and key.unit != EPOCH_MS
    return Column(key.name, shown.label or key.name, cell, right, shown.rank)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(printable(str(item)) for item in value)
    return printable(str(value))


def _range(value: Any) -> tuple[int, int]:
    return (value["first"], value["last"])


def _notes(fields: Object) -> str:
    """Return what is unusual about a row."""
    start, local = fields.get("logStartOffset"), fields.get("localLogStartOffset")
    words = [f"on this disk from {local} on"] if local is not None and local != start else []
    lacks = fields.get("unreadableOffsets")
    if lacks:
        words.append(f"NOT READABLE, neither here nor in remote storage: {offsets_text(map(_range, lacks))}")
    if None not in (fields.get("highWatermark"), fields.get("logEndOffset")):
        words += ["high watermark above the log end"] if fields["highWatermark"] > fields["logEndOffset"] else []
    words += [f"UNREADABLE: {error}" for error in fields["errors"][:1]]
    if fields["damage"]:
        words.append(f"DAMAGED: {fields['damage']}")
    else:
        words += [f"{size_text(fields[name])} {name}" for name in ("torn", "padding") if fields[name]]
    words += [f"{size_text(fields[name])} {label}" for name, label in _LEFT if fields.get(name)]
    if fields.get("swapSegments") or fields.get("file", "").endswith(".swap"):
        words.append(f"{count_text(fields.get('swapSegments', 1), '.swap file')}: a startup completes the compaction")
    return printable("; ".join(words))


_LEFT = (("deletedSize", ".deleted"), ("unfinishedSize", "that a startup deletes"))


def row_object(row: LsRow) -> Object:
    """Return the JSON object of a row."""
    if row.segment is not None:
        return segment_object(row.segment, row.parts[0].clean)
    return topic_object(row.parts) if row.by_topic else partition_object(row.parts[0])


class DirectoryStart(NamedTuple):
    """A log directory, before its rows."""

    facts: LogDirectorySummary
    rows: Iterable[LsRow]


class PartitionStart(NamedTuple):
    """A partition, before the rows of its segments."""

    facts: PartitionSummary


class RowsEnd(NamedTuple):
    """The end of the rows of a directory or partition: so many of them are `shown`. `partition`: whose segments they
    are, if they are a partition's."""

    shown: int
    of: int
    partition: PartitionSummary | None


LsPart = DirectoryStart | PartitionStart | LsRow | RowsEnd


def ls_objects(answer: LsPart) -> Iterator[Object]:
    """Yield the JSON object of a part. A partition whose segments are listed follows them, because its end offset is
    known only then."""
    if isinstance(answer, DirectoryStart):
        yield directory_object(answer.facts)
    elif isinstance(answer, LsRow):
        yield row_object(answer)
    elif isinstance(answer, RowsEnd) and answer.partition is not None and answer.shown == answer.of:
        answer.partition.sum_up()
        yield partition_object(answer.partition)


def ls_row_objects(answer: LsPart) -> Iterator[Object]:
    """Yield the objects that are rows: not the partition that follows its segments."""
    if isinstance(answer, LsRow):
        yield row_object(answer)


class LsReport(Sink[LsPart]):
    """Writes text with tables. `by_size`: the rows are sorted by size, and show all sizes."""

    def __init__(self, output: Output, *, zone: tzinfo, names: list[str] | None, full: bool, by_size: bool) -> None:
        self.output = output
        self.zone, self.names, self.full, self.by_size = zone, names, full, by_size
        self.table: Table | None = None
        self._begun = False
        self._widest = 0
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
        lines = [printable(text)] if self.output.width is None else wrapped(printable(text), self.output.width - 4)
        for number, line in enumerate(lines):
            self.output.line(("    " if number else "  ") + self.output.paint(line, style))

    def _row(self, row: LsRow) -> None:
        fields = row_object(row)
        self._partial = self._partial or fields["partial"]
        if self.table is None:
            columns = ls_columns(fields["type"], self.zone, self.names, self._widest, by_size=self.by_size)
            self.table = Table(columns, self.output, full=self.full, chosen=self.names is not None)
        self.table.add({**fields, "name": row.name}, "bad" if fields["damage"] or fields["errors"] else "")

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
    fields = directory_object(facts)
    if fields["clusterId"] is None and fields["nodeId"] is None:
        lines = [("no meta.properties with cluster and node IDs", "")]
    else:
        directory = f", directory {fields['directoryId']}" if fields["directoryId"] else ""
        version = fields["metaPropertiesVersion"]
        lines = [
            (
                f"cluster {fields['clusterId']}, node {fields['nodeId']}{directory} (meta.properties version"
                f" {version})",
                "",
            )
        ]
    written = f" {iso(facts.dated, zone)}" if facts.dated is not None else ""
    if facts.clean:
        epoch = f", broker epoch {fields['brokerEpoch']}" if fields["brokerEpoch"] else ""
        lines.append((f"clean shutdown: .kafka_cleanshutdown written{written}{epoch}", ""))
    elif facts.clean is False:
        lines.append(
            (f"no clean shutdown: the broker is running or has crashed; last checkpoint written{written}", "torn")
        )
    counts = [count_text(fields[name], name[:-1]) for name in ("topics", "partitions", "segments")]
    lines.append((f"{', '.join(counts)}: {size_text(fields['size'])}{_other_sizes(fields)}", ""))
    stray = [f"{each.name} ({size_text(whole_size(each))})" for each in facts.partitions if each.partition.state]
    if facts.broken:
        lines.append((f"damaged or unreadable: {first_of(fields['broken'])}", "bad"))
    lists = (
        ("not live", stray),
        ("not named topic-partition", fields["unknown"]),
        ("not Kafka's files", fields["otherFiles"]),
        ("directory missing", fields["absent"]),
    )
    lines += [(f"{heading}: {first_of(names)}", "torn") for heading, names in lists if names]
    if facts.remote_cache:
        lines.append((f"cached remote indexes: {size_text(facts.remote_cache)}", ""))
    return lines


def partition_lines(facts: PartitionSummary) -> list[str]:
    """Return one or two lines that describe a partition directory."""
    fields = partition_object(facts)
    lines = [f"{count_text(fields['segments'], 'segment')}: {size_text(fields['size'])}{_other_sizes(fields)}"]
    checkpointed = {"log start": facts.log_start, "high watermark": facts.high_watermark}
    checkpointed["recovery point"] = facts.checkpoints.get("recovery-point-offset")
    offsets = ", ".join(f"{name} {offset}" for name, offset in checkpointed.items() if offset is not None)
    return lines + ([offsets] if offsets else [])


def _other_sizes(fields: Object) -> str:
    """Return the sizes of the files that are not segments."""
    sizes = f"; {size_text(fields['besideSize'])} of indexes and other files" if fields["besideSize"] else ""
    sizes += f"; {size_text(fields['deletedSize'])} of .deleted files" if fields["deletedSize"] else ""
    left = fields["unfinishedSize"]
    return sizes + (f"; {size_text(left)} that a startup deletes" if left else "")
