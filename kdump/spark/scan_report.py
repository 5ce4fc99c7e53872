"""Text report of `kdump scan`: the findings, as in `kdump verify`, and a summary of the whole fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import Any, NamedTuple

from kdump.check.finding import INFO, Finding
from kdump.check.missing_totals import MissingTotals
from kdump.check.totals import CheckTotals
from kdump.format.count_text import count_text
from kdump.render.amounts import size_text
from kdump.render.escape import path_text, printable
from kdump.render.findings_report import FindingsReport
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import NAME, Column, Table
from kdump.render.times import iso

Object = dict[str, Any]
CellText = Callable[[Object], str]
MAX_REPLICAS = 50
"""Maximum number of ranges of offsets to print at which replicas differ."""
LOST = {"diverged": "lost when a follower truncates them", "missing": "missing in a replica"}
SHOWN = 5
"""Maximum rows of the lists that describe the fleet; summary.json has more."""


class FleetEnd(NamedTuple):
    """The summary of a scan. `units` returns the units with findings that are printed, and these; `counts` returns the
    codes of findings that are only counted."""

    summary: Object
    units: Callable[[], Iterable[tuple[str, list[Finding]]]]
    counts: Callable[[], Counter[str]]


class ScanReport(Sink[FleetEnd]):
    """Writes the report of one summary, with times in `zone`."""

    shows_unread = True

    def __init__(self, output: Output, zone: tzinfo) -> None:
        self.output = output
        self.zone = zone

    def add(self, answer: FleetEnd) -> None:
        self.write(answer.summary, answer.units(), answer.counts())

    def write(self, summary: Object, units: Iterable[tuple[str, list[Finding]]], counts: Counter[str]) -> None:
        """Write the report. `units`: each with those of its findings that are printed; `counts`: codes of findings that
        are only counted."""
        report = FindingsReport(self.output, info=False)
        missing = MissingTotals()
        for name, findings in units:
            report.part(name)
            for finding in findings:
                report.add(finding)
                missing.add(finding)
        report.places = summary["units"]["read"] + summary["units"]["kept"]
        report.counts = Counter(summary["findings"])
        report.shown_info = counts
        totals = CheckTotals(**{name: summary[name] for name in ("partitions", "files", "bytes", "batches", "records")})
        totals.damaged_batches, totals.damaged_records = summary["damagedBatches"], summary["damagedRecords"]
        differing = [difference for difference in summary["replicas"] if difference["severity"] != INFO]
        missing.differing = len(differing)
        missing.truncated = sum(difference["lost"] or 0 for difference in differing)
        totals.missing = missing
        totals.withheld = Counter(summary.get("notInBundle") or {})
        totals.unread, totals.notes = list(summary["unread"]), list(summary["notes"])
        report.write(totals, summary["seconds"], "everything")
        self._copies(summary)
        self._replicas(summary)
        self._transactions(summary)
        self._table("groups with lag", [g for g in summary["groups"] if g["lag"]], GROUPS)
        self._table("topics", summary["topics"], TOPICS)
        self._table("producers", summary["producers"], producer_columns(self.zone))
        self._table("formats and codecs", summary["formats"], FORMATS)
        self._table("smallest batches", summary["fill"], FILL)
        self._table("older than retention.ms", summary["retention"], RETENTION)
        self._table("not compacted yet", summary["compaction"], COMPACTION)
        unit_counts = summary["units"]
        kept = f", {unit_counts['kept']:,} unchanged" if unit_counts["kept"] else ""
        on = f" ({unit_counts['continued']:,} only from a later segment on)" if unit_counts["continued"] else ""
        gone = f", {unit_counts['gone']:,} gone" if unit_counts["gone"] else ""
        self.output.text("")
        self.output.text(f"{unit_counts['read']:,} partitions and files read{on}{kept}{gone}")
        out = printable(path_text(summary["out"]))
        self.output.text(f"tables in {out}; query them: kdump query {out} 'select * from findings'")
        self.output.flush()

    def _copies(self, summary: Object) -> None:
        for copy in summary["copies"]:
            self.output.text(
                f"{printable(copy['source'])}: a copy of {printable(copy['copyOf'])}, not counted", style="dim"
            )

    def _replicas(self, summary: Object) -> None:
        if not summary["replicas"]:
            return
        more = summary["replicaDifferences"] - MAX_REPLICAS
        self.output.title("replicas that differ" + (f" (the first {MAX_REPLICAS}; {more:,} more)" if more > 0 else ""))
        for row in summary["replicas"][:MAX_REPLICAS]:
            place = f"{row['topic']}-{row['partition']}"
            offsets = f"offsets {row['firstOffset']} to {row['lastOffset']}"
            head = f"  {row['severity']} {place}: {row['kind']} at {offsets}"
            self.output.text(printable(head), style="bad" if row["severity"] == "error" else "torn")
            replicas = zip(row["sources"], row["brokers"], row["records"], row["lastOffsets"])
            for source, broker, records, last in replicas:
                owner = "" if broker is None else f"broker {broker}, "
                here = count_text(records, "record")
                self.output.text(f"    {owner}{printable(source)}: {here} there; its log is up to offset {last}")
            if row["lost"]:
                self.output.text(f"    {count_text(row['lost'], 'record')} are {LOST[row['kind']]}")
            self.output.text(f"    {printable(row['explanation'])}", style="dim")

    def _transactions(self, summary: Object) -> None:
        rows = summary["openTransactions"]
        if not rows:
            return
        self.output.title("open transactions")
        table = Table(transaction_columns(self.zone), self.output)
        for row in rows:
            table.add(row)
        table.flush()

    def _table(self, title: str, rows: list[Object], columns: list[Column]) -> None:
        if not rows:
            return
        more = f" (the first {SHOWN} of {len(rows)})" if len(rows) > SHOWN else ""
        self.output.title(title + more)
        table = Table(columns, self.output)
        for row in rows[:SHOWN]:
            table.add(row)
        table.flush()


def _text(name: str) -> CellText:
    return lambda row: "-" if row[name] is None else printable(str(row[name]))


def _number(name: str) -> CellText:
    return lambda row: "-" if row[name] is None else f"{row[name]:,}"


def _size(name: str) -> CellText:
    return lambda row: "-" if row[name] is None else size_text(row[name])


def _time(name: str, zone: tzinfo) -> CellText:
    return lambda row: iso(row[name], zone)


def _right(name: str, label: str, cell: CellText) -> Column:
    return Column(name, label, cell, right=True)


TOPIC = Column("topic", "topic", _text("topic"), least=12, cuts=NAME)
PARTITION = _right("partition", "partition", _text("partition"))
RECORDS = _right("records", "records", _number("records"))
SIZE = _right("bytes", "size", _size("bytes"))
BATCHES = _right("batches", "batches", _number("batches"))


def transaction_columns(zone: tzinfo) -> list[Column]:
    """Return the columns of open transactions, with times in `zone`."""
    return [
        TOPIC,
        PARTITION,
        _right("producer", "producer", lambda row: f"{row['producerId']}/{row['producerEpoch']}"),
        _right("firstOffset", "from offset", _number("firstOffset")),
        RECORDS,
        Column("timestamp", "started", _time("timestamp", zone), rank=3),
        Column("transactionalId", "transactionalId", _text("transactionalId"), least=12, cuts=NAME),
        Column("state", "state", _text("state"), rank=4),
    ]


def producer_columns(zone: tzinfo) -> list[Column]:
    """Return the columns of producers, with times in `zone`."""
    return [
        _right("producerId", "producer", _text("producerId")),
        _right("epochs", "epochs", _number("epochs")),
        _right("partitions", "partitions", _number("partitions")),
        BATCHES,
        RECORDS,
        SIZE,
        Column("first", "first", _time("first", zone), rank=3),
        Column("last", "last", _time("last", zone), rank=4),
        _right("recordsPerSecond", "records/s", _number("recordsPerSecond")),
    ]


GROUPS = [
    Column("groupId", "group", _text("groupId"), least=12, cuts=NAME),
    Column("groupType", "type", _text("groupType")),
    Column("state", "state", _text("state")),
    _right("lag", "lag", _number("lag")),
]
TOPICS = [
    TOPIC,
    _right("partitions", "partitions", _number("partitions")),
    SIZE,
    RECORDS,
    _right("largest", "largest", _size("largest")),
    _right("skew", "skew", _text("skew")),
]
FORMATS = [
    _right("magic", "magic", _text("magic")),
    Column("compression", "codec", _text("compression")),
    BATCHES,
    RECORDS,
    SIZE,
]
FILL = [
    TOPIC,
    BATCHES,
    _right("bytesPerBatch", "bytes/batch", _number("bytesPerBatch")),
    _right("recordsPerBatch", "records/batch", _number("recordsPerBatch")),
]
RETENTION = [TOPIC, _right("segments", "segments", _number("segments")), SIZE]
COMPACTION = [TOPIC, PARTITION, _right("dirtyBytes", "dirty", _size("dirtyBytes")), SIZE]
