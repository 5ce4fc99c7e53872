"""Text report of `kdump stats`: one partition in detail, or one row per partition and the totals."""

from __future__ import annotations

import os
from array import array
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import Annotated, Any, NamedTuple

from kdump.answer import EPOCH_MS, NAME, NUMBER, Cell, Doc, Shown, of_fact
from kdump.core.column_numbers import HEADER_BYTES, LATEST, LONGEST_KEY, LONGEST_VALUE, NEWEST, OLDEST
from kdump.format.count_text import count_text, plain_count
from kdump.log.histograms import SizeClass, late_classes, median, size_classes
from kdump.questions.stats.answer import split_key
from kdump.questions.stats.frequent_items import SpaceSaving
from kdump.questions.stats.row_counts import PeriodCounts
from kdump.questions.stats.totals import RecordLocation, Stats, codecs_of
from kdump.render.amounts import average, bar, duration_text, heights, number, per, share, size_text, spread_over
from kdump.render.escape import bytes_text, path_text, printable
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.style import cut
from kdump.render.table import Column, Table
from kdump.render.times import iso

PIPE_WIDTH = 80
MAX_SHOWN = 5
WITHHELD = (
    "the records are not in the bundle: their times, keys and values are unknown (kdump bundle --depth records counts "
    "them)"
)
BAR = 40
"""Maximum columns of the bar of a count."""
MARGIN = 30
"""Columns of a histogram before its bars."""


def _median(counts: array[int], maximum: int, show: Callable[[int], str]) -> str:
    """Format a median as "median 128 to 160": the bounds of its size class, of which the upper is at most `maximum`."""
    size_class = median(counts)
    if size_class is None:
        return "median unknown"
    low, high = show(size_class.first), show(maximum if size_class.last is None else min(size_class.last, maximum))
    return f"median {low}" if low == high else f"median {low} to {high}"


class StatsPart(NamedTuple):
    """The statistics of a partition or, `is_total`, of all together."""

    stats: Stats
    is_total: bool = False


class StatsRow(NamedTuple):
    """Statistics of a partition in a table of several."""

    name: Annotated[str, Shown("partition", least=20, cuts=NAME)]
    bytes: Annotated[int, Shown("size"), Cell(size_text)]
    batches: Annotated[int, Shown(rank=7), NUMBER]
    records: Annotated[int, Shown(), NUMBER]
    readable: Annotated[int | None, Shown(rank=6), NUMBER]
    committed: Annotated[int | None, Shown(rank=6), NUMBER]
    fill: Annotated[str, Shown("rec/batch", 6, right=True)]
    ratio: Annotated[float | None, Shown(rank=5), Cell("{:.1f}x".format)]
    codecs: Annotated[str, Shown(rank=3)]
    value: Annotated[str, Shown(rank=4, right=True)]
    nullKeys: Annotated[str, Shown("null keys", 3, right=True)]
    tombstones: Annotated[str, Shown(rank=4, right=True)]
    rate: Annotated[str, Shown("rec/s", 5, right=True)]
    oldest: Annotated[int | None, Doc(unit=EPOCH_MS), Shown(rank=1)]
    newest: Annotated[int | None, Doc(unit=EPOCH_MS), Shown(rank=2)]
    damaged: Annotated[int, Shown("damage", 8, blank=0)]


class StatsReport(Sink[StatsPart]):
    """Writes statistics of partitions: of a single one all, of several one row each and all of the total, or all of
    each (`detail`)."""

    def __init__(
        self, output: Output, zone: tzinfo, *, full: bool = False, top: int = 10, detail: bool = False
    ) -> None:
        self.output, self.zone, self.full, self.top = output, zone, full, top
        self.width = min(100, output.width or PIPE_WIDTH)
        self.written = False
        self.detail = detail
        self._rows = Table(table_columns(StatsRow, zone), output, full=full)
        self._count = 0
        self._first: Stats | None = None
        """The first partition, until it is known whether it is the only one."""

    def add(self, answer: StatsPart) -> None:
        stats = answer.stats
        if answer.is_total:
            self._rows.flush()
            if not self.detail:
                self.output.line("")
            self.write(stats, f"all {count_text(stats.partitions, 'partition')}")
            return
        self._count += 1
        if self.detail:
            self.write(stats, title_of(stats))
        elif self._count == 1:
            self._first = stats
        else:
            for statistics in (self._first, stats):
                if statistics is not None:
                    self._rows.add(_row(statistics), "bad" if statistics.damaged else "")
            self._first = None

    def tick(self) -> None:
        self._rows.tick()

    def end(self) -> None:
        if self._first is not None:
            self.write(self._first, title_of(self._first))

    def write(self, stats: Stats, title: str) -> None:
        """Write the statistics of one partition, or of all together, in detail."""
        if self.written:
            self._line("")
        self.written = True
        self._line(title, "head")
        if stats.unknown:
            self._text(WITHHELD)
        self._overview(stats)
        if not stats.unknown:
            self._times(stats)
        self._batches(stats)
        self._codecs(stats)
        if not stats.unknown:
            self._bytes(stats)
            self._sizes("keys", stats.keySizes, stats.dataRecords, self._of_keys(stats))
            self._sizes("values", stats.valueSizes, stats.dataRecords, self._of_values(stats))
            self._late(stats)
        if stats.keyless and not stats.unknown:
            self._head("top keys", "not in the bundle")
        elif not stats.unknown:
            self._top_keys(stats)
        self._top_producers(stats)
        self.remarks(stats)

    def remarks(self, stats: Stats) -> None:
        """Write what the numbers do not include, and notes."""
        lines = [
            f"not counted: {count_text(skipped.place.size, 'byte')}"
            f" at byte {skipped.place.position} of {skipped.place.file}: {skipped.reason}"
            for skipped in stats.missed[: None if self.full else MAX_SHOWN]
        ]
        left = stats.damaged - len(lines)
        if left > 0:
            lines.append(
                f"not counted: {left:,} more damaged byte ranges (--json has 100; run kdump verify to list all)"
            )
        lines += [f"note: {note}" for note in stats.notes[: None if self.full else MAX_SHOWN]]
        if len(stats.notes) > MAX_SHOWN and not self.full:
            lines.append(f"note: {len(stats.notes) - MAX_SHOWN:,} more (--full)")
        lines += [f"not read: {reason}" for reason in stats.unread]
        if lines:
            self._line("")
        for line in lines:
            for part in self.output.wrapped(printable(path_text(line)), 4):
                self._line(part, "" if line.startswith("note") else "bad")

    # -- parts

    def _overview(self, stats: Stats) -> None:
        parts = f" of {count_text(stats.partitions, 'partition')}" if stats.partitions != 1 else ""
        self._pair("size", f"{size_text(stats.bytes)} in {count_text(stats.files, 'file')}{parts}")
        control = f", including {count_text(stats.controlRecords, 'control record')}" if stats.controlRecords else ""
        damaged = stats.batches - stats.soundBatches
        broken = f" (and {damaged:,} damaged)" if damaged else ""
        self._pair(
            "records", f"{stats.records:,} in {count_text(stats.soundBatches, 'batch', 'batches')}{broken}{control}"
        )
        if stats.readable is not None and (stats.readable, stats.committed) != (stats.records, stats.records):
            committed = "" if stats.committed == stats.readable else f"; {stats.committed:,} with read_committed"
            is_later = stats.start is not None and stats.start > (stats.firstOffset or 0) and stats.partitions == 1
            start = f" from log start offset {stats.start} on" if is_later else ""
            self._pair("for consumers", f"{count_text(stats.readable, 'record')}{start}{committed}")
        if stats.firstOffset is not None and stats.partitions == 1:
            span = (stats.lastOffset or 0) - stats.firstOffset + 1
            count = f"which are {span:,}" if stats.in_order else "not in order"
            self._pair("offsets", f"{stats.firstOffset}..{stats.lastOffset}, {count}")
        if stats.oldest is not None and not stats.unknown:
            self._pair("oldest", iso(stats.oldest, self.zone) + self._at(stats, stats.extremes.get(OLDEST)))
            self._pair("newest", iso(stats.newest, self.zone) + self._at(stats, stats.extremes.get(NEWEST)))
        seconds = stats.seconds
        if seconds is not None and not stats.unknown:
            records = per(stats.dataRecords - stats.untimed, seconds, number)
            size = per(stats.batchBytes, seconds, lambda value: size_text(round(value)), " of batches")
            self._pair("rate", f"{records}, {size}, over {duration_text(round(seconds * 1000))}")
            peak = stats.peak
            if peak is not None:
                width = duration_text(stats.moments.width)
                self._pair("peak", f"{count_text(peak[1], 'record')} in {width}, from {iso(peak[0], self.zone)}")
        if stats.untimed and not stats.unknown:
            self._pair("untimed", f"{count_text(stats.untimed, 'record')} without a valid timestamp")
        types = ", ".join(f"{name} {share(n, stats.dataRecords)}" for name, n in stats.timestampTypes.most_common())
        if types and not stats.unknown and (len(stats.timestampTypes) > 1 or "CreateTime" not in stats.timestampTypes):
            self._pair("times", types)
        formats = ", ".join(f"magic {magic}: {count:,}" for magic, count in sorted(stats.formats.items()))
        if set(stats.formats) - {2}:
            self._pair("formats", f"{formats} batches")
        if stats.transactionalBatches:
            summary = (
                f"{count_text(stats.transactionalRecords, 'record')}"
                f" in {count_text(stats.transactionalBatches, 'batch', 'batches')}"
            )
            self._pair(
                "transactions", f"{summary}, {count_text(stats.controlBatches, 'control batch', 'control batches')}"
            )

    def _times(self, stats: Stats) -> None:
        moments = stats.over_time
        if len(moments) < 2:
            return
        first, width, counts = spread_over(moments, stats.moments.width, self.width - 4)
        self._head(
            "records over time", f"a column is {duration_text(width)}; the highest {count_text(max(counts), 'record')}"
        )
        self._line("  " + heights(counts), "name")
        start, end = (iso(when, self.zone)[:19] for when in (first, moments[-1][0]))
        gap = len(counts) - len(start) - len(end)
        self._line("  " + (start + " " * gap + end if gap > 1 else f"{start} .. {end}"), "dim")

    def _batches(self, stats: Stats) -> None:
        if not stats.soundBatches:
            return
        self._head("batches")
        full, large = stats.fullestBatch, stats.largestBatch
        mean = average(stats.records, stats.soundBatches)
        maximum = f"{full[0]:,}{self._at(stats, full[1])}" if full else ""
        half = _median(stats.batchRecords, full[0] if full else 0, "{:,}".format)
        self._pair("records", f"{mean} on average, {half}, most {maximum}")
        size = size_text(round(stats.batchBytes / stats.soundBatches))
        largest = size_text(large.place.size) + self._at(stats, large) if large else ""
        half = _median(stats.batchSizes, large.place.size if large else 0, size_text)
        self._pair("bytes", f"{size} on average, {half}, largest {largest}")
        ones = stats.batchRecords[1]
        if ones:
            self._pair(
                "single", f"{count_text(ones, 'batch', 'batches')} of one record, {share(ones, stats.soundBatches)}"
            )
        if stats.emptyBatches:
            self._pair("empty", f"{count_text(stats.emptyBatches, 'batch', 'batches')} emptied by compaction")
        self._histogram(size_classes(stats.batchRecords), lambda each: _range(each, str), "record", " each")

    def _codecs(self, stats: Stats) -> None:
        if not stats.codecs:
            return
        self._head("compression")
        for name, codec in codecs_of(stats):
            line = f"{count_text(codec.batches, 'batch', 'batches')}, {size_text(codec.storedBytes)}"
            if name != "none" and codec.ratio is not None and not stats.unknown:
                line += f", {size_text(codec.unpackedBytes)} uncompressed: {codec.ratio:.2f}x"
            self._pair(name, line)

    def _bytes(self, stats: Stats) -> None:
        """Write how the decompressed bytes of records are divided among keys, values, headers and framing."""
        if not stats.dataRecords:
            return
        headers = stats.sums[HEADER_BYTES]
        rest = stats.recordBytes - stats.keyBytes - stats.valueBytes - headers
        self._head("bytes of records by part", f"{size_text(stats.recordBytes)} uncompressed")
        parts = (("keys", stats.keyBytes), ("values", stats.valueBytes), ("headers", headers), ("framing", rest))
        for name, count in parts:
            self._bar(name, size_text(count), count, stats.recordBytes)

    def _of_keys(self, stats: Stats) -> list[str]:
        if not stats.dataRecords:
            return []
        keyed = stats.dataRecords - stats.nullKeys
        lines = [f"{share(stats.nullKeys, stats.dataRecords)} are null ({stats.nullKeys:,})"] if stats.nullKeys else []
        location = self._at(stats, stats.extremes.get(LONGEST_KEY))
        if keyed:
            lines.append(f"{average(stats.keyBytes, keyed)} bytes on average, largest {stats.longestKey:,}{location}")
        return lines

    def _of_values(self, stats: Stats) -> list[str]:
        if not stats.dataRecords:
            return []
        valued = stats.dataRecords - stats.tombstones
        dead = f"{share(stats.tombstones, stats.dataRecords)} are null: tombstones ({stats.tombstones:,})"
        lines = [dead] if stats.tombstones else []
        location = self._at(stats, stats.extremes.get(LONGEST_VALUE))
        if valued:
            lines.append(
                f"{average(stats.valueBytes, valued)} bytes on average, largest {stats.longestValue:,}{location}"
            )
        return lines

    def _sizes(self, name: str, counts: array[int], records: int, lines: list[str]) -> None:
        if not records:
            return
        self._head(name)
        for line in lines:
            self._text(line)
        self._histogram(size_classes(counts), lambda each: _range(each, str), "byte")

    def _late(self, stats: Stats) -> None:
        if not stats.lateRecords or stats.latest is None:
            return
        timed = stats.dataRecords - stats.untimed
        self._head("lateness", "by how much a record is older than an earlier one")
        location = self._at(stats, stats.extremes.get(LATEST))
        self._text(
            f"{count_text(stats.lateRecords, 'record')} are older, {share(stats.lateRecords, timed)}; the latest by"
            f" {duration_text(stats.latest)}{location}"
        )
        self._histogram(late_classes(stats.late), _late_range)

    def _top_keys(self, stats: Stats) -> None:
        if not stats.keys.total:
            return
        self._head("top keys", _error(stats.keys))
        rows = []
        for frequent in stats.keys.top(self.top):
            topic, key, size, is_cut = split_key(stats, frequent.item)
            label = bytes_text(key, None if self.full else 200) + (f"… ({plain_count(size, 'byte')})" if is_cut else "")
            label = f"{topic}: {label}" if stats.topic is None and topic is not None else label
            rows.append((printable(label), frequent.times, frequent.weight))
        self._tops(rows, stats.keys)

    def _top_producers(self, stats: Stats) -> None:
        if not stats.producers.total:
            return
        self._head("top producers", _error(stats.producers))
        rows = [
            (f"producer {frequent.item}", frequent.times, frequent.weight) for frequent in stats.producers.top(self.top)
        ]
        self._tops(rows, stats.producers)

    def _tops(self, rows: list[tuple[str, int, int]], sketch: SpaceSaving) -> None:
        certain = [row for row in rows if row[1] > sketch.error]
        if not certain:
            self._text("nothing stands out: every count is within the error bound")
            return
        room = self.width - 34 if not self.full else None
        for label, count, weight in certain:
            numbers = f"{count:>11,}  {share(count, sketch.total):>7}  {size_text(weight):>10}"
            self._line(f"  {numbers}  {cut(label, room) if room else label}")

    # -- lines

    def _histogram(
        self, classes: list[SizeClass], label: Callable[[SizeClass], str], unit: str = "", more: str = ""
    ) -> None:
        if len(classes) < 2 and not any(size_class.amount for size_class in classes):
            return
        total = sum(size_class.amount for size_class in classes)
        maximum = max(size_class.amount for size_class in classes)
        for place, size_class in enumerate(classes):
            name = label(size_class)
            if not place and unit:
                name += f" {unit}{'' if name == '1' else 's'}{more}"
            self._bar(name, f"{size_class.amount:,}", size_class.amount, maximum, total)

    def _bar(self, name: str, amount: str, part: int, whole: int, total: int | None = None) -> None:
        percent = share(part, total or whole)
        width = max(8, self.width - MARGIN - 20)
        self._line(
            f"  {name:<21} {amount:>11}  {percent:>7}  {self.output.paint(bar(part, whole, width), 'name')}".rstrip()
        )

    def _head(self, title: str, rest: str = "") -> None:
        self._line("")
        self._line(self.output.paint(title, "head") + (self.output.paint(f"  {rest}", "dim") if rest else ""))

    def _pair(self, name: str, value: str) -> None:
        for line in self.output.wrapped(f"  {name:<12} {printable(value)}", 15):
            self._line(line)

    def _text(self, paragraph: str) -> None:
        for line in self.output.wrapped("  " + printable(paragraph), 4):
            self._line(line)

    def _line(self, line: str, style: str = "") -> None:
        self.output.line(self.output.paint(line, style) if style else line.rstrip())

    def _at(self, stats: Stats, evidence: RecordLocation | None) -> str:
        """Format the location of a record: (offset 17, batch at 4096 of FILE)."""
        if evidence is None:
            return ""
        place = evidence.place
        file = ""
        if stats.partitions != 1 or stats.files > 1:
            parts = place.file.split(os.sep)
            short = os.sep.join(parts[-2:]) if stats.partitions != 1 else parts[-1]
            file = f" of {path_text(place.file if self.full else short)}"
        return f" (offset {evidence.offset}, batch at {place.position}{file})"


class CountReport(Sink[Any]):
    """Writes the counts by period, key or producer, with bars on a terminal, and what they are counts of."""

    def __init__(self, output: Output, by: str, total: Stats, zone: tzinfo, *, full: bool = False) -> None:
        self.output = output
        self.by, self.total, self.zone, self.full = by, total, zone, full
        self._counts: list[Any] = []

    def add(self, answer: Any) -> None:
        self._counts.append(answer)

    def _name(self, count: Any) -> str:
        if self.by == "producer":
            return str(count.producerId)
        if self.by == "key":
            cut_off = f"… ({plain_count(count.keySize, 'byte')})" if count.isCut else ""
            key = b64decode(count.key) if count.keyEncoding else count.key.encode("utf-8", "surrogateescape")
            return bytes_text(key, None if self.full else 200) + cut_off
        if count.timestamp is None:
            return "no valid timestamp"
        return iso(count.timestamp, self.zone)

    def end(self) -> None:
        total, most = self.total, max((count.records for count in self._counts), default=0)
        of_all = total.producers.total if self.by == "producer" else total.dataRecords
        columns = [Column("records", "records", lambda c: f"{c.records:,}", True)]
        columns.append(Column("share", "share", lambda c: share(c.records, of_all), True, 7))
        columns.append(Column("bytes", "bytes", lambda c: size_text(c.bytes), True, 8))
        if self.output.terminal:
            width = max(10, min(BAR, (self.output.width or PIPE_WIDTH) - 60))
            columns.append(Column("bar", "", lambda c: bar(c.records, most, width).ljust(width), False, 6))
        name = Column(self.by, self.by, self._name, self.by == "producer", least=28 if self.by == "key" else None)
        topic = Column("topic", "topic", lambda c: c.topic or "", False, 8, least=12)
        at_end = self.by == "key"
        if at_end:
            columns += [topic, name] if total.topic is None and total.partitions > 1 else [name]
        else:
            columns.insert(0, name)
        table = Table(columns, self.output, full=self.full)
        for count in self._counts:
            table.add(count)
        table.flush()
        for line in self._remarks():
            self.output.line(printable(line))
        report = StatsReport(self.output, self.zone, full=self.full)
        report.remarks(total)

    def _remarks(self) -> Iterator[str]:
        total = self.total
        if self._counts:
            yield ""
        records = f"{count_text(total.dataRecords, 'data record')}, {size_text(total.recordBytes)} uncompressed"
        if total.unknown:  # by headers alone
            records = count_text(total.records, "record")
        yield f"{records}, in {count_text(total.partitions, 'partition')}"
        if self.by == "producer":
            without = total.records - total.producers.total
            yield f"{count_text(without, 'record')} without a producer ID; bytes are those of batches"
        sketch = total.keys if self.by == "key" else total.producers
        if self.by == "key":
            yield f"{count_text(total.nullKeys, 'record')} with a null key"
        if self.by in ("key", "producer") and sketch.error:
            yield f"each count may be too low by up to {sketch.error:,}"
        if isinstance(total.moments, PeriodCounts) and total.moments.left_out:
            yield f"{count_text(total.moments.left_out, 'record')} in further periods are not counted: use a longer one"


def title_of(stats: Stats) -> str:
    """Return the title of a partition's statistics: its name, and where it is."""
    source = printable(path_text(stats.source))
    return source if name_of(stats) == source else f"{name_of(stats)}  ({source})"


def name_of(stats: Stats) -> str:
    """Return topic-partition, with its state if it is not live; the path if the directory's name gives no topic."""
    base = os.path.basename(os.path.abspath(stats.source))
    if stats.topic is None:
        return printable(path_text(stats.source))
    state = base.rpartition("-")[2] if base.endswith(("-delete", "-future", "-stray")) else ""
    return printable(f"{stats.topic}-{stats.partition}" + (f" ({state})" if state else ""))


def _row(stats: Stats) -> StatsRow:
    """Return the row of a partition: of what depends on its records nothing if these are unknown, and of what consumers
    receive what is not the same as before it."""
    of_records = dict[str, Any](ratio=None, value="", nullKeys="", tombstones="", rate="", oldest=None, newest=None)
    if not stats.unknown:
        nulls = {name: getattr(stats, name) for name in ("nullKeys", "tombstones")}
        of_records = {name: share(count, stats.dataRecords) if count else "" for name, count in nulls.items()}
        of_records["value"] = average(stats.valueBytes, stats.dataRecords - stats.tombstones)
        of_records["rate"] = _rate(stats)
    return of_fact(
        StatsRow,
        stats,
        name=name_of(stats),
        readable=None if stats.readable == stats.records else stats.readable,
        committed=None if stats.committed == stats.readable else stats.committed,
        fill=average(stats.records, stats.soundBatches),
        codecs=",".join(name for name, _ in codecs_of(stats)),
        **of_records,
    )


def _rate(stats: Stats) -> str:
    if stats.seconds is None:
        return ""
    rate = (stats.dataRecords - stats.untimed) / stats.seconds
    return number(rate) if rate >= 0.01 else "<0.01"


def _range(size_class: SizeClass, show: Callable[[int], str]) -> str:
    if size_class.last is None:
        return f"{show(size_class.first)} and more"
    return (
        show(size_class.first)
        if size_class.first == size_class.last
        else f"{show(size_class.first)}..{show(size_class.last)}"
    )


def _late_range(size_class: SizeClass) -> str:
    return (
        f"more than {duration_text(size_class.first - 1)}"
        if size_class.last is None
        else f"up to {duration_text(size_class.last)}"
    )


def _error(sketch: SpaceSaving) -> str:
    if not sketch.error:
        return "exact: records, share, bytes"
    return f"records (each may be too low by up to {sketch.error:,}), share, bytes"
