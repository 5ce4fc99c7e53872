"""Counts the selected records instead of showing them: `kdump inspect --count`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from kdump.answer import NAME, OFFSET, Doc, Shown, answer, columns
from kdump.check.finding import Finding
from kdump.format.count_text import count_text
from kdump.io.window import Window
from kdump.log.batch_records import decode_columns
from kdump.log.paths import Target
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import Batch, DefaultRecordBatch, Region
from kdump.log.selection import Selection
from kdump.questions.inspect.views import View
from kdump.render.sink import Sink
from kdump.render.state_tables import table_columns
from kdump.render.stdout import Output
from kdump.render.table import Table


@columns(
    name=Shown("partition", least=20, cell=lambda row: _or_dash(row.topic, f"{row.topic}-{row.partition}"), cuts=NAME),
    selected=Shown("records", right=True, cell=lambda row: f"{row.records:,}"),
    contain=Shown("batches", 7, right=True, cell=lambda row: f"{row.batches:,}"),
    first=Shown(rank=6, right=True, cell=lambda row: _or_dash(row.firstOffset)),
    last=Shown(rank=6, right=True, cell=lambda row: _or_dash(row.lastOffset)),
)
@answer("recordCount")
class RecordCount(NamedTuple):
    """How many records of a partition are selected (`kdump inspect --count`); `scope` total: of all of them."""

    scope: Annotated[str, Doc("partition, or total (the sum of all before it)")]
    topic: Annotated[str | None, Doc("topic; null in the total, and if no directory is named after it")]
    partition: Annotated[int | None, Doc("partition; null like topic")]
    records: Annotated[int, Doc("number of selected records, with those of the next two keys")]
    controlRecords: Annotated[int, Doc("number of these that are transaction markers, or KRaft's control records")]
    damagedRecords: Annotated[int, Doc("number of these in batches whose checksum does not match")]
    batches: Annotated[int, Doc("number of batches that contain them")]
    firstOffset: Annotated[int | None, Doc("smallest offset of a selected record; null in the total", OFFSET)]
    lastOffset: Annotated[int | None, Doc("largest offset of a selected record; null in the total", OFFSET)]


NOTHING = RecordCount("partition", None, None, 0, 0, 0, 0, None, None)


class CountView(View):
    """Counts records by partition, and passes the counts to the sink at the end. Damage has no row: what a filter or a
    damaged batch hides is reported as for the records themselves."""

    def __init__(self, output: Output, sink: Sink[RecordCount], selection: Selection) -> None:
        self.output, self.sink, self.selection = output, sink, selection
        self.counts: dict[tuple[str | None, int | None], RecordCount] = {}

    def finding(self, finding: Finding) -> None:
        pass

    def batch(self, target: Target, reading: Reading[Batch], records: Iterable[Record]) -> int:
        batch = reading.batch
        first = last = None
        count = 0
        if isinstance(batch, DefaultRecordBatch) and batch.crcValid:
            base = batch.header.baseOffset
            for columns, _ in decode_columns(reading):
                self.selection.keep(batch, columns)
                if len(columns):
                    deltas = columns.offset_delta
                    low, high = base + min(deltas), base + max(deltas)
                    first, last = low if first is None else min(first, low), high if last is None else max(last, high)
                    count += len(columns)
        else:
            for record in records:
                count += 1
                if record.offset is not None:
                    first = record.offset if first is None else min(first, record.offset)
                    last = record.offset if last is None else max(last, record.offset)
        if count:
            self._add((target.topic, target.partition), count, batch, first, last)
        return count

    def _add(
        self, of: tuple[str | None, int | None], count: int, batch: Batch, first: int | None, last: int | None
    ) -> None:
        held = self.counts.get(of, NOTHING._replace(topic=of[0], partition=of[1]))
        self.counts[of] = held._replace(
            records=held.records + count,
            controlRecords=held.controlRecords + count * bool(batch.isControlBatch),
            damagedRecords=held.damagedRecords + count * (not batch.crcValid),
            batches=held.batches + 1,
            firstOffset=min((each for each in (held.firstOffset, first) if each is not None), default=None),
            lastOffset=max((each for each in (held.lastOffset, last) if each is not None), default=None),
        )

    def region(self, target: Target, region: Region, window: Window) -> None:
        pass

    @property
    def is_empty(self) -> bool:
        return not self.counts

    def end(self) -> None:
        counts = list(self.counts.values())
        for count in counts:
            self.sink.add(count)
        if len(counts) != 1:
            numbers = ("records", "controlRecords", "damagedRecords", "batches")
            sums = {name: sum(getattr(count, name) for count in counts) for name in numbers}
            self.sink.add(NOTHING._replace(scope="total", **sums))
        self.sink.end()
        self.output.flush()


class CountTable(Sink[RecordCount]):
    """The counts for people: a table if there are several partitions, and a sentence."""

    def __init__(self, output: Output, *, full: bool = False) -> None:
        self.output = output
        self.table = Table(table_columns(RecordCount), output, full=full)
        self._last = NOTHING

    def add(self, answer: RecordCount) -> None:
        self._last = answer
        if answer.scope == "partition":
            self.table.add(answer)

    def end(self) -> None:
        count = self._last
        if count.records:
            self.table.flush()
            self.output.line("")
        parts = [count_text(count.controlRecords, "control record")] if count.controlRecords else []
        parts += [f"{count.damagedRecords:,} in batches whose checksum does not match"] if count.damagedRecords else []
        which = f" ({', '.join(parts)})" if parts else ""
        self.output.line(
            f"{count_text(count.records, 'record')}{which} in {count_text(count.batches, 'batch', 'batches')}"
        )


def _or_dash(known: object, text: str = "") -> str:
    return "-" if known is None else text or str(known)
