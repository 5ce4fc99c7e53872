"""One run of a scrub over the units of a disk: the logs from where they ended, then what is due."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from kdump.check.engine.units import CheckUnit
from kdump.check.engine.workers import run_all
from kdump.check.finding import INFO, Finding
from kdump.check.options import Options
from kdump.check.scrub.record import SegmentNote, UnitRecord, same, segment_of
from kdump.check.scrub.schedule import DAY, Budget, Waiting, due_now, interval_of
from kdump.check.scrub.state import PastRun, ScrubState
from kdump.check.scrub.unit import Look, ScrubUnit, differs, fingerprint, stamps_of
from kdump.check.totals import CheckTotals, Coverage
from kdump.check.unchanged import Stamps, file_stamp, file_stamps
from kdump.io.directory_listing import is_url, real_path
from kdump.io.errors import SourceError
from kdump.io.file_system import tree_at
from kdump.log.partition_directory import PartitionDirectory

RATE_OF = 14
"""Number of runs that show at which rate a file system fills up."""


@dataclass
class LogEnds:
    """What the ends of the logs show, for metrics. `lag`: offsets from the last stable offset to the log end;
    `open_since`: timestamp of the oldest open transaction in epoch ms, 0 if it has none."""

    lag: int | None
    open_since: int | None


@dataclass
class Scrub:
    """A run. `cadence` in ms: each closed segment is read again once in it."""

    state: ScrubState
    options: Options
    cadence: int
    budget: Budget
    totals: CheckTotals
    coverage: Coverage = field(default_factory=Coverage)
    ignored: frozenset[str] = frozenset()
    """Codes of findings that are remembered, but not shown."""
    ends: dict[tuple[str, int], LogEnds] = field(default_factory=dict)
    """By topic and partition."""
    sizes: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    """Bytes of the files of each topic that are live, and that a broker is about to delete."""
    full_in: dict[str, float] = field(default_factory=dict)
    """Days until the file system of each log directory is full at the rate of the last runs; infinite if it does not
    grow. Of a directory that no earlier run has seen, nothing is known."""
    bytes_read: int = 0
    """Bytes of segments that this run has read."""
    _covers: dict[int, Coverage] = field(default_factory=dict)
    """By the number of a unit."""
    _intact: set[int] = field(default_factory=set)
    """The numbers of the units in which nothing was found."""

    def __post_init__(self) -> None:
        self.totals.coverage = self.coverage

    def run(self, units: list[CheckUnit]) -> Iterator[tuple[CheckUnit, Iterator[Finding]]]:
        """Read what is to be read, then yield each unit with all that was found in it and is still so. Raises
        SourceError if the state cannot be read or written, or is of another disk."""
        began = time.monotonic()
        self._same_disk(units)
        others: dict[int, list[Finding]] = {}
        waiting: list[Waiting] = []
        for number, unit in enumerate(units):
            if unit.partition is None:
                others[number] = [finding for _, own in run_all([unit], 1, self.totals) for finding in own]
            else:
                waiting += self._log(number, unit, only_known=True)
        self._due(units, waiting)
        self._forget(units)
        for number, unit in enumerate(units):
            if number in self._covers:
                self.coverage.merge(self._covers.pop(number))
            if unit.partition is not None and number not in self._intact:
                findings = (finding for _, finding in self._record(unit).findings)
                others[number] = [finding for finding in findings if finding.code not in self.ignored]
            yield unit, iter(others.pop(number, ()))
        used = _used(units)
        self._full_in(used)
        self.state.end_run(PastRun(self.options.now, time.monotonic() - began, self.bytes_read, used))

    def _same_disk(self, units: list[CheckUnit]) -> None:
        """Raise SourceError unless the log directories that the state is about are here, and are the same."""
        here = {real_path(unit.directory.path): unit.ids for unit in units if unit.directory is not None}
        about = self.state.about()
        for path, ids in about.items():
            if path not in here:
                raise SourceError.at(
                    self.state.directory,
                    f"the state is also about {path}, which is not among the log directories "
                    "here: name it, mount it, or use another --state",
                )
            if ids != here[path]:
                raise SourceError.at(
                    self.state.directory,
                    f"the state is of another disk: meta.properties of {path} has changed; use another --state",
                )
        for path, ids in here.items():
            if path not in about:
                self.state.put_about(path, ids)

    def _record(self, unit: CheckUnit) -> UnitRecord:
        return self.state.get(_key(unit)) or UnitRecord()

    def _log(self, number: int, unit: CheckUnit, *, only_known: bool) -> Iterator[Waiting]:
        """Read the log of a partition from where the last run ended, if anything has changed, and yield what of it is
        to be read at some time. `only_known`: not if it was never read to its end, which is left for later."""
        place = unit.partition
        assert place is not None
        if place.listing_errors:  # nothing follows from what cannot be listed: what was found in it stays
            self.totals.problem(place.listing_errors[0])
            return
        stamps = file_stamps(place)
        if place.topic is not None and only_known:
            self._size(place, stamps)
        record = self._record(unit)
        print_ = fingerprint(unit, stamps, record)
        if record.print_ != print_ or record.next_ is not None or record.unread or record.open_since is not None:
            self._changes(unit, record, stamps)
            if record.tail or not place.segments or not only_known:
                self._look(unit, record, stamps, print_)
            self.state.put(_key(unit), record)
        self._note(number, unit, record)
        if not record.tail and place.segments:
            left = sum(note.unchecked for note in record.segments.values())
            yield Waiting(0, left, number, None)
            return
        for name, note in record.segments.items():
            yield Waiting(note.checked or 0, note.size, number, name)

    def _changes(self, unit: CheckUnit, record: UnitRecord, stamps: Stamps) -> None:
        """Note the segments that are new, have changed or are gone since they were read; what was found in them no
        longer holds."""
        place = unit.partition
        assert place is not None
        segments: dict[str, SegmentNote] = {}
        tail = record.next_ or record.tail
        for segment in place.segments:
            note = record.segments.get(segment.name)
            now = stamps_of(segment, stamps)
            if note is None:
                note = SegmentNote(now, self.options.now)
            elif segment.name != tail and note.checked and (note.stamps != now or differs(unit, record, segment)):
                note = SegmentNote(now, self.options.now)
                record.findings = [(tag, finding) for tag, finding in record.findings if tag != segment.name]
            segments[segment.name] = note
        record.findings = [(tag, finding) for tag, finding in record.findings if not tag or tag in segments]
        record.segments = segments

    def _look(self, unit: CheckUnit, record: UnitRecord, stamps: Stamps, print_: str) -> None:
        """Read the log of a partition, and remember what was read."""
        look = Look(record, allows=self.budget.allows)
        looking = ScrubUnit.of(unit, look, stamps)
        totals = CheckTotals()
        found = list(looking.run(totals))  # what was read is known at the end
        tagged = [(look.tag(totals, finding), finding) for finding in found if _holds(finding, look, record)]
        self._count(totals)
        kept = [
            (tag, finding)
            for tag, finding in record.findings
            if tag and (tag not in look.read or (tag == record.tail and _is_below(finding, look.within)))
        ]
        if look.next_ is not None and not look.read and look.next_ == record.tail:
            return  # it has grown, and is left for the next run, which begins where this one would have
        if look.next_ is not None:
            kept += [(tag, finding) for tag, finding in record.findings if not tag]
        record.keep([*kept, *tagged])
        record.segments.update(look.read)
        record.before, record.next_ = look.before, look.next_
        record.unread = bool(totals.unread)
        if look.next_ is not None:
            record.print_, record.state = "", None
            return
        names = [segment.name for segment in unit.partition.segments] if unit.partition is not None else []
        record.print_, record.state, record.tail = print_, look.state, names[-1] if names else ""
        known_ends = look.stable is not None and look.log_end is not None
        record.lag = max(0, look.log_end - look.stable) if known_ends else None  # type: ignore[operator]
        record.open_since = look.open_since

    def _due(self, units: list[CheckUnit], waiting: list[Waiting]) -> None:
        """Read what is due, the oldest check first, as far as the budget allows it."""
        now, budget = self.options.now, self.budget
        interval = interval_of([run.began for run in self.state.runs()], now, self.cadence)
        left = None if budget.bytes is None else budget.bytes - budget.used
        for one in due_now(waiting, now, self.cadence, interval, left):
            unit = units[one.unit]
            if one.segment is None:
                for _ in self._log(one.unit, unit, only_known=False):
                    pass
                record = self._record(unit)
                if record.next_ is None:
                    continue
                note = record.segments.get(record.next_)
                if note is None or budget.bytes is None or note.size <= budget.bytes:
                    break
                self.coverage.too_large += 1
            elif budget.bytes is not None and one.size > budget.bytes:
                self.coverage.too_large += 1
            elif not budget.allows(one.size):
                break
            else:
                self._alone(one.unit, unit, one.segment)

    def _alone(self, number: int, unit: CheckUnit, name: str) -> None:
        """Read a segment again."""
        place = unit.partition
        assert place is not None
        stamps, record = file_stamps(place), self._record(unit)
        segment = next((segment for segment in place.segments if segment.name == name), None)
        if segment is None or segment.log is None or name not in record.segments:
            return
        look, totals = Look(record, name), CheckTotals()
        looking = ScrubUnit.of(unit, look, stamps)
        found = list(looking.run(totals))
        self._count(totals)
        note = look.read.get(name)
        if note is None or file_stamp(segment.log) != stamps.get(segment.log.path):
            return  # it is gone, or has changed meanwhile: the next run reads what is there then
        known = {same(finding) for _, finding in record.findings}
        is_new = any(finding.severity != INFO and same(finding) not in known for finding in found)
        record.keep([*((name, finding) for finding in found), *record.findings])
        if name != record.tail:
            record.segments[name] = note
        elif note.checked is not None:
            record.segments[name].checked = note.checked  # the state is the one at the end that it had
        if is_new:  # what follows from it, such as offsets that are missing, is decided by the log
            record.begin_again()
            self._look(unit, record, stamps, fingerprint(unit, stamps, record))
        self.state.put(_key(unit), record)
        self._note(number, unit, record)

    def _count(self, totals: CheckTotals) -> None:
        self.bytes_read += totals.bytes
        totals.findings.clear()
        self.totals.add(totals)

    def _forget(self, units: list[CheckUnit]) -> None:
        """Forget the partitions that are gone; those that cannot be seen are remembered."""
        here = {_key(unit) for unit in units if unit.partition is not None}
        for name in self.state.unit_keys():
            if name not in here and not os.path.lexists(name):
                self.state.remove(name)

    def _size(self, place: PartitionDirectory, stamps: Stamps) -> None:
        for path, stamp in stamps.items():
            is_deleted = place.state == "delete" or path.endswith(".deleted")
            (self.deleted if is_deleted else self.sizes)[place.topic or ""] += max(0, stamp[0])

    def _full_in(self, used: dict[str, int]) -> None:
        past = self.state.runs()[-RATE_OF:]
        for path, bytes_used in used.items():
            first = next((run for run in past if path in run.used and run.began < self.options.now), None)
            if first is not None:
                days = (self.options.now - first.began) / DAY
                if days < 1 / 24:  # too short to show a rate
                    continue
                rate = (bytes_used - first.used[path]) / days
                status = os.statvfs(path)
                self.full_in[path] = status.f_bavail * status.f_frsize / rate if rate > 0 else math.inf

    def _note(self, number: int, unit: CheckUnit, record: UnitRecord) -> None:
        """Note what is now remembered of a partition."""
        place, now = unit.partition, self.options.now
        assert place is not None
        cover = self._covers[number] = Coverage()
        for note in record.segments.values():
            cover.add(note.size, note.unchecked, note.seen, note.checked, now - self.cadence, now)
        (self._intact.discard if record.findings else self._intact.add)(number)
        if place.topic is not None and place.partition is not None and not place.state:
            self.ends[place.topic, place.partition] = LogEnds(record.lag, record.open_since)


def refuse_sources(paths: Iterable[str]) -> None:
    """Raise SourceError for a path that a state cannot be about: a URL, a bundle, standard input."""
    for path in paths:
        if path == "-" or is_url(path) or tree_at(path) is not None or not os.path.isdir(path):
            raise SourceError.at(path, "--state is about log directories on a disk; leave it out for anything else")


def _key(unit: CheckUnit) -> str:
    """Return the key of a partition in the state."""
    directory, name = os.path.split(os.path.abspath(unit.name))
    return os.path.join(_real(directory), name)


@lru_cache(1)
def _real(directory: str) -> str:
    return real_path(directory)


def _holds(finding: Finding, look: Look, record: UnitRecord) -> bool:
    """Return False for what the end of the log repeats of a segment that is gone, or has changed and was not read
    since."""
    name = segment_of(finding)
    if not finding.file.endswith(".log") or name in look.read:
        return True
    note = record.segments.get(name)
    return note is not None and note.checked is not None


def _is_below(finding: Finding, position: int) -> bool:
    return finding.file.endswith(".log") and finding.position < position


def _used(units: Iterable[CheckUnit]) -> dict[str, int]:
    """Return how many bytes are used on the file system of each log directory."""
    used: dict[str, int] = {}
    for unit in units:
        if unit.directory is not None:
            try:
                status = os.statvfs(unit.directory.path)
            except OSError:
                continue
            used[real_path(unit.directory.path)] = (status.f_blocks - status.f_bfree) * status.f_frsize
    return used
