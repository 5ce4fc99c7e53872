"""Collects the batches that a check reads for a scan: counts them, in all and by producer, and adds them to the table
batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from kdump.check.rule import BatchContext, Observer, SegmentContext
from kdump.core.column_numbers import ATTRIBUTES, IS_CONTROL
from kdump.core.header_columns import HeaderColumns, batch_ages, by_codec, within
from kdump.format.codec_table import codec_name
from kdump.io.run import ignore
from kdump.log.producer_sums import ProducerSums
from kdump.render.escape import path_text
from kdump.tables.batch_rows import BatchColumns

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
        self.common = common
        self.batches = batches
        self.put = put
        self.turn_to = turn_to
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
