"""What `kdump ls` shows: a few lines about a log directory, then a table of its partitions, topics or segments; or the
same as JSON Lines. The rows of a table are the JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from textwrap import wrap
from typing import Any, Protocol

from kdump.render import jsonl
from kdump.render.columns import UnknownColumn
from kdump.render.escape import path_text, printable
from kdump.render.output import Output
from kdump.render.overview_keys import (
    OVERVIEW_TYPES,
    Object,
    directory_object,
    partition_object,
    segment_object,
    topic_object,
    whole_size,
)
from kdump.render.report import size_text
from kdump.render.style import painter
from kdump.render.table import Column, Table
from kdump.render.times import iso
from kdump.state.logdir import DirectoryFacts
from kdump.state.overview import Row
from kdump.state.partition_log import PartitionFacts

MORE = "+?"
"""Behind formats and codecs that may not be all."""
WIDE = 40
"""Columns of a name from which on it is cut on a narrow terminal."""
SHOWN = 5
"""Names that are told of a longer list."""


def row_object(row: Row) -> Object:
    """The JSON object of a row."""
    if row.segment is not None:
        return segment_object(row.segment, row.parts[0].clean)
    return topic_object(row.parts) if row.by_topic else partition_object(row.parts[0])


class OverviewView(Protocol):
    """One view a format. Rows come behind the directory, or the partition, that they are in."""

    def directory(self, facts: DirectoryFacts, rows: list[Row]) -> None: ...

    def partition(self, facts: PartitionFacts) -> None: ...

    def row(self, row: Row) -> None: ...

    def tick(self) -> None: ...

    def end(self, shown: int, of: int) -> None:
        """No more rows of that directory come."""

    def finish(self) -> None:
        """Nothing more comes."""


class JsonOverview:
    """JSON Lines. A partition whose segments are the rows stands behind them, for only then its end is known."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self._partition: PartitionFacts | None = None

    def directory(self, facts: DirectoryFacts, rows: list[Row]) -> None:
        self.output.line(jsonl.line(directory_object(facts)))

    def partition(self, facts: PartitionFacts) -> None:
        self._partition = facts

    def row(self, row: Row) -> None:
        self.output.line(jsonl.line(row_object(row)))

    def tick(self) -> None:
        self.output.tick()

    def end(self, shown: int, of: int) -> None:
        if self._partition is not None and shown == of:
            self._partition.sum_up()
            self.output.line(jsonl.line(partition_object(self._partition)))
        self._partition = None
        self.output.flush()

    def finish(self) -> None:
        self.output.flush()


class TableOverview:
    """For people."""

    def __init__(self, output: Output, *, zone: tzinfo, names: list[str] | None, full: bool) -> None:
        self.output = output
        self.zone, self.names, self.full = zone, names, full
        self.paint = painter(output.colour)
        self.table: Table | None = None
        self._begun = False
        self._widest = 0
        self._partial = False

    def _begin(self, title: str) -> None:
        if self._begun:
            self.output.line("")
        self._begun = True
        self.output.line(self.paint(printable(path_text(title)), "head"))

    def directory(self, facts: DirectoryFacts, rows: list[Row]) -> None:
        self._begin(facts.directory.path)
        for text, style in directory_lines(facts, self.zone):
            self._text(text, style)
        self.output.flush()
        self._widest = max((len(path_text(row.name)) for row in rows), default=0)

    def partition(self, facts: PartitionFacts) -> None:
        self._begin(facts.partition.path)
        for text in partition_lines(facts):
            self._text(text, "")

    def _text(self, text: str, style: str) -> None:
        lines = [printable(text)] if self.output.width is None else wrap(printable(text), self.output.width - 4)
        for number, line in enumerate(lines):
            self.output.line(("    " if number else "  ") + self.paint(line, style))

    def row(self, row: Row) -> None:
        said = row_object(row)
        self._partial = self._partial or said["partial"]
        if self.table is None:
            columns = overview_columns(said["type"], self.zone, self.names, self._widest)
            self.table = Table(columns, self.output, full=self.full, chosen=self.names is not None)
        self.table.add({**said, "name": row.name}, "bad" if said["damage"] or said["errors"] else "")

    def tick(self) -> None:
        if self.table is not None:
            self.table.tick()

    def end(self, shown: int, of: int) -> None:
        if self.table is not None:
            self.table.flush()
        if shown < of:
            self.output.line(self.paint(f"{shown:,} of {of:,} shown", "dim"))
        self.table, self._widest = None, 0
        self.output.flush()

    def finish(self) -> None:
        if self._partial and (self.names is None or {"formats", "compressions"} & set(self.names)):
            text = f"{MORE}: not all headers were read, so there may be more formats and codecs, and older records"
            self.output.line(self.paint(text, "dim"))
        self.output.flush()


def directory_lines(facts: DirectoryFacts, zone: tzinfo) -> list[tuple[str, str]]:
    """The log directory in a few lines, each with its style."""
    said = directory_object(facts)
    if said["clusterId"] is None and said["nodeId"] is None:
        lines = [("no meta.properties that says whose it is", "")]
    else:
        directory = f", directory {said['directoryId']}" if said["directoryId"] else ""
        version = said["metaPropertiesVersion"]
        lines = [
            (f"cluster {said['clusterId']}, node {said['nodeId']}{directory} (meta.properties version {version})", "")
        ]
    written = f" {iso(facts.dated, zone)}" if facts.dated is not None else ""
    if facts.clean:
        epoch = f", broker epoch {said['brokerEpoch']}" if said["brokerEpoch"] else ""
        lines.append((f"shut down cleanly: mark written{written}{epoch}", ""))
    elif facts.clean is False:
        lines.append((f"no clean shutdown: it runs, or has crashed; last checkpoint written{written}", "torn"))
    counts = [_many(said[name], name[:-1]) for name in ("topics", "partitions", "segments")]
    lines.append((f"{', '.join(counts)}: {size_text(said['size'])}{_beside(said)}", ""))
    stray = [f"{each.name} ({size_text(whole_size(each))})" for each in facts.partitions if each.partition.state]
    if facts.broken:
        lines.append((f"damaged, or not to be read: {_some(said['broken'])}", "bad"))
    lists = (
        ("not live", stray),
        ("not named topic-partition", said["unknown"]),
        ("none of Kafka's files", said["otherFiles"]),
        ("in the checkpoints and not here", said["absent"]),
    )
    lines += [(f"{what}: {_some(names)}", "torn") for what, names in lists if names]
    if facts.remote_cache:
        lines.append((f"copies of a tier's indexes: {size_text(facts.remote_cache)}", ""))
    return lines


def partition_lines(facts: PartitionFacts) -> list[str]:
    """A partition's directory in a line or two."""
    said = partition_object(facts)
    lines = [f"{_many(said['segments'], 'segment')}: {size_text(said['size'])}{_beside(said)}"]
    noted = {"log start": facts.log_start, "high watermark": facts.high_watermark}
    noted["recovery point"] = facts.checkpoints.get("recovery-point-offset")
    offsets = ", ".join(f"{what} {offset}" for what, offset in noted.items() if offset is not None)
    return lines + ([offsets] if offsets else [])


def _beside(said: Object) -> str:
    """The sizes of what is no segment."""
    text = f"; {size_text(said['besideSize'])} of indexes and other files" if said["besideSize"] else ""
    text += f"; {size_text(said['deletedSize'])} of .deleted files" if said["deletedSize"] else ""
    return text + (f"; {size_text(said['unfinishedSize'])} of .swap and .cleaned" if said["unfinishedSize"] else "")


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _many(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def overview_columns(type_name: str, zone: tzinfo, names: list[str] | None, widest: int = 0) -> list[Column]:
    """The columns of a table of such objects: the default ones, or those named. Raises UnknownColumn."""
    known = {key.name: _column(key.name, key.unit, zone) for key in OVERVIEW_TYPES[type_name]}
    # Names are known before the rows are read: the first rows do not have to guess how wide that column will be.
    known["name"] = Column("name", ROWS[type_name].ljust(widest), lambda said: printable(str(said["name"])))
    if widest > WIDE:
        known["name"] = known["name"]._replace(least=20)
    for name, label, rank in RANKED:
        if name in known:
            known[name] = known[name]._replace(label=label, rank=rank)
    known["notes"] = Column("notes", "notes", _notes, rank=8, least=12)
    if names is None:
        return [known[name] for name in DEFAULT[type_name]]
    for name in names:
        if name not in known:
            raise UnknownColumn(f"no column {name!r}; there are {', '.join(known)}")
    return [known[name] for name in names]


ROWS = {"logDirectory": "directory", "partitionLog": "partition", "topicLogs": "topic", "logSegment": "segment"}
RANKED = (
    ("segments", "segments", 5),
    ("partitions", "partitions", 8),
    ("size", "size", 9),
    ("logStartOffset", "logStart", 4),
    ("highWatermark", "highWatermark", 3),
    ("logEndOffset", "logEnd", 8),
    ("offsets", "offsets", 7),
    ("records", "records", 2),
    ("batches", "batches", 1),
    ("oldestTimestamp", "oldest", 3),
    ("newestTimestamp", "newest", 7),
    ("formats", "magic", 2),
    ("compressions", "codecs", 6),
    ("beside", "beside", 2),
    ("lastOffset", "lastOffset", 8),
    ("firstOffset", "firstOffset", 4),
)
"""Label and rank of columns that are shown under another name, or that go before others on a narrow terminal."""
DEFAULT = {
    "partitionLog": (
        *("name", "segments", "size", "logStartOffset", "highWatermark", "logEndOffset", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "notes"),
    ),
    "topicLogs": (
        *("name", "partitions", "segments", "size", "offsets", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "notes"),
    ),
    "logSegment": (
        *("name", "size", "firstOffset", "lastOffset", "batches", "records"),
        *("oldestTimestamp", "newestTimestamp", "formats", "compressions", "beside", "notes"),
    ),
}


def _column(name: str, unit: str, zone: tzinfo) -> Column:
    show: Callable[[Any], str]
    if unit == "bytes":
        show = size_text
    elif unit == "epoch ms":
        show = lambda value: iso(value, zone)  # noqa: E731
    else:
        show = _text
    more = MORE if name in ("formats", "compressions") else ""

    def cell(said: Object) -> str:
        value = said.get(name)
        text = "-" if value is None else show(value)
        return text + more if said["partial"] else text

    right = unit in ("bytes", "offset") or name in ("segments", "partitions", "offsets", "records", "batches")
    return Column(name, name, cell, right=right)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(printable(str(item)) for item in value)
    return printable(str(value))


def _notes(said: Object) -> str:
    """What is unusual about a row."""
    start, local = said.get("logStartOffset"), said.get("localLogStartOffset")
    words = [f"here from {local} on"] if local is not None and local != start else []
    if None not in (said.get("highWatermark"), said.get("logEndOffset")):
        words += ["high watermark above the end"] if said["highWatermark"] > said["logEndOffset"] else []
    words += [f"UNREADABLE: {error}" for error in said["errors"][:1]]
    if said["damage"]:
        words.append(f"DAMAGED: {said['damage']}")
    else:
        words += [f"{size_text(said[name])} {name}" for name in ("torn", "padding") if said[name]]
    words += [f"{size_text(said[name])} {label}" for name, label in _LEFT if said.get(name)]
    return printable("; ".join(words))


_LEFT = (("deletedSize", ".deleted"), ("unfinishedSize", ".swap, .cleaned"))
