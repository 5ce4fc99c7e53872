"""Searches all partitions of a topic for records with a key, and notes what could not be searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, NamedTuple

from kdump.answer import EPOCH_MS, NAME, Doc, Shown, columns
from kdump.browse.browser import Mark
from kdump.browse.scopes import Scope, ScopePart
from kdump.format.count_text import count_text, plain_count, size_text
from kdump.format.murmur2 import partition_of
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log.batch_records import decode_columns, records
from kdump.log.expression.terms import one_of_keys
from kdump.log.live_files import open_window
from kdump.log.paths import Target, short_name
from kdump.log.reading import Reading
from kdump.log.record import Record
from kdump.log.region import PADDING, Batch, BatchRun, DefaultRecordBatch, batches_of
from kdump.log.region_reader import Depth
from kdump.log.selection import Selection
from kdump.log.walk import PartitionReader

MAX_HITS = 10_000
"""Maximum number of records that are listed; further ones are counted."""
MAX_REASONS = 100
"""Maximum number of reasons that are kept for what was not searched."""
MAX_PARTITIONS = 1_000_000
"""Number of partitions of a topic above which no likely partition is computed."""


@columns(
    at=Shown("offset", cell=lambda hit: "?" if hit.offset is None else str(hit.offset), after="name", right=True),
    value=Shown(
        rank=6,
        cell=lambda hit: plain_count(hit.size, "byte") if hit.size >= 0 else "null",
        after="timestamp",
        right=True,
    ),
    flags=Shown(rank=5, cell=lambda hit: "CRC!" * hit.doubtful),
)
class Hit(NamedTuple):
    """A record with the key. `size`: of its value in bytes, -1 for a tombstone; `doubtful`: the checksum of its batch
    does not match."""

    name: Annotated[str, Shown("partition", 8, 16, cuts=NAME)]
    offset: int | None
    timestamp: Annotated[int | None, Doc(unit=EPOCH_MS), Shown(rank=7, after="at")]
    size: int
    doubtful: bool
    path: str
    position: Annotated[int, Shown("batch at", 4)]
    record_index: int

    @property
    def mark(self) -> Mark:
        label = f"{self.name}, offset {self.offset}"
        return Mark(self.path, self.position, self.record_index, self.offset, label)


@dataclass
class KeySearch:
    """A search for `text`, typed for the bytes of `keys`. A thread fills it, and another one shows it."""

    text: str
    keys: frozenset[bytes]
    title: str = ""
    hits: list[Hit] = field(default_factory=list)
    left_out: int = 0
    partitions: int = 0
    """Partitions to search; `done` of them have been searched."""
    done: int = 0
    bytes: int = 0
    records: int = 0
    likely: str = ""
    """The partition that is searched first, and why."""
    missing: str = ""
    """Partitions of the topic that are not below the path."""
    unsearched: list[str] = field(default_factory=list)
    """What could not be searched, and why; at most MAX_REASONS."""
    unsearched_count: int = 0
    left_over: int = 0
    """Number of .deleted, .swap and .cleaned segments, which are not searched."""
    running: bool = True
    finished: bool = False
    """Whether all partitions were searched."""

    def note(self, reason: str) -> None:
        self.unsearched_count += 1
        if len(self.unsearched) < MAX_REASONS:
            self.unsearched.append(reason)

    @property
    def found(self) -> int:
        return len(self.hits) + self.left_out

    def summary(self) -> str:
        """Return what is known so far; never that there is no such record before everything was searched."""
        read = f"{size_text(self.bytes)} with {count_text(self.records, 'record')} read"
        where = count_text(self.partitions, "partition")
        if not self.finished:
            where = f"{self.done} of {where}"
        elif not self.found and self.unsearched_count:
            where = f"what could be read of {where}"
        count = "no record" if self.finished and not self.found else count_text(self.found, "record")
        words = [f"{count} with key {self.text!r} in {where}, {read}"]
        if self.unsearched_count:
            words = [f"NOT SEARCHED: {count_text(self.unsearched_count, 'place')}", *words, self.unsearched[0]]
        if not self.running and not self.finished:
            words.insert(0, "stopped")
        if self.left_over:
            words.append(f"{count_text(self.left_over, '.deleted, .swap or .cleaned segment')} not searched")
        if self.left_out:
            words.append(f"{self.left_out} more are not listed")
        words += [remark for remark in (self.missing, self.likely) if remark]
        return "; ".join(words)


def typed_key(typed: str) -> frozenset[bytes]:
    """Return the keys that a text stands for: its UTF-8 bytes; for 0x and hex digits, those bytes, too."""
    keys = {typed.encode("utf-8", "surrogateescape")}
    if typed[:2].lower() == "0x" and len(typed) > 2:
        with suppress(ValueError):
            keys.add(bytes.fromhex(typed[2:]))
    return frozenset(keys)


def plan(search: KeySearch, scope: Scope) -> list[ScopePart]:
    """Return the partitions in the order in which they are searched: first that in which the default partitioner puts
    the key, if the number of partitions is known."""
    search.title, search.partitions = scope.title, len(scope.parts)
    for error in scope.unlisted:
        search.note(error)
    search.left_over = sum(len(part.left_over) for part in scope.parts)
    topics = {part.topic for part in scope.parts}
    numbers = {part.number for part in scope.parts if part.number is not None and not part.state}
    if len(topics) != 1 or None in topics or not numbers:
        return scope.parts
    count = max(numbers) + 1
    if len(numbers) < count:
        absent = list(islice((number for number in range(count) if number not in numbers), 6))
        names = ", ".join(map(str, absent[:5])) + (", …" if len(absent) > 5 else "")
        search.missing = f"not on this disk: {'partition' if len(absent) == 1 else 'partitions'} {names} of the topic"
        return scope.parts
    if count == 1 or count > MAX_PARTITIONS:
        return scope.parts
    likely = partition_of(min(search.keys, key=len), count)
    search.likely = f"partition {likely} searched first: the default partitioner's, if the topic has {count}"
    return sorted(scope.parts, key=lambda part: part.number != likely)


def run_search(search: KeySearch, parts: list[ScopePart], run: Run) -> None:
    """Search these partitions, and add what is found. Raises Cancelled from `run.more`."""
    covered: dict[tuple[str | None, int | None], list[tuple[int, int]]] = {}
    for part in parts:
        for target in part.segments:
            read = _Read()
            try:
                for record in _hits(search, target, read, run):
                    if len(search.hits) >= MAX_HITS:
                        search.left_out += 1
                        continue
                    batch = record.batch
                    values = record.offset, record.timestamp, record.valueSize, record.is_damaged
                    search.hits.append(Hit(part.name, *values, target.path, batch.position, record.index))
            except SourceError as error:  # the payload of a batch is read here, not by the reader
                search.note(str(error))
            if target.name_offset is not None:
                covered.setdefault((part.topic, part.number), []).append((target.name_offset, read.end))
        search.done += 1
    for part in parts:
        if part.log_start is not None and part.segments:
            _note_absent(search, part, part.log_start, covered.get((part.topic, part.number), []))
    search.finished = True


@dataclass
class _Read:
    """The offset after the last batch that was read of a segment."""

    end: int = 0


def _note_absent(search: KeySearch, part: ScopePart, log_start: int, covered: list[tuple[int, int]]) -> None:
    """Note the offsets between the log start offset and the first segment of a partition that no segment has."""
    first = part.segments[0].name_offset
    reached = log_start
    for start, end in sorted(covered):
        if first is None or reached >= first:
            return
        if start > reached:
            where = "in remote storage, unless they are lost"
            search.note(f"{part.name}: offsets {reached}..{min(start, first) - 1} are not here: {where}")
        reached = max(reached, end, start)


def _hits(search: KeySearch, target: Target, read: _Read, run: Run) -> Iterator[Record]:
    """Yield the records of a segment with the key."""
    run.more(0)
    selection = Selection(expression=one_of_keys(search.keys))
    name = short_name(target.path)
    noting = replace(run, unreadable=lambda error: search.note(str(error)))
    reader = PartitionReader(open_window, noting)
    absent = replaced = 0
    for region in reader.segment(target, Depth.CHECKSUMS):
        for batch in batches_of(region):
            if batch.crcValid:  # else, its offsets may be wrong, and the bit of a control batch
                read.end = max(read.end, batch.lastOffset + 1)
                if batch.isControlBatch:
                    continue
            if batch.lacks:
                absent += 1
                continue
            replaced += bool(batch.replaced_under)
            reading = Reading(batch)
            yield from _in_batch(search, reading, selection)
            if reading.problems:
                search.note(f"{name}, batch at byte {batch.position}: {reading.problems[0].reason}")
            elif not batch.crcValid:
                search.note(f"{name}, batch at byte {batch.position}: its checksum does not match")
        if not isinstance(region, (Batch, BatchRun)) and region.kind != PADDING:
            search.note(
                f"{name}, {plain_count(region.size, 'byte')}"
                f" at byte {region.position} belong to no batch ({region.kind})"
            )
        search.bytes += region.size
        run.more(region.size)
    if absent:
        search.note(f"{name}: the records of {count_text(absent, 'batch', 'batches')} are not in the bundle")
    if replaced:
        search.note(f"{name}: keys of {count_text(replaced, 'batch', 'batches')} were replaced in the bundle")


def _in_batch(search: KeySearch, reading: Reading[Batch], selection: Selection) -> Iterator[Record]:
    """Yield the records of a batch with the key. Most batches have none, which the compiled core finds out."""
    batch = reading.batch
    if isinstance(batch, DefaultRecordBatch):
        has_hit = False
        for columns, _ in decode_columns(reading, values=False):
            search.records += len(columns)
            selection.keep(batch, columns)
            has_hit = has_hit or len(columns) > 0
        if not has_hit:
            return
    for record in records(reading, values=False):
        search.records += not isinstance(batch, DefaultRecordBatch)
        if selection.record(record):
            yield record
