"""Counts the schema IDs that the records of partitions carry.

Source: Confluent's wire formats: 0 and an ID of 4 bytes, 1 and a GUID of 16 bytes, or either in a header (SchemaId,
HeaderSchemaIdSerializer)."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from kdump.cluster.read_groups import CoordinatorLog, log_records
from kdump.forensics.registry_answer import SchemaUsage
from kdump.format.streams_record import TIMES
from kdump.log import file_system
from kdump.log.batch_records import records
from kdump.log.directory_listing import length
from kdump.log.internal_topics import INTERNAL_TOPICS, system_topic
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import target
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.run import PLAIN_RUN, Run
from kdump.log.selection import Range, Selection
from kdump.state.as_of import AsOf
from kdump.state.schema_registry import DEFAULT_CONTEXT, HARD_DELETED, LIVE, SOFT_DELETED, SchemaRegistry, SchemaVersion

MAX_IDS = 1000
"""Maximum number of different IDs in a partition; bytes with more are no IDs."""
PREFIX, HEADER = "prefix", "header"
HEADERS = {"key": b"__key_schema_id", "value": b"__value_schema_id"}
ID = struct.Struct(">I")
LONG = struct.Struct(">q")
GUID_BYTES = 16
NONE = "none"
OWN_FORMATS = {
    "mm2": "the topic has the name of one of MirrorMaker's, whose records begin with a version",
    "streams": "the topic has the name of one of Kafka Streams, which stores more than the values",
}
"""Topics whose records begin with other numbers, by what the name of their decoder begins with."""
MAX_SUBJECTS = 10


class SchemaMark(NamedTuple):
    """An ID, or the bytes of a GUID, in a key or value."""

    part: str
    where: str
    id: int | None
    guid: bytes | None


def marks_of(record: Record) -> Iterator[SchemaMark]:
    """Yield what may be a schema ID in the record; a header goes before the first bytes, as for Confluent's
    deserializers."""
    headers = record.headers if record.header_count else []
    for part, data in (("key", record.key), ("value", record.value)):
        found = None if data is None else mark_in(part, headers, data)
        if found is not None:
            yield found


def mark_in(part: str, headers: list[tuple[bytes, bytes | None]], data: bytes) -> SchemaMark | None:
    """Return what may be a schema ID in a key or value; None if there is nothing."""
    if headers:
        named = dict(headers).get(HEADERS[part])
        found = None if named is None else _mark(part, HEADER, named)
        if found is not None:
            return found
    return _mark(part, PREFIX, data)


def _mark(part: str, where: str, data: bytes) -> SchemaMark | None:
    first = data[:1]
    if first == b"\0" and len(data) >= 1 + ID.size:
        return SchemaMark(part, where, ID.unpack_from(data, 1)[0], None)
    if first == b"\1" and len(data) >= 1 + GUID_BYTES:
        return SchemaMark(part, where, None, data[1 : 1 + GUID_BYTES])
    return None


def own_format_of(topic: str | None) -> str | None:
    """Return why the records of a topic with this name begin with other numbers than IDs; None if they do not."""
    system = system_topic(topic)
    return None if system is None else OWN_FORMATS.get(system.decoder.partition("-")[0])


class _Count:
    """What is counted of one mark."""

    __slots__ = ("all_long", "all_time", "first", "first_time", "last", "last_time", "records")

    def __init__(self, offset: int, time: int | None) -> None:
        self.records = 0
        self.first, self.last = offset, offset
        self.first_time, self.last_time = time, time
        self.all_long = self.all_time = True

    def add(self, offset: int, time: int | None, data: bytes) -> None:
        self.records += 1
        self.first, self.last = min(self.first, offset), max(self.last, offset)
        if time is not None:
            self.first_time = time if self.first_time is None else min(self.first_time, time)
            self.last_time = time if self.last_time is None else max(self.last_time, time)
        self.all_long = self.all_long and len(data) == LONG.size
        self.all_time = self.all_time and len(data) > LONG.size and LONG.unpack_from(data)[0] in TIMES


class KnownSchemas:
    """The schemas of a registry, by ID in any context and by GUID, those that are deleted for good included. `home`:
    the log directory of its topic, empty if it is not from a disk; `deleted`: versions that only its deleted logs
    have."""

    def __init__(self, registry: SchemaRegistry, home: str = "", deleted: Iterable[SchemaVersion] = ()) -> None:
        self.registry = registry
        self.home = home
        self._deleted = list(deleted)
        self.gone: dict[int, list[SchemaVersion]] = {}
        self.ignored: dict[int, list[SchemaVersion]] = {}
        for each in (*registry.removed(), *self._deleted):
            if each.state == HARD_DELETED:
                self.gone.setdefault(each.id, []).append(each)
            else:
                self.ignored.setdefault(each.id, []).append(each)
        self._guids: dict[bytes, list[SchemaVersion]] | None = None
        self._aliases: dict[str, str] = {}

    def find(self, mark: SchemaMark) -> list[SchemaVersion]:
        """Return the versions that a mark may stand for, of the default context first; those of deleted ones only if
        there are no others."""
        if mark.id is not None:
            return self._alive(mark.id) or self.gone.get(mark.id, [])
        if self._guids is None:
            self._guids = {}
            for each in (*self.registry.versions(), *self.registry.removed(), *self._deleted):
                self._guids.setdefault(bytes.fromhex(each.guid.replace("-", "")), []).append(each)
        return self._guids.get(mark.guid or b"", [])

    def find_all(self, mark: SchemaMark) -> list[SchemaVersion]:
        """Like `find`, with those that are deleted for good or ignored behind the others."""
        if mark.id is None:
            return self.find(mark)
        return [*self._alive(mark.id), *self.gone.get(mark.id, []), *self.ignored.get(mark.id, [])]

    def version(self, subject: str, number: int) -> SchemaVersion | None:
        """Return a version of a subject, the last deleted one if there is no other."""
        gone = (each for versions in self.gone.values() for each in reversed(versions))
        return self.registry.find(subject, number) or next(
            (each for each in gone if (each.subject, each.version) == (subject, number)), None
        )

    def unresolved(self) -> Iterator[SchemaVersion]:
        """Yield the last deleted version of each ID that does not resolve in its context, unless its subject has
        another version with that number."""
        found: dict[tuple[str, int], SchemaVersion] = {}
        for versions in self.gone.values():
            for each in versions:
                found[each.context, each.id] = each
        for place, each in sorted(found.items(), key=lambda item: item[1].offset):
            if not self.registry.find_id(*place) and not self.registry.find(each.subject, each.version):
                yield each

    def highest_id(self) -> int:
        """Return the highest ID; -1 if there is none."""
        return max((*self.registry.ids(), *self.gone, *self.ignored), default=-1)

    def mirrored_from(self, topic: str | None) -> str:
        """Return the alias of the cluster from which MirrorMaker mirrors a topic of this registry's cluster; empty if
        none is known."""
        if not self.home or topic is None:
            return ""
        known = self._aliases.get(topic)
        if known is None:
            ends = [number for number, letter in enumerate(topic) if letter == "." and number]
            known = self._aliases[topic] = next((topic[:end] for end in ends if self._is_mirrored(topic[:end])), "")
        return known

    def _is_mirrored(self, alias: str) -> bool:
        names = (f"{alias}.checkpoints.internal-0", f"{alias}.heartbeats-0")
        return any(file_system.isdir(os.path.join(self.home, name)) for name in names)

    def _alive(self, schema_id: int) -> list[SchemaVersion]:
        contexts = sorted(self.registry.contexts, key=lambda each: (each != DEFAULT_CONTEXT, each))
        return [each for each in (self.registry.find_id(context, schema_id) for context in contexts) if each]


def usage(
    logs: Iterable[CoordinatorLog],
    known: KnownSchemas,
    note: Callable[[str, str], None],
    run: Run = PLAIN_RUN,
    last_bytes: int | None = None,
) -> Iterator[SchemaUsage]:
    """Yield the schema IDs in each of `logs`. `note` is called with the directory and what is not valid there,
    `run.more` with the number of bytes read since its last call. `last_bytes`: read only so much of the end."""
    for log in logs:
        yield from _partition_usage(log, known, note, run, last_bytes)


def logs_with_records(directories: Iterable[LogDirectory], topics: Callable[[str], bool]) -> Iterator[CoordinatorLog]:
    """Yield the logs of the partitions of `topics`, without Kafka's own."""
    for directory in directories:
        for partition in directory.partitions:
            topic = partition.topic
            if topic is None or partition.state or topic in INTERNAL_TOPICS or not topics(topic):
                continue
            paths = tuple(segment.log.path for segment in partition.segments if segment.log is not None)
            yield CoordinatorLog(topic, partition.partition or 0, partition.path, paths)


def _partition_usage(
    log: CoordinatorLog,
    known: KnownSchemas,
    note: Callable[[str, str], None],
    run: Run,
    last_bytes: int | None,
) -> Iterator[SchemaUsage]:
    counts: dict[SchemaMark, _Count] = {}
    full: set[str] = set()
    found = log_records(log, AsOf(), lambda problem: note(log.path, problem), run)
    for record in found if last_bytes is None else _last_records(log, last_bytes, run):
        if record.is_control or record.is_cut:
            continue
        for mark in marks_of(record):
            count = counts.get(mark)
            if count is None:
                if mark.part in full:
                    continue
                if mark.guid is not None and mark.where == PREFIX and not known.find(mark):
                    continue  # any bytes after a 1 would be one
                if len(counts) >= MAX_IDS:
                    full.add(mark.part)
                    note(log.path, f"{mark.part}s with more than {MAX_IDS} different first bytes: not all are listed")
                    continue
                counts[mark] = count = _Count(record.offset or 0, record.timestamp)
            count.add(record.offset or 0, record.timestamp, (record.key if mark.part == "key" else record.value) or b"")
    for mark, count in sorted(counts.items(), key=lambda each: (each[0].part, each[1].first)):
        yield _answer(log, mark, count, known.find(mark), known.mirrored_from(log.topic))


def _last_records(log: CoordinatorLog, size: int, run: Run) -> Iterator[Record]:
    """Yield the records in the last bytes of the newest segment."""
    for path in log.segments[-1:]:
        start = max(0, (length(path) or 0) - size)
        scan = RegionScan(Selection(positions=Range(start, None)), run.limits)
        segment = target(path)
        window = scan.open(segment)
        with closing(window.source):
            for region in scan.chosen(segment, window):
                if isinstance(region, Batch) and region.crcValid:
                    yield from records(region)
                run.more(region.size)


def _answer(
    log: CoordinatorLog, mark: SchemaMark, count: _Count, found: list[SchemaVersion], mirrored: str
) -> SchemaUsage:
    states = {each.state for each in found}
    state = next((each for each in (LIVE, SOFT_DELETED, HARD_DELETED) if each in states), NONE)
    guid = None if mark.guid is None else mark.guid.hex()
    return SchemaUsage(
        topic=log.topic,
        partition=log.partition,
        part=mark.part,
        id=mark.id,
        guid=None if guid is None else "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:])),
        where=mark.where,
        state=state,
        contexts=list(dict.fromkeys(each.context for each in found)),
        subjects=list(dict.fromkeys(each.subject for each in found))[:MAX_SUBJECTS],
        records=count.records,
        firstOffset=count.first,
        lastOffset=count.last,
        firstTimestamp=count.first_time,
        lastTimestamp=count.last_time,
        doubt=_doubt(log.topic, mark, count, found, mirrored),
        source=log.path,
    )


def _doubt(topic: str, mark: SchemaMark, count: _Count, found: list[SchemaVersion], mirrored: str) -> str | None:
    if mark.where == PREFIX and mark.guid is None:
        if count.all_long:
            return "all are 8 bytes long: they may be numbers"
        if count.all_time:
            return "all begin with 8 bytes that are a timestamp: they may be a store's"
    if mirrored and mark.guid is None:
        return f"the topic is mirrored from {mirrored}: the IDs are those of its registry"
    if not found:
        return own_format_of(topic)
    if all(each.state == HARD_DELETED for each in found):
        return "the schema is deleted for good; its ID may have been given again"
    if len({each.text for each in found}) > 1:
        return f"the ID is in {len(found)} contexts, with different schemas; the records do not say which"
    times = [each.timestamp for each in found if each.timestamp is not None]
    if mark.guid is None and count.first_time is not None and times and count.first_time < min(times):
        return "records are older than the schema's record: their ID may have been that of another schema"
    return None
