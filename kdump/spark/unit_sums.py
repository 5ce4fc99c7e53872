"""What the entries of all units add up to, for the summary of a scan: summed in tasks, in memory that grows with the
number of topics alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kdump.spark.scan_answer import BatchFill, FleetTimestamps, FleetTopic, FormatUse
from kdump.spark.store import Store
from kdump.spark.units import entries
from kdump.tables.declarations import COUNTS

Object = dict[str, Any]
MAX_ROWS = 20
"""Maximum rows of a list in the summary; the tables have all of them."""
MAX_TEXTS = 2000
"""Maximum number of remarks, and of open transactions in the summary."""
LEAST_BATCHES = 10
"""Minimum number of batches in a topic for reporting how full its batches are."""
OF_FORMAT = ("batches", "records", "bytes")
OF_DATA = ("dataBatches", "dataRecords", "dataBytes")
COLUMNS = [
    *("copyOf", "topic", "state", *COUNTS, "unread", "notes", "notInBundle"),
    *("codes", "formats", *OF_DATA, "size", "negative", "oldest", "newest"),
]
FUTURE = "timestamp-in-future"


@dataclass
class UnitSums:
    """The sums. `counts` and all that is about live partitions leave out second copies of a disk."""

    counts: Counter[str] = field(default_factory=Counter)
    """COUNTS, and of live partitions batches with a `negative` timestamp, and findings of a `future` one."""
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of findings by code and severity."""
    topics: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By topic: partitions, bytes and records, and without control batches OF_DATA."""
    largest: dict[str, int] = field(default_factory=dict)
    """Bytes of the largest partition, by topic."""
    formats: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    """By magic and codec: batches, records and bytes."""
    times: list[int] = field(default_factory=list)
    """Oldest and newest timestamp in epoch ms; empty if there is none."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    withheld: Counter[str] = field(default_factory=Counter)
    """Number of partitions of which something is not in the bundle."""

    def entry(self, entry: Object) -> None:
        """Add the entry of a unit."""
        for found in entry["codes"] or ():
            self.codes[found["code"], found["severity"]] += found["count"]
        self.unread += entry["unread"] or ()
        self.notes += entry["notes"] or ()
        self.withheld.update(entry["notInBundle"] or ())
        if entry["copyOf"] is not None:
            return
        self.counts.update({name: entry[name] or 0 for name in COUNTS})
        if entry["state"] != "live" or entry["size"] is None:
            return
        self.counts["negative"] += entry["negative"]
        self.counts["future"] += sum(found["count"] for found in entry["codes"] or () if found["code"] == FUTURE)
        self._times([time for time in (entry["oldest"], entry["newest"]) if time is not None])
        for used in entry["formats"] or ():
            self.formats.update({(used["magic"], used["compression"], name): used[name] for name in OF_FORMAT})
        topic, size = entry["topic"], entry["size"]
        if topic is not None:
            own = {"partitions": 1, "bytes": size, "records": entry["records"]} | {
                name: entry[name] for name in OF_DATA
            }
            self.topics.update({(topic, name): count for name, count in own.items()})
            self.largest[topic] = max(size, self.largest.get(topic, 0))

    def _times(self, times: list[int]) -> None:
        every = [*self.times, *times]
        self.times = [min(every), max(every)] if every else []

    def add(self, other: UnitSums) -> None:
        """Add the sums of other entries."""
        for name in ("counts", "codes", "topics", "formats", "withheld"):
            getattr(self, name).update(getattr(other, name))
        for topic, size in other.largest.items():
            self.largest[topic] = max(size, self.largest.get(topic, 0))
        self._times(other.times)
        self.unread = sorted([*self.unread, *other.unread])[:MAX_TEXTS]
        self.notes = sorted([*self.notes, *other.notes])[:MAX_TEXTS]

    def severities(self) -> Counter[str]:
        """Return the number of findings by severity."""
        counts = Counter[str]()
        for (_, severity), count in self.codes.items():
            counts[severity] += count
        return counts

    def lists(self) -> Object:
        """Return fields of the summary (kdump.spark.scan_answer.FleetSummary) by name."""
        sizes = [self._topic(topic) for topic in self.largest]
        used = dict.fromkeys((magic, codec) for magic, codec, _ in self.formats)
        uses = [
            FormatUse(magic, codec, *(self.formats[magic, codec, name] for name in OF_FORMAT)) for magic, codec in used
        ]
        fill = [self._fill(topic) for topic in self.largest if self.topics[topic, "dataBatches"] >= LEAST_BATCHES]
        counts = self.counts
        return {
            "topics": sorted(sizes, key=lambda each: (-each.bytes, each.topic))[:MAX_ROWS],
            "formats": sorted(uses, key=lambda each: (-each.bytes, each))[:MAX_ROWS],
            "fill": sorted(fill, key=lambda each: (each.bytesPerBatch, each.topic))[:MAX_ROWS],
            "timestamps": FleetTimestamps(counts["future"], counts["negative"], *(self.times or (None, None))),
        }

    def _topic(self, topic: str) -> FleetTopic:
        partitions, size, records = (self.topics[topic, name] for name in ("partitions", "bytes", "records"))
        largest = self.largest[topic]
        skew = round(largest * partitions / size, 2) if size else None
        return FleetTopic(topic, partitions, size, records, largest, skew)

    def _fill(self, topic: str) -> BatchFill:
        batches, records, size = (self.topics[topic, name] for name in OF_DATA)
        return BatchFill(topic, batches, round(size / batches, 1), round(records / batches, 1))


def sum_entries(store: Store, names: Iterable[str]) -> UnitSums:
    """Sum the entries in these files. Raises StoreError."""
    sums = UnitSums()
    for name in names:
        of_file = UnitSums()
        for entry in entries(store, [name], COLUMNS):
            of_file.entry(entry)
        sums.add(of_file)
    return sums


def merged_sums(several: Iterable[UnitSums]) -> UnitSums:
    """Return the sums of all."""
    total = UnitSums()
    for sums in several:
        total.add(sums)
    return total
