"""Compares the segments that __remote_log_metadata states with the objects of a bucket, and reads these like local
segments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count, pairwise, zip_longest
from typing import NamedTuple

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import rules
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import ERROR, WARNING, Finding, about_object
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rule import BatchContext, Observer
from kdump.check.rules.offset_index import INDEX_PADDING, INDEX_SIZE_INVALID
from kdump.check.rules.offsets import OFFSET_GAP
from kdump.check.rules.remote_segments import (
    REMOTE_INDEX_MISSING,
    REMOTE_SEGMENT_MISSING,
    copied,
    damaged,
    orphan,
    overlap,
    unfinished,
    unreadable,
)
from kdump.check.rules.time_index import TIME_INDEX_SIZE_INVALID
from kdump.check.totals import CheckTotals
from kdump.cluster.disks import Disks
from kdump.cluster.remote_log import COPY_FINISHED, RemoteLog, RemoteSegment, offsets_in
from kdump.format.count_text import count_text, first_of, size_text
from kdump.format.number_range import Range
from kdump.io.directory_listing import is_url
from kdump.io.errors import DamagedObject, RequestLimit, SourceError, SourceNotFound
from kdump.io.low_impact_reads import max_rate, requests
from kdump.log import file_kinds
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.live_files import FileWatch
from kdump.log.partition_directory import SegmentFiles, one_file
from kdump.log.paths import Target
from kdump.log.paths import target as as_target
from kdump.log.region import Batch
from kdump.log.region_scan import RegionScan
from kdump.log.remote_files import first_offset
from kdump.log.remote_objects import INDEXES, MANIFEST, MAX_NAMED, Place, RemoteObject, RemoteStorage, list_objects
from kdump.log.selection import Selection
from kdump.problems.catalogue import declaration

REFUSED = (INDEX_SIZE_INVALID, TIME_INDEX_SIZE_INVALID, INDEX_PADDING)
"""Codes of indexes that RemoteIndexCache throws a CorruptIndexException for, where a local log ignores the bytes, or
another offset is affected; zeros at the end of a .timeindex, but not of an .index (sanityCheck)."""
ABSENT = (REMOTE_SEGMENT_MISSING.code, REMOTE_INDEX_MISSING.code)
CHECKED_INDEXES = (file_kinds.INDEX.name, file_kinds.TIME_INDEX.name, file_kinds.TXN_INDEX.name)
LARGE = 10 << 30
"""Bytes from which a check of remote storage says in advance what it reads."""
PART = 5 << 20
"""Bytes that one request returns, by the defaults of fsspec."""
OF_SEGMENTS = frozenset({"bytes", "records", "offsets", "indexes"})
"""Families of findings that a segment alone can have: what comes before it may be in another."""


class LocalLog(NamedTuple):
    """What the disks have of a tiered partition: of several replicas, the one in the latest leader epoch."""

    unit: CheckUnit
    first: int
    """Base offset of its first segment."""
    start: int
    """Its log start offset."""
    lineage: tuple[tuple[int, int], ...]
    """Its leader epochs, each with its first offset."""


class _Batches(Observer):
    """The batches of a segment: last offset and checksum, by base offset."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[int | None, int | None]] = {}

    def batch(self, seen: BatchContext) -> None:
        self.add(seen.batch)

    def add(self, batch: Batch) -> None:
        if batch.baseOffset is not None:
            self.found[batch.baseOffset] = batch.lastOffset, batch.crc


class _Overlaps:
    """Compares segments of a log in remote storage with each other, and with the local log, where offsets are in
    both: the bytes are copies."""

    def __init__(self, place: Place, log: LocalLog | None, remote: RemoteLog, options: Options) -> None:
        self.log, self.options = log, options
        lineage = () if log is None else log.lineage
        self.ranges = {each.id: offsets_in(each, lineage) for each in remote.in_log(*place, lineage)}
        self.before: list[tuple[RemoteSegment, _Batches]] = []
        """Segments that have been read, and may overlap later ones."""
        ends = sorted((low, high, name) for name, ranges in self.ranges.items() for low, high in ranges)
        self.several = {name for one, other in pairwise(ends) if one[1] >= other[0] for name in (one[2], other[2])}

    def of(self, segment: RemoteSegment) -> _Batches | None:
        """Return what sees the batches of a segment; None if no other has its offsets."""
        is_local = self.log is not None and any(high >= self.log.first for _, high in self.ranges.get(segment.id, ()))
        return _Batches() if is_local or segment.id in self.several else None

    def compare(self, segment: RemoteSegment, batches: _Batches | None, here: Target) -> Iterator[Finding]:
        """Yield the findings about a segment that has been read."""
        if batches is None or not batches.found:
            return
        self.before = [each for each in self.before if each[0].last >= segment.first]
        for low, high in self.ranges[segment.id]:
            for other, seen in self.before:
                offset = _differs(batches, seen, low, high)
                if offset is not None:
                    yield overlap(segment, offset, f"that of offsets {other.first}..{other.last}, {other.id}", here)
            offset = None if self.log is None else _differs(batches, self._local(low, high), low, high)
            if offset is not None:
                yield overlap(segment, offset, "the local log", here)
        self.before.append((segment, batches))

    def _local(self, low: int, high: int) -> _Batches:
        """Return the batches of the local log with these offsets, as far as they can be read."""
        found, place = _Batches(), self.log.unit.partition if self.log is not None else None
        scan = RegionScan(Selection(offsets=Range(low, high)), self.options.limits)
        for each, after in zip_longest(place.segments, place.segments[1:]) if place is not None else ():
            if each.log is None or each.offset > high or (after is not None and after.offset <= low):
                continue
            with suppress(SourceError), closing((window := scan.open(each.log)).source):
                for region in scan.chosen(each.log, window):
                    if isinstance(region, Batch):
                        found.add(region)
        return found


def _differs(one: _Batches, other: _Batches, low: int, high: int) -> int | None:
    """Return the first of these offsets at which batches of both begin that are not the same."""
    both = one.found.keys() & other.found.keys()
    return min((base for base in both if low <= base <= high and one.found[base] != other.found[base]), default=None)


class RemoteCheck:
    """The check of all partitions in remote storage. The metadata is read before and after the objects are listed, so
    that what a broker copies or deletes meanwhile is not a finding."""

    def __init__(self, disks: Disks, options: Options, storage: RemoteStorage, units: list[CheckUnit]) -> None:
        """List the objects. `units`: of the check of the disks."""
        self.disks, self.options = disks, options
        self.deep = not storage.quick
        self.left_out = 0
        """Number of segments that were not read, because of --max-requests."""
        _, self.metadata = disks.newest_metadata(run=options)
        counts = count(1)
        before = self._read()
        self.before = {
            place: {segment.id: segment.state for segment in segments.values()}
            for place, segments in before.segments.items()
        }
        """The states before the objects were listed, by partition and segment ID."""
        self.was_complete, stated = before.is_complete, len(before.copied_ids)
        del before  # the objects need memory, too
        self.listing = list_objects(storage, lambda _: options.show(f"object {next(counts):,}"))
        self.listing.expect(stated, self.before)
        self._watch = self._look()
        self.remote = self._read()
        self._copied = self.remote.copied_ids
        self.local = _local_logs(units, self.remote)

    def _read(self) -> RemoteLog:
        return self.disks.whole_remote_log(self.metadata, self.options.limits)

    def _look(self) -> FileWatch:
        """Return the logs of __remote_log_metadata as they are now."""
        watch = FileWatch()
        for node in self.disks.nodes:
            for path in node.logs_of(REMOTE_METADATA_TOPIC):
                watch.look_at_log(path)
        return watch

    def _is_deleted(self, segment: RemoteSegment) -> bool:
        """Return True if a broker has begun to delete the segment since the metadata was read: its objects go after
        that."""
        if self._watch.any_changed():
            self._watch = self._look()
            self._copied = self._read().copied_ids
        return segment.id not in self._copied

    @property
    def is_listed(self) -> bool:
        """Whether everything could be listed: else nothing shows that an object is not there."""
        return not self.listing.unread

    @property
    def problems(self) -> list[str]:
        """Why what should be in remote storage is not known, or only in part."""
        problems = list(self.remote.problems)
        if not (self.remote.is_complete or problems):
            logs = sum(len(node.logs_of(REMOTE_METADATA_TOPIC)) for node in self.disks.nodes)
            here = count_text(logs, "partition") if logs else "no partition"
            problems.append(
                f"{self.listing.url}: these disks have {here} of {REMOTE_METADATA_TOPIC}, and not all of it: what else "
                "should be there, and which objects are orphans, is unknown; pass the disks of the other brokers"
            )
        return problems

    @property
    def notes(self) -> list[str]:
        """What was listed."""
        listing = self.listing
        notes = [
            f"{listing.url}: {count_text(listing.count, 'object')} of segments, {size_text(listing.bytes)}, in "
            f"{count_text(listing.lists, 'list')}"
            + ("" if self.deep else ": names and sizes were compared, none was read")
        ]
        if listing.others:
            notes.append(
                f"{listing.url}: {count_text(listing.others, 'object')} more, {size_text(listing.others_bytes)}, "
                f"whose names are not those of a segment: {first_of(listing.some_others, MAX_NAMED)}"
            )
        return notes

    @property
    def estimate(self) -> str:
        """What is going to be read, if that is more than LARGE; else an empty string."""
        if self.size <= LARGE:
            return ""
        rate, least = max_rate(), count_text(-(-self.size // PART), "request")
        lasts = "" if rate is None else f", which takes {count_text(self.size // rate // 60, 'minute')} at --max-rate"
        objects = count_text(self.listing.count, "object")
        what = f"{size_text(self.size)} in {objects}, in {least} or more{lasts}"
        return f"{self.listing.url}: reads {what}; --quick reads none of them"

    def end(self, totals: CheckTotals) -> None:
        """Add to the totals what was asked of the store, after everything was read."""
        if is_url(self.listing.url):
            totals.notes.append(f"{self.listing.url}: {count_text(requests(), 'request')} to the store")
        if self.left_out:
            many = count_text(self.left_out, "segment")
            totals.problem(f"{self.listing.url}: {many} not read: --max-requests was reached")

    @property
    def size(self) -> int:
        """Bytes of the objects that are read."""
        return self.listing.bytes if self.deep and self.listing.objects else 0

    def places(self) -> list[tuple[Place, str]]:
        """Return the partitions that the metadata, the objects or the disks have, each with its name."""
        names: dict[Place, str] = {}
        for place, objects in self.listing.objects.items():
            names[place] = objects[0].topic
        for place, segments in self.remote.segments.items():
            if segments:
                names[place] = next(iter(segments.values())).topic
        for place, log in self.local.items():
            names.setdefault(place, log.unit.topic or "")
        return sorted(names.items(), key=lambda item: (item[1], item[0][1], item[0][0]))

    def findings(self, place: Place, topic: str, totals: CheckTotals) -> Iterator[Finding]:
        """Yield the selected findings about a partition."""
        for finding in self._findings(place, topic, totals):
            if self.options.wants(declaration(finding.code)):
                yield finding

    def _findings(self, place: Place, topic: str, totals: CheckTotals) -> Iterator[Finding]:
        here = self._target(place, topic)
        objects, copies = self.listing.by_segment(place)
        log = self.local.get(place)
        was = self.before.get(place, {})
        segments = self.remote.segments.get(place, {})
        superseded = self.remote.superseded(*place)
        overlaps = _Overlaps(place, log, self.remote, self.options)
        for segment in sorted(segments.values(), key=lambda segment: (segment.first, segment.record)):
            its = objects.get(segment.id, [])
            if segment.state == COPY_FINISHED == was.get(segment.id):
                own = CheckTotals()
                first = None if log is None else log.first
                local_copy = None if first is None else first <= segment.first
                is_read = segment.id not in superseded
                batches = overlaps.of(segment) if is_read else None
                damage, *read = self._read_objects(segment, its, own, batches) if is_read else ([], None, None, None)
                stated = [*copied(segment, its, here, first, *read)]
                if not is_read:
                    stated = [finding.in_case("superseded", WARNING) for finding in stated]
                if (stated or damage or own.unread or own.notes) and self._is_deleted(segment):
                    continue
                totals.add(own)
                yield from (each for each in stated if self.is_listed or each.code not in ABSENT)
                yield from (about_object(_refused(each, segment), local_copy) for each in damage)
                yield from overlaps.compare(segment, batches, here)
            else:
                yield from unfinished(segment, here, self.options.now)
        if log is not None:
            lacks = self.remote.lacks(*place, log.start, log.first, log.lineage)
            if lacks:
                path, source = log.unit.name, log.unit.partition.source if log.unit.partition else ""
                yield unreadable(lacks, Target(path, None, topic, place[1], None, source))
        elif segments and self.metadata is not None and place[0] in self.metadata.by_id:
            first, end = min(each.first for each in segments.values()), max(each.last for each in segments.values()) + 1
            lacks = self.remote.lacks(*place, first, end)
            if lacks:
                yield unreadable(lacks, here)
        for its in copies.values():
            yield orphan(its, here, "copy")
        named = was.keys() | segments.keys()
        if self.remote.is_complete and self.was_complete:
            case = "deleted" if self.metadata is not None and place[0] not in self.metadata.by_id else ""
            for segment_id, its in objects.items():
                if segment_id not in named:
                    yield orphan(its, here, case)

    def _target(self, place: Place, topic: str) -> Target:
        """Return what findings about a partition in remote storage are about: where its objects are."""
        objects = self.listing.objects.get(place)
        path = objects[0].path.rpartition("/")[0] if objects else self.listing.url
        return Target(path, None, topic, place[1], None, self.listing.url)

    def _read_objects(
        self, segment: RemoteSegment, objects: list[RemoteObject], totals: CheckTotals, batches: _Batches | None
    ) -> tuple[list[Finding], int | None, int | None, int | None]:
        """Return the findings about a segment and its indexes, its first offset and the one after what can be read of
        it, None if it is not read, and the bytes of the segment that its object has, None if that is not known.
        `batches` sees the batches."""
        kinds = {each.kind: each for each in objects}
        log = kinds.get(file_kinds.SEGMENT.name)
        is_plain = not (MANIFEST in kinds or INDEXES in kinds)
        size = log.size if log is not None and is_plain else None
        if not self.deep or log is None or not (is_plain or MANIFEST in kinds):
            return [], None, None, size
        source = self.listing.url
        paths = {file_kinds.named(kind): each.path for kind, each in kinds.items() if kind in CHECKED_INDEXES}
        if INDEXES in kinds:
            paths = {file_kinds.named(kind): f"{log.path[:-3]}{kind}" for kind in CHECKED_INDEXES}
        indexes = {kind: as_target(path, source=source) for kind, path in paths.items()}
        target = as_target(log.path, source=source)._replace(topic=segment.topic, partition=segment.place[1])
        only = self.options.only & OF_SEGMENTS or {"bytes"} if self.options.only else OF_SEGMENTS
        options = replace(self.options, only=frozenset(only))
        known = PartitionContext(
            topic=segment.topic, partition=segment.place[1], now=options.now, clean=True, last=False, tiered=True
        )
        try:
            with closing(options.open(target).source) as opened:
                size, begin = opened.size, first_offset(opened)
        except RequestLimit:
            self.left_out += 1
            return [], None, None, size
        except DamagedObject as error:
            return [damaged(segment, target, str(error))], None, None, size
        except SourceError as error:
            totals.add_unreadable(error)
            return [], None, None, size
        broken = _damaged_indexes(segment, target, indexes, options, totals) if INDEXES in kinds else []
        place = one_file(target, SegmentFiles("", segment.first, target, indexes))
        unread = len(totals.unread) + len(totals.notes)
        scan = PartitionScan(
            place, known, options, totals, lambda scan: [*rules(scan), *([batches] if batches is not None else ())]
        )
        findings = [finding.given(known.facts) for finding in scan.findings()]
        findings = [
            finding
            for finding in findings
            if finding.file != log.path or finding.position < segment.size  # no fetch begins after that
            if finding.code == OFFSET_GAP.code or declaration(finding.code).family != "offsets"
        ]
        if len(totals.unread) + len(totals.notes) > unread:  # what is not read shows nothing
            return [*broken, *(finding for finding in findings if finding.file == log.path)], None, None, size
        return [*broken, *findings], begin, segment.first if scan.log_end is None else scan.log_end, size


def _damaged_indexes(
    segment: RemoteSegment,
    target: Target,
    indexes: dict[file_kinds.FileKind, Target],
    options: Options,
    totals: CheckTotals,
) -> list[Finding]:
    """Return the findings about damaged indexes; remove these, and those that are not there, from `indexes`."""
    broken = []
    for kind, each in [*indexes.items()]:
        try:
            options.open(each).source.close()
        except (SourceNotFound, DamagedObject) as error:
            del indexes[kind]
            if isinstance(error, DamagedObject):
                case = "follower" if kind is file_kinds.TXN_INDEX else ""
                broken.append(damaged(segment, target, str(error), case))
        except SourceError as error:
            totals.add_unreadable(error)
    return broken


def _refused(finding: Finding, segment: RemoteSegment) -> Finding:
    """Return a finding about an index that a broker refuses when it fetches it, with what that means."""
    code = next((code for code in REFUSED if code.code == finding.code), None)
    if code is None or (code is INDEX_PADDING and finding.severity != ERROR):
        return finding
    target = as_target(finding.file, source=finding.source)._replace(topic=finding.topic, partition=finding.partition)
    return code.finding(
        target, message=finding.message, offset=segment.first, severity=ERROR, case="remote", facts=finding.facts
    )


def _local_logs(units: list[CheckUnit], remote: RemoteLog) -> dict[Place, LocalLog]:
    logs: dict[Place, LocalLog] = {}
    for unit in units:
        place, known = unit.partition, unit.known
        if place is None or place.state or not known.tiered or known.topic_id is None or not place.segments:
            continue
        key = known.topic_id, place.partition or 0
        first = place.segments[0].offset
        start = max(remote.start_of(*key, known.log_start), known.remote_start or 0)
        log = LocalLog(unit, first, start, known.lineage)
        other = logs.get(key)
        if other is None or log.lineage[-1:] > other.lineage[-1:]:
            logs[key] = log
    return logs


def remote_check(disks: Disks, options: Options, units: list[CheckUnit], totals: CheckTotals) -> RemoteCheck | None:
    """Return the check of remote storage, whose objects are listed; None if the options name none. Raises SourceError
    if the disks are of several clusters."""
    if options.remote is None:
        return None
    disks.refuse_other_clusters()
    check = RemoteCheck(disks, options, options.remote, units)
    for error in check.listing.unread:
        totals.add_unreadable(error)
    for problem in check.problems:
        totals.problem(problem)
    totals.notes += check.notes
    return check
