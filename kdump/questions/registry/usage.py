"""Counts the schema IDs that the records of partitions carry."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing

from kdump.answer import of_fact
from kdump.cluster.read_groups import CoordinatorLog, log_records
from kdump.decode.known_schemas import PREFIX, KnownSchemas, SchemaMark, marks_of, own_format_of
from kdump.format.count_text import count_text
from kdump.format.number_range import Range
from kdump.format.streams_record import TIMES
from kdump.io.directory_listing import length
from kdump.io.errors import SourceError
from kdump.io.run import PLAIN_RUN, Run
from kdump.log.batch_records import records
from kdump.log.internal_topics import INTERNAL_TOPICS
from kdump.log.log_directory import LogDirectory
from kdump.log.paths import seen_file
from kdump.log.record import Record
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.selection import Selection
from kdump.questions.registry.answer import SchemaUsage
from kdump.state.as_of import AsOf
from kdump.state.schema_registry import HARD_DELETED, LIVE, SOFT_DELETED, SchemaVersion

MAX_IDS = 1000
"""Maximum number of different IDs in a partition; bytes with more are no IDs."""
LONG = struct.Struct(">q")
NONE = "none"
MAX_SUBJECTS = 10
MAX_UNKNOWN = 5
"""Maximum number of different IDs of a partition that are believed although the registry has none of them."""
UNLIKELY = "the registry has none of the partition's IDs: the first bytes may be another format's"


class _Count:
    """What is counted of one mark."""

    __slots__ = ("all_long", "all_time", "firstOffset", "firstTimestamp", "lastOffset", "lastTimestamp", "records")

    def __init__(self, offset: int, time: int | None) -> None:
        self.records = 0
        self.firstOffset, self.lastOffset = offset, offset
        self.firstTimestamp, self.lastTimestamp = time, time
        self.all_long = self.all_time = True

    def add(self, offset: int, time: int | None, data: bytes) -> None:
        self.records += 1
        self.firstOffset, self.lastOffset = min(self.firstOffset, offset), max(self.lastOffset, offset)
        if time is not None:
            self.firstTimestamp = time if self.firstTimestamp is None else min(self.firstTimestamp, time)
            self.lastTimestamp = time if self.lastTimestamp is None else max(self.lastTimestamp, time)
        self.all_long = self.all_long and len(data) == LONG.size
        self.all_time = self.all_time and len(data) > LONG.size and LONG.unpack_from(data)[0] in TIMES


def usage(
    logs: Iterable[CoordinatorLog],
    schemas: KnownSchemas,
    note: Callable[[str, str], None],
    run: Run = PLAIN_RUN,
    last_bytes: int | None = None,
) -> Iterator[SchemaUsage]:
    """Yield the schema IDs in each of `logs`. `note` is called with the directory and what is not valid there,
    `run.more` with the number of bytes read since its last call. `last_bytes`: read only so much of the end."""
    for log in logs:
        yield from _partition_usage(log, schemas, note, run, last_bytes)


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
    log: CoordinatorLog, schemas: KnownSchemas, note: Callable[[str, str], None], run: Run, last_bytes: int | None
) -> Iterator[SchemaUsage]:
    counts: dict[SchemaMark, _Count] = {}
    full: set[str] = set()
    records = log_records(log, AsOf(), lambda problem: note(log.path, problem), run)
    for record in records if last_bytes is None else _last_records(log, last_bytes, run):
        if record.is_control or record.is_cut:
            continue
        for mark in marks_of(record):
            count = counts.get(mark)
            if count is None:
                if mark.part in full:
                    continue
                if mark.guid is not None and mark.where == PREFIX and not schemas.find(mark):
                    continue  # any bytes after a 1 would be one
                if len(counts) >= MAX_IDS:
                    full.add(mark.part)
                    continue
                counts[mark] = count = _Count(record.offset or 0, record.timestamp)
            count.add(record.offset or 0, record.timestamp, (record.key if mark.part == "key" else record.value) or b"")
    versions = {mark: schemas.find(mark) for mark in counts}
    by_chance, unlikely = _other_bytes(counts, versions, bool(schemas.registry.subjects))
    for part in sorted(full - by_chance):
        note(log.path, f"{part}s with more than {MAX_IDS} different first bytes: not all are listed")
    for part in sorted(by_chance):
        most = "more than " if part in full else ""
        different = count_text(sum(mark.part == part for mark in counts), "different number")
        note(
            log.path, f"{part}s with {most}{different} after a zero byte, most of them once and none an ID: not listed"
        )
    for mark, count in sorted(counts.items(), key=lambda each: (each[0].part, each[1].firstOffset)):
        if mark.part not in by_chance or mark.where != PREFIX:
            mirrored, is_unlikely = schemas.mirrored_from(log.topic), mark.part in unlikely and mark.where == PREFIX
            yield _answer(log, mark, count, versions[mark], mirrored, is_unlikely)


def _other_bytes(
    counts: Mapping[SchemaMark, _Count], versions: Mapping[SchemaMark, list[SchemaVersion]], has_registry: bool
) -> tuple[set[str], set[str]]:
    """Return of which parts, keys or values, the first bytes are no IDs: none of many has a schema, and most are in one
    record; and of which they may be none, because the registry has schemas, and none of many is one of them."""
    by_chance, unlikely = set(), set()
    for part in ("key", "value"):
        mine = [mark for mark in counts if mark.part == part and mark.where == PREFIX]
        if len(mine) <= MAX_UNKNOWN or any(versions[mark] for mark in mine):
            continue
        if sum(counts[mark].records for mark in mine) < 2 * len(mine):
            by_chance.add(part)
        elif has_registry:
            unlikely.add(part)
    return by_chance, unlikely


def _last_records(log: CoordinatorLog, size: int, run: Run) -> Iterator[Record]:
    """Yield the records in the last bytes of the newest segment."""
    for path in log.segments[-1:]:
        start = max(0, (length(path) or 0) - size)
        scan = RegionScan(Selection(positions=Range(start, None)), run.limits)
        segment = seen_file(path)
        try:
            window = scan.open(segment)
        except SourceError as error:
            run.unreadable(error)
            continue
        with closing(window.source):
            for region in scan.chosen(segment, window):
                if isinstance(region, Batch) and region.crcValid:
                    yield from records(region)
                run.more(region.size)


def _answer(
    log: CoordinatorLog,
    mark: SchemaMark,
    count: _Count,
    versions: list[SchemaVersion],
    mirrored: str,
    is_unlikely: bool,
) -> SchemaUsage:
    states = {each.state for each in versions}
    state = next((each for each in (LIVE, SOFT_DELETED, HARD_DELETED) if each in states), NONE)
    guid = None if mark.guid is None else mark.guid.hex()
    return of_fact(
        SchemaUsage,
        log,
        mark,
        count,
        guid=None if guid is None else "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:])),
        state=state,
        contexts=list(dict.fromkeys(each.context for each in versions)),
        subjects=list(dict.fromkeys(each.subject for each in versions))[:MAX_SUBJECTS],
        doubt=_doubt(log.topic, mark, count, versions, mirrored) or (UNLIKELY if is_unlikely else None),
        source=log.path,
    )


def _doubt(topic: str, mark: SchemaMark, count: _Count, versions: list[SchemaVersion], mirrored: str) -> str | None:
    if mark.where == PREFIX and mark.guid is None:
        if count.all_long:
            return "all are 8 bytes long: they may be numbers"
        if count.all_time:
            return "all begin with 8 bytes that are a timestamp: they may be a store's"
    if mirrored and mark.guid is None:
        return f"the topic is mirrored from {mirrored}: the IDs are those of its registry"
    if not versions:
        return own_format_of(topic)
    if all(version.state == HARD_DELETED for version in versions):
        return "the schema is deleted for good; its ID may have been given again"
    if len({version.text for version in versions}) > 1:
        return f"the ID is in {len(versions)} contexts, with different schemas; the records do not say which"
    times = [version.timestamp for version in versions if version.timestamp is not None]
    if mark.guid is None and count.firstTimestamp is not None and times and count.firstTimestamp < min(times):
        return "records are older than the schema's record: their ID may have been that of another schema"
    return None
