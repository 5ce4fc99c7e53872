"""Compares the segments that __remote_log_metadata states with the objects of a bucket, and reads these like local
segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.rule_list import rules
from kdump.check.engine.units import CheckUnit
from kdump.check.finding import Finding
from kdump.check.options import Options
from kdump.check.partition_context import PartitionContext
from kdump.check.rules.remote_segments import copied, orphan, unfinished, unreadable
from kdump.check.totals import CheckTotals
from kdump.cluster.disks import Disks
from kdump.cluster.remote_log import COPY_FINISHED, RemoteLog, RemoteSegment
from kdump.format.count_text import count_text, first_of, size_text
from kdump.log import file_kinds
from kdump.log.internal_topics import REMOTE_METADATA_TOPIC
from kdump.log.partition_directory import SegmentFiles, one_file
from kdump.log.paths import Target
from kdump.log.paths import target as as_target
from kdump.log.remote_objects import INDEXES, MANIFEST, MAX_NAMED, Place, RemoteObject, RemoteStorage, list_objects
from kdump.problems.catalogue import declaration

OF_SEGMENTS = frozenset({"bytes", "records", "indexes"})
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


class RemoteCheck:
    """The check of all partitions in remote storage. The metadata is read before and after the objects are listed, so
    that what a broker copies or deletes meanwhile is not a finding."""

    def __init__(self, disks: Disks, options: Options, storage: RemoteStorage, units: list[CheckUnit]) -> None:
        """List the objects. `units`: of the check of the disks."""
        self.disks, self.options = disks, options
        self.deep = not storage.quick
        _, self.metadata = disks.newest_metadata(run=options)
        counts = count(1)
        self.before = self._read()
        self.listing = list_objects(storage, lambda _: options.show(f"object {next(counts):,}"))
        self.remote = self._read()
        self.local = _local_logs(units, self.remote)

    def _read(self) -> RemoteLog:
        return self.disks.whole_remote_log(self.metadata, self.options.limits)

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
        encoded = sum(not _is_plain(objects) for objects in self.listing.objects.values())
        if encoded and self.deep:
            notes.append(
                f"{listing.url}: the objects of {count_text(encoded, 'partition')} may be compressed or encrypted "
                "(Aiven's plugin): their names were compared, and their bytes were not read"
            )
        return notes

    @property
    def size(self) -> int:
        """Bytes of the objects that are read."""
        return self.listing.bytes if self.deep else 0

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
        objects: dict[str, list[RemoteObject]] = {}
        for each in self.listing.objects.get(place, ()):
            objects.setdefault(each.segment_id, []).append(each)
        log = self.local.get(place)
        was = self.before.segments.get(place, {})
        segments = self.remote.segments.get(place, {})
        for segment in sorted(segments.values(), key=lambda segment: (segment.first, segment.record)):
            its = objects.get(segment.id, [])
            if segment.state == COPY_FINISHED == getattr(was.get(segment.id), "state", None):
                damage, end = self._read_objects(segment, its, totals)
                first = None if log is None else log.first
                yield from copied(segment, its, here, first, end, plain=_is_plain(its))
                yield from damage
            else:
                yield from unfinished(segment, here, self.options.now)
        if log is not None:
            lacks = self.remote.lacks(*place, log.start, log.first, log.lineage)
            if lacks:
                path, source = log.unit.name, log.unit.partition.source if log.unit.partition else ""
                yield unreadable(lacks, Target(path, None, topic, place[1], None, source))
        named = was.keys() | segments.keys()
        if self.remote.is_complete and self.before.is_complete:
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
        self, segment: RemoteSegment, objects: list[RemoteObject], totals: CheckTotals
    ) -> tuple[list[Finding], int | None]:
        """Return the findings about a segment and its indexes, and the offset after what can be read of it; None if it
        is not read."""
        log = next((each for each in objects if each.kind == file_kinds.SEGMENT.name), None)
        if not self.deep or log is None or not _is_plain(objects):
            return [], None
        source = self.listing.url
        indexes = {
            file_kinds.named(each.kind): as_target(each.path, source=source)
            for each in objects
            if each.kind in (file_kinds.INDEX.name, file_kinds.TIME_INDEX.name)
        }
        target = as_target(log.path, source=source)._replace(topic=segment.topic, partition=segment.place[1])
        only = self.options.only & OF_SEGMENTS or {"bytes"} if self.options.only else OF_SEGMENTS
        options = replace(self.options, only=frozenset(only))
        known = PartitionContext(
            topic=segment.topic, partition=segment.place[1], now=options.now, clean=True, last=False, tiered=True
        )
        place = one_file(target, SegmentFiles("", segment.first, target, indexes))
        scan = PartitionScan(place, known, options, totals, rules)
        findings = [finding.given(known.facts) for finding in scan.findings()]
        return findings, segment.first if scan.log_end is None else scan.log_end


def _is_plain(objects: list[RemoteObject]) -> bool:
    """Return True if the plugin writes the files as they are: Aiven's may compress and encrypt them."""
    return not any(each.kind in (MANIFEST, INDEXES) for each in objects)


def _local_logs(units: list[CheckUnit], remote: RemoteLog) -> dict[Place, LocalLog]:
    logs: dict[Place, LocalLog] = {}
    for unit in units:
        place, known = unit.partition, unit.known
        if place is None or place.state or not known.tiered or known.topic_id is None or not place.segments:
            continue
        key = known.topic_id, place.partition or 0
        first = place.segments[0].offset
        start = remote.start_of(*key) if known.log_start is None else known.log_start
        lineage = tuple((epoch.epoch, epoch.startOffset) for epoch in known.epochs or ())
        log = LocalLog(unit, first, start, lineage)
        other = logs.get(key)
        if other is None or lineage[-1:] > other.lineage[-1:]:
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
