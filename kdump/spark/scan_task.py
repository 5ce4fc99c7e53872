"""The task of a scan: reads one unit once. Its findings, batches, and the entries of its small files become Parquet
files; everything else becomes an entry in the result's list of units.

The rows of a partition's last segment are in files of their own, separate from those of the earlier segments: the next
scan resumes there if the earlier segments are unchanged (kdump.spark.resume_point).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from kdump import __version__
from kdump.check.engine.partition_check import PartitionCheck
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import INFO
from kdump.check.resume_state import StateError
from kdump.check.totals import CheckTotals
from kdump.log import file_kinds
from kdump.log.directory_listing import length
from kdump.log.internal_topics import METADATA_TOPIC
from kdump.log.partition_directory import PartitionDirectory
from kdump.log.paths import Target
from kdump.render.escape import path_text
from kdump.spark.fleet import DiskIdentity
from kdump.spark.resume_point import (
    ResumePoint,
    compared_now,
    epochs_until,
    file_stamps,
    is_time_independent,
    prefix_fingerprint,
    read_state,
    recovered,
    state_of,
    write_state,
)
from kdump.spark.scan_sink import UnitSink
from kdump.spark.small_tables import entry_rows, finding_rows, segment_rows, unread_rows
from kdump.spark.store import Store
from kdump.spark.unit_observer import UnitObserver
from kdump.spark.unit_totals import UnitTotals
from kdump.state.partition_summary import segments_of

SPAN = 8 * 1024 * 1024 * 1024
"""Bytes of a partition's segments after which progress is saved, in case the scan is interrupted."""
COUNTED = ("files", "bytes", "batches", "records")


@dataclass
class UnitJob:
    """A unit to read: its `key`, its owner, and its fingerprint when the scan was planned. `size`: bytes to read;
    `kept`: where to resume."""

    key: str
    unit: CheckUnit | tuple[str, str]
    identity: DiskIdentity
    fingerprint: str
    tables: tuple[str, ...]
    size: int = 0
    retention: int | None = None
    """The topic's retention.ms; None if it has no time-based retention, or if that is unknown."""
    kept: ResumePoint | None = None

    @property
    def place(self) -> PartitionDirectory | Target | None:
        return (self.unit.partition or self.unit.target) if isinstance(self.unit, CheckUnit) else None


def run_job(job: UnitJob, store: Store) -> dict[str, Any]:
    """Read a unit, write its rows, and return its entry. Raises StoreError."""
    if job.kept is not None:
        try:
            return _UnitRead(job, store, job.kept).run()
        except StateError:  # the kept state is unusable: start from the first segment
            pass
    return _UnitRead(job, store, None).run()


class _UnitRead:
    """One read of one unit."""

    def __init__(self, job: UnitJob, store: Store, kept: ResumePoint | None) -> None:
        self.began = time.monotonic()
        self.job, self.store, self.kept = job, store, kept
        self.unit, self.place = job.unit, job.place
        self.first = kept.segments if kept else 0
        self.totals = CheckTotals()
        self.codes: Counter[str] = Counter()
        self.infos: Counter[str] = Counter()
        self.tally = UnitTotals(job.retention)
        self.common = self._common()
        self.files = list(kept.files) if kept else []
        self.span = 0
        self.is_intact = True
        """Whether no segment so far was unreadable, deleted or growing."""
        self.facts = segments_of(self.place) if isinstance(self.place, PartitionDirectory) else []
        self.stamps = file_stamps(self.place) if isinstance(self.place, PartitionDirectory) else {}
        self.sink = self._sink(self.first)

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

    def _sink(self, number: int) -> UnitSink:
        """Return the sink for rows of the segments from `number` on. Rows of the last segment, and of files that belong
        to no segment, are always in files of the same names."""
        place = self.common.get("partition")
        stem = f"{'root' if place is None else place}-{self.job.key}"
        return UnitSink(self.store, self.common, f"{stem}-{number}" if number < len(self.facts) - 1 else stem)

    def run(self) -> dict[str, Any]:
        """Read the unit and return its entry. Raises StoreError; raises StateError, before any row is written, if the
        kept state cannot be used."""
        self._begin()
        try:
            self._read()
        except BaseException as error:
            self.sink.abandon(error)
            raise
        self.sink.close()
        self.files += self.sink.names
        entry = self._entry()
        self.store.put_unit(self.job.key, entry)
        return entry

    def _begin(self) -> None:
        """Mark the unit's entry as changed, and list in it all files that may exist. After an interruption, the next
        scan can then resume, or knows what to delete. Deletes the files that are not kept."""
        before = self.store.unit(self.job.key) or {}
        self._put_begun(self._possible(), before)
        for name in {*before.get("files", ()), *state_of(before)} - {*self.files, *state_of(self._kept())}:
            self.store.remove(name)

    def _put_begun(self, possible: list[str], before: dict[str, Any] | None = None) -> None:
        files = {*self.files, *possible, *(before or {}).get("files", ())}
        entry = {"kdump": __version__, "fingerprint": "", "unit": self._name(), "files": sorted(files)} | self._kept()
        self.store.put_unit(self.job.key, entry)

    def _possible(self) -> list[str]:
        """Return the files that may be created before the entry is written next."""
        sinks = {sink.stem: sink for sink in (self.sink, self._sink(len(self.facts)))}
        return [sink.name(table) for sink in sinks.values() for table in ("findings", *self.job.tables)]

    def _kept(self) -> dict[str, Any]:
        return {"kept": self.kept.as_json() if self.kept else None}

    def _name(self) -> str:
        return path_text(self.unit.name if isinstance(self.unit, CheckUnit) else self.unit[0])

    def _read(self) -> None:
        unit, totals = self.unit, self.totals
        if isinstance(unit, CheckUnit):
            state = read_state(self.store, self.kept) if self.kept else None
            batches = (lambda: self.sink.batch_columns()) if "batches" in self.job.tables else None
            unit.watcher = UnitObserver(self.tally, self.common, batches, lambda: self.sink.put_batches())
            unit.prepare = lambda check: self._prepare(check, state)
        for row in finding_rows(unit, totals):
            self.sink.add("findings", row)
            totals.findings[row["severity"]] += 1
            self.codes[row["code"]] += 1
            self.infos[row["code"]] += row["severity"] == INFO
        for row in unread_rows(unit, totals):
            self.sink.add("findings", row)
        self._small_files()

    def _prepare(self, check: PartitionCheck, state: dict[str, Any] | None) -> None:
        """Connect the check of a partition that is about to start, and restore the kept state. Raises StateError."""
        if not isinstance(self.place, PartitionDirectory):
            return
        check.before = lambda number: self._before(check, number)
        if state is not None:
            check.resume(self.first, state.get("check", ""))
            self._restore(state)

    def _before(self, check: PartitionCheck, number: int) -> None:
        """Called before a segment is read, after all findings of the segments before it."""
        is_last = number == len(self.facts) - 1
        if number > self.first and (is_last or self.span >= SPAN):
            self._leave(check, number)
        facts = self.facts[number]
        clean = False if check.known.topic == METADATA_TOPIC else check.known.clean
        assert facts.segment.log is not None
        facts.size = length(facts.segment.log.path) or 0  # for object stores, where read_segment does not set it
        for row in segment_rows((facts, clean)):
            self.tally.segment(row)
            self.sink.add("segments", row)
        self.is_intact = self.is_intact and not (facts.error or facts.is_deleted or facts.grows)
        for target in facts.segment.indexes.values():
            self._entries(target)
        self.span += facts.size

    def _leave(self, check: PartitionCheck, number: int) -> None:
        """Finish the segments before `number`: their rows stay, and the next scan may resume after them."""
        self.sink.close()
        self.files += self.sink.names
        self.span = 0
        self.sink = self._sink(number)
        kept = self._keep(check, number)
        old, self.kept = self.kept, kept or self.kept
        self._put_begun(self._possible())
        if kept is not None and old is not None and old.state != kept.state:
            self.store.remove(old.state)

    def _keep(self, check: PartitionCheck, number: int) -> ResumePoint | None:
        """Return the resume point; None if the findings so far may be incomplete, or if the state is too large."""
        place, known = self.place, check.known
        assert isinstance(place, PartitionDirectory)
        if not self.is_intact or self.totals.unread or self.totals.notes or not is_time_independent(place, self.codes):
            return None
        if isinstance(self.unit, CheckUnit) and self.unit.doubted:
            return None  # findings of these segments may be confirmed later, and are not among the rows so far
        try:
            state, digest = write_state(self.store, self.job.key, number, self._state(check))
        except StateError:
            return None
        identity, tables = self.job.identity, self.job.tables
        return ResumePoint(
            number,
            prefix_fingerprint(place, known, check.options, tables, identity, number, self.stamps),
            check.reached,
            check.recovery_sensitive,
            recovered(place, known, number),
            epochs_until(known, check.reached),
            compared_now(place, check.compared, self.stamps),
            list(self.files),
            state,
            digest,
        )

    def _state(self, check: PartitionCheck) -> dict[str, Any]:
        """Return everything that the next scan needs to know of the segments so far. Raises StateError."""
        totals = {name: getattr(self.totals, name) for name in COUNTED} | {"findings": dict(self.totals.findings)}
        counts = {"codes": dict(self.codes), "infos": dict(self.infos), "totals": totals}
        return {"check": check.state(), "tally": self.tally.state(), **counts}

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore the counts of an earlier scan. Raises StateError."""
        try:
            for name in COUNTED:
                setattr(self.totals, name, int(state["totals"][name]))
            for counter, counts in (
                (self.totals.findings, state["totals"]["findings"]),
                (self.codes, state["codes"]),
                (self.infos, state["infos"]),
            ):
                counter.update({str(name): int(count) for name, count in counts.items()})
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
                self.sink.add(table, {"topic": target.topic, "partition": target.partition, **row})

    def _entry(self) -> dict[str, Any]:
        place, unit, totals = self.place, self.unit, self.totals
        names = (*COUNTED, "partitions", "unread", "notes")
        return {
            "kdump": __version__,
            "fingerprint": self.job.fingerprint,
            "unit": self._name(),
            "files": sorted(self.files),
            **self._kept(),
            "first": self.first,
            **vars(self.job.identity),
            "topic": place.topic if place is not None else None,
            "partition": place.partition if place is not None else None,
            "totals": {name: getattr(totals, name) for name in names} | {"findings": dict(totals.findings)},
            "codes": dict(self.codes),
            "infos": dict(+self.infos),
            "open": _open(unit),
            "source": self.common.get("source"),
            "state": self.common.get("state"),
            "tally": self.tally.as_object(unit) if isinstance(unit, CheckUnit) and place is not None else None,
            "seconds": round(time.monotonic() - self.began, 3),
        }


def _open(unit: CheckUnit | tuple[str, str]) -> list[dict[str, Any]]:
    """Return the transactions that are open at the end of the partition's log."""
    check = unit.check if isinstance(unit, CheckUnit) else None
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


TABLE_OF = {
    file_kinds.INDEX: "index_entries",
    file_kinds.TIME_INDEX: "index_entries",
    file_kinds.TXN_INDEX: "index_entries",
    file_kinds.PRODUCER_SNAPSHOT: "producer_states",
    file_kinds.OFFSET_CHECKPOINT: "checkpoints",
    file_kinds.EPOCH_CHECKPOINT: "checkpoints",
}
