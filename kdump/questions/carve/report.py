"""Output of `kdump carve` for people: runs in a table, or each batch as `kdump inspect` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from kdump.answer import Object, answer_object
from kdump.check.finding import Finding
from kdump.format.count_text import count_text, plain_count
from kdump.log.paths import target
from kdump.log.region import Batch
from kdump.questions.carve.answer import CarvedTornBatch, CarveSummary, NestedBatch
from kdump.questions.carve.carved_runs import CarvedRun
from kdump.questions.carve.search import CarvedBatch
from kdump.render.escape import path_text, printable
from kdump.render.inspect_columns import columns_of
from kdump.render.inspect_json import batch_object
from kdump.render.sink import Sink
from kdump.render.stdout import Output
from kdump.render.table import Column, Table, problem_line
from kdump.render.times import iso

Found = CarvedBatch | Finding | CarvedRun | CarveSummary


def carve_objects(answer: Found) -> Iterator[Object]:
    """Yield the JSON objects of an answer: of a batch, also where it is nested."""
    if not isinstance(answer, CarvedBatch):
        yield answer_object(answer)
        return
    batch = answer.batch
    yield batch_object(target(answer.file), batch)
    if answer.within is not None:
        yield answer_object(NestedBatch(answer.file, batch.position, batch.size, answer.within))
    if answer.records_before is not None:
        records = batch.possible_records
        yield answer_object(CarvedTornBatch(answer.file, batch.position, records, answer.records_before))


class CarveReport(Sink[Found]):
    """Writes a table of batches with a line after each run, or one of runs, and last a line about everything. A file
    has a heading unless it is the only one that the user has `named`. `out`: where the runs were written."""

    def __init__(
        self, output: Output, zone: tzinfo, *, full: bool, only_runs: bool, named: tuple[str, ...], out: str | None
    ) -> None:
        self.output = output
        self.only_runs = only_runs
        self.named = named
        self.out = out
        self.table = (run_table if only_runs else batch_table)(output, zone, full=full)
        self._shown = ""
        """The file that the table is about; empty before the first."""

    def add(self, answer: Found) -> None:
        if isinstance(answer, CarveSummary):
            self._summary(answer)
        elif isinstance(answer, CarvedBatch):
            self._title(answer.file)
            self.table.add(answer.batch)
            if answer.within is not None:
                self.table.line(nested_line(answer))
            if answer.records_before is not None:
                self.table.line(torn_line(answer.batch, answer.records_before), "torn")
        elif isinstance(answer, Finding):
            self._title(answer.file)
            self.table.line(problem_line(answer.code, answer.position, answer.message), "bad")
        elif self.only_runs:
            self._title(answer.file)
            self.table.add(answer)
        else:
            self.table.line(run_line(answer))

    def tick(self) -> None:
        self.table.tick()

    def _title(self, file: str) -> None:
        if self._shown != file and (len(self.named) > 1 or file != self.named[0]):
            self.table.flush()
            self.output.line(printable(path_text(file)) + ":")
        self._shown = file

    def _summary(self, summary: CarveSummary) -> None:
        if not summary.files:
            return
        self.table.flush()
        if summary.batches:
            self.output.line("")
        nested = f" ({summary.nested:,} nested)" if summary.nested else ""
        line = (
            f"{count_text(summary.batches, 'batch', 'batches')}{nested} in {count_text(summary.runs, 'run')}"
            f", {summary.batchBytes:,} of"
        )
        line += f" {count_text(summary.bytes, 'byte')}"
        if summary.written:
            line += f"; {count_text(summary.written, 'segment')} written to {self.out}"
        self.output.line(printable(path_text(line)))


def run_table(output: Output, zone: tzinfo, *, full: bool) -> Table:
    """Return the table of runs."""
    columns = [
        Column("run", "run", lambda run: str(run.number), True),
        Column("position", "position", lambda run: str(run.position), True),
        Column("size", "bytes", lambda run: str(run.size), True),
        Column("batches", "batches", lambda run: str(run.batches), True),
        Column("records", "records", lambda run: str(run.records), True, 5),
        Column("offsets", "offsets", lambda run: _range(run.firstOffset, run.lastOffset)),
        Column("magic", "magic", lambda run: " ".join(map(str, run.magics)), False, 3),
        Column("codecs", "codec", lambda run: " ".join(run.codecs), False, 4),
        Column("epochs", "epoch", lambda run: _range(run.firstEpoch, run.lastEpoch), True, 2),
        Column("producers", "producers", lambda run: " ".join(map(str, run.producerIds)), False, 1),
        Column("newest", "newest", lambda run: _time(run.lastTimestamp, zone), False, 6),
        Column("follows", "may follow", lambda run: " ".join(map(str, run.mayFollow)), True, 7),
    ]
    return Table(columns, output, full=full)


def batch_table(output: Output, zone: tzinfo, *, full: bool) -> Table:
    """Return the table of batches that `kdump inspect` shows."""
    return Table(columns_of("batch", zone, None, full or output.width is None, None), output, full=full)


def run_line(carved: CarvedRun) -> str:
    """Return the line after the batches of a run."""
    count = f"{carved.batches:,} batch{'es' * (carved.batches != 1)}"
    offsets = f"offsets {carved.firstOffset}..{carved.lastOffset}"
    where = f"{count_text(carved.size, 'byte')} at byte {carved.position}, {offsets}"
    line = f"run {carved.number}: {count}, {where}"
    if carved.mayFollow:
        line += f"; may follow run {' or '.join(map(str, carved.mayFollow))}"
    return line


def torn_line(batch: Batch, records: int) -> str:
    complete = f"{batch.possible_records} of its {plain_count(records, 'record')} are complete"
    return f"torn: the file ends within the batch at byte {batch.position}: {complete}, but no checksum covers them"


def nested_line(carved: CarvedBatch) -> str:
    return f"nested: the batch at byte {carved.batch.position} is in a value of the batch at byte {carved.within}"


def _time(timestamp: int | None, zone: tzinfo) -> str:
    return "" if timestamp is None else iso(timestamp, zone)


def _range(first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return str(first) if first == last else f"{first}..{last}"
