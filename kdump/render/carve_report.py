"""Output of `kdump carve` for people: runs in a table, or each batch as `kdump inspect` shows it."""

from __future__ import annotations

from datetime import tzinfo

from kdump.forensics.carve.runs import CarvedRun
from kdump.forensics.carve.search import CarvedBatch
from kdump.render.columns import columns_of
from kdump.render.output import Output
from kdump.render.table import Column, Table
from kdump.render.times import iso


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


def run_line(run: CarvedRun) -> str:
    """Return the line after the batches of a run."""
    count = f"{run.batches:,} batch{'es' * (run.batches != 1)}"
    where = f"{run.size:,} bytes at byte {run.position}, offsets {run.firstOffset}..{run.lastOffset}"
    text = f"run {run.number}: {count}, {where}"
    if run.mayFollow:
        text += f"; may follow run {' or '.join(map(str, run.mayFollow))}"
    return text


def nested_line(found: CarvedBatch) -> str:
    return f"nested: the batch at byte {found.batch.position} is in a value of the batch at byte {found.within}"


def _time(timestamp: int | None, zone: tzinfo) -> str:
    return "" if timestamp is None else iso(timestamp, zone)


def _range(first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return str(first) if first == last else f"{first}..{last}"
