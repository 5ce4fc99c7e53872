"""What a task of a scan does: one unit, read once. Its findings, batches and the entries of its small files become
Parquet files, and what else is to be known of it an entry in the result's list of units."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdump import __version__
from kdump.check.catalogue import INFO
from kdump.check.run import Unit
from kdump.check.totals import Totals
from kdump.log import kinds
from kdump.log.disk import Partition
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.paths import Target
from kdump.render.escape import path_text
from kdump.spark.arrow import Rows
from kdump.spark.batches import BatchColumns
from kdump.spark.fleet import Identity
from kdump.spark.plan import small_files
from kdump.spark.schema import arrow_schema
from kdump.spark.store import Store, folder
from kdump.spark.tables import BATCHES, TABLES, Table
from kdump.spark.tally import Tally
from kdump.spark.tasks import entry_rows, finding_rows, segment_rows, unread_rows
from kdump.spark.watch import Watch
from kdump.state.partition_log import segments_of

ROWS = 65_536
"""Of a row group: what is held until it is written."""
BY_TOPIC = ("segments", "batches", "records", "index_entries", "producer_states")
"""Tables whose files lie by broker and topic; the others' by broker."""


@dataclass
class Job:
    """A unit that is to be read: its `key`, what it was like when that was planned, and whose it is."""

    key: str
    unit: Unit | tuple[str, str]
    identity: Identity
    fingerprint: str
    tables: tuple[str, ...]
    size: int = 0
    retention: int | None = None
    """The topic's retention.ms; None where its log is not deleted by age, or that is not known."""


def run_job(job: Job, store: Store) -> dict[str, Any]:
    """Read a unit, write its rows; its entry. Raises StoreError."""
    began = time.monotonic()
    totals = Totals()
    place = _place(job.unit)
    with ExitStack() as stack:
        sink = Sink(job, place, store, stack)
        if isinstance(job.unit, Unit):
            job.unit.watcher = Watch(
                sink.tally, sink.common, sink.batch_columns if "batches" in job.tables else None, sink.put_batches
            )
            _small_files(job, place, sink)
        for row in finding_rows(job.unit, totals):
            sink.add("findings", row)
            totals.findings[row["severity"]] += 1
            sink.codes[row["code"]] += 1
            sink.infos[row["code"]] += row["severity"] == INFO
        for row in unread_rows(job.unit, totals):
            sink.add("findings", row)
    entry = {
        "kdump": __version__,
        "fingerprint": job.fingerprint,
        "unit": path_text(job.unit.name if isinstance(job.unit, Unit) else job.unit[0]),
        "files": sorted(sink.names),
        **vars(job.identity),
        "topic": place.topic if isinstance(place, (Partition, Target)) else None,
        "partition": place.partition if isinstance(place, (Partition, Target)) else None,
        "totals": _totals(totals),
        "codes": dict(sink.codes),
        "infos": dict(+sink.infos),
        "open": _open(job.unit),
        "source": sink.common.get("source"),
        "state": sink.common.get("state"),
        "tally": sink.tally.said(job.unit) if isinstance(job.unit, Unit) and place is not None else None,
        "seconds": round(time.monotonic() - began, 3),
    }
    store.put_unit(job.key, entry)
    return entry


def _place(unit: Unit | tuple[str, str]) -> Partition | Target | None:
    return (unit.partition or unit.target) if isinstance(unit, Unit) else None


def _totals(totals: Totals) -> dict[str, Any]:
    names = ("partitions", "files", "bytes", "batches", "records", "unread", "notes")
    return {name: getattr(totals, name) for name in names} | {"findings": dict(totals.findings)}


def _open(unit: Unit | tuple[str, str]) -> list[dict[str, Any]]:
    """The transactions that the partition's log leaves open."""
    check = unit.check if isinstance(unit, Unit) else None
    if check is None:
        return []
    return [
        {
            "producerId": producer,
            "producerEpoch": running.epoch,
            "firstOffset": running.first_offset,
            "timestamp": running.timestamp,
            "records": running.records,
        }
        for producer, running in check.open_transactions.items()
    ]


def _small_files(job: Job, place: Partition | Target | None, sink: Sink) -> None:
    """Rows of the segments' headers, of indexes, snapshots and checkpoints."""
    assert isinstance(job.unit, Unit)
    if isinstance(place, Partition):
        clean = False if place.topic == METADATA_TOPIC else job.unit.known.clean
        for facts in segments_of(place):
            for row in segment_rows((facts, clean)):
                sink.tally.segment(row)
                sink.add("segments", row)
        for at in small_files(place):
            _entries(at, job, sink)
    elif isinstance(place, Target):
        _entries(place, job, sink)
    elif job.unit.directory is not None:
        for at in job.unit.directory.files.values():
            _entries(at, job, sink)


TABLE_OF = {
    kinds.INDEX: "index_entries",
    kinds.TIME_INDEX: "index_entries",
    kinds.TXN_INDEX: "index_entries",
    kinds.PRODUCER_SNAPSHOT: "producer_states",
    kinds.OFFSET_CHECKPOINT: "checkpoints",
    kinds.EPOCH_CHECKPOINT: "checkpoints",
}


def _entries(at: Target, job: Job, sink: Sink) -> None:
    table = TABLE_OF.get(at.kind) if at.kind is not None else None
    if table is not None and table in job.tables:
        for row in entry_rows(at):
            sink.add(table, {"topic": at.topic, "partition": at.partition, **row})


class Sink:
    """The Parquet files of a unit, each there once it has a row."""

    def __init__(self, job: Job, place: Partition | Target | None, store: Store, stack: ExitStack) -> None:
        self.job = job
        self.store = store
        self.stack = stack
        self.names: list[str] = []
        self.codes: Counter[str] = Counter()
        self.infos: Counter[str] = Counter()
        self.tally = Tally(job.retention)
        self.batches: BatchColumns | None = None
        self.writers: dict[str, TableWriter] = {}
        unit = job.unit
        self.common: dict[str, Any] = dict(vars(job.identity))
        if isinstance(unit, Unit):
            source = place.source if place is not None else unit.directory.path if unit.directory else ""
            self.common["source"] = path_text(source)
        if place is not None:
            self.common |= {"topic": place.topic, "partition": place.partition}
            self.common["state"] = (place.state or "live") if isinstance(place, Partition) else "live"

    def add(self, table: str, row: dict[str, Any]) -> None:
        writer = self.writers.get(table)
        if writer is None:
            writer = self.writers[table] = self._writer(TABLES[table])
        writer.add(self.common | {name: value for name, value in row.items() if value is not None})

    def batch_columns(self) -> BatchColumns:
        """Where batches gather; `put_batches` writes what is there."""
        if self.batches is None:
            writer = self.writers["batches"] = self._writer(BATCHES)
            self.batches = BatchColumns(writer.schema)
            self.stack.callback(self.put_batches)
        return self.batches

    def put_batches(self) -> None:
        assert self.batches is not None
        self.writers["batches"].put(self.batches.take())

    def _writer(self, table: Table) -> TableWriter:
        values = {"broker": self.job.identity.broker}
        if table.name in BY_TOPIC:
            values["topic"] = self.common.get("topic")
        number = self.common.get("partition")
        name = f"{folder(table.name, values)}/{'root' if number is None else number}-{self.job.key}.parquet"
        self.names.append(name)
        file = self.stack.enter_context(self.store.writing(name))
        writer = TableWriter(table, tuple(values), file)
        self.stack.callback(writer.close)
        return writer


class TableWriter:
    """Rows of a table -> one Parquet file, without the columns that its directory says."""

    def __init__(self, table: Table, apart: tuple[str, ...], file: Any) -> None:
        schema = arrow_schema(table)
        self.schema = pa.schema([each for each in schema if each.name not in apart])
        self.rows = Rows(table, self.schema)
        self.held: list[pa.RecordBatch] = []
        self.count = 0
        self.writer = pq.ParquetWriter(file, self.schema, compression="zstd")

    def add(self, row: dict[str, Any]) -> None:
        if self.rows.add(row):
            self.put(self.rows.take())

    def put(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Record batches of the table, without those columns."""
        for batch in batches:
            self.held.append(batch)
            self.count += batch.num_rows
        if self.count >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if self.held:
            self.writer.write_table(pa.Table.from_batches(self.held, self.schema))
            self.held, self.count = [], 0

    def close(self) -> None:
        self.put(self.rows.take())
        self._flush()
        self.writer.close()
