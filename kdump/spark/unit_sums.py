"""What the entries of all units add up to, for the summary of a scan: summed in tasks, in memory that grows with the
number of topics alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdump.spark.scan_answer import BatchFill, FleetTimestamps, FleetTopic, FormatUse
from kdump.spark.store import Store
from kdump.spark.units import COUNTS, entries

Object = dict[str, Any]
MAX_ROWS = 20
"""Maximum rows of a list in the summary; the tables have all of them."""
MAX_TEXTS = 2000
"""Maximum number of remarks, and of open transactions in the summary."""
LEAST_BATCHES = 10
"""Minimum number of batches in a topic for reporting how full its batches are."""
COLUMNS = [
    *("copyOf", "topic", "state", *COUNTS, "unread", "notes", "notInBundle"),
    *("codes", "formats", "dataBatches", "dataRecords", "dataBytes", "size", "negative", "oldest", "newest"),
]
FUTURE = "timestamp-in-future"


@dataclass
class TopicSums:
    """Sums of the partitions of a topic. `data`: batches, records and bytes without control batches."""

    partitions: int = 0
    bytes: int = 0
    records: int = 0
    largest: int = 0
    data: list[int] = field(default_factory=lambda: [0, 0, 0])

    def add(self, other: TopicSums) -> None:
        self.partitions += other.partitions
        self.bytes += other.bytes
        self.records += other.records
        self.largest = max(self.largest, other.largest)
        self.data = [have + more for have, more in zip(self.data, other.data)]


@dataclass
class UnitSums:
    """The sums. `counts` and all that is about live partitions leave out second copies of a disk."""

    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of findings by code and severity."""
    topics: dict[str, TopicSums] = field(default_factory=lambda: defaultdict(TopicSums))
    formats: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    negative: int = 0
    future: int = 0
    times: list[int] = field(default_factory=list)
    """Oldest and newest timestamp in epoch ms; empty if there is none."""
    unread: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_in_bundle: Counter[str] = field(default_factory=Counter)
    """Number of partitions of which something is not in the bundle."""

    def entry(self, entry: Object) -> None:
        """Add the entry of a unit."""
        for each in entry["codes"] or ():
            self.codes[each["code"], each["severity"]] += each["count"]
        self.unread += entry["unread"] or ()
        self.notes += entry["notes"] or ()
        self.not_in_bundle.update(entry["notInBundle"] or ())
        if entry["copyOf"] is not None:
            return
        self.counts.update({name: entry[name] or 0 for name in COUNTS})
        if entry["state"] != "live" or entry["size"] is None:
            return
        self.negative += entry["negative"]
        self.future += sum(each["count"] for each in entry["codes"] or () if each["code"] == FUTURE)
        self._times([time for time in (entry["oldest"], entry["newest"]) if time is not None])
        for each in entry["formats"] or ():
            sums = self.formats[each["magic"], each["compression"]]
            sums[:] = [have + each[name] for have, name in zip(sums, ("batches", "records", "bytes"))]
        if entry["topic"] is not None:
            data = [entry[name] for name in ("dataBatches", "dataRecords", "dataBytes")]
            self.topics[entry["topic"]].add(TopicSums(1, entry["size"], entry["records"], entry["size"], data))

    def _times(self, times: list[int]) -> None:
        every = [*self.times, *times]
        self.times = [min(every), max(every)] if every else []

    def add(self, other: UnitSums) -> None:
        """Add the sums of other entries."""
        self.counts.update(other.counts)
        self.codes.update(other.codes)
        self.not_in_bundle.update(other.not_in_bundle)
        for name, topic in other.topics.items():
            self.topics[name].add(topic)
        for key, more in other.formats.items():
            sums = self.formats[key]
            sums[:] = [have + each for have, each in zip(sums, more)]
        self.negative += other.negative
        self.future += other.future
        self._times(other.times)
        self.unread = sorted([*self.unread, *other.unread])[:MAX_TEXTS]
        self.notes = sorted([*self.notes, *other.notes])[:MAX_TEXTS]

    def severities(self) -> Counter[str]:
        """Return the number of findings by severity."""
        found = Counter[str]()
        for (_, severity), count in self.codes.items():
            found[severity] += count
        return found

    def lists(self) -> Object:
        """Return fields of the summary (kdump.spark.scan_answer.FleetSummary) by name."""
        sizes = [_topic(name, sums) for name, sums in self.topics.items()]
        uses = [FormatUse(*key, *sums) for key, sums in self.formats.items()]
        fill = [_fill(name, sums) for name, sums in self.topics.items() if sums.data[0] >= LEAST_BATCHES]
        return {
            "topics": sorted(sizes, key=lambda each: (-each.bytes, each.topic))[:MAX_ROWS],
            "formats": sorted(uses, key=lambda each: (-each.bytes, each))[:MAX_ROWS],
            "fill": sorted(fill, key=lambda each: (each.bytesPerBatch, each.topic))[:MAX_ROWS],
            "timestamps": FleetTimestamps(self.future, self.negative, *(self.times or (None, None))),
        }


def _topic(name: str, sums: TopicSums) -> FleetTopic:
    skew = round(sums.largest * sums.partitions / sums.bytes, 2) if sums.bytes else None
    return FleetTopic(name, sums.partitions, sums.bytes, sums.records, sums.largest, skew)


def _fill(name: str, sums: TopicSums) -> BatchFill:
    batches, records, size = sums.data
    return BatchFill(name, batches, round(size / batches, 1), round(records / batches, 1))


class SumTask(NamedTuple):
    """The input of a task: names of the files with the entries that are to be summed."""

    store: Store
    names: tuple[str, ...]


def sum_entries(task: SumTask) -> UnitSums:
    """Sum entries. Raises StoreError."""
    sums = UnitSums()
    for name in task.names:
        of_file = UnitSums()
        for entry in entries(task.store, [name], COLUMNS):
            of_file.entry(entry)
        sums.add(of_file)
    sums.topics, sums.formats = dict(sums.topics), dict(sums.formats)  # without a factory, which cannot be pickled
    return sums


def merged_sums(found: Iterable[UnitSums]) -> UnitSums:
    """Return the sums of all."""
    total = UnitSums()
    for each in found:
        total.add(each)
    return total
