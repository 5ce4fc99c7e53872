"""One read of one unit (a log directory's root, a partition, a file) by a scan: its findings, batches and segments, and
the entries of its small files, become rows of the tables; its counts become its entry.

At the last segment of a partition, and at every segment after many bytes, the state of the check is kept: the next scan
resumes there if the earlier segments are unchanged (kdump.spark.resume_point)."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.check.resume_state import StateError
from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.check.totals import CheckTotals
from kdump.check.unchanged import file_stamps
from kdump.cluster.partition_summary import segments_of
from kdump.core.column_numbers import ATTRIBUTES, IS_CONTROL
from kdump.core.header_columns import HeaderColumns, batch_ages, by_codec, within
from kdump.format.codec_table import codec_name
from kdump.io.directory_listing import length
from kdump.io.run import ignore
from kdump.kafka.small_files import topic_id
from kdump.log import file_kinds
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.log.producer_sums import ProducerSums
from kdump.render.escape import path_text
from kdump.spark.resume_point import (
    ResumePoint,
    compared_now,
    epochs_until,
    is_time_independent,
    pack_state,
    prefix_fingerprint,
    recovered,
    unpack_state,
)
from kdump.spark.unit_writer import UnitWriter
from kdump.spark.units import Entry
from kdump.tables.batch_rows import BatchColumns
from kdump.tables.declarations import COUNTS, FINDINGS, PRODUCERS, RESULTS, SEGMENTS, SparkTable
from kdump.tables.disk_identity import DiskIdentity
from kdump.tables.small_tables import entry_rows, row_of, segment_rows, unread_rows

Object = dict[str, Any]


class UnitTotals:
    """Counts of one unit."""

    def __init__(self) -> None:
        self.formats: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.data = [0, 0, 0]
        self.negative = 0
        self.oldest: int | None = None
        self.newest: int | None = None
        self.segments = 0
        self.size = 0

    def batch(self, seen: BatchContext) -> None:
        """Count one batch."""
        batch = seen.batch
        count = batch.possible_records
        counted = [self.formats[f"{batch.magic}/{batch.compression}"]]
        if not batch.isControlBatch:
            counted.append(self.data)
        for sums in counted:
            sums[0] += 1
            sums[1] += count
            sums[2] += batch.size
        if not seen.is_valid:
            return
        newest = batch.maxTimestamp
        if newest is not None and newest >= 0:
            oldest = newest if batch.baseTimestamp is None or batch.hasDeleteHorizonMs else batch.baseTimestamp
            self._times(oldest, newest)
        elif newest is not None and count:
            self.negative += 1

    def batches(self, heads: HeaderColumns, first: int, stop: int) -> None:
        """Count the batches first..stop-1: valid, without control batches and without delete horizons."""
        for sums in by_codec(heads, first, stop):
            for counted in (self.formats[f"2/{codec_name(sums.codec)}"], self.data):
                counted[0] += sums.batches
                counted[1] += sums.records
                counted[2] += sums.bytes
        seen = batch_ages(heads, first, stop)
        self._times(seen.oldest, seen.newest)
        self.negative += seen.negative

    def _times(self, oldest: int, newest: int) -> None:
        """Extend the range of timestamps (epoch ms; -1: none)."""
        if newest >= 0:
            self.newest = newest if self.newest is None else max(self.newest, newest)
        if oldest >= 0:
            self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)

    def segment(self, row: Object) -> None:
        """Count one segment, given its row."""
        self.segments += 1
        self.size += row["size"]

    def state(self) -> Object:
        """Return the counts so far as a JSON object."""
        counted = {name: getattr(self, name) for name in ("data", "negative", "oldest", "newest", "segments", "size")}
        return {"formats": dict(self.formats), **counted}

    def resume(self, state: Object) -> None:
        """Restore the counts from a state. Raises KeyError, TypeError or ValueError if it is not a state."""
        for name, (batches, records, size) in state["formats"].items():
            self.formats[name] = [int(batches), int(records), int(size)]
        batches, records, size = state["data"]
        self.data = [int(batches), int(records), int(size)]
        self.negative = int(state["negative"])
        self.oldest, self.newest = (None if state[name] is None else int(state[name]) for name in ("oldest", "newest"))
        self.segments, self.size = int(state["segments"]), int(state["size"])

    def as_columns(self) -> Object:
        """Return the counts as columns of the unit's entry (kdump.spark.units.UNITS)."""
        return {
            "formats": [_format(name, sums) for name, sums in sorted(self.formats.items())],
            **dict(zip(("dataBatches", "dataRecords", "dataBytes"), self.data)),
            "negative": self.negative,
            "oldest": self.oldest,
            "newest": self.newest,
            "segments": self.segments,
            "size": self.size,
        }


def _format(name: str, sums: list[int]) -> Object:
    magic, _, compression = name.partition("/")
    return {"magic": int(magic), "compression": compression, **dict(zip(("batches", "records", "bytes"), sums))}


class UnitObserver(Observer):
    """Counts the batches of a unit, and collects them. `batches` returns the collector of the table batches once there
    is a row, and `put` writes its contents; with None instead, batches are only counted. `put_producer` writes a row of
    the table producers; `turn_to` is called with the index of each segment; `end_segment` has to be called after it."""

    def __init__(
        self,
        tally: UnitTotals,
        common: dict[str, Any],
        batches: Callable[[], BatchColumns] | None,
        put: Callable[[], None],
        put_producer: Callable[[dict[str, Any]], None],
        turn_to: Callable[[int], None] = ignore,
    ) -> None:
        self.tally = tally
        self.producers, self.put_producer = ProducerSums(), put_producer
        self.common, self.batches, self.put, self.turn_to = common, batches, put, turn_to
        self.path = ""
        self.here: dict[str, Any] = {}

    def before(self, number: int) -> None:
        self.turn_to(number)

    def first_suspect(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> int:
        return within(heads, ATTRIBUTES, first, stop, 0, IS_CONTROL - 1)  # markers, which are looked at one by one

    def accept_run(self, part: SegmentContext, heads: HeaderColumns, first: int, stop: int) -> None:
        here = self._here(part)
        self.tally.batches(heads, first, stop)
        self.producers.batches(heads, first, stop)
        if self.batches is not None and self.batches().add_many(heads, first, stop, here):
            self.put()
        if self.producers.is_full:
            self.end_segment()

    def batch(self, seen: BatchContext) -> None:
        here = self._here(seen.part)
        self.tally.batch(seen)
        self.producers.batch(seen.batch)
        if self.batches is not None and self.batches().add(seen.batch, here):
            self.put()
        if self.producers.is_full:
            self.end_segment()

    def end_segment(self) -> None:
        """Write what the batches of the segment add up to by producer."""
        for row in self.producers.take():
            self.put_producer(self.here | row)

    def _here(self, part: SegmentContext) -> dict[str, Any]:
        """Return the columns that all rows of a segment share."""
        path = part.target.path
        if path != self.path:
            self.path, self.here = path, {**self.common, "file": path_text(path)}
        return self.here


RESUMED = {name: of for name, of in COUNTS.items() if name != "partitions"}
"""Counts of the segments that are not read again; the partition is counted when it is opened."""


@dataclass
class UnitJob:
    """A unit to read: its `key`, its owner, and its fingerprint when the scan was planned. `size`: bytes to read;
    `kept`: where to resume, with the state of the check there."""

    key: str
    unit: CheckUnit | tuple[str, str]
    identity: DiskIdentity
    fingerprint: str
    tables: tuple[str, ...]
    size: int = 0
    kept: ResumePoint | None = None
    state: bytes | None = None

    @property
    def place(self) -> PartitionDirectory | Target | None:
        return (self.unit.partition or self.unit.target) if isinstance(self.unit, CheckUnit) else None


class UnitRead:
    """One read of one unit."""

    def __init__(self, job: UnitJob, writer: UnitWriter, copied: list[str] | None = None) -> None:
        """`copied`: the files with the rows of the segments before `job.kept`, unless they are in the result."""
        self.began = time.monotonic()
        self.job, self.writer, self.copied = job, writer, copied or []
        self.kept, self.state = job.kept, job.state
        self.unit, self.place = job.unit, job.place
        self.first = self.kept.segments if self.kept else 0
        self.totals = CheckTotals()
        self.codes: Counter[tuple[str, str]] = Counter()
        self.tally = UnitTotals()
        self.observer: UnitObserver | None = None
        self.scan: PartitionScan | None = None
        self.resumed: dict[str, Any] | None = None
        """The state at the segment at which the scan begins, if it continues another."""
        self.common = self._common()
        self.is_intact = True
        """Whether no segment so far was unreadable, deleted or growing."""
        self.facts = segments_of(self.place) if isinstance(self.place, PartitionDirectory) else []
        self.stamps = file_stamps(self.place) if isinstance(self.place, PartitionDirectory) else {}

    def _common(self) -> dict[str, Any]:
        """Return the columns that all rows share."""
        common: dict[str, Any] = dict(vars(self.job.identity))
        unit, place = self.unit, self.place
        if isinstance(unit, CheckUnit):
            source = place.source if place is not None else unit.directory.path if unit.directory else ""
            common["source"] = path_text(source)
        if place is not None:
            common |= {"topic": place.topic, "partition": place.partition}
            common["state"] = (place.state or "live") if isinstance(place, PartitionDirectory) else "live"
        return common

    def run(self) -> Entry:
        """Read the unit and return its entry. Raises StoreError; raises StateError, before any row is added, if the
        kept state cannot be used."""
        self._read()
        return self._entry(self.job.fingerprint)

    def _row(self, table: SparkTable, row: dict[str, Any]) -> None:
        self.writer.add(table, self.common | {name: value for name, value in row.items() if value is not None})

    def _name(self) -> str:
        return path_text(self.unit.name if isinstance(self.unit, CheckUnit) else self.unit[0])

    def _read(self) -> None:
        unit, totals = self.unit, self.totals
        self.writer.begin(self.job.key, late=self._is_late(self.first))
        for row in map(row_of, self._findings()):
            self._row(FINDINGS, row)
            totals.findings[row["severity"]] += 1
            self.codes[row["code"], row["severity"]] += 1
        for row in unread_rows(unit, totals):
            self._row(FINDINGS, row)
        if self.observer is not None:
            self.observer.end_segment()
        self._small_files()

    def _findings(self) -> Iterator[Finding]:
        """Yield the findings of the unit, from the kept state on. Raises StateError."""
        if not isinstance(self.unit, CheckUnit):
            return
        self.resumed = unpack_state(self.state) if self.kept else None
        resume = None if self.resumed is None else (self.first, self.resumed.get("check", ""))
        yield from self.unit.run(self.totals, self._observe, resume)

    def _observe(self, scan: PartitionScan) -> list[Observer]:
        """Return what sees the scan of a partition that is about to start."""
        self.scan, writer = scan, self.writer
        self.observer = UnitObserver(
            self.tally,
            self.common,
            writer.batch_columns if "batches" in self.job.tables else None,
            writer.put_batches,
            lambda row: writer.add(PRODUCERS, row),
            self._before if isinstance(self.place, PartitionDirectory) else ignore,
        )
        return [self.observer]

    def _is_late(self, number: int) -> bool:
        """Return True for the last segment, whose rows the next scan reads again if it can resume."""
        return bool(self.facts) and number == len(self.facts) - 1

    def _before(self, number: int) -> None:
        """Called before a segment is read, after all findings of the segments before it."""
        assert self.observer is not None
        assert self.scan is not None
        check = self.scan
        if number == self.first and self.resumed is not None:
            self._restore(self.resumed)
            if self.copied:
                self.writer.copy_unit(self.job.key, self.copied, late=False)
                self.writer.begin(self.job.key, late=self._is_late(number))
        self.observer.end_segment()
        if number > self.first and (self._is_late(number) or self.writer.is_due):
            self._keep(check, number)
        if self._is_late(number):
            self.writer.begin(self.job.key, late=True)
        facts = self.facts[number]
        clean = False if check.known.topic == METADATA_TOPIC else check.known.clean
        assert facts.segment.log is not None
        facts.size = length(facts.segment.log.path) or 0  # for object stores, where read_segment does not set it
        for row in segment_rows((facts, clean)):
            self.tally.segment(row)
            self._row(SEGMENTS, row)
        self.is_intact = self.is_intact and not (facts.error or facts.is_deleted or facts.grows)
        for target in facts.segment.indexes.values():
            self._entries(target)
        self.writer.count(facts.size)

    def _keep(self, check: PartitionScan, number: int) -> None:
        """Note that the next scan may resume at this segment, unless the findings so far may be incomplete, or the
        state is too large."""
        place, context = self.place, check.known
        assert isinstance(place, PartitionDirectory)
        if (
            not self.is_intact
            or self.totals.unread
            or self.totals.notes
            or not is_time_independent(place, {code for code, _ in self.codes})
        ):
            return
        if self.totals.doubted:
            return  # findings of these segments may be confirmed later, and are not among the rows so far
        try:
            state = pack_state(self._state(check))
        except StateError:
            return
        identity, tables = self.job.identity, self.job.tables
        self.state = state
        self.kept = ResumePoint(
            number,
            prefix_fingerprint(place, context, check.options, tables, identity, number, self.stamps),
            check.reached,
            check.recovery_sensitive,
            recovered(place, context, number),
            epochs_until(context, check.reached),
            compared_now(check.compared, self.stamps),
        )
        if self.writer.is_due:
            # What resumes needs the rows of an earlier scan, which the entry of a killed one does not know.
            self.writer.save(self._entry("") if self.job.kept is None or self.copied else None)
            self.writer.begin(self.job.key, late=False)

    def _state(self, check: PartitionScan) -> dict[str, Any]:
        """Return everything that the next scan needs to know of the segments so far. Raises StateError."""
        totals = {name: getattr(self.totals, of) for name, of in RESUMED.items()}
        totals |= {"findings": dict(self.totals.findings)}
        codes = [[*name, count] for name, count in self.codes.items()]
        counts = {"codes": codes, "totals": totals, "notInBundle": sorted(self.totals.withheld)}
        return {"check": check.state(), "tally": self.tally.state(), **counts}

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore the counts of an earlier scan. Raises StateError."""
        try:
            for name, of in RESUMED.items():
                setattr(self.totals, of, int(state["totals"][name]))
            counts = state["totals"]["findings"]
            self.totals.findings.update({str(name): int(count) for name, count in counts.items()})
            self.totals.withheld.update(map(str, state["notInBundle"]))
            self.codes.update({(str(code), str(severity)): int(count) for code, severity, count in state["codes"]})
            self.tally.resume(state["tally"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(str(error)) from None

    def _small_files(self) -> None:
        """Add the rows of files that belong to no segment: orphaned indexes, producer snapshots, checkpoints."""
        place, unit = self.place, self.unit
        if isinstance(place, PartitionDirectory):
            for target in (*place.orphans, *place.snapshots, *place.texts):
                self._entries(target)
        elif isinstance(place, Target):
            self._entries(place)
        elif isinstance(unit, CheckUnit) and unit.directory is not None:
            for target in unit.directory.files.values():
                self._entries(target)

    def _entries(self, target: Target) -> None:
        table = TABLE_OF.get(target.kind) if target.kind is not None else None
        if table is not None and table in self.job.tables:
            for row in entry_rows(target):
                self._row(RESULTS[table], {"topic": target.topic, "partition": target.partition, **row})

    def _entry(self, fingerprint: str) -> Entry:
        place, unit, totals = self.place, self.unit, self.totals
        check = self.scan
        opened = _open(check)
        start, end = self._offsets(check)
        # The rows from there on have to be late. Only a scan that is not finished resumes elsewhere.
        kept = self.kept if self.kept and (not fingerprint or self._is_late(self.kept.segments)) else None
        return {
            "key": self.job.key,
            "unit": self._name(),
            "fingerprint": fingerprint,
            **vars(self.job.identity),
            "source": self.common.get("source"),
            "topic": place.topic if place is not None else None,
            "partition": place.partition if place is not None else None,
            "state": self.common.get("state"),
            "topicId": topic_id(place) if isinstance(place, PartitionDirectory) and not place.state else None,
            **{name: getattr(totals, of) for name, of in COUNTS.items()},
            "unread": [path_text(line) for line in totals.unread],
            "notes": [path_text(line) for line in totals.notes],
            "notInBundle": sorted(totals.withheld),
            **(self.tally.as_columns() if isinstance(unit, CheckUnit) and place is not None else {}),
            "codes": [
                {"code": code, "severity": severity, "count": count}
                for (code, severity), count in sorted(self.codes.items())
            ],
            "logStartOffset": start,
            "lastStableOffset": None if check is None else check.last_stable_offset,
            "logEndOffset": end,
            "open": opened,
            "seconds": round(time.monotonic() - self.began, 3),
            "firstSegment": self.first,
            "kept": kept.as_json() if kept else None,
            "keptState": self.state if kept else None,
        }

    def _offsets(self, check: PartitionScan | None) -> tuple[int | None, int | None]:
        """Return the log start and log end offset, as the segments alone show them; None if unknown."""
        if check is None:
            return None, None
        return self.facts[0].segment.offset if self.facts else check.log_start, check.log_end


def _open(check: PartitionScan | None) -> list[dict[str, Any]]:
    """Return the transactions that are open at the end of the partition's log."""
    return [
        {
            "producerId": producer,
            "producerEpoch": running.epoch,
            "firstOffset": running.first_offset,
            "timestamp": running.timestamp,
            "records": running.records,
        }
        for producer, running in (check.open_transactions.items() if check is not None else ())
    ]


TABLE_OF = {
    file_kinds.INDEX: "index_entries",
    file_kinds.TIME_INDEX: "index_entries",
    file_kinds.TXN_INDEX: "index_entries",
    file_kinds.PRODUCER_SNAPSHOT: "producer_states",
    file_kinds.OFFSET_CHECKPOINT: "checkpoints",
    file_kinds.EPOCH_CHECKPOINT: "checkpoints",
}
