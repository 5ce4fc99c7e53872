"""One look of a scrub at a partition: the log from where the last one ended, or one segment by itself."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields

from kdump.check.engine.partition_scan import PartitionScan
from kdump.check.engine.second_look import FindingKey, key, stable_findings
from kdump.check.engine.units import CheckUnit, PartitionDirectoryCheck
from kdump.check.finding import INFO, Finding
from kdump.check.resume_state import StateError
from kdump.check.rule import SegmentObserver
from kdump.check.scrub.record import SegmentNote, UnitRecord, segment_of
from kdump.check.totals import CheckTotals
from kdump.check.unchanged import Stamps, facts_of, file_stamps
from kdump.core.column_numbers import BATCH_START, LAST_OFFSET
from kdump.format.batch_formats import LARGEST_HEADER
from kdump.io.errors import SourceError
from kdump.log.batch_validity import is_valid
from kdump.log.live_files import open_target
from kdump.log.partition_directory import PartitionDirectory, SegmentFiles
from kdump.log.paths import Target
from kdump.log.region import Batch, BatchRun, Region
from kdump.log.region_reader import Depth
from kdump.version import __version__

PIECE = 1 << 20
"""Bytes of a file next to a segment that are read at once."""


def stamps_of(segment: SegmentFiles, stamps: Stamps) -> dict[str, list[object]]:
    """Return the stamps of the files of a segment that are still there, by the ending of their names."""
    targets = [target for target in (segment.log, *segment.indexes.values()) if target is not None]
    return {
        "log" if target is segment.log else target.path.rpartition(".")[2]: [*stamps[target.path]]
        for target in targets
        if target.path in stamps
    }


def headers_sum(unit: CheckUnit, target: Target, last: int) -> int:
    """Return the checksum of the bytes of a segment's first batch header, and of the one at byte `last`; -1 if they
    cannot be read."""
    try:
        with closing(open_target(target, unit.options.open_source)) as source:
            first = source.read_at(0, LARGEST_HEADER)
            return zlib.crc32(source.read_at(last, LARGEST_HEADER) if last else b"", zlib.crc32(first))
    except SourceError:
        return -1


def content_sum(unit: CheckUnit, target: Target) -> int:
    """Return the checksum of a file; -1 if it cannot be read."""
    total, position = 0, 0
    try:
        with closing(open_target(target, unit.options.open_source)) as source:
            while data := source.read_at(position, PIECE):
                total, position = zlib.crc32(data, total), source.next_data(position + len(data))
    except SourceError:
        return -1
    return total


def fingerprint(unit: CheckUnit, stamps: Stamps, record: UnitRecord) -> str:
    """Return a fingerprint of all that the findings of a partition depend on: what `scan` compares
    (kdump.check.unchanged), the headers of its newest segment, and what is in the newest indexes and snapshot."""
    place = unit.partition
    assert place is not None
    newest = place.segments[-1:]
    small = [*place.snapshots[-1:], *(index for segment in newest for index in segment.indexes.values())]
    sums = [*(differs(unit, record, segment) for segment in newest), *(content_sum(unit, target) for target in small)]
    options = unit.options
    about = (__version__, options.limits, options.transaction_timeout, options.max_message_bytes, options.kafka_version)
    facts = repr((about, sums, facts_of(unit, stamps)))
    return hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


def differs(unit: CheckUnit, record: UnitRecord, segment: SegmentFiles) -> bool:
    """Return True if the headers of a segment are not those that were noted."""
    note = record.segments.get(segment.name)
    if note is None or note.checked is None or segment.log is None:
        return False
    return headers_sum(unit, segment.log, note.last) != note.headers


class EndObserver(SegmentObserver):
    """Sees where the valid batches of a segment end: after the last of them, whose header is at byte `last`. `offset`:
    the one after it; `is_clean`: all bytes are of valid batches."""

    depth = Depth.HEADERS

    def __init__(self) -> None:
        self.last = self.end = self.offset = 0
        self.is_clean = True

    def start(self, note: SegmentNote | None) -> None:
        """Begin a segment, or continue in one."""
        self.last, self.end, self.offset = (note.last, note.end, note.offset) if note is not None else (0, 0, 0)
        self.is_clean = True

    def region(self, region: Region) -> None:
        if isinstance(region, BatchRun):
            row = len(region.headers) - 1
            self.last = region.headers.of(row, BATCH_START) + region.headers.shift
            self.end, self.offset = region.end, region.headers.of(row, LAST_OFFSET) + 1
        elif isinstance(region, Batch) and is_valid(region):
            self.last, self.end, self.offset = region.position, region.end, region.lastOffset + 1
        else:
            self.is_clean = False


@dataclass
class Look:
    """What a look is to read, and what it has read. `record`: what is remembered of the partition; `alone`: the segment
    to read by itself, None for the log; `allows`: whether so many bytes may be read."""

    record: UnitRecord
    alone: str | None = None
    allows: Callable[[int], bool] = lambda size: True
    tags: dict[FindingKey, str] = field(default_factory=dict)
    """The segments that findings are about which only their bytes decide."""
    read: dict[str, SegmentNote] = field(default_factory=dict)
    """The segments that were read, and what is to be remembered of them."""
    within: int = 0
    """The byte of the first of them at which the look began."""
    before: str | None = None
    state: str | None = None
    next_: str | None = None
    """The segment at which the look stopped, because it was not allowed to read more."""
    log_end: int | None = None
    stable: int | None = None
    open_since: int | None = None

    def tag(self, totals: CheckTotals, finding: Finding) -> str:
        """Return the segment with which a finding stays and goes."""
        tag = self.tags.get(key(finding))
        if tag is not None:
            return tag
        name = segment_of(finding)
        return name if totals.doubted and name in self.read else ""


@dataclass(frozen=True)
class ScrubUnit(CheckUnit):
    """A partition that is looked at by a scrub."""

    look_at: Look = field(default_factory=lambda: Look(UnitRecord()))
    stamps: Stamps = field(default_factory=dict)

    @classmethod
    def of(cls, unit: CheckUnit, look: Look, stamps: Stamps) -> ScrubUnit:
        """Return a unit for a look."""
        own = {each.name: getattr(unit, each.name) for each in fields(CheckUnit)}
        return cls(**own, look_at=look, stamps=stamps)

    def run(self, totals: CheckTotals, *_: object) -> Iterator[Finding]:
        yield from stable_findings(self, lambda watch: self.look(totals, watch), totals, at_once=True, may_resume=True)

    def again(self, *, around: bool) -> CheckUnit | None:
        unit = super().again(around=around)
        if unit is None or unit.partition is None:
            return unit
        look = Look(self.look_at.record, self.look_at.alone)
        return ScrubUnit.of(unit, look, file_stamps(unit.partition))

    def _run(self, totals: CheckTotals, *_: object) -> Iterator[Finding]:
        place, look = self.partition, self.look_at
        assert place is not None
        totals.partitions += look.alone is None
        for problem in place.listing_errors:
            totals.problem(problem)
        ends = EndObserver()
        if look.alone is not None:
            number = next((number for number, one in enumerate(place.segments) if one.name == look.alone), None)
            if number is not None:
                check = self._new_check(place, totals, ends)
                yield from self._read(place.segments[number], check.by_itself(number), ends, totals, None)
            return
        check, first, note = self._begun(place, totals, ends)
        yield from self._log(place, check, ends, totals, first, note)
        if look.next_ is not None:
            return
        yield from check.end()
        look.stable, look.log_end = check.last_stable_offset, check.log_end
        times = [running.timestamp for running in check.open_transactions.values() if running.timestamp >= 0]
        look.open_since = min(times, default=0 if check.open_transactions else None)
        yield from PartitionDirectoryCheck(place, self.known, self.options, totals).findings(check)

    def _new_check(self, place: PartitionDirectory, totals: CheckTotals, ends: EndObserver) -> PartitionScan:
        return self._scan(place, totals, lambda scan: [ends])

    def _begun(
        self, place: PartitionDirectory, totals: CheckTotals, ends: EndObserver
    ) -> tuple[PartitionScan, int, SegmentNote | None]:
        """Return the check with the state of the last look, the index of the segment at which it continues, and what is
        remembered of that if it continues within it."""
        record, segments = self.look_at.record, place.segments
        check = self._new_check(place, totals, ends)
        names = [segment.name for segment in segments]
        at = record.next_ or record.tail
        if at not in names:
            # If nothing is remembered, from the first segment; after a truncation, from the first that was not read.
            read = {name for name, note in record.segments.items() if note.checked is not None}
            number = next((i for i, name in enumerate(names) if name not in read), len(names) - 1)
            if number > 0:
                check.first = number
                check.forget()
            return check, max(0, number), None
        number = names.index(at)
        note = record.segments.get(at)
        if record.next_ is None and note is not None and self._continues(segments[number], note):
            try:
                check.resume(number, record.state or "", (note.end, note.offset))
                self.look_at.within = note.end
                return check, number, note
            except StateError:
                check = self._new_check(place, totals, ends)
        try:
            check.resume(number, record.before or "")
        except StateError:
            check = self._new_check(place, totals, ends)
            check.first = number
            if number:
                check.forget()
        return check, number, None

    def _continues(self, segment: SegmentFiles, note: SegmentNote) -> bool:
        """Return True if a segment begins with the bytes that were read of it, as far as its headers show."""
        record, log = self.look_at.record, segment.log
        if record.state is None or log is None or not note.end or note.checked is None:
            return False
        about = (finding for tag, finding in record.findings if tag == segment.name and finding.severity != INFO)
        if any(not finding.file.endswith(".log") for finding in about):
            return False  # of its indexes, which are then compared with all of it
        now, before = self.stamps.get(log.path), note.stamps.get("log")
        if now is None or before is None or now[2] != before[2]:
            return False
        has_grown = now[0] > before[0] >= note.end
        return (has_grown or [*now] == before) and headers_sum(self, log, note.last) == note.headers

    def _log(
        self,
        place: PartitionDirectory,
        check: PartitionScan,
        ends: EndObserver,
        totals: CheckTotals,
        first: int,
        note: SegmentNote | None,
    ) -> Iterator[Finding]:
        """Yield the findings of the segments from the index `first` on; `note`: what was read of that before."""
        look, segments = self.look_at, place.segments
        for number in range(first, len(segments)):
            segment = segments[number]
            size = _size(segment, self.stamps) - (note.end if note is not None else 0)
            is_last = number == len(segments) - 1
            allowed = look.allows(size)
            if is_last or not allowed:
                look.before = look.record.before if note is not None else _packed(check)
            if not allowed:
                look.next_ = segment.name
                return
            yield from self._read(segment, check.segment(number), ends, totals, note)
            note = None
            if is_last and segment.name in look.read and ends.is_clean:
                look.state = _packed(check)

    def _read(
        self,
        segment: SegmentFiles,
        findings: Iterator[Finding],
        ends: EndObserver,
        totals: CheckTotals,
        note: SegmentNote | None,
    ) -> Iterator[Finding]:
        """Yield the findings of a segment, and note that it was read, unless something of it could not be."""
        look = self.look_at
        assert segment.log is not None
        ends.start(note)
        problems = len(totals.unread) + len(totals.notes)
        for finding in findings:
            own = segment_of(finding)  # perhaps an earlier segment, which this one decides
            look.tags[key(finding)] = own if own in look.read else segment.name
            yield finding
        before = look.record.segments.get(segment.name)
        now, seen = self.options.now, before.seen if before is not None else self.options.now
        is_read = len(totals.unread) + len(totals.notes) == problems
        checked = None if not is_read else note.checked if note is not None else now
        look.read[segment.name] = SegmentNote(
            stamps_of(segment, self.stamps),
            seen,
            checked,
            headers_sum(self, segment.log, ends.last),
            ends.last,
            ends.end,
            ends.offset,
        )


def _size(segment: SegmentFiles, stamps: Stamps) -> int:
    return max(0, stamps.get(segment.log.path, (0,))[0]) if segment.log is not None else 0


def _packed(check: PartitionScan) -> str | None:
    """Return the state of a check; None if it is too large."""
    try:
        return check.state()
    except StateError:
        return None
